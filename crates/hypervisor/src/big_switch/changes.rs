//! Changes of tables and ports: to all members, and back from all of them if one refuses.

use super::entry::Entry;
use super::objects::Numbered;
use super::operation::{Operation, PortMod, Undo};
use super::wire::{Command, Rule, Sent, delete_numbered, modify_numbered};
use super::{BigSwitch, wire};
use crate::refusals::Verdict;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use openflow::v13::{GroupMod, GroupModCommand, MeterMod, MeterModCommand};
use openflow::{Header, NO_BUFFER, Version, frame};

impl BigSwitch {
    /// A FLOW_MOD of the front's: of one entry, which its cookie names.
    pub(super) fn flow_mod(&mut self, xid: u32, message: &[u8], now: Instant) {
        let Some(flow_mod) = wire::flow_mod(self.version, message) else {
            self.refuse(xid, self.codes().bad_request);
            return;
        };
        let cookie = flow_mod.cookie;
        if flow_mod.command != Command::Delete {
            // It hears of the end of one of that name before this is done, so it does not take it for that of this.
            self.report_removed(cookie, now);
        }
        let operation = self.take_number();
        let before = self.entries.get(&cookie).cloned().map(Box::new);
        let members = self.live();
        let buffered = self.buffered.find(flow_mod.buffer_id);
        match flow_mod.command {
            Command::Add => {
                let terms = wire::terms(self.version, &flow_mod.add);
                let mut entry = Entry::new((flow_mod.add, operation), terms, &members, now);
                if let Some(before) = before.as_ref().filter(|_| !flow_mod.resets_counters) {
                    entry.past = before.past;
                }
                self.entries.insert(cookie, entry);
            }
            Command::Modify => match self.entries.get_mut(&cookie) {
                Some(entry) => {
                    entry.add = wire::modified(self.version, &entry.add, &flow_mod.add);
                    entry.modified_by = operation;
                    if flow_mod.resets_counters {
                        entry.reset_counters();
                    }
                }
                // On 1.0 that adds it.
                None if self.version == Version::V1_0 => {
                    let terms = wire::terms(self.version, &flow_mod.add);
                    let entry = Entry::new((flow_mod.add, operation), terms, &members, now);
                    self.entries.insert(cookie, entry);
                }
                None => {}
            },
            Command::Delete => {}
        }
        let mut reinstalled = BTreeSet::new();
        for &dpid in &members {
            let gone = self.entries.get(&cookie).is_some_and(|entry| entry.is_gone_at(dpid));
            let mut part = if gone && flow_mod.command == Command::Modify {
                let part = self.again(cookie, now);
                reinstalled.insert(dpid);
                self.entries.entry(cookie).and_modify(|entry| entry.put_at(dpid, now));
                part
            } else {
                message.to_vec()
            };
            let own = buffered.filter(|it| it.member == dpid);
            frame::set_buffer_id(&mut part, own.map_or(NO_BUFFER, |it| it.at_member));
            self.send(dpid, Sent::Change(operation), &part);
        }
        if let Some(packet) = buffered {
            self.buffered.take(packet.number);
        }
        if flow_mod.command == Command::Delete {
            self.leave(cookie, DELETED, now);
        }
        let undo = Undo::Flow { cookie, before, ended: false };
        self.begin(operation, xid, undo, members);
        if let Some(operation) = self.operations.get_mut(&operation) {
            (operation.entry, operation.reinstalled) = (Some(cookie), reinstalled);
        }
    }

    /// A GROUP_MOD of the front's.
    pub(super) fn group_mod(&mut self, xid: u32, message: &[u8]) {
        let Ok(group) = GroupMod::parse(message.get(Header::LEN..).unwrap_or_default()) else {
            self.refuse(xid, self.codes().bad_request);
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
            self.refuse(xid, self.codes().bad_request);
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
            self.refuse(xid, self.codes().bad_request);
            return;
        };
        let members = self.live();
        if members.is_empty() {
            self.refuse(xid, self.no_member());
            return;
        }
        let operation = self.take_number();
        let before = self.objects.config(number);
        let asked = PortMod { config, mask };
        self.objects.set_config(number, asked.of(before));
        for &dpid in &members {
            self.send(dpid, Sent::Change(operation), message);
        }
        self.begin(operation, xid, Undo::Port { number, before, asked }, members);
    }

    /// A member has come: it is told what is configured of its ports, where it holds something else. Before the front
    /// has been there, what it has configured itself counts, and those that came before it are told.
    pub(super) fn configure_ports(&mut self, dpid: u64) {
        let Some(member) = self.members.get(&dpid) else { return };
        let held = |port: &Vec<u8>| wire::port_config(self.version, port);
        if !self.front.is_settled() {
            for (&number, port) in member.ports.iter().filter(|(_, port)| held(port) != 0) {
                self.objects.adopt_config(number, held(port));
            }
        }
        let mut messages = Vec::new();
        for dpid in self.live() {
            let Some(member) = self.members.get(&dpid) else { continue };
            for (number, port) in &member.ports {
                let wanted = self.objects.config(*number);
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
        let before = self.objects.set(which, number, add);
        let members = self.live();
        for &dpid in &members {
            self.send(dpid, Sent::Change(operation), message);
        }
        self.begin(operation, xid, Undo::Number { which, number, before }, members);
    }

    fn begin(&mut self, number: u64, xid: u32, undo: Undo, members: Vec<u64>) {
        if !members.is_empty() {
            let open = members.into_iter().collect();
            let operation = Operation {
                xid: Some(xid),
                undo: Some(undo),
                inherits: false,
                entry: None,
                reinstalled: BTreeSet::new(),
                open,
            };
            self.operations.insert(number, operation);
        }
    }

    pub(super) fn take_number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// A member has done its part.
    pub(super) fn change_confirmed(&mut self, number: u64, dpid: u64, now: Instant) {
        let Some(operation) = self.operations.get_mut(&number) else { return };
        operation.open.remove(&dpid);
        let (entry, is_done) = (operation.entry, operation.open.is_empty());
        if is_done
            && let Some(Operation { undo: Some(undo), inherits: true, .. }) =
                self.operations.remove(&number)
        {
            self.stands(&undo);
        }
        let is_made = |entry: &Entry| entry.made_by == number && entry.is_gone_at(dpid);
        if let Some(cookie) = entry.filter(|it| self.entries.get(it).is_some_and(is_made)) {
            self.bring_back(cookie, now);
        }
        if is_done {
            self.fill_again();
        }
    }

    /// A change stands of which others were refused. A port has on some members what those made of it.
    fn stands(&mut self, undo: &Undo) {
        let mut others = self.operations.values().filter_map(|operation| operation.undo.as_ref());
        let Undo::Port { number, .. } = *undo else { return };
        if others.any(|other| other.is_of_the_same(undo)) {
            return;
        }
        let members = self.live();
        self.report_config(number, &members);
        members.iter().for_each(|member| self.barrier_again(*member));
    }

    /// A member has refused its part: the others take theirs back, and the front is told once.
    pub(super) fn change_refused(
        &mut self,
        number: u64,
        dpid: u64,
        verdict: Verdict,
        now: Instant,
    ) {
        let Some(operation) = self.operations.get_mut(&number) else { return };
        let xid = operation.xid;
        let lacking = operation.entry.filter(|_| operation.reinstalled.remove(&dpid));
        let undo = operation.undo.take();
        if let Some(entry) = lacking.and_then(|cookie| self.entries.get_mut(&cookie)) {
            entry.lose_at(dpid);
        }
        if let Some(undo) = undo {
            if let Some(undo) = self.hand_on(number, undo) {
                let operation = self.operations.get_mut(&number);
                let (reinstalled, inherits) = operation
                    .map(|it| (core::mem::take(&mut it.reinstalled), it.inherits))
                    .unwrap_or_default();
                let takes_back = |member: &u64| inherits || *member != dpid;
                let members: Vec<u64> = self.live().into_iter().filter(takes_back).collect();
                self.undo(undo, inherits, (&members, &reinstalled), now);
                // Barriers that were passed on already have to be behind that as well.
                members.iter().for_each(|member| self.barrier_again(*member));
            }
            if let Some(xid) = xid {
                self.refuse(xid, verdict);
            }
        }
        if let Some(cookie) = lacking {
            self.bring_back(cookie, now);
        }
        self.change_confirmed(number, dpid, now);
    }

    /// Nobody waits for answers any more. Changes are still to be confirmed or undone.
    pub(super) fn forget_askers(&mut self) {
        self.operations.values_mut().for_each(|operation| operation.xid = None);
        let barrier = wire::barrier(self.version);
        for member in self.members.values_mut() {
            member.sent.retain(|_, what| !matches!(what, Sent::Plain(_)));
            if !self.operations.is_empty() {
                member.send(Sent::Sweep, &barrier);
            }
        }
    }

    /// A member has not answered the barrier that shows what it has done: a front that is away waits for that.
    pub(super) fn sweep_again(&mut self, dpid: u64) {
        let is_waited_for = !self.front.is_started() && !self.operations.is_empty();
        if let Some(member) = self.members.get_mut(&dpid).filter(|_| is_waited_for) {
            member.send(Sent::Sweep, &wire::barrier(self.version));
        }
    }

    /// If a later change of the same is on its way, its result stands; should it be refused as well, then what was before
    /// both comes back. Else the earlier state is given back.
    fn hand_on(&mut self, failed: u64, undo: Undo) -> Option<Undo> {
        let open = |operation: &&mut Operation| {
            operation.undo.as_ref().is_some_and(|known| known.is_of_the_same(&undo))
        };
        let others = self.operations.values_mut().filter(open);
        others.for_each(|operation| operation.inherits = true);
        let reinstalled =
            self.operations.get(&failed).map(|it| it.reinstalled.clone()).unwrap_or_default();
        let mut later = self.operations.range_mut(failed + 1..).map(|(_, operation)| operation);
        let Some(later) = later.find(open) else { return Some(undo) };
        later.reinstalled.extend(reinstalled);
        match (&mut later.undo, undo) {
            (Some(Undo::Port { before: later, .. }), Undo::Port { number, before, .. }) => {
                *later = before;
                self.configure_again(failed, number, before);
            }
            (later, undo) => *later = Some(undo),
        }
        None
    }

    /// What is configured of a port is made up of all changes but those that were refused.
    fn configure_again(&mut self, failed: u64, number: u32, before: u32) {
        let mut config = before;
        for (_, operation) in self.operations.range_mut(failed + 1..) {
            if let Some(Undo::Port { number: other, before, asked }) = &mut operation.undo
                && *other == number
            {
                *before = config;
                config = asked.of(config);
            }
        }
        self.objects.set_config(number, config);
    }

    /// Undoes the change on these members; on some of them the entry had been installed again.
    fn undo(
        &mut self,
        undo: Undo,
        inherits: bool,
        (members, reinstalled): (&[u64], &BTreeSet<u64>),
        now: Instant,
    ) {
        match undo {
            Undo::Flow { cookie, before: Some(before), ended: true } => {
                self.undo_ended(cookie, &before, members);
            }
            Undo::Flow { cookie, before: Some(before), .. }
                if self.is_modified(cookie, &before) =>
            {
                self.modify_back(cookie, before.add, (members, reinstalled), now);
            }
            Undo::Flow { cookie, before, .. } => self.undo_flow(cookie, before, members, now),
            Undo::Number { which, number, before } => {
                let was = self.objects.set(which, number, before.clone());
                let messages = match (before, was) {
                    (None, _) => Vec::from([delete_numbered(which, number)]),
                    // Who has it refuses the first, and has the second done.
                    (Some(add), _) if inherits => {
                        let modify = modify_numbered(which, &add);
                        Vec::from([add, modify])
                    }
                    (Some(add), None) => Vec::from([add]),
                    (Some(add), Some(_)) => Vec::from([modify_numbered(which, &add)]),
                };
                for message in &messages {
                    members.iter().for_each(|dpid| self.send(*dpid, Sent::Own(None), message));
                }
            }
            Undo::Port { number, before, .. } => {
                self.objects.set_config(number, before);
                self.report_config(number, members);
            }
        }
    }

    /// Whether an entry is what it was before, but for what it does.
    fn is_modified(&self, cookie: u64, before: &Entry) -> bool {
        self.entries.get(&cookie).is_some_and(|current| current.installed == before.installed)
    }

    /// A modification is undone by modifying back. What copies have done meanwhile is as true of what the entry was; where it
    /// has been idle it comes back.
    fn modify_back(
        &mut self,
        cookie: u64,
        add: Vec<u8>,
        (members, reinstalled): (&[u64], &BTreeSet<u64>),
        now: Instant,
    ) {
        let by = self.take_number();
        let Some(entry) = self.entries.get_mut(&cookie) else { return };
        (entry.add, entry.modified_by) = (add, by);
        let modify = wire::as_command(self.version, &entry.add, Command::Modify, entry.hard);
        let again = wire::as_command(self.version, &entry.add, Command::Add, entry.left(now));
        let is_lacking = |dpid: &u64| entry.is_gone_at(*dpid) || reinstalled.contains(dpid);
        let (lacking, holding): (Vec<u64>, Vec<u64>) =
            members.iter().partition(|dpid| is_lacking(dpid));
        lacking.iter().for_each(|dpid| entry.put_at(*dpid, now));
        let rule = |is_whole| Rule { cookie, by, is_whole };
        holding.into_iter().for_each(|dpid| self.send(dpid, Sent::Undo(rule(false)), &modify));
        lacking.into_iter().for_each(|dpid| self.send(dpid, Sent::Own(Some(rule(true))), &again));
    }

    fn undo_flow(
        &mut self,
        cookie: u64,
        before: Option<Box<Entry>>,
        members: &[u64],
        now: Instant,
    ) {
        let by = self.take_number();
        let current = self.entries.remove(&cookie);
        if current.is_none() && before.is_some() {
            // That it was to be deleted is not told.
            self.leaving.remove(cookie);
        }
        let (message, entry) = match (before, current) {
            (Some(before), _) => {
                let left = before.left(now);
                let message = wire::as_command(self.version, &before.add, Command::Add, left);
                (message, Some(before.begun_again(by, members, now)))
            }
            (None, Some(current)) => {
                (wire::as_command(self.version, &current.add, Command::Delete, 0), None)
            }
            (None, None) => return,
        };
        if let Some(entry) = entry {
            self.entries.insert(cookie, entry);
        }
        let rule = Rule { cookie, by, is_whole: true };
        members.iter().for_each(|dpid| self.send(*dpid, Sent::Undo(rule), &message));
        self.bring_back(cookie, now);
    }

    /// The entry has ended meanwhile, so nothing is to come back. A modification may have added it again (1.0), unless another
    /// has come in its place.
    fn undo_ended(&mut self, cookie: u64, before: &Entry, members: &[u64]) {
        self.entries.remove(&cookie);
        let mut others = self.entries.values();
        if others.any(|other| wire::replaces(self.version, &other.add, &before.add)) {
            return;
        }
        let message = wire::as_command(self.version, &before.add, Command::Delete, 0);
        members.iter().for_each(|dpid| self.send(*dpid, Sent::Own(None), &message));
    }

    /// An entry ends by itself: no change that is undone brings the entry back.
    pub(super) fn end_during_changes(&mut self, cookie: u64) {
        for operation in self.operations.values_mut() {
            if let Some(Undo::Flow { cookie: other, ended, .. }) = &mut operation.undo {
                *ended |= *other == cookie;
            }
        }
    }

    /// A member has refused to bring an entry. It has to do without if it has only come, until the entry is added again; else that
    /// is as if it had deleted it.
    pub(super) fn not_brought(&mut self, rule: Rule, dpid: u64, now: Instant) {
        match self.is_up(dpid) {
            true => self.not_taken_back(rule, now),
            false => self.do_without(rule, dpid),
        }
    }

    /// A member has refused to bring an entry which it need not have.
    pub(super) fn do_without(&mut self, rule: Rule, dpid: u64) {
        if self.is_overtaken(rule) {
            return;
        }
        self.members.entry(dpid).and_modify(|member| member.lacks = true);
        let Some(entry) = self.entries.get_mut(&rule.cookie) else { return };
        entry.do_without_at(dpid);
        // It may hold what the entry was before.
        let message = wire::as_command(self.version, &entry.add, Command::Delete, 0);
        self.send(dpid, Sent::Own(None), &message);
    }

    /// A member has refused the restored entry as well: the entry ends on all members, unless something later says what it is.
    pub(super) fn not_taken_back(&mut self, rule: Rule, now: Instant) {
        if !self.is_overtaken(rule) && self.entries.contains_key(&rule.cookie) {
            self.finish(rule.cookie, DELETED, now);
            self.live().into_iter().for_each(|member| self.barrier_again(member));
        }
    }

    /// Whether the refused change has been sent again. Should that be refused as well, then it is not known what the member holds.
    fn is_overtaken(&mut self, rule: Rule) -> bool {
        let Some(entry) = self.entries.get(&rule.cookie) else { return false };
        let last = if rule.is_whole { entry.made_by } else { entry.modified_by };
        if let Some(operation) = self.operations.get_mut(&last) {
            operation.inherits = true;
        }
        last > rule.by
    }

    fn report_config(&mut self, number: u32, members: &[u64]) {
        let config = self.objects.config(number);
        for &dpid in members {
            if let Some(port) = self.members.get(&dpid).and_then(|it| it.ports.get(&number)) {
                let message = wire::configure(self.version, port, config);
                self.send(dpid, Sent::Own(None), &message);
            }
        }
    }

    /// Answers the front with an error, which carries the verdict.
    pub(super) fn refuse(&mut self, xid: u32, verdict: impl Into<Verdict>) {
        let error = wire::error(self.version, xid, verdict.into());
        self.front.send(&error);
    }
}

/// OFPRR_DELETE, in both versions.
pub(super) const DELETED: u8 = 2;
