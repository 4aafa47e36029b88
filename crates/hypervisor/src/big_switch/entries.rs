//! Entries: each stands on all members, and ends when it has ended on all.
//!
//! An entry is idle when all its copies are. One that has been idle by itself on a member is asked about on the others:
//! if any of them has counted packets within the idle time, the copy is installed again at once, and what it counted is
//! kept; if none has, the entry ends on all. So an entry ends an idle time after its last packet, wherever that came in,
//! as precisely as the switches themselves tell it and the messages between take.
//!
//! A copy counts only where packets can come to it: on a member that has a port, and if the entry names the port of
//! entry, on that port's member; if that port is nowhere, on all alike.

use super::entry::{Entry, State};
use super::leaving::Leaving;
use super::member::Progress;
use super::objects::Numbered;
use super::wire::{Command, Sent, add_without_buckets, delete_numbered, modify_numbered, seconds};
use super::{BigSwitch, wire};
use crate::cookie::Cookie;
use crate::named::{named_by, named_first};
use crate::time::{Duration, Instant};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use openflow::v13::{GroupDesc, GroupMod, GroupModCommand, MeterConfig, MeterMod, MeterModCommand};
use openflow::{Header, List, Version};

/// OFPRR_IDLE_TIMEOUT and OFPRR_HARD_TIMEOUT, in both versions.
const IDLE: u8 = 0;
const HARD: u8 = 1;
/// OFPRR_GROUP_DELETE (1.3).
const GROUP_DELETED: u8 = 3;

impl BigSwitch {
    /// The message that brings an entry to a member that lacks it.
    pub(super) fn again(&self, cookie: u64, now: Instant) -> Vec<u8> {
        let Some(entry) = self.entries.get(&cookie) else { return Vec::new() };
        wire::as_command(self.version, &entry.add, Command::Add, entry.left(now))
    }

    /// Whether packets can come to the entry on this member. Where they can come to it nowhere, all members are the same.
    fn counts_at(&self, entry: &Entry, dpid: u64) -> bool {
        let owners = &self.plan.owners;
        match entry.in_port {
            Some(port) => owners.get(&port).is_none_or(|owner| *owner == dpid),
            None => owners.is_empty() || owners.values().any(|owner| *owner == dpid),
        }
    }

    /// An entry ends: it is taken out, and its copies' last counts are awaited.
    pub(super) fn leave(&mut self, cookie: u64, reason: u8, now: Instant) {
        let Some(entry) = self.entries.remove(&cookie) else { return };
        // One of that name that has left before.
        self.report_removed(cookie, now);
        let waits = |&(&dpid, state): &(&u64, &State)| {
            state.is_there() && self.counts_at(&entry, dpid) && self.members.contains_key(&dpid)
        };
        let awaiting = entry.at.iter().filter(waits).map(|(&dpid, _)| dpid).collect();
        let Entry { add, installed, past, .. } = entry;
        let leaving = Leaving { add, reason, installed, counts: past, awaiting, since: now };
        let done = leaving.awaiting.is_empty() || self.leaving.is_full();
        self.leaving.insert(cookie, leaving);
        if done {
            self.report_removed(cookie, now);
        }
    }

    /// Ends an entry on all members, for a reason that the front does not know yet. Where it has ended by itself, what was on its
    /// way may have brought it back.
    pub(super) fn finish(&mut self, cookie: u64, reason: u8, now: Instant) {
        let Some(entry) = self.entries.get(&cookie) else { return };
        let message = wire::as_command(self.version, &entry.add, Command::Delete, 0);
        for dpid in self.live() {
            self.send(dpid, Sent::Own(None), &message);
        }
        self.end_during_changes(cookie);
        self.leave(cookie, reason, now);
    }

    /// Tells the front of the end of an entry.
    pub(super) fn report_removed(&mut self, cookie: u64, now: Instant) {
        let Some(leaving) = self.leaving.remove(cookie) else { return };
        let lived = now - leaving.installed;
        let message = wire::write_removed(
            self.version,
            &leaving.add,
            leaving.reason,
            leaving.counts,
            seconds(lived),
        );
        self.front.send(&message);
    }

    /// A member that is gone tells no counts any more.
    pub(super) fn counts_lost(&mut self, cookie: u64, dpid: u64, now: Instant) {
        if let Some(leaving) = self.leaving.get_mut(cookie) {
            leaving.awaiting.remove(&dpid);
            if leaving.awaiting.is_empty() {
                self.report_removed(cookie, now);
            }
        }
    }

    /// Nor whether entries are idle there.
    pub(super) fn checks_lost(&mut self, dpid: u64, now: Instant) {
        let waiting: Vec<u64> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.checking.contains(&dpid))
            .map(|(&cookie, _)| cookie)
            .collect();
        for cookie in waiting {
            self.idle_checked(cookie, dpid, &[], now);
        }
    }

    /// A member has removed its copy of an entry.
    pub(super) fn removed(&mut self, dpid: u64, message: &[u8], now: Instant) {
        let Some(removed) = wire::removed(self.version, message) else { return };
        let cookie = removed.cookie;
        if let Some(leaving) = self.leaving.get_mut(cookie)
            && leaving.awaiting.remove(&dpid)
        {
            leaving.counts.0 = leaving.counts.0.saturating_add(removed.packets);
            leaving.counts.1 = leaving.counts.1.saturating_add(removed.bytes);
            if leaving.awaiting.is_empty() {
                self.report_removed(cookie, now);
            }
            return;
        }
        // What one that has just come holds, it is asked.
        let has = |entry: &&mut Entry| entry.at.contains_key(&dpid);
        let Some(entry) = self.entries.get_mut(&cookie).filter(has) else { return };
        let change = self.operations.get_mut(&entry.made_by);
        let lacks_group = || {
            wire::groups(&entry.add)
                .iter()
                .any(|group| !self.objects.of(Numbered::Group).contains_key(group))
        };
        if let Some(change) = change.filter(|it| it.open.contains(&dpid))
            && !(removed.reason == GROUP_DELETED && lacks_group())
        {
            // It is of what that replaces: timeouts are a second at least, and a change is confirmed far sooner. But what is
            // deleted may have come: it is brought in either case, once that is confirmed.
            if !matches!(removed.reason, IDLE | HARD) {
                entry.lose_at(dpid);
                change.inherits = true;
            }
            return;
        }
        entry.past.0 = entry.past.0.saturating_add(removed.packets);
        entry.past.1 = entry.past.1.saturating_add(removed.bytes);
        entry.lose_at(dpid);
        entry.checking.remove(&dpid);
        match removed.reason {
            IDLE => self.check_idle(cookie, dpid, now),
            // If it is deleted, it was given up there, or somebody has taken it from the switch.
            reason => self.finish(cookie, reason, now),
        }
    }

    /// A copy was idle: what of the others?
    fn check_idle(&mut self, cookie: u64, dpid: u64, now: Instant) {
        let Some(entry) = self.entries.get(&cookie) else { return };
        if !self.counts_at(entry, dpid) {
            let mut counting = entry.at.iter().filter(|(other, _)| self.counts_at(entry, **other));
            // Where packets come to it they find none: it ends when the first of the others does.
            let lacks = |state: &State| *state == State::Refused;
            if counting.clone().count() > 0 && counting.all(|(_, state)| lacks(state)) {
                self.finish(cookie, IDLE, now);
            }
            return;
        }
        let others = entry.at.iter().filter(|(other, state)| {
            state.is_there() && self.counts_at(entry, **other) && self.is_live(**other)
        });
        let others: BTreeSet<u64> = others.map(|(&other, _)| other).collect();
        let fresh: Vec<u64> = others.difference(&entry.checking).copied().collect();
        let question = wire::one_flow(self.version, &entry.add);
        for &other in &fresh {
            self.send(other, Sent::IdleCheck(cookie), &question);
        }
        if let Some(entry) = self.entries.get_mut(&cookie) {
            entry.checking = others;
        }
        self.decide_idle(cookie, now);
    }

    fn is_live(&self, dpid: u64) -> bool {
        self.members
            .get(&dpid)
            .is_some_and(|member| !matches!(member.progress, Progress::Learning(_)))
    }

    /// A member has said what its copy has counted.
    pub(super) fn idle_checked(&mut self, cookie: u64, dpid: u64, entries: &[u8], now: Instant) {
        let held = wire::held(self.version, entries).into_iter().find(|held| held.cookie == cookie);
        let Some(entry) = self.entries.get_mut(&cookie) else { return };
        if !entry.checking.remove(&dpid) {
            return;
        }
        let patience = Duration::from_secs(u64::from(entry.idle));
        if let (Some(state), Some(held)) = (entry.at.get_mut(&dpid), held) {
            *state = match *state {
                State::Idle if held.packets > 0 => {
                    State::Here { packets: held.packets, since: now }
                }
                State::Here { packets, .. } if packets != held.packets => {
                    State::Here { packets: held.packets, since: now }
                }
                // It would have expired, if anything stood for it on the switch.
                State::Here { since, .. } if now - since >= patience => State::Idle,
                other => other,
            };
        }
        self.decide_idle(cookie, now);
    }

    /// Once all have answered: the entry ends, or comes back where it was idle.
    fn decide_idle(&mut self, cookie: u64, now: Instant) {
        let Some(entry) = self.entries.get(&cookie).filter(|it| it.checking.is_empty()) else {
            return;
        };
        let lives = entry.at.iter().any(|(&dpid, state)| {
            matches!(state, State::Here { .. }) && self.counts_at(entry, dpid)
        });
        if !lives {
            self.finish(cookie, IDLE, now);
            return;
        }
        self.bring_back(cookie, now);
    }

    /// An entry lives: it comes back where it was idle, unless members are still asked.
    pub(super) fn bring_back(&mut self, cookie: u64, now: Instant) {
        let Some(entry) = self.entries.get(&cookie).filter(|it| it.checking.is_empty()) else {
            return;
        };
        let gone: Vec<u64> =
            self.live().into_iter().filter(|dpid| entry.is_gone_at(*dpid)).collect();
        let message = self.again(cookie, now);
        for dpid in gone {
            self.bring(cookie, dpid, &message);
            if let Some(entry) = self.entries.get_mut(&cookie) {
                entry.put_at(dpid, now);
            }
        }
    }

    /// A member has said what it holds: it gets what it should, and is shown to have it by a barrier.
    pub(super) fn fill(&mut self, dpid: u64, now: Instant) {
        let Some(member) = self.members.get_mut(&dpid) else { return };
        let learned = core::mem::take(&mut member.learned);
        member.progress = Progress::Filling;
        member.filled_during = self.operations.last_key_value().map(|(&number, _)| number);
        // It gets all entries as the changes in flight make them, even if other members refuse these changes.
        self.operations.values_mut().for_each(|change| change.inherits = true);
        let configs: Vec<Vec<u8>> = self.front.configs();
        for config in configs {
            self.send(dpid, Sent::Own(None), &config);
        }
        self.configure_ports(dpid);
        self.fill_numbers(dpid, Numbered::Group, groups(&learned.groups));
        self.fill_numbers(dpid, Numbered::Meter, meters(&learned.meters));
        for held in wire::held(self.version, &learned.flows) {
            let ours = Cookie::of_any(held.cookie).is_some_and(|it| it.tenant == self.plan.tenant);
            let since = Instant(now.0.saturating_sub(u64::from(held.seconds) * 1_000_000_000));
            if !self.front.is_settled() && ours && !self.entries.contains_key(&held.cookie) {
                let terms = wire::terms(self.version, &held.add);
                let entry = Entry::new((held.add.clone(), self.next), terms, &[], since);
                self.entries.insert(held.cookie, entry);
            }
            match self.entries.get_mut(&held.cookie).filter(|_| ours) {
                Some(entry) => {
                    entry.at.insert(dpid, State::Here { packets: held.packets, since: now });
                    entry.installed = entry.installed.min(since);
                    if !wire::same(self.version, &entry.add, &held.add) {
                        let message =
                            wire::as_command(self.version, &entry.add, Command::Modify, entry.hard);
                        self.bring_as(Sent::Again, held.cookie, dpid, &message);
                    }
                }
                None => {
                    let message = wire::as_command(self.version, &held.add, Command::Delete, 0);
                    self.send(dpid, Sent::Own(None), &message);
                }
            }
        }
        self.refill(now);
        self.send(dpid, Sent::Filled, &wire::barrier(self.version));
    }

    /// Members that were filled during changes, of which it is known now what became of them: if that was something else than what
    /// such a member was filled with, then what it refused may have been for that. It gets it once more.
    pub(super) fn fill_again(&mut self) {
        let oldest = self.operations.first_key_value().map(|(&number, _)| number);
        let is_settled = |during: &mut u64| oldest.is_none_or(|oldest| oldest > *during);
        let settled = self.members.iter_mut().filter_map(|(&dpid, member)| {
            member.filled_during.take_if(is_settled)?;
            member.is_settling = true;
            Some(dpid)
        });
        for dpid in settled.collect::<Vec<u64>>() {
            self.send(dpid, Sent::Settled, &wire::barrier(self.version));
        }
    }

    /// It has said all that it refuses.
    pub(super) fn settled(&mut self, dpid: u64, now: Instant) {
        self.members.entry(dpid).and_modify(|member| member.is_settling = false);
        if self.members.get(&dpid).is_some_and(|member| member.lacks) {
            self.number_again(dpid, Numbered::Group, &self.objects.of(Numbered::Group).clone());
            self.number_again(dpid, Numbered::Meter, &self.objects.of(Numbered::Meter).clone());
            let lacking = self.entries.iter().filter(|(_, entry)| entry.does_without_at(dpid));
            for cookie in lacking.map(|(&cookie, _)| cookie).collect::<Vec<u64>>() {
                let message = self.again(cookie, now);
                self.bring_as(Sent::Again, cookie, dpid, &message);
                self.entries.entry(cookie).and_modify(|entry| entry.put_at(dpid, now));
            }
        }
    }

    /// Groups or meters once more, for a member that may have some of them.
    fn number_again(&mut self, dpid: u64, which: Numbered, table: &BTreeMap<u32, Vec<u8>>) {
        let mut there = BTreeSet::new();
        for (number, add) in in_order(table).iter().filter_map(|it| table.get_key_value(it)) {
            let named = named_in(add).filter(|named| table.contains_key(named));
            for named in named.filter(|named| there.insert(*named)) {
                self.send(dpid, Sent::Own(None), &add_without_buckets(named));
            }
            there.insert(*number);
            // Who has it refuses the first, and has the second done.
            self.send(dpid, Sent::Own(None), add);
            self.send(dpid, Sent::Own(None), &modify_numbered(which, add));
        }
    }

    /// Installs entries where they are missing.
    pub(super) fn refill(&mut self, now: Instant) {
        let live = self.live();
        let mut missing = Vec::new();
        for (&cookie, entry) in &self.entries {
            for &dpid in &live {
                let lacks = match entry.at.get(&dpid) {
                    None => true,
                    Some(State::Gone) => self.counts_at(entry, dpid) && entry.checking.is_empty(),
                    Some(_) => false,
                };
                if lacks {
                    missing.push((cookie, dpid));
                }
            }
        }
        for (cookie, dpid) in missing {
            let message = self.again(cookie, now);
            self.bring(cookie, dpid, &message);
            if let Some(entry) = self.entries.get_mut(&cookie) {
                entry.put_at(dpid, now);
            }
        }
    }

    fn fill_numbers(&mut self, dpid: u64, which: Numbered, held: BTreeMap<u32, Vec<u8>>) {
        if self.version == Version::V1_0 {
            return;
        }
        if !self.front.is_settled() {
            self.objects.adopt(which, &held);
        }
        let table = self.objects.of(which).clone();
        // Groups come after those that they name, and go before them. Where some watch each other, what is not there when it
        // is named comes without buckets first.
        let mut there: BTreeSet<u32> = held.keys().copied().collect();
        for (number, add) in in_order(&table).iter().filter_map(|it| table.get_key_value(it)) {
            if held.get(number) == Some(add) {
                continue;
            }
            let named = named_in(add).filter(|named| table.contains_key(named));
            for named in named.filter(|named| there.insert(*named)) {
                self.send(dpid, Sent::Own(None), &add_without_buckets(named));
            }
            let message = match there.insert(*number) {
                true => add.clone(),
                false => modify_numbered(which, add),
            };
            self.send(dpid, Sent::Own(None), &message);
        }
        let in_order_there = in_order(&held);
        for number in in_order_there.iter().rev().filter(|number| !table.contains_key(number)) {
            self.send(dpid, Sent::Own(None), &delete_numbered(which, *number));
        }
        if !self.front.is_settled() {
            // Those that came before it may lack what it has.
            let others: Vec<u64> = self.live().into_iter().filter(|other| *other != dpid).collect();
            for add in in_order_there.iter().filter_map(|number| held.get(number)) {
                for &other in &others {
                    // One that has it refuses, and nothing has changed.
                    self.send(other, Sent::Own(None), add);
                }
            }
        }
    }
}

/// The numbers of what is added by these messages, each behind those that it sends to or watches.
fn in_order(adds: &BTreeMap<u32, Vec<u8>>) -> Vec<u32> {
    let numbers: Vec<u32> = adds.keys().copied().collect();
    named_first(&numbers, |number| {
        adds.get(&number).into_iter().flat_map(|add| named_in(add)).collect()
    })
}

/// What a group that is added by this message sends to or watches. A meter names none.
fn named_in(add: &[u8]) -> impl Iterator<Item = u32> {
    let group = GroupMod::parse(add.get(Header::LEN..).unwrap_or_default());
    group.into_iter().flat_map(|group| {
        named_by(&group).chain(group.buckets.into_iter().map(|bucket| bucket.watch_group))
    })
}

fn groups(answers: &[u8]) -> BTreeMap<u32, Vec<u8>> {
    let groups = List::<GroupDesc<'_>>::parse(answers).unwrap_or_default();
    let add = groups.iter().map(|it| {
        let mut add = Vec::new();
        let command = GroupModCommand::ADD;
        let group =
            GroupMod { command, type_: it.type_, group_id: it.group_id, buckets: it.buckets };
        let _ = group.write_message(0, &mut add);
        (it.group_id, add)
    });
    add.collect()
}

fn meters(answers: &[u8]) -> BTreeMap<u32, Vec<u8>> {
    let meters = List::<MeterConfig<'_>>::parse(answers).unwrap_or_default();
    let add = meters.iter().map(|it| {
        let mut add = Vec::new();
        let command = MeterModCommand::ADD;
        let meter = MeterMod { command, flags: it.flags, meter_id: it.meter_id, bands: it.bands };
        let _ = meter.write_message(0, &mut add);
        (it.meter_id, add)
    });
    add.collect()
}
