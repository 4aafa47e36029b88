//! Error codes: the datapath speaks 1.3's; a 1.0 controller hears 1.0's.

use openflow::error::{v10, v13};
use openflow::{ErrorCode, Version};

/// The code for a peer of this version.
///
/// Types 0 to 2 mean the same in both versions as far as 1.0 has them. What only 1.3 can provoke
/// never reaches a 1.0 peer; should a code have no counterpart, it is a plain refusal.
pub(crate) fn for_version(code: ErrorCode, version: Version) -> ErrorCode {
    if version != Version::V1_0 {
        return code;
    }
    match code {
        v13::FLOW_MOD_FAILED_TABLE_FULL => v10::FLOW_MOD_FAILED_ALL_TABLES_FULL,
        v13::FLOW_MOD_FAILED_OVERLAP => v10::FLOW_MOD_FAILED_OVERLAP,
        v13::FLOW_MOD_FAILED_BAD_COMMAND => v10::FLOW_MOD_FAILED_BAD_COMMAND,
        v13::PORT_MOD_FAILED_BAD_PORT => v10::PORT_MOD_FAILED_BAD_PORT,
        v13::PORT_MOD_FAILED_BAD_HW_ADDR => v10::PORT_MOD_FAILED_BAD_HW_ADDR,
        v13::QUEUE_OP_FAILED_BAD_PORT => v10::QUEUE_OP_FAILED_BAD_PORT,
        v13::QUEUE_OP_FAILED_BAD_QUEUE => v10::QUEUE_OP_FAILED_BAD_QUEUE,
        ErrorCode { type_: 0..=2, code: 0..=8 } => code,
        _ => v10::BAD_REQUEST_EPERM,
    }
}
