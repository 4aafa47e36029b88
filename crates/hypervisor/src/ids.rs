//! Dense numbers for a switch's peers.

pub use compile::TenantIndex;

/// A controller connection of a switch, as given by [`crate::Switch::controller_connected`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ControllerIndex(pub u32);
