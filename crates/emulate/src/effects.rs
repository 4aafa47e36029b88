//! The results of one step of the switch: the frames that it sends, and the events for controllers.

use crate::ports::Port;
use crate::table::{Flow, Removed};

/// A frame that the switch sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The egress port.
    pub port: u32,
    /// The queue of the egress port.
    pub queue: u32,
    /// The bytes, Ethernet header first.
    pub frame: Vec<u8>,
}

/// The results of one message, packet or tick.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The frames that the switch sent, in order.
    pub sent: Vec<Transmit>,
    /// The number of PACKET_INs, counted once for each session.
    pub packet_ins: u32,
    /// Whether the switch closes the controller's connection (a planted fault, or a failed HELLO).
    pub disconnect: bool,
}

/// The reason for a PACKET_IN (`OFPR_*` of 1.3). 1.0 has the first two reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketInReason {
    /// No entry matched, or the table-miss entry matched.
    NoMatch,
    /// An action sent the packet to the controller.
    Action,
    /// The TTL of the packet became invalid.
    InvalidTtl,
}

impl PacketInReason {
    /// The number of the reason on the wire.
    pub fn code(self) -> u8 {
        match self {
            PacketInReason::NoMatch => 0,
            PacketInReason::Action => 1,
            PacketInReason::InvalidTtl => 2,
        }
    }
}

/// A packet that the switch sends to the controllers.
#[derive(Clone, Debug)]
pub(crate) struct ToController {
    pub(crate) frame: Vec<u8>,
    pub(crate) in_port: u32,
    pub(crate) reason: PacketInReason,
    pub(crate) table: u8,
    pub(crate) cookie: u64,
    pub(crate) metadata: u64,
    pub(crate) tunnel: u64,
    /// The limit of the action, in bytes. `None` means a table miss, for which the `miss_send_len`
    /// of the session is the limit.
    pub(crate) max_len: Option<u16>,
    /// Whether the table has no table-miss entry. A session of 1.0 then gets a PACKET_IN, a session
    /// of 1.3 gets none.
    pub(crate) implicit_miss: bool,
}

/// An event that the switch reports to the controllers.
#[derive(Debug)]
pub(crate) enum Event {
    PacketIn(ToController),
    /// `at` is the time of the removal, ns.
    FlowRemoved {
        table: u8,
        flow: Flow,
        reason: Removed,
        at: u64,
    },
    PortStatus {
        reason: PortReason,
        port: Port,
    },
}

/// The reason of a PORT_STATUS (`OFPPR_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PortReason {
    Add,
    Delete,
    Modify,
}

impl PortReason {
    pub(crate) fn code(self) -> u8 {
        match self {
            PortReason::Add => 0,
            PortReason::Delete => 1,
            PortReason::Modify => 2,
        }
    }
}

/// The frames and events of one step.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    pub(crate) sent: Vec<Transmit>,
    pub(crate) events: Vec<Event>,
}
