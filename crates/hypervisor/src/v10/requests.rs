//! What a request concerns, before Weir carries out the request.

use super::unreadable;
use crate::parts::written;
use alloc::vec::Vec;
use flowspace::port_from_v10;
use openflow::error::v10 as code;
use openflow::v10::{MessageType, PortNo, QueueGetConfigReply, QueueGetConfigRequest, Vendor};
use openflow::{ErrorCode, v13};

/// The name of a message type.
pub(crate) fn type_name(type_: u8) -> Option<&'static str> {
    MessageType(type_).name()
}

/// A message type in the numbering of 1.3. Up to FLOW_MOD the numbers are the same.
pub(crate) fn type_in_v13(type_: u8) -> v13::MessageType {
    match MessageType(type_) {
        MessageType(0..=14) => v13::MessageType(type_),
        MessageType::PORT_MOD => v13::MessageType::PORT_MOD,
        MessageType::STATS_REQUEST => v13::MessageType::MULTIPART_REQUEST,
        MessageType::STATS_REPLY => v13::MessageType::MULTIPART_REPLY,
        MessageType::BARRIER_REQUEST => v13::MessageType::BARRIER_REQUEST,
        MessageType::BARRIER_REPLY => v13::MessageType::BARRIER_REPLY,
        MessageType::QUEUE_GET_CONFIG_REQUEST => v13::MessageType::QUEUE_GET_CONFIG_REQUEST,
        MessageType::QUEUE_GET_CONFIG_REPLY => v13::MessageType::QUEUE_GET_CONFIG_REPLY,
        _ => v13::MessageType(u8::MAX),
    }
}

/// The vendor id of a VENDOR message.
pub(crate) fn experimenter(body: &[u8]) -> Result<u32, ErrorCode> {
    Vendor::parse(body).map(|it| it.vendor).map_err(unreadable)
}

/// The port of a QUEUE_GET_CONFIG_REQUEST, which is a physical port, and the first bytes of the reply.
pub(crate) fn queue_port(body: &[u8]) -> Result<(v13::PortNo, [u8; 8]), ErrorCode> {
    let QueueGetConfigRequest { port } = QueueGetConfigRequest::parse(body).map_err(unreadable)?;
    if port == PortNo::NONE {
        return Err(code::QUEUE_OP_FAILED_BAD_PORT);
    }
    let [a, b] = port.0.to_be_bytes();
    Ok((v13::PortNo(port_from_v10(port.0)), [a, b, 0, 0, 0, 0, 0, 0]))
}

/// The queues in a QUEUE_GET_CONFIG_REPLY: port, queue, and the queue's description.
pub(crate) fn queues(body: &[u8]) -> Result<Vec<(u32, u32, Vec<u8>)>, ErrorCode> {
    let reply = QueueGetConfigReply::parse(body).map_err(unreadable)?;
    let port = port_from_v10(reply.port.0);
    Ok(reply.queues.iter().map(|it| (port, it.queue_id, written(&it))).collect())
}
