//! The session with one physical switch: what waits for it, what is on its way, and what its answers show.
//!
//! A switch reads its connection in order, so an answer shows that everything sent before has been read, which is what the window
//! is about. Only a barrier shows that it is *done*.

use super::departures::{Departures, Sent};
use super::installed::{Effect, Installed, Written};
use super::pending::{Awaits, Entry, Origin, Pending};
use super::queue::{Item, Queue};
use super::rates::{Rates, SheetShare};
use super::scheduler::RoundRobin;
use super::window::{Sent as InFlight, Window};
use crate::counters::TYPES;
use crate::ids::TenantIndex;
use crate::outbox::Outbox;
use crate::policy::Limits;
use crate::semantics::Semantics;
use crate::sheet::MessageClass;
use crate::store::Journal;
use crate::time::{Duration, Instant};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use compile::{RuleKey, Wire};
use hashbrown::HashMap;
use openflow::{Header, NO_BUFFER, frame};

/// After this much silence, a barrier finds out whether the last messages are done.
pub(crate) const QUIET: Duration = Duration::from_millis(20);
/// The type of a PACKET_OUT, in both versions.
const PACKET_OUT: u8 = 13;
/// A packet of no tenant: the shortest frame that there can be.
const NOBODYS: [u8; 60] = [0; 60];

/// One physical switch.
pub(crate) struct Session {
    /// What the version means that the switch speaks.
    semantics: &'static Semantics,
    out: Outbox,
    /// What waits, by tenant.
    lanes: Vec<Lane>,
    scheduler: RoundRobin,
    /// The scheduler's cost of one message, by the place of its class in [`MessageClass::ALL`].
    prices: [u32; MessageClass::ALL.len()],
    window: Window,
    pending: Pending,
    /// Weir's own changes that wait for the store, before all that tenants send.
    direct: VecDeque<Direct>,
    /// Changes that have been sent, by xid, until a barrier confirms them.
    unconfirmed: VecDeque<Unconfirmed>,
    installed: Installed,
    /// At which place of whose queue a message waits that has a buffered packet released, by the switch's buffer id.
    releases: HashMap<u32, (TenantIndex, u64)>,
    open: Open,
    /// When a tenant that ran out of tokens may go on.
    resting: Vec<(Instant, TenantIndex)>,
    departures: Departures,
    silence: Silence,
}

/// When to look for requests that were never answered.
struct Silence {
    /// How long an answer is waited for.
    patience: Duration,
    next_check: Instant,
}

/// What waits for one tenant.
#[derive(Default)]
struct Lane {
    queue: Queue,
    /// Messages that leave before those of the queue, also while the queue is paused.
    repairs: Queue,
    is_paused: bool,
    rates: Rates,
    /// The last message with rules that has left the queue.
    left: u32,
}

impl Lane {
    /// The next message that may leave.
    fn front(&self) -> Option<&Item> {
        match self.repairs.front() {
            Some(repair) => Some(repair),
            None if self.is_paused => None,
            None => self.queue.front(),
        }
    }
}

/// A change that has been sent.
struct Unconfirmed {
    xid: u32,
    operation: Option<u32>,
    written: Option<Written>,
}

/// A change of Weir's own.
struct Direct {
    /// The number of the last store operation that must be safe.
    gate: u64,
    change: Part,
    message: Vec<u8>,
}

/// What a change of Weir's own is a part of, and what it does to rules.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Part {
    pub operation: Option<u32>,
    pub written: Option<Written>,
}

/// What has been sent and is not known to be done.
#[derive(Default)]
struct Open {
    /// Work without a reply, sent since something that has one.
    unacknowledged: u32,
    /// Whether a change of a table has been sent since the last barrier.
    unbarriered: bool,
    /// Messages in flight that will be answered, and so acknowledge what went before.
    answers_due: u32,
    last_sent: Instant,
}

/// What has become of a message that was submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Submitted {
    /// It has left.
    Sent,
    /// It waits.
    Queued,
    /// It waits, and no answer is due that would bring its turn: the caller has to [run](Session::run) the queues.
    QueuedAlone,
}

/// Why [`Session::run`] has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ran {
    /// Nothing waits that may be sent.
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
            lanes: Vec::new(),
            scheduler: RoundRobin::default(),
            prices: [1; MessageClass::ALL.len()],
            window: Window::new(now),
            pending: Pending::default(),
            direct: VecDeque::new(),
            unconfirmed: VecDeque::new(),
            installed: Installed::new(wire),
            releases: HashMap::new(),
            open: Open { last_sent: now, ..Open::default() },
            resting: Vec::new(),
            departures: Departures::default(),
            silence: Silence { patience, next_check: now + patience },
        }
    }

    /// There is a tenant of this weight and with these rates.
    pub(crate) fn configure(&mut self, tenant: TenantIndex, weight: u32, limits: Limits) {
        let at = tenant.0 as usize;
        if self.lanes.len() <= at {
            self.lanes.resize_with(at + 1, Lane::default);
        }
        self.lanes[at].rates.set(limits);
        self.scheduler.set_weight(tenant.0, weight);
    }

    /// What a message costs in the scheduler.
    pub(crate) fn set_prices(&mut self, prices: [u32; MessageClass::ALL.len()]) {
        self.prices = prices;
    }

    /// A tenant's shares by the switch's data sheet.
    pub(crate) fn set_shares(
        &mut self,
        tenant: TenantIndex,
        shares: [Option<SheetShare>; MessageClass::ALL.len()],
    ) {
        if let Some(lane) = self.lanes.get_mut(tenant.0 as usize) {
            lane.rates.set_shares(shares);
        }
    }

    // ---- What tenants send

    /// Takes a checked and compiled message of a tenant: sent at once when nothing stands before it, else queued.
    pub(crate) fn submit(
        &mut self,
        tenant: TenantIndex,
        item: &Item,
        message: &[u8],
        journal: &Journal,
    ) -> Submitted {
        let now = item.arrived;
        self.window.note_demand(tenant.0, now);
        let lane = &mut self.lanes[tenant.0 as usize];
        let at_once = lane.queue.is_empty()
            && lane.repairs.is_empty()
            && !lane.is_paused
            && journal.is_safe(item.gate)
            && self.window.is_open()
            && self.window.admit(item.share, now).is_ok()
            && !self.out.is_full()
            && self.scheduler.is_empty()
            && self.direct.is_empty()
            && lane.rates.admit(item, now).is_ok();
        if at_once {
            self.scheduler.charge(tenant.0, item.share - item.cost);
            let start = self.out.len();
            self.out.end().extend_from_slice(message);
            self.transmit(tenant, item, start, now);
            return Submitted::Sent;
        }
        let place = lane.queue.push(*item, message);
        if let Some(buffer_id) = released_by(message) {
            self.releases.insert(buffer_id, (tenant, place));
        }
        self.scheduler.activate(tenant.0);
        match self.window.in_flight() {
            0 => Submitted::QueuedAlone,
            _ => Submitted::Queued,
        }
    }

    /// Takes a message that goes before all that waits of a tenant.
    pub(crate) fn submit_repair(&mut self, tenant: TenantIndex, item: &Item, message: &[u8]) {
        self.window.note_demand(tenant.0, item.arrived);
        self.lanes[tenant.0 as usize].repairs.push(*item, message);
        self.scheduler.activate(tenant.0);
    }

    /// Nothing of a tenant leaves but repairs. Changes that wait are taken out, as if they had never been written: gives the
    /// operations that they belong to, one for each message.
    pub(crate) fn pause(&mut self, tenant: TenantIndex) -> Vec<u32> {
        let Session { lanes, installed, .. } = self;
        let lane = &mut lanes[tenant.0 as usize];
        let mut cut = Vec::new();
        if lane.is_paused && lane.repairs.is_empty() {
            return cut;
        }
        let mut is_cut = |item: &mut Item, message: &[u8]| {
            let Some(operation) = item.operation else { return false };
            cut.push(operation);
            if frame::type_(message) == Some(PACKET_OUT) {
                item.operation = None;
                return false;
            }
            item.written.into_iter().for_each(|it| drop(installed.refuse(it)));
            true
        };
        lane.repairs.cut(&mut is_cut);
        if !lane.is_paused {
            lane.queue.cut(&mut is_cut);
        }
        lane.is_paused = true;
        cut
    }

    /// A tenant's messages leave again.
    pub(crate) fn unpause(&mut self, tenant: TenantIndex) {
        self.lanes[tenant.0 as usize].is_paused = false;
        self.scheduler.activate(tenant.0);
    }

    /// Repairs that wait of a tenant.
    pub(crate) fn repairs(&self, tenant: TenantIndex) -> &Queue {
        &self.lanes[tenant.0 as usize].repairs
    }

    /// Sends what may be sent now.
    pub(crate) fn run(&mut self, journal: &Journal, now: Instant) -> Ran {
        while let Some(index) = self.scheduler.turn() {
            // What goes before all this waits for the store.
            if !self.direct.is_empty() || self.out.is_full() {
                return Ran::Stopped;
            }
            if !self.window.is_open() {
                self.window.note_full();
                // Only answers open the window again: make sure that there will be one.
                if self.open.answers_due == 0 {
                    self.send_barrier(now);
                }
                return Ran::Stopped;
            }
            let lane = &mut self.lanes[index as usize];
            let Some(item) = lane.front().copied() else {
                self.scheduler.skip(index);
                continue;
            };
            if !journal.is_safe(item.gate) {
                // The store's answer brings it back.
                self.scheduler.skip(index);
                continue;
            }
            let admitted = self.window.admit(item.share, now);
            if let Err(at) = admitted.and_then(|()| lane.rates.admit(&item, now)) {
                self.resting.push((at, TenantIndex(index)));
                self.scheduler.skip(index);
                continue;
            }
            let Some((item, start, refuses)) = self.take_next(TenantIndex(index)) else { continue };
            let more = self.lanes[index as usize].front().is_some();
            let price = self.prices[item.class.measured() as usize];
            self.scheduler.served(index, item.share.saturating_mul(price), more);
            self.transmit_next(TenantIndex(index), &item, start, refuses, now);
        }
        self.window.note_drained();
        Ran::Dry
    }

    /// Sends everything that waits, whatever the window says. The store must have it.
    pub(crate) fn flush(&mut self, now: Instant) {
        for at in 0..self.lanes.len() {
            let tenant = TenantIndex(at as u32);
            while let Some((item, start, refuses)) = self.take_next(tenant) {
                self.transmit_next(tenant, &item, start, refuses, now);
            }
        }
    }

    /// What has left since this was last asked, one by one.
    #[inline]
    pub(crate) fn next_sent(&mut self) -> Option<Sent> {
        self.departures.next()
    }

    /// A tenant's queue may go on, if anything waits there.
    pub(crate) fn activate(&mut self, tenant: TenantIndex) {
        self.scheduler.activate(tenant.0);
    }

    /// All queues where anything waits may go on.
    pub(crate) fn activate_all(&mut self) {
        for (at, lane) in self.lanes.iter().enumerate() {
            if lane.front().is_some() {
                self.scheduler.activate(at as u32);
            }
        }
    }

    /// What waits for a tenant.
    #[inline]
    pub(crate) fn queue(&self, tenant: TenantIndex) -> &Queue {
        &self.lanes[tenant.0 as usize].queue
    }

    /// Whether the store has all that anything here waits for.
    pub(crate) fn is_safe(&self, journal: &Journal) -> bool {
        let gates = |lane: &Lane| [lane.queue.gate(), lane.repairs.gate()];
        let mut gates = self.lanes.iter().flat_map(gates).flatten();
        self.direct.is_empty() && gates.all(|gate| journal.is_safe(gate))
    }

    /// Looks at a tenant again at this time, unless it is looked at before.
    pub(crate) fn rest_until(&mut self, tenant: TenantIndex, until: Instant) {
        if !self.resting.iter().any(|(at, of)| *of == tenant && *at <= until) {
            self.resting.push((until, tenant));
        }
    }

    /// Tenants that are to be looked at again.
    pub(crate) fn take_rested(&mut self, now: Instant) -> Vec<TenantIndex> {
        let rested = self.resting.extract_if(.., |(at, _)| *at <= now);
        rested.map(|(_, tenant)| tenant).collect()
    }

    /// The switch announces a packet by this buffer id: a message that waits to release the one before has nothing to release.
    pub(crate) fn announces(&mut self, buffer_id: u32) {
        self.releases.remove(&buffer_id);
    }

    // ---- What Weir sends by itself

    /// Sends a question or a change of Weir's own, past all queues, once the store has what `gate` says.
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

    /// Sends what has waited for the store and need not any more.
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

    /// Sends a barrier of Weir's own, so that work that has no reply is acknowledged. Gives its xid.
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
        self.open.unacknowledged = 0;
        self.open.answers_due += 1;
        self.open.last_sent = now;
        xid
    }

    /// The switch asks whether anybody is there.
    pub(crate) fn answer_echo(&mut self, header: Header, body: &[u8]) {
        const ECHO_REPLY: u8 = 3;
        if !self.out.is_full() {
            let version = self.semantics.version;
            // As long as the request was, so it fits.
            let _ = frame::write(version, ECHO_REPLY, header.xid, self.out.end(), |out| {
                out.extend_from_slice(body);
            });
        }
    }

    // ---- What answers show

    /// The switch has answered the message with this xid: gives its entry, which stays until it is [taken](Self::take).
    #[inline]
    pub(crate) fn acknowledge(&mut self, xid: u32, now: Instant) -> Option<Entry> {
        let entry = *self.pending.get(xid)?;
        let cost = self.pending.release_up_to(xid);
        let due = self.open.answers_due;
        let awaits_nothing = matches!(entry.awaits, Awaits::Nothing);
        // Also if something that was sent later has been answered before it.
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

    /// The answer is complete: the xid means nothing any more.
    #[inline]
    pub(crate) fn take(&mut self, xid: u32) {
        self.pending.take(xid);
    }

    /// A barrier has shown that everything up to this xid is done: gives the operations of these messages, one by one.
    pub(crate) fn next_confirmed(&mut self, xid: u32, now: Instant) -> Option<u32> {
        loop {
            if xid.wrapping_sub(self.unconfirmed.front()?.xid) > u32::MAX / 2 {
                return None;
            }
            let done = self.unconfirmed.pop_front()?;
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

    /// The same, to note what the switch says.
    pub(crate) fn installed_mut(&mut self) -> &mut Installed {
        &mut self.installed
    }

    /// A message is written that does this to a rule of a tenant, in the tenant's queue or past it.
    pub(crate) fn write(
        &mut self,
        tenant: TenantIndex,
        direct: bool,
        key: RuleKey,
        effect: Effect,
    ) -> Written {
        let left = direct.then(|| self.lanes.get(tenant.0 as usize).map_or(0, |lane| lane.left));
        self.installed.write(key, effect, left)
    }

    /// A barrier has shown nothing: the switch has refused it, or not answered.
    pub(crate) fn barrier_failed(&mut self) {
        self.open.unbarriered = self.unconfirmed.iter().any(|it| it.operation.is_some());
    }

    /// Whether to look now for messages that the switch should have answered; if so, the next look is some time later.
    pub(crate) fn begin_silence_check(&mut self, now: Instant) -> bool {
        let is_due = now >= self.silence.next_check;
        if is_due {
            self.silence.next_check = now + Duration(self.silence.patience.0 / 4);
        }
        is_due
    }

    /// Messages that the switch should have answered, by this judgement, and has not.
    pub(crate) fn late(&self, is_late: impl Fn(&Entry) -> bool) -> Vec<u32> {
        let late = self.pending.iter();
        let late = late.filter(|(_, entry)| entry.awaits != Awaits::Nothing && is_late(entry));
        late.map(|(xid, _)| xid).collect()
    }

    /// The switch leaves barriers unanswered.
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
        let mut first = self.has_open_work().then(|| self.open.last_sent + QUIET);
        for (at, _) in &self.resting {
            first = earlier(first, Some(*at));
        }
        if self.pending.is_awaited() {
            first = earlier(first, Some(self.silence.next_check));
        }
        first
    }

    /// Time has passed: after a silence a barrier asks for what is done.
    #[inline]
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.has_open_work() && now - self.open.last_sent >= QUIET {
            self.send_barrier(now);
        }
    }

    // ---- What others look at

    /// Bytes for the switch.
    #[inline]
    pub(crate) fn outbox(&mut self) -> &mut Outbox {
        &mut self.out
    }

    /// Whether as many bytes wait for the switch as may.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.out.is_full()
    }

    /// Units of work that may stand and do stand at the switch.
    pub(crate) fn window(&self) -> (u32, u32) {
        (self.window.limit(), self.window.in_flight())
    }

    /// Messages that were sent, by type.
    pub(crate) fn sent_by_type(&self) -> [u64; TYPES] {
        *self.departures.by_type()
    }

    /// Messages that were sent and that no tenant asked for.
    pub(crate) fn own_messages(&self) -> u64 {
        self.departures.own()
    }

    /// Whether something has been sent of which only a barrier will tell that it is done.
    #[inline]
    fn has_open_work(&self) -> bool {
        self.open.unacknowledged > 0 || self.open.unbarriered
    }

    /// Moves the next message of a tenant's queue into the outbox. Gives where it begins, and who hears that the packet which it
    /// was to release is another by now.
    fn take_next(&mut self, tenant: TenantIndex) -> Option<(Item, usize, Option<Origin>)> {
        let start = self.out.len();
        let lane = &mut self.lanes[tenant.0 as usize];
        if let Some(item) = lane.repairs.pop_into(self.out.end()) {
            return Some((item, start, None));
        }
        if lane.is_paused {
            return None;
        }
        let queue = &mut lane.queue;
        let place = queue.place();
        let item = queue.pop_into(self.out.end())?;
        Some((item, start, self.release(tenant, place, &item, start)))
    }

    /// The message at `start` of the outbox has waited at this place of a tenant's queue. If the packet that it was to release is
    /// another by now, a change goes without it, and a PACKET_OUT does nothing.
    fn release(
        &mut self,
        tenant: TenantIndex,
        place: u64,
        item: &Item,
        start: usize,
    ) -> Option<Origin> {
        let message = self.out.tail(start);
        let buffer_id = released_by(message)?;
        if self.releases.get(&buffer_id) == Some(&(tenant, place)) {
            self.releases.remove(&buffer_id);
            return None;
        }
        frame::set_buffer_id(message, NO_BUFFER);
        if frame::type_(message) != Some(PACKET_OUT) {
            return None;
        }
        self.send_nothing(start);
        // A change that it goes with is done.
        item.origin.filter(|_| item.operation.is_none())
    }

    /// Makes the PACKET_OUT at `start` of the outbox one that sends nothing by no action.
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
        out.extend_from_slice(&NOBODYS);
        set_length(self.out.tail(start));
    }

    /// The message at `start` of the outbox, which has waited, leaves.
    fn transmit_next(
        &mut self,
        tenant: TenantIndex,
        item: &Item,
        start: usize,
        refuses: Option<Origin>,
        now: Instant,
    ) {
        let type_ = frame::type_(self.out.tail(start));
        self.transmit(tenant, item, start, now);
        let Item { awaits, operation, arrived, .. } = *item;
        let refuses = refuses.map(Box::new);
        self.departures.push(Sent { tenant, type_, awaits, operation, arrived, refuses });
    }

    /// The message at `start` of the outbox gets its xid and is accounted for.
    fn transmit(&mut self, tenant: TenantIndex, item: &Item, start: usize, now: Instant) {
        let sent = self.window.on_send(item.share, now);
        let Item { origin, awaits, operation, written, .. } = *item;
        if let Some(written) = written {
            self.lanes[tenant.0 as usize].left = written.message();
        }
        let change = Part { operation, written };
        let entry = entry(origin, awaits, change, sent);
        let message = self.out.tail(start);
        self.departures.count(frame::type_(message));
        match self.pending.add(entry) {
            Some(xid) => {
                frame::set_xid(message, xid);
                self.await_confirmation(xid, change);
            }
            // The window is far smaller than the ring, so this takes a switch that leaves thousands of requests unanswered, which
            // are given up after a while.
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
            // A switch that leaves barriers unanswered gets one at a time: each takes a place among what is pending.
            let is_wanted = !self.window.is_silent() || self.open.answers_due == 0;
            let is_half = self.open.unacknowledged >= (self.window.limit() / 2).max(2);
            if is_wanted && (is_half || Window::is_large(item.share)) {
                self.send_barrier(now);
            }
        } else {
            self.open.unacknowledged = 0;
            self.open.answers_due += 1;
        }
    }

    fn await_confirmation(&mut self, xid: u32, change: Part) {
        let Part { operation, written } = change;
        if operation.is_some() || written.is_some() {
            self.unconfirmed.push_back(Unconfirmed { xid, operation, written });
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
            self.open.unacknowledged = 0;
            self.open.answers_due += 1;
        }
    }
}

/// A message that is about to be sent.
fn entry(origin: Option<Origin>, awaits: Awaits, change: Part, sent: InFlight) -> Entry {
    let Part { operation, written } = change;
    Entry { origin, awaits, operation, written, sent, released: false, answered: false }
}

/// The earlier of two times.
#[inline]
pub(crate) fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    a.into_iter().chain(b).min()
}

/// Makes a message's length field say how long it is.
pub(crate) fn set_length(message: &mut [u8]) {
    let length = u16::try_from(message.len()).unwrap_or(u16::MAX);
    if let Some(field) = message.get_mut(2..4) {
        field.copy_from_slice(&length.to_be_bytes());
    }
}

/// The switch's buffer id of the packet that a message has released.
fn released_by(message: &[u8]) -> Option<u32> {
    frame::buffer_id(message).filter(|buffer_id| *buffer_id != NO_BUFFER)
}
