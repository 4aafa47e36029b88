//! Translates the error codes of 1.3, which the datapath uses, to codes of 1.0.

use openflow::error::{v10, v13};
use openflow::{ErrorCode, Version};

/// Returns the error code for a peer of this version.
///
/// Codes of the types 0 to 2 that 1.0 has mean the same in both versions. Errors that only a
/// message of 1.3 can cause never reach a 1.0 peer. A code without a counterpart in 1.0 becomes
/// `OFPBRC_EPERM`.
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
