//! Sampling carried out on real servers: what it costs there ([`calibrate`]), and the closed loop, which estimates what
//! servers bear, plans, enacts each plan on all servers or on none, and compares what is collected with the plan.
//!
//! ```text
//!   Driver ── lines of JSON ──▶ station::serve, one per server ── tc, rings, sFlow ──▶ the driver's collector
//!     │ asks sampling::control what to do                                                    │
//!     └────────────────────────────── Verdict: collected beside planned ◀───────────────────┘
//! ```
//!
//! Deliberately without decisions, which are pure and stand in [`sampling::control`], and without parsing of options or
//! printing of results. Errors are [`anyhow`]'s: whoever runs a loop can only be told why it ended. Start reading at
//! [`Driver`]; [`station`] is the other end of its pipes, [`Servers`] is a lab to run it in, [`traffic`] is what guests of
//! that lab send.

#![forbid(unsafe_code)]

pub mod calibrate;
mod counters;
mod driver;
mod protocol;
mod servers;
mod site;
pub mod station;
pub mod traffic;
mod verify;

pub use driver::{CapacityOption, Driver, Manner, News, Round, Seen};
pub use servers::{Received, Servers};
pub use site::Site;
pub use verify::Verdict;
