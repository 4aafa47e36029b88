//! Entries with several rules on the switch: such an entry is idle when all its rules are idle.
//!
//! Weir installs a rule that has timed out as idle again at once, in the tenant's turn. A rule that Weir installs later
//! than the entry gets the rest of the entry's hard time-out. When the hard time-out is over for one rule, the entry
//! ends. When each rule has timed out as idle once, a *round* begins: Weir asks the switch whether a rule has counted a
//! packet since Weir installed the rule again. If no rule has, the whole entry has been idle for its idle time-out, and
//! Weir ends the entry. On 1.3 a round is one question with the entry's cookie. On 1.0 a question cannot name a cookie,
//! so Weir asks one question for each rule, a few at a time. If an answer shows that a rule has counted packets, the
//! round ends; the next round begins when this rule has timed out as idle again.

use crate::flows::Rule;
use crate::ids::TenantIndex;
use crate::messages;
use crate::south::diff::Change;
use crate::south::installed::Owner;
use crate::south::pending::Awaits;
use crate::south::queue::{Item, Question};
use crate::south::reports::{Removed, Timeout};
use crate::switch::{Object, Switch, in_turn};
use crate::time::Instant;
use openflow::NO_BUFFER;

impl Switch {
    /// A rule has been idle. Returns whether its entry, which has other rules, stays for now; then Weir installs the
    /// rule again.
    pub(crate) fn revive_idle(&mut self, owner: Owner, removed: &Removed, now: Instant) -> bool {
        let Owner { tenant, number } = owner;
        let Some(rule) = self.one_of_several(owner, removed) else { return false };
        let state = &mut self.tenants[tenant];
        state.timeouts.set_apart(number);
        let Some(flow) = state.flows.get_mut(number) else { return false };
        if flow.left(now).is_none() {
            return self.end_over(owner, removed, now);
        }
        flow.count_past(removed.counted);
        let terms = flow.without_rules();
        let cause = self.begin_repair(&in_turn(tenant, now), Object::Entry(number));
        self.submit_rule(&cause, number, &terms, &rule, Change::Add, NO_BUFFER);
        let (cookie, first_table) = (self.cookie_of(tenant, number), self.target().first_table());
        let state = &mut self.tenants[tenant];
        if let (Some(flow), Some(apart)) = (state.flows.get(number), state.timeouts.apart(number))
            && apart.rule_unused(flow, &rule)
        {
            // All rules except the one that has just been idle may have counted packets.
            let unasked = messages::questions_of(self.wire, flow, &rule, cookie, first_table);
            apart.begin_round(unasked, now);
            self.go_on_asking(tenant, number, now);
        }
        true
    }

    /// The hard time-out is over for a rule. It may end later for rules that were installed later, but the entry ends
    /// as a whole. Returns whether Weir ends the entry: if no rule was installed later, the switch ends all rules by
    /// itself.
    pub(crate) fn end_over(&mut self, owner: Owner, removed: &Removed, now: Instant) -> bool {
        let Owner { tenant, number } = owner;
        if !self.tenants[tenant].timeouts.is_apart(number) {
            return false;
        }
        let Some(rule) = self.one_of_several(owner, removed) else { return false };
        let Some(mut flow) = self.drop_flow(tenant, number) else { return false };
        flow.count_past(removed.counted);
        flow.rules.retain(|it| it.match_wire != rule.match_wire);
        let cause = in_turn(tenant, now);
        self.delete_rules(&cause, number, &flow);
        let stood = flow.stood(now);
        self.await_counts(&cause, number, flow, Some(stood));
        true
    }

    /// The rule that has gone, if the entry has others.
    fn one_of_several(&self, owner: Owner, removed: &Removed) -> Option<Rule> {
        let flow = self.tenants[owner.tenant].flows.get(owner.number)?;
        flow.rule_at(&removed.key).filter(|_| flow.rules.len() > 1).cloned()
    }

    fn go_on_asking(&mut self, tenant: TenantIndex, number: u32, now: Instant) {
        let next =
            |switch: &mut Switch| switch.tenants[tenant].timeouts.apart(number)?.next_question();
        while let Some((question, begun)) = next(self) {
            self.ask_in_turn(tenant, question, Awaits::Idle(tenant, number, begun), now);
        }
    }

    /// Sends a question of Weir's own to the switch, in the tenant's turn.
    pub(crate) fn ask_in_turn(
        &mut self,
        tenant: TenantIndex,
        question: Question,
        awaits: Awaits,
        now: Instant,
    ) {
        // The tenant's rate limits the tenant's own questions only.
        self.submit(tenant, Item::new(awaits, question.cost, now), &question.message);
    }

    /// A part of the switch's answer to a question of the round that began then.
    pub(crate) fn idle_part(
        &mut self,
        entry: Owner,
        begun: Instant,
        entries: &[u8],
        more: bool,
        now: Instant,
    ) {
        let Owner { tenant, number } = entry;
        let (wire, cookie) = (self.wire, self.cookie_of(tenant, number));
        let state = &mut self.tenants[tenant];
        let apart = state.timeouts.apart(number).filter(|apart| apart.awaits(begun));
        let (Some(apart), Some(flow)) = (apart, state.flows.get(number)) else { return };
        let used = messages::used(wire, entries, cookie);
        let is_used =
            |bytes: &[u8]| messages::read_match(wire, bytes).is_some_and(|it| used.contains(&it));
        if !used.is_empty() && apart.rules_used(is_used) || more {
            return;
        }
        if !apart.answered() {
            self.go_on_asking(tenant, number, now);
        } else if apart.may_be_idle(flow) && !self.is_changing(tenant, number) {
            // An entry that is changing stays: the next idle time-out starts another round.
            self.end_timed_out(tenant, number, Timeout::Idle, now);
        }
    }

    /// The switch does not answer. Weir asks again when a rule has timed out the next time.
    pub(crate) fn idle_failed(&mut self, tenant: TenantIndex, number: u32, begun: Instant) {
        let apart = self.tenants[tenant].timeouts.apart(number);
        if let Some(apart) = apart.filter(|apart| apart.awaits(begun)) {
            apart.end_round();
        }
    }
}
