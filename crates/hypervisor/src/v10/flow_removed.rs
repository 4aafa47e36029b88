//! FLOW_REMOVED: once for each of the tenant's entries, with the tenant's own match and cookie.

use super::unreadable;
use crate::flows::Flow;
use crate::switch::Switch;
use crate::switch::held::Removed;
use crate::time::Instant;
use alloc::vec::Vec;
use flowspace::Match;
use openflow::v10::{self, FlowRemoved, FlowRemovedReason};
use openflow::{ErrorCode, TooLong};

impl Switch {
    /// The switch has removed an entry.
    pub(crate) fn flow_removed_v10(&mut self, body: &[u8], now: Instant) -> Result<(), ErrorCode> {
        let removed = FlowRemoved::parse(body).map_err(unreadable)?;
        let match_ = Match::from_v10(&removed.match_);
        let removed = Removed {
            cookie: removed.cookie,
            key: self.rule_key(0, removed.priority, &match_),
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
        match_: v10::Match::parse(&flow.match_wire).unwrap_or_default(),
        cookie: flow.cookie,
        priority: flow.priority,
        reason: FlowRemovedReason(reason),
        duration_sec,
        duration_nsec,
        idle_timeout: flow.idle_timeout,
        packet_count: flow.past_packets,
        byte_count: flow.past_bytes,
    }
    .write_message(0, out)
}
