//! How a switch connects to controllers: the switch dials or listens.

use channel::Address;

/// An address that the switch dials, or on which the switch listens.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Door {
    Dial(Address),
    Listen(Address),
}
