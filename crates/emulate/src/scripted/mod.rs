//! Scripted peers for end-to-end tests, over blocking sockets. A test states the messages that it sends and expects.
//! Every wait has a limit.
//!
//! [`Controller`] listens and accepts switches (or a hypervisor that acts as a switch). Each switch
//! is a [`Peer`]. [`Switch`] dials a controller. Its complete emulated switch answers all messages
//! that the script does not hold back.

mod controller;
mod peer;
mod switch;

pub use controller::{Connected, Controller};
pub use peer::{Message, Peer};
pub use switch::Switch;
