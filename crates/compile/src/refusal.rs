//! The reason why a tenant's request is refused: the OpenFlow error for the controller, and the check that refused, for
//! `weir ctl why`.
//!
//! Several checks give the same error, because OpenFlow has no more exact error. [`Reason`] distinguishes these checks.
//! An error that only one check gives needs no reason of its own ([`Reason::ByCode`]). The crate `hypervisor` has the
//! words for each reason.

use openflow::ErrorCode;
use openflow::error::v13 as code;
use openflow::v13::PortNo;

/// An error for a controller, and the check that refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    code: ErrorCode,
    reason: Reason,
    value: u32,
}

impl Refused {
    /// The error that the controller gets.
    pub const fn code(self) -> ErrorCode {
        self.code
    }

    /// The check that refused.
    pub const fn reason(self) -> Reason {
        self.reason
    }

    /// The number that the check names: a port (in the numbering of 1.3), a table, a group. 0 if the check names no
    /// number.
    pub const fn value(self) -> u32 {
        self.value
    }

    /// The same refusal with another error.
    pub const fn as_code(self, code: ErrorCode) -> Refused {
        Refused { code, ..self }
    }
}

impl From<ErrorCode> for Refused {
    fn from(code: ErrorCode) -> Refused {
        Reason::ByCode.with(code)
    }
}

/// Defines the reasons, and the list of all.
macro_rules! reasons {
    ($( $(#[$doc:meta])* $name:ident, )*) => {
        /// A check that refuses.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Reason {
            $( $(#[$doc])* $name, )*
        }

        impl Reason {
            /// All reasons.
            pub const ALL: &[Reason] = &[ $( Reason::$name, )* ];
        }
    };
}

reasons! {
    /// The error and the type of the request identify the check.
    ByCode,

    /// The tenant may only read.
    ReadOnly,
    /// Too many requests of the tenant wait.
    Backlog,
    /// The answer is too large.
    AnswerTooLarge,
    /// No member of a big switch is there to ask.
    NoMember,
    /// The tenant's part of the store is full.
    StoreFull,

    /// An action sends to a port (the value) that does not belong to the tenant.
    OutPort,
    /// An action sends to NORMAL.
    Normal,
    /// An entry, or a bucket, sends to TABLE.
    TableInEntry,
    /// An action set, or a bucket, floods in a slice that does not have all ports.
    FloodInSet,
    /// A packet without ingress port is sent to IN_PORT.
    NoInPort,
    /// An output to a shared edge port does not name the destination host.
    SharedEdge,
    /// An entry changes source addresses, and sends packets from a shared edge port to the controller (1.0).
    SourceToController,
    /// The ingress port (the value) is not the tenant's.
    InPort,

    /// The switch has reused the buffer of the packet for another packet while the request waited.
    BufferReused,
    /// The packet of a PACKET_OUT is outside the flowspace.
    ForeignPacket,
    /// The packet of a PACKET_OUT is one of Weir's own link probes.
    WeirsProbe,
    /// The packet is LLDP outside the flowspace, and is no link probe.
    NoProbe,
    /// An action changes a link probe outside the flowspace.
    ProbeChanged,
    /// The packet of a PACKET_OUT is shorter than an Ethernet header (1.0).
    ShortPacket,
    /// A PACKET_OUT is too long with the actions that it needs on the switch.
    PacketTooLong,
    /// A packet for TABLE would be looked up in too many entries (1.0).
    LongTable,
    /// A packet for TABLE would not belong to the tenant in the tables.
    ForeignInTables,
    /// A changed packet for TABLE has no ingress port.
    ChangedFromNowhere,
    /// A packet for TABLE has the source address of a host that is not at the port.
    ForeignSource,
    /// A packet for TABLE would enter by a port (the value) by which no packets enter this switch.
    NoEntrance,
    /// No label is left with which packets of the controller could enter the tables (1.3).
    NoControllerLabel,
    /// A packet for TABLE has further actions (1.0).
    TableNotAlone,
    /// A packet for TABLE does not look like a packet from its ingress port (1.0).
    UnlikeItsPort,

    /// A push action has an Ethernet type (the value) that is not the type of such a tag.
    PushType,
    /// POP_MPLS in a network has the Ethernet type of a VLAN tag.
    VlanUnderMpls,
    /// A tagged frame is sent by a link where a frame has room for one tag.
    TagOnLink,
    /// A frame from a link gets a VLAN tag before the frame goes to the controller (1.0).
    TagToController,
    /// PBB in a network.
    PbbInNetwork,
    /// ENQUEUE in a network (1.0).
    EnqueueInNetwork,
    /// The rules of one entry take too much memory.
    TooManyRules,

    /// An entry names a group (the value) twice.
    GroupTwice,
    /// An entry behind the first table applies an action that makes a switch recirculate packets.
    Recirculates,
    /// GOTO_TABLE leads to the same table or an earlier one (the value).
    GotoBack,
    /// GOTO_TABLE leads to a table (the value) that the tenant does not have.
    GotoNowhere,
    /// An action set that is merged with others sends to a group with instances by VLAN tag.
    SetToGroupByTag,

    /// The match names bits of the metadata that belong to Weir.
    WeirsMetadata,
    /// Another tenant's flowspace entry ranks higher for some of the packets (1.0).
    Contested,
    /// Two entries would become the same rule on the switch.
    SameRule,
    /// The tenant has reached its limit of entries.
    EntryLimit,
    /// The tenant has reached its limit of rules.
    RuleLimit,
    /// The tenant has reached its share of the rules of the table.
    RuleShare,
    /// One message would become too many rules.
    RulesAtOnce,

    /// The tenant has reached its share of the groups of one type on the switch.
    GroupShare,
    /// A packet would pass too many buckets in a chain of groups.
    GroupPasses,
    /// The tenant's groups have too many instances on the switch.
    GroupInstances,
    /// The switch has refused an egress group.
    NoEgressGroup,
    /// A bucket watches a port that does not belong to the tenant.
    WatchedPort,
    /// The tenant has reached its share of the meters of the switch.
    MeterShare,

    /// Other tenants use the port of a PORT_MOD.
    PortShared,
    /// A PORT_MOD asks for a configuration that Weir cannot enforce (1.0).
    PortConfig,
    /// A PORT_MOD of a virtual port advertises features (1.0).
    PortAdvertises,
    /// With this port configuration an entry or a group would be impossible.
    PortInUse,
}

impl Reason {
    /// The refusal with this error.
    pub const fn with(self, code: ErrorCode) -> Refused {
        self.of(0, code)
    }

    /// The refusal with this error, about this number.
    pub const fn of(self, value: u32, code: ErrorCode) -> Refused {
        Refused { code, reason: self, value }
    }
}

/// The refusal of an output to a port that does not belong to the tenant.
pub(crate) fn not_own(port: PortNo) -> Refused {
    let reason = match port {
        PortNo::NORMAL => Reason::Normal,
        PortNo::TABLE => Reason::TableInEntry,
        _ => Reason::OutPort,
    };
    reason.of(port.0, code::BAD_ACTION_BAD_OUT_PORT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_result_has_at_most_12_bytes() {
        assert!(size_of::<Result<(), Refused>>() <= 12);
    }
}
