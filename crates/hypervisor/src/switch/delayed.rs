//! What the hypervisor sends for itself, past all queues, and what of that has to wait for the store.
//!
//! An entry that a crash leaves on the switch without the store's knowing is found by its cookie. A group has none, so a new
//! one does not leave before the store knows it, as in a tenant's queue; and nothing overtakes it there.

use super::Switch;
use crate::counters::count;
use crate::pending::{Awaits, Entry};
use crate::time::Instant;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use openflow::frame;

/// Changes in the order in which they are to be sent: as many as a new map or a new connection makes of the tenants' tables.
#[derive(Default)]
pub(crate) struct Delayed(VecDeque<Item>);

struct Item {
    /// The number of the last store operation that must be safe.
    gate: u64,
    operation: Option<u32>,
    message: Vec<u8>,
}

impl Delayed {
    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Switch {
    /// Sends a question or a change of the hypervisor's own, past all queues.
    pub(crate) fn send_own(&mut self, awaits: Awaits, message: &[u8], now: Instant) {
        self.send_own_part(awaits, None, message, now);
    }

    /// The same as a part of an operation.
    pub(super) fn send_own_part(
        &mut self,
        awaits: Awaits,
        operation: Option<u32>,
        message: &[u8],
        now: Instant,
    ) {
        let brings = operation.and_then(|at| self.operations.get(&at)?.brings);
        let gate = if brings.is_some_and(|it| it.is_new()) { self.journal.gate() } else { 0 };
        let waits = !self.delayed.is_empty() || !self.journal.is_safe(gate);
        if waits && awaits == Awaits::Nothing {
            self.delayed.0.push_back(Item { gate, operation, message: message.to_vec() });
        } else {
            self.send_past_queues(awaits, operation, message, now);
        }
    }

    /// Sends what has waited for the store and need not any more.
    pub(super) fn send_delayed(&mut self, now: Instant) {
        while self.delayed.0.front().is_some_and(|item| self.journal.is_safe(item.gate)) {
            let Some(Item { operation, message, .. }) = self.delayed.0.pop_front() else {
                return;
            };
            self.send_past_queues(Awaits::Nothing, operation, &message, now);
        }
    }

    fn send_past_queues(
        &mut self,
        awaits: Awaits,
        operation: Option<u32>,
        message: &[u8],
        now: Instant,
    ) {
        let sent = self.window.on_send(1, now);
        let entry =
            Entry { origin: None, awaits, operation, sent, released: false, answered: false };
        let xid = self.pending.add(entry).unwrap_or(0);
        if let Some(operation) = operation {
            self.unconfirmed.push_back((xid, operation));
            self.unbarriered = true;
        }
        let start = self.south.len();
        self.south.end().extend_from_slice(message);
        frame::set_xid(self.south.tail(start), xid);
        if let Some(type_) = frame::type_(message) {
            count(&mut self.counters.to_switch, type_);
        }
        self.counters.own_messages += 1;
        self.last_sent = now;
        if awaits == Awaits::Nothing {
            self.unacknowledged += 1;
        } else {
            self.unacknowledged = 0;
            self.answers_due += 1;
        }
    }
}
