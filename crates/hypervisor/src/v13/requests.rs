//! What a request concerns, before Weir carries out the request.

use super::unreadable;
use crate::parts::written;
use alloc::vec::Vec;
use openflow::ErrorCode;
use openflow::v13::{
    Experimenter, MessageType, PortNo, QueueGetConfigReply, QueueGetConfigRequest,
};

/// The name of a message type.
pub(crate) fn type_name(type_: u8) -> Option<&'static str> {
    MessageType(type_).name()
}

/// A message type in the numbering of 1.3.
pub(crate) fn type_in_v13(type_: u8) -> MessageType {
    MessageType(type_)
}

/// The experimenter id of an EXPERIMENTER message.
pub(crate) fn experimenter(body: &[u8]) -> Result<u32, ErrorCode> {
    Experimenter::parse(body).map(|it| it.experimenter).map_err(unreadable)
}

/// The port of a QUEUE_GET_CONFIG_REQUEST, or any port, and the first bytes of the reply.
pub(crate) fn queue_port(body: &[u8]) -> Result<(PortNo, [u8; 8]), ErrorCode> {
    let QueueGetConfigRequest { port } = QueueGetConfigRequest::parse(body).map_err(unreadable)?;
    let [a, b, c, d] = port.0.to_be_bytes();
    Ok((port, [a, b, c, d, 0, 0, 0, 0]))
}

/// The queues in a QUEUE_GET_CONFIG_REPLY: port, queue, and the queue's description.
pub(crate) fn queues(body: &[u8]) -> Result<Vec<(u32, u32, Vec<u8>)>, ErrorCode> {
    let reply = QueueGetConfigReply::parse(body).map_err(unreadable)?;
    Ok(reply.queues.iter().map(|it| (it.port.0, it.queue_id, written(&it))).collect())
}
