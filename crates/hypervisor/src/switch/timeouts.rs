//! The time of entries: time-outs, and the wait for last counters. [`Timeouts`](states::Timeouts) has the state of each
//! entry.
//!
//! | state | rules on the switch | who keeps the time |
//! |---|---|---|
//! | together | all came with the entry | the switch |
//! | apart | some have been idle, or came later | the switch for each rule; [`idle`] for the entry |
//! | uninstalled | none: its link has no path, or no packet that it matches can come | Weir, until an instant |
//! | leaving | the switch removes them; the entry is not in the table any more | Weir waits for their counts, until an instant |
//!
//! | event | from | to |
//! |---|---|---|
//! | a rule is idle and others are there, or a rule comes later | together | apart |
//! | the entry has no rule any more | together, apart | uninstalled |
//! | a rule comes | uninstalled | apart |
//! | the entry is added again, with rules | apart, uninstalled | together |
//! | all rules are idle | apart | gone |
//! | the hard time-out is over for one of several rules | apart | leaving |
//! | the last rule has timed out | together, apart | gone |
//! | the idle or the hard time-out is over | uninstalled | gone |
//! | the entry is deleted | together, apart | leaving, or gone if its tenant wants no report |
//! | the switch has reported the last rule, or has not in time | leaving | gone |
//!
//! The hard time-out of an entry goes on in each state. An entry without rules is idle since it lost its rules. The
//! store has no state: after a restart the age of an entry is the age of its oldest rule on the switch, and the age of
//! an entry without rules begins at 0.

pub(super) mod apart;
pub(super) mod idle;
pub(super) mod states;

use super::removed::DELETE;
use super::{Cause, Switch, in_turn};
use crate::flows::Flow;
use crate::ids::TenantIndex;
use crate::south::installed::Owner;
use crate::south::reports::{Age, Timeout};
use crate::time::Instant;
use hashbrown::HashSet;
use states::{Ended, Leaving, State};

impl Switch {
    /// Whether a change of the entry is in flight. If the change is undone, the entry comes back. During a replay each
    /// entry may change.
    pub(super) fn is_changing(&self, tenant: TenantIndex, number: u32) -> bool {
        self.is_replaying(tenant) || self.changes_of(tenant).any(|change| change.changes(number))
    }

    /// A change adds or replaces an entry: the time of the entry begins again.
    pub(crate) fn begin_again(&mut self, cause: &Cause, number: u32) {
        self.tenants[cause.tenant].timeouts.set_together(number);
        if let Some(change) = self.change_by(cause) {
            change.begins = Some(number);
        }
    }

    /// The entry's counters begin again: counters of deleted rules that the switch has not reported yet do not count
    /// for the entry.
    pub(crate) fn reset_counters(&mut self, cause: &Cause, number: u32) {
        let last = self.session.installed().last_message();
        let change = self.change_by(cause);
        let since = change.map_or(last, |it| *it.counts_since.get_or_insert(last));
        if let Some(flow) = self.tenants[cause.tenant].flows.get_mut(number) {
            flow.counts_since = since;
        }
    }

    /// A change that was accepted earlier is sent: the time of its added entry begins now.
    pub(super) fn begin_time(&mut self, operation: u32, accepted: Instant, now: Instant) {
        let Some(change) = self.change_mut(operation) else { return };
        let Some(number) = change.begins else { return };
        change.at = now;
        let tenant = change.origin.tenant;
        let flow = self.tenants[tenant].flows.get_mut(number);
        if let Some(flow) = flow.filter(|flow| flow.installed == accepted) {
            flow.installed = now;
        }
    }

    /// The hard time-outs of an entry's rules may have begun at different times.
    pub(super) fn keep_together(&mut self, tenant: TenantIndex, number: u32) {
        let state = &mut self.tenants[tenant];
        if state.flows.get(number).is_some_and(|flow| flow.hard_timeout > 0) {
            state.timeouts.set_apart(number);
        }
    }

    /// Keeps a removed entry until the switch has reported its last counters, if the tenant wants a FLOW_REMOVED.
    pub(crate) fn await_removal(&mut self, cause: &Cause, number: u32, flow: Flow) {
        self.await_counts(cause, number, flow, None);
    }

    /// As [`await_removal`](Self::await_removal). `over` is the age of an entry whose hard time-out is over.
    fn await_counts(&mut self, cause: &Cause, number: u32, flow: Flow, over: Option<Age>) {
        let Cause { tenant, now, .. } = *cause;
        if !flow.is_end_reported() || self.leaves_again(tenant, number) {
            return;
        }
        let rules = match self.tenants[tenant].recovery {
            Some(_) => self.session.installed().held_of(flow.keys(), Owner { tenant, number }),
            None => flow.rules.len(),
        };
        if rules == 0 {
            // The entry has no rule on the switch, so the switch will not report its end.
            self.report_after(
                tenant,
                Ended { number, flow, reason: DELETE, stood: Age::default() },
            );
            return;
        }
        let until = now + self.settings.reply_timeout;
        let leaving = Leaving { flow, rules, until, over };
        self.tenants[tenant].timeouts.await_counts(number, leaving);
        self.tenants.note_end(until);
    }

    /// Ends entries without rules whose time is over. Stops waiting for last counters that have not come in time.
    pub(super) fn end_late(&mut self, now: Instant) {
        for tenant in self.tenants.indices() {
            let next = self.tenants[tenant].timeouts.next_end();
            if next.is_none_or(|at| at > now) {
                continue;
            }
            // Thousands of entries may end at once, and a change may change thousands of entries.
            let before = self.changes_of(tenant).flat_map(|it| &it.before);
            let changing: HashSet<u32> = before.map(|(number, _)| *number).collect();
            let is_replaying = self.is_replaying(tenant);
            let is_changing = |number| is_replaying || changing.contains(&number);
            while let Some((number, state)) =
                self.tenants[tenant].timeouts.take_over(is_changing, now)
            {
                match state {
                    State::Uninstalled(it) => self.end_timed_out(tenant, number, it.timeout, now),
                    State::Leaving(late) => {
                        self.report_removed(tenant, &late.flow, DELETE, Age::default());
                        self.tenants.keep_time(tenant, number, now);
                    }
                    State::Apart(_) => {}
                }
            }
        }
        self.tenants.find_next_end();
    }

    /// Ends an entry, and sends the tenant a FLOW_REMOVED with the reason.
    fn end_timed_out(&mut self, tenant: TenantIndex, number: u32, timeout: Timeout, now: Instant) {
        let Some(flow) = self.drop_flow(tenant, number) else { return };
        let cause = in_turn(tenant, now);
        self.delete_rules(&cause, number, &flow);
        self.report_removed(tenant, &flow, timeout as u8, flow.stood(now));
    }
}
