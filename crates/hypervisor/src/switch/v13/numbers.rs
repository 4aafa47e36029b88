//! Ids of groups and meters: each tenant has its own numbers; the ids on the switch are shared by all tenants.
//!
//! An id on the switch is in use from the change that takes it until a barrier has shown that the group or meter is
//! deleted. Until then the store has the groups and meters that are to be deleted, so that none is left behind by a
//! crash.

use crate::flows::Flow;
use crate::ids::TenantIndex;
use crate::named::{before_named, buckets_of, named_by, named_of};
use crate::policy::TenantId;
use crate::south::installed::{Effect, Owner, content_of};
use crate::south::reports::ReportedGroupsAndMeters;
use crate::store::{Kind, StoreKey, StoreOp};
use crate::switch::{Cause, NumberBefore, Object, Request, Switch, What, in_turn};
use crate::time::Instant;
use crate::v13::numbers::{GroupOrMeter, IdTable, deletion, groups_held, meters_held};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use compile::{RuleKey, Variant};
use openflow::ErrorCode;
use openflow::error::v13 as code;
use openflow::v13::{GROUP_MAX, GroupModCommand, MeterMod, MeterModCommand};

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

    /// Sends the messages of a change of groups or meters.
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

    /// Removes the entries that use a group or meter. The switch removes their rules by itself, and reports this.
    /// Returns the rules, each with the ids of groups or meters that it names.
    pub(crate) fn take_users(
        &mut self,
        cause: &Cause,
        kind: Kind,
        is_meant: impl Fn(u32) -> bool,
    ) -> Vec<(Vec<u32>, RuleKey, Owner)> {
        let flows = self.tenants[cause.tenant].flows.iter();
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

    /// Deletes a group or meter with this id on the switch, and with it the rules in `users` that name it.
    pub(crate) fn submit_with_users(
        &mut self,
        cause: &Cause,
        kind: Kind,
        physical: u32,
        users: &mut Vec<(Vec<u32>, RuleKey, Owner)>,
    ) {
        if self.is_replay() {
            users.retain(|(named, ..)| !named.contains(&physical));
            return;
        }
        let message = deletion(kind, physical);
        let installed = self.session.installed_mut();
        let written = installed.begin_wide();
        installed.join_number(written, cause.tenant, &message);
        for (_, key, owner) in users.extract_if(.., |(named, ..)| named.contains(&physical)) {
            installed.join(written, key, Effect::GoneWith(owner, kind, physical));
        }
        self.submit_wide(cause, written, &message);
    }

    /// Sets or removes a group or meter of a tenant, in memory and in the store. Returns the one before. The id on the
    /// switch stays in use until [`free_number`](Self::free_number).
    pub(crate) fn replace_number(
        &mut self,
        tenant: TenantIndex,
        kind: Kind,
        number: u32,
        numbered: Option<GroupOrMeter>,
    ) -> Option<GroupOrMeter> {
        let state = &mut self.tenants[tenant];
        let key = StoreKey::new(state.id, kind, number);
        state.numbers.set_may_have_unused(true);
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

    /// Takes an id for a new group on the switch.
    pub(crate) fn take_group(
        &mut self,
        tenant: TenantIndex,
        number: u32,
        variant: Variant,
    ) -> Result<u32, ErrorCode> {
        if let Some(again) = self.id_again(tenant, Kind::Group, number, variant) {
            return Ok(again);
        }
        let free = self.ids.lowest_free(Kind::Group);
        if free > GROUP_MAX {
            return Err(code::GROUP_MOD_FAILED_OUT_OF_GROUPS);
        }
        self.ids.take(tenant, Kind::Group, [free]);
        Ok(free)
    }

    /// Frees an id on the switch, unless the switch still holds something under the id.
    pub(crate) fn free_number(&mut self, kind: Kind, physical: u32) {
        if !self.session.installed().numbers().is_free(kind, physical) {
            return;
        }
        self.unmark_for_deletion(kind, physical);
        self.ids.free(kind, physical);
    }

    /// Deletes a tenant's groups and meters on the switch that nothing needs any more, and frees the ids of those that
    /// are gone.
    pub(crate) fn sweep_numbers(&mut self, tenant: TenantIndex, now: Instant) {
        let has_groups = self.semantics().has_groups;
        let state = &mut self.tenants[tenant];
        if !has_groups || !state.numbers.may_have_unused() || state.recovery.is_some() {
            return;
        }
        self.delete_unwanted(&in_turn(tenant, now));
    }

    /// Does [`sweep_numbers`](Self::sweep_numbers) for all tenants.
    pub(crate) fn sweep_all_numbers(&mut self, now: Instant) {
        for tenant in self.tenants.indices() {
            self.tenants[tenant].numbers.set_may_have_unused(true);
            self.sweep_numbers(tenant, now);
        }
    }

    /// Deletes unneeded groups and meters: see [`sweep_numbers`](Self::sweep_numbers). Returns whether any message is
    /// sent.
    pub(crate) fn delete_unwanted(&mut self, cause: &Cause) -> bool {
        let tenant = cause.tenant;
        let is_recovering = self.tenants[tenant].recovery.is_some();
        let owned: Vec<(Kind, u32)> = self.ids.of_tenant(tenant).collect();
        let (mut going, mut is_open) = (BTreeMap::<_, Vec<u32>>::new(), false);
        for key in owned {
            let (kind, id) = key;
            if self.numbers(tenant, kind).of_physical(id).is_some() {
                continue;
            }
            let may_return = self.may_return(tenant, kind, id);
            let installed = self.session.installed().numbers();
            match installed.projected(kind, id) {
                Some(content) if !may_return || is_recovering => {
                    going.insert(key, named_by(buckets_of(content)).collect());
                }
                None if !may_return && installed.is_free(kind, id) => self.free_number(kind, id),
                _ => is_open = true,
            }
        }
        self.tenants[tenant].numbers.set_may_have_unused(is_open || !going.is_empty());
        if going.is_empty() {
            return false;
        }
        let cause = self.begin_own(cause, What::Free);
        for (kind, id) in before_named(&going) {
            self.mark_for_deletion(tenant, kind, id);
            self.submit_number(&cause, &deletion(kind, id));
        }
        true
    }

    /// Marks a group or meter on the switch as to be deleted. The store has the mark, so the deletion survives a crash.
    pub(crate) fn mark_for_deletion(&mut self, tenant: TenantIndex, kind: Kind, physical: u32) {
        let id = self.tenants[tenant].id;
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
    pub(crate) fn numbers(&self, tenant: TenantIndex, kind: Kind) -> &IdTable {
        self.tenants[tenant].numbers.of(kind)
    }

    fn numbers_mut(&mut self, tenant: TenantIndex, kind: Kind) -> &mut IdTable {
        self.tenants[tenant].numbers.of_mut(kind)
    }

    /// Restores a group or meter from the store.
    pub(crate) fn restore_number(&mut self, kind: Kind, id: TenantId, number: u32, bytes: &[u8]) {
        // If the switch speaks 1.0 now, its groups and meters of 1.3 are deleted when it speaks 1.3 again.
        let tenant = self.tenant_of(id).filter(|_| self.semantics().has_groups);
        match (tenant, GroupOrMeter::from_bytes(bytes)) {
            (Some(tenant), Some(numbered)) => {
                self.ids.take(tenant, kind, numbered.instances.ids());
                self.numbers_mut(tenant, kind).insert(number, numbered);
            }
            (_, numbered) => {
                // A tenant that is gone leaves no groups and meters: they are deleted.
                for number in numbered.iter().flat_map(|it| it.instances.ids()) {
                    let key = deletion_key(id, kind, number);
                    self.journal.push(StoreOp::Put(key, Vec::new()));
                    self.restore_deletion(id, kind, number);
                }
                self.journal.push(StoreOp::Delete(StoreKey::new(id, kind, number)));
            }
        }
    }

    /// Restores from the store that a group or meter is to be deleted.
    pub(crate) fn restore_deletion(&mut self, id: TenantId, kind: Kind, physical: u32) {
        // If the tenant is gone, the deletion counts for another tenant.
        let tenant = self.tenant_of(id).or((!self.tenants.is_empty()).then_some(TenantIndex(0)));
        self.ids.restore_deletion(id, tenant, kind, physical);
    }

    /// All ids that the switch holds are in use. A group or meter that is in no tenant's table may belong to other
    /// software that shares the switch: its id is not given out.
    pub(crate) fn learn_numbers(
        &mut self,
        groups: &[u8],
        meters: &[u8],
    ) -> ReportedGroupsAndMeters {
        let (groups, meters) = (groups_held(groups).collect(), meters_held(meters).collect());
        let held = ReportedGroupsAndMeters { groups, meters };
        self.ids.reserve(Kind::Group, held.groups.keys());
        self.ids.reserve(Kind::Meter, held.meters.keys());
        held
    }

    /// Notes what the switch holds of the tenants' groups and meters.
    pub(crate) fn learn_owned(&mut self, held: &ReportedGroupsAndMeters) {
        for ((kind, id), tenant) in self.ids.of_tenants() {
            let content = match kind {
                Kind::Meter => held.meters.get(&id),
                _ => held.groups.get(&id),
            };
            if let Some(content) = content {
                self.session.installed_mut().numbers_mut().learn(tenant, kind, id, content.clone());
            }
        }
    }

    /// Removes the meters of a tenant that is gone.
    pub(super) fn drop_absent_meters(&mut self, tenant: TenantIndex) {
        if !self.tenants[tenant].terms.is_present() {
            for number in self.numbers(tenant, Kind::Meter).all() {
                self.replace_number(tenant, Kind::Meter, number, None);
            }
        }
    }

    /// Repairs a group or meter on the switch, past the tenant's queue.
    pub(super) fn submit_number_repair(
        &mut self,
        tenant: TenantIndex,
        kind: Kind,
        number: u32,
        now: Instant,
    ) {
        for message in self.number_difference(tenant, kind, number) {
            let cause = Cause::own(tenant, now);
            let cause = self.begin_repair(&cause, Object::Number(kind, number));
            self.submit_number(&cause, &message);
        }
    }

    /// A tenant's groups, each after those that it names, and then the meters.
    pub(crate) fn numbers_in_order(&self, tenant: TenantIndex) -> Vec<(Kind, u32)> {
        let egress_groups = self.numbers(tenant, Kind::Group).egress_groups();
        let groups = egress_groups.into_iter().chain(self.groups_in_order(tenant));
        let meters = self.numbers(tenant, Kind::Meter).all();
        let meters = meters.into_iter().map(|number| (Kind::Meter, number));
        groups.map(|number| (Kind::Group, number)).chain(meters).collect()
    }

    /// The message that a group or meter on the switch needs to agree with the tables; `None` if it agrees.
    pub(crate) fn number_difference(
        &self,
        tenant: TenantIndex,
        kind: Kind,
        number: u32,
    ) -> Vec<Vec<u8>> {
        let Some(known) = self.numbers(tenant, kind).any(number) else { return Vec::new() };
        let network = self.tenants[tenant].network.as_deref();
        let described = match kind {
            Kind::Group => known.group(),
            _ => None,
        };
        let different = known.instances.iter().filter_map(|(variant, id)| {
            let message = match described {
                Some(group) => {
                    let command = GroupModCommand::MODIFY;
                    self.write_instance(tenant, network, &group, variant, id, command).ok()?
                }
                None => write_meter(known, id)?,
            };
            self.if_different(kind, id, message)
        });
        different.collect()
    }

    /// A MODIFY of a group or meter, unless the switch has the same content. If the switch has nothing under the id,
    /// the message becomes an ADD.
    fn if_different(&self, kind: Kind, id: u32, mut message: Vec<u8>) -> Option<Vec<u8>> {
        /// OFPGC_ADD and OFPMC_ADD.
        const ADD: [u8; 2] = [0, 0];
        match self.session.installed().numbers().projected(kind, id) {
            None => message.iter_mut().skip(8).zip(ADD).for_each(|(at, byte)| *at = byte),
            projected if projected == content_of(&message).as_deref() => return None,
            Some(_) => {}
        }
        Some(message)
    }
}

/// The METER_MOD that gives a meter on the switch the tenant's content.
fn write_meter(known: &GroupOrMeter, meter_id: u32) -> Option<Vec<u8>> {
    let meter = MeterMod::parse(&known.body).ok()?;
    let mut message = Vec::new();
    let meter = MeterMod { meter_id, command: MeterModCommand::MODIFY, ..meter };
    meter.write_message(0, &mut message).ok().map(|()| message)
}

fn deletion_key(id: TenantId, kind: Kind, physical: u32) -> StoreKey {
    let kind = if kind == Kind::Meter { Kind::MeterToDelete } else { Kind::GroupToDelete };
    StoreKey::new(id, kind, physical)
}
