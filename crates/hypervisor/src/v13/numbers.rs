//! Groups and meters: each tenant numbers its own; on the switch they are numbered for all.
//!
//! A number on the switch is in use from when a change that takes it is made until a barrier has shown that it is not
//! there any more. Groups that are to be deleted are stored until then, so that none is left behind by a crash.

use crate::flows::Flow;
use crate::flows::named::named_of;
use crate::ids::TenantIndex;
use crate::policy::TenantId;
use crate::south::installed::{Effect, Owner};
use crate::store::{Kind, StoreKey, StoreOp};
use crate::switch::{Cause, NumberBefore, Request, Switch};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::btree_map::Entry;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use compile::RuleKey;
use compile::class::TagState;
use compile::egress_group::{is_egress_group, output_described};
use compile::network::IngressPort;
use compile::{Instances, Variant};
use hashbrown::HashMap;
use openflow::error::v13 as code;
use openflow::v13::{
    GROUP_MAX, GroupDesc, GroupMod, GroupModCommand, GroupType, MeterBand, MeterConfig, MeterFlags,
    MeterMod, MeterModCommand, PortNo,
};
use openflow::{Encode, ErrorCode, List, TooLong, Version};

/// A tenant's numbers, of groups or of meters.
#[derive(Default)]
pub(crate) struct Numbers {
    known: HashMap<u32, Numbered>,
    /// Each number on the switch, with the tenant's that it belongs to.
    by_physical: BTreeSet<(u32, u32)>,
    /// Those of egress groups, by the outputs in whose place they stand.
    egress_groups: BTreeMap<PortNo, u32>,
}

/// In the place of an ingress port, and of the switch's, in the store.
const NO_PORT: u32 = 0;

/// One group or meter.
#[derive(Clone)]
pub(crate) struct Numbered {
    /// Its ids on the switch; a meter has one.
    pub instances: Instances,
    /// The body of the GROUP_MOD or METER_MOD by which the tenant last described it.
    pub body: Box<[u8]>,
}

/// First bytes of a stored group that has several instances. No id on the switch is like that.
const WITH_VARIANTS: u32 = u32::MAX - 4;

impl Numbered {
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut write = |number: u32| out.extend_from_slice(&number.to_be_bytes());
        let variants = self.instances.variants();
        if !variants.is_empty() {
            write(WITH_VARIANTS);
            write(variants.len() as u32);
            for (variant, &id) in variants {
                write(variant.ingress.map_or(NO_PORT, |ingress| ingress.port));
                write(variant.ingress.map_or(NO_PORT, |ingress| ingress.at));
                write(u32::from(variant.tag == TagState::Tagged));
                write(id);
            }
        }
        write(self.instances.id());
        out.extend_from_slice(&self.body);
        out
    }

    fn from_bytes(mut bytes: &[u8]) -> Option<Numbered> {
        let mut number = || {
            let (first, rest) = bytes.split_first_chunk::<4>()?;
            bytes = rest;
            Some(u32::from_be_bytes(*first))
        };
        let mut variants = BTreeMap::new();
        let mut id = number()?;
        if id == WITH_VARIANTS {
            for _ in 0..number()? {
                let port = Some(number()?).filter(|port| *port != NO_PORT);
                let at = number()?;
                let ingress = port.map(|port| IngressPort { port, at });
                let tag = match number()? {
                    0 => TagState::Untagged,
                    1 => TagState::Tagged,
                    _ => return None,
                };
                let variant = Variant { ingress, tag };
                variants.insert(Some(variant).filter(|it| *it != Variant::default())?, number()?);
            }
            id = number()?;
        }
        Some(Numbered { instances: Instances::new(id, variants), body: bytes.into() })
    }
}

impl Numbers {
    /// One of the tenant's.
    pub(crate) fn get(&self, number: u32) -> Option<&Numbered> {
        self.any(number).filter(|_| !is_egress_group(number))
    }

    /// One of the tenant's, or an egress group.
    pub(crate) fn any(&self, number: u32) -> Option<&Numbered> {
        self.known.get(&number)
    }

    /// The egress group for an output.
    pub(crate) fn egress_group(&self, output: PortNo) -> Option<u32> {
        self.egress_groups.get(&output).copied()
    }

    fn insert(&mut self, number: u32, numbered: Numbered) -> Option<Numbered> {
        if is_egress_group(number)
            && let Some(output) = output_described(&numbered.body)
        {
            self.egress_groups.insert(output, number);
        }
        let before = self.take(number);
        self.by_physical.extend(numbered.instances.ids().map(|physical| (physical, number)));
        self.known.insert(number, numbered);
        before
    }

    fn remove(&mut self, number: u32) -> Option<Numbered> {
        self.egress_groups.retain(|_, exit| *exit != number);
        self.take(number)
    }

    fn take(&mut self, number: u32) -> Option<Numbered> {
        let taken = self.known.remove(&number)?;
        for physical in taken.instances.ids() {
            self.by_physical.remove(&(physical, number));
        }
        Some(taken)
    }

    /// How many the tenant has.
    pub(crate) fn len(&self) -> usize {
        self.own().count()
    }

    fn own(&self) -> impl Iterator<Item = u32> {
        self.known.keys().copied().filter(|number| !is_egress_group(*number))
    }

    /// The numbers of egress groups.
    pub(crate) fn egress_groups(&self) -> Vec<u32> {
        self.known.keys().copied().filter(|number| is_egress_group(*number)).collect()
    }

    /// The egress groups, each with the output in whose place it stands.
    pub(crate) fn egress_groups_by_output(&self) -> Vec<(PortNo, u32)> {
        self.egress_groups.iter().map(|(output, exit)| (*output, *exit)).collect()
    }

    /// The tenant's number of a physical one.
    pub(crate) fn of_physical(&self, physical: u32) -> Option<u32> {
        let own = self.by_physical.range((physical, 0)..=(physical, u32::MAX));
        own.map(|(_, number)| *number).next()
    }

    /// Also egress groups.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Numbered)> {
        self.known.iter().map(|(number, known)| (*number, known))
    }

    /// The tenant's numbers.
    pub(crate) fn all(&self) -> Vec<u32> {
        let mut all: Vec<u32> = self.own().collect();
        all.sort_unstable();
        all
    }
}

/// Numbers in use on the switch, by tenants, Weir or others.
#[derive(Default)]
pub(crate) struct Used {
    pub groups: BTreeSet<u32>,
    pub meters: BTreeSet<u32>,
    /// What the switch has refused to delete.
    refused: Vec<(TenantIndex, Kind, u32)>,
    /// Groups and meters that are to be deleted, and whose they were: the store knows.
    to_delete: BTreeMap<(Kind, u32), TenantId>,
}

/// The lowest number that is free: some switches number few.
pub(super) fn lowest_free(used: &BTreeSet<u32>) -> u32 {
    let mut free = 1;
    for &number in used {
        if number > free {
            break;
        }
        free = free.max(number.saturating_add(1));
    }
    free
}

impl Switch {
    /// Whether groups or meters decide what stands on the switch for an entry.
    pub(crate) fn uses_numbers(&self, flow: &Flow) -> bool {
        self.version != Version::V1_0 && flow.names_numbers()
    }

    /// Starts a change of groups or meters, as one operation that can be undone.
    pub(crate) fn begin_numbers(
        &mut self,
        request: &Request<'_>,
        before: Vec<NumberBefore>,
    ) -> Cause {
        let operation = self.begin(request.tenant);
        self.remember_numbers(operation, before);
        Cause {
            tenant: request.tenant,
            origin: Some(request.origin()),
            operation: Some(operation),
            direct: false,
            now: request.now,
        }
    }

    /// Sends one.
    pub(crate) fn submit_numbers(
        &mut self,
        request: &Request<'_>,
        before: Vec<NumberBefore>,
        messages: &[Vec<u8>],
    ) -> Cause {
        let cause = self.begin_numbers(request, before);
        messages.iter().for_each(|message| self.submit_change(&cause, message));
        cause
    }

    /// Entries go with a group or meter that they use. The switch removes them by itself, and says so. Gives their rules, with the
    /// numbers on the switch that these name.
    pub(crate) fn take_users(
        &mut self,
        cause: &Cause,
        kind: Kind,
        is_meant: impl Fn(u32) -> bool,
    ) -> Vec<(Vec<u32>, RuleKey, Effect)> {
        let flows = self.tenants[cause.tenant.0 as usize].flows.iter();
        let uses = |flow: &Flow| named_of(kind, &flow.actions).into_iter().any(&is_meant);
        let gone: Vec<u32> = flows.filter(|(_, flow)| uses(flow)).map(|(at, _)| at).collect();
        let mut taken = Vec::new();
        for number in gone {
            if let Some(flow) = self.take_flow(cause, number) {
                let owner = Owner { tenant: cause.tenant, number };
                taken.extend(flow.rules.iter().map(|rule| {
                    let named = named_of(kind, &rule.actions);
                    (named, rule.key(flow.table), Effect::Remove(owner))
                }));
                self.await_removal(cause, number, flow);
            }
        }
        taken
    }

    /// Deletes a group or meter of this number on the switch, and with it those of the rules that name it.
    pub(crate) fn submit_with_users(
        &mut self,
        cause: &Cause,
        (physical, message): (u32, &[u8]),
        users: &mut Vec<(Vec<u32>, RuleKey, Effect)>,
    ) {
        let installed = self.session.installed_mut();
        let written = installed.begin_wide();
        for (_, key, effect) in users.extract_if(.., |(named, ..)| named.contains(&physical)) {
            installed.join(written, key, effect);
        }
        self.submit_wide(cause, written, message);
    }

    /// Sets or removes a group or meter of a tenant, in memory and in the store; gives what was there. The number on the
    /// switch stays in use until [`free_number`](Self::free_number).
    pub(crate) fn replace_number(
        &mut self,
        tenant: TenantIndex,
        kind: Kind,
        number: u32,
        numbered: Option<Numbered>,
    ) -> Option<Numbered> {
        let state = &mut self.tenants[tenant.0 as usize];
        let key = StoreKey::new(state.id, kind, number);
        let (numbers, used) = match kind {
            Kind::Meter => (&mut state.meters, &mut self.used.meters),
            _ => (&mut state.groups, &mut self.used.groups),
        };
        if kind == Kind::Group {
            state.flows.touch_all();
            self.unused.maybe = true;
        }
        match numbered {
            Some(numbered) => {
                self.journal.push(StoreOp::Put(key, numbered.to_bytes()));
                used.extend(numbered.instances.ids());
                numbered.instances.ids().for_each(|number| self.unmark_for_deletion(kind, number));
                let state = &mut self.tenants[tenant.0 as usize];
                let numbers = match kind {
                    Kind::Meter => &mut state.meters,
                    _ => &mut state.groups,
                };
                numbers.insert(number, numbered)
            }
            None => {
                let before = numbers.remove(number)?;
                self.journal.push(StoreOp::Delete(key));
                Some(before)
            }
        }
    }

    /// Takes a number for a group that is to come to the switch.
    pub(crate) fn take_group(&mut self) -> Result<u32, ErrorCode> {
        let number = lowest_free(&self.used.groups);
        if number > GROUP_MAX {
            return Err(code::GROUP_MOD_FAILED_OUT_OF_GROUPS);
        }
        self.used.groups.insert(number);
        Ok(number)
    }

    /// Whether somebody has this number on the switch, or may get it back.
    pub(crate) fn is_in_use(&self, kind: Kind, physical: u32) -> bool {
        let holds = |numbers: &Numbers| numbers.of_physical(physical).is_some();
        let is_held = self.tenants.iter().any(|tenant| match kind {
            Kind::Meter => holds(&tenant.meters),
            _ => holds(&tenant.groups),
        });
        is_held || self.may_return(kind, physical)
    }

    /// A number on the switch may be given out again, unless somebody has it or may get it back, or it is being deleted once
    /// more: that would be tried again if it is refused.
    pub(crate) fn free_number(&mut self, kind: Kind, physical: u32) {
        if !self.is_in_use(kind, physical) && !self.is_being_deleted(kind, physical) {
            self.unmark_for_deletion(kind, physical);
            match kind {
                Kind::Meter => self.used.meters.remove(&physical),
                _ => self.used.groups.remove(&physical),
            };
        }
    }

    /// A group or meter on the switch is to be deleted: should that not come to pass before a crash, it is done after it.
    pub(crate) fn mark_for_deletion(&mut self, tenant: TenantIndex, kind: Kind, physical: u32) {
        let id = self.tenants[tenant.0 as usize].id;
        // Whose it was first is where it stands in the store.
        if let Entry::Vacant(new) = self.used.to_delete.entry((kind, physical)) {
            new.insert(id);
            self.journal.push(StoreOp::Put(deletion_key(id, kind, physical), Vec::new()));
        }
    }

    fn unmark_for_deletion(&mut self, kind: Kind, physical: u32) {
        if let Some(id) = self.used.to_delete.remove(&(kind, physical)) {
            self.journal.push(StoreOp::Delete(deletion_key(id, kind, physical)));
        }
    }

    /// Deletes those of these groups or meters on the switch that nobody has, in this order; their numbers are in use until
    /// it is done.
    pub(crate) fn delete_unreferenced(&mut self, cause: &Cause, kind: Kind, numbers: Vec<u32>) {
        let mut seen = BTreeSet::new();
        let mut unreferenced = numbers;
        unreferenced.retain(|number| !self.is_in_use(kind, *number) && seen.insert(*number));
        if unreferenced.is_empty() {
            return;
        }
        unreferenced.iter().for_each(|number| self.mark_for_deletion(cause.tenant, kind, *number));
        let frees: Vec<(Kind, u32)> =
            unreferenced.into_iter().map(|number| (kind, number)).collect();
        self.submit_freeing(cause, &frees, false);
    }

    /// The switch has refused twice to delete these: a change that is on its way may stand against it. Their numbers stay in use.
    pub(crate) fn keep_refused(&mut self, tenant: TenantIndex, frees: Vec<(Kind, u32)>) {
        self.used.refused.extend(frees.into_iter().map(|(kind, number)| (tenant, kind, number)));
    }

    /// Deletes once more what the switch has refused to delete, now that something else is done. If nothing helps, the next
    /// connection does it.
    pub(crate) fn delete_refused(&mut self, cause: &Cause) {
        let own = |(tenant, ..): &mut (TenantIndex, Kind, u32)| *tenant == cause.tenant;
        let refused: Vec<_> = self.used.refused.extract_if(.., own).collect();
        for (_, kind, number) in refused {
            self.delete_unreferenced(cause, kind, Vec::from([number]));
        }
    }

    /// Deletes groups or meters without an owner, perhaps once more.
    pub(crate) fn submit_freeing(&mut self, cause: &Cause, frees: &[(Kind, u32)], again: bool) {
        let cause = self.begin_freeing(cause, frees, again);
        for &(kind, number) in frees {
            let mut message = Vec::new();
            // It fits: a deletion is a few bytes.
            let _ = write_deletion(kind, number, &mut message);
            self.submit_change(&cause, &message);
        }
    }

    /// The tenant's groups or meters.
    pub(crate) fn numbers(&self, tenant: TenantIndex, kind: Kind) -> &Numbers {
        let state = &self.tenants[tenant.0 as usize];
        match kind {
            Kind::Meter => &state.meters,
            _ => &state.groups,
        }
    }

    /// From the store.
    pub(crate) fn restore_number(&mut self, kind: Kind, id: TenantId, number: u32, bytes: &[u8]) {
        // Those of a switch that spoke 1.3 before are deleted when it does again.
        let tenant = self.tenant_of(id).filter(|_| self.version != Version::V1_0);
        match (tenant, Numbered::from_bytes(bytes)) {
            (Some(tenant), Some(numbered)) => {
                let state = &mut self.tenants[tenant.0 as usize];
                let (numbers, used) = match kind {
                    Kind::Meter => (&mut state.meters, &mut self.used.meters),
                    _ => (&mut state.groups, &mut self.used.groups),
                };
                used.extend(numbered.instances.ids());
                numbers.insert(number, numbered);
            }
            (_, numbered) => {
                // A tenant that is gone leaves nothing behind.
                for number in numbered.iter().flat_map(|it| it.instances.ids()) {
                    let key = deletion_key(id, kind, number);
                    self.journal.push(StoreOp::Put(key, Vec::new()));
                    self.restore_deletion(id, kind, number);
                }
                self.journal.push(StoreOp::Delete(StoreKey::new(id, kind, number)));
            }
        }
    }

    /// From the store: a group or meter that was to be deleted.
    pub(crate) fn restore_deletion(&mut self, id: TenantId, kind: Kind, physical: u32) {
        self.used.to_delete.insert((kind, physical), id);
        match kind {
            Kind::Meter => self.used.meters.insert(physical),
            _ => self.used.groups.insert(physical),
        };
    }

    /// All groups and meters that the switch holds are in use. A group or meter that is in no tenant's table may be somebody
    /// else's, who shares the switch with the hypervisor: its number is not given out.
    pub(crate) fn learn_numbers(&mut self, groups: &[u8], meters: &[u8]) -> Held {
        let groups = List::<GroupDesc<'_>>::parse(groups).unwrap_or_default();
        let meters = List::<MeterConfig<'_>>::parse(meters).unwrap_or_default();
        let held = Held {
            groups: groups.iter().map(|group| group.group_id).collect(),
            meters: meters.iter().map(|it| (it.meter_id, said(it.flags, it.bands))).collect(),
        };
        self.used.groups.extend(&held.groups);
        self.used.meters.extend(held.meters.keys());
        held
    }

    /// Deletes the groups and meters that were to be deleted before a restart. Till that is done the store keeps that they are to be.
    pub(crate) fn reconcile_deletions(&mut self, now: Instant) {
        if self.version == Version::V1_0 {
            return;
        }
        let mut unreferenced: BTreeMap<TenantIndex, Vec<(Kind, u32)>> = BTreeMap::new();
        for ((kind, number), id) in self.used.to_delete.clone() {
            // An operation is somebody's. Where there is nobody any more the next connection does it.
            let tenant =
                self.tenant_of(id).or((!self.tenants.is_empty()).then_some(TenantIndex(0)));
            match tenant.filter(|_| !self.is_in_use(kind, number)) {
                Some(tenant) => unreferenced.entry(tenant).or_default().push((kind, number)),
                None => self.free_number(kind, number),
            }
        }
        for (tenant, frees) in unreferenced {
            self.submit_freeing(&Cause::own(tenant, now), &frees, false);
        }
    }
}

/// Numbers of what the switch holds, and what its meters do.
pub(crate) struct Held {
    pub groups: BTreeSet<u32>,
    pub meters: BTreeMap<u32, (MeterFlags, Vec<u8>)>,
}

/// What a meter does, to be compared.
pub(super) fn said(flags: MeterFlags, bands: List<'_, MeterBand<'_>>) -> (MeterFlags, Vec<u8>) {
    let mut wire = Vec::new();
    bands.write(&mut wire);
    (flags, wire)
}

fn deletion_key(id: TenantId, kind: Kind, physical: u32) -> StoreKey {
    let kind = if kind == Kind::Meter { Kind::MeterToDelete } else { Kind::GroupToDelete };
    StoreKey::new(id, kind, physical)
}

pub(crate) fn write_deletion(kind: Kind, physical: u32, out: &mut Vec<u8>) -> Result<(), TooLong> {
    match kind {
        Kind::Meter => MeterMod {
            command: MeterModCommand::DELETE,
            flags: Default::default(),
            meter_id: physical,
            bands: List::EMPTY,
        }
        .write_message(0, out),
        _ => GroupMod {
            command: GroupModCommand::DELETE,
            type_: GroupType::ALL,
            group_id: physical,
            buckets: List::EMPTY,
        }
        .write_message(0, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the port, which is at the switch's 5, and by the tag.
    type Sort = (Option<u32>, TagState);

    fn variant((port, tag): Sort) -> Variant {
        Variant { ingress: port.map(|port| IngressPort { port, at: 5 }), tag }
    }

    fn group(sorts: &[Sort]) -> Numbered {
        let variants = sorts.iter().map(|sort| variant(*sort)).zip(8..).collect();
        Numbered { instances: Instances::new(7, variants), body: [1, 2, 3].into() }
    }

    #[test]
    fn a_stored_group_has_the_instances_that_it_had() {
        use TagState::{Tagged, Untagged};
        for (sorts, marker) in [
            (&[][..], 7),
            (&[(Some(10), Untagged), (Some(0xffff_fffe), Untagged)], WITH_VARIANTS),
            (&[(None, Tagged), (Some(10), Tagged)], WITH_VARIANTS),
            (&[(None, Tagged)], WITH_VARIANTS),
        ] {
            let (before, bytes) = (group(sorts), group(sorts).to_bytes());
            assert_eq!(bytes[..4], u32::to_be_bytes(marker));
            let after = Numbered::from_bytes(&bytes).unwrap();
            assert_eq!((&after.instances, &after.body), (&before.instances, &before.body));
            let head = bytes.len() - before.body.len();
            assert!((0..head).all(|cut| Numbered::from_bytes(&bytes[..cut]).is_none()));
        }
    }

    #[test]
    fn numbers_on_the_switch_are_found_as_groups_come_change_and_go() {
        use TagState::{Tagged, Untagged};
        let mut numbers = Numbers::default();
        let found = |numbers: &Numbers| [7, 8, 9].map(|physical| numbers.of_physical(physical));
        numbers.insert(1, group(&[(None, Tagged), (Some(10), Untagged)]));
        assert_eq!(found(&numbers), [Some(1), Some(1), Some(1)]);
        numbers.insert(1, group(&[(None, Tagged)]));
        assert_eq!(found(&numbers), [Some(1), Some(1), None]);
        numbers.insert(2, Numbered { instances: Instances::new(9, BTreeMap::new()), ..group(&[]) });
        assert_eq!(found(&numbers), [Some(1), Some(1), Some(2)]);
        assert!(numbers.remove(1).is_some() && numbers.remove(1).is_none());
        assert_eq!(found(&numbers), [None, None, Some(2)]);
    }

    #[test]
    fn packets_get_the_instance_for_their_port_and_tag() {
        use TagState::{Tagged, Untagged};
        let by_port = group(&[(Some(10), Untagged)]);
        let by_both = group(&[(None, Tagged), (Some(10), Untagged), (Some(10), Tagged)]);
        let at =
            |group: &Numbered, port, is_tagged| group.instances.id_for(variant((port, is_tagged)));
        assert_eq!(
            at(&by_port, Some(10), Tagged),
            by_port.instances.variants()[&variant((Some(10), Untagged))]
        );
        assert_eq!(at(&by_port, Some(1), Tagged), 7);
        assert_eq!(at(&by_both, Some(1), Untagged), 7);
        for (came, form) in [(Some(1), None), (None, None), (Some(10), Some(10))] {
            let wanted = by_both.instances.variants()[&variant((form, Tagged))];
            assert_eq!(at(&by_both, came, Tagged), wanted, "{came:?}");
        }
    }
}
