//! Replay: brings a tenant's tables and the switch together again, when the switch refuses a part of a change, or when
//! a rule is removed while changes are in flight.
//!
//! Weir pauses the tenant's queue until no message of the tenant is in flight: then Weir knows exactly what the switch
//! holds. The tables go back to the state before the first change in the [log](super::log). Rules that the switch has
//! removed by itself are removed from the tables. The changes are applied again, one after the other, without the
//! refused changes. Then the switch gets the [difference](super::mend). If the switch refuses a part of the difference,
//! another round begins. Each round removes a change or an object, so the rounds end. Other tenants do not notice.
//!
//! ```text
//!   refused ──► pause ──► drained ──► steps 1 to 9 ──► drained ──► step 10 ──► retire, unpause
//!                            ▲                            │
//!                            └────────── refused ◄────────┘
//! ```
//! [`Step`] has the steps of a round. A log can hold changes of thousands of entries, so a round can be much work: one
//! turn of the event loop does a batch of the work; then come other tenants. Between two turns no request may see the
//! tables. So all requests of the tenant except ECHO wait, and no entry times out. Messages of the switch that come
//! meanwhile count for the next round.
//!
//! A new policy or changed ports wait for all replays. If a replay begins while entries follow a policy, the replay
//! waits until all entries have followed. Entries that follow wait for nothing, so this ends.
//!
//! `tests/behaviour/in_turn.rs` checks that the result is the same as on a switch that carries out one request after
//! the other; `agreement.rs` and `groups_agree.rs` check that tables, switch and store agree; `replay_in_turns.rs`
//! checks the work of one turn.

mod again;
mod ends;
pub(super) mod findings;
pub(super) mod recovery;
mod repair;
pub(super) mod step;

use super::logged::Outcome;
use super::{Gone, LoggedChange, Object, Switch, What};
use crate::flows::Flow;
use crate::ids::TenantIndex;
use crate::refusals::Verdict;
use crate::south::installed::RefusedRules;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::vec::Vec;
use compile::{Reason, RuleKey};
use hashbrown::HashMap;
use openflow::ErrorCode;
use openflow::error::v13 as code;
use recovery::Recovery;
use step::{Restore, Round, Step};

/// After this many rounds, errors that say that something is missing count as refusals, too.
const ROUNDS: u32 = 16;
/// After this many rounds Weir leaves the switch as it is: the switch refuses deletions, and no further round would
/// help. The next connection tries again.
const LAST_ROUND: u32 = 32;

impl Switch {
    // ---- The beginning of a replay

    /// The switch has refused a message of an operation, and with the message these rules.
    pub(crate) fn operation_failed(
        &mut self,
        at: u32,
        verdict: Verdict,
        rules: RefusedRules,
        now: Instant,
    ) {
        let refused = verdict.refused.code();
        if let Some(key) = rules.keys.first().filter(|_| refused == self.codes().table_full) {
            self.table_was_full(key.table, now);
        }
        let Some(operation) = self.operations.get(&at) else {
            if let Some(tenant) = rules.tenant {
                self.recover(tenant, now).keys.extend(rules.keys);
            }
            return;
        };
        let tenant = operation.tenant;
        if !matches!(operation.what, What::Request(_)) {
            self.reports.counters_mut().own_refused += 1;
        }
        let blamed = match &operation.what {
            What::Request(_) => Ok(at),
            &What::Repair { object, cause } => {
                cause.filter(|at| self.change(*at).is_some()).ok_or(object)
            }
            What::Infra(tried) => {
                let tried = **tried;
                self.end(at);
                self.own_entry_refused(&super::cause::in_turn(tenant, now), tried);
                return;
            }
            What::Free => {
                // The next collection deletes again.
                self.ids.note_unneeded();
                self.end(at);
                return;
            }
        };
        if refused == code::GROUP_MOD_FAILED_OUT_OF_GROUPS {
            self.ids.hurry_collection(now);
        }
        // A rule of an entry that uses a changed group may be refused because of another change of the entry.
        let follows = |at: u32| self.change(at).is_some_and(|it| !it.numbers_before.is_empty());
        let is_unsure =
            says_missing(refused) || !rules.keys.is_empty() && blamed.is_ok_and(follows);
        let is_needed = |number| self.changes_of(tenant).any(|it| it.needs.contains(&number));
        let is_new = match blamed {
            Err(Object::Number(_, number)) => is_needed(number),
            _ => false,
        };
        let recovery = self.recover(tenant, now);
        recovery.keys.extend(rules.keys);
        // The obstacle to a group may be gone when no message is in flight.
        let may_come = match blamed {
            Err(object @ Object::Number(..)) => !is_new && recovery.tried.insert(object),
            _ => false,
        };
        if may_come {
            return;
        }
        match is_unsure {
            true => recovery.findings.missing.push((blamed, verdict)),
            false => recovery.findings.blame(blamed, verdict),
        }
    }

    /// The switch has removed a rule by itself while changes of the rule's entry are in flight.
    pub(super) fn recover_from(&mut self, tenant: TenantIndex, gone: Gone, now: Instant) {
        let recovery = self.recover(tenant, now);
        recovery.keys.insert(gone.key.clone());
        recovery.findings.gone.push(gone);
    }

    /// Nobody knows whether the switch holds a rule.
    pub(super) fn recover_rule(&mut self, tenant: TenantIndex, key: &RuleKey, now: Instant) {
        self.recover(tenant, now).keys.insert(key.clone());
    }

    /// An object cannot be on the switch: the replay removes it from the tables.
    pub(super) fn recover_and_evict(&mut self, tenant: TenantIndex, object: Object, now: Instant) {
        self.recover(tenant, now).findings.evicted.insert(object);
    }

    /// Begins a replay of the tenant's changes, or adds a round.
    pub(super) fn recover(&mut self, tenant: TenantIndex, now: Instant) -> &mut Recovery {
        let is_partial = self.drop_bulk(tenant);
        let cut = self.session.pause(tenant);
        // Entries may have taken over some of these rules. The log does not say so.
        self.tenants.recover(tenant).keys.extend(cut.rules);
        for at in cut.operations {
            let Some(operation) = self.operations.get_mut(&at) else { continue };
            operation.remaining = operation.remaining.saturating_sub(1);
            if let What::Request(change) = &mut operation.what {
                change.is_cut = true;
            }
            if operation.remaining == 0 {
                self.operation_done(at, now);
            }
        }
        if self.may_go_on_with_replay(tenant) {
            self.inbox.turns_mut().wait(tenant.0);
        }
        let recovery = self.tenants.recover(tenant);
        recovery.findings.is_due = true;
        recovery.is_partial |= is_partial;
        recovery
    }

    // ---- The course of a replay

    /// Sends a barrier for tenants that are recovering and whose messages are all sent.
    pub(super) fn drain(&mut self, now: Instant) {
        // Rules of entries that follow a policy are in flight as well.
        let is_busy = self.session.has_direct() || self.map.is_stale();
        if !self.tenants.is_any_recovering() || is_busy {
            return;
        }
        let Switch { tenants, session, .. } = self;
        let is_unasked = |it: &Recovery| it.barrier.is_none() && it.round.is_none();
        let mut asked = None;
        for (tenant, recovery) in tenants.recoveries().filter(|(_, it)| is_unasked(it)) {
            if session.queues().repairs(tenant).is_empty() {
                let xid = *asked.get_or_insert_with(|| session.send_barrier(now));
                recovery.barrier = Some(xid).filter(|xid| *xid > 0);
            }
        }
    }

    /// A barrier has shown that everything up to this xid is done.
    pub(super) fn drained(&mut self, xid: u32) {
        if !self.tenants.is_any_recovering() {
            return;
        }
        let is_drained = |it: &Recovery| {
            it.barrier.is_some_and(|barrier| xid.wrapping_sub(barrier) < u32::MAX / 2)
        };
        let drained = self.tenants.recoveries().filter(|(_, it)| is_drained(it));
        let drained: Vec<TenantIndex> = drained.map(|(tenant, _)| tenant).collect();
        for tenant in drained {
            self.begin_round(tenant);
            self.inbox.turns_mut().wait(tenant.0);
        }
    }

    /// No message of the tenant is in flight: a round begins.
    fn begin_round(&mut self, tenant: TenantIndex) {
        let Some(recovery) = self.tenants[tenant].recovery.as_deref_mut() else { return };
        recovery.barrier = None;
        recovery.is_partial = false;
        let mut findings = core::mem::take(&mut recovery.findings);
        recovery.rounds += u32::from(findings.is_due);
        let rounds = recovery.rounds;
        let is_known =
            findings.refused.is_empty() && findings.evicted.is_empty() && findings.gone.is_empty();
        if is_known || rounds > ROUNDS {
            for (blamed, verdict) in core::mem::take(&mut findings.missing) {
                findings.blame(blamed, verdict);
            }
        }
        for (at, verdict) in core::mem::take(&mut findings.refused) {
            let Some(change) = self.change_mut(at) else { continue };
            let verdict = verdict_of(change.numbers_before.is_empty(), verdict);
            change.outcome = Outcome::Dropped(verdict);
        }
        let changes: Vec<u32> = self.changes_in_flight(tenant).collect();
        for object in &findings.evicted {
            self.drop_needing(&changes, *object);
        }
        let first = match findings.is_due {
            true => Step::Restore(Restore::new(changes.clone())),
            false => Step::Report,
        };
        let round = Round {
            step: Some(first),
            changes,
            has_numbers: findings.evicted.iter().any(|it| matches!(it, Object::Number(..))),
            findings,
            is_last: rounds > LAST_ROUND,
            causes: HashMap::new(),
            is_repaired: false,
        };
        if let Some(recovery) = self.tenants[tenant].recovery.as_deref_mut() {
            recovery.round = Some(Box::new(round));
        }
    }

    /// Whether the tables show only a part of a change, until a replay begins.
    pub(super) fn is_interrupted(&self, tenant: TenantIndex) -> bool {
        self.tenants[tenant].recovery.as_deref().is_some_and(|it| it.is_partial)
    }

    /// Whether the tenant's tables are between two states, because a round is going on.
    pub(super) fn is_replaying(&self, tenant: TenantIndex) -> bool {
        let recovery = self.tenants[tenant].recovery.as_deref();
        recovery.is_some_and(|it| it.round.is_some())
    }

    /// Whether a replay can continue in the tenant's turn. A long answer shows the tables before or after the replay,
    /// so the replay waits for it. Repairs wait until earlier repairs have left.
    pub(super) fn may_go_on_with_replay(&self, tenant: TenantIndex) -> bool {
        let recovery = self.tenants[tenant].recovery.as_deref();
        let round = recovery.and_then(|it| it.round.as_deref());
        !self.statistics.is_answering(tenant)
            && round.is_some_and(|it| {
                !it.is_repairing()
                    || self.session.queues().repairs(tenant).len() <= self.settings.batch
            })
    }

    /// Does the next batch of a replay.
    pub(super) fn continue_replay(&mut self, tenant: TenantIndex, now: Instant) {
        if !self.may_go_on_with_replay(tenant) {
            return;
        }
        let recovery = self.tenants[tenant].recovery.as_deref_mut();
        let Some(mut round) = recovery.and_then(|it| it.round.take()) else { return };
        let (mut left, mut is_over) = (self.settings.batch, false);
        while left > 0
            && let Some(step) = round.step.take()
        {
            is_over = matches!(step, Step::Report);
            round.step = self.do_step(tenant, &mut round, step, &mut left, now);
        }
        if round.step.is_some() {
            if let Some(recovery) = self.tenants[tenant].recovery.as_deref_mut() {
                recovery.round = Some(round);
            }
            if self.may_go_on_with_replay(tenant) {
                self.inbox.turns_mut().wait(tenant.0);
            }
        } else if is_over {
            self.recovered(tenant, now);
        }
        self.charge_work(tenant);
    }

    /// Does a step, as far as `left` allows in this turn. Returns the next step, or the rest of this one.
    fn do_step(
        &mut self,
        tenant: TenantIndex,
        it: &mut Round,
        mut step: Step,
        left: &mut usize,
        now: Instant,
    ) -> Option<Step> {
        let is_done = match &mut step {
            Step::Restore(restore) => self.restore_before(tenant, restore, it, left, now),
            Step::Removals(gone) => {
                self.each(gone, left, |switch, gone| switch.happened_before(tenant, gone, now))
            }
            Step::Apply(apply) => self.apply_changes(tenant, apply, it, left, now),
            Step::Evict(entries) => {
                self.each(entries, left, |switch, number| switch.evict_entry(tenant, number, now))
            }
            Step::Reform(groups) => {
                self.each(groups, left, |switch, number| switch.reform_group(tenant, number))
            }
            Step::Compile(entries) => {
                self.each(entries, left, |switch, number| switch.compile_again(tenant, number, now))
            }
            Step::TakeOver => self.take_over_freed(tenant, left),
            Step::Compare(compare) => self.compare_rules(tenant, compare, left),
            Step::Blame(blame, _) => self.find_causes(it, blame, left),
            // The rest is for the next round.
            Step::Repair(_) if self.is_next_round_due(tenant) => return None,
            Step::Repair(repair) => self.repair(tenant, it, repair, left, now),
            Step::Report => self.report_ends(tenant, left),
        };
        if !is_done {
            return Some(step);
        }
        match step {
            Step::Restore(_) => {
                Some(Step::Removals(core::mem::take(&mut it.findings.gone).into_iter()))
            }
            Step::Removals(_) => Some(Step::Apply(self.begin_to_apply(tenant, it))),
            Step::Apply(_) => Some(Step::Evict(self.end_to_apply(tenant).into_iter())),
            Step::Evict(_) => Some(Step::Reform(self.groups_to_reform(tenant, it).into_iter())),
            Step::Reform(_) => {
                Some(Step::Compile(self.begin_to_compile(tenant, it.has_numbers).into_iter()))
            }
            Step::Compile(_) => Some(Step::TakeOver),
            Step::TakeOver if it.is_last => Some(Step::Report),
            Step::TakeOver => self.begin_to_compare(tenant),
            Step::Compare(compare) => Some(self.end_to_compare(tenant, it, compare)),
            Step::Blame(_, difference) => {
                Some(Step::Repair(self.begin_to_repair(tenant, difference)))
            }
            Step::Repair(_) => self.end_to_repair(tenant, it, now),
            Step::Report => None,
        }
    }

    /// Refuses changes that need an egress group which the switch has refused.
    fn drop_needing(&mut self, changes: &[u32], object: Object) {
        let Object::Number(_, number) = object else { return };
        for at in changes {
            let verdict = Reason::NoEgressGroup.with(code::GROUP_MOD_FAILED_OUT_OF_GROUPS);
            let needs = |it: &&mut LoggedChange| it.is_applied() && it.needs.contains(&number);
            if let Some(change) = self.change_mut(*at).filter(needs) {
                change.outcome = Outcome::Dropped(verdict.into());
            }
        }
    }

    /// Notes a changed entry, if the tenant is recovering.
    pub(super) fn note_dirty(&mut self, tenant: TenantIndex, number: u32, before: Option<&Flow>) {
        let state = &mut self.tenants[tenant];
        let Some(recovery) = state.recovery.as_deref_mut() else { return };
        recovery.entries.insert(number);
        recovery.keys.extend(before.into_iter().flat_map(Flow::keys));
        recovery.keys.extend(state.flows.get(number).into_iter().flat_map(Flow::keys));
    }

    /// Notes rules that may have to change, if the tenant is recovering.
    pub(super) fn note_dirty_rules(
        &mut self,
        tenant: TenantIndex,
        keys: impl IntoIterator<Item = RuleKey>,
    ) {
        if let Some(recovery) = self.tenants[tenant].recovery.as_deref_mut() {
            recovery.keys.extend(keys);
        }
    }
}

/// Whether an error says that something else is missing, or is there already.
fn says_missing(refused: ErrorCode) -> bool {
    [
        code::BAD_ACTION_BAD_OUT_GROUP,
        code::GROUP_MOD_FAILED_GROUP_EXISTS,
        code::GROUP_MOD_FAILED_UNKNOWN_GROUP,
        code::METER_MOD_FAILED_METER_EXISTS,
        code::METER_MOD_FAILED_UNKNOWN_METER,
    ]
    .contains(&refused)
}

/// The verdict for the tenant's request. If the switch has no room for the entries of a changed group, the tenant gets
/// an error of GROUP_MOD.
fn verdict_of(is_about_entries: bool, verdict: Verdict) -> Verdict {
    let is_full = verdict.refused.code().type_ == code::FLOW_MOD_FAILED_TABLE_FULL.type_;
    match is_full && !is_about_entries {
        true => {
            let refused = verdict.refused.as_code(code::GROUP_MOD_FAILED_OUT_OF_GROUPS);
            Verdict { refused, ..verdict }
        }
        false => verdict,
    }
}
