//! The instances of each group: compiled again when a group or the network changes.
//!
//! Groups are written before the groups and entries that name them, and deleted behind them.

use crate::flows::room::AT_ONCE;
use crate::flows::shared::collide;
use crate::flows::{Flow, Rule};
use crate::ids::TenantIndex;
use crate::named::{groups_of, named_by, named_first};
use crate::store::Kind;
use crate::switch::{NumberBefore, Switch};
use crate::v13::ids::MAX_NUMBERS;
use crate::v13::numbers::GroupOrMeter;
use crate::v13::unreadable;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use compile::group::{recirculates, variants};
use compile::{Instances, Reason, Refused};
use hashbrown::HashMap;
use openflow::error::v13 as code;
use openflow::v13::{GroupMod, GroupModCommand};

/// A compiled group, with its instances.
pub(super) struct Formed {
    pub after: GroupOrMeter,
    /// New ids of the group.
    pub made: Vec<u32>,
    /// Ids that the group no longer needs.
    pub dropped: Vec<u32>,
    /// The messages that bring the group to the switch.
    pub messages: Vec<Vec<u8>>,
}

/// A change of a group, and of other groups whose instances change with it.
#[derive(Default)]
pub(super) struct Change {
    pub before: Vec<NumberBefore>,
    pub messages: Vec<Vec<u8>>,
    /// Ids on the switch that nothing needs afterwards.
    pub dropped: Vec<u32>,
    /// Groups that have other instances now, or that begin or stop to recirculate packets.
    pub regrouped: BTreeSet<u32>,
}

impl Switch {
    /// Compiles the instances of a group. `known` has the present ids.
    pub(super) fn form_group(
        &mut self,
        tenant: TenantIndex,
        number: u32,
        known: GroupOrMeter,
    ) -> Result<Formed, Refused> {
        let network = self.tenants[tenant].network.clone();
        let network = network.as_deref();
        let group = GroupMod::parse(&known.body).map_err(unreadable)?;
        let wanted = variants(&self.context(tenant), &group);
        let recirculates = recirculates(&self.context(tenant), &group);
        let groups = self.numbers(tenant, Kind::Group);
        let present = groups.any(number).map(|it| it.instances.ids().count());
        let others = groups.instances() - present.unwrap_or(0);
        if others + wanted.len() >= MAX_NUMBERS {
            return Err(Reason::GroupInstances.with(code::GROUP_MOD_FAILED_OUT_OF_GROUPS));
        }
        let (mut ids, mut made) = (BTreeMap::new(), Vec::new());
        let mut taken = Ok(());
        for &variant in &wanted {
            match known.instances.variants().get(&variant) {
                Some(&id) => drop(ids.insert(variant, id)),
                None => match self.take_group(tenant, number, variant) {
                    Ok(id) => {
                        made.push(id);
                        ids.insert(variant, id);
                    }
                    Err(code) => taken = Err(code.into()),
                },
            }
        }
        let gone = known.instances.variants().iter();
        let gone = gone.filter(|(variant, _)| !wanted.contains(variant));
        let dropped = gone.map(|(_, &id)| id).collect();
        let instances = Instances::new(known.instances.id(), ids).recirculating(recirculates);
        let after = GroupOrMeter { instances, ..known.clone() };
        let write = |(variant, id)| {
            let command = match present.is_none() || made.contains(&id) {
                true => GroupModCommand::ADD,
                false => GroupModCommand::MODIFY,
            };
            self.write_instance(tenant, network, &group, variant, id, command)
        };
        let messages = taken.and_then(|()| after.instances.iter().map(write).collect());
        match messages {
            Ok(messages) => Ok(Formed { after, made, dropped, messages }),
            Err(code) => {
                made.into_iter().for_each(|id| self.free_number(Kind::Group, id));
                Err(code)
            }
        }
    }

    /// Changes a group and the groups that name it, in the tables. The switch gets no message yet.
    pub(super) fn change_group(
        &mut self,
        tenant: TenantIndex,
        number: u32,
        wanted: GroupOrMeter,
    ) -> Result<Change, Refused> {
        let formed = self.form_group(tenant, number, wanted)?;
        let mut change = Change::default();
        self.adopt_formed(tenant, number, formed, &mut change);
        if change.regrouped.is_empty() {
            return Ok(change);
        }
        for caller in self.groups_in_order(tenant) {
            let Some(known) = self.numbers(tenant, Kind::Group).get(caller).cloned() else {
                continue;
            };
            if caller == number || !known.named().any(|it| change.regrouped.contains(&it)) {
                continue;
            }
            match self.form_group(tenant, caller, known) {
                Ok(mut formed) => {
                    self.leave_out_unchanged(tenant, &mut formed, &change.before);
                    self.adopt_formed(tenant, caller, formed, &mut change);
                }
                Err(code) => {
                    self.take_back(tenant, change.before);
                    return Err(code);
                }
            }
        }
        Ok(change)
    }

    /// Leaves out messages for unchanged instances of a group that names other groups: their counters would begin at 0.
    fn leave_out_unchanged(
        &self,
        tenant: TenantIndex,
        formed: &mut Formed,
        changed: &[NumberBefore],
    ) {
        let groups = self.numbers(tenant, Kind::Group);
        let is_same = |variant| {
            changed.iter().all(|one| {
                let was = one.before.as_ref().map(|it| &it.instances);
                let is = groups.get(one.number).map(|it| &it.instances);
                // A bucket may name the instance for packets with another tag than the packet had when it came.
                match was.into_iter().chain(is).any(Instances::depend_on_tag) {
                    true => was.map(Instances::variants) == is.map(Instances::variants),
                    false => was.map(|it| it.id_for(variant)) == is.map(|it| it.id_for(variant)),
                }
            })
        };
        let Formed { after, made, messages, .. } = formed;
        let mut instances = after.instances.iter();
        messages.retain(|_| {
            let instance = instances.next();
            instance.is_none_or(|(variant, id)| made.contains(&id) || !is_same(variant))
        });
    }

    /// Whether a change of a group affects the groups that name it.
    fn is_regrouped(&self, tenant: TenantIndex, number: u32, formed: &Formed) -> bool {
        let known = self.numbers(tenant, Kind::Group).any(number).map(|it| &it.instances);
        let is_kept = known
            .is_some_and(|known| known.recirculates() == formed.after.instances.recirculates());
        !is_kept || !formed.made.is_empty() || !formed.dropped.is_empty()
    }

    pub(super) fn adopt_formed(
        &mut self,
        tenant: TenantIndex,
        number: u32,
        formed: Formed,
        change: &mut Change,
    ) {
        if self.is_regrouped(tenant, number, &formed) {
            change.regrouped.insert(number);
        }
        let Formed { after, made, messages, dropped } = formed;
        change.dropped.extend(dropped);
        let before = self.replace_number(tenant, Kind::Group, number, Some(after));
        change.before.push(NumberBefore { made, ..NumberBefore::new(Kind::Group, number, before) });
        change.messages.extend(messages);
    }

    /// Undoes a change of which the switch has got no message.
    pub(super) fn take_back(&mut self, tenant: TenantIndex, before: Vec<NumberBefore>) {
        for one in before.into_iter().rev() {
            self.replace_number(tenant, Kind::Group, one.number, one.before);
            one.made.into_iter().for_each(|number| self.free_number(Kind::Group, number));
        }
    }

    /// Makes missing egress groups in the tables. Gives all groups that are to be compiled again, each after those that
    /// it names.
    pub(crate) fn begin_to_reform(&mut self, tenant: TenantIndex) -> Vec<u32> {
        self.make_missing_egress_groups(tenant);
        let mut groups = self.numbers(tenant, Kind::Group).egress_groups();
        groups.extend(self.groups_in_order(tenant));
        groups
    }

    /// Compiles a group again, in the tables, because the network or other groups have changed. A group that cannot be
    /// compiled any more is removed from the tables.
    pub(crate) fn reform_group(&mut self, tenant: TenantIndex, number: u32) {
        let Some(known) = self.numbers(tenant, Kind::Group).any(number).cloned() else { return };
        let formed = match self.tenants[tenant].terms.is_present() {
            true => self.form_group(tenant, number, known).ok(),
            false => None,
        };
        match formed {
            Some(formed) if !self.is_regrouped(tenant, number, &formed) => {}
            formed => {
                self.replace_number(tenant, Kind::Group, number, formed.map(|it| it.after));
            }
        }
    }

    /// A group, and all groups whose buckets send to it, directly or through other groups; each behind the groups that
    /// it names.
    pub(crate) fn with_callers(&self, tenant: TenantIndex, number: u32) -> Vec<u32> {
        let mut found = Vec::from([number]);
        let mut at = 0;
        while let Some(&number) = found.get(at) {
            let callers = self.callers_of(tenant, number);
            // A group that is reached twice comes after all groups that it names.
            found.retain(|other| !callers.contains(other));
            at = found.iter().position(|other| *other == number).map_or(found.len(), |it| it + 1);
            found.extend(callers);
        }
        found
    }

    /// The entries that use some of these groups and that get other rules. `None` if such an entry cannot be installed.
    pub(super) fn planned_with(
        &self,
        tenant: TenantIndex,
        is_meant: impl Fn(u32) -> bool,
    ) -> Option<HashMap<u32, Vec<Rule>>> {
        let flows = &self.tenants[tenant].flows;
        let uses = |flow: &Flow| groups_of(&flow.actions).into_iter().any(&is_meant);
        let using: Vec<_> = flows.iter().filter(|(_, flow)| uses(flow)).collect();
        let numbers: Vec<u32> = using.iter().map(|(number, _)| *number).collect();
        let entries_left = self.rules_left(tenant, flows.tables_of(&numbers));
        let mut room = flows.room_for(numbers.into_iter(), entries_left, AT_ONCE);
        let mut planned = HashMap::new();
        for (number, flow) in using {
            let rules = self.plan(tenant, flow).ok()?;
            if !room.take(flow, &rules) {
                return None;
            }
            if rules != flow.rules {
                planned.insert(number, rules);
            }
        }
        (!collide(flows, &planned)).then_some(planned)
    }

    /// A tenant's groups, each after those that it names.
    pub(crate) fn groups_in_order(&self, tenant: TenantIndex) -> Vec<u32> {
        let numbers = self.numbers(tenant, Kind::Group);
        named_first(&numbers.all(), |it| numbers.get(it).iter().flat_map(|it| it.named()).collect())
    }

    /// Whether a group's buckets send to the target, directly or through other groups.
    pub(super) fn reaches_group(
        &self,
        tenant: TenantIndex,
        group: &GroupMod<'_>,
        target: u32,
    ) -> bool {
        let numbers = self.numbers(tenant, Kind::Group);
        let (mut next, mut seen) = (named_by(group.buckets).collect::<Vec<u32>>(), BTreeSet::new());
        while let Some(number) = next.pop() {
            if number == target {
                return true;
            }
            let known = numbers.get(number).filter(|_| seen.insert(number));
            next.extend(known.iter().flat_map(|it| it.named()));
        }
        false
    }

    /// The tenant's groups whose buckets send to a group.
    pub(super) fn callers_of(&self, tenant: TenantIndex, number: u32) -> Vec<u32> {
        let groups = self.numbers(tenant, Kind::Group).iter();
        let callers = groups.filter(|(_, known)| known.named().any(|named| named == number));
        callers.map(|(caller, _)| caller).collect()
    }
}
