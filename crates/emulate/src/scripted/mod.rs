//! Scripted peers for end-to-end tests, over blocking sockets: a test says what it sends and what it
//! expects, and every wait has an end.
//!
//! [`Controller`] listens and accepts switches (or a hypervisor that looks like one); each is a
//! [`Peer`]. [`Switch`] dials; behind it stands a whole emulated switch, which answers all that the
//! script does not hold back.

mod controller;
mod peer;
mod switch;

pub use controller::{Connected, Controller};
pub use peer::{Message, Peer};
pub use switch::Switch;
