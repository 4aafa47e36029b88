//! The front's changes in flight: each goes to all members at once, and retires in order when all have confirmed it.
//!
//! The tables of the big switch (`desired`) include all changes in the log. The tables of each member (`held`) include
//! what barriers have confirmed. If a member refuses a change, Weir settles: messages of the front wait, each member
//! confirms the messages on their way, `desired` goes back to the state before the log, and all changes but the refused
//! one are applied again. Then each member gets the difference between `desired` and `held`. Weir repeats this until no
//! member refuses a message. A member that connects takes the same path.

use super::change::Change;
use super::entries::{DELETED, GROUP_DELETED};
use super::member::Progress;
use super::request::{Object, Request, To};
use super::tables::{Before, Value};
use super::{BigSwitch, Event, wire};
use crate::refusals::Verdict;
use crate::south::diff;
use crate::store::Kind;
use crate::time::Instant;
use alloc::sync::Arc;
use alloc::vec::Vec;
use openflow::error::v13 as code;
use openflow::v13::MessageType;
use openflow::{Header, NO_BUFFER, frame};

impl BigSwitch {
    // ---- Changes

    /// A change that the front asks for.
    pub(super) fn change(&mut self, xid: u32, type_: MessageType, message: &[u8], now: Instant) {
        let Some(request) = Request::read(self.wire, type_, message) else {
            self.refuse(xid, code::BAD_REQUEST_BAD_TYPE);
            return;
        };
        if type_ == MessageType::PORT_MOD && self.live().is_empty() {
            self.refuse(xid, self.no_member());
            return;
        }
        let mut buffered = None;
        if let Object::Entry(cookie) = request.object {
            if !request.deletes() {
                // The front gets the FLOW_REMOVED of an earlier entry with this cookie first: behind the change the
                // front would take it for the end of the new entry.
                self.report_removed(cookie, now);
            }
            buffered = frame::buffer_id(message).and_then(|number| self.buffered.take(number));
        }
        let request = Arc::new(request);
        let seq = self.begin(Some(xid), Some(Arc::clone(&request)), DELETED, now);
        // Where a copy has timed out, a modification installs the copy again.
        let again = match (&request.to, request.object) {
            (To::Modify { .. }, Object::Entry(cookie)) => self.add_again(cookie, now),
            _ => None,
        };
        for (&dpid, member) in self.members.iter_mut().filter(|(_, member)| member.is_live()) {
            let (request, mut part) = match &again {
                Some((again, message)) if member.misses(again.object) => (again, message.clone()),
                _ => (&request, message.to_vec()),
            };
            if type_ == MessageType::FLOW_MOD {
                let own = buffered.filter(|packet| packet.member == dpid);
                frame::set_buffer_id(&mut part, own.map_or(NO_BUFFER, |packet| packet.at_member));
            }
            member.write(seq, false, Arc::clone(request), &part);
        }
    }

    /// The front sends a barrier.
    pub(super) fn barrier(&mut self, xid: u32, now: Instant) {
        let seq = self.begin(Some(xid), None, DELETED, now);
        for member in self.members.values_mut().filter(|member| member.is_live()) {
            member.barrier(seq);
        }
    }

    /// An entry ends by itself on all members, also on those where it has ended: a message on its way may have brought
    /// it back.
    pub(super) fn end_entry(&mut self, cookie: u64, reason: u8, now: Instant) {
        let Some(entry) = self.desired.entry(cookie) else { return };
        let message = wire::flow_mod(self.wire, diff::Change::Delete, &entry.spec.flow, 0);
        let request = Arc::new(Request { object: Object::Entry(cookie), to: To::Nothing });
        let seq = self.begin(None, Some(Arc::clone(&request)), reason, now);
        for member in self.members.values_mut().filter(|member| member.is_live()) {
            member.write(seq, true, Arc::clone(&request), &message);
        }
    }

    /// Applies a change and puts it into the log.
    fn begin(
        &mut self,
        xid: Option<u32>,
        request: Option<Arc<Request>>,
        reason: u8,
        now: Instant,
    ) -> u64 {
        self.log.last += 1;
        let (seq, is_end) = (self.log.last, xid.is_none());
        let before =
            request.as_ref().map(|it| self.desired.apply(self.wire, it, now)).unwrap_or_default();
        if let Some((Object::Entry(cookie), Some(Value::Entry(entry)))) = before.first()
            && !self.desired.has(Object::Entry(*cookie))
        {
            // An entry that ends by itself ends behind all earlier changes.
            self.leave(*cookie, entry, reason, is_end.then_some(seq), now);
        }
        self.leave_with(&before, seq, now);
        self.log.changes.push_back(Change {
            seq,
            xid,
            is_end,
            request,
            at: now,
            before,
            refused: None,
        });
        seq
    }

    /// Entries go with their group or meter. The front gets their FLOW_REMOVEDs when the deletion of the group or meter
    /// has left the log.
    fn leave_with(&mut self, before: &Before, seq: u64, now: Instant) {
        let reason = match before.first() {
            Some((Object::Number(Kind::Group, _), _)) => GROUP_DELETED,
            _ => DELETED,
        };
        for (object, was) in before.iter().skip(1) {
            if let (Object::Entry(cookie), Some(Value::Entry(entry))) = (object, was)
                && !self.leaving.has(*cookie)
            {
                self.leave(*cookie, entry, reason, Some(seq), now);
            }
        }
    }

    // ---- Results of changes

    /// A member has refused a message. Says whether the message was a change, a part of a difference, or a barrier.
    pub(super) fn write_refused(
        &mut self,
        dpid: u64,
        xid: u32,
        verdict: Verdict,
        now: Instant,
    ) -> bool {
        let Some(member) = self.members.get_mut(&dpid) else { return false };
        let Some(write) = member.take_write(xid) else { return false };
        let Some(request) = write.request else {
            // The member's session has waited for the switch in vain: no other answer will confirm the messages before
            // the barrier.
            if member.is_filling() {
                let why = "the switch does not answer BARRIER_REQUEST";
                self.events.push_back(Event::CloseMember(dpid, why));
            } else if self.front.is_started() {
                member.confirm(xid, now);
            } else {
                member.barrier(self.log.last);
            }
            return true;
        };
        let object = request.object;
        self.log.is_settling = true;
        self.log.dirty.insert(object);
        if !write.is_own {
            self.drop_change(write.seq, verdict);
        } else if member.is_filling() {
            // The member may have refused the object only because it lacked another one: the object gets a second
            // chance.
            if !member.refused.insert(object) {
                member.lacks.insert(object);
            }
            member.progress = Progress::Filling(u64::MAX);
        } else if !request.deletes() && self.desired.has(object) && !self.is_refused(object) {
            match (self.last_change_of(object), object) {
                (Some(seq), _) => self.drop_change(seq, verdict),
                (None, Object::Entry(cookie)) => self.end_entry(cookie, DELETED, now),
                (None, _) => {
                    if let Some(member) = self.members.get_mut(&dpid) {
                        member.lacks.insert(object);
                    }
                }
            }
        }
        true
    }

    fn drop_change(&mut self, seq: u64, verdict: Verdict) {
        let at = self.log.changes.binary_search_by_key(&seq, |change| change.seq);
        if let Some(change) = at.ok().and_then(|at| self.log.changes.get_mut(at)) {
            change.refused.get_or_insert(verdict);
        }
    }

    /// Whether a refused change is still part of an object: then the replay will change the object.
    fn is_refused(&self, object: Object) -> bool {
        let mut refused = self.log.changes.iter().filter(|change| change.refused.is_some());
        refused.any(|change| change.before.iter().any(|(of, _)| *of == object))
    }

    /// The last change of an object that can still be dropped.
    fn last_change_of(&self, object: Object) -> Option<u64> {
        let is_of = |change: &&Change| {
            change.request.as_ref().is_some_and(|request| request.object == object)
                && change.refused.is_none()
                && !change.is_end
        };
        self.log.changes.iter().rev().find(is_of).map(|change| change.seq)
    }

    /// Goes on as far as possible: settles, retires changes, takes messages of the front that have waited.
    pub(super) fn advance(&mut self, now: Instant) {
        loop {
            let was_settling = self.log.is_settling;
            if was_settling && !self.settle(now) {
                return;
            }
            self.retire(now);
            if was_settling {
                self.maybe_start(now);
            }
            self.members.values_mut().for_each(|member| member.ask(self.log.last));
            let Some(message) = self.front.take_held_back() else { break };
            if let Ok(header) = Header::parse(&message) {
                self.front_message(header, &message, now);
            }
        }
    }

    /// Takes changes out of the log that all members have confirmed.
    fn retire(&mut self, now: Instant) {
        while let Some(first) = self.log.changes.front() {
            if !self.members.values().all(|member| member.has_done(first.seq)) {
                break;
            }
            let Some(Change { xid, request, before, refused, .. }) = self.log.changes.pop_front()
            else {
                break;
            };
            for (object, _) in &before {
                if let Object::Entry(cookie) = object {
                    self.report_if_known(*cookie, now);
                }
            }
            match (xid, refused) {
                (Some(xid), Some(verdict)) => self.refuse(xid, verdict),
                (Some(xid), None) if request.is_none() => {
                    self.front.send(&wire::barrier_reply(self.wire, xid));
                }
                _ => {}
            }
        }
    }

    /// Whether a change is still in the log.
    pub(super) fn is_open(&self, seq: u64) -> bool {
        self.log.changes.front().is_some_and(|first| first.seq <= seq)
    }

    /// Makes all members hold `desired`. Says whether they do.
    fn settle(&mut self, now: Instant) -> bool {
        if !self.members.values().all(|member| member.is_drained()) {
            let seq = self.log.last;
            self.members.values_mut().for_each(|member| member.drain(seq));
            return false;
        }
        self.replay(now);
        let mut is_done = true;
        let dirty = core::mem::take(&mut self.log.dirty);
        for dpid in self.live() {
            let Some(member) = self.members.get(&dpid) else { continue };
            let difference = self.difference(member, &dirty, now);
            let seq = self.log.last;
            let Some(member) = self.members.get_mut(&dpid) else { continue };
            is_done &= difference.is_empty() || member.is_filling();
            member.unknown.clear();
            for (request, message) in difference {
                member.write(seq, true, Arc::new(request), &message);
            }
            if member.is_filling() {
                let barrier = member.barrier(seq);
                member.progress = Progress::Filling(barrier);
            } else {
                member.drain(seq);
            }
        }
        self.log.is_settling = !is_done;
        if !is_done {
            self.log.dirty = dirty;
        }
        is_done
    }

    /// Applies the changes of the log again, but for the refused ones.
    fn replay(&mut self, now: Instant) {
        for change in self.log.changes.iter_mut().rev() {
            for (object, before) in change.before.drain(..).rev() {
                self.log.dirty.insert(object);
                self.desired.restore(object, before);
            }
        }
        let mut log = core::mem::take(&mut self.log.changes);
        for change in log.iter_mut().filter(|change| change.refused.is_none()) {
            let Some(request) = &change.request else { continue };
            change.before = self.desired.apply(self.wire, request, change.at);
            self.log.dirty.extend(change.before.iter().map(|(object, _)| *object));
            // These may be other entries than the first time.
            self.leave_with(&change.before, change.seq, now);
        }
        self.log.changes = log;
        let dirty: Vec<Object> = self.log.dirty.iter().copied().collect();
        for object in dirty {
            if let Object::Entry(cookie) = object
                && let Some(entry) = self.desired.entry_mut(cookie)
                && let Some(leaving) = self.leaving.remove(cookie)
            {
                // The entry stays: the front gets no FLOW_REMOVED.
                entry.counted = leaving.entry.counted;
            }
        }
    }

    // ---- The front is gone

    /// Nobody waits for results any more; members still have to confirm the changes.
    pub(super) fn forget_askers(&mut self) {
        self.front.forget_held_back();
        self.log.changes.iter_mut().for_each(|change| change.xid = None);
        let is_open = !self.log.changes.is_empty();
        for member in self.members.values_mut() {
            member.forget_askers();
            if is_open {
                member.drain(self.log.last);
            }
        }
    }

    /// Answers the front with an ERROR that carries the verdict.
    pub(super) fn refuse(&mut self, xid: u32, verdict: impl Into<Verdict>) {
        let error = wire::error(self.wire, xid, verdict.into());
        self.front.send(&error);
    }
}
