//! The abilities of a physical switch that decide the form of a tenant's rules.

use crate::metadata;
use crate::wire::Wire;
use alloc::vec::Vec;

/// A physical switch, or a big switch that joins several physical switches. A big switch belongs to one tenant, and its
/// members have the infrastructure rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The version of OpenFlow.
    pub wire: Wire,
    /// The number of flow tables.
    pub tables: u8,
    /// Whether the target is a big switch.
    pub is_joined: bool,
}

/// A port of a physical switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhysicalPort {
    /// The description that the switch has sent.
    pub description: Vec<u8>,
    /// Whether FLOOD leaves the port out (1.0).
    pub no_flood: bool,
}

impl Target {
    /// Whether table 0 can write the owner and the ingress of a packet to the metadata. Without metadata a tenant's
    /// entry becomes one rule for each ingress.
    #[inline]
    pub const fn has_metadata(&self) -> bool {
        matches!(self.wire, Wire::V13)
    }

    /// Whether the switch can put a label in front of a packet's own VLAN tag. Otherwise the label takes the place of
    /// the tag.
    #[inline]
    pub const fn stacks_labels(&self) -> bool {
        matches!(self.wire, Wire::V13)
    }

    /// The first table of the tenants, behind table 0 if table 0 belongs to Weir.
    pub const fn first_table(&self) -> u8 {
        (self.has_metadata() && !self.is_joined) as u8
    }

    /// The last table, which belongs to Weir in networks: see [`crate::delivery`]. A switch with two tables has no
    /// table to spare, and a switch of 1.0 has only one table.
    pub const fn delivery_table(&self) -> Option<u8> {
        if self.has_metadata() && !self.is_joined && self.tables >= 3 {
            Some(self.tables - 1)
        } else {
            None
        }
    }

    /// The number of tables that a tenant sees.
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
