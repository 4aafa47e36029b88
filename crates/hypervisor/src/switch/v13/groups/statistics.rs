//! Statistics of groups: the sum of the counters of a group's instances.

use crate::ids::TenantIndex;
use crate::named::groups_of;
use crate::store::Kind;
use crate::switch::Switch;
use crate::v13::numbers::GroupOrMeter;
use crate::v13::statistics::{GroupSums, ask};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use compile::egress_group::is_egress_group;
use compile::group::is_left_out;
use openflow::v13::{BucketCounter, GROUP_ALL, GroupStats, MultipartRequestBody as Body};
use openflow::{Encode, List};

/// Up to this many groups on the switch, each has a question of its own.
const MOST_APART: usize = 64;

impl Switch {
    /// The questions to the switch for a tenant's group, or for all its groups. Nothing if there is no such group. For
    /// many groups, one question asks for the groups of all tenants, and the answer is filtered.
    pub(crate) fn group_questions(&self, tenant: TenantIndex, number: u32) -> Vec<u8> {
        let wanted: Vec<u32> = match number {
            GROUP_ALL => {
                let own = self.own_groups(tenant);
                let apart = own.len() <= MOST_APART;
                if apart { own.into_keys().collect() } else { Vec::from([GROUP_ALL]) }
            }
            _ => {
                let known = self.numbers(tenant, Kind::Group).get(number);
                known.into_iter().flat_map(|known| known.instances.ids()).collect()
            }
        };
        wanted.into_iter().flat_map(|group_id| ask(Body::Group { group_id })).collect()
    }

    /// A tenant's groups by their ids on the switch, without egress groups, which the tenant does not know.
    fn own_groups(&self, tenant: TenantIndex) -> BTreeMap<u32, u32> {
        let own = self.numbers(tenant, Kind::Group).iter();
        let own = own.filter(|(number, _)| !is_egress_group(*number));
        own.flat_map(|(number, known)| known.instances.ids().map(move |at| (at, number))).collect()
    }

    /// The statistics of a tenant's groups in an answer. Other groups must not take up the room for the answer.
    pub(crate) fn of_own_groups(&self, tenant: TenantIndex, entries: &[u8]) -> Vec<u8> {
        let own = self.own_groups(tenant);
        let counted = List::<GroupStats<'_>>::parse(entries).unwrap_or_default().iter();
        let mut kept = Vec::new();
        counted
            .filter(|counted| own.contains_key(&counted.group_id))
            .for_each(|counted| Encode::write(&counted, &mut kept));
        kept
    }

    /// The counters of a tenant's groups, from the filtered answer.
    pub(crate) fn group_statistics(&self, tenant: TenantIndex, answers: &[u8]) -> Vec<Vec<u8>> {
        let state = &self.tenants[tenant];
        let own = self.own_groups(tenant);
        let mut sums = GroupSums::default();
        for counted in List::<GroupStats<'_>>::parse(answers).unwrap_or_default() {
            let Some(&group_id) = own.get(&counted.group_id) else { continue };
            let mut counted = GroupStats { group_id, ..counted };
            if state.network.is_some() {
                // On the switch instances refer to instances, and one entry may have several rules.
                counted.ref_count = self.references_to(tenant, group_id);
            }
            sums.add(counted, self.bucket_counters(tenant, &counted));
        }
        sums.written()
    }

    /// A group's counters by the tenant's buckets. Buckets that are left out on the switch count nothing.
    fn bucket_counters(&self, tenant: TenantIndex, counted: &GroupStats<'_>) -> Vec<BucketCounter> {
        let known = self.numbers(tenant, Kind::Group).get(counted.group_id);
        let known = known.and_then(GroupOrMeter::group);
        let mut counted = counted.bucket_stats.iter();
        let cx = self.context(tenant);
        let mut counters = Vec::new();
        if let Some(known) = known {
            for bucket in known.buckets {
                match is_left_out(&cx, known.type_, &bucket) {
                    true => counters.push(BucketCounter::default()),
                    false => counters.extend(counted.next()),
                }
            }
        }
        counters.extend(counted);
        counters
    }

    /// How many of the tenant's entries and groups send to a group.
    fn references_to(&self, tenant: TenantIndex, number: u32) -> u32 {
        let flows = self.tenants[tenant].flows.iter();
        let uses = |actions: &[u8]| groups_of(actions).contains(&number);
        let entries = flows.filter(|(_, flow)| uses(&flow.actions)).count();
        u32::try_from(entries + self.callers_of(tenant, number).len()).unwrap_or(u32::MAX)
    }
}
