//! Undoing changes: what becomes of the tables when the switch refuses a part of an operation, or a rule times out while an
//! operation changes its entry.
//!
//! The table goes back, what was installed is taken out or put back, and the tenant gets one error. Operations overlap:
//! one that came later on the same entry depends on the change that is undone, and takes over the earlier state. If the switch refuses
//! that state, too, the entry is given up and its tenant told.
//!
//! That table, switch and store agree afterwards, whatever was refused and whatever timed out, is a property in
//! `tests/behaviour/agreement.rs`, and with groups in `tests/behaviour/groups_agree.rs`; that the result is the same as on a
//! switch that does one after the other, one in `tests/behaviour/in_turn.rs`.

use super::Switch;
use super::tables::{Cause, Change, Operation};
use crate::flows::{Flow, Rule};
use crate::ids::TenantIndex;
use crate::refusals::Verdict;
use crate::south::pending::Origin;
use crate::store::Kind;
use crate::time::Instant;
use crate::v13::groups::undo::Extent;
use crate::v13::numbers::Numbered;
use alloc::sync::Arc;
use alloc::vec::Vec;
use compile::Reason;
use hashbrown::{HashMap, HashSet};
use openflow::{ErrorCode, Version};

impl Switch {
    /// An entry, or a rule of it, has timed out on the switch. `None`: no change of it is on its way. Else it was the
    /// entry as it stood before that change, which is given if nothing is left of it; the change finds nothing there.
    ///
    /// A new entry cannot be meant: timeouts are a second at least, and a change is confirmed far sooner.
    pub(crate) fn expire_during_changes(
        &mut self,
        tenant: TenantIndex,
        number: u32,
        is_meant: impl Fn(&[u8]) -> bool,
        counted: (u64, u64),
    ) -> Option<Option<Flow>> {
        let latest = self.next_operation;
        let mut changes: Vec<(&u32, &mut Operation)> = self
            .operations
            .iter_mut()
            .filter(|(_, operation)| operation.tenant == tenant)
            .filter(|(_, operation)| operation.changes(number))
            .collect();
        changes.sort_unstable_by_key(|(at, _)| at.wrapping_sub(latest).wrapping_sub(1));
        let is_among = |rules: &[(u32, Arc<[u8]>)]| {
            rules.iter().any(|(other, match_)| *other == number && is_meant(match_))
        };
        let adds = changes.iter().any(|(_, operation)| is_among(&operation.adds));
        let adds_missing = changes.iter().any(|(_, operation)| is_among(&operation.adds_missing));
        if !adds
            && adds_missing
            && let Some((_, last)) = changes.last_mut()
            && last.again.iter().all(|(other, _)| *other != number)
        {
            // It came before the modification, which then added the entry, or after it: bring it in either case.
            last.again.push((number, None));
        }
        let stays = adds || adds_missing;
        let (_, first) = changes.first_mut()?;
        if first.own {
            return stays.then_some(None);
        }
        let is_it = |rule: &Rule| is_meant(&rule.match_wire);
        let (_, below) = first.before.iter_mut().find(|(other, _)| *other == number)?;
        let flow = below.as_mut()?;
        let rule = flow.rules.iter().position(is_it)?;
        flow.rules.remove(rule);
        flow.past_packets += counted.0;
        flow.past_bytes += counted.1;
        let gone = below.take_if(|flow| flow.rules.is_empty());
        if !stays {
            let before = changes.iter_mut().flat_map(|(_, operation)| &mut operation.before);
            for (_, before) in before.filter(|(other, _)| *other == number) {
                before.as_mut().into_iter().for_each(|flow| flow.rules.retain(|it| !is_it(it)));
                before.take_if(|flow| flow.rules.is_empty());
            }
            self.lose_rule(tenant, number, is_it);
        }
        Some(gone)
    }

    /// Somebody has deleted a rule of an entry on the switch. If a change that is on its way adds it, or does if it is missing,
    /// then that may have been before or behind it: it is brought in either case, once, or given up.
    pub(crate) fn comes_though_deleted(
        &mut self,
        tenant: TenantIndex,
        number: u32,
        is_meant: impl Fn(&[u8]) -> bool,
        now: Instant,
    ) -> bool {
        let adds = |operation: &Operation| {
            let mut added = operation.adds.iter().chain(&operation.adds_missing);
            added.any(|(other, match_)| *other == number && is_meant(match_))
        };
        let Some(last) = self.last_operation(tenant, adds) else { return false };
        if last.brings_again {
            self.give_up(&Cause::own(tenant, now), number);
            return true;
        }
        last.overtaken = true;
        match last.again.iter_mut().find(|(other, _)| *other == number) {
            // Nothing is left that would stand if it could not be.
            Some((_, before)) => *before = None,
            None => last.again.push((number, None)),
        }
        true
    }

    /// A rule of an entry is not on the switch any more. Gives the entry if that was all of it.
    fn lose_rule(
        &mut self,
        tenant: TenantIndex,
        number: u32,
        is_it: impl Fn(&Rule) -> bool,
    ) -> Option<Flow> {
        let state = &mut self.tenants[tenant.0 as usize];
        let flow = state.flows.get_mut(number)?;
        let lost: Vec<Rule> = flow.rules.extract_if(.., |rule| is_it(rule)).collect();
        let (table, is_over) = (flow.table, flow.rules.is_empty());
        for rule in &lost {
            state.flows.forget_rule(table, rule);
        }
        self.note_freed(tenant);
        if lost.is_empty() || !is_over { None } else { self.drop_flow(tenant, number) }
    }

    /// The switch has refused a part of an operation: everything goes back, and the tenant is told once.
    pub(crate) fn operation_failed(
        &mut self,
        operation: u32,
        origin: Option<&Origin>,
        verdict: impl Into<Verdict>,
        now: Instant,
    ) {
        let Verdict { refused, by } = verdict.into();
        let code = refused.code();
        // Already undone: one error is enough.
        let Some(Operation {
            tenant,
            messages,
            before,
            numbers_before,
            adds,
            inherits,
            overtaken,
            moved,
            again,
            lost: mut losses,
            own,
            brings,
            tries,
            revived,
            frees,
            frees_again,
            deletes_after,
            ..
        }) = self.end(operation)
        else {
            return;
        };
        if let Some((number, rule)) = revived {
            self.revival_failed(tenant, operation, number, &rule);
        }
        self.counters.own_refused += u64::from(own);
        if let Some((number, _)) = adds.first().filter(|_| self.means_full(code))
            && let Some(flow) = self.tenants[tenant.0 as usize].flows.get(*number)
        {
            self.table_was_full(flow.table, now);
        }
        if code == openflow::error::v13::GROUP_MOD_FAILED_OUT_OF_GROUPS {
            self.hurry_unused(now);
        }
        // What was refused has changed nothing; only what was accepted beside it has to be undone on the switch.
        let only_table = messages == 1 && !own && !inherits && !overtaken;
        if !only_table {
            self.doubt_barriers(tenant);
        }
        let cause = Cause { tenant, origin: None, operation: None, direct: false, now };
        let extent = match inherits {
            true => Extent::Inherited,
            false if messages == 1 => Extent::Nothing,
            false => Extent::Part,
        };
        // To a tenant that asked for a group it is the group that was refused, also if it was an entry that uses it.
        let code = match numbers_before.is_empty() {
            false if deletes_after.is_some() || is_about_entries(code) => NO_EXIT,
            _ => code,
        };
        if let Some(tried) = tries {
            self.own_entry_refused(&cause, tried);
        }
        if let Some(brought) = brings {
            self.form_refused(&cause, brought, code);
        }
        if extent != Extent::Nothing && !numbers_before.is_empty() {
            self.bring_overtaken(tenant, operation, &adds, &before);
        }
        let deletes_numbers = numbers_before.iter().any(|one| !one.deleted.is_empty());
        self.undo_numbers(&cause, operation, numbers_before, extent);
        match frees_again {
            _ if frees.is_empty() => {}
            true => self.keep_refused(tenant, frees),
            false => self.submit_freeing(&cause, &frees, true),
        }
        for (number, before) in before.into_iter().rev() {
            // What was to be brought again is not to be relied on.
            let short = again.iter().find(|(other, _)| *other == number).map(|(_, it)| it.clone());
            let how = (!only_table, inherits || short.is_some(), moved);
            let lost = losses.iter().position(|(other, _)| *other == number);
            let mut lost = lost.map(|at| losses.swap_remove(at).1);
            let was = (&before, &mut lost, short);
            if self.hand_on((tenant, operation, own), number, was, how) {
                continue;
            }
            if let Some(replaced) =
                before.as_ref().filter(|it| self.is_replaced(tenant, number, it))
            {
                self.tenants[tenant.0 as usize].leaving.remove(&number);
                let flows = &self.tenants[tenant.0 as usize].flows;
                let is_its = |it: &&Rule| flows.other_owner(number, replaced.table, it).is_none();
                let left: Vec<&Rule> = replaced.rules.iter().filter(is_its).collect();
                for rule in left {
                    let (change, buffer_id) = (Change::Delete, openflow::NO_BUFFER);
                    self.submit_rule(&cause, number, replaced, rule, change, buffer_id);
                }
                continue;
            }
            let current = self.take_flow(&cause, number);
            if !own {
                // Of its end the tenant hears by the error, or there is none.
                self.tenants[tenant.0 as usize].leaving.remove(&number);
            }
            if only_table {
                if let Some(before) = before {
                    if deletes_numbers {
                        let retired = &mut self.tenants[tenant.0 as usize].retired;
                        before.rules.iter().for_each(|it| retired.stays(number, &it.match_wire));
                    }
                    self.put_flow(&cause, number, before);
                    self.keep_together(tenant, number);
                    self.regroup(&cause, number);
                }
                continue;
            }
            let wanted = before.as_ref().and_then(|it| self.as_it_is(tenant, number, it, moved));
            // Others may own by now what it was on the switch.
            let flows = &self.tenants[tenant.0 as usize].flows;
            let wanted = wanted.map(|it| flows.placed(number, it));
            if let Some(current) = &current {
                let stood = wanted.as_ref().map(Flow::by_match).unwrap_or_default();
                for rule in &current.rules {
                    if !stood.contains_key(&*rule.match_wire) {
                        self.submit_rule(
                            &cause,
                            number,
                            current,
                            rule,
                            Change::Delete,
                            openflow::NO_BUFFER,
                        );
                    }
                }
            }
            if let Some(wanted) = wanted {
                self.tenants[tenant.0 as usize].leaving.remove(&number);
                self.put_flow(&cause, number, wanted.clone());
                self.keep_together(tenant, number);
                // A modification is undone by modifying back, which keeps the counters; but not the timeouts of an entry that
                // had been replaced, now or by an earlier change that was refused. On 1.3 that brings nothing if it is not
                // there, as a new rule that was refused.
                let is_there = !inherits && (self.version == Version::V1_0 || !(own || overtaken));
                let modified =
                    current.filter(|current| is_there && current.times() == wanted.times());
                self.overtake(tenant, number);
                let cause = self.begin_own(&cause, number);
                let there = modified.as_ref().map(Flow::by_match).unwrap_or_default();
                let stood = before.as_ref().map(Flow::by_match).unwrap_or_default();
                for rule in &wanted.rules {
                    let match_ = &*rule.match_wire;
                    let is_there = there.contains_key(match_) && stood.contains_key(match_);
                    let change = if is_there { Change::Modify } else { Change::Add };
                    self.submit_rule(&cause, number, &wanted, rule, change, openflow::NO_BUFFER);
                }
                // Nothing may stand for it.
                cause.operation.into_iter().for_each(|it| self.commit(it));
            } else if let Some(lost) = before.or(lost).or(current.filter(|_| own)) {
                self.tenants[tenant.0 as usize].leaving.remove(&number);
                self.report_lost(tenant, &lost);
            }
        }
        self.delete_unreferenced(&cause, Kind::Group, deletes_after.unwrap_or_default());
        if let Some(origin) = origin {
            self.refuse(origin, Verdict { refused: refused.as_code(code), by });
        }
    }

    /// The switch has refused an egress group, or a copy of it. The changes that need it came after it, so all of them are on their
    /// way; when the switch has handled them they are undone, whatever the switch made of them, and with the last of them goes
    /// what there is of the egress group. Gives what can go at once.
    pub(crate) fn delete_users(
        &mut self,
        tenant: TenantIndex,
        exit: u32,
        gone: Vec<u32>,
    ) -> Vec<u32> {
        let latest = self.next_operation;
        let needs = |operation: &Operation| {
            operation.needs.as_ref().is_some_and(|(egress_groups, _)| egress_groups.contains(&exit))
        };
        let users = self.operations.iter_mut();
        let users = users.filter(|(_, operation)| operation.tenant == tenant && needs(operation));
        let mut users: Vec<(&u32, &mut Operation)> = users.collect();
        users.sort_unstable_by_key(|(at, _)| at.wrapping_sub(latest).wrapping_sub(1));
        let mut last = None;
        // One may need several that are refused.
        for (_, operation) in users {
            last = Some(operation.deletes_after.get_or_insert_default());
        }
        match last {
            Some(left) => {
                left.extend(gone);
                Vec::new()
            }
            None => gone,
        }
    }

    /// A change that needs an egress group which the switch has refused is confirmed: it is undone. Says whether it is one.
    pub(super) fn undoes_dependent(&mut self, operation: u32, now: Instant) -> bool {
        let Some(state) = self.operations.get_mut(&operation) else { return false };
        let (Some(_), Some((_, origin))) = (&state.deletes_after, &state.needs) else {
            return false;
        };
        let origin = *origin;
        state.inherits = true;
        let refused = Reason::NoEgressGroup.with(NO_EXIT);
        self.operation_failed(operation, Some(&origin), refused, now);
        true
    }

    /// Whether another entry has come in the place of one that was deleted.
    fn is_replaced(&self, tenant: TenantIndex, number: u32, flow: &Flow) -> bool {
        let flows = &self.tenants[tenant.0 as usize].flows;
        flows.find(flow.table, &flow.match_, flow.priority).is_some_and(|other| other != number)
    }

    /// An entry that stands again uses groups and meters as they are now, or the map and the ports. `None`: one is gone, so
    /// nothing can stand for it.
    fn as_it_is(&self, tenant: TenantIndex, number: u32, flow: &Flow, moved: bool) -> Option<Flow> {
        let rules = match moved || self.uses_numbers(flow) {
            true => self.plan(tenant, flow).ok()?,
            false => flow.rules.clone(),
        };
        let shadowed = match moved {
            true => Vec::new(),
            false => flow.shadowed.clone(),
        };
        let flow = Flow { rules, shadowed, ..flow.clone() };
        let flows = &self.tenants[tenant.0 as usize].flows;
        let collides = moved && flows.collides(number, &flow);
        (!collides).then_some(flow)
    }

    /// The same of one that the switch holds as it was.
    fn regroup(&mut self, cause: &Cause, number: u32) {
        let Some(flow) = self.tenants[cause.tenant.0 as usize].flows.get(number) else { return };
        match self.as_it_is(cause.tenant, number, flow, false) {
            None => self.give_up(cause, number),
            Some(wanted) if wanted.rules == flow.rules => {}
            Some(wanted) => {
                self.replace_rules(cause, HashMap::from([(number, wanted.rules)]));
            }
        }
    }

    /// A rule that had timed out is not there again: the entry lives without it, or ends if that was all of it. What
    /// came later on the entry stands on what is there.
    fn revival_failed(&mut self, tenant: TenantIndex, failed: u32, number: u32, rule: &Rule) {
        let is_it = |other: &Rule| other.match_wire == rule.match_wire;
        let later = self.operations.iter_mut().filter(|(at, operation)| {
            operation.tenant == tenant && at.wrapping_sub(failed) < u32::MAX / 2
        });
        let later = later.flat_map(|(_, operation)| &mut operation.before);
        let mut is_changed = false;
        for (_, before) in later.filter(|(other, _)| *other == number) {
            is_changed = true;
            if let Some(flow) = before {
                flow.rules.retain(|other| !is_it(other));
            }
            before.take_if(|flow| flow.rules.is_empty());
        }
        if !is_changed && let Some(flow) = self.lose_rule(tenant, number, is_it) {
            self.report_lost(tenant, &flow);
        }
    }

    /// If a later operation has changed the entry too, that one's result stands; should it fail as well, the entry goes
    /// back to what was before both. Says whether there is one.
    fn hand_on(
        &mut self,
        (tenant, failed, is_own): (TenantIndex, u32, bool),
        number: u32,
        (before, lost, short): (&Option<Flow>, &mut Option<Flow>, Option<Option<Flow>>),
        (in_part, is_unsure, moved): (bool, bool, bool),
    ) -> bool {
        // The later one may be a modification. On 1.3 that adds nothing if the entry that was refused is missing, and in
        // both versions it leaves the timeouts of the entry that was to be replaced; of which one, is not known if an
        // earlier change was refused, too.
        let current = self.tenants[tenant.0 as usize].flows.get(number);
        let falls_short = match (before, current) {
            _ if is_unsure => true,
            (None, _) => self.version != Version::V1_0,
            (Some(before), Some(current)) => {
                // The same of rules that were refused, though not of all.
                let stood = before.by_match();
                let is_new = |rule: &Rule| !stood.contains_key(&*rule.match_wire);
                let adds = in_part && current.rules.iter().any(is_new);
                before.times() != current.times() || adds && self.version != Version::V1_0
            }
            (Some(_), None) => false,
        };
        // What only brings an entry back has no result of its own.
        let touches = |later: &Operation| (is_own || !later.own) && later.changes(number);
        let Some(later) = self.later_operation(tenant, failed, touches) else { return false };
        // Of what the hypervisor brings by itself each operation brings a part.
        let falls_short = falls_short || is_own && later.own;
        later.inherits |= in_part;
        later.moved |= moved;
        for (_, known) in later.before.iter_mut().filter(|(other, _)| *other == number) {
            let known = core::mem::replace(known, before.clone());
            // What the tenant has believed to be there.
            *lost = lost.take().or(known.filter(|_| is_own && before.is_none()));
        }
        later.lost.extend(lost.take().map(|lost| (number, lost)));
        if falls_short {
            later.again.push((number, short.unwrap_or_else(|| before.clone())));
        }
        true
    }

    /// Rules that came with a group's forms may be missing when that change fails. Entries that use the group are written again
    /// then; a later change by which an entry ceased to use it may only have modified them, which brings nothing (1.3).
    fn bring_overtaken(
        &mut self,
        tenant: TenantIndex,
        failed: u32,
        adds: &[(u32, Arc<[u8]>)],
        before: &[(u32, Option<Flow>)],
    ) {
        let adds: HashSet<(u32, &[u8])> =
            adds.iter().map(|(number, match_)| (*number, &**match_)).collect();
        let flows = self.tenants[tenant.0 as usize].flows.iter();
        let added = flows.filter(|(number, flow)| {
            flow.rules.iter().any(|rule| adds.contains(&(*number, &*rule.match_wire)))
        });
        let added = added.map(|(number, _)| number);
        let overtaken: Vec<u32> =
            added.filter(|number| before.iter().all(|(other, _)| other != number)).collect();
        for number in overtaken {
            if let Some(later) = self.later_operation(tenant, failed, |it| it.changes(number))
                && later.again.iter().all(|(other, _)| *other != number)
            {
                later.again.push((number, None));
            }
        }
    }

    /// The first operation of a tenant after one that failed that touches something.
    pub(crate) fn later_operation(
        &mut self,
        tenant: TenantIndex,
        failed: u32,
        touches: impl Fn(&Operation) -> bool,
    ) -> Option<&mut Operation> {
        let meter = self.tenants[tenant.0 as usize].flows.meter();
        let later = self.operations.iter_mut().filter(|(at, operation)| {
            operation.tenant == tenant && at.wrapping_sub(failed) < u32::MAX / 2 && {
                meter.add(1);
                touches(operation)
            }
        });
        later.min_by_key(|(at, _)| at.wrapping_sub(failed)).map(|(_, operation)| operation)
    }

    /// The last operation of a tenant that touches something.
    fn last_operation(
        &mut self,
        tenant: TenantIndex,
        touches: impl Fn(&Operation) -> bool,
    ) -> Option<&mut Operation> {
        let latest = self.next_operation;
        let all = self.operations.iter_mut();
        let all = all.filter(|(_, operation)| operation.tenant == tenant && touches(operation));
        all.max_by_key(|(at, _)| at.wrapping_sub(latest).wrapping_sub(1)).map(|(_, it)| it)
    }

    /// Whether a change that is on its way would, should it fail, give this number on the switch back to somebody.
    pub(crate) fn may_return(&self, kind: Kind, physical: u32) -> bool {
        let has = |before: &Numbered| before.instances.ids().any(|number| number == physical);
        let changes = self.operations.values().flat_map(|operation| &operation.numbers_before);
        changes.filter(|one| one.kind == kind).any(|one| one.before.as_ref().is_some_and(has))
    }

    /// Whether a change in flight deletes the group or meter without an owner that has this number on the switch.
    pub(crate) fn is_being_deleted(&self, kind: Kind, physical: u32) -> bool {
        let mut frees = self.operations.values().flat_map(|operation| &operation.frees);
        frees.any(|free| *free == (kind, physical))
    }

    /// Brings entries to the switch once more, as an operation of their own; those that change again meanwhile when they have.
    pub(super) fn submit_again(
        &mut self,
        tenant: TenantIndex,
        entries: Vec<(u32, Option<Flow>)>,
        now: Instant,
    ) {
        for (number, before) in entries {
            let Some(flow) = self.tenants[tenant.0 as usize].flows.get(number).cloned() else {
                continue;
            };
            let changes = |operation: &Operation| !operation.own && operation.changes(number);
            if let Some(last) = self.last_operation(tenant, changes) {
                // What it makes of the entry must not stand if the switch refuses it. What it goes back to is not all there.
                last.inherits = true;
                let adds = |rule: &Rule| {
                    let mut added = last.adds.iter();
                    added.any(|(other, it)| *other == number && *it == rule.match_wire)
                };
                let is_brought = flow.rules.iter().all(adds);
                if !is_brought && last.again.iter().all(|(other, _)| *other != number) {
                    last.again.push((number, before));
                }
                continue;
            }
            let cause = Cause { tenant, origin: None, operation: None, direct: false, now };
            if self.uses_numbers(&flow) && self.plan(tenant, &flow).is_err() {
                // What it uses is gone. A change in flight is undone for that reason, or no rule is possible for it.
                let is_changing = |it: &Operation| it.tenant == tenant && it.changes(number);
                if !self.operations.values().any(is_changing) {
                    self.give_up(&cause, number);
                }
                continue;
            }
            let cause = match before {
                None => self.begin_own(&cause, number),
                // Should that fail, too, then what was modified stands, as far as it could be.
                Some(before) => {
                    let before = Flow {
                        idle_timeout: before.idle_timeout,
                        hard_timeout: before.hard_timeout,
                        installed: before.installed,
                        flags: before.flags,
                        ..flow.clone()
                    };
                    let operation = self.begin(tenant);
                    self.remember(Some(operation), number, Some(before));
                    Cause { operation: Some(operation), ..cause }
                }
            };
            if let Some(operation) = cause.operation.and_then(|it| self.operations.get_mut(&it)) {
                operation.brings_again = true;
            }
            for rule in &flow.rules {
                self.submit_rule(&cause, number, &flow, rule, Change::Add, openflow::NO_BUFFER);
            }
            cause.operation.into_iter().for_each(|it| self.commit(it));
        }
    }

    /// Tells a tenant that an entry is gone, with the counts that are known.
    pub(crate) fn report_lost(&mut self, tenant: TenantIndex, flow: &Flow) {
        match self.version {
            Version::V1_0 => self.report_lost_v10(tenant, flow),
            _ => self.report_lost_v13(tenant, flow),
        }
    }
}

/// What a tenant is told whose group cannot be because the switch has no egress group for it.
const NO_EXIT: ErrorCode = openflow::error::v13::GROUP_MOD_FAILED_OUT_OF_GROUPS;

fn is_about_entries(code: ErrorCode) -> bool {
    code.type_ == openflow::error::v13::FLOW_MOD_FAILED_TABLE_FULL.type_
}
