//! The FLOW_REMOVED that a tenant gets.

use crate::flows::Flow;
use alloc::vec::Vec;
use openflow::TooLong;
use openflow::v13::{FlowRemoved, FlowRemovedReason, Match};

/// Appends the report to a tenant that its entry has ended.
pub(crate) fn write(
    flow: &Flow,
    reason: u8,
    (duration_sec, duration_nsec): (u32, u32),
    out: &mut Vec<u8>,
) -> Result<(), TooLong> {
    FlowRemoved {
        match_: Match::parse(&flow.match_wire).unwrap_or(Match::ANY),
        cookie: flow.cookie,
        priority: flow.priority,
        reason: FlowRemovedReason(reason),
        table_id: flow.table,
        duration_sec,
        duration_nsec,
        idle_timeout: flow.idle_timeout,
        hard_timeout: flow.hard_timeout,
        packet_count: flow.past_packets,
        byte_count: flow.past_bytes,
    }
    .write_message(0, out)
}
