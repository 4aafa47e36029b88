//! What a request is about, before Weir does what the request asks.

use super::flow_mod;
use crate::work::Examines;
use openflow::v13::{MessageType, MultipartType};

/// The name of a message type.
pub(crate) fn type_name(type_: u8) -> Option<&'static str> {
    MessageType(type_).name()
}

/// What Weir examines to do what a request of this type asks.
pub(crate) fn examines(type_: u8, body: &[u8]) -> Examines {
    const FLOW: [u8; 2] = MultipartType::FLOW.0.to_be_bytes();
    const AGGREGATE: [u8; 2] = MultipartType::AGGREGATE.0.to_be_bytes();
    const TABLE: [u8; 2] = MultipartType::TABLE.0.to_be_bytes();
    match MessageType(type_) {
        MessageType::FLOW_MOD => flow_mod::examines(body),
        // Entries that name the group or the meter.
        MessageType::GROUP_MOD | MessageType::METER_MOD => Examines::Every,
        MessageType::MULTIPART_REQUEST => match body.first_chunk() {
            Some(&FLOW | &AGGREGATE) => Examines::Told,
            Some(&TABLE) => Examines::Glance,
            _ => Examines::Nothing,
        },
        _ => Examines::Nothing,
    }
}
