//! The indices of switches and links in a network. Other modules use these indices for their
//! tables.

use alloc::vec::Vec;
use core::fmt;

/// The index of a switch in a [`Network`](crate::Network); it never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwitchIndex(pub(crate) u32);

impl SwitchIndex {
    /// Counts from 0, for tables with a row per switch.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One direction of a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub(crate) u32);

impl LinkId {
    /// Counts from 0, for tables with a row per link.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The other direction of the same wire.
    pub const fn reverse(self) -> LinkId {
        LinkId(self.0 ^ 1)
    }

    /// The same number for both directions of a wire.
    pub const fn wire(self) -> u32 {
        self.0 / 2
    }
}

impl fmt::Display for LinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Links that went up or down by a change.
pub type Changed = Vec<LinkId>;
