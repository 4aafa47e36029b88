//! FLOW_REMOVED: with the tenant's own match, table and cookie.

use super::unreadable;
use crate::flows::Flow;
use crate::switch::Switch;
use crate::switch::held::Removed;
use crate::time::Instant;
use alloc::vec::Vec;
use flowspace::Match as Space;
use openflow::v13::{FlowRemoved, FlowRemovedReason, Match};
use openflow::{ErrorCode, TooLong};

impl Switch {
    /// The switch has removed an entry.
    pub(crate) fn flow_removed_v13(&mut self, body: &[u8], now: Instant) -> Result<(), ErrorCode> {
        let removed = FlowRemoved::parse(body).map_err(unreadable)?;
        let match_ = Space::from_v13(&removed.match_).map_err(|error| error.error_code())?;
        let removed = Removed {
            cookie: removed.cookie,
            key: self.rule_key(removed.table_id, removed.priority, &match_),
            reason: removed.reason.0,
            counted: (removed.packet_count, removed.byte_count),
            stood: (removed.duration_sec, removed.duration_nsec),
        };
        self.rule_removed(&removed, now);
        Ok(())
    }
}

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
