//! Messages of a switch, independent of the OpenFlow version.

use openflow::{DecodeError, Version, v10, v13};

/// A message of the switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// A PACKET_IN.
    PacketIn {
        /// The frame, or its first bytes.
        data: &'a [u8],
    },
    /// A FLOW_REMOVED.
    FlowRemoved {
        /// The cookie of the entry.
        cookie: u64,
        /// The priority of the entry.
        priority: u16,
    },
    /// The reply to an ECHO_REQUEST.
    EchoReply,
    /// The switch checks that the controller is alive.
    EchoRequest(&'a [u8]),
    /// The switch states that all messages before the BARRIER_REQUEST are done.
    BarrierReply,
    /// A port was added, removed or changed.
    PortStatus {
        /// The number of the port.
        port: u32,
        /// Whether the port can carry packets now.
        up: bool,
    },
    /// A part of a reply with one item per flow entry.
    FlowStatistics {
        /// The number of entries in this part.
        entries: usize,
        /// Whether more parts follow.
        more: bool,
    },
    /// Aggregate statistics of the experiment's own entries.
    AggregateStatistics {
        /// The number of entries.
        flows: u32,
    },
    /// The ids of a port's queues.
    Queues(Vec<u32>),
    /// The sum of queue statistics.
    QueueStatistics {
        /// The number of sent packets.
        packets: u64,
    },
    /// The switch refused a request.
    Error {
        /// `type` and `code` of the error message.
        code: (u16, u16),
    },
    /// Any other message.
    Other {
        /// The message type.
        type_: u8,
    },
}

impl<'a> Message<'a> {
    /// Parses a complete frame into its transaction id and its message.
    ///
    /// # Errors
    /// The frame is not a well-formed message of 1.0 or 1.3.
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
        v10::Message::PacketIn(it) => Message::PacketIn { data: it.data },
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
            Body::Aggregate(sum) => Message::AggregateStatistics { flows: sum.flow_count },
            Body::Queue(list) => Message::QueueStatistics {
                packets: list.iter().fold(0, |sum, queue| sum.wrapping_add(queue.tx_packets)),
            },
            _ => Message::Other { type_: v10::MessageType::STATS_REPLY.0 },
        },
        v10::Message::QueueGetConfigReply(reply) => {
            Message::Queues(reply.queues.iter().map(|queue| queue.queue_id).collect())
        }
        v10::Message::Error(error) => Message::Error { code: (error.code.type_, error.code.code) },
        other => Message::Other { type_: other.type_().0 },
    }
}

fn from_v13(message: v13::Message<'_>) -> Message<'_> {
    use v13::{MultipartReplyBody as Body, PortState};
    match message {
        v13::Message::PacketIn(it) => Message::PacketIn { data: it.data },
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
            Body::Aggregate(sum) => Message::AggregateStatistics { flows: sum.flow_count },
            Body::Queue(list) => Message::QueueStatistics {
                packets: list.iter().fold(0, |sum, queue| sum.wrapping_add(queue.tx_packets)),
            },
            _ => Message::Other { type_: v13::MessageType::MULTIPART_REPLY.0 },
        },
        v13::Message::QueueGetConfigReply(reply) => {
            Message::Queues(reply.queues.iter().map(|queue| queue.queue_id).collect())
        }
        v13::Message::Error(error) => Message::Error { code: (error.code.type_, error.code.code) },
        other => Message::Other { type_: other.type_().0 },
    }
}
