//! Emulated controllers: what a network's brain does, or what a bad one does to it.
//!
//! [`Controller`] is sans-I/O, like the switch: connections are numbers, time is an argument. The
//! runner beside it, [`ControllerRunner`], gives it sockets.

mod behaviour;
mod conversation;
mod heard;
mod malformed;
mod model;
mod runner;
mod v10;
mod v13;

pub use behaviour::Behaviour;
pub use malformed::malformed_messages;
pub use model::{ConnectionId, Controller};
pub use runner::{ControllerCounters, ControllerRunner, Manner, RunningController};
