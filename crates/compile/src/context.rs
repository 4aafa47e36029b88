//! For whom and for which switch is compiled.

use crate::ids::TenantIndex;
use crate::instances::Instances;
use crate::network::Network;
use crate::ownership::Ownership;
use crate::refusal::Refused;
use crate::target::{PhysicalPort, Target};
use crate::wire::Action;
use alloc::collections::BTreeMap;
use core::ops::RangeInclusive;
use fabric::TenantId;
use openflow::v13::PortNo;

/// For whom and for which switch is compiled.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The switch.
    pub target: Target,
    /// The tenant, as the switch's [`Ownership`] numbers it.
    pub tenant: TenantIndex,
    /// The tenant's number, which table 0 writes to the metadata.
    pub id: TenantId,
    /// The tenant's slice or network on the switch.
    pub space: Space<'a>,
    /// Experimenters whose actions the tenant may use.
    pub experimenters: &'a [u32],
    /// Queues that the tenant may use.
    pub queues: &'a [u32],
    /// The tenant's groups and meters (1.3).
    pub groups: &'a dyn GroupTable,
    /// VLAN ids that are reserved for labels.
    pub labels: Option<&'a RangeInclusive<u16>>,
}

/// The two modes in which a tenant can be on a switch.
#[derive(Clone, Copy)]
pub enum Space<'a> {
    /// A part of the physical network.
    Slice(Slice<'a>),
    /// A network of its own.
    Network(&'a Network),
}

/// A part of the physical network.
#[derive(Clone, Copy)]
pub struct Slice<'a> {
    /// The owners of packets and ports on the switch.
    pub ownership: &'a Ownership,
    /// The switch's ports.
    pub ports: &'a BTreeMap<u32, PhysicalPort>,
}

/// The ids that a tenant's groups and meters have on the switch.
pub trait GroupTable {
    /// The instances of one of the tenant's groups.
    fn instances(&self, group: u32) -> Option<&Instances>;

    /// The instances of the egress group for an output: see [`crate::egress_group`].
    fn egress(&self, output: PortNo) -> Option<&Instances>;

    /// The id of a meter on the switch.
    fn meter(&self, meter: u32) -> Option<u32>;
}

impl<'a> Context<'a> {
    /// The tenant's network, if the tenant has one.
    #[inline]
    pub fn network(&self) -> Option<&'a Network> {
        match self.space {
            Space::Network(network) => Some(network),
            Space::Slice(_) => None,
        }
    }

    /// The same context with another network: the tenant is about to get this network.
    pub fn within(&self, network: &'a Network) -> Context<'a> {
        Context { space: Space::Network(network), ..*self }
    }

    /// The number of tables that the tenant sees.
    pub fn tables(&self) -> u8 {
        self.target.tenant_tables(self.network().is_some())
    }

    /// Whether the tenant may use an action on the tenant's own packets.
    #[inline]
    pub fn check(&self, action: &impl Action) -> Result<(), Refused> {
        action.check(self.network().is_some(), self.experimenters, self.queues)
    }
}
