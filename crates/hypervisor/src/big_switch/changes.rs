//! Changes of tables and ports: to all members, and back from all of them if one refuses.

use super::entries::Entry;
use super::wire::{self, Command};
use super::{BigSwitch, Sent};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use openflow::v13::{GroupMod, GroupModCommand, GroupType, MeterMod, MeterModCommand};
use openflow::{ErrorCode, Header, List, NO_BUFFER, frame};

/// A change of the front's that not all members have confirmed.
pub(super) struct Operation {
    xid: u32,
    undo: Undo,
    failed: bool,
    /// Members that have not confirmed it.
    pub(super) open: BTreeSet<u64>,
}

/// What was before.
enum Undo {
    Flow { cookie: u64, before: Option<Box<Entry>> },
    Number { which: Numbered, number: u32, before: Option<Vec<u8>> },
    Port { number: u32, before: u32, after: u32 },
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbered {
    Group,
    Meter,
}

impl BigSwitch {
    /// A FLOW_MOD of the front's: of one entry, which its cookie names.
    pub(super) fn flow_mod(&mut self, xid: u32, message: &[u8], now: Instant) {
        let Some(flow_mod) = wire::flow_mod(self.version, message) else {
            self.refuse(xid, self.codes().bad_request, message);
            return;
        };
        let cookie = flow_mod.cookie;
        let operation = self.take_number();
        let before = self.entries.get(&cookie).cloned().map(Box::new);
        let members = self.live();
        let buffered = self.buffers.iter().find(|(id, ..)| *id == flow_mod.buffer_id).copied();
        match flow_mod.command {
            Command::Add => {
                let terms = wire::terms(self.version, &flow_mod.add);
                let mut entry = Entry::new(flow_mod.add, terms, &members, operation, now);
                if let Some(before) = before.as_ref().filter(|_| !flow_mod.counts_anew) {
                    entry.past = before.past;
                }
                self.entries.insert(cookie, entry);
            }
            Command::Modify => match self.entries.get_mut(&cookie) {
                Some(entry) => {
                    entry.add = wire::modified(self.version, &entry.add, &flow_mod.add);
                    entry.operation = operation;
                    if flow_mod.counts_anew {
                        entry.count_anew();
                    }
                }
                // On 1.0 that adds it.
                None if self.version == openflow::Version::V1_0 => {
                    let terms = wire::terms(self.version, &flow_mod.add);
                    let entry = Entry::new(flow_mod.add, terms, &members, operation, now);
                    self.entries.insert(cookie, entry);
                }
                None => {}
            },
            Command::Delete => {}
        }
        for &dpid in &members {
            let gone = self.entries.get(&cookie).is_some_and(|entry| entry.is_gone_at(dpid));
            let part = if gone && flow_mod.command == Command::Modify {
                let part = self.again(cookie, now);
                self.entries.entry(cookie).and_modify(|entry| entry.put_at(dpid, now));
                part
            } else {
                let mut part = message.to_vec();
                let own = buffered.filter(|(_, member, _)| *member == dpid);
                frame::set_buffer_id(&mut part, own.map_or(NO_BUFFER, |(.., id)| id));
                part
            };
            self.send(dpid, Sent::Change(operation), &part);
        }
        if let Some((id, ..)) = buffered {
            self.buffers.retain(|(known, ..)| *known != id);
        }
        if flow_mod.command == Command::Delete {
            self.leave(cookie, DELETED, now);
        }
        let undo = Undo::Flow { cookie, before };
        self.begin(operation, xid, undo, members);
    }

    /// A GROUP_MOD of the front's.
    pub(super) fn group_mod(&mut self, xid: u32, message: &[u8]) {
        let Ok(group) = GroupMod::parse(message.get(Header::LEN..).unwrap_or_default()) else {
            self.refuse(xid, self.codes().bad_request, message);
            return;
        };
        let deletes = group.command == GroupModCommand::DELETE;
        let mut add = Vec::new();
        let _ = GroupMod { command: GroupModCommand::ADD, ..group }.write_message(0, &mut add);
        self.numbered(Numbered::Group, group.group_id, (!deletes).then_some(add), xid, message);
    }

    /// A METER_MOD of the front's.
    pub(super) fn meter_mod(&mut self, xid: u32, message: &[u8]) {
        let Ok(meter) = MeterMod::parse(message.get(Header::LEN..).unwrap_or_default()) else {
            self.refuse(xid, self.codes().bad_request, message);
            return;
        };
        let deletes = meter.command == MeterModCommand::DELETE;
        let mut add = Vec::new();
        let _ = MeterMod { command: MeterModCommand::ADD, ..meter }.write_message(0, &mut add);
        self.numbered(Numbered::Meter, meter.meter_id, (!deletes).then_some(add), xid, message);
    }

    /// A PORT_MOD of the front's: members that do not have the port send to it, and have to know as well.
    pub(super) fn port_mod(&mut self, xid: u32, message: &[u8]) {
        let Some((number, config, mask)) = wire::port_mod(self.version, message) else {
            self.refuse(xid, self.codes().bad_request, message);
            return;
        };
        let members = self.live();
        if members.is_empty() {
            self.refuse(xid, self.codes().not_now, message);
            return;
        }
        let operation = self.take_number();
        let before = self.config.get(&number).copied().unwrap_or(0);
        let after = before & !mask | config & mask;
        self.set_config_of(number, after);
        for &dpid in &members {
            self.send(dpid, Sent::Change(operation), message);
        }
        self.begin(operation, xid, Undo::Port { number, before, after }, members);
    }

    fn set_config_of(&mut self, number: u32, config: u32) {
        match config {
            0 => self.config.remove(&number),
            _ => self.config.insert(number, config),
        };
    }

    /// A member has come: it is told what is configured of its ports, where it holds something else. Before the front
    /// has been there, what it has configured itself counts, and those that came before it are told.
    pub(super) fn configure_ports(&mut self, dpid: u64) {
        let Some(member) = self.members.get(&dpid) else { return };
        let held = |port: &Vec<u8>| wire::port_config(self.version, port);
        if !self.is_settled {
            for (&number, port) in member.ports.iter().filter(|(_, port)| held(port) != 0) {
                self.config.entry(number).or_insert(held(port));
            }
        }
        let mut messages = Vec::new();
        for dpid in self.live() {
            let Some(member) = self.members.get(&dpid) else { continue };
            for (number, port) in &member.ports {
                let wanted = self.config.get(number).copied().unwrap_or(0);
                if held(port) != wanted {
                    messages.push((dpid, wire::configure(self.version, port, wanted)));
                }
            }
        }
        for (dpid, message) in messages {
            self.send(dpid, Sent::Own(None), &message);
        }
    }

    fn numbered(
        &mut self,
        which: Numbered,
        number: u32,
        add: Option<Vec<u8>>,
        xid: u32,
        message: &[u8],
    ) {
        let operation = self.take_number();
        let before = self.set_numbered(which, number, add);
        let members = self.live();
        for &dpid in &members {
            self.send(dpid, Sent::Change(operation), message);
        }
        self.begin(operation, xid, Undo::Number { which, number, before }, members);
    }

    fn set_numbered(
        &mut self,
        which: Numbered,
        number: u32,
        add: Option<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        let table = match which {
            Numbered::Group => &mut self.groups,
            Numbered::Meter => &mut self.meters,
        };
        match add {
            Some(add) => table.insert(number, add),
            None => table.remove(&number),
        }
    }

    fn begin(&mut self, number: u64, xid: u32, undo: Undo, members: Vec<u64>) {
        if !members.is_empty() {
            let open = members.into_iter().collect();
            self.operations.insert(number, Operation { xid, undo, failed: false, open });
        }
    }

    pub(super) fn take_number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// A member has done its part.
    pub(super) fn change_confirmed(&mut self, number: u64, dpid: u64) {
        if let Some(operation) = self.operations.get_mut(&number) {
            operation.open.remove(&dpid);
            if operation.open.is_empty() {
                self.operations.remove(&number);
            }
        }
    }

    /// A member has refused its part: the others take theirs back, and the front is told once.
    pub(super) fn change_refused(&mut self, number: u64, dpid: u64, code: ErrorCode, now: Instant) {
        let Some(operation) = self.operations.get_mut(&number) else { return };
        let failed_before = core::mem::replace(&mut operation.failed, true);
        let xid = operation.xid;
        if !failed_before {
            let others: Vec<u64> = self.live().into_iter().filter(|it| *it != dpid).collect();
            self.undo(number, &others, now);
            // Barriers that were passed on already have to be behind that as well.
            for &other in &others {
                self.barrier_again(other);
            }
            self.refuse(xid, code, &[]);
        }
        self.change_confirmed(number, dpid);
    }

    fn undo(&mut self, number: u64, others: &[u64], now: Instant) {
        let Some(operation) = self.operations.get_mut(&number) else { return };
        match &mut operation.undo {
            Undo::Flow { cookie, before } => {
                let (cookie, before) = (*cookie, before.take());
                let current = self.entries.get(&cookie);
                // What came later on the same entry stands; the front knows what it makes of that.
                if current.is_some_and(|current| current.operation != number) {
                    return;
                }
                let current = self.entries.remove(&cookie);
                self.leaving.remove(&cookie);
                let message = match (&before, &current) {
                    (Some(before), Some(current)) if before.installed == current.installed => {
                        wire::as_command(self.version, &before.add, Command::Modify, before.hard)
                    }
                    (Some(before), _) => {
                        wire::as_command(self.version, &before.add, Command::Add, before.left(now))
                    }
                    (None, Some(current)) => {
                        wire::as_command(self.version, &current.add, Command::Delete, 0)
                    }
                    (None, None) => return,
                };
                if let Some(before) = before {
                    self.entries.insert(cookie, *before);
                }
                for &dpid in others {
                    self.send(dpid, Sent::Own(None), &message);
                }
            }
            Undo::Number { which, number, before } => {
                let (which, number, before) = (*which, *number, before.take());
                let was = self.set_numbered(which, number, before.clone());
                let message = match (&before, was) {
                    (None, _) => delete_numbered(which, number),
                    (Some(add), None) => add.clone(),
                    (Some(add), Some(_)) => modify_numbered(which, add),
                };
                for &dpid in others {
                    self.send(dpid, Sent::Own(None), &message);
                }
            }
            Undo::Port { number, before, after } => {
                let (number, before, after) = (*number, *before, *after);
                // What came later on the same port stands.
                if self.config.get(&number).copied().unwrap_or(0) != after {
                    return;
                }
                self.set_config_of(number, before);
                for &dpid in others {
                    let port = self.members.get(&dpid).and_then(|it| it.ports.get(&number));
                    if let Some(port) = port {
                        let message = wire::configure(self.version, port, before);
                        self.send(dpid, Sent::Own(None), &message);
                    }
                }
            }
        }
    }

    pub(super) fn refuse(&mut self, xid: u32, code: ErrorCode, data: &[u8]) {
        let error = wire::error(self.version, xid, code, data);
        self.front.end().extend_from_slice(&error);
    }
}

/// OFPRR_DELETE, in both versions.
pub(super) const DELETED: u8 = 2;

/// The message that deletes a group or meter.
pub(super) fn delete_numbered(which: Numbered, number: u32) -> Vec<u8> {
    let mut out = Vec::new();
    // Neither is long.
    let _ = match which {
        Numbered::Group => GroupMod {
            command: GroupModCommand::DELETE,
            type_: GroupType::ALL,
            group_id: number,
            buckets: List::EMPTY,
        }
        .write_message(0, &mut out),
        Numbered::Meter => MeterMod {
            command: MeterModCommand::DELETE,
            flags: Default::default(),
            meter_id: number,
            bands: List::EMPTY,
        }
        .write_message(0, &mut out),
    };
    out
}

/// The message that adds a group which does nothing yet.
pub(super) fn add_without_buckets(group_id: u32) -> Vec<u8> {
    let mut out = Vec::new();
    let (command, type_) = (GroupModCommand::ADD, GroupType::ALL);
    // It is short.
    let _ = GroupMod { command, type_, group_id, buckets: List::EMPTY }.write_message(0, &mut out);
    out
}

/// The message that makes a group or meter what this one adds.
pub(super) fn modify_numbered(which: Numbered, add: &[u8]) -> Vec<u8> {
    let body = add.get(Header::LEN..).unwrap_or_default();
    let mut out = Vec::new();
    match which {
        Numbered::Group => {
            if let Ok(group) = GroupMod::parse(body) {
                let group = GroupMod { command: GroupModCommand::MODIFY, ..group };
                let _ = group.write_message(0, &mut out);
            }
        }
        Numbered::Meter => {
            if let Ok(meter) = MeterMod::parse(body) {
                let meter = MeterMod { command: MeterModCommand::MODIFY, ..meter };
                let _ = meter.write_message(0, &mut out);
            }
        }
    }
    out
}
