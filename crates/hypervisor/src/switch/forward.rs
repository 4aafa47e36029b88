//! Messages to the switch for tenants, and their results. The [`Session`](crate::south::Session) sends the messages;
//! the methods here count them, and decide what their results mean for tenants.

use super::{Request, Switch};
use crate::counters::{TYPES, count};
use crate::ids::TenantIndex;
use crate::policy::TenantId;
use crate::refusals::Verdict;
use crate::semantics::UNANSWERED;
use crate::south::pending::Awaits;
use crate::south::queue::{Class, Item};
use crate::south::session::{Part, Ran, Submitted};
use crate::time::Instant;
use alloc::vec::Vec;
use compile::Reason;
use openflow::frame;
use openflow::v13::MessageType;

impl Switch {
    /// Takes a checked and compiled message of a tenant. The message is sent at once if no message waits before it,
    /// else it is queued.
    pub(crate) fn submit(&mut self, tenant: TenantIndex, item: Item, message: &[u8]) {
        let state = &mut self.tenants[tenant];
        if !matches!(item.awaits, Awaits::Nothing) && item.origin.is_some() {
            state.backlog.await_answer();
        }
        match self.session.submit(tenant, &item, message, &self.journal) {
            Submitted::Sent => {
                let counters = &mut state.counters;
                counters.waited.record(0);
                if let Some(type_) = frame::type_(message) {
                    count(&mut counters.to_switch, type_);
                }
                if let Awaits::Collection(collection) = item.awaits {
                    self.collection_sent(collection);
                }
            }
            Submitted::Queued => {}
            // No expected answer will run the queue.
            Submitted::QueuedAlone => self.run(item.arrived),
        }
    }

    /// Sends a controller's request to the switch with another xid.
    pub(crate) fn forward_request(
        &mut self,
        request: &Request<'_>,
        awaits: Awaits,
        class: Class,
        message: &[u8],
    ) {
        let item = Item::new(awaits, 1, request.now);
        let item = Item { origin: Some(request.origin()), class, ..item };
        self.submit(request.tenant, item, message);
    }

    /// Sends messages as far as the window, the rates and the store allow.
    pub(crate) fn run(&mut self, now: Instant) {
        let ran = self.session.run(&self.journal, now);
        self.note_sent(now);
        if ran == Ran::Dry {
            self.ask_for_waiting(now);
        }
    }

    /// Sends all waiting messages, whatever the window says. The store must have their changes.
    pub(crate) fn flush(&mut self, now: Instant) {
        self.session.flush(now);
        self.note_sent(now);
        for tenant in self.tenants.indices() {
            self.resume(tenant);
        }
    }

    /// Sends a question or a change of Weir's own, past all queues.
    pub(crate) fn send_own(&mut self, awaits: Awaits, message: &[u8], now: Instant) {
        self.send_own_part(awaits, Part::default(), message, now);
    }

    /// Sends a message as a part of an operation. If Weir crashes before the store has an entry, the entry's rule on
    /// the switch is found by its cookie. A group has no cookie. So a message with a new group waits until the store
    /// has the group, and later messages wait behind it.
    pub(super) fn send_own_part(
        &mut self,
        awaits: Awaits,
        part: Part,
        message: &[u8],
        now: Instant,
    ) {
        let gate = if adds_number(message) { self.journal.gate() } else { 0 };
        self.session.send_direct(awaits, part, message, gate, &self.journal, now);
    }

    /// Counts the messages that have left the queues.
    fn note_sent(&mut self, now: Instant) {
        while let Some(sent) = self.session.next_sent() {
            let counters = &mut self.tenants[sent.tenant].counters;
            let waited = now.nanos_since(sent.arrived);
            counters.waited.record(waited);
            sent.type_.into_iter().for_each(|type_| count(&mut counters.to_switch, type_));
            if let Some(origin) = sent.refuses {
                let code = openflow::error::v13::BAD_REQUEST_BUFFER_UNKNOWN;
                self.refuse(&origin, Reason::BufferReused.with(code));
            }
            if let Some(operation) = sent.operation.filter(|_| waited > 0) {
                self.begin_time(operation, sent.arrived, now);
            }
            if let Awaits::Collection(collection) = sent.awaits {
                self.collection_sent(collection);
            }
            self.resume(sent.tenant);
        }
    }

    /// Step 6: the messages that each tenant loses when the connection to the switch ends, by message type. These are
    /// the requests that Weir has not carried out or has carried out for a part of the entries, and the waiting
    /// messages that change no table. Changes of tables are not lost: the store has them.
    pub fn lost(&self) -> impl Iterator<Item = (TenantId, [u64; TYPES])> {
        self.tenants.indices().map(|tenant| {
            let waiting = self.session.queues().of(tenant).waiting();
            let messages = waiting.filter(|(item, message)| {
                // A FLOW_MOD may release a buffered packet by a PACKET_OUT, which is lost.
                item.operation.is_none() || frame::type_(message) == Some(MessageType::PACKET_OUT.0)
            });
            let mut lost = [0; TYPES];
            for message in messages.map(|(_, message)| message).chain(self.inbox.waiting(tenant)) {
                frame::type_(message).into_iter().for_each(|type_| count(&mut lost, type_));
            }
            if self.operations.has_bulk(tenant) {
                count(&mut lost, MessageType::FLOW_MOD.0);
            }
            (self.tenants[tenant].id, lost)
        })
    }

    /// A request of a tenant is done.
    pub(crate) fn answered(&mut self, tenant: TenantIndex) {
        let state = &mut self.tenants[tenant];
        state.backlog.answered();
        self.resume(tenant);
    }

    /// Lets the driver read from a tenant's controllers again when half of the tenant's accepted requests are done.
    pub(crate) fn resume(&mut self, tenant: TenantIndex) {
        if self.may_continue_bulk(tenant) || self.may_go_on_with_replay(tenant) {
            self.inbox.turns_mut().wait(tenant.0);
        }
        let state = &self.tenants[tenant];
        if state.backlog.may_resume()
            && self.inbox.turns().may(tenant.0)
            && self.is_half_empty(tenant)
        {
            let state = &mut self.tenants[tenant];
            state.backlog.resume();
            self.controllers.resume(&state.controllers);
        }
    }

    /// Gives up on requests that the switch has not answered in time.
    pub(crate) fn settle_silence(&mut self, now: Instant) {
        if !self.session.begin_silence_check(now) {
            return;
        }
        self.session.installed_mut().settle(self.settings.reply_timeout, now);
        self.end_late(now);
        let late: Vec<u32> = self.session.late(|entry| self.is_late(entry, now));
        let mut is_silent = false;
        for xid in late {
            self.reports.counters_mut().unanswered += 1;
            let Some(entry) = self.session.acknowledge(xid, now) else { continue };
            self.session.take(xid);
            is_silent |= entry.awaits == Awaits::OwnBarrier;
            if entry.awaits == Awaits::OwnBarrier {
                self.inbox.barrier_returned();
            }
            let verdict = Verdict::by_silence(UNANSWERED);
            self.not_answered(xid, &entry, verdict, now);
        }
        // After the loop: to the window, giving up on a request looks like an answer.
        if is_silent {
            self.session.note_silence();
        }
    }
}

/// Whether a message brings a new group or meter to the switch (1.3).
fn adds_number(message: &[u8]) -> bool {
    /// OFPGC_ADD and OFPMC_ADD.
    const ADD: [u8; 2] = [0, 0];
    let is_about_numbers = frame::type_(message)
        .is_some_and(|it| [MessageType::GROUP_MOD.0, MessageType::METER_MOD.0].contains(&it));
    is_about_numbers && message.get(8..10) == Some(&ADD) && message.first() == Some(&4)
}
