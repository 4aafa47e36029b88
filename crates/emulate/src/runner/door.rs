//! How a switch meets a controller.

use channel::Address;

/// How a switch meets a controller.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Door {
    Dial(Address),
    Listen(Address),
}
