//! The collection of unneeded egress groups.
//!
//! A tenant may delete a group and add it again, over and over. If Weir deleted the egress group each time at once,
//! Weir would soon add the egress group again. So Weir waits: a collection deletes all unneeded egress groups, and
//! comes 5 seconds after the first of these lost its last use. If the switch has no room for another group, the
//! collection comes at once. An egress group is needed if a group in the tenant's table sends by it, if a change in
//! flight uses it, or if undoing such a change would restore a group that sends by it. A deletion that the switch
//! refused is sent again in the next collection.

use crate::ids::TenantIndex;
use crate::store::Kind;
use crate::switch::Switch;
use crate::time::Instant;
use alloc::collections::BTreeSet;
use compile::egress_group::outputs;
use openflow::v13::PortNo;

impl Switch {
    /// When Weir looks for unneeded egress groups next.
    pub(crate) fn next_unused(&self) -> Option<Instant> {
        let is_busy = self.tenants.is_any_recovering() || self.datapath.is_reconciling();
        self.ids.next_collection().filter(|_| !is_busy)
    }

    /// Deletes unneeded egress groups, if it is time.
    pub(crate) fn settle_unused(&mut self, now: Instant) {
        if self.next_unused().is_some_and(|due| due <= now) {
            self.ids.begin_collection();
            for tenant in self.tenants.indices() {
                self.collect_egress_groups(tenant, &BTreeSet::new(), now);
            }
        }
        self.ids.plan_collection(now);
    }

    /// Deletes a tenant's egress groups that are neither needed nor in `wanted`.
    pub(super) fn collect_egress_groups(
        &mut self,
        tenant: TenantIndex,
        wanted: &BTreeSet<PortNo>,
        now: Instant,
    ) {
        if self.tenants[tenant].recovery.is_some() {
            self.ids.note_unneeded();
            return;
        }
        let mut unused = self.numbers(tenant, Kind::Group).egress_groups_by_output();
        if !unused.is_empty() {
            let needed = self.needed_egress_groups(tenant);
            let is_changing = |group| self.changes_of(tenant).any(|it| it.needs.contains(&group));
            unused.retain(|(output, group)| {
                !needed.contains(output) && !wanted.contains(output) && !is_changing(*group)
            });
        }
        for (_, group) in unused {
            self.replace_number(tenant, Kind::Group, group, None);
        }
        self.sweep_numbers(tenant, now);
    }

    /// The outputs for which groups need egress groups, in the present tables or in the tables before a change in
    /// flight.
    fn needed_egress_groups(&self, tenant: TenantIndex) -> BTreeSet<PortNo> {
        let state = &self.tenants[tenant];
        let mut needed = BTreeSet::new();
        if let Some(network) = state.network.as_deref() {
            let before = self.changes_of(tenant).flat_map(|change| &change.numbers_before);
            let before =
                before.filter(|one| one.kind == Kind::Group).filter_map(|one| one.before.as_ref());
            let groups = self.numbers(tenant, Kind::Group).iter().map(|(_, known)| known);
            for known in groups.chain(before) {
                needed.extend(known.group().iter().flat_map(|it| outputs(network, it)));
            }
        }
        needed
    }
}
