//! Groups: one of a tenant's is one on the switch, or several.
//!
//! A switch sends nothing back by the port that a packet came from unless told IN_PORT, and a packet is never sent back by
//! the virtual port that it came by. So where several virtual ports stand on one physical port, what a bucket has to say
//! depends on the port of entry, and a bucket cannot ask for it. Such a group has *copies* beside the form that is for all
//! other packets, each for one port of entry and, since the end of a link may receive at several, one port of the switch:
//!
//! ```text
//!   buckets of the tenant's      for packets by 10      by 11                by others, or out of a controller's hands
//!   output:10                    does nothing           tag of 10, IN_PORT   tag of 10, OUTPUT 5
//!   output:11                    tag of 11, IN_PORT     does nothing         tag of 11, OUTPUT 5
//!   output:1                     OUTPUT 1               OUTPUT 1             OUTPUT 1
//! ```
//! So it is with the VLAN tag where a bucket sends by a link whose other end is on 1.0 ([`super::network`], `wires`): such a
//! group has a copy for frames with a tag, which do not pass there.
//!
//! ```text
//!   bucket of the tenant's      without a tag             with one
//!   output:10                   tag of 10, OUTPUT 5       does nothing
//! ```
//! A bucket that does nothing stays a bucket: it has its weight, its counts, and what it watches. A bucket that names
//! another group names its copy for the same packets, so a group has copies for all for which one that it names
//! has any. Entries that use a group with copies are written once per port of entry, as others that send to such ports.
//!
//! A group that has to do with no such port has no copies, and is one on the switch. What is said here holds for
//! [exits], too: groups of Weir's own, by which buckets send. Which are needed is worked out in
//! [`copies`] whenever a group or the network changes; the way back when the switch refuses a part is in [`undo`], and what
//! becomes of a group that Weir cannot bring to the switch for itself in [`brought`]. Buckets that watch groups are in
//! [`watched`].

pub(crate) mod brought;
pub(crate) mod copies;
pub(crate) mod statistics;
pub(crate) mod undo;
mod watched;

use super::looks::Look;
use super::network::exits::{self, is_exit};
use super::numbers::{Numbered, write_deletion};
use super::unreadable;
use crate::flows::is_tellable;
use crate::ids::TenantIndex;
use crate::network::Network;
use crate::store::Kind;
use crate::switch::{NumberBefore, Request, Switch};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use copies::Change;
use openflow::error::v13 as code;
use openflow::v13::{
    Action, Bucket, GROUP_ALL, GROUP_ANY, GROUP_MAX, GroupMod, GroupModCommand, PortNo,
};
use openflow::{ErrorCode, List, ListBuf};

/// Groups of one tenant on one switch.
const MAX_GROUPS: usize = 1024;

impl Switch {
    /// A tenant changes its groups.
    pub(crate) fn group_mod_v13(&mut self, request: &Request<'_>) -> Result<(), ErrorCode> {
        let group = GroupMod::parse(request.body()).map_err(unreadable)?;
        if group.command != GroupModCommand::DELETE {
            check_buckets(group.buckets)?;
        }
        let is_any = group.group_id == GROUP_ALL;
        let is_meant = |number| (is_any || number == group.group_id) && !is_exit(number);
        let named: Vec<u32> = named_by(&group).collect();
        // There it has several forms, which a change that is refused may leave half made.
        let is_network = self.tenants[request.tenant.0 as usize].network.is_some();
        if self.is_open(request.tenant, Kind::Group, |it| is_meant(it) || named.contains(&it))
            || is_network && self.is_becoming(request.tenant, is_meant)
            || self.waits_for_users(request.tenant, &group)
        {
            self.postpone(request);
            return Ok(());
        }
        let groups = self.numbers(request.tenant, Kind::Group);
        let known = groups.get(group.group_id).cloned();
        match group.command {
            GroupModCommand::ADD if known.is_some() => Err(code::GROUP_MOD_FAILED_GROUP_EXISTS),
            GroupModCommand::ADD => {
                if group.group_id > GROUP_MAX {
                    return Err(code::GROUP_MOD_FAILED_INVALID_GROUP);
                }
                if groups.len() >= MAX_GROUPS {
                    return Err(code::GROUP_MOD_FAILED_OUT_OF_GROUPS);
                }
                self.add_group(request, &group)
            }
            GroupModCommand::MODIFY => {
                let known = known.ok_or(code::GROUP_MOD_FAILED_UNKNOWN_GROUP)?;
                self.modify_group(request, &group, known)
            }
            GroupModCommand::DELETE => self.delete_groups(request, group.group_id),
            _ => Err(code::GROUP_MOD_FAILED_BAD_COMMAND),
        }
    }

    fn add_group(&mut self, request: &Request<'_>, group: &GroupMod<'_>) -> Result<(), ErrorCode> {
        let (tenant, number) = (request.tenant, group.group_id);
        self.check_watched(tenant, group)?;
        let exits = self.ready_exits_of_group(request, group)?;
        let (change, mut messages) = self.make_group(tenant, number, request.body().into())?;
        let mut change = Change { before: Vec::from([change]), ..Change::default() };
        let rewatched = self.rewatch(tenant, |group| group == number, &mut change);
        messages.extend(rewatched.into_iter().map(|(_, message)| message));
        let cause = self.submit_numbers(request, change.before, &messages);
        self.remember_exits(&cause, exits);
        Ok(())
    }

    /// A new group in the tables, and the messages that make it on the switch.
    pub(super) fn make_group(
        &mut self,
        tenant: TenantIndex,
        number: u32,
        body: Box<[u8]>,
    ) -> Result<(NumberBefore, Vec<Vec<u8>>), ErrorCode> {
        let physical = self.take_group()?;
        let wanted = Numbered { physical, copies: BTreeMap::new(), body };
        let formed = self.form_group(tenant, wanted, &|_| GroupModCommand::ADD);
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
        known: Numbered,
    ) -> Result<(), ErrorCode> {
        if self.reaches_group(request.tenant, group, group.group_id) {
            return Err(code::GROUP_MOD_FAILED_LOOP);
        }
        self.check_watched(request.tenant, group)?;
        let exits = self.ready_exits_of_group(request, group)?;
        let wanted = Numbered { body: request.body().into(), ..known };
        let (tenant, number) = (request.tenant, group.group_id);
        let change = self.change_group(tenant, number, wanted)?;
        let entries = match change.regrouped.is_empty() {
            true => Ok(Default::default()),
            false => self.planned_with(tenant, |group| change.regrouped.contains(&group)),
        };
        let Ok(entries) = entries else {
            self.take_back(tenant, change.before);
            return Err(code::GROUP_MOD_FAILED_EPERM);
        };
        let cause = self.submit_numbers(request, change.before, &change.messages);
        self.remember_exits(&cause, exits);
        self.replace_pieces(&cause, entries);
        Ok(())
    }

    /// Deletes a group or, if there is nothing like that, none: that is not an error (specification section 6.5).
    fn delete_groups(&mut self, request: &Request<'_>, number: u32) -> Result<(), ErrorCode> {
        let tenant = request.tenant;
        let mut gone = match number {
            GROUP_ALL => self.groups_in_order(tenant),
            number if is_exit(number) => Vec::new(),
            _ => Vec::from([number]),
        };
        if self.has_open_callers(tenant, &gone) {
            self.postpone(request);
            return Ok(());
        }
        if number != GROUP_ALL && !self.callers_of(tenant, number).is_empty() {
            return Err(code::GROUP_MOD_FAILED_CHAINED_GROUP);
        }
        // Those that name others first.
        gone.reverse();
        let (mut change, mut messages) = (Change::default(), Vec::new());
        for number in gone {
            let Some(known) = self.replace_number(tenant, Kind::Group, number, None) else {
                continue;
            };
            let deleted: Vec<u32> = known.all().collect();
            for physical in &deleted {
                let mut message = Vec::new();
                // It fits: a deletion is a few bytes.
                let _ = write_deletion(Kind::Group, *physical, &mut message);
                messages.push(message);
            }
            let before = NumberBefore::new(Kind::Group, number, Some(known));
            change.before.push(NumberBefore { deleted, ..before });
        }
        if !change.before.is_empty() {
            let gone: BTreeSet<u32> = change.before.iter().map(|one| one.number).collect();
            // They cease to watch what is about to go.
            let rewatched = self.rewatch(tenant, |group| gone.contains(&group), &mut change);
            let cause = self.begin_numbers(request, change.before);
            self.take_users(&cause, Kind::Group, |group| gone.contains(&group));
            let rewatched = rewatched.iter().map(|(_, message)| message);
            rewatched.chain(&messages).for_each(|message| self.submit_change(&cause, message));
        }
        Ok(())
    }

    /// Whether entries are about to use a group, or to cease to, on which hangs whether it can be changed, or what goes with it.
    fn waits_for_users(&self, tenant: TenantIndex, group: &GroupMod<'_>) -> bool {
        let groups = self.numbers(tenant, Kind::Group);
        let is_all = group.group_id == GROUP_ALL;
        let is_meant = |it: u32| is_all && groups.get(it).is_some() || it == group.group_id;
        let concerns = match group.command {
            GroupModCommand::DELETE => true,
            // Beside the group, other forms of it may be needed then.
            GroupModCommand::MODIFY => self.tenants[tenant.0 as usize].network.is_some(),
            _ => false,
        };
        concerns
            && (is_all || groups.get(group.group_id).is_some())
            && self.has_open_users(tenant, Kind::Group, is_meant)
    }

    /// Whether a change is on its way of a group that names some of these, or did before: with it stands or falls whether they
    /// may go, and till it is done the switch may have forms of that group which name them.
    fn has_open_callers(&self, tenant: TenantIndex, gone: &[u32]) -> bool {
        let groups = self.numbers(tenant, Kind::Group);
        let names = |known: &Numbered| names(known, |named| gone.contains(&named));
        let changes = self.operations.values().filter(|operation| operation.tenant == tenant);
        let mut changes = changes.flat_map(|operation| &operation.numbers_before);
        changes.any(|one| {
            let stays = groups.get(one.number).filter(|_| !gone.contains(&one.number));
            one.kind == Kind::Group && one.before.as_ref().into_iter().chain(stays).any(names)
        })
    }

    /// A group's buckets as they have to be on the switch, for such packets.
    fn translate_buckets(
        &self,
        tenant: TenantIndex,
        network: Option<&Network>,
        group: &GroupMod<'_>,
        look: Look,
    ) -> Result<ListBuf<Bucket<'static>>, ErrorCode> {
        let mut out = ListBuf::<Bucket<'static>>::new();
        let exit = network.and_then(|network| exits::buckets(network, group));
        let buckets = exit.as_ref().map_or(group.buckets, ListBuf::as_list);
        for bucket in buckets {
            let watch_port = match (bucket.watch_port, network) {
                (PortNo::ANY, _) => PortNo::ANY,
                (watched, Some(network)) if network.ports.contains_key(&watched.0) => {
                    let physical = network.physical(watched.0).map(PortNo);
                    physical.filter(|_| network.is_live(watched.0)).unwrap_or(PortNo::ANY)
                }
                (watched, None) if self.view.sees_port(tenant, watched.0) => watched,
                _ => return Err(code::GROUP_MOD_FAILED_BAD_WATCH),
            };
            if self.is_left_out(tenant, network, group.type_, &bucket) {
                continue;
            }
            let watch_group = self.watched(tenant, bucket.watch_group).unwrap_or(GROUP_ANY);
            let (number, list) = (group.group_id, bucket.actions);
            let mut actions = Vec::new();
            match network {
                Some(network) => {
                    let group = (number, look);
                    self.network_bucket_v13(tenant, network, group, list, &mut actions)?;
                }
                None => self.translate_bucket_v13(tenant, number, list, &mut actions)?,
            }
            let actions = List::parse(&actions).map_err(unreadable)?;
            out.push(Bucket { watch_port, watch_group, actions, ..bucket });
        }
        Ok(out)
    }

    /// The message for one form of a group, in a network that the tenant has or is about to have.
    fn write_form(
        &self,
        tenant: TenantIndex,
        network: Option<&Network>,
        group: &GroupMod<'_>,
        (look, physical): (Look, u32),
        command: GroupModCommand,
    ) -> Result<Vec<u8>, ErrorCode> {
        if network.is_none() && is_exit(group.group_id) {
            return Err(code::BAD_ACTION_BAD_OUT_PORT);
        }
        if let Some(open) = network.and_then(Network::open) {
            self.translate_buckets(tenant, Some(open), group, look)?;
        }
        let buckets = self.translate_buckets(tenant, network, group, look)?;
        check_buckets(buckets.as_list())?;
        let mut message = Vec::new();
        GroupMod { command, group_id: physical, buckets: buckets.as_list(), ..*group }
            .write_message(0, &mut message)
            .map_err(|_| code::GROUP_MOD_FAILED_OUT_OF_BUCKETS)?;
        Ok(message)
    }

    /// The messages that make a network's groups what they have to be with other ports of it in use. They need the same
    /// copies.
    pub(crate) fn changed_groups(
        &self,
        tenant: TenantIndex,
        before: &Network,
        after: &Network,
    ) -> Result<Vec<(u32, Vec<u8>)>, ErrorCode> {
        let mut messages = Vec::new();
        for (number, known) in self.numbers(tenant, Kind::Group).iter() {
            let Ok(group) = GroupMod::parse(&known.body) else { continue };
            for form in known.forms() {
                let written = |network| {
                    let command = GroupModCommand::MODIFY;
                    self.write_form(tenant, Some(network), &group, form, command)
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

/// An error if nobody could be told of so many buckets, or so long ones.
fn check_buckets(buckets: List<'_, Bucket<'_>>) -> Result<(), ErrorCode> {
    let is_tellable = is_tellable(buckets.as_bytes().len(), buckets.iter().count());
    is_tellable.then_some(()).ok_or(code::GROUP_MOD_FAILED_OUT_OF_BUCKETS)
}

/// Groups, by ascending numbers, each after those of them that it names; where they name each other in a circle, somehow.
pub(crate) fn named_first(groups: &[u32], named: impl Fn(u32) -> Vec<u32>) -> Vec<u32> {
    let (mut order, mut seen) = (Vec::new(), BTreeSet::new());
    for &start in groups {
        let mut path = Vec::new();
        if seen.insert(start) {
            path.push((start, named(start)));
        }
        while let Some((number, rest)) = path.last_mut() {
            match rest.pop() {
                Some(next) if groups.binary_search(&next).is_ok() && seen.insert(next) => {
                    path.push((next, named(next)));
                }
                Some(_) => {}
                None => {
                    order.push(*number);
                    path.pop();
                }
            }
        }
    }
    order
}

/// Whether a group's buckets send to one that is meant.
fn names(known: &Numbered, is_meant: impl Fn(u32) -> bool) -> bool {
    GroupMod::parse(&known.body).is_ok_and(|group| named_by(&group).any(is_meant))
}

/// The groups that a group's buckets send to.
pub(crate) fn named_by<'a>(group: &GroupMod<'a>) -> impl Iterator<Item = u32> + use<'a> {
    let actions = group.buckets.into_iter().flat_map(|bucket| bucket.actions);
    actions.filter_map(|action| match action {
        Action::Group(number) => Some(number),
        _ => None,
    })
}
