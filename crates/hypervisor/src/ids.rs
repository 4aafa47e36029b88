//! Dense numbers for a switch's peers.

/// A tenant's place in the current view of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantIndex(pub u32);

/// A controller connection of a switch, as given by [`crate::Switch::controller_connected`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ControllerIndex(pub u32);
