//! The session with one physical switch: messages that wait, messages in flight, and the meaning of answers.
//!
//! A switch reads its connection in order, so an answer shows that the switch has read all earlier messages; the window
//! needs only this. Only a barrier reply shows that messages are *done*.

use super::departures::{Departures, Sent};
use super::installed::{Effect, Installed, Written};
use super::pending::{Awaits, Entry, Origin, Pending};
use super::queue::Item;
use super::queues::{Queues, Taken};
use super::window::{Sent as InFlight, Window};
use crate::counters::TYPES;
use crate::ids::TenantIndex;
use crate::outbox::Outbox;
use crate::semantics::Semantics;
use crate::store::Journal;
use crate::time::{Duration, Instant, earlier};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use compile::{RuleKey, Wire};
use openflow::{Header, NO_BUFFER, frame};

/// After this much silence Weir sends a barrier, to find out whether the last messages are done.
pub(crate) const QUIET: Duration = Duration::from_millis(20);
/// The most bytes of messages without a reply between two barriers. So an answer is due before the changes in flight of
/// one tenant reach the tenant's bound of memory.
const BARRIER_BYTES: usize = 64 << 10;
/// The type of a PACKET_OUT, in both versions.
const PACKET_OUT: u8 = 13;
/// A packet of no tenant: the shortest frame.
const SHORTEST_FRAME: [u8; 60] = [0; 60];

/// One physical switch.
pub(crate) struct Session {
    /// The facts of the switch's version.
    semantics: &'static Semantics,
    out: Outbox,
    queues: Queues,
    window: Window,
    pending: Pending,
    /// Weir's own changes that wait for the store. They are sent before all messages of tenants.
    direct: VecDeque<Direct>,
    /// Changes that have been sent, with their xids, until a barrier confirms them.
    unconfirmed: VecDeque<(u32, Part)>,
    installed: Installed,
    open: Open,
    departures: Departures,
    silence: Silence,
}

/// When to look for requests that were never answered.
struct Silence {
    /// How long Weir waits for an answer.
    patience: Duration,
    next_check: Instant,
}

/// A change of Weir's own.
struct Direct {
    /// The number of the last store operation that must be safe.
    gate: u64,
    change: Part,
    message: Vec<u8>,
}

/// The operation of a change, and the effects of the change on rules.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Part {
    pub operation: Option<u32>,
    pub written: Option<Written>,
}

/// Changes that were taken out of a queue.
#[derive(Default)]
pub(crate) struct Cut {
    /// The operation of each message.
    pub operations: Vec<u32>,
    /// The rules that the messages were to change.
    pub rules: Vec<RuleKey>,
}

/// Messages that are sent, and not known to be done.
#[derive(Default)]
struct Open {
    /// Units of work without a reply, sent since the last message with a reply.
    unacknowledged: u32,
    /// The bytes of these messages.
    bytes: usize,
    /// Whether a change of a table has been sent since the last barrier.
    unbarriered: bool,
    /// Messages in flight that the switch will answer. An answer acknowledges all earlier messages.
    answers_due: u32,
    last_sent: Instant,
}

/// The state of a message directly after a caller has submitted it to the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Submitted {
    /// The message is sent.
    Sent,
    /// The message waits.
    Queued,
    /// The message waits, and no expected answer will run the queues: the caller has to [run](Session::run) them.
    QueuedAlone,
}

/// Why [`Session::run`] has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ran {
    /// No waiting message may be sent now.
    Dry,
    /// The outbox or the window is full, or Weir's own changes wait for the store.
    Stopped,
}

impl Session {
    /// The session with a switch that has just connected.
    pub(crate) fn new(wire: Wire, limit: usize, patience: Duration, now: Instant) -> Session {
        Session {
            semantics: Semantics::of(wire),
            out: Outbox::bounded(limit),
            queues: Queues::new(),
            window: Window::new(now),
            pending: Pending::default(),
            direct: VecDeque::new(),
            unconfirmed: VecDeque::new(),
            installed: Installed::new(wire),
            open: Open { last_sent: now, ..Open::default() },
            departures: Departures::default(),
            silence: Silence { patience, next_check: now + patience },
        }
    }

    /// The queues of the tenants.
    #[inline]
    pub(crate) fn queues(&self) -> &Queues {
        &self.queues
    }

    /// The queues of the tenants, to configure them or to let tenants go on.
    #[inline]
    pub(crate) fn queues_mut(&mut self) -> &mut Queues {
        &mut self.queues
    }

    // ---- Messages of tenants

    /// Takes a checked and compiled message of a tenant. The message is sent at once if no message waits before it,
    /// else it is queued.
    pub(crate) fn submit(
        &mut self,
        tenant: TenantIndex,
        item: &Item,
        message: &[u8],
        journal: &Journal,
    ) -> Submitted {
        let now = item.arrived;
        self.window.note_demand(tenant.0, now);
        let at_once = journal.is_safe(item.gate)
            && self.window.is_open()
            && self.window.admit(item.share, now).is_ok()
            && !self.out.is_full()
            && self.direct.is_empty()
            && self.queues.pass(tenant, item, now);
        if at_once {
            let start = self.out.len();
            self.out.end().extend_from_slice(message);
            self.transmit(tenant, item, start, now);
            return Submitted::Sent;
        }
        self.queues.push(tenant, item, message, released_by(message));
        if self.window.in_flight() == 0 || self.open.answers_due == 0 {
            Submitted::QueuedAlone
        } else {
            Submitted::Queued
        }
    }

    /// Takes a message that is sent before all other waiting messages of the tenant.
    pub(crate) fn submit_repair(&mut self, tenant: TenantIndex, item: &Item, message: &[u8]) {
        self.window.note_demand(tenant.0, item.arrived);
        self.queues.push_repair(tenant, item, message);
    }

    /// From now on only repairs of the tenant are sent. Removes waiting changes, as if they had never been written.
    pub(crate) fn pause(&mut self, tenant: TenantIndex) -> Cut {
        let Session { queues, installed, .. } = self;
        let mut cut = Cut::default();
        if queues.is_at_rest(tenant) {
            return cut;
        }
        queues.pause(tenant, |item, message| {
            let Some(operation) = item.operation else { return false };
            cut.operations.push(operation);
            if frame::type_(message) == Some(PACKET_OUT) {
                item.operation = None;
                return false;
            }
            let rules = item.written.into_iter().flat_map(|it| installed.refuse(it).keys);
            cut.rules.extend(rules);
            true
        });
        cut
    }

    /// Sends messages as far as the window, the rates and the store allow.
    pub(crate) fn run(&mut self, journal: &Journal, now: Instant) -> Ran {
        while let Some(tenant) = self.queues.turn() {
            // Weir's own changes, which are sent before tenants' messages, wait for the store.
            if !self.direct.is_empty() || self.out.is_full() {
                return Ran::Stopped;
            }
            if !self.window.is_open() {
                self.window.note_full();
                // Only answers open the window again: make sure that there will be an answer.
                if self.open.answers_due == 0 {
                    self.send_barrier(now);
                }
                return Ran::Stopped;
            }
            // When the store has the changes, the tenant is activated again.
            let next = self.queues.front(tenant).filter(|item| journal.is_safe(item.gate));
            let Some(item) = next else {
                self.queues.skip(tenant);
                continue;
            };
            let admitted = self.window.admit(item.share, now);
            if let Err(at) = admitted.and_then(|()| self.queues.admit(tenant, &item, now)) {
                self.queues.rest(tenant, at);
                continue;
            }
            let Some(taken) = self.queues.take(tenant, &mut self.out) else { continue };
            self.queues.served(tenant, &taken.item);
            self.transmit_next(tenant, &taken, now);
        }
        self.window.note_drained();
        Ran::Dry
    }

    /// Sends all waiting messages, whatever the window says. The store must have their changes.
    pub(crate) fn flush(&mut self, now: Instant) {
        for tenant in self.queues.tenants() {
            while let Some(taken) = self.queues.take(tenant, &mut self.out) {
                self.transmit_next(tenant, &taken, now);
            }
        }
    }

    /// The next message that has left a queue since the last call.
    #[inline]
    pub(crate) fn next_sent(&mut self) -> Option<Sent> {
        self.departures.next()
    }

    /// Whether the store has all changes that messages wait for.
    pub(crate) fn is_safe(&self, journal: &Journal) -> bool {
        self.direct.is_empty() && self.queues.is_safe(journal)
    }

    // ---- Weir's own messages

    /// Sends a question or a change of Weir's own, past all queues, when the store has all changes up to `gate`.
    pub(crate) fn send_direct(
        &mut self,
        awaits: Awaits,
        change: Part,
        message: &[u8],
        gate: u64,
        journal: &Journal,
        now: Instant,
    ) {
        let waits = !self.direct.is_empty() || !journal.is_safe(gate);
        if waits && awaits == Awaits::Nothing {
            self.direct.push_back(Direct { gate, change, message: message.to_vec() });
        } else {
            self.send_past_queues(awaits, change, message, now);
        }
    }

    /// Sends Weir's own changes for which the store is ready now.
    pub(crate) fn send_safe(&mut self, journal: &Journal, now: Instant) {
        while self.direct.front().is_some_and(|item| journal.is_safe(item.gate)) {
            let Some(Direct { change, message, .. }) = self.direct.pop_front() else { return };
            self.send_past_queues(Awaits::Nothing, change, &message, now);
        }
    }

    /// Whether changes of Weir's own wait for the store.
    #[inline]
    pub(crate) fn has_direct(&self) -> bool {
        !self.direct.is_empty()
    }

    /// Sends a barrier of Weir's own, so that work without a reply is acknowledged. Returns the xid.
    pub(crate) fn send_barrier(&mut self, now: Instant) -> u32 {
        let Semantics { version, types, .. } = self.semantics;
        let type_ = types.barrier_request;
        let sent = self.window.on_send(0, now);
        let entry = entry(None, Awaits::OwnBarrier, Part::default(), sent);
        let xid = self.pending.add(entry).unwrap_or(0);
        let written = frame::write(*version, type_, xid, self.out.end(), |_| {});
        debug_assert!(written.is_ok());
        self.departures.count_own(Some(type_));
        self.open.unbarriered = false;
        self.open.expect_answer();
        self.open.last_sent = now;
        xid
    }

    /// Answers an ECHO_REQUEST of the switch.
    pub(crate) fn answer_echo(&mut self, header: Header, body: &[u8]) {
        const ECHO_REPLY: u8 = 3;
        if !self.out.is_full() {
            let version = self.semantics.version;
            // The reply is as long as the request, so there is room.
            let _ = frame::write(version, ECHO_REPLY, header.xid, self.out.end(), |out| {
                out.extend_from_slice(body);
            });
        }
    }

    // ---- Answers of the switch

    /// The switch has answered the message with this xid. Returns the message's entry, which stays until it is
    /// [taken](Self::take).
    #[inline]
    pub(crate) fn acknowledge(&mut self, xid: u32, now: Instant) -> Option<Entry> {
        let entry = *self.pending.get(xid)?;
        let cost = self.pending.release_up_to(xid);
        let due = self.open.answers_due;
        let awaits_nothing = matches!(entry.awaits, Awaits::Nothing);
        // Also if a later message has been answered before.
        if self.pending.note_answered(xid) && !awaits_nothing {
            self.open.answers_due = self.open.answers_due.saturating_sub(1);
        }
        if !entry.released {
            if awaits_nothing {
                self.window.release(cost, now);
            } else {
                self.window.on_ack(entry.sent, cost, due, now);
            }
        }
        Some(entry)
    }

    /// The answer is complete: the xid is free.
    #[inline]
    pub(crate) fn take(&mut self, xid: u32) {
        self.pending.take(xid);
    }

    /// A barrier reply shows that all messages up to this xid are done. Returns the operations of these messages, one
    /// per call.
    pub(crate) fn next_confirmed(&mut self, xid: u32, now: Instant) -> Option<u32> {
        loop {
            let (sent, done) = *self.unconfirmed.front()?;
            if xid.wrapping_sub(sent) > u32::MAX / 2 {
                return None;
            }
            self.unconfirmed.pop_front();
            done.written.into_iter().for_each(|it| self.installed.confirm(it, now));
            if done.operation.is_some() {
                return done.operation;
            }
        }
    }

    /// What the switch holds of the tenants' rules.
    pub(crate) fn installed(&self) -> &Installed {
        &self.installed
    }

    /// What the switch holds of the tenants' rules, to note reports of the switch.
    pub(crate) fn installed_mut(&mut self) -> &mut Installed {
        &mut self.installed
    }

    /// Notes a message with this effect on a rule of a tenant, in the tenant's queue or past the queue.
    pub(crate) fn write(
        &mut self,
        tenant: TenantIndex,
        direct: bool,
        key: RuleKey,
        effect: Effect,
    ) -> Written {
        let left = direct.then(|| self.queues.left(tenant));
        self.installed.write(key, effect, left)
    }

    /// The switch has refused a barrier, or has not answered: nothing is known to be done.
    pub(crate) fn barrier_failed(&mut self) {
        self.open.unbarriered = self.unconfirmed.iter().any(|(_, it)| it.operation.is_some());
    }

    /// Whether to look now for messages that the switch should have answered. Sets the time of the next look.
    pub(crate) fn begin_silence_check(&mut self, now: Instant) -> bool {
        let is_due = now >= self.silence.next_check;
        if is_due {
            self.silence.next_check = now + self.silence.patience / 4;
        }
        is_due
    }

    /// Messages without an answer that are late, by `is_late`.
    pub(crate) fn late(&self, is_late: impl Fn(&Entry) -> bool) -> Vec<u32> {
        let late = self.pending.iter();
        let late = late.filter(|(_, entry)| entry.awaits != Awaits::Nothing && is_late(entry));
        late.map(|(xid, _)| xid).collect()
    }

    /// The switch does not answer barriers.
    pub(crate) fn note_silence(&mut self) {
        self.window.note_silence();
    }

    /// Whether a change of a table has been sent since the last barrier.
    #[inline]
    pub(crate) fn is_unbarriered(&self) -> bool {
        self.open.unbarriered
    }

    // ---- Time

    /// When [`handle_timeout`](Self::handle_timeout) has to be called next.
    #[inline]
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let quiet = self.has_open_work().then(|| self.open.last_sent + QUIET);
        let first = self.queues.next_rested(quiet);
        let check = self.pending.is_awaited().then_some(self.silence.next_check);
        earlier(first, check)
    }

    /// Time has passed. If Weir has sent the switch nothing for [`QUIET`], Weir sends a barrier. The barrier's reply
    /// confirms all messages before it.
    #[inline]
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.has_open_work() && now - self.open.last_sent >= QUIET {
            self.send_barrier(now);
        }
    }

    // ---- Queries

    /// Bytes for the switch.
    #[inline]
    pub(crate) fn outbox(&mut self) -> &mut Outbox {
        &mut self.out
    }

    /// Whether the outbox for the switch is full.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.out.is_full()
    }

    /// The window's limit, and the work in flight at the switch, in units of work.
    pub(crate) fn window(&self) -> (u32, u32) {
        (self.window.limit(), self.window.in_flight())
    }

    /// The number of sent messages, by type.
    pub(crate) fn sent_by_type(&self) -> [u64; TYPES] {
        *self.departures.by_type()
    }

    /// The number of sent messages that no tenant has asked for.
    pub(crate) fn own_messages(&self) -> u64 {
        self.departures.own()
    }

    /// Whether messages are in flight of which only a barrier can show that they are done.
    #[inline]
    fn has_open_work(&self) -> bool {
        self.open.unacknowledged > 0 || self.open.unbarriered
    }

    /// If the buffered packet of a message is another packet by now, the message must not release it: a change is sent
    /// without the buffer id, and a PACKET_OUT sends nothing. Returns the sender of the PACKET_OUT, who gets an error.
    fn release(&mut self, tenant: TenantIndex, taken: &Taken) -> Option<Origin> {
        let message = self.out.tail(taken.start);
        let buffer_id = released_by(message)?;
        if self.queues.releases(tenant, taken, buffer_id) {
            return None;
        }
        frame::set_buffer_id(message, NO_BUFFER);
        if frame::type_(message) != Some(PACKET_OUT) {
            return None;
        }
        self.send_nothing(taken.start);
        // A change without the packet is carried out.
        taken.item.origin.filter(|_| taken.item.operation.is_none())
    }

    /// Changes the PACKET_OUT at `start` of the outbox, so that it has no actions, and the shortest frame as its
    /// packet.
    fn send_nothing(&mut self, start: usize) {
        let layout = &self.semantics.layout;
        let (length_at, head) = (layout.packet_out_length, layout.packet_out_actions);
        let message = self.out.tail(start);
        let length = message.len();
        if let Some(actions_len) = message.get_mut(length_at..length_at + 2) {
            actions_len.fill(0);
        }
        let out = self.out.end();
        out.truncate(out.len().saturating_sub(length.saturating_sub(head)));
        out.extend_from_slice(&SHORTEST_FRAME);
        set_length(self.out.tail(start));
    }

    /// Sends a message that has waited.
    fn transmit_next(&mut self, tenant: TenantIndex, taken: &Taken, now: Instant) {
        let refuses = self.release(tenant, taken).map(Box::new);
        let Taken { item, start, .. } = taken;
        let type_ = frame::type_(self.out.tail(*start));
        self.transmit(tenant, item, *start, now);
        let Item { awaits, operation, arrived, .. } = *item;
        self.departures.push(Sent { tenant, type_, awaits, operation, arrived, refuses });
    }

    /// Sends the message at `start` of the outbox: gives it an xid, and counts it.
    fn transmit(&mut self, tenant: TenantIndex, item: &Item, start: usize, now: Instant) {
        let sent = self.window.on_send(item.share, now);
        let Item { origin, awaits, operation, written, .. } = *item;
        if let Some(written) = written {
            self.queues.note_left(tenant, written.message());
        }
        let change = Part { operation, written };
        let entry = entry(origin, awaits, change, sent);
        let message = self.out.tail(start);
        let length = message.len();
        self.departures.count(frame::type_(message));
        match self.pending.add(entry) {
            Some(xid) => {
                frame::set_xid(message, xid);
                self.await_confirmation(xid, change);
            }
            // The window is far smaller than the ring, so this happens only if a switch leaves thousands of requests
            // unanswered. Weir gives up these requests after a while.
            None => {
                frame::set_xid(message, 0);
                written.into_iter().for_each(|it| self.installed.confirm(it, now));
            }
        }
        self.open.last_sent = now;
        self.open.unbarriered |= operation.is_some();
        if matches!(awaits, Awaits::Barrier(_)) {
            self.open.unbarriered = false;
        }
        if awaits == Awaits::Nothing {
            self.open.unacknowledged += item.share;
            self.open.bytes += length;
            // A switch that does not answer barriers gets one at a time: each barrier takes a slot of the ring.
            let is_wanted = !self.window.is_silent() || self.open.answers_due == 0;
            let is_much = self.open.unacknowledged >= self.window.barrier_interval()
                || self.open.bytes >= BARRIER_BYTES;
            if is_wanted && (is_much || Window::is_large(item.share)) {
                self.send_barrier(now);
            }
        } else {
            self.open.expect_answer();
        }
    }

    fn await_confirmation(&mut self, xid: u32, change: Part) {
        if change.operation.is_some() || change.written.is_some() {
            self.unconfirmed.push_back((xid, change));
        }
    }

    fn send_past_queues(&mut self, awaits: Awaits, change: Part, message: &[u8], now: Instant) {
        let sent = self.window.on_send(1, now);
        let xid = self.pending.add(entry(None, awaits, change, sent)).unwrap_or(0);
        self.await_confirmation(xid, change);
        self.open.unbarriered |= change.operation.is_some();
        let start = self.out.len();
        self.out.end().extend_from_slice(message);
        frame::set_xid(self.out.tail(start), xid);
        self.departures.count_own(frame::type_(message));
        self.open.last_sent = now;
        if awaits == Awaits::Nothing {
            self.open.unacknowledged += 1;
        } else {
            self.open.expect_answer();
        }
    }
}

impl Open {
    /// Notes a sent message that the switch will answer.
    fn expect_answer(&mut self) {
        (self.unacknowledged, self.bytes) = (0, 0);
        self.answers_due += 1;
    }
}

/// A message that is about to be sent.
fn entry(origin: Option<Origin>, awaits: Awaits, change: Part, sent: InFlight) -> Entry {
    let Part { operation, written } = change;
    Entry { origin, awaits, operation, written, sent, released: false, answered: false }
}

/// Writes a message's length to its length field.
pub(crate) fn set_length(message: &mut [u8]) {
    let length = u16::try_from(message.len()).unwrap_or(u16::MAX);
    if let Some(field) = message.get_mut(2..4) {
        field.copy_from_slice(&length.to_be_bytes());
    }
}

/// The buffer id of the packet that a message releases.
fn released_by(message: &[u8]) -> Option<u32> {
    frame::buffer_id(message).filter(|buffer_id| *buffer_id != NO_BUFFER)
}
