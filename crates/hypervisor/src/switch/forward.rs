//! Southbound: from a tenant's queue, by its turn, through the window, to the switch; and what answers mean for it.

use super::{Request, Switch};
use crate::counters::count;
use crate::ids::TenantIndex;
use crate::pending::{Awaits, Entry};
use crate::queue::{Class, Item};
use crate::time::{Duration, Instant};
use alloc::vec::Vec;
use openflow::{Header, frame};

/// After this much silence, a barrier finds out whether the last messages are done.
pub(crate) const QUIET: Duration = Duration::from_millis(20);

impl Switch {
    /// Takes a checked and translated message of a tenant: sent at once when nothing stands before it, else queued.
    pub(crate) fn submit(&mut self, tenant: TenantIndex, item: Item, message: &[u8]) {
        let now = item.arrived;
        self.window.note_demand(tenant.0, now);
        let state = &mut self.tenants[tenant.0 as usize];
        if !matches!(item.awaits, Awaits::Nothing) && item.origin.is_some() {
            state.unanswered += 1;
        }
        if matches!(item.awaits, Awaits::Barrier(_)) {
            state.barriers.open += 1;
        }
        let at_once = state.queue.is_empty()
            && self.journal.is_safe(item.gate)
            && self.window.is_open()
            && self.south.len() < self.settings.switch_bytes
            && self.line.is_empty()
            && self.delayed.is_empty()
            && state.admit(&item, now).is_ok();
        if at_once {
            self.line.charge(tenant.0, item.share - item.cost);
            state.counters.waited.record(Duration(0));
            let start = self.south.len();
            self.south.end().extend_from_slice(message);
            self.transmit(tenant, item, start, now);
        } else {
            let place = state.queue.push(item, message);
            self.release_waits(tenant, place, message);
            self.line.activate(tenant.0);
            if self.window.in_flight() == 0 {
                // No answer is due that would bring the queue's turn.
                self.run(now);
            }
        }
    }

    /// Sends a controller's request to the switch as it is, but for its xid.
    pub(crate) fn forward_request(
        &mut self,
        request: &Request<'_>,
        awaits: Awaits,
        class: Class,
        message: &[u8],
    ) {
        let item = Item {
            origin: Some(request.origin()),
            awaits,
            operation: None,
            class,
            cost: 1,
            share: 1,
            gate: 0,
            arrived: request.now,
        };
        self.submit(request.tenant, item, message);
    }

    /// Sends what may be sent now.
    pub(crate) fn run(&mut self, now: Instant) {
        while let Some(index) = self.line.turn() {
            // What goes before all this waits for the store, which brings it back here.
            if !self.delayed.is_empty() || self.south.len() >= self.settings.switch_bytes {
                return;
            }
            if !self.window.is_open() {
                self.window.note_full();
                // Only answers open the window again: make sure that there will be one.
                if self.answers_due == 0 {
                    self.send_own_barrier(now);
                }
                return;
            }
            let tenant = &mut self.tenants[index as usize];
            let Some(item) = tenant.queue.front().copied() else {
                self.line.skip(index);
                continue;
            };
            if !self.journal.is_safe(item.gate) {
                // `handle_stored` brings it back.
                self.line.skip(index);
                continue;
            }
            if let Err(at) = tenant.admit(&item, now) {
                self.waiting.push((at, TenantIndex(index)));
                self.line.skip(index);
                continue;
            }
            let Some((item, start)) = self.take_next(TenantIndex(index)) else { continue };
            let tenant = &mut self.tenants[index as usize];
            tenant.counters.waited.record(now - item.arrived);
            let more = !tenant.queue.is_empty();
            self.line.served(index, item.share, more);
            self.transmit(TenantIndex(index), item, start, now);
            self.resume(TenantIndex(index));
        }
        self.window.note_drained();
        self.ask_for_postponed(now);
    }

    /// Sends everything that waits, whatever the window says. The store must have it.
    pub(crate) fn flush(&mut self, now: Instant) {
        for at in 0..self.tenants.len() {
            while let Some((item, start)) = self.take_next(TenantIndex(at as u32)) {
                self.transmit(TenantIndex(at as u32), item, start, now);
            }
            self.resume(TenantIndex(at as u32));
        }
    }

    /// Moves the next message of a tenant's queue into the switch's outbox, where it begins at what is given.
    fn take_next(&mut self, tenant: TenantIndex) -> Option<(Item, usize)> {
        let start = self.south.len();
        let queue = &mut self.tenants[tenant.0 as usize].queue;
        let place = queue.place();
        let item = queue.pop_into(self.south.end())?;
        self.release_goes(tenant, place, &item, start);
        Some((item, start))
    }

    /// The message at `start` of the switch's outbox gets its xid and is accounted for.
    fn transmit(&mut self, tenant: TenantIndex, item: Item, start: usize, now: Instant) {
        let sent = self.window.on_send(item.cost, now);
        let entry = Entry {
            origin: item.origin,
            awaits: item.awaits,
            operation: item.operation,
            sent,
            released: false,
            answered: false,
        };
        let message = self.south.tail(start);
        if let Some(type_) = frame::type_(message) {
            count(&mut self.tenants[tenant.0 as usize].counters.to_switch, type_);
            count(&mut self.counters.to_switch, type_);
        }
        match self.pending.add(entry) {
            Some(xid) => {
                frame::set_xid(message, xid);
                if let Some(operation) = item.operation {
                    self.unconfirmed.push_back((xid, operation));
                    if now > item.arrived {
                        self.begin_time(operation, item.arrived, now);
                    }
                }
            }
            None => {
                // The window is far smaller than the ring, so this takes a switch that leaves thousands of requests
                // unanswered; `settle_silence` ends that.
                frame::set_xid(message, 0);
            }
        }
        self.last_sent = now;
        self.unbarriered |= item.operation.is_some();
        if matches!(item.awaits, Awaits::Barrier(_)) {
            self.unbarriered = false;
        }
        if item.awaits == Awaits::Nothing {
            self.unacknowledged += item.share;
            // A switch that leaves barriers unanswered gets one at a time: each takes a place among what is pending.
            let is_wanted = !self.window.is_silent() || self.answers_due == 0;
            if is_wanted && self.unacknowledged >= (self.window.limit() / 2).max(2) {
                self.send_own_barrier(now);
            }
        } else {
            self.unacknowledged = 0;
            self.answers_due += 1;
            if let Awaits::Collection(collection) = item.awaits {
                self.collection_sent(collection);
            }
        }
    }

    /// Sends a barrier of the hypervisor's own, so that work that has no reply is acknowledged.
    pub(crate) fn send_own_barrier(&mut self, now: Instant) {
        let type_ = self.barrier_request();
        let sent = self.window.on_send(0, now);
        let entry = Entry {
            origin: None,
            awaits: Awaits::OwnBarrier,
            operation: None,
            sent,
            released: false,
            answered: false,
        };
        let xid = self.pending.add(entry).unwrap_or(0);
        let written = frame::write(self.version, type_, xid, self.south.end(), |_| {});
        debug_assert!(written.is_ok());
        self.counters.own_messages += 1;
        self.unbarriered = false;
        count(&mut self.counters.to_switch, type_);
        self.unacknowledged = 0;
        self.answers_due += 1;
        self.last_sent = now;
    }

    /// The switch has answered the message with this xid: gives its entry, which stays until it is taken.
    ///
    /// A switch reads its connection in order, so the answer shows that everything sent before has been read, which is
    /// what the window is about. Only a barrier shows that it is *done*.
    pub(crate) fn acknowledge(&mut self, xid: u32, now: Instant) -> Option<Entry> {
        let entry = *self.pending.get(xid)?;
        let cost = self.pending.release_up_to(xid);
        let due = self.answers_due;
        let awaits_nothing = matches!(entry.awaits, Awaits::Nothing);
        // Also if something that was sent later has been answered before it.
        if self.pending.note_answered(xid) && !awaits_nothing {
            self.answers_due = self.answers_due.saturating_sub(1);
        }
        if !entry.released {
            if awaits_nothing {
                self.window.release(cost);
            } else {
                self.window.on_ack(entry.sent, cost, due, now);
            }
        }
        Some(entry)
    }

    /// The switch asks whether anybody is there.
    pub(crate) fn answer_switch_echo(&mut self, header: Header, body: &[u8]) {
        const ECHO_REPLY: u8 = 3;
        if self.south.len() < self.settings.switch_bytes {
            let version = self.version;
            // As long as the request was, so it fits.
            let _ = frame::write(version, ECHO_REPLY, header.xid, self.south.end(), |out| {
                out.extend_from_slice(body);
            });
        }
    }

    /// A request of a tenant is finished.
    pub(crate) fn answered(&mut self, tenant: TenantIndex) {
        let state = &mut self.tenants[tenant.0 as usize];
        state.unanswered = state.unanswered.saturating_sub(1);
        self.resume(tenant);
    }

    /// Lets a tenant's controllers be read again once half of what is taken of its requests is finished.
    pub(crate) fn resume(&mut self, tenant: TenantIndex) {
        let state = &mut self.tenants[tenant.0 as usize];
        if state.paused
            && state.rests.is_none()
            && self.turns.may(tenant.0)
            && state.is_half_empty(&self.settings)
        {
            state.paused = false;
            self.resumed.extend_from_slice(&state.controllers);
        }
    }

    /// Gives up on requests that the switch has not answered in time.
    pub(crate) fn settle_silence(&mut self, now: Instant) {
        if now < self.next_settle {
            return;
        }
        self.next_settle = now + Duration(self.settings.reply_timeout.0 / 4);
        self.settle_removals(now);
        let late: Vec<u32> = self
            .pending
            .iter()
            .filter(|(_, entry)| entry.awaits != Awaits::Nothing && self.is_late(entry, now))
            .map(|(xid, _)| xid)
            .collect();
        let mut is_silent = false;
        for xid in late {
            self.counters.unanswered += 1;
            let Some(entry) = self.acknowledge(xid, now) else { continue };
            self.pending.take(xid);
            is_silent |= entry.awaits == Awaits::OwnBarrier;
            self.asks &= entry.awaits != Awaits::OwnBarrier;
            self.not_answered(&entry, self.codes().unanswered, now);
        }
        // Behind the loop: to give up on a request looks to the window like its answer.
        if is_silent {
            self.window.note_silence();
        }
    }
}

impl Switch {
    /// Tells the end of entries whose last counts the switch has not told in time, and does not wait for more.
    fn settle_removals(&mut self, now: Instant) {
        for at in 0..self.tenants.len() {
            let patience = self.settings.reply_timeout;
            self.tenants[at].retired.settle(patience, now);
            let leaving = &mut self.tenants[at].leaving;
            let late: Vec<_> =
                leaving.extract_if(|_, l| now - l.since >= patience).map(|(_, l)| l.flow).collect();
            for flow in late {
                self.report_lost(TenantIndex(at as u32), &flow);
            }
        }
    }
}

/// Makes a message's length field say how long it is.
pub(crate) fn set_length(message: &mut [u8]) {
    let length = u16::try_from(message.len()).unwrap_or(u16::MAX);
    if let Some(field) = message.get_mut(2..4) {
        field.copy_from_slice(&length.to_be_bytes());
    }
}
