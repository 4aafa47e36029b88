//! What becomes of a tenant's tables and of the switch when the switch refuses a part of a change, or when a rule goes while changes
//! are in flight.
//!
//! The tenant's queue is paused until nothing of the tenant is in flight: then it is known exactly what the switch holds. The
//! tables go back to what they were before the first change in the [log](super::log); what has happened to the switch by itself happens
//! there; the changes are applied again, one after the other, but for those that the switch has refused; and the switch gets the
//! [difference](super::mend). If the switch refuses a part of the difference, another round begins. Each round takes a change or an
//! object away, so the rounds end. Other tenants do not notice.
//!
//! ```text
//!   refused ──► pause ──► drained ──► roll back ──► apply again ──► difference ──► drained ──► retire, unpause
//!                            ▲                                                        │
//!                            └──────────────────── refused ◄──────────────────────────┘
//! ```
//! That the result is the same as on a switch that does one request after the other is a property in `tests/behaviour/in_turn.rs`;
//! that tables, switch and store agree, in `agreement.rs` and `groups_agree.rs`.

pub(super) mod recovery;

use super::logged::Outcome;
use super::tenant::Leaving;
use super::{Cause, Gone, LoggedChange, Object, Request, Switch, What};
use crate::flows::Flow;
use crate::ids::TenantIndex;
use crate::refusals::Verdict;
use crate::south::installed::RefusedRules;
use crate::store::Kind;
use crate::time::Instant;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use compile::{Reason, RuleKey, Variant};
use openflow::error::v13 as code;
use openflow::{ErrorCode, Header};
use recovery::{Back, Ended, Recovery};

/// After so many rounds in which the switch says that something is missing, these are refusals as well.
const ROUNDS: u32 = 16;
/// After so many rounds the switch is left as it is: it refuses deletions, which nothing else can mend. The next connection tries again.
const LAST_ROUND: u32 = 32;

const IDLE_TIMEOUT: u8 = 0;
const HARD_TIMEOUT: u8 = 1;
const DELETE: u8 = 2;

impl Switch {
    // ---- What begins it

    /// The switch has refused a message of an operation, with it these rules.
    pub(crate) fn operation_failed(
        &mut self,
        at: u32,
        verdict: Verdict,
        rules: RefusedRules,
        now: Instant,
    ) {
        let refused = verdict.refused.code();
        if let Some(key) = rules.keys.first().filter(|_| self.means_full(refused)) {
            self.table_was_full(key.table, now);
        }
        let Some(operation) = self.operations.get(&at) else {
            if let Some(tenant) = rules.tenant {
                self.recover(tenant, now).keys.extend(rules.keys);
            }
            return;
        };
        let tenant = operation.tenant;
        let blamed = match &operation.what {
            What::Request(_) => Ok(at),
            &What::Repair { object, cause } => {
                self.reports.count_own_refused();
                cause.filter(|at| self.change(*at).is_some()).ok_or(object)
            }
            What::Infra(tried) => {
                let tried = **tried;
                self.reports.count_own_refused();
                self.end(at);
                self.own_entry_refused(&super::cause::in_turn(tenant, now), tried);
                return;
            }
            What::Free => {
                self.reports.count_own_refused();
                // The next collection deletes again.
                self.ids.note_unneeded();
                self.end(at);
                return;
            }
        };
        if refused == code::GROUP_MOD_FAILED_OUT_OF_GROUPS {
            self.ids.hurry_collection(now);
        }
        // A rule of an entry that follows a group may be refused for what another change has made of the entry.
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
        // What stood in the way of a group may have gone, once all is drained.
        let may_come = match blamed {
            Err(object @ Object::Number(..)) => !is_new && recovery.tried.insert(object),
            _ => false,
        };
        if may_come {
            return;
        }
        match is_unsure {
            true => recovery.round.missing.push((blamed, verdict)),
            false => recovery.round.blame(blamed, verdict),
        }
    }

    /// A rule has gone by itself while changes of its entry are in flight.
    pub(super) fn recover_from(&mut self, tenant: TenantIndex, gone: Gone, now: Instant) {
        let recovery = self.recover(tenant, now);
        recovery.keys.insert(gone.key.clone());
        recovery.round.gone.push(gone);
    }

    /// Nobody knows whether the switch has a rule.
    pub(super) fn recover_rule(&mut self, tenant: TenantIndex, key: &RuleKey, now: Instant) {
        self.recover(tenant, now).keys.insert(key.clone());
    }

    /// An object cannot be on the switch.
    pub(super) fn recover_without(&mut self, tenant: TenantIndex, object: Object, now: Instant) {
        self.recover(tenant, now).round.evicted.insert(object);
    }

    /// The tables do not allow all of a change that is applied in part.
    pub(super) fn replay_all(&mut self, tenant: TenantIndex, now: Instant) {
        self.recover(tenant, now);
    }

    fn recover(&mut self, tenant: TenantIndex, now: Instant) -> &mut Recovery {
        self.drop_bulk(tenant);
        self.tenants.recover(tenant);
        for at in self.session.pause(tenant) {
            let Some(operation) = self.operations.get_mut(&at) else { continue };
            operation.remaining = operation.remaining.saturating_sub(1);
            if let What::Request(change) = &mut operation.what {
                change.is_cut = true;
            }
            if operation.remaining == 0 {
                self.operation_done(at, now);
            }
        }
        let recovery = self.tenants.recover(tenant);
        recovery.round.is_due = true;
        recovery
    }

    // ---- How it goes on

    /// Asks the switch whether all is done, for tenants whose messages have all been sent.
    pub(super) fn drain(&mut self, now: Instant) {
        if !self.tenants.is_any_recovering() || self.session.has_direct() {
            return;
        }
        let Switch { tenants, session, .. } = self;
        let mut asked = None;
        for (tenant, recovery) in tenants.recoveries().filter(|(_, it)| it.barrier.is_none()) {
            if !session.has_repairs(tenant) {
                let xid = *asked.get_or_insert_with(|| session.send_barrier(now));
                recovery.barrier = Some(xid).filter(|xid| *xid > 0);
            }
        }
    }

    /// A barrier has shown that everything up to this xid is done.
    pub(super) fn drained(&mut self, xid: u32, now: Instant) {
        if !self.tenants.is_any_recovering() {
            return;
        }
        let is_drained = |it: &Recovery| {
            it.barrier.is_some_and(|barrier| xid.wrapping_sub(barrier) < u32::MAX / 2)
        };
        let drained = self.tenants.recoveries().filter(|(_, it)| is_drained(it));
        let drained: Vec<TenantIndex> = drained.map(|(tenant, _)| tenant).collect();
        for tenant in drained {
            self.settle(tenant, now);
            self.charge_work(tenant);
        }
    }

    fn settle(&mut self, tenant: TenantIndex, now: Instant) {
        let Some(recovery) = self.tenants[tenant.0 as usize].recovery.as_deref_mut() else {
            return;
        };
        recovery.barrier = None;
        let mut round = core::mem::take(&mut recovery.round);
        if !round.is_due {
            self.recovered(tenant, now);
            return;
        }
        recovery.rounds += 1;
        let is_last = recovery.rounds > LAST_ROUND;
        let is_known =
            round.refused.is_empty() && round.evicted.is_empty() && round.gone.is_empty();
        if is_known || recovery.rounds > ROUNDS {
            for (blamed, verdict) in core::mem::take(&mut round.missing) {
                round.blame(blamed, verdict);
            }
        }
        self.end_following(now);
        for (at, verdict) in round.refused {
            let Some(change) = self.change_mut(at) else { continue };
            let verdict = verdict_of(change.numbers_before.is_empty(), verdict);
            change.outcome = Outcome::Dropped(verdict);
        }
        let changes: Vec<u32> = self.changes_in_flight(tenant).collect();
        for object in &round.evicted {
            self.drop_needing(&changes, *object);
        }
        let has_numbers = self.take_all_back(tenant, &changes, now);
        for gone in round.gone {
            self.happened_before(tenant, gone, now);
        }
        let evicts_numbers = round.evicted.iter().any(|it| matches!(it, Object::Number(..)));
        for object in round.evicted {
            self.evict(tenant, object);
        }
        for at in &changes {
            self.apply_again(tenant, *at);
        }
        self.operations.end_replays();
        let recovery = self.tenants[tenant.0 as usize].recovery.as_deref();
        for number in recovery.map(|it| it.evicted.clone()).unwrap_or_default() {
            self.evict_entry(tenant, number, now);
        }
        self.compile_again(tenant, has_numbers || evicts_numbers, now);
        match is_last {
            true => self.recovered(tenant, now),
            false => self.submit_repairs(tenant, &changes, now),
        }
    }

    /// Takes the changes back, the last first. Says whether any was of groups or meters.
    fn take_all_back(&mut self, tenant: TenantIndex, changes: &[u32], now: Instant) -> bool {
        let mut has_numbers = false;
        for at in changes.iter().rev() {
            let taken = self.change_mut(*at).map(|change| change.take_back());
            let Some((entries, numbers)) = taken else { continue };
            has_numbers |= !numbers.is_empty();
            for one in numbers.into_iter().rev() {
                self.note_ids(tenant, one.kind, one.number);
                self.replace_number(tenant, one.kind, one.number, one.before);
            }
            for (number, before) in entries.into_iter().rev() {
                self.take_entry_back(tenant, number, before, now);
            }
        }
        has_numbers
    }

    fn note_ids(&mut self, tenant: TenantIndex, kind: Kind, number: u32) {
        let Switch { tenants, operations, .. } = self;
        let state = &tenants[tenant.0 as usize];
        let instances = state.numbers.of(kind).any(number).map(|it| &it.instances);
        for (variant, id) in instances.into_iter().flat_map(|it| it.iter()) {
            operations.note_id(kind, number, variant, id);
        }
    }

    /// The id on the switch that a group or meter had before the replay.
    pub(crate) fn id_again(&mut self, kind: Kind, number: u32, variant: Variant) -> Option<u32> {
        self.operations.id_again(kind, number, variant)
    }

    fn take_entry_back(
        &mut self,
        tenant: TenantIndex,
        number: u32,
        before: Option<Flow>,
        now: Instant,
    ) {
        let cause = Cause::own(tenant, now);
        let at = tenant.0 as usize;
        let Some(mut flow) = before else {
            self.take_flow(&cause, number);
            return;
        };
        if let Some(current) = self.tenants[at].flows.get(number)
            && current.counts_since == flow.counts_since
        {
            // What rules have counted that have gone since.
            flow.past_packets = flow.past_packets.max(current.past_packets);
            flow.past_bytes = flow.past_bytes.max(current.past_bytes);
        }
        let leaving = self.tenants[at].timeouts.take_leaving(number);
        let Some(recovery) = self.tenants[at].recovery.as_deref_mut() else { return };
        let ended = recovery.ended.iter().position(|it| it.number == number);
        let ended = ended.map(|at| Back::Ended(recovery.ended.swap_remove(at)));
        if let Some(back) = leaving.map(Back::Leaving).or(ended) {
            recovery.back.entry(number).or_insert(back);
        }
        self.put_flow(&cause, number, flow);
    }

    /// An entry goes again that the tables had lost before and got back: its last counts are awaited as before. Says whether it is so.
    pub(super) fn leaves_again(&mut self, tenant: TenantIndex, number: u32) -> bool {
        let state = &mut self.tenants[tenant.0 as usize];
        let Some(recovery) = state.recovery.as_deref_mut() else { return false };
        match recovery.back.remove(&number) {
            Some(Back::Leaving(leaving)) => {
                state.timeouts.await_counts(number, leaving);
            }
            Some(Back::Ended(ended)) => recovery.ended.push(ended),
            None => return false,
        }
        true
    }

    /// A rule went before the changes that are about to be applied again.
    fn happened_before(&mut self, tenant: TenantIndex, gone: Gone, now: Instant) {
        let Gone { number, ref key, reason, counted, stood } = gone;
        let flow = self.tenants[tenant.0 as usize].flows.get_mut(number);
        // Without the entry it was one that a change adds: the difference brings the rule.
        let Some(flow) = flow.filter(|flow| flow.table == key.table) else { return };
        if flow.rule_at(key).is_none() {
            return;
        }
        flow.count_past(counted);
        let is_whole = flow.rules.len() == 1;
        let ends = match reason {
            HARD_TIMEOUT => true,
            IDLE_TIMEOUT | DELETE => is_whole,
            _ => false,
        };
        if ends && let Some(flow) = self.take_flow(&Cause::own(tenant, now), number) {
            self.end_after(tenant, Ended { number, flow, reason, stood });
        }
    }

    fn end_after(&mut self, tenant: TenantIndex, ended: Ended) {
        if let Some(recovery) = self.tenants[tenant.0 as usize].recovery.as_deref_mut()
            && recovery.ended.iter().all(|it| it.number != ended.number)
        {
            recovery.ended.push(ended);
        }
    }

    /// The end of an entry is told when all is done, if its tenant is recovering.
    pub(super) fn report_after(
        &mut self,
        tenant: TenantIndex,
        number: u32,
        flow: Flow,
        reason: u8,
        stood: (u32, u32),
    ) {
        match self.tenants[tenant.0 as usize].recovery.as_deref_mut() {
            Some(recovery) => recovery.ended.push(Ended { number, flow, reason, stood }),
            None => self.report_removed(tenant, &flow, reason, stood),
        }
    }

    /// Changes that need an egress group which the switch has refused are refused.
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

    fn evict(&mut self, tenant: TenantIndex, object: Object) {
        match object {
            Object::Entry(number) => {
                if let Some(recovery) = self.tenants[tenant.0 as usize].recovery.as_deref_mut() {
                    recovery.evicted.insert(number);
                }
            }
            Object::Number(kind, number) => {
                let lost = match kind {
                    Kind::Group => self.with_callers(tenant, number),
                    _ => Vec::from([number]),
                };
                for number in lost.iter().rev() {
                    self.note_ids(tenant, kind, *number);
                    self.replace_number(tenant, kind, *number, None);
                }
            }
        }
    }

    fn evict_entry(&mut self, tenant: TenantIndex, number: u32, now: Instant) {
        if let Some(flow) = self.take_flow(&Cause::own(tenant, now), number) {
            self.end_after(tenant, Ended { number, flow, reason: DELETE, stood: (0, 0) });
        }
    }

    /// Applies a change again, to the tables as they are now.
    fn apply_again(&mut self, tenant: TenantIndex, at: u32) {
        let Some(change) = self.change_mut(at) else { return };
        if matches!(change.outcome, Outcome::Dropped(_)) || change.configures.is_some() {
            return;
        }
        let (frame, origin, now) = (core::mem::take(&mut change.frame), change.origin, change.at);
        self.operations.begin_replay(at);
        let outcome = match Header::parse(&frame) {
            Ok(header) => {
                let controller = origin.controller;
                let request = Request { tenant, controller, header, frame: &frame, now };
                match self.apply(&request) {
                    Ok(()) => Outcome::Applied,
                    Err(refused) => Outcome::Refused(refused.into()),
                }
            }
            // It was read when it came.
            Err(_) => Outcome::Applied,
        };
        self.operations.end_replay();
        if !matches!(outcome, Outcome::Applied) {
            self.take_all_back(tenant, &[at], now);
        }
        if let Some(change) = self.change_mut(at) {
            (change.frame, change.outcome) = (frame, outcome);
        }
    }

    /// What was compiled for tables, ports or a map that have changed since is compiled again.
    fn compile_again(&mut self, tenant: TenantIndex, has_numbers: bool, now: Instant) {
        let at = tenant.0 as usize;
        let has_numbers = has_numbers && self.semantics().has_groups;
        if has_numbers {
            self.reform_groups(tenant);
        }
        let recovery = self.tenants[at].recovery.as_deref();
        let mut numbers = recovery.map(|it| it.entries.clone()).unwrap_or_default();
        if has_numbers {
            let using = self.tenants[at].flows.iter().filter(|(_, flow)| flow.names_numbers());
            numbers.extend(using.map(|(number, _)| number));
        }
        for number in numbers {
            let Some(flow) = self.tenants[at].flows.get(number) else { continue };
            let planned = self.plan(tenant, flow);
            let flows = &self.tenants[at].flows;
            let wanted =
                planned.map(|rules| Flow { rules, shadowed: Default::default(), ..flow.clone() });
            let wanted = wanted.ok().filter(|it| !flows.collides(number, it));
            match wanted.map(|it| flows.placed(number, it)) {
                None => self.evict_entry(tenant, number, now),
                Some(wanted) if wanted.is_placed_as(flow) => {}
                Some(wanted) => self.put_flow(&Cause::own(tenant, now), number, wanted),
            }
            self.keep_together(tenant, number);
        }
        while self.tenants[at].flows.has_freed() {
            for (number, _, rule) in self.tenants[at].flows.heirs() {
                let table = self.tenants[at].flows.get(number).map(|flow| flow.table);
                let recovery = self.tenants[at].recovery.as_deref_mut();
                if let (Some(table), Some(recovery)) = (table, recovery) {
                    recovery.keys.insert(rule.key(table));
                }
            }
        }
        self.tenants.forget_freed(tenant);
    }

    /// Sends what makes the switch hold what the tables say.
    fn submit_repairs(&mut self, tenant: TenantIndex, changes: &[u32], now: Instant) {
        let mut causes: BTreeMap<Object, u32> = BTreeMap::new();
        for at in changes {
            let Some(change) = self.change(*at).filter(|it| it.is_applied()) else { continue };
            causes.extend(change.before.iter().map(|(number, _)| (Object::Entry(*number), *at)));
            let numbers = change.numbers_before.iter();
            causes.extend(numbers.map(|one| (Object::Number(one.kind, one.number), *at)));
        }
        let cause = super::cause::in_turn(tenant, now);
        let begin = |switch: &mut Switch, object: Object| {
            let repair = What::Repair { object, cause: causes.get(&object).copied() };
            switch.begin_own(&cause, repair)
        };
        let mut is_repaired = false;
        if self.semantics().has_groups {
            for (object, message) in self.numbers_difference(tenant) {
                let cause = begin(self, object);
                self.submit_number(&cause, &message);
                is_repaired = true;
            }
        }
        let recovery = self.tenants[tenant.0 as usize].recovery.as_deref();
        let keys = recovery.map(|it| it.keys.clone()).unwrap_or_default();
        let difference = self.difference(tenant, keys);
        is_repaired |= difference.deleted() + difference.added() > 0;
        self.submit_difference(&difference, |switch, number| begin(switch, Object::Entry(number)));
        if self.semantics().has_groups {
            is_repaired |= self.delete_unwanted(&cause);
        }
        if !is_repaired {
            self.recovered(tenant, now);
        }
    }

    /// Tables and switch agree.
    fn recovered(&mut self, tenant: TenantIndex, now: Instant) {
        let Some(recovery) = self.tenants.recovered(tenant) else { return };
        let state = &mut self.tenants[tenant.0 as usize];
        state.backlog.note_decided();
        for (number, back) in recovery.back {
            // What its rules counted that have gone.
            let (Back::Leaving(Leaving { flow: gone, .. }) | Back::Ended(Ended { flow: gone, .. })) =
                back;
            if let Some(flow) = state.flows.get_mut(number) {
                flow.past_packets = flow.past_packets.max(gone.past_packets);
                flow.past_bytes = flow.past_bytes.max(gone.past_bytes);
            }
        }
        for Ended { flow, reason, stood, .. } in recovery.ended {
            self.report_removed(tenant, &flow, reason, stood);
        }
        self.release_cut(tenant, now);
        self.session.unpause(tenant);
        self.retire(tenant, now);
        self.resume(tenant);
        self.follow(now);
    }

    /// Packets that were to go with messages which have not left go through the tables, as these are now.
    fn release_cut(&mut self, tenant: TenantIndex, now: Instant) {
        let changes: Vec<u32> = self.changes_in_flight(tenant).collect();
        for at in changes {
            let cut = self.change_mut(at).filter(|it| it.is_cut && it.is_applied());
            let Some(buffered) = cut.and_then(|it| it.buffered.take()) else { continue };
            let cause = super::cause::in_turn(tenant, now);
            self.release_through_table(&cause, &buffered);
        }
    }

    /// While a tenant is recovering: an entry has changed.
    pub(super) fn note_dirty(&mut self, tenant: TenantIndex, number: u32, before: Option<&Flow>) {
        let state = &mut self.tenants[tenant.0 as usize];
        let Some(recovery) = state.recovery.as_deref_mut() else { return };
        recovery.entries.insert(number);
        recovery.keys.extend(before.into_iter().flat_map(Flow::keys));
        recovery.keys.extend(state.flows.get(number).into_iter().flat_map(Flow::keys));
    }

    /// While a tenant is recovering: these rules may have to change.
    pub(super) fn note_dirty_rules(
        &mut self,
        tenant: TenantIndex,
        keys: impl IntoIterator<Item = RuleKey>,
    ) {
        if let Some(recovery) = self.tenants[tenant.0 as usize].recovery.as_deref_mut() {
            recovery.keys.extend(keys);
        }
    }
}

/// Whether a switch says by this that something else is not there, or there already.
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

/// To a tenant that asked for a group it is the group that was refused, also if it was an entry that uses it.
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
