//! What a switch says, in words of no version.

use openflow::{DecodeError, Version, v10, v13};

/// A message of the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// A packet for the controller.
    PacketIn {
        /// The frame, perhaps cut.
        data: &'a [u8],
        /// Its full length.
        length: u16,
    },
    /// A flow entry is gone.
    FlowRemoved {
        /// The entry's cookie.
        cookie: u64,
        /// Its priority.
        priority: u16,
    },
    /// The answer to ECHO_REQUEST.
    EchoReply,
    /// The switch asks whether we live.
    EchoRequest(&'a [u8]),
    /// All before the BARRIER_REQUEST is done, says the switch.
    BarrierReply,
    /// A port came, went or changed.
    PortStatus {
        /// Its number.
        port: u32,
        /// Whether it can carry packets now.
        up: bool,
    },
    /// Part of an answer with one item per flow entry.
    FlowStatistics {
        /// Entries in this part.
        entries: usize,
        /// Whether more parts follow.
        more: bool,
    },
    /// The own entries summed up.
    AggregateStatistics {
        /// How many there are.
        flows: u32,
        /// Packets that they matched.
        packets: u64,
    },
    /// The queues of a port.
    Queues(Queues<'a>),
    /// What queues have sent, summed up.
    QueueStatistics {
        /// Packets.
        packets: u64,
    },
    /// Something that we sent was refused.
    Error {
        /// `type` and `code` of the error message.
        code: (u16, u16),
    },
    /// Anything else.
    Other {
        /// The message type.
        type_: u8,
    },
}

/// The queues of a port, as its version lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queues<'a> {
    /// In 1.0.
    V1_0(v10::QueueGetConfigReply<'a>),
    /// In 1.3.
    V1_3(v13::QueueGetConfigReply<'a>),
}

impl Queues<'_> {
    /// Their ids.
    pub fn ids(&self) -> Vec<u32> {
        match self {
            Queues::V1_0(reply) => reply.queues.iter().map(|queue| queue.queue_id).collect(),
            Queues::V1_3(reply) => reply.queues.iter().map(|queue| queue.queue_id).collect(),
        }
    }
}

impl<'a> Message<'a> {
    /// Reads a whole frame: its transaction id, and what it says.
    ///
    /// # Errors
    /// It is not a well-formed message of 1.0 or 1.3.
    pub fn parse(frame: &'a [u8]) -> Result<(u32, Message<'a>), DecodeError> {
        match openflow::frame::version(frame) {
            Some(Version::V1_0) => {
                let (header, message) = v10::Message::parse(frame)?;
                Ok((header.xid, from_v10(message)))
            }
            _ => {
                let (header, message) = v13::Message::parse(frame)?;
                Ok((header.xid, from_v13(message)))
            }
        }
    }
}

fn from_v10(message: v10::Message<'_>) -> Message<'_> {
    use v10::{PortState, StatsReplyBody as Body};
    match message {
        v10::Message::PacketIn(it) => Message::PacketIn { data: it.data, length: it.total_len },
        v10::Message::FlowRemoved(it) => {
            Message::FlowRemoved { cookie: it.cookie, priority: it.priority }
        }
        v10::Message::EchoReply(_) => Message::EchoReply,
        v10::Message::EchoRequest(bytes) => Message::EchoRequest(bytes),
        v10::Message::BarrierReply => Message::BarrierReply,
        v10::Message::PortStatus(it) => Message::PortStatus {
            port: it.desc.port_no.0.into(),
            up: it.reason != v10::PortReason::DELETE
                && !it.desc.state.contains(PortState::LINK_DOWN)
                && !it.desc.config.contains(v10::PortConfig::PORT_DOWN),
        },
        v10::Message::StatsReply(reply) => match reply.body {
            Body::Flow(list) => Message::FlowStatistics {
                entries: list.iter().count(),
                more: reply.flags.contains(v10::StatsFlags::REPLY_MORE),
            },
            Body::Aggregate(sum) => {
                Message::AggregateStatistics { flows: sum.flow_count, packets: sum.packet_count }
            }
            Body::Queue(list) => Message::QueueStatistics {
                packets: list.iter().fold(0, |sum, queue| sum.wrapping_add(queue.tx_packets)),
            },
            _ => Message::Other { type_: v10::MessageType::STATS_REPLY.0 },
        },
        v10::Message::QueueGetConfigReply(reply) => Message::Queues(Queues::V1_0(reply)),
        v10::Message::Error(error) => Message::Error { code: (error.code.type_, error.code.code) },
        other => Message::Other { type_: other.type_().0 },
    }
}

fn from_v13(message: v13::Message<'_>) -> Message<'_> {
    use v13::{MultipartReplyBody as Body, PortState};
    match message {
        v13::Message::PacketIn(it) => Message::PacketIn { data: it.data, length: it.total_len },
        v13::Message::FlowRemoved(it) => {
            Message::FlowRemoved { cookie: it.cookie, priority: it.priority }
        }
        v13::Message::EchoReply(_) => Message::EchoReply,
        v13::Message::EchoRequest(bytes) => Message::EchoRequest(bytes),
        v13::Message::BarrierReply => Message::BarrierReply,
        v13::Message::PortStatus(it) => Message::PortStatus {
            port: it.desc.port_no.0,
            up: it.reason != v13::PortReason::DELETE
                && !it.desc.state.contains(PortState::LINK_DOWN)
                && !it.desc.config.contains(v13::PortConfig::PORT_DOWN),
        },
        v13::Message::MultipartReply(reply) => match reply.body {
            Body::Flow(list) => Message::FlowStatistics {
                entries: list.iter().count(),
                more: reply.flags.contains(v13::MultipartFlags::MORE),
            },
            Body::Aggregate(sum) => {
                Message::AggregateStatistics { flows: sum.flow_count, packets: sum.packet_count }
            }
            Body::Queue(list) => Message::QueueStatistics {
                packets: list.iter().fold(0, |sum, queue| sum.wrapping_add(queue.tx_packets)),
            },
            _ => Message::Other { type_: v13::MessageType::MULTIPART_REPLY.0 },
        },
        v13::Message::QueueGetConfigReply(reply) => Message::Queues(Queues::V1_3(reply)),
        v13::Message::Error(error) => Message::Error { code: (error.code.type_, error.code.code) },
        other => Message::Other { type_: other.type_().0 },
    }
}
