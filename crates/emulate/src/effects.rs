//! What a step of the switch causes outside of the datapath: frames sent, and news for controllers.

use crate::ports::Port;
use crate::table::{Flow, Removed};

/// A frame that left the switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Through which port.
    pub port: u32,
    /// Through which of its queues.
    pub queue: u32,
    /// The bytes, Ethernet header first.
    pub frame: Vec<u8>,
}

/// What happened because of one message, packet or tick.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The frames that left, in order.
    pub sent: Vec<Transmit>,
    /// How many times the packet was handed to the controllers' sessions.
    pub packet_ins: u32,
    /// Whether the switch cuts the controller's connection (a planted fault, or a failed HELLO).
    pub disconnect: bool,
}

/// Why a packet goes to the controller (1.3's `OFPR_*`; 1.0 has the first two).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketInReason {
    /// No entry matched, or the table-miss entry did.
    NoMatch,
    /// An action said so.
    Action,
    /// The TTL ran out.
    InvalidTtl,
}

impl PacketInReason {
    /// The number on the wire.
    pub fn code(self) -> u8 {
        match self {
            PacketInReason::NoMatch => 0,
            PacketInReason::Action => 1,
            PacketInReason::InvalidTtl => 2,
        }
    }
}

/// A packet on its way to the controllers.
#[derive(Clone, Debug)]
pub(crate) struct ToController {
    pub(crate) frame: Vec<u8>,
    pub(crate) in_port: u32,
    pub(crate) reason: PacketInReason,
    pub(crate) table: u8,
    pub(crate) cookie: u64,
    pub(crate) metadata: u64,
    pub(crate) tunnel: u64,
    /// The action's limit; `None` for a table miss, where the session's `miss_send_len` holds.
    pub(crate) max_len: Option<u16>,
    /// A miss without a table-miss entry: 1.0 tells the controller, 1.3 drops.
    pub(crate) implicit_miss: bool,
}

/// News for the controllers.
#[derive(Debug)]
pub(crate) enum Event {
    PacketIn(ToController),
    /// `at` is when, ns.
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

/// What changed about a port (`OFPPR_*`).
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

/// Frames sent and news, collected during one step.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    pub(crate) sent: Vec<Transmit>,
    pub(crate) events: Vec<Event>,
}
