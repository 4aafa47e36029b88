//! Steps 7 to 9 of a round: Weir repairs the switch, so that the switch holds the rules, groups and meters of the
//! tables.

use super::step::{Blame, Compare, Repair, Round, Step};
use crate::ids::TenantIndex;
use crate::switch::mend::difference::Difference;
use crate::switch::{Cause, Object, Switch, What, in_turn};
use crate::time::Instant;
use alloc::vec::Vec;
use hashbrown::{HashMap, HashSet};

impl Switch {
    // ---- 7. Comparing

    /// Begins to compare the rules that may differ. `None` if the next round is due, which compares them as well.
    pub(super) fn begin_to_compare(&mut self, tenant: TenantIndex) -> Option<Step> {
        let recovery = self.tenants[tenant].recovery.as_deref_mut()?;
        if recovery.findings.is_due {
            return None;
        }
        let compared = HashSet::with_capacity(recovery.keys.len());
        let keys = core::mem::take(&mut recovery.keys).into_iter();
        Some(Step::Compare(Compare { keys, compared, difference: Difference::default() }))
    }

    /// Compares rules. Returns whether all rules are compared.
    pub(super) fn compare_rules(
        &self,
        tenant: TenantIndex,
        compare: &mut Compare,
        left: &mut usize,
    ) -> bool {
        let Compare { keys, compared, difference } = compare;
        let mut rules = HashMap::new();
        while *left > 0 {
            let Some(key) = keys.next() else { return true };
            let cost = self.compare(tenant, &key, &mut rules, difference);
            *left = left.saturating_sub(cost);
            compared.insert(key);
        }
        false
    }

    pub(super) fn end_to_compare(
        &mut self,
        tenant: TenantIndex,
        it: &Round,
        compare: Compare,
    ) -> Step {
        let Compare { mut compared, difference, .. } = compare;
        if let Some(recovery) = self.tenants[tenant].recovery.as_deref_mut() {
            compared.extend(core::mem::take(&mut recovery.keys));
            recovery.keys = compared;
        }
        Step::Blame(Blame { changes: it.changes.clone().into_iter(), seen: 0 }, difference)
    }

    // ---- 8. Finding causes

    /// Notes the last change of each entry, group and meter. Returns whether all changes are examined.
    pub(super) fn find_causes(&self, it: &mut Round, blame: &mut Blame, left: &mut usize) -> bool {
        while *left > 0 {
            let Some(&at) = blame.changes.as_slice().first() else { return true };
            let change = self.change(at).filter(|change| change.is_applied());
            let entries = change.map_or(&[][..], |change| &change.before);
            let next = entries.iter().skip(blame.seen).take(*left);
            it.causes.extend(next.map(|(number, _)| (Object::Entry(*number), at)));
            let looked = entries.len().saturating_sub(blame.seen).min(*left);
            blame.seen += looked;
            *left = left.saturating_sub(looked.max(1));
            if blame.seen >= entries.len() {
                let numbers = change.iter().flat_map(|change| &change.numbers_before);
                it.causes.extend(numbers.map(|one| (Object::Number(one.kind, one.number), at)));
                blame.changes.next();
                blame.seen = 0;
            }
        }
        false
    }

    // ---- 9. Repairing

    /// Groups and meters come before the entries that use them.
    pub(super) fn begin_to_repair(&self, tenant: TenantIndex, difference: Difference) -> Repair {
        let numbers = match self.semantics().has_groups {
            true => self.numbers_in_order(tenant),
            false => Vec::new(),
        };
        let (deletions, additions) = difference.into_parts();
        Repair {
            numbers: numbers.into_iter(),
            deletions: deletions.into_iter(),
            additions: additions.into_iter(),
        }
    }

    /// Whether the next round is due. Then the present round ends without a result.
    pub(super) fn is_next_round_due(&self, tenant: TenantIndex) -> bool {
        self.tenants[tenant].recovery.as_deref().is_some_and(|it| it.findings.is_due)
    }

    /// Sends repairs. Returns whether all repairs are sent.
    pub(super) fn repair(
        &mut self,
        tenant: TenantIndex,
        it: &mut Round,
        repair: &mut Repair,
        left: &mut usize,
        now: Instant,
    ) -> bool {
        while *left > 0 {
            if let Some((kind, number)) = repair.numbers.next() {
                *left -= 1;
                for message in self.number_difference(tenant, kind, number) {
                    let object = Object::Number(kind, number);
                    let cause = self.begin_caused(tenant, it, object, now);
                    self.submit_number(&cause, &message);
                    it.is_repaired = true;
                }
                continue;
            }
            if let Some((key, owner)) = repair.deletions.next() {
                let cause = self.begin_caused(tenant, it, Object::Entry(owner.number), now);
                self.submit_deletion(&cause, key, owner);
                *left -= 1;
            } else if let Some((number, rules)) = repair.additions.next() {
                let cause = self.begin_caused(tenant, it, Object::Entry(number), now);
                self.submit_rules_of(&cause, number, &rules);
                *left = left.saturating_sub(rules.len());
            } else {
                return true;
            }
            it.is_repaired = true;
        }
        false
    }

    /// Groups and meters that no table needs any more are deleted last. If Weir has sent no message, tables and switch
    /// agree.
    pub(super) fn end_to_repair(
        &mut self,
        tenant: TenantIndex,
        it: &mut Round,
        now: Instant,
    ) -> Option<Step> {
        if self.semantics().has_groups {
            it.is_repaired |= self.delete_unwanted(&in_turn(tenant, now));
        }
        (!it.is_repaired).then_some(Step::Report)
    }

    fn begin_caused(
        &mut self,
        tenant: TenantIndex,
        it: &Round,
        object: Object,
        now: Instant,
    ) -> Cause {
        let repair = What::Repair { object, cause: it.causes.get(&object).copied() };
        self.begin_own(&in_turn(tenant, now), repair)
    }
}
