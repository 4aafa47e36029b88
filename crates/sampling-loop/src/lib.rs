//! Sampling on real servers: [`calibrate`] measures its costs, and the closed loop estimates the servers' capacities,
//! plans, enacts each plan on all servers or on none, and compares the collected samples with the plan.
//!
//! ```text
//!   Driver ── lines of JSON ──▶ station::serve, one per server ── tc, rings, sFlow ──▶ the driver's collector
//!     │ asks sampling::control what to do                                                    │
//!     └────────────────────────────── Verdict: collected beside planned ◀───────────────────┘
//! ```
//!
//! This crate deliberately makes no decisions: those are pure functions in [`sampling::control`]. It parses no options
//! and prints no results. Errors are [`anyhow`]'s, because the caller can only report why a loop ended. Start reading
//! at [`Driver`]; [`station`] is the other end of its pipes, [`Servers`] makes a lab for a loop, [`traffic`] sends the
//! frames of that lab's guests.

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
