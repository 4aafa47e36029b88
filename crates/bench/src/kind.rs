//! The kinds of messages that can be sent, and their limits.

use serde::{Deserialize, Serialize};

/// The most rules of one stream in one run: the numbers of rules have 16 bits, and a switch's table has a limited size.
pub(crate) const MOST_RULES: usize = 10_000;
/// The kind that this module measures.
pub(crate) const PROBED: Kind = Kind::FlowModPacket;

/// Stream numbers take 11 bits of a request's xid.
pub const MAX_STREAMS: usize = 2046;

/// The kinds of messages that can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// PACKET_IN from the switch, until the controller has the PACKET_IN.
    PacketIn,
    /// PACKET_OUT from the controller, until the packet is at the data plane.
    PacketOut,
    /// ECHO_REQUEST to ECHO_REPLY.
    Echo,
    /// FEATURES_REQUEST to FEATURES_REPLY.
    Features,
    /// Statistics of all ports, from the request to the last part of the reply.
    PortStats,
    /// Statistics of all flows, from the request to the last part of the reply.
    FlowStats,
    /// BARRIER_REQUEST to BARRIER_REPLY.
    Barrier,
    /// FLOW_MOD with a BARRIER_REQUEST after the FLOW_MOD, to the BARRIER_REPLY.
    FlowMod,
    /// ROLE_REQUEST (no change) to ROLE_REPLY; 1.3 only.
    Role,
    /// PACKET_IN to the controller's PACKET_OUT or FLOW_MOD for this PACKET_IN, whichever comes first. cbench measures
    /// the same, but here the answer is matched by buffer id or tag.
    Response,
    /// A PACKET_IN that ends in the middle of its fields; no answer is expected.
    Malformed,
    /// FLOW_MOD that adds or deletes a rule for one sender and one receiver, with a BARRIER_REQUEST behind it, to the
    /// BARRIER_REPLY: every message changes the table.
    FlowChange,
    /// FLOW_MOD, to the first packet that its rule forwards. This kind measures the data plane of the switch, not the
    /// switch's answers.
    FlowModPacket,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 13] = [
        Self::PacketIn,
        Self::PacketOut,
        Self::Echo,
        Self::Features,
        Self::PortStats,
        Self::FlowStats,
        Self::Barrier,
        Self::FlowMod,
        Self::Role,
        Self::Response,
        Self::Malformed,
        Self::FlowChange,
        Self::FlowModPacket,
    ];

    /// The name in OpenFlow's spelling.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PacketIn => "PACKET_IN",
            Self::PacketOut => "PACKET_OUT",
            Self::Echo => "ECHO",
            Self::Features => "FEATURES",
            Self::PortStats => "PORT_STATS",
            Self::FlowStats => "FLOW_STATS",
            Self::Barrier => "BARRIER",
            Self::FlowMod => "FLOW_MOD",
            Self::Role => "ROLE",
            Self::Response => "RESPONSE",
            Self::Malformed => "MALFORMED",
            Self::FlowChange => "FLOW_CHANGE",
            Self::FlowModPacket => "FLOW_MOD_PACKET",
        }
    }

    /// Whether the switch sends messages of this kind, not the controller.
    #[must_use]
    pub const fn from_switch(self) -> bool {
        matches!(self, Self::PacketIn | Self::Response | Self::Malformed)
    }

    /// Whether messages of this kind have a reply, which gives the latency.
    #[must_use]
    pub const fn has_reply(self) -> bool {
        !matches!(self, Self::PacketIn | Self::PacketOut | Self::Malformed | Self::FlowModPacket)
    }
}

impl std::str::FromStr for Kind {
    type Err = String;

    /// Reads any [`Kind::name`], in upper or lower case, with `-` or `_`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = text.to_ascii_uppercase().replace('-', "_");
        Self::ALL.into_iter().find(|kind| kind.name() == wanted).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|kind| kind.name()).collect();
            format!("{text} is no message kind: must be one of {}", names.join(", "))
        })
    }
}
