//! Testbeds for experiments: a control channel and data channels to one switch, and a clock.
//!
//! There are two testbeds with a switch. [`Emulated`] is an emulated switch in virtual time: a second takes no time,
//! and the same seed gives the same result. [`Real`] is a switch behind a socket and interfaces.

mod clock;
mod control;
mod data;
mod emulated;
mod interface;
mod looped;
mod poller;
mod real;

pub use control::SwitchAddress;
pub use data::DataPort;
pub use emulated::{Emulated, Hardware};
pub use interface::{Arrival, Happening, Testbed};
pub use looped::Looped;
pub use real::{Real, RealOptions};
