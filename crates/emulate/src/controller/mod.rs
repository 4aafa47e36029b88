//! Emulates controllers, such as a hub, a learning switch, and controllers that send faulty
//! messages or too many messages.
//!
//! [`Controller`] has no I/O, like the emulated switch: connections are numbers, and the time is an
//! argument. [`ControllerRunner`] runs a controller on sockets.

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
