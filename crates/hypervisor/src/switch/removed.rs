//! FLOW_REMOVED: the switch reports that a rule was removed, and the tenant gets one FLOW_REMOVED at the end of an
//! entry.
//!
//! OpenFlow 1.0 and 1.3 share this code; the versions differ only in how the message is read and written.

use super::{Gone, Object, Switch};
use crate::cookie::Cookie;
use crate::flows::Flow;
use crate::ids::TenantIndex;
use crate::messages;
use crate::north::controllers::Asynchronous;
use crate::south::installed::{Deleted, Owner, is_later};
use crate::south::reports::{Age, Removed, Timeout};
use crate::tally::Count;
use crate::time::Instant;
use compile::RuleKey;
use openflow::ErrorCode;

pub(super) const IDLE_TIMEOUT: u8 = Timeout::Idle as u8;
pub(super) const HARD_TIMEOUT: u8 = Timeout::Hard as u8;
pub(super) const DELETE: u8 = 2;
/// The rule was deleted with a group that it uses (1.3).
const GROUP_DELETE: u8 = 3;

impl Switch {
    /// The switch has removed a rule.
    pub(crate) fn flow_removed(&mut self, body: &[u8], now: Instant) -> Result<(), ErrorCode> {
        let removed = messages::removed(self.wire, body, self.target().first_table())?;
        self.rule_removed(&removed, now);
        Ok(())
    }

    fn rule_removed(&mut self, removed: &Removed, now: Instant) {
        let Removed { ref key, reason, counted, .. } = *removed;
        let cookie = Cookie::from_wire(removed.cookie, self.settings.installation);
        let Some(cookie) = cookie.filter(|cookie| !cookie.is_own()) else { return };
        let Some(tenant) = self.tenant_of(cookie.tenant) else { return };
        let number = cookie.number;
        let owner = Owner { tenant, number };
        let is_deleted = matches!(reason, DELETE | GROUP_DELETE);
        let is_by_weir = is_deleted && self.is_deleted_by_weir(owner, key, counted);
        let flow = self.tenants[tenant].flows.get(number);
        let is_stray = is_deleted && flow.is_none_or(|flow| flow.rule_at(key).is_none());
        if !is_by_weir && (is_stray || reason != DELETE) {
            self.session.installed_mut().expired(key, owner);
        }
        if self.tenants[tenant].timeouts.is_leaving(number) {
            self.rule_left(owner, removed, now);
            return;
        }
        // The report is about a rule that the entry, or an earlier entry with this number, had before.
        if is_by_weir {
            self.rule_left_before(tenant, number, removed);
        }
        if is_by_weir || is_stray {
            return;
        }
        let is_unsure = reason == DELETE
            && match self.session.installed_mut().deleted_by_others(key, owner) {
                Deleted::Gone => false,
                Deleted::Unsure => {
                    self.recover_rule(tenant, key, now);
                    true
                }
                Deleted::UnsureAgain => {
                    self.recover_and_evict(tenant, Object::Entry(number), now);
                    true
                }
            };
        let is_coming = reason == GROUP_DELETE && self.session.installed().is_coming(key, owner);
        if is_unsure || is_coming {
            if let Some(flow) = self.tenants[tenant].flows.get_mut(number) {
                flow.count_past(counted);
            }
            return;
        }
        let is_recovering = self.tenants[tenant].recovery.is_some();
        if is_recovering || self.is_changing(tenant, number) {
            let key = key.clone();
            let gone = Gone { number, key, reason, counted, stood: removed.stood };
            self.recover_from(tenant, gone, now);
            return;
        }
        let is_dealt_with = match reason {
            IDLE_TIMEOUT => self.revive_idle(owner, removed, now),
            HARD_TIMEOUT => self.end_over(owner, removed, now),
            _ => false,
        };
        if !is_dealt_with {
            self.lose_rule(owner, removed, now);
        }
    }

    /// The switch has removed a rule of an entry that ends.
    fn rule_left(&mut self, owner: Owner, removed: &Removed, now: Instant) {
        let timeouts = &mut self.tenants[owner.tenant].timeouts;
        if let Some(ended) = timeouts.rule_left(owner.number, removed) {
            self.report_after(owner.tenant, ended);
            self.tenants.keep_time(owner.tenant, owner.number, now);
        }
    }

    /// Whether the switch has deleted a rule of an entry because Weir has asked for it. If so, adds the rule's counters
    /// to the entry.
    fn is_deleted_by_weir(&mut self, owner: Owner, key: &RuleKey, counted: Count) -> bool {
        let Some(message) = self.session.installed_mut().deletion_reported(key, owner) else {
            return false;
        };
        let flow = self.tenants[owner.tenant].flows.get_mut(owner.number);
        if let Some(flow) = flow.filter(|flow| is_later(message, flow.counts_since)) {
            flow.count_past(counted);
        }
        true
    }

    /// A rule of an entry is no longer on the switch. If it was the last rule, the entry ends.
    fn lose_rule(&mut self, owner: Owner, removed: &Removed, now: Instant) {
        let Owner { tenant, number } = owner;
        let state = &mut self.tenants[tenant];
        let Some(flow) = state.flows.get_mut(number) else { return };
        flow.count_past(removed.counted);
        let at = flow.rules.iter().position(|rule| rule.match_wire == removed.key.match_wire);
        let Some(rule) = at.map(|at| flow.rules.remove(at)) else { return };
        let stood = if state.timeouts.is_apart(number) { flow.stood(now) } else { removed.stood };
        let (table, is_over) = (flow.table, flow.rules.is_empty());
        state.flows.forget_rule(table, &rule);
        self.tenants.note_freed(tenant);
        if is_over && let Some(flow) = self.drop_flow(tenant, number) {
            self.report_removed(tenant, &flow, removed.reason, stood);
        }
    }

    /// Sends the tenant a FLOW_REMOVED for its entry, if the tenant wants one.
    pub(crate) fn report_removed(
        &mut self,
        tenant: TenantIndex,
        flow: &Flow,
        reason: u8,
        stood: Age,
    ) {
        let wire = self.wire;
        let next = messages::next_table(wire, &flow.actions);
        let packets = &mut self.tenants[tenant].packets;
        packets.lookups_mut().ended(flow.table, next, flow.past.packets);
        if !flow.is_end_reported() {
            return;
        }
        self.notify(tenant, Asynchronous::FlowRemoved(reason), |out| {
            messages::write_removed(wire, flow, reason, stood, out)
        });
    }
}
