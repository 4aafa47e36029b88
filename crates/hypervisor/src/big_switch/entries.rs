//! Entries: each has a copy on all members, and ends when its copies have ended.
//!
//! An entry is idle when all its copies are idle. When one copy times out, Weir asks the other members for the counters
//! of their copies. If a copy has counted packets within the idle time-out, Weir installs the missing copy again at
//! once and keeps its counters. If no copy has, the entry ends on all members. So an entry ends one idle time-out after
//! its last packet, on whatever member the packet arrived. The end is as exact as the switches' own time-outs, and
//! later by the round trip of the questions.
//!
//! A copy matters only on a member where packets can match the entry: on a member with a port of the big switch, and if
//! the entry matches an ingress port, on the member of that port. If no member has that port, all copies matter alike.

use super::leaving::Leaving;
use super::request::{Object, Request, Spec};
use super::tables::Entry;
use super::wire::Sent;
use super::{BigSwitch, wire};
use crate::messages;
use crate::time::{Duration, Instant};
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// OFPRR_IDLE_TIMEOUT, OFPRR_HARD_TIMEOUT and OFPRR_DELETE, in both versions.
const IDLE: u8 = 0;
const HARD: u8 = 1;
pub(super) const DELETED: u8 = 2;
/// OFPRR_GROUP_DELETE (1.3).
pub(super) const GROUP_DELETED: u8 = 3;

impl BigSwitch {
    /// Whether packets can match an entry on this member. If they can match the entry on no member, all members count.
    fn counts_at(&self, spec: &Spec, dpid: u64) -> bool {
        let owners = &self.plan.owners;
        match spec.in_port {
            Some(port) => owners.get(&port).is_none_or(|owner| *owner == dpid),
            None => owners.is_empty() || owners.values().any(|owner| *owner == dpid),
        }
    }

    /// The members on which an entry counts, and whether the copy there is idle, if there is one.
    fn copies(&self, cookie: u64, spec: &Spec) -> Vec<(u64, Option<bool>)> {
        let counting = self
            .members
            .iter()
            .filter(|(dpid, member)| member.is_live() && self.counts_at(spec, **dpid));
        counting.map(|(&dpid, member)| (dpid, member.copy(cookie))).collect()
    }

    // ---- Entries that have ended

    /// An entry has ended. Weir waits for the last counters of its copies, and until this change has left the log; then
    /// the front gets a FLOW_REMOVED.
    pub(super) fn leave(
        &mut self,
        cookie: u64,
        entry: &Entry,
        reason: u8,
        change: Option<u64>,
        now: Instant,
    ) {
        // An earlier entry with the same cookie.
        self.report_removed(cookie, now);
        self.checks.remove(&cookie);
        let copies = self.copies(cookie, &entry.spec).into_iter();
        let awaiting = copies.filter(|(_, copy)| copy.is_some()).map(|(dpid, _)| dpid).collect();
        let leaving = Leaving { entry: entry.clone(), reason, awaiting, change, since: now };
        let is_full = self.leaving.is_full();
        self.leaving.insert(cookie, leaving);
        match is_full {
            true => self.report_removed(cookie, now),
            false => self.report_if_known(cookie, now),
        }
    }

    /// Sends the front a FLOW_REMOVED, if Weir waits for nothing more.
    pub(super) fn report_if_known(&mut self, cookie: u64, now: Instant) {
        let Some(leaving) = self.leaving.get_mut(cookie) else { return };
        if !leaving.awaiting.is_empty() {
            return;
        }
        let change = leaving.change;
        if !change.is_some_and(|seq| self.is_open(seq)) {
            self.report_removed(cookie, now);
        } else if !self.log.is_settling {
            let seq = self.log.last;
            self.members.values_mut().for_each(|member| member.drain(seq));
        }
    }

    /// Sends the front a FLOW_REMOVED.
    pub(super) fn report_removed(&mut self, cookie: u64, now: Instant) {
        let Some(leaving) = self.leaving.remove(cookie) else { return };
        let (flow, mut message) = (leaving.entry.flow(), Vec::new());
        let stood = flow.stood(now);
        // A FLOW_REMOVED is shorter than the FLOW_MOD, so there is room.
        let _ = messages::write_removed(self.wire, &flow, leaving.reason, stood, &mut message);
        self.front.send(&message);
    }

    /// Reports removed entries for which Weir has waited too long.
    pub(super) fn report_late(&mut self, now: Instant) {
        while let Some(cookie) = self.leaving.late(now) {
            let change = self.leaving.get_mut(cookie).and_then(|leaving| leaving.change);
            match change.is_some_and(|seq| self.is_open(seq)) {
                true => self.leaving.wait_again(cookie, now),
                false => self.report_removed(cookie, now),
            }
        }
    }

    /// A member is gone: Weir waits neither for its counters nor for its idle checks.
    pub(super) fn counts_lost(&mut self, dpid: u64, now: Instant) {
        for cookie in self.leaving.cookies() {
            if let Some(leaving) = self.leaving.get_mut(cookie) {
                leaving.awaiting.remove(&dpid);
                self.report_if_known(cookie, now);
            }
        }
        let asked = self.checks.iter().filter(|(_, asked)| asked.contains(&dpid));
        for cookie in asked.map(|(&cookie, _)| cookie).collect::<Vec<u64>>() {
            self.idle_checked(cookie, dpid, &[], now);
        }
    }

    /// A member has removed its copy of an entry.
    pub(super) fn removed(&mut self, dpid: u64, body: &[u8], now: Instant) {
        let Ok(removed) = messages::removed(self.wire, body, 0) else { return };
        let (cookie, object) = (removed.cookie, Object::Entry(removed.cookie));
        if let Some(leaving) = self.leaving.get_mut(cookie)
            && leaving.awaiting.remove(&dpid)
        {
            leaving.entry.count(removed.counted);
            self.report_if_known(cookie, now);
            return;
        }
        let Some(member) = self.members.get_mut(&dpid) else { return };
        let is_deleted = member.on_the_way(object).any(Request::deletes);
        let is_added = member.on_the_way(object).any(Request::adds);
        let had = member.held.set(object, None).is_some();
        if is_deleted || !(had || is_added) {
            return;
        }
        if is_added {
            // The FLOW_REMOVED speaks of the replaced entry: time-outs are at least a second, and a change is confirmed
            // far sooner. A deletion may have removed the new copy, too: the member gets the copy once more.
            if !matches!(removed.reason, IDLE | HARD) {
                member.unknown.insert(object);
                self.log.is_settling = true;
            }
            return;
        }
        let Some(entry) = self.desired.entry_mut(cookie) else { return };
        entry.count(removed.counted);
        match removed.reason {
            IDLE => self.check_idle(cookie, dpid, now),
            // The member has evicted the copy, or somebody has deleted its rules on the switch.
            reason => self.end_entry(cookie, reason, now),
        }
    }

    // ---- Idle entries

    /// A copy has timed out: asks whether the other copies are idle.
    fn check_idle(&mut self, cookie: u64, dpid: u64, now: Instant) {
        let Some(entry) = self.desired.entry(cookie) else { return };
        let copies = self.copies(cookie, &entry.spec);
        if !self.counts_at(&entry.spec, dpid) {
            // No packet can match this copy: the entry ends when the first of the other copies times out.
            let lacks = |(dpid, _): &(u64, Option<bool>)| {
                self.members.get(dpid).is_some_and(|it| it.lacks.contains(&Object::Entry(cookie)))
            };
            if !copies.is_empty() && copies.iter().all(lacks) {
                self.end_entry(cookie, IDLE, now);
            }
            return;
        }
        let others = copies.iter().filter(|(_, copy)| copy.is_some()).map(|(dpid, _)| *dpid);
        let others: BTreeSet<u64> = others.collect();
        let question = wire::question_of(self.wire, &entry.spec.flow);
        let asked = self.checks.insert(cookie, others.clone()).unwrap_or_default();
        for &other in others.difference(&asked) {
            self.send(other, Sent::IdleCheck(cookie), &question);
        }
        self.decide_idle(cookie, now);
    }

    /// A member has reported the counters of its copy.
    pub(super) fn idle_checked(&mut self, cookie: u64, dpid: u64, entries: &[u8], now: Instant) {
        if !self.checks.get_mut(&cookie).is_some_and(|asked| asked.remove(&dpid)) {
            return;
        }
        let mut counted = messages::counted(self.wire, entries).into_iter();
        let counted = counted.find(|it| it.cookie == cookie).map(|it| it.count.packets);
        let copy = self.members.get_mut(&dpid).and_then(|it| it.held.entry_mut(cookie));
        if let (Some(copy), Some(packets)) = (copy, counted) {
            let patience = Duration::from_secs(u64::from(copy.spec.flow.idle_timeout));
            let has_counted = match copy.is_idle {
                true => packets > 0,
                false => packets != copy.counted.packets,
            };
            if has_counted {
                (copy.counted.packets, copy.since, copy.is_idle) = (packets, now, false);
            } else if now - copy.since >= patience {
                // A copy without rules on the switch cannot time out there, so Weir measures its time.
                copy.is_idle = true;
            }
        }
        self.decide_idle(cookie, now);
    }

    /// When all members have answered: the entry ends, or Weir installs the copies again that have timed out.
    fn decide_idle(&mut self, cookie: u64, now: Instant) {
        if self.checks.get(&cookie).is_some_and(|asked| !asked.is_empty()) {
            return;
        }
        self.checks.remove(&cookie);
        let Some(entry) = self.desired.entry(cookie) else { return };
        if !self.copies(cookie, &entry.spec).iter().any(|(_, copy)| *copy == Some(false)) {
            self.end_entry(cookie, IDLE, now);
            return;
        }
        self.install_again(cookie, now);
    }

    /// Installs an entry again on the members that miss their copy.
    fn install_again(&mut self, cookie: u64, now: Instant) {
        let Some((request, message)) = self.add_again(cookie, now) else { return };
        for member in self.members.values_mut().filter(|member| member.misses(request.object)) {
            member.write(self.log.last, true, Arc::clone(&request), &message);
        }
    }

    /// The message that installs an entry again.
    pub(super) fn add_again(&self, cookie: u64, now: Instant) -> Option<(Arc<Request>, Vec<u8>)> {
        let (request, message) = self.desired.entry(cookie)?.again(self.wire, now);
        Some((Arc::new(request), message))
    }

    /// Ports have moved to other members: installs entries where packets can match them now.
    pub(super) fn refill(&mut self, now: Instant) {
        let misses = self.desired.entries().filter(|(cookie, entry)| {
            !self.checks.contains_key(cookie)
                && self.copies(*cookie, &entry.spec).iter().any(|(_, copy)| copy.is_none())
        });
        for cookie in misses.map(|(cookie, _)| cookie).collect::<Vec<u64>>() {
            self.install_again(cookie, now);
        }
    }
}
