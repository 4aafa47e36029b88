//! What a physical switch can do, as far as it decides how a tenant's entries are written.

use crate::metadata;
use crate::wire::Wire;
use alloc::vec::Vec;

/// A physical switch, or a big switch that joins several: then all of it is one tenant's, and its members hold what is Weir's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The version of OpenFlow.
    pub wire: Wire,
    /// Flow tables.
    pub tables: u8,
    /// Whether it is a big switch.
    pub is_joined: bool,
}

/// A port of a physical switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhysicalPort {
    /// The description as the switch gave it.
    pub description: Vec<u8>,
    /// Whether FLOOD leaves the port out (1.0).
    pub no_flood: bool,
}

impl Target {
    /// Whether table 0 can write to the metadata whose a packet is and how it came. Where it cannot, a tenant's entry becomes a
    /// rule for each ingress.
    #[inline]
    pub const fn has_metadata(&self) -> bool {
        matches!(self.wire, Wire::V13)
    }

    /// Whether a label can be put in front of a packet's own VLAN tag. Where it cannot, the label takes the tag's place.
    #[inline]
    pub const fn stacks_labels(&self) -> bool {
        matches!(self.wire, Wire::V13)
    }

    /// The first table that is the tenants' (1.3).
    pub const fn first_table(&self) -> u8 {
        !self.is_joined as u8
    }

    /// The last table, which is Weir's for networks: see [`crate::delivery`]. A switch of two tables has none to spare, and a
    /// switch of 1.0 has but one table.
    pub const fn delivery_table(&self) -> Option<u8> {
        if self.has_metadata() && !self.is_joined && self.tables >= 3 {
            Some(self.tables - 1)
        } else {
            None
        }
    }

    /// Tables that a tenant sees.
    pub const fn tenant_tables(&self, has_network: bool) -> u8 {
        let behind = self.tables.saturating_sub(self.first_table());
        let is_taken = has_network && self.delivery_table().is_some();
        behind.saturating_sub(is_taken as u8)
    }

    /// The bits of the metadata that are not the tenant's own.
    pub const fn metadata_kept(&self, has_network: bool) -> u64 {
        if has_network || self.is_joined { metadata::PORT } else { metadata::TENANT }
    }
}
