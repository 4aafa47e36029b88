//! Why a request of a tenant is refused: the OpenFlow error for the controller, and the check that refused, for people who ask.
//!
//! Several checks give the same error, since OpenFlow has no finer one. [`Reason`] tells these checks apart; an error that one check
//! gives needs no reason of its own ([`Reason::ByCode`]). The hypervisor has the words for each.

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

    /// The number that the check is about: a port (as 1.3 numbers ports), a table, a group. 0 if the check is about no number.
    pub const fn value(self) -> u32 {
        self.value
    }

    /// The same with another error.
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
            /// All of them.
            pub const ALL: &[Reason] = &[ $( Reason::$name, )* ];
        }
    };
}

reasons! {
    /// The check that its error and the type of the request name.
    ByCode,

    /// The tenant may only read.
    ReadOnly,
    /// Too many requests wait.
    Backlog,
    /// The answer is too large.
    AnswerTooLarge,
    /// No member of a big switch is there to ask.
    NoMember,
    /// The tenant's part of the store is full.
    StoreFull,

    /// An action sends to a port (the value) that is not the tenant's.
    OutPort,
    /// An action sends to NORMAL.
    Normal,
    /// An entry, or a bucket, sends to TABLE.
    TableInEntry,
    /// An action set, or a bucket, floods in a slice that does not have all ports.
    FloodInSet,
    /// A packet that has come by no port is sent back to IN_PORT.
    NoInPort,
    /// An output to an edge port that other tenants share does not say for which host packets are.
    SharedEdge,
    /// An entry changes source addresses, and sends to the controller packets that come by a shared edge port (1.0).
    SourceToController,
    /// The ingress port (the value) is not the tenant's.
    InPort,

    /// The switch has given the buffer of a packet to another one while the request waited.
    BufferReused,
    /// The packet of a PACKET_OUT is outside the flowspace.
    ForeignPacket,
    /// The packet of a PACKET_OUT is a link probe of Weir's.
    WeirsProbe,
    /// LLDP outside the flowspace that is no link probe.
    NoProbe,
    /// A link probe outside the flowspace is to be changed.
    ProbeChanged,
    /// The packet of a PACKET_OUT is shorter than an Ethernet header (1.0).
    ShortPacket,
    /// A PACKET_OUT is too long with the actions that it needs on the switch.
    PacketTooLong,
    /// A packet for TABLE would be looked up in too many entries (1.0).
    LongTable,
    /// A packet for TABLE is not the tenant's in the tables.
    ForeignInTables,
    /// A changed packet for TABLE has come by no port.
    ChangedFromNowhere,
    /// A packet for TABLE has the source address of a host that is not at the port.
    ForeignSource,
    /// A packet for TABLE would enter by a port (the value) by which no packets come in at this switch.
    NoEntrance,
    /// No label is left by which packets of the controller could enter the tables (1.3).
    NoControllerLabel,
    /// Something else is to be done with a packet for TABLE (1.0).
    TableNotAlone,
    /// A packet for TABLE does not look like one that comes by its port (1.0).
    UnlikeItsPort,

    /// A push action has an Ethernet type (the value) of something else.
    PushType,
    /// A VLAN tag is to come from under an MPLS shim in a network.
    VlanUnderMpls,
    /// A frame with a VLAN tag is sent by a link where a frame has one tag.
    TagOnLink,
    /// A frame that came with a label gets a VLAN tag before the controller gets the frame (1.0).
    TagToController,
    /// PBB in a network.
    PbbInNetwork,
    /// ENQUEUE in a network (1.0).
    EnqueueInNetwork,
    /// The rules of one entry take too much memory.
    TooManyRules,

    /// An entry names a group (the value) twice.
    GroupTwice,
    /// An entry behind the first table applies what makes a switch recirculate packets.
    Recirculates,
    /// GOTO_TABLE leads to the same table or an earlier one (the value).
    GotoBack,
    /// GOTO_TABLE leads to a table (the value) that the tenant does not have.
    GotoNowhere,
    /// An action set that is merged with others sends to a group with instances by VLAN tag.
    SetToGroupByTag,

    /// The match is on bits of the metadata that are Weir's.
    WeirsMetadata,
    /// Another tenant's flowspace entry ranks higher for some of the packets (1.0).
    Contested,
    /// Two entries would be one rule on the switch.
    SameRule,
    /// The tenant has as many entries as its limit says.
    EntryLimit,
    /// The tenant has as many rules as its limit says.
    RuleLimit,
    /// The tenant has as many rules as its share of the table.
    RuleShare,
    /// One message would become too many rules.
    RulesAtOnce,

    /// The tenant has as many groups of a type as its share of the switch.
    GroupShare,
    /// A packet would pass too many buckets in a chain of groups.
    GroupPasses,
    /// The tenant's groups become too many on the switch.
    GroupInstances,
    /// The switch has refused an egress group.
    NoEgressGroup,
    /// A bucket watches a port that is not the tenant's.
    WatchedPort,
    /// The tenant has as many meters as its share of the switch.
    MeterShare,

    /// Other tenants use the port of a PORT_MOD.
    PortShared,
    /// A PORT_MOD asks for a configuration that cannot be enforced (1.0).
    PortConfig,
    /// A PORT_MOD of a virtual port advertises features (1.0).
    PortAdvertises,
    /// With a port configured so, an entry or a group could not stand.
    PortInUse,
}

impl Reason {
    /// The refusal with this error.
    pub const fn with(self, code: ErrorCode) -> Refused {
        self.of(0, code)
    }

    /// The same, about a number.
    pub const fn of(self, value: u32, code: ErrorCode) -> Refused {
        Refused { code, reason: self, value }
    }
}

/// The refusal of an output to a port that is not the tenant's.
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
    fn a_refusal_is_small() {
        assert!(size_of::<Result<(), Refused>>() <= 12);
    }
}
