//! How well tenants share a network when each chooses paths by itself: at random, by equal-cost hashing, or by labels.
//!
//! A flow-level simulation, beyond what one machine can emulate. Servers are divided into virtual interfaces, those
//! belong to tenants, and each sends to another of its tenant ([`traffic`]). Paths are chosen ([`choose`]); rates are
//! max-min fair, none above what was bought; the yardstick is the optimum, or a bound that no routing can pass
//! ([`optimum`]). Time goes in steps ([`mod@run`]). A [`Plan`] compares all ways to choose; a [`Study`] is what came
//! out.
//!
//! What is simulated is only the traffic. Paths, nominal rates, tracking, labels, their blurring and fair shares are
//! the code that the hypervisor runs ([`fabric`]). No clock, no sockets, and randomness only from a seed: the same
//! setting gives the same result.

#![forbid(unsafe_code)]

pub mod choose;
pub mod error;
pub mod optimum;
pub mod plan;
pub mod random;
pub mod run;
pub mod study;
pub mod traffic;
pub mod world;

pub use choose::{Choice, Moves};
pub use error::Error;
pub use optimum::Optimum;
pub use plan::Plan;
pub use run::{Outcome, Setting, run, yardstick};
pub use study::Study;
pub use traffic::Tenancy;
pub use world::World;
