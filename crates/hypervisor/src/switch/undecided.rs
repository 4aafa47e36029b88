//! What changes that are on their way leave open: what a tenant has once the switch has done them, or refused them.
//!
//! Which requests wait for that, and how, is in [`super::postponed`].

use super::Switch;
use super::tables::Operation;
use crate::flows::Flow;
use crate::flows::named::{groups_of, named_of};
use crate::ids::TenantIndex;
use crate::store::Kind;

impl Switch {
    /// Whether a change that is on its way, of those by which that may be, decides what a request finds that reads this of
    /// entries.
    pub(crate) fn is_undecided<T: PartialEq>(
        &self,
        tenant: TenantIndex,
        decides: impl Fn(&Operation) -> bool,
        read: impl Fn(&Flow) -> Option<T>,
    ) -> bool {
        let flows = &self.tenants[tenant.0 as usize].flows;
        let read_now = |number: &u32| flows.get(*number).and_then(&read);
        self.changes_of(tenant).filter(|change| decides(change)).any(|change| {
            flows.meter().add(2 * change.before.len() as u64);
            let mut before = change.before.iter();
            before.any(|(number, it)| it.as_ref().and_then(&read) != read_now(number))
        })
    }

    /// By the refusal of such changes entries stand again that are in no table. What comes behind does not find them there, to
    /// delete or to replace them.
    pub(super) fn may_bring_back(
        &mut self,
        tenant: TenantIndex,
        is_meant: impl Fn(&Operation) -> bool,
    ) {
        let Switch { operations, tenants, .. } = self;
        let state = &mut tenants[tenant.0 as usize];
        state.returning.retain(|at| operations.contains_key(at));
        let is_meant = |at: &&u32| operations.get(*at).is_some_and(&is_meant);
        state.returning.extend(state.operations.iter().filter(is_meant));
    }

    /// Those entries.
    pub(crate) fn returning(&self, tenant: TenantIndex) -> impl Iterator<Item = &Flow> {
        let state = &self.tenants[tenant.0 as usize];
        let flows = &state.flows;
        let changes = state.returning.iter().filter_map(|at| self.operations.get(at));
        let changes = changes.inspect(|change| flows.meter().add(change.before.len() as u64));
        let before = changes.flat_map(|change| &change.before);
        let before = before.filter(|(number, _)| flows.get(*number).is_none());
        before.filter_map(|(_, before)| before.as_ref())
    }

    /// How many entries a tenant may have, and how many rules they may be of if some come to these tables, beside those that may
    /// come back.
    pub(crate) fn limits_left(
        &self,
        tenant: TenantIndex,
        tables: impl IntoIterator<Item = u8>,
    ) -> (usize, u32) {
        let state = &self.tenants[tenant.0 as usize];
        let both = |(count, rules), flow: &Flow| (count + 1, rules + flow.planned());
        let (returning, reserved) = self.returning(tenant).fold((0, state.rules_replaced), both);
        let reserved = u32::try_from(reserved).unwrap_or(u32::MAX);
        let rules = self.rules_left(tenant, tables);
        ((state.limits.flows as usize).saturating_sub(returning), rules.saturating_sub(reserved))
    }

    /// Whether entries are about to use such a group or meter, or to cease to: with them stands or falls what goes with it.
    pub(crate) fn has_open_users(
        &self,
        tenant: TenantIndex,
        kind: Kind,
        is_meant: impl Fn(u32) -> bool,
    ) -> bool {
        let flows = &self.tenants[tenant.0 as usize].flows;
        let uses = |flow: &Flow| named_of(kind, &flow.actions).into_iter().any(&is_meant);
        let changes = self.changes_of(tenant);
        let changes = changes.inspect(|change| flows.meter().add(2 * change.before.len() as u64));
        let mut changed = changes.flat_map(|change| &change.before);
        changed.any(|(number, before)| before.iter().chain(flows.get(*number)).any(uses))
    }

    /// Whether a group that an entry sends to is about to become another one: what that makes of the entry is not known (1.3).
    pub(crate) fn sends_to_open(&self, tenant: TenantIndex, instructions: &[u8]) -> bool {
        let groups = groups_of(instructions);
        !groups.is_empty() && self.is_becoming(tenant, |group| groups.contains(&group))
    }

    /// Whether such a group is about to become another one.
    pub(crate) fn is_becoming(&self, tenant: TenantIndex, is_meant: impl Fn(u32) -> bool) -> bool {
        let mut changed = self.changes_of(tenant).flat_map(|change| &change.numbers_before);
        changed.any(|one| one.kind == Kind::Group && one.before.is_some() && is_meant(one.number))
    }

    /// Whether such a group or meter is about to come or to go.
    pub(crate) fn is_open(
        &self,
        tenant: TenantIndex,
        kind: Kind,
        is_meant: impl Fn(u32) -> bool,
    ) -> bool {
        let known = self.numbers(tenant, kind);
        let mut changed = self.changes_of(tenant).flat_map(|change| &change.numbers_before);
        changed.any(|one| {
            one.kind == kind
                && is_meant(one.number)
                && one.before.is_some() != known.get(one.number).is_some()
        })
    }

    pub(super) fn changes_of(&self, tenant: TenantIndex) -> impl Iterator<Item = &Operation> {
        let changes = self.tenants[tenant.0 as usize].operations.iter();
        changes.filter_map(|at| self.operations.get(at))
    }
}
