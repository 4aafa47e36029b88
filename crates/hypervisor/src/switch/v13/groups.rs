//! A tenant's groups: their changes, and their instances on the switch.
//!
//! A group has one or several instances on the switch: [`compile::group`] says why. All this also applies to egress
//! groups: groups of Weir's own, to which buckets send. The instances are compiled whenever a group or the network
//! changes ([`instances`]). Buckets that watch groups are in [`watched`].

mod egress;
mod follow;
pub(super) mod instances;
pub(super) mod statistics;
pub(super) mod unused;
mod watched;

use crate::ids::TenantIndex;
use crate::named::{named_by, named_first};
use crate::store::Kind;
use crate::switch::{Cause, NumberBefore, Request, Switch, What};
use crate::v13::numbers::{GroupOrMeter, deletion};
use crate::v13::unreadable;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use compile::egress_group::is_egress_group;
use compile::group::{check_buckets, variants};
use compile::{Instances, Network, Reason, Refused, Variant};
use instances::Change;
use openflow::error::v13 as code;
use openflow::v13::{GROUP_ALL, GROUP_MAX, GroupMod, GroupModCommand};

/// The most buckets that a packet may pass in a group and in the groups that it sends to: as many as a group can have
/// by itself.
const MOST_PASSES: u64 = 4096;

impl Switch {
    /// A tenant changes its groups.
    pub(crate) fn group_mod_v13(&mut self, request: &Request<'_>) -> Result<(), Refused> {
        let group = GroupMod::parse(request.body()).map_err(unreadable)?;
        if group.command != GroupModCommand::DELETE {
            check_buckets(group.buckets)?;
        }
        // A DELETE without a group is a change, too: the switch may refuse an earlier change.
        self.begin(request);
        let groups = self.numbers(request.tenant, Kind::Group);
        let known = groups.get(group.group_id).cloned();
        match group.command {
            GroupModCommand::ADD if known.is_some() => {
                Err(code::GROUP_MOD_FAILED_GROUP_EXISTS.into())
            }
            GroupModCommand::ADD => {
                if group.group_id > GROUP_MAX {
                    return Err(code::GROUP_MOD_FAILED_INVALID_GROUP.into());
                }
                if groups.len() >= self.tenants[request.tenant].terms.limits.groups as usize {
                    return Err(code::GROUP_MOD_FAILED_OUT_OF_GROUPS.into());
                }
                self.add_group(request, &group)
            }
            GroupModCommand::MODIFY => {
                let known = known.ok_or(code::GROUP_MOD_FAILED_UNKNOWN_GROUP)?;
                self.modify_group(request, &group, known)
            }
            GroupModCommand::DELETE => self.delete_groups(request, group.group_id),
            _ => Err(code::GROUP_MOD_FAILED_BAD_COMMAND.into()),
        }
    }

    fn add_group(&mut self, request: &Request<'_>, group: &GroupMod<'_>) -> Result<(), Refused> {
        let (tenant, number) = (request.tenant, group.group_id);
        self.check_watched(tenant, group)?;
        self.check_passes(tenant, group)?;
        self.check_group_share(tenant, group)?;
        let egress_groups = self.ready_egress_groups(request, group)?;
        let (change, mut messages) = self.make_group(tenant, number, request.body().into())?;
        let mut change = Change { before: Vec::from([change]), ..Change::default() };
        let rewatched = self.rewatch(tenant, |group| group == number, &mut change);
        messages.extend(rewatched);
        let cause = self.submit_numbers(request, change.before, &messages);
        self.remember_egress_groups(&cause, egress_groups);
        self.submit_dropped(&cause, &change.dropped);
        Ok(())
    }

    /// Deletes ids that nothing needs after a change, behind all other messages. An id is deleted before the ids that
    /// its group names.
    fn submit_dropped(&mut self, cause: &Cause, dropped: &[u32]) {
        if dropped.is_empty() || self.is_replay() {
            return;
        }
        let cause = self.begin_own(cause, What::Free);
        for id in dropped.iter().rev() {
            self.submit_number(&cause, &deletion(Kind::Group, *id));
        }
    }

    /// An error if a new or changed group needs more groups of its type on the switch than before, and the tenant's
    /// share has no room for them.
    fn check_group_share(&self, tenant: TenantIndex, group: &GroupMod<'_>) -> Result<(), Refused> {
        let Some(share) = self.most_groups(tenant, group.type_) else { return Ok(()) };
        let wanted = 1 + variants(&self.context(tenant), group).len();
        let (mut own, mut others) = (0, 0);
        for (number, known) in self.numbers(tenant, Kind::Group).iter() {
            self.tenants[tenant].flows.meter().add(1);
            if known.group().is_some_and(|it| it.type_ == group.type_) {
                let counted = if number == group.group_id { &mut own } else { &mut others };
                *counted += known.instances.ids().count();
            }
        }
        let fits = wanted <= own || others + wanted <= share as usize;
        fits.then_some(()).ok_or(Reason::GroupShare.with(code::GROUP_MOD_FAILED_OUT_OF_GROUPS))
    }

    /// An error if a packet would pass too many buckets in a new or changed group, or in a group that sends to it. Each
    /// group may send to another group by several buckets, and so on: without a bound, some forty groups stop a switch
    /// with one packet.
    fn check_passes(&self, tenant: TenantIndex, group: &GroupMod<'_>) -> Result<(), Refused> {
        let groups = self.numbers(tenant, Kind::Group);
        let is_called = || !self.callers_of(tenant, group.group_id).is_empty();
        if named_by(group.buckets).next().is_none() && !is_called() {
            return Ok(());
        }
        let described = |number: u32| match number == group.group_id {
            true => Some(*group),
            false => groups.get(number).and_then(GroupOrMeter::group),
        };
        let named =
            |number| described(number).into_iter().flat_map(|it| named_by(it.buckets)).collect();
        let mut all = groups.all();
        all.push(group.group_id);
        all.sort_unstable();
        all.dedup();
        self.tenants[tenant].flows.meter().add(all.len() as u64);
        let mut passes: BTreeMap<u32, u64> = BTreeMap::new();
        for number in named_first(&all, named) {
            let Some(group) = described(number) else { continue };
            let sent = named_by(group.buckets).filter_map(|named| passes.get(&named));
            let sent = sent.fold(0_u64, |sum, one| sum.saturating_add(*one));
            let here = group.buckets.into_iter().count() as u64;
            passes.insert(number, here.saturating_add(sent));
        }
        let most = passes.values().copied().max().unwrap_or(0);
        if most > MOST_PASSES {
            Err(Reason::GroupPasses.with(code::GROUP_MOD_FAILED_OUT_OF_BUCKETS))
        } else {
            Ok(())
        }
    }

    /// Adds a group to the tables. Returns the messages that add the group to the switch.
    pub(super) fn make_group(
        &mut self,
        tenant: TenantIndex,
        number: u32,
        body: Box<[u8]>,
    ) -> Result<(NumberBefore, Vec<Vec<u8>>), Refused> {
        let physical = self.take_group(tenant, number, Variant::default())?;
        let wanted = GroupOrMeter { instances: Instances::new(physical, BTreeMap::new()), body };
        let formed = self.form_group(tenant, number, wanted);
        let mut formed = formed.inspect_err(|_| self.free_number(Kind::Group, physical))?;
        formed.made.push(physical);
        self.replace_number(tenant, Kind::Group, number, Some(formed.after));
        let made = formed.made;
        let change = NumberBefore { made, ..NumberBefore::new(Kind::Group, number, None) };
        Ok((change, formed.messages))
    }

    fn modify_group(
        &mut self,
        request: &Request<'_>,
        group: &GroupMod<'_>,
        known: GroupOrMeter,
    ) -> Result<(), Refused> {
        if self.reaches_group(request.tenant, group, group.group_id) {
            return Err(code::GROUP_MOD_FAILED_LOOP.into());
        }
        self.check_watched(request.tenant, group)?;
        self.check_passes(request.tenant, group)?;
        self.check_group_share(request.tenant, group)?;
        let egress_groups = self.ready_egress_groups(request, group)?;
        let wanted = GroupOrMeter { body: request.body().into(), ..known };
        let (tenant, number) = (request.tenant, group.group_id);
        let change = self.change_group(tenant, number, wanted)?;
        let entries = match change.regrouped.is_empty() {
            true => Some(Default::default()),
            false => self.planned_with(tenant, |group| change.regrouped.contains(&group)),
        };
        let Some(entries) = entries else {
            self.take_back(tenant, change.before);
            return Err(code::GROUP_MOD_FAILED_EPERM.into());
        };
        let cause = self.submit_numbers(request, change.before, &change.messages);
        self.remember_egress_groups(&cause, egress_groups);
        self.replace_rules(&cause, entries);
        self.submit_dropped(&cause, &change.dropped);
        Ok(())
    }

    /// Deletes a group. A missing group is not an error (specification section 6.5).
    fn delete_groups(&mut self, request: &Request<'_>, number: u32) -> Result<(), Refused> {
        let tenant = request.tenant;
        let mut gone = match number {
            GROUP_ALL => self.groups_in_order(tenant),
            number if is_egress_group(number) => Vec::new(),
            _ => Vec::from([number]),
        };
        if number != GROUP_ALL && !self.callers_of(tenant, number).is_empty() {
            return Err(code::GROUP_MOD_FAILED_CHAINED_GROUP.into());
        }
        // Groups that name other groups come first.
        gone.reverse();
        let (mut change, mut ids) = (Change::default(), Vec::new());
        for number in gone {
            let Some(known) = self.replace_number(tenant, Kind::Group, number, None) else {
                continue;
            };
            ids.extend(known.instances.ids());
            change.before.push(NumberBefore::new(Kind::Group, number, Some(known)));
        }
        if !change.before.is_empty() {
            let gone: BTreeSet<u32> = change.before.iter().map(|one| one.number).collect();
            // Other groups stop watching the groups that are to be deleted.
            let rewatched = self.rewatch(tenant, |group| gone.contains(&group), &mut change);
            let cause = self.begin_numbers(request, change.before);
            let mut users = self.take_users(&cause, Kind::Group, |group| gone.contains(&group));
            rewatched.iter().for_each(|message| self.submit_number(&cause, message));
            for physical in ids {
                self.submit_with_users(&cause, Kind::Group, physical, &mut users);
            }
            // Rules of these entries that name no deleted group.
            self.mend(&cause, users.into_iter().map(|(_, key, _)| key));
            self.submit_dropped(&cause, &change.dropped);
        }
        Ok(())
    }

    /// The message for one instance of a group, in a network that the tenant has or is about to have.
    pub(crate) fn write_instance(
        &self,
        tenant: TenantIndex,
        network: Option<&Network>,
        group: &GroupMod<'_>,
        variant: Variant,
        id: u32,
        command: GroupModCommand,
    ) -> Result<Vec<u8>, Refused> {
        let buckets = compile::group::buckets(&self.context_in(tenant, network), group, variant)?;
        let mut message = Vec::new();
        GroupMod { command, group_id: id, buckets: buckets.as_list(), ..*group }
            .write_message(0, &mut message)
            .map_err(|_| code::GROUP_MOD_FAILED_OUT_OF_BUCKETS)?;
        Ok(message)
    }

    /// The messages that change a network's groups for another configuration of its ports. The groups keep their
    /// instances.
    pub(crate) fn changed_groups(
        &self,
        tenant: TenantIndex,
        before: &Network,
        after: &Network,
    ) -> Result<Vec<(u32, Vec<u8>)>, Refused> {
        let mut messages = Vec::new();
        for (number, known) in self.numbers(tenant, Kind::Group).iter() {
            let Some(group) = known.group() else { continue };
            for (variant, id) in known.instances.iter() {
                let written = |network| {
                    let command = GroupModCommand::MODIFY;
                    self.write_instance(tenant, Some(network), &group, variant, id, command)
                };
                let is = written(after)?;
                if written(before).as_ref() != Ok(&is) {
                    messages.push((number, is));
                }
            }
        }
        Ok(messages)
    }
}
