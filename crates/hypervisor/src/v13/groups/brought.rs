//! Forms of groups that the hypervisor brings to the switch for itself: with another map, after a new connection, and on the
//! way back of a change.
//!
//! One that the switch refuses is tried once more, since what stood in its way may have gone. If it is refused again, the group
//! cannot be what its tenant was told. Then it is lost: it is taken off the switch, and with it go the groups that name it and
//! the entries that use it, of which the tenant is told as of others that are lost.

use super::instances::Change;
use crate::ids::TenantIndex;
use crate::store::Kind;
use crate::switch::{Cause, NumberBefore, Switch};
use alloc::vec::Vec;
use openflow::error::v13 as code;
use openflow::v13::{GroupMod, GroupModCommand};
use openflow::{ErrorCode, Header};

/// What a message of the hypervisor's own brings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Brought {
    /// The group as its tenant numbers it, or the egress group.
    number: u32,
    /// The form, by its number on the switch.
    physical: u32,
    command: GroupModCommand,
    /// How often the switch has refused it before.
    refused: u8,
}

impl Brought {
    /// Whether it comes to the switch: then a crash must not find it unknown to the store.
    pub(crate) fn is_new(&self) -> bool {
        self.command == GroupModCommand::ADD
    }
}

impl Switch {
    /// Sends messages that bring forms of groups, each of which is an operation.
    pub(crate) fn bring(&mut self, cause: &Cause, messages: &[(u32, Vec<u8>)]) {
        for (number, message) in messages {
            let cause = self.begin_unasked(cause);
            self.bring_as(&cause, *number, message, 0);
        }
    }

    /// The same of one message that is an operation already.
    pub(super) fn bring_as(&mut self, cause: &Cause, number: u32, message: &[u8], refused: u8) {
        let group = GroupMod::parse(message.get(Header::LEN..).unwrap_or_default());
        let operation = cause.operation.and_then(|at| self.operations.get_mut(&at));
        if let (Some(operation), Ok(group)) = (operation, group) {
            let (physical, command) = (group.group_id, group.command);
            operation.brings = Some(Brought { number, physical, command, refused });
        }
        self.submit_change(cause, message);
    }

    /// The switch has refused a form.
    pub(crate) fn form_refused(&mut self, cause: &Cause, brought: Brought, code: ErrorCode) {
        let Brought { number, physical, command, refused } = brought;
        let known = self.numbers(cause.tenant, Kind::Group).any(number).cloned();
        let form =
            known.as_ref().and_then(|it| it.instances.iter().find(|(_, id)| *id == physical));
        // If it is not needed any more, then by a change that sees to it.
        let Some((known, form)) = known.zip(form) else { return };
        // Which of the two it has to be depends on what else is on its way, and is known by now.
        let (command, patience) = match code {
            code::GROUP_MOD_FAILED_GROUP_EXISTS => (GroupModCommand::MODIFY, 3),
            code::GROUP_MOD_FAILED_UNKNOWN_GROUP => (GroupModCommand::ADD, 3),
            _ => (command, 1),
        };
        let network = self.tenants[cause.tenant.0 as usize].network.clone();
        let group = GroupMod::parse(&known.body).ok();
        let message = group.filter(|_| refused < patience).and_then(|group| {
            self.write_instance(cause.tenant, network.as_deref(), &group, form, command).ok()
        });
        match message {
            Some(message) => {
                // A change that is on its way finds what this brings.
                self.unsettle(cause.tenant, &[number]);
                let cause = self.begin_replanning(cause);
                self.bring_as(&cause, number, &message, refused.saturating_add(1));
            }
            None => self.lose_group(cause, number),
        }
    }

    /// A group cannot be on the switch as it has to be.
    fn lose_group(&mut self, cause: &Cause, number: u32) {
        let tenant = cause.tenant;
        let lost = self.with_callers(tenant, number);
        let mut gone = Vec::new();
        // What names others goes before them.
        for number in lost.iter().rev() {
            if let Some(known) = self.replace_number(tenant, Kind::Group, *number, None) {
                gone.extend(known.instances.ids());
            }
        }
        self.unsettle(tenant, &lost);
        let is_lost = |group| lost.contains(&group);
        let rewatched = self.rewatch(tenant, is_lost, &mut Change::default());
        self.bring(cause, &rewatched);
        gone.iter().for_each(|number| self.mark_for_deletion(tenant, Kind::Group, *number));
        let users = self.tenants[tenant.0 as usize].flows.iter();
        let users =
            users.filter(|(_, flow)| self.uses_numbers(flow) && self.plan(tenant, flow).is_err());
        let users: Vec<u32> = users.map(|(number, _)| number).collect();
        users.into_iter().for_each(|number| self.give_up(cause, number));
        self.delete_unreferenced(cause, Kind::Group, gone);
    }

    /// What the switch holds of these groups is changed behind the changes of them that are on their way: should one of those
    /// fail, it is not as it was before, though all of the change was refused.
    fn unsettle(&mut self, tenant: TenantIndex, numbers: &[u32]) {
        let is_one = |one: &NumberBefore| one.kind == Kind::Group && numbers.contains(&one.number);
        for operation in self.operations.values_mut().filter(|it| it.tenant == tenant) {
            operation.inherits |= operation.numbers_before.iter().any(is_one);
        }
    }

    /// A group and those whose buckets send to it, by whichever others, each behind one that it names.
    fn with_callers(&self, tenant: TenantIndex, number: u32) -> Vec<u32> {
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
}
