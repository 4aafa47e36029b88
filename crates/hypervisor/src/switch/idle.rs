//! Entries that are several on the switch: such an entry is idle when all its rules are.
//!
//! A rule that is idle by itself is installed again at once, in the tenant's turn. Like any that comes later than the entry,
//! it gets what is left of the entry's hard timeout; when that is over for one, the entry ends. When each has been idle, the
//! switch is asked whether any has counted a packet since: if none has, the entry has been idle as long as the last of them, and
//! ends. On 1.3 that is one question. On 1.0, which does not know of cookies in questions, it is one for each rule, of which few
//! are on their way at a time; the first rule that has been used ends the asking, until that one is idle in its turn.
//!
//! An entry that is one on the switch is left to the switch. What is known here is not stored: after a restart an entry
//! has stood as long as the switch says of the oldest rule.

use super::tenant::Answer;
use super::{Cause, Switch, in_turn};
use crate::cookie::Cookie;
use crate::flows::{Flow, Rule};
use crate::ids::TenantIndex;
use crate::messages;
use crate::south::diff::Change;
use crate::south::held::{Removed, Timeout};
use crate::south::installed::Owner;
use crate::south::pending::Awaits;
use crate::south::queue::{Class, Item, Question};
use crate::time::Instant;
use openflow::NO_BUFFER;

impl Switch {
    /// A rule has been idle. Says whether the entry, which has others, lives on for now, with this one.
    pub(crate) fn revive_idle(&mut self, owner: Owner, removed: &Removed, now: Instant) -> bool {
        let Owner { tenant, number } = owner;
        let state = &mut self.tenants[tenant.0 as usize];
        let flow = state.flows.get(number).filter(|flow| flow.rules.len() > 1);
        let Some(flow) = flow else { return false };
        let Some(rule) = flow.rule_at(&removed.key).cloned() else { return false };
        let terms = flow.without_rules();
        state.timeouts.watch(number);
        if terms.left(now).is_none() {
            return self.end_over(owner, removed, now);
        }
        let state = &mut self.tenants[tenant.0 as usize];
        if let Some(flow) = state.flows.get_mut(number) {
            flow.count_past(removed.counted);
        }
        self.revive(&in_turn(tenant, now), number, &terms, &rule);
        let state = &mut self.tenants[tenant.0 as usize];
        if let Some(flow) = state.flows.get(number) {
            state.timeouts.rule_unused(number, flow, &rule);
        }
        self.ask_whether_idle(tenant, number, &rule, now);
        true
    }

    /// The hard timeout is over for a rule. For others, which were installed later, it may be over some time later; the entry
    /// ends as one. Says whether it does: if none was, the switch ends all of them by itself.
    pub(crate) fn end_over(&mut self, owner: Owner, removed: &Removed, now: Instant) -> bool {
        let Owner { tenant, number } = owner;
        let state = &self.tenants[tenant.0 as usize];
        let flow = state.flows.get(number).filter(|flow| flow.rules.len() > 1);
        let rule = flow.and_then(|flow| flow.rule_at(&removed.key).cloned());
        let (Some(rule), Some(stood)) = (rule, self.stood(tenant, number, now)) else {
            return false;
        };
        let Some(mut flow) = self.drop_flow(tenant, number) else { return false };
        flow.count_past(removed.counted);
        flow.rules.retain(|it| it.match_wire != rule.match_wire);
        let cause = in_turn(tenant, now);
        for rule in &flow.rules {
            self.submit_rule(&cause, number, &flow, rule, Change::Delete, NO_BUFFER);
        }
        self.await_removal(&cause, number, flow);
        self.tenants[tenant.0 as usize].timeouts.set_over(number, stood);
        true
    }

    /// Whether a change of the entry is on its way. Should that go back, the entry would come back with it.
    pub(super) fn is_changing(&self, tenant: TenantIndex, number: u32) -> bool {
        self.changes_of(tenant).any(|change| change.changes(number))
    }

    /// How long an entry has stood of which rules have been installed later: seconds and nanoseconds.
    pub(crate) fn stood(
        &self,
        tenant: TenantIndex,
        number: u32,
        now: Instant,
    ) -> Option<(u32, u32)> {
        let state = &self.tenants[tenant.0 as usize];
        let flow = state.flows.get(number).filter(|_| state.timeouts.is_watched(number))?;
        Some(flow.stood(now))
    }

    /// A change adds an entry, also in the place of what it was: its time begins again.
    pub(crate) fn begin_again(&mut self, cause: &Cause, number: u32) {
        self.tenants[cause.tenant.0 as usize].timeouts.forget(number);
        if let Some(change) = cause.operation.and_then(|at| self.change_mut(at)) {
            change.begins = Some(number);
        }
    }

    /// The entry begins to count again: packets that its deleted rules have counted and not yet reported belong to the entry as it
    /// was before.
    pub(crate) fn reset_counters(&mut self, cause: &Cause, number: u32) {
        let last = self.session.installed().last_message();
        let change = cause.operation.and_then(|at| self.change_mut(at));
        let since = change.map_or(last, |it| *it.counts_since.get_or_insert(last));
        if let Some(flow) = self.tenants[cause.tenant.0 as usize].flows.get_mut(number) {
            flow.counts_since = since;
        }
    }

    /// A change that was accepted earlier is sent: the time of an entry that it adds begins now.
    pub(super) fn begin_time(&mut self, operation: u32, accepted: Instant, now: Instant) {
        let Some(change) = self.change_mut(operation) else { return };
        let Some(number) = change.begins else { return };
        change.at = now;
        let tenant = change.origin.tenant;
        let flow = self.tenants[tenant.0 as usize].flows.get_mut(number);
        if let Some(flow) = flow.filter(|flow| flow.installed == accepted) {
            flow.installed = now;
        }
    }

    /// Rules of an entry may have begun its hard timeout at different times.
    pub(super) fn keep_together(&mut self, tenant: TenantIndex, number: u32) {
        let state = &mut self.tenants[tenant.0 as usize];
        if state.flows.get(number).is_some_and(|flow| flow.hard_timeout > 0) {
            state.timeouts.watch(number);
        }
    }

    /// Asks of all rules but the last that was idle, if they may be, too.
    fn ask_whether_idle(&mut self, tenant: TenantIndex, number: u32, last: &Rule, now: Instant) {
        let state = &self.tenants[tenant.0 as usize];
        let may_be_idle = |flow: &&Flow| {
            state.timeouts.may_ask(number) && state.timeouts.may_be_idle(number, flow)
        };
        let Some(flow) = state.flows.get(number).filter(may_be_idle) else { return };
        let cookie = Cookie { tenant: state.id, number }.to_wire(self.settings.installation);
        let first_table = self.target().first_table();
        let unasked = messages::questions_of(self.wire, flow, last, cookie, first_table);
        self.tenants[tenant.0 as usize].timeouts.begin_round(number, unasked, now);
        self.go_on_asking(tenant, number, now);
    }

    fn go_on_asking(&mut self, tenant: TenantIndex, number: u32, now: Instant) {
        while let Some((question, begun)) =
            self.tenants[tenant.0 as usize].timeouts.next_question(number)
        {
            let awaits = Awaits::Idle(tenant, number, begun);
            self.ask_in_turn(tenant, question, awaits, now);
        }
    }

    /// Asks the switch for Weir itself, in the tenant's turn.
    pub(crate) fn ask_in_turn(
        &mut self,
        tenant: TenantIndex,
        question: Question,
        awaits: Awaits,
        now: Instant,
    ) {
        let item = Item {
            origin: None,
            awaits,
            operation: None,
            written: None,
            // The tenant's rate is for what it asks itself.
            class: Class::Other,
            cost: question.cost,
            share: question.cost,
            gate: 0,
            arrived: now,
        };
        self.submit(tenant, item, &question.message);
    }

    /// A part of the switch's answer to a question of the round that began then.
    pub(crate) fn idle_part(
        &mut self,
        (tenant, number, begun): (TenantIndex, u32, Instant),
        entries: &[u8],
        more: bool,
        now: Instant,
    ) {
        let wire = self.wire;
        let state = &mut self.tenants[tenant.0 as usize];
        let cookie = Cookie { tenant: state.id, number }.to_wire(self.settings.installation);
        if !state.timeouts.awaits(number, begun) {
            return;
        }
        let used = messages::used(wire, entries, cookie);
        let is_used =
            |bytes: &[u8]| messages::read_match(wire, bytes).is_some_and(|it| used.contains(&it));
        match state.timeouts.answered(number, (!used.is_empty()).then_some(is_used), more) {
            Answer::Nothing => {}
            Answer::GoOn => self.go_on_asking(tenant, number, now),
            Answer::Complete => {
                let flow = state.flows.get(number);
                if flow.is_some_and(|flow| state.timeouts.may_be_idle(number, flow)) {
                    self.end_idle(tenant, number, now);
                }
            }
        }
    }

    /// The switch does not answer: it is asked again when a rule has timed out the next time.
    pub(crate) fn idle_failed(&mut self, tenant: TenantIndex, number: u32, begun: Instant) {
        self.tenants[tenant.0 as usize].timeouts.abandon_round(number, begun);
    }

    fn end_idle(&mut self, tenant: TenantIndex, number: u32, now: Instant) {
        if self.is_changing(tenant, number) {
            // It is idle the next time, too.
            return;
        }
        self.end_timed_out(tenant, number, Timeout::Idle, now);
    }

    /// Ends an entry and tells its tenant why.
    pub(super) fn end_timed_out(
        &mut self,
        tenant: TenantIndex,
        number: u32,
        timeout: Timeout,
        now: Instant,
    ) {
        let Some(flow) = self.drop_flow(tenant, number) else { return };
        let cause = in_turn(tenant, now);
        for rule in &flow.rules {
            self.submit_rule(&cause, number, &flow, rule, Change::Delete, NO_BUFFER);
        }
        self.report_removed(tenant, &flow, timeout as u8, flow.stood(now));
    }
}
