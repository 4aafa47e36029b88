//! What is said of a packet on one switch.

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

/// Whose a packet is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A tenant's.
    Tenant(TenantId, Claim),
    /// It passes through for a network, and no tenant's entries are asked.
    Transit,
    /// Without an owner.
    Nobody,
}

/// By what a packet is a tenant's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// An entry of its flowspace.
    Flowspace {
        /// The entry's headers.
        match_: Box<Match>,
        /// The entry's priority.
        priority: u16,
    },
    /// A port of its network.
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

/// Something that happens to a packet, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It meets a rule.
    Rule {
        /// The FLOW_MOD that would add the rule to the switch.
        rule: Vec<u8>,
        /// The FLOW_MOD that would add the tenant's entry for which the rule stands; none for a rule of Weir's own.
        entry: Option<Vec<u8>>,
        /// Whether another rule of the same priority takes it as well: the switch chooses.
        is_ambiguous: bool,
    },
    /// An entry of the tenant's would take it that has no rule on the switch for it: the FLOW_MOD that would add the entry.
    Uninstalled(Vec<u8>),
    /// It meets no rule in a table: the switch's, and the tenant's number for it.
    Missed {
        /// The switch's table.
        table: u8,
        /// The tenant's.
        tenants: Option<u8>,
    },
    /// It goes to a group of the tenant's.
    Group {
        /// The tenant's number.
        group: u32,
        /// How the group uses its buckets.
        kind: GroupType,
        /// How many those are.
        buckets: usize,
    },
    /// A meter of the tenant's, by its number, may drop or change it.
    Meter(u32),
    /// An action of an experimenter's does what only the switch knows.
    Unknown,
}

/// Where a packet leaves the switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Where to.
    pub to: To,
    /// What it is then.
    pub frame: Vec<u8>,
    /// Whether it goes there only the switch knows, for this reason.
    pub if_: Option<Doubt>,
}

/// Why only the switch knows where a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The switch chooses among the buckets of this group of the tenant's.
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
        /// The port of the tenant's network, if it is one.
        seen_as: Option<u32>,
    },
    /// To its tenant's controllers, as a PACKET_IN.
    Controllers {
        /// How many of them are connected.
        connected: usize,
        /// Whether since it met no entry, or the entry for all that meets no other.
        is_miss: bool,
        /// Whether the tenant wants no PACKET_IN, by the configuration of the port.
        is_unwanted: bool,
    },
    /// To Weir itself.
    Weir,
    /// Wherever the switch's own forwarding sends it.
    Normal,
    /// Nowhere.
    Dropped,
    /// To the controllers, if the switch does so when a time to live is over.
    Expired,
}

/// What becomes of a packet on one switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// The version that the switch speaks.
    pub version: Version,
    /// Whose it is.
    pub owner: Owner,
    /// What happens to it, in order.
    pub steps: Vec<Step>,
    /// Where it leaves; never empty.
    pub outputs: Vec<Output>,
    /// Whether there is more than was followed.
    pub is_cut: bool,
}
