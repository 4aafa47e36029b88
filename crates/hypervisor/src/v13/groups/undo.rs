//! Undoing a change of groups or meters that the switch has refused in part.
//!
//! What is on the switch then is not known in full: what was modified is modified back, what was deleted is added again,
//! and what was added is deleted, in this order, with the entries that use groups in between. A number stays in use until
//! it is known to be gone. A change that was one message has changed nothing.

use crate::flows::Flow;
use crate::flows::named::groups_of;
use crate::ids::TenantIndex;
use crate::store::Kind;
use crate::switch::{Cause, NumberBefore, Operation, Switch};
use crate::v13::numbers::Numbered;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use compile::egress_group::is_egress_group;
use openflow::v13::GroupModCommand;

/// What was done to the switch for a change that failed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Nothing: it was refused as a whole.
    Nothing,
    /// Some of it.
    Part,
    /// Some of it, and of changes before it that failed as well.
    Inherited,
}

impl Switch {
    /// Groups or meters go back to what they were; or a later change of them does, should that fail as well.
    pub(crate) fn undo_numbers(
        &mut self,
        cause: &Cause,
        failed: u32,
        undone: Vec<NumberBefore>,
        extent: Extent,
    ) {
        let tenant = cause.tenant;
        let (mut told, mut absent) = (BTreeSet::new(), BTreeSet::new());
        let mut unreferenced: Vec<(Kind, Vec<u32>)> = Vec::new();
        let mut has_groups = false;
        for one in undone {
            let Some(one) = self.hand_number_on(tenant, failed, one, extent) else { continue };
            let NumberBefore { kind, number, before, made, dropped, deleted, network, .. } = one;
            let is_egress = kind == Kind::Group && is_egress_group(number);
            if kind == Kind::Group && !is_egress {
                has_groups = true;
                let now = self.tenants[tenant.0 as usize].network.as_ref();
                let is_same = match (&network, now) {
                    (Some(then), Some(now)) => Arc::ptr_eq(then, now),
                    (then, now) => then.is_none() && now.is_none(),
                };
                let is_unsure = extent == Extent::Inherited;
                if !is_same || extent == Extent::Part && deleted.is_empty() || is_unsure {
                    told.insert(number);
                }
                if extent == Extent::Part && !deleted.is_empty() || is_unsure {
                    absent.insert(number);
                }
            }
            let current = self.replace_number(tenant, kind, number, before);
            // What it watches may have gone meanwhile, or come.
            if kind == Kind::Group && self.watches_groups(tenant, number) {
                told.insert(number);
            }
            let is_there = self.numbers(tenant, kind).any(number).is_some();
            if kind == Kind::Group && current.is_some() != is_there {
                told.extend(self.watchers_of(tenant, |group| group == number));
            }
            // What names it names others of its forms.
            let forms = |known: Option<&Numbered>| known.map(|it| it.instances.variants().clone());
            if kind == Kind::Group
                && forms(current.as_ref()) != forms(self.numbers(tenant, kind).any(number))
            {
                told.extend(self.callers_of(tenant, number));
            }
            // Also those that it has got meanwhile with another.
            let mut gone: Vec<u32> = current.iter().flat_map(|it| it.instances.ids()).collect();
            match extent {
                // What names an egress group is on its way: till it is there the number is not another's.
                Extent::Nothing if !is_egress => {
                    gone.retain(|number| !made.contains(number));
                    made.iter().for_each(|number| self.free_number(kind, *number));
                }
                _ => gone.extend([made, dropped, deleted].concat()),
            }
            if is_egress {
                gone.iter().for_each(|number| self.mark_for_deletion(tenant, kind, *number));
                gone = self.delete_users(tenant, number, gone);
            }
            unreferenced.push((kind, gone));
        }
        if has_groups {
            let (messages, gone) =
                self.settle_groups(tenant, &|_| GroupModCommand::MODIFY, &|it| told.contains(&it));
            self.bring(cause, &messages);
            self.add_again(cause, &absent);
            unreferenced.push((Kind::Group, gone));
        }
        if !unreferenced.is_empty() {
            self.replan_users(cause, Flow::names_numbers);
        }
        // What names others goes before them.
        for (kind, numbers) in unreferenced.into_iter().rev() {
            self.delete_unreferenced(cause, kind, numbers);
        }
    }

    /// If a later operation has changed the group or meter too, that one's result stands; should it fail as well, it goes
    /// back to what was before both. Else the change is given back.
    fn hand_number_on(
        &mut self,
        tenant: TenantIndex,
        failed: u32,
        one: NumberBefore,
        extent: Extent,
    ) -> Option<NumberBefore> {
        let is_it = |other: &NumberBefore| (other.kind, other.number) == (one.kind, one.number);
        // What only follows others depends on this change, and does not set the group again.
        let followers = self.operations.values_mut().flat_map(|later| &mut later.numbers_before);
        for follower in followers.filter(|other| other.follows && is_it(other)) {
            follower.before.clone_from(&one.before);
        }
        let is_it = |other: &NumberBefore| !other.follows && is_it(other);
        let touches = |later: &Operation| later.numbers_before.iter().any(is_it);
        let Some(later) = self.later_operation(tenant, failed, touches) else { return Some(one) };
        later.inherits |= extent != Extent::Nothing;
        if let Some(known) = later.numbers_before.iter_mut().find(|other| is_it(other)) {
            known.before = one.before;
            known.made.extend(one.made);
            known.dropped.extend(one.dropped);
            // The switch may have refused to.
            known.dropped.extend(one.deleted);
        }
        None
    }

    /// Adds those groups that the switch may not have any more. If it had to, entries that used them are gone as well.
    fn add_again(&mut self, cause: &Cause, absent: &BTreeSet<u32>) {
        for number in self.groups_in_order(cause.tenant) {
            let known = self.numbers(cause.tenant, Kind::Group).get(number).cloned();
            let Some(known) = known.filter(|_| absent.contains(&number)) else { continue };
            let formed = self.form_group(cause.tenant, known, &|_| GroupModCommand::ADD);
            for message in formed.map(|formed| formed.messages).unwrap_or_default() {
                let cause = self.begin_replanning(cause);
                self.bring_as(&cause, number, &message, 0);
            }
        }
    }

    /// Whether an entry that went with a group is about to be installed again: the group was deleted in part, and the whole
    /// is undone.
    pub(crate) fn brings_groups_back(&self, tenant: TenantIndex, number: u32) -> bool {
        let flow = self.tenants[tenant.0 as usize].flows.get(number);
        let groups = self.numbers(tenant, Kind::Group);
        let mut operations = self.operations.values();
        operations.any(|operation| operation.tenant == tenant && operation.replans)
            && flow.is_some_and(|flow| {
                groups_of(&flow.actions).into_iter().all(|group| groups.get(group).is_some())
            })
    }
}
