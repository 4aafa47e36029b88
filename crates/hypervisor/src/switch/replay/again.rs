//! Steps 1 to 6 of a round of a replay: Weir applies the requests of the log to the tables again, without the refused
//! changes.

use super::recovery::Back;
use super::step::{Apply, Present, Restore, Round};
use crate::flows::Flow;
use crate::ids::TenantIndex;
use crate::south::reports::Age;
use crate::store::Kind;
use crate::switch::bulk::change::BulkChange;
use crate::switch::logged::Outcome;
use crate::switch::removed::{DELETE, HARD_TIMEOUT, IDLE_TIMEOUT};
use crate::switch::timeouts::states::Ended;
use crate::switch::{Cause, Gone, Object, Request, Switch};
use crate::time::Instant;
use crate::work::{CHANGE, PLAN};
use alloc::boxed::Box;
use alloc::vec::Vec;
use compile::{Refused, Variant};
use openflow::Header;

/// The examined entries and rules that count as the work for one entry.
const ENTRY: u64 = PLAN + 3 * CHANGE;

impl Switch {
    // ---- 1. Restoring

    /// Restores the state before the changes, the last change first. Returns whether all of it is restored.
    pub(super) fn restore_before(
        &mut self,
        tenant: TenantIndex,
        restore: &mut Restore,
        it: &mut Round,
        left: &mut usize,
        now: Instant,
    ) -> bool {
        while *left > 0 {
            *left -= 1;
            if let Some((number, before)) = restore.entries.pop() {
                self.restore_entry(tenant, number, before, now);
                continue;
            }
            let Some(at) = restore.changes.pop() else { return true };
            let taken = self.change_mut(at).map(|change| change.take_back());
            let Some((entries, numbers)) = taken else { continue };
            it.has_numbers |= !numbers.is_empty();
            for one in numbers.into_iter().rev() {
                self.note_ids(tenant, one.kind, one.number);
                self.replace_number(tenant, one.kind, one.number, one.before);
            }
            restore.entries = entries;
        }
        false
    }

    fn note_ids(&mut self, tenant: TenantIndex, kind: Kind, number: u32) {
        let state = &mut self.tenants[tenant];
        let Some(recovery) = state.recovery.as_deref_mut() else { return };
        let instances = state.numbers.of(kind).any(number).map(|it| &it.instances);
        for (variant, id) in instances.into_iter().flat_map(|it| it.iter()) {
            recovery.ids.entry((kind, number, variant)).or_insert(id);
        }
    }

    /// Takes the id on the switch that a group or meter had before the replay.
    pub(crate) fn id_again(
        &mut self,
        tenant: TenantIndex,
        kind: Kind,
        number: u32,
        variant: Variant,
    ) -> Option<u32> {
        let recovery = self.tenants[tenant].recovery.as_deref_mut()?;
        recovery.ids.remove(&(kind, number, variant))
    }

    fn restore_entry(
        &mut self,
        tenant: TenantIndex,
        number: u32,
        before: Option<Flow>,
        now: Instant,
    ) {
        let cause = Cause::own(tenant, now);
        let Some(mut flow) = before else {
            self.take_flow(&cause, number);
            return;
        };
        if let Some(current) = self.tenants[tenant].flows.get(number)
            && current.counts_since == flow.counts_since
        {
            // The counters of rules that were removed since.
            flow.past.packets = flow.past.packets.max(current.past.packets);
            flow.past.bytes = flow.past.bytes.max(current.past.bytes);
        }
        let leaving = self.tenants[tenant].timeouts.take_leaving(number);
        let Some(recovery) = self.tenants[tenant].recovery.as_deref_mut() else { return };
        let ended = recovery.ended.take(number).map(Back::Ended);
        if let Some(back) = leaving.map(Back::Leaving).or(ended) {
            recovery.back.entry(number).or_insert(back);
        }
        self.put_flow(&cause, number, flow);
    }

    // ---- 2. Removals

    /// The switch has removed a rule before all changes that are about to be applied again.
    pub(super) fn happened_before(&mut self, tenant: TenantIndex, gone: Gone, now: Instant) {
        let Gone { number, ref key, reason, counted, stood } = gone;
        let flow = self.tenants[tenant].flows.get_mut(number);
        // Without the entry, a change adds the entry and its rule: the difference installs the rule again.
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
            self.report_after(tenant, Ended { number, flow, reason, stood });
        }
    }

    // ---- 3. Applying again

    /// Removes groups and meters that cannot be on the switch. Then the changes can be applied again.
    pub(super) fn begin_to_apply(&mut self, tenant: TenantIndex, it: &Round) -> Apply {
        for object in &it.findings.evicted {
            self.evict(tenant, *object);
        }
        Apply { changes: it.changes.clone().into_iter(), present: Present::Nothing }
    }

    fn evict(&mut self, tenant: TenantIndex, object: Object) {
        match object {
            Object::Entry(number) => {
                if let Some(recovery) = self.tenants[tenant].recovery.as_deref_mut() {
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

    /// Applies changes again. Returns whether all changes are applied.
    pub(super) fn apply_changes(
        &mut self,
        tenant: TenantIndex,
        apply: &mut Apply,
        it: &mut Round,
        left: &mut usize,
        now: Instant,
    ) -> bool {
        while *left > 0 {
            let meter = self.tenants[tenant].flows.meter();
            let examined = meter.total();
            apply.present = match core::mem::take(&mut apply.present) {
                Present::Nothing => match apply.changes.next() {
                    Some(at) => self.apply_again(tenant, at),
                    None => return true,
                },
                Present::Batches(at, batches) => self.apply_batch(at, *batches),
                Present::Refused(mut restore) => {
                    match self.restore_before(tenant, &mut restore, it, left, now) {
                        true => Present::Nothing,
                        false => Present::Refused(restore),
                    }
                }
            };
            let examined = self.tenants[tenant].flows.meter().total() - examined;
            *left = left.saturating_sub(1 + (examined / ENTRY) as usize);
        }
        false
    }

    /// Applies a change again, to the present tables; of a change of many entries, a batch.
    fn apply_again(&mut self, tenant: TenantIndex, at: u32) -> Present {
        let Some(change) = self.change_mut(at) else { return Present::Nothing };
        if matches!(change.outcome, Outcome::Dropped(_)) || change.configures.is_some() {
            return Present::Nothing;
        }
        let (frame, origin, now) = (core::mem::take(&mut change.frame), change.origin, change.at);
        self.operations.begin_replay(at);
        let applied = match Header::parse(&frame) {
            Ok(header) => {
                let controller = origin.controller;
                self.apply(&Request { tenant, controller, header, frame: &frame, now })
            }
            // Weir could read the message when it came.
            Err(_) => Ok(()),
        };
        if let Some(change) = self.change_mut(at) {
            change.frame = frame;
        }
        let recovery = self.tenants[tenant].recovery.as_deref_mut();
        let batches = recovery.and_then(|it| it.batches.take());
        self.end_to_apply_one(at, applied, batches)
    }

    fn apply_batch(&mut self, at: u32, mut batches: BulkChange) -> Present {
        self.operations.begin_replay(at);
        let applied = self.change_batch(&mut batches);
        let more = Some(batches).filter(|it| !it.is_done());
        self.end_to_apply_one(at, applied, more)
    }

    fn end_to_apply_one(
        &mut self,
        at: u32,
        applied: Result<(), Refused>,
        more: Option<BulkChange>,
    ) -> Present {
        self.operations.end_replay();
        let outcome = match applied {
            Ok(()) => Outcome::Applied,
            Err(refused) => Outcome::Refused(refused.into()),
        };
        if let Some(change) = self.change_mut(at) {
            change.outcome = outcome;
        }
        match (applied, more) {
            (Ok(()), Some(batches)) => Present::Batches(at, Box::new(batches)),
            (Ok(()), None) => Present::Nothing,
            (Err(_), _) => Present::Refused(Restore::new(Vec::from([at]))),
        }
    }

    /// All changes are applied again. Returns the entries that cannot be on the switch.
    pub(super) fn end_to_apply(&mut self, tenant: TenantIndex) -> Vec<u32> {
        let recovery = self.tenants[tenant].recovery.as_deref_mut();
        let evicted = recovery.map(|it| {
            it.ids.clear();
            it.evicted.iter().copied().collect()
        });
        evicted.unwrap_or_default()
    }

    // ---- 4. Evicting entries

    pub(super) fn evict_entry(&mut self, tenant: TenantIndex, number: u32, now: Instant) {
        if let Some(flow) = self.take_flow(&Cause::own(tenant, now), number) {
            self.report_after(
                tenant,
                Ended { number, flow, reason: DELETE, stood: Age::default() },
            );
        }
    }

    // ---- 5. Compiling again

    /// Groups that may have been compiled for other groups, ports or another map than the present ones.
    pub(super) fn groups_to_reform(&mut self, tenant: TenantIndex, it: &Round) -> Vec<u32> {
        match it.has_numbers && self.semantics().has_groups {
            true => self.begin_to_reform(tenant),
            false => Vec::new(),
        }
    }

    /// Changed entries, and entries that use groups that may have changed.
    pub(super) fn begin_to_compile(&self, tenant: TenantIndex, has_numbers: bool) -> Vec<u32> {
        let state = &self.tenants[tenant];
        let changed = state.recovery.iter().flat_map(|it| it.entries.iter().copied());
        let mut numbers: Vec<u32> = changed.collect();
        if has_numbers && self.semantics().has_groups {
            let using = state.flows.iter().filter(|(_, flow)| flow.names_numbers());
            numbers.extend(using.map(|(number, _)| number));
            numbers.sort_unstable();
            numbers.dedup();
        }
        numbers
    }

    pub(super) fn compile_again(&mut self, tenant: TenantIndex, number: u32, now: Instant) {
        let Some(flow) = self.tenants[tenant].flows.get(number) else { return };
        let planned = self.plan(tenant, flow);
        let flows = &self.tenants[tenant].flows;
        let wanted =
            planned.map(|rules| Flow { rules, shadowed: Default::default(), ..flow.clone() });
        let wanted = wanted.ok().filter(|it| !flows.collides(number, it));
        match wanted.map(|it| flows.placed(number, it)) {
            None => self.evict_entry(tenant, number, now),
            Some(wanted) if wanted.has_same_rules(flow) => {}
            Some(wanted) => self.put_flow(&Cause::own(tenant, now), number, wanted),
        }
        self.keep_together(tenant, number);
    }

    // ---- 6. Taking over

    /// Entries take over rules that other entries have given up. Returns whether no such rule is left.
    pub(super) fn take_over_freed(&mut self, tenant: TenantIndex, left: &mut usize) -> bool {
        let state = &mut self.tenants[tenant];
        while *left > 0 && state.flows.has_freed() {
            let heirs = state.flows.heirs(*left);
            *left = left.saturating_sub(heirs.len().max(1));
            for (number, _, rule) in heirs {
                let table = state.flows.get(number).map(|flow| flow.table);
                if let (Some(table), Some(recovery)) = (table, state.recovery.as_deref_mut()) {
                    recovery.keys.insert(rule.key(table));
                }
            }
        }
        if state.flows.has_freed() {
            return false;
        }
        self.tenants.forget_freed(tenant);
        true
    }
}
