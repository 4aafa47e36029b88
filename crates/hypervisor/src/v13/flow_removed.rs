//! FLOW_REMOVED: with the tenant's own match, table and cookie.

use super::flow_mod::{next_table, owner_of};
use super::unreadable;
use crate::flows::{Flow, Rule};
use crate::ids::TenantIndex;
use crate::south::installed::Owner;
use crate::switch::{Asynchronous, Expired, Switch};
use crate::time::Instant;
use alloc::vec::Vec;
use flowspace::Match as Space;
use openflow::v13::{FlowModFlags, FlowRemoved, FlowRemovedReason, Match};
use openflow::{Encode, ErrorCode};

impl Switch {
    /// The switch has removed an entry.
    pub(crate) fn flow_removed_v13(&mut self, body: &[u8], now: Instant) -> Result<(), ErrorCode> {
        let removed = FlowRemoved::parse(body).map_err(unreadable)?;
        let by = self.settings.installation;
        let Some(cookie) = owner_of(removed.cookie, by) else { return Ok(()) };
        let Some(tenant) = self.tenant_of(cookie.tenant) else { return Ok(()) };
        let owner = Owner { tenant, number: cookie.number };
        let match_ = Space::from_v13(&removed.match_).map_err(|error| error.error_code())?;
        let key = self.rule_key(removed.table_id, removed.priority, &match_);
        let is_meant = |match_: &[u8]| *match_ == *key.match_wire;
        let is_deleted =
            matches!(removed.reason, FlowRemovedReason::DELETE | FlowRemovedReason::GROUP_DELETE);
        let is_by_weir = is_deleted && self.is_deleted_by_weir(owner, &key, counted(&removed));
        let state = &mut self.tenants[tenant.0 as usize];
        let stands = |flow: &Flow| flow.rules.iter().any(|rule| is_meant(&rule.match_wire));
        let is_stray = is_deleted && !state.flows.get(cookie.number).is_some_and(stands);
        if !is_by_weir && (is_stray || removed.reason != FlowRemovedReason::DELETE) {
            self.session.installed_mut().expired(&key, owner);
        }
        if let Some(leaving) = state.leaving.get_mut(&cookie.number) {
            leaving.rules = leaving.rules.saturating_sub(1);
            if leaving.rules > 0 {
                leaving.flow.count_past(counted(&removed));
            } else if let Some(leaving) = state.leaving.remove(&cookie.number) {
                let told = (removed.duration_sec, removed.duration_nsec);
                let (reason, (duration_sec, duration_nsec)) = match leaving.over {
                    Some(stood) => (FlowRemovedReason::HARD_TIMEOUT, stood),
                    None => (removed.reason, told),
                };
                let last = FlowRemoved { reason, duration_sec, duration_nsec, ..removed };
                self.report_removed_v13(tenant, &leaving.flow, &last);
            }
            return Ok(());
        }
        // A stray report is about what stood for the entry, or for one of its number, before.
        if is_by_weir || is_stray {
            return Ok(());
        }
        if removed.reason == FlowRemovedReason::GROUP_DELETE
            && self.brings_groups_back(tenant, cookie.number)
        {
            if let Some(flow) = self.tenants[tenant.0 as usize].flows.get_mut(cookie.number) {
                flow.rules.retain(|rule| !is_meant(&rule.match_wire));
                flow.count_past(counted(&removed));
            }
            return Ok(());
        }
        let is_coming = match removed.reason {
            // With a group that an earlier form of it has used.
            FlowRemovedReason::GROUP_DELETE => self.session.installed().is_coming(&key, owner),
            FlowRemovedReason::DELETE => self.comes_though_deleted(owner, &key, now),
            _ => false,
        };
        if is_coming {
            if let Some(flow) = self.tenants[tenant.0 as usize].flows.get_mut(cookie.number) {
                flow.count_past(counted(&removed));
            }
            return Ok(());
        }
        if self.expire_rule_v13(tenant, cookie.number, &removed, now) {
            return Ok(());
        }
        let timed_out = matches!(
            removed.reason,
            FlowRemovedReason::IDLE_TIMEOUT | FlowRemovedReason::HARD_TIMEOUT
        );
        let below = match timed_out {
            true => self.expire_during_changes(tenant, cookie.number, &key, (0, 0), now),
            false => None,
        };
        let told = (removed.duration_sec, removed.duration_nsec);
        let (duration_sec, duration_nsec) = self.stood(tenant, cookie.number, now).unwrap_or(told);
        if let Some(flow) = below.unwrap_or_else(|| self.drop_flow(tenant, cookie.number)) {
            let last = FlowRemoved { duration_sec, duration_nsec, ..removed };
            self.report_removed_v13(tenant, &flow, &last);
        }
        Ok(())
    }

    /// One of several rules of an entry is gone. Says whether the entry stays, at least for now: it is idle when all its rules
    /// are (`switch::idle`).
    fn expire_rule_v13(
        &mut self,
        tenant: TenantIndex,
        number: u32,
        removed: &FlowRemoved<'_>,
        now: Instant,
    ) -> bool {
        let wanted = Space::from_v13(&removed.match_).ok();
        let mut match_wire = Vec::new();
        Encode::write(&removed.match_, &mut match_wire);
        let expired = Expired { match_wire: &match_wire, counted: counted(removed) };
        let is_dealt_with = match removed.reason {
            FlowRemovedReason::IDLE_TIMEOUT => self.revive_idle(tenant, number, expired, now),
            FlowRemovedReason::HARD_TIMEOUT => self.end_over(tenant, number, expired, now),
            _ => false,
        };
        if is_dealt_with {
            return true;
        }
        let state = &mut self.tenants[tenant.0 as usize];
        let Some(flow) = state.flows.get_mut(number) else { return false };
        if flow.rules.len() < 2 {
            return false;
        }
        let is_meant = |rule: &Rule| super::read_match(&rule.match_wire) == wanted;
        let Some(at) = flow.rules.iter().position(is_meant) else { return true };
        flow.count_past(counted(removed));
        let (table, rule) = (flow.table, flow.rules.remove(at));
        state.flows.forget_rule(table, &rule);
        self.note_freed(tenant);
        true
    }

    pub(super) fn report_removed_v13(
        &mut self,
        tenant: TenantIndex,
        flow: &Flow,
        last: &FlowRemoved<'_>,
    ) {
        let packets = last.packet_count.saturating_add(flow.past_packets);
        let lookups = &mut self.tenants[tenant.0 as usize].lookups;
        lookups.ended(flow.table, next_table(&flow.actions), packets);
        if !FlowModFlags(flow.flags).contains(FlowModFlags::SEND_FLOW_REM) {
            return;
        }
        let removed = FlowRemoved {
            match_: Match::parse(&flow.match_wire).unwrap_or(Match::ANY),
            cookie: flow.cookie,
            priority: flow.priority,
            table_id: flow.table,
            idle_timeout: flow.idle_timeout,
            hard_timeout: flow.hard_timeout,
            packet_count: packets,
            byte_count: last.byte_count.saturating_add(flow.past_bytes),
            ..*last
        };
        self.notify(tenant, Asynchronous::FlowRemoved(last.reason.0), |out| {
            removed.write_message(0, out)
        });
    }

    /// The end of an entry whose last counts the switch never told.
    pub(crate) fn report_lost_v13(&mut self, tenant: TenantIndex, flow: &Flow) {
        let last = without_counts(FlowRemovedReason::DELETE);
        self.report_removed_v13(tenant, flow, &last);
    }
}

/// A message that the switch never sent, or before.
pub(super) fn without_counts(reason: FlowRemovedReason) -> FlowRemoved<'static> {
    FlowRemoved {
        cookie: 0,
        priority: 0,
        reason,
        table_id: 0,
        duration_sec: 0,
        duration_nsec: 0,
        idle_timeout: 0,
        hard_timeout: 0,
        packet_count: 0,
        byte_count: 0,
        match_: Match::ANY,
    }
}

/// Packets and bytes.
fn counted(removed: &FlowRemoved<'_>) -> (u64, u64) {
    (removed.packet_count, removed.byte_count)
}
