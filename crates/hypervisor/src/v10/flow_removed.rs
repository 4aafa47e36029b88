//! FLOW_REMOVED: once for each of the tenant's entries, with the tenant's own match and cookie.

use super::unreadable;
use crate::cookie::Cookie;
use crate::flows::{Flow, Rule};
use crate::ids::TenantIndex;
use crate::south::installed::Owner;
use crate::switch::{Asynchronous, Expired, Switch};
use crate::tenant::Leaving;
use crate::time::Instant;
use alloc::vec::Vec;
use flowspace::Match;
use openflow::ErrorCode;
use openflow::v10::{self, FlowModFlags, FlowRemoved, FlowRemovedReason};

impl Switch {
    /// The switch has removed an entry.
    pub(crate) fn flow_removed_v10(&mut self, body: &[u8], now: Instant) -> Result<(), ErrorCode> {
        let removed = FlowRemoved::parse(body).map_err(unreadable)?;
        let by = self.settings.installation;
        let Some(cookie) = Cookie::from_wire(removed.cookie, by) else { return Ok(()) };
        let Some(tenant) = self.tenant_of(cookie.tenant) else { return Ok(()) };
        let owner = Owner { tenant, number: cookie.number };
        let match_ = Match::from_v10(&removed.match_);
        let key = self.rule_key(0, removed.priority, &match_);
        let is_it = |match_: &[u8]| *match_ == *key.match_wire;
        let counted = (removed.packet_count, removed.byte_count);
        let stood = (removed.duration_sec, removed.duration_nsec);
        let is_deleted = removed.reason == FlowRemovedReason::DELETE;
        let is_by_weir = is_deleted && self.is_deleted_by_weir(owner, &key, counted);
        if !is_deleted {
            self.session.installed_mut().expired(&key, owner);
        }
        let state = &mut self.tenants[tenant.0 as usize];
        if let Some(leaving) = state.leaving.get_mut(&cookie.number) {
            leaving.flow.count_past(counted);
            leaving.rules = leaving.rules.saturating_sub(1);
            if leaving.rules == 0
                && let Some(Leaving { flow, over, .. }) = state.leaving.remove(&cookie.number)
            {
                let (reason, (duration_sec, duration_nsec)) = match over {
                    Some(stood) => (FlowRemovedReason::HARD_TIMEOUT, stood),
                    None => (removed.reason, stood),
                };
                let last = FlowRemoved { reason, duration_sec, duration_nsec, ..removed };
                self.report_removed_v10(tenant, &flow, &last);
            }
            return Ok(());
        }
        let is_meant = |rule: &Rule| is_it(&rule.match_wire);
        if is_by_weir {
            return Ok(());
        }
        if is_deleted && self.comes_though_deleted(owner, &key, now) {
            if let Some(flow) = self.tenants[tenant.0 as usize].flows.get_mut(cookie.number) {
                flow.count_past(counted);
            }
            return Ok(());
        }
        let mut match_wire = Vec::with_capacity(v10::Match::LEN);
        removed.match_.write(&mut match_wire);
        let expired = Expired { match_wire: &match_wire, counted };
        let is_dealt_with = match removed.reason {
            FlowRemovedReason::IDLE_TIMEOUT => {
                self.revive_idle(tenant, cookie.number, expired, now)
            }
            FlowRemovedReason::HARD_TIMEOUT => self.end_over(tenant, cookie.number, expired, now),
            _ => false,
        };
        if is_dealt_with {
            return Ok(());
        }
        if !is_deleted
            && let Some(gone) =
                self.expire_during_changes(tenant, cookie.number, &key, counted, now)
        {
            if let Some(flow) = gone {
                self.report_removed_v10(tenant, &flow, &removed);
            }
            return Ok(());
        }
        let state = &mut self.tenants[tenant.0 as usize];
        let Some(flow) = state.flows.get_mut(cookie.number) else { return Ok(()) };
        let Some(rule) = flow.rules.iter().position(is_meant) else { return Ok(()) };
        let gone = flow.rules.remove(rule);
        flow.count_past(counted);
        let is_over = flow.rules.is_empty();
        state.flows.forget_rule(0, &gone);
        self.note_freed(tenant);
        if !is_over {
            return Ok(());
        }
        let (duration_sec, duration_nsec) = self.stood(tenant, cookie.number, now).unwrap_or(stood);
        if let Some(flow) = self.drop_flow(tenant, cookie.number) {
            let last = FlowRemoved { duration_sec, duration_nsec, ..removed };
            self.report_removed_v10(tenant, &flow, &last);
        }
        Ok(())
    }

    /// Tells the tenant, if it asked to be told, of the end of its entry.
    pub(crate) fn report_removed_v10(
        &mut self,
        tenant: TenantIndex,
        flow: &Flow,
        last: &FlowRemoved,
    ) {
        let lookups = &mut self.tenants[tenant.0 as usize].lookups;
        lookups.ended(0, None, flow.past_packets);
        if !FlowModFlags(flow.flags).contains(FlowModFlags::SEND_FLOW_REM) {
            return;
        }
        let removed = FlowRemoved {
            match_: v10::Match::parse(&flow.match_wire).unwrap_or_default(),
            cookie: flow.cookie,
            priority: flow.priority,
            idle_timeout: flow.idle_timeout,
            packet_count: flow.past_packets,
            byte_count: flow.past_bytes,
            ..*last
        };
        self.notify(tenant, Asynchronous::FlowRemoved(last.reason.0), |out| {
            removed.write_message(0, out)
        });
    }

    /// The end of an entry whose last counts the switch never told.
    pub(crate) fn report_lost_v10(&mut self, tenant: TenantIndex, flow: &Flow) {
        let last = without_counts(FlowRemovedReason::DELETE);
        self.report_removed_v10(tenant, flow, &last);
    }
}

/// A message that the switch never sent, or before.
pub(super) fn without_counts(reason: FlowRemovedReason) -> FlowRemoved {
    FlowRemoved {
        match_: v10::Match::ANY,
        cookie: 0,
        priority: 0,
        reason,
        duration_sec: 0,
        duration_nsec: 0,
        idle_timeout: 0,
        packet_count: 0,
        byte_count: 0,
    }
}
