//! Undoing changes: what becomes of the tables when the switch refuses a part of an operation, or a rule times out while an
//! operation changes its entry.
//!
//! The table goes back, the switch gets the [difference](super::mend), and the tenant gets one error. Operations overlap:
//! one that came later on the same entry depends on the change that is undone, and takes over the earlier state of the table. If the
//! switch refuses that state, too, the entry is given up and its tenant told.
//!
//! That table, switch and store agree afterwards, whatever was refused and whatever timed out, is a property in
//! `tests/behaviour/agreement.rs`, and with groups in `tests/behaviour/groups_agree.rs`; that the result is the same as on a
//! switch that does one after the other, one in `tests/behaviour/in_turn.rs`.

use super::Switch;
use super::idle::in_turn;
use super::tables::Operation;
use crate::flows::{Flow, Rule};
use crate::ids::TenantIndex;
use crate::refusals::Verdict;
use crate::south::installed::{Deleted, Owner, RefusedRules, State};
use crate::south::pending::Origin;
use crate::store::Kind;
use crate::time::Instant;
use crate::v13::groups::undo::Extent;
use crate::v13::numbers::Numbered;
use alloc::vec::Vec;
use compile::{Reason, RuleKey};
use openflow::ErrorCode;

impl Switch {
    /// A rule of an entry has timed out on the switch. `None`: no change of the entry is on its way. Else it was the
    /// entry as it stood before that change, which is given if nothing is left of it.
    ///
    /// A new entry cannot be meant: timeouts are a second at least, and a change is confirmed far sooner.
    pub(crate) fn expire_during_changes(
        &mut self,
        tenant: TenantIndex,
        number: u32,
        key: &RuleKey,
        counted: (u64, u64),
        now: Instant,
    ) -> Option<Option<Flow>> {
        let projected = self.session.installed().projected(key);
        let stays = projected != State::Absent;
        if matches!(projected, State::Unknown(_)) {
            // It came before the modification, which then added the rule, or after it: bring it in either case.
            self.mend(&in_turn(tenant, now), [key.clone()]);
        }
        let latest = self.next_operation;
        let mut changes: Vec<(&u32, &mut Operation)> = self
            .operations
            .iter_mut()
            .filter(|(_, operation)| operation.tenant == tenant)
            .filter(|(_, operation)| operation.changes(number))
            .collect();
        changes.sort_unstable_by_key(|(at, _)| at.wrapping_sub(latest).wrapping_sub(1));
        let is_it = |rule: &Rule| rule.match_wire == key.match_wire;
        let (_, first) = changes.first_mut()?;
        if first.own {
            return stays.then_some(None);
        }
        let (_, below) = first.before.iter_mut().find(|(other, _)| *other == number)?;
        let Some(flow) = below.as_mut() else { return stays.then_some(None) };
        let Some(rule) = flow.rules.iter().position(is_it) else { return Some(None) };
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

    /// Somebody else has deleted a rule of an entry on the switch. If a change that is on its way adds the rule, or does if it is
    /// missing, then that may have been before or behind it: it is brought in either case, once, or given up. Says whether it is so.
    pub(crate) fn comes_though_deleted(
        &mut self,
        owner: Owner,
        key: &RuleKey,
        now: Instant,
    ) -> bool {
        match self.session.installed_mut().deleted_by_others(key, owner) {
            Deleted::Gone => return false,
            Deleted::Unsure => {
                self.mend(&in_turn(owner.tenant, now), [key.clone()]);
            }
            Deleted::UnsureAgain => self.give_up(&in_turn(owner.tenant, now), owner.number),
        }
        true
    }

    /// A rule of an entry is not on the switch any more. Gives the entry if that was all of it.
    pub(super) fn lose_rule(
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

    /// The switch has refused a part of an operation, with it these rules: everything goes back, and the tenant is told once.
    pub(crate) fn operation_failed(
        &mut self,
        operation: u32,
        origin: Option<&Origin>,
        verdict: impl Into<Verdict>,
        rules: RefusedRules,
        now: Instant,
    ) {
        let Verdict { refused, by } = verdict.into();
        let code = refused.code();
        let full = rules.keys.first().map(|key| key.table).filter(|_| self.means_full(code));
        let Some(Operation {
            tenant,
            messages,
            before,
            numbers_before,
            inherits,
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
            // Already undone, as if this were done: one error is enough.
            if let Some(tenant) = rules.tenant
                && self.mend(&in_turn(tenant, now), rules.keys)
            {
                self.doubt_barriers(tenant);
            }
            return;
        };
        if let Some((number, rule)) = revived {
            self.revival_failed(tenant, operation, number, &rule);
        }
        self.counters.own_refused += u64::from(own);
        if let Some(table) = full {
            self.table_was_full(table, now);
        }
        if code == openflow::error::v13::GROUP_MOD_FAILED_OUT_OF_GROUPS {
            self.hurry_unused(now);
        }
        let cause = in_turn(tenant, now);
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
        self.undo_numbers(&cause, operation, numbers_before, extent);
        match frees_again {
            _ if frees.is_empty() => {}
            true => self.keep_refused(tenant, frees),
            false => self.submit_freeing(&cause, &frees, true),
        }
        let mut keys = rules.keys;
        for (number, before) in before.into_iter().rev() {
            keys.extend(before.iter().flat_map(Flow::keys));
            let lost = losses.iter().position(|(other, _)| *other == number);
            let mut lost = lost.map(|at| losses.swap_remove(at).1);
            if self.hand_on((tenant, operation, own), number, (&before, &mut lost), &mut keys) {
                continue;
            }
            if before.as_ref().is_some_and(|it| self.is_replaced(tenant, number, it)) {
                self.tenants[tenant.0 as usize].leaving.remove(&number);
                continue;
            }
            let current = self.take_flow(&cause, number);
            keys.extend(current.iter().flat_map(Flow::keys));
            // Of its end the tenant hears by the error, or there is none.
            if !own {
                self.tenants[tenant.0 as usize].leaving.remove(&number);
            }
            match before.as_ref().and_then(|it| self.as_it_is(tenant, number, it)) {
                Some(wanted) => {
                    keys.extend(wanted.keys());
                    self.tenants[tenant.0 as usize].leaving.remove(&number);
                    self.put_flow(&cause, number, wanted);
                    self.keep_together(tenant, number);
                }
                None => {
                    if let Some(lost) = before.or(lost).or(current.filter(|_| own)) {
                        self.tenants[tenant.0 as usize].leaving.remove(&number);
                        self.report_lost(tenant, &lost);
                    }
                }
            }
        }
        let is_mended = self.mend(&cause, keys);
        // What was refused has changed nothing; only what was accepted beside it has to be undone on the switch.
        if is_mended || messages > 1 || own || inherits {
            self.doubt_barriers(tenant);
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
        self.operation_failed(operation, Some(&origin), refused, RefusedRules::default(), now);
        true
    }

    /// Whether another entry has come in the place of one that was deleted.
    fn is_replaced(&self, tenant: TenantIndex, number: u32, flow: &Flow) -> bool {
        let flows = &self.tenants[tenant.0 as usize].flows;
        flows.find(flow.table, &flow.match_, flow.priority).is_some_and(|other| other != number)
    }

    /// An entry that stands again uses groups and meters as they are now, the map and the ports. `None`: one is gone, so nothing
    /// can stand for it.
    fn as_it_is(&self, tenant: TenantIndex, number: u32, flow: &Flow) -> Option<Flow> {
        let rules = self.plan(tenant, flow).ok()?;
        let flow = Flow { rules, shadowed: Vec::new(), ..flow.clone() };
        let flows = &self.tenants[tenant.0 as usize].flows;
        // Others may own by now what it was on the switch.
        (!flows.collides(number, &flow)).then(|| flows.placed(number, flow))
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
    /// back to what was before both. Says whether there is one, and which rules are concerned.
    fn hand_on(
        &mut self,
        (tenant, failed, is_own): (TenantIndex, u32, bool),
        number: u32,
        (before, lost): (&Option<Flow>, &mut Option<Flow>),
        keys: &mut Vec<RuleKey>,
    ) -> bool {
        // What only brings an entry back has no result of its own.
        let touches = |later: &Operation| (is_own || !later.own) && later.changes(number);
        let Some(later) = self.later_operation(tenant, failed, touches) else { return false };
        for (_, known) in later.before.iter_mut().filter(|(other, _)| *other == number) {
            let known = core::mem::replace(known, before.clone());
            keys.extend(known.iter().flat_map(Flow::keys));
            // What the tenant has believed to be there.
            *lost = lost.take().or(known.filter(|_| is_own && before.is_none()));
        }
        later.lost.extend(lost.take().map(|lost| (number, lost)));
        let current = self.tenants[tenant.0 as usize].flows.get(number);
        keys.extend(current.into_iter().flat_map(Flow::keys));
        true
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
}

/// What a tenant is told whose group cannot be because the switch has no egress group for it.
const NO_EXIT: ErrorCode = openflow::error::v13::GROUP_MOD_FAILED_OUT_OF_GROUPS;

fn is_about_entries(code: ErrorCode) -> bool {
    code.type_ == openflow::error::v13::FLOW_MOD_FAILED_TABLE_FULL.type_
}
