//! Groups and meters: each tenant numbers its own; on the switch they are numbered for all.
//!
//! A number on the switch is in use from when a change that takes it is made until a barrier has shown that it is not
//! there any more. Groups that are to be deleted are stored until then, so that none is left behind by a crash.

use crate::flows::Flow;
use crate::ids::TenantIndex;
use crate::named::{named_by, named_first, named_of};
use crate::policy::TenantId;
use crate::south::installed::{Effect, Owner, content_of};
use crate::store::{Kind, StoreKey, StoreOp};
use crate::switch::Switch;
use crate::switch::cause::Cause;
use crate::switch::logged::NumberBefore;
use crate::switch::operations::What;
use crate::switch::replay::recovery::Object;
use crate::switch::request::Request;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use compile::class::TagState;
use compile::egress_group::{is_egress_group, output_described};
use compile::network::IngressPort;
use compile::{Instances, RuleKey, Variant};
use hashbrown::HashMap;
use openflow::error::v13 as code;
use openflow::v13::{
    GROUP_MAX, GroupDesc, GroupMod, GroupModCommand, GroupType, MessageType, MeterConfig, MeterMod,
    MeterModCommand, PortNo,
};
use openflow::{Encode, ErrorCode, List, TooLong, Version, frame};

/// A tenant's groups and meters.
#[derive(Default)]
pub(crate) struct Numbers {
    groups: OfKind,
    meters: OfKind,
    /// Whether ids of them on the switch may be needed no more.
    is_any_loose: bool,
}

impl Numbers {
    /// Groups, or meters.
    pub(crate) fn of(&self, kind: Kind) -> &OfKind {
        match kind {
            Kind::Meter => &self.meters,
            _ => &self.groups,
        }
    }

    fn of_mut(&mut self, kind: Kind) -> &mut OfKind {
        match kind {
            Kind::Meter => &mut self.meters,
            _ => &mut self.groups,
        }
    }

    /// Its groups.
    #[inline]
    pub(crate) fn groups(&self) -> &OfKind {
        &self.groups
    }

    /// Its meters.
    #[inline]
    pub(crate) fn meters(&self) -> &OfKind {
        &self.meters
    }
}

/// A tenant's numbers, of groups or of meters.
#[derive(Default)]
pub(crate) struct OfKind {
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

impl OfKind {
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

impl Switch {
    /// Begins a change of groups or meters.
    pub(crate) fn begin_numbers(
        &mut self,
        request: &Request<'_>,
        before: Vec<NumberBefore>,
    ) -> Cause {
        let cause = self.begin(request);
        self.remember_numbers(&cause, before);
        cause
    }

    /// Sends one.
    pub(crate) fn submit_numbers(
        &mut self,
        request: &Request<'_>,
        before: Vec<NumberBefore>,
        messages: &[Vec<u8>],
    ) -> Cause {
        let cause = self.begin_numbers(request, before);
        messages.iter().for_each(|message| self.submit_number(&cause, message));
        cause
    }

    /// Entries go with a group or meter that they use. The switch removes them by itself, and says so. Gives their rules, with the
    /// numbers on the switch that these name.
    pub(crate) fn take_users(
        &mut self,
        cause: &Cause,
        kind: Kind,
        is_meant: impl Fn(u32) -> bool,
    ) -> Vec<(Vec<u32>, RuleKey, Owner)> {
        let flows = self.tenants[cause.tenant.0 as usize].flows.iter();
        let uses = |flow: &Flow| named_of(kind, &flow.actions).into_iter().any(&is_meant);
        let gone: Vec<u32> = flows.filter(|(_, flow)| uses(flow)).map(|(at, _)| at).collect();
        let mut taken = Vec::new();
        for number in gone {
            if let Some(flow) = self.take_flow(cause, number) {
                let owner = Owner { tenant: cause.tenant, number };
                taken.extend(flow.rules.iter().map(|rule| {
                    let named = named_of(kind, &rule.actions);
                    (named, rule.key(flow.table), owner)
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
        users: &mut Vec<(Vec<u32>, RuleKey, Owner)>,
    ) {
        if self.is_replay() {
            users.retain(|(named, ..)| !named.contains(&physical));
            return;
        }
        let installed = self.session.installed_mut();
        let written = installed.begin_wide();
        installed.join_number(written, cause.tenant, message);
        let kind = if frame::type_(message) == Some(MessageType::METER_MOD.0) {
            Kind::Meter
        } else {
            Kind::Group
        };
        for (_, key, owner) in users.extract_if(.., |(named, ..)| named.contains(&physical)) {
            installed.join(written, key, Effect::GoneWith(owner, kind, physical));
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
        state.numbers.is_any_loose = true;
        if kind == Kind::Group {
            state.flows.touch_all();
            self.ids.note_unneeded();
        }
        match numbered {
            Some(numbered) => {
                self.journal.push(StoreOp::Put(key, numbered.to_bytes()));
                self.ids.take(tenant, kind, numbered.instances.ids());
                numbered.instances.ids().for_each(|number| self.unmark_for_deletion(kind, number));
                self.numbers_mut(tenant, kind).insert(number, numbered)
            }
            None => {
                let before = self.numbers_mut(tenant, kind).remove(number)?;
                self.journal.push(StoreOp::Delete(key));
                Some(before)
            }
        }
    }

    /// Takes a number for a group that is to come to the switch.
    pub(crate) fn take_group(
        &mut self,
        tenant: TenantIndex,
        number: u32,
        variant: Variant,
    ) -> Result<u32, ErrorCode> {
        if let Some(again) = self.id_again(Kind::Group, number, variant) {
            return Ok(again);
        }
        let free = self.ids.lowest_free(Kind::Group);
        if free > GROUP_MAX {
            return Err(code::GROUP_MOD_FAILED_OUT_OF_GROUPS);
        }
        self.ids.take(tenant, Kind::Group, [free]);
        Ok(free)
    }

    /// An id on the switch may be given out again, unless the switch has something under the id.
    pub(crate) fn free_number(&mut self, kind: Kind, physical: u32) {
        if !self.session.installed().numbers().is_free((kind, physical)) {
            return;
        }
        self.unmark_for_deletion(kind, physical);
        self.ids.free(kind, physical);
    }

    /// Deletes a tenant's groups and meters on the switch that nothing needs any more, and frees the ids of those that are gone.
    pub(crate) fn sweep_numbers(&mut self, tenant: TenantIndex, now: Instant) {
        let state = &mut self.tenants[tenant.0 as usize];
        let is_old = self.version == Version::V1_0;
        if is_old || !state.numbers.is_any_loose || state.recovery.is_some() {
            return;
        }
        self.delete_unwanted(&Cause::own(tenant, now));
    }

    /// The same of all tenants.
    pub(crate) fn sweep_all_numbers(&mut self, now: Instant) {
        for at in 0..self.tenants.len() {
            self.tenants[at].numbers.is_any_loose = true;
            self.sweep_numbers(TenantIndex(at as u32), now);
        }
    }

    /// See [`sweep_numbers`](Self::sweep_numbers). Says whether it sends anything.
    pub(crate) fn delete_unwanted(&mut self, cause: &Cause) -> bool {
        let tenant = cause.tenant;
        let is_recovering = self.tenants[tenant.0 as usize].recovery.is_some();
        let owned: Vec<(Kind, u32)> = self.ids.of_tenant(tenant).collect();
        let (mut going, mut is_open) = (BTreeMap::new(), false);
        for key in owned {
            let (kind, id) = key;
            if self.numbers(tenant, kind).of_physical(id).is_some() {
                continue;
            }
            let may_return = self.may_return(tenant, kind, id);
            let installed = self.session.installed().numbers();
            match installed.projected(key) {
                Some(content) if !may_return || is_recovering => {
                    going.insert(key, named_in(id, content));
                }
                None if !may_return && installed.is_free(key) => self.free_number(kind, id),
                _ => is_open = true,
            }
        }
        self.tenants[tenant.0 as usize].numbers.is_any_loose = is_open || !going.is_empty();
        if going.is_empty() {
            return false;
        }
        let ids: Vec<u32> = going.keys().filter(|it| it.0 == Kind::Group).map(|it| it.1).collect();
        let named = |id: u32| going.get(&(Kind::Group, id)).cloned().unwrap_or_default();
        // What names others goes before them.
        let groups = named_first(&ids, named).into_iter().rev().map(|id| (Kind::Group, id));
        let meters = going.keys().copied().filter(|it| it.0 == Kind::Meter);
        let cause = self.begin_own(cause, What::Free);
        for (kind, id) in groups.chain(meters).collect::<Vec<_>>() {
            self.mark_for_deletion(tenant, kind, id);
            let mut message = Vec::new();
            // It fits: a deletion is a few bytes.
            let _ = write_deletion(kind, id, &mut message);
            self.submit_number(&cause, &message);
        }
        true
    }

    /// A group or meter on the switch is to be deleted: should that not come to pass before a crash, it is done after it.
    pub(crate) fn mark_for_deletion(&mut self, tenant: TenantIndex, kind: Kind, physical: u32) {
        let id = self.tenants[tenant.0 as usize].id;
        if self.ids.mark_for_deletion(id, kind, physical) {
            self.journal.push(StoreOp::Put(deletion_key(id, kind, physical), Vec::new()));
        }
    }

    fn unmark_for_deletion(&mut self, kind: Kind, physical: u32) {
        if let Some(id) = self.ids.unmark_for_deletion(kind, physical) {
            self.journal.push(StoreOp::Delete(deletion_key(id, kind, physical)));
        }
    }

    /// The tenant's groups or meters.
    pub(crate) fn numbers(&self, tenant: TenantIndex, kind: Kind) -> &OfKind {
        self.tenants[tenant.0 as usize].numbers.of(kind)
    }

    fn numbers_mut(&mut self, tenant: TenantIndex, kind: Kind) -> &mut OfKind {
        self.tenants[tenant.0 as usize].numbers.of_mut(kind)
    }

    /// From the store.
    pub(crate) fn restore_number(&mut self, kind: Kind, id: TenantId, number: u32, bytes: &[u8]) {
        // Those of a switch that spoke 1.3 before are deleted when it does again.
        let tenant = self.tenant_of(id).filter(|_| self.version != Version::V1_0);
        match (tenant, Numbered::from_bytes(bytes)) {
            (Some(tenant), Some(numbered)) => {
                self.ids.take(tenant, kind, numbered.instances.ids());
                self.numbers_mut(tenant, kind).insert(number, numbered);
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
        // Where there is nobody any more, somebody does it.
        let tenant = self.tenant_of(id).or((!self.tenants.is_empty()).then_some(TenantIndex(0)));
        self.ids.restore_deletion(id, tenant, kind, physical);
    }

    /// All groups and meters that the switch holds are in use. A group or meter that is in no tenant's table may be somebody
    /// else's, who shares the switch with the hypervisor: its number is not given out.
    pub(crate) fn learn_numbers(&mut self, groups: &[u8], meters: &[u8]) -> Held {
        let groups = List::<GroupDesc<'_>>::parse(groups).unwrap_or_default();
        let meters = List::<MeterConfig<'_>>::parse(meters).unwrap_or_default();
        let held = Held {
            groups: groups.iter().map(|it| (it.group_id, held_group(&it))).collect(),
            meters: meters.iter().map(|it| (it.meter_id, held_meter(&it))).collect(),
        };
        self.ids.reserve(Kind::Group, held.groups.keys());
        self.ids.reserve(Kind::Meter, held.meters.keys());
        held
    }

    /// What the switch holds of the tenants' groups and meters is known.
    fn learn_owned(&mut self, held: &Held) {
        for (key, tenant) in self.ids.of_tenants() {
            let (kind, id) = key;
            let content = match kind {
                Kind::Meter => held.meters.get(&id),
                _ => held.groups.get(&id),
            };
            if let Some(content) = content {
                self.session.installed_mut().numbers_mut().learn(tenant, key, content.clone());
            }
        }
    }

    /// After a new connection: groups and meters are what the tables say. What nothing needs goes later, behind the entries.
    pub(crate) fn reconcile_numbers(&mut self, held: &Held, now: Instant) {
        if self.version != Version::V1_0 {
            self.learn_owned(held);
            self.resync_numbers(now);
        }
    }

    /// The policy or the ports have changed: groups are compiled again, and a tenant that is gone has no groups or meters.
    pub(crate) fn resync_numbers(&mut self, now: Instant) {
        if self.version == Version::V1_0 {
            return;
        }
        for at in 0..self.tenants.len() {
            let tenant = TenantIndex(at as u32);
            self.reform_groups(tenant);
            if !self.tenants[at].terms.is_present() {
                for number in self.numbers(tenant, Kind::Meter).all() {
                    self.replace_number(tenant, Kind::Meter, number, None);
                }
            }
            let cause = Cause::own(tenant, now);
            for (object, message) in self.numbers_difference(tenant) {
                let cause = self.begin_repair(&cause, object);
                self.submit_number(&cause, &message);
            }
        }
    }

    /// What makes a tenant's groups and meters on the switch what the tables say: those that are not, in order.
    pub(crate) fn numbers_difference(&mut self, tenant: TenantIndex) -> Vec<(Object, Vec<u8>)> {
        let mut wanted = Vec::new();
        let network = self.tenants[tenant.0 as usize].network.as_deref();
        let groups = self.numbers(tenant, Kind::Group);
        let order = groups.egress_groups().into_iter().chain(self.groups_in_order(tenant));
        for number in order {
            let Some(known) = groups.any(number) else { continue };
            let Ok(group) = GroupMod::parse(&known.body) else { continue };
            for instance in known.instances.iter() {
                let command = GroupModCommand::MODIFY;
                let written = self.write_instance(tenant, network, &group, instance, command);
                let object = Object::Number(Kind::Group, number);
                wanted.extend(written.ok().map(|it| (object, (Kind::Group, instance.1), it)));
            }
        }
        let meters = self.numbers(tenant, Kind::Meter);
        for number in meters.all() {
            let Some(known) = meters.get(number) else { continue };
            let Ok(meter) = MeterMod::parse(&known.body) else { continue };
            let (meter_id, mut message) = (known.instances.id(), Vec::new());
            let command = MeterModCommand::MODIFY;
            let written = MeterMod { meter_id, command, ..meter }.write_message(0, &mut message);
            if written.is_ok() {
                let object = Object::Number(Kind::Meter, number);
                wanted.push((object, (Kind::Meter, meter_id), message));
            }
        }
        let installed = self.session.installed().numbers();
        let mut messages = Vec::new();
        for (object, key, mut message) in wanted {
            let projected = installed.projected(key);
            if projected.is_none() {
                /// OFPGC_ADD and OFPMC_ADD.
                const ADD: [u8; 2] = [0, 0];
                message.iter_mut().skip(8).zip(ADD).for_each(|(at, byte)| *at = byte);
            } else if projected == content_of(&message).as_deref() {
                continue;
            }
            messages.push((object, message));
        }
        messages
    }
}

/// What the switch holds, by the ids: see [`content_of`].
pub(crate) struct Held {
    pub groups: BTreeMap<u32, Vec<u8>>,
    pub meters: BTreeMap<u32, Vec<u8>>,
}

/// The groups that a group on the switch sends to.
fn named_in(id: u32, content: &[u8]) -> Vec<u32> {
    let [type_, pad] = content.first_chunk().copied().unwrap_or_default();
    let mut body = Vec::from([0, 0, type_, pad]);
    body.extend_from_slice(&id.to_be_bytes());
    body.extend_from_slice(content.get(2..).unwrap_or_default());
    GroupMod::parse(&body).map(|group| named_by(&group).collect()).unwrap_or_default()
}

fn held_group(group: &GroupDesc<'_>) -> Vec<u8> {
    let mut content = Vec::from([group.type_.0, 0]);
    group.buckets.write(&mut content);
    content
}

fn held_meter(meter: &MeterConfig<'_>) -> Vec<u8> {
    let mut content = Vec::from(meter.flags.0.to_be_bytes());
    meter.bands.write(&mut content);
    content
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
        let mut numbers = OfKind::default();
        let found = |numbers: &OfKind| [7, 8, 9].map(|physical| numbers.of_physical(physical));
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
