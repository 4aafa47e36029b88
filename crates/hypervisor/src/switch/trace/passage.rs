//! The path of a packet on one switch, as the operator sees it.

use crate::policy::TenantId;
use alloc::boxed::Box;
use alloc::vec::Vec;
use flowspace::Match;
use openflow::Version;
use openflow::v13::GroupType;

/// A packet at a port of a physical switch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Packet {
    /// The port, in the numbering of 1.3.
    pub in_port: u32,
    /// The frame.
    pub frame: Vec<u8>,
}

/// The owner of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A tenant's.
    Tenant(TenantId, Claim),
    /// The packet is in transit for a network, and matches no tenant's entries.
    Transit,
    /// The packet has no owner.
    Nobody,
}

/// Why a packet belongs to a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// An entry of the tenant's flowspace.
    Flowspace {
        /// The entry's headers.
        match_: Box<Match>,
        /// The entry's priority.
        priority: u16,
    },
    /// A port of the tenant's network.
    Port {
        /// The datapath id that the tenant sees.
        datapath: u64,
        /// The port's number as the tenant sees it.
        port: u32,
        /// Whether the packet came over a link of the network's.
        is_link: bool,
        /// Whether other tenants share the port, so that the source address decides.
        is_shared: bool,
    },
}

/// A step on the path of a packet, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The packet matches a rule.
    Rule {
        /// The FLOW_MOD that would add the rule to the switch.
        rule: Vec<u8>,
        /// The FLOW_MOD that would add the tenant's entry of the rule; `None` for a rule of Weir's own.
        entry: Option<Vec<u8>>,
        /// Whether another rule of the same priority also matches the packet: the switch chooses.
        is_ambiguous: bool,
    },
    /// The packet matches an entry of the tenant that has no rule for the packet on the switch: the FLOW_MOD that would
    /// add the entry.
    Uninstalled(Vec<u8>),
    /// The packet matches no rule in a table.
    Missed {
        /// The switch's number of the table.
        table: u8,
        /// The tenant's number of the table.
        tenants: Option<u8>,
    },
    /// The packet goes to a group of the tenant.
    Group {
        /// The tenant's number of the group.
        group: u32,
        /// How the group uses its buckets.
        kind: GroupType,
        /// The number of buckets.
        buckets: usize,
    },
    /// A meter of the tenant, with this number, may drop or change the packet.
    Meter(u32),
    /// An action of an experimenter; only the switch knows its effect.
    Unknown,
}

/// Where a packet leaves the switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The destination.
    pub to: To,
    /// The packet at this point.
    pub frame: Vec<u8>,
    /// Why only the switch knows whether the packet goes there, if so.
    pub if_: Option<Doubt>,
}

/// Why only the switch knows where a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The switch chooses among the buckets of this group of the tenant.
    Group(u32),
    /// The packet met no entry with actions in its set. The specification drops it; Open vSwitch carries out the set.
    SetOnMiss,
}

/// Where a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// Out of a port.
    Port {
        /// The switch's port.
        number: u32,
        /// Whether the switch says that the port is there and up.
        is_up: bool,
        /// The port of the tenant's network, if there is one.
        seen_as: Option<u32>,
    },
    /// To the tenant's controllers, as a PACKET_IN.
    Controllers {
        /// The number of connected controllers.
        connected: usize,
        /// Whether the packet matched no entry, or only the table-miss entry.
        is_miss: bool,
        /// Whether the tenant does not want this PACKET_IN, by the configuration of the port.
        is_unwanted: bool,
    },
    /// To Weir itself.
    Weir,
    /// Wherever the switch's own forwarding sends it.
    Normal,
    /// Nowhere.
    Dropped,
    /// To the controllers, if the switch sends packets with an invalid TTL.
    Expired,
}

/// The path of a packet on one switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// The version that the switch speaks.
    pub version: Version,
    /// The owner of the packet.
    pub owner: Owner,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// The outputs; never empty.
    pub outputs: Vec<Output>,
    /// Whether the path goes on beyond the limit of steps.
    pub is_cut: bool,
}
