//! A tenant's messages that wait for the switch, in the order in which it sent them.

use crate::sheet::MessageClass;
use crate::south::installed::Written;
use crate::south::pending::{Awaits, Origin};
use crate::time::Instant;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// What the scheduler needs to know of a waiting message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    /// The sender; `None` for Weir's own messages on behalf of the tenant.
    pub origin: Option<Origin>,
    /// The expected answer of the switch.
    pub awaits: Awaits,
    /// The table operation of the message, if any.
    pub operation: Option<u32>,
    /// The effects of the message on rules, if any.
    pub written: Option<Written>,
    /// The class of the message, for the tenant's rates.
    pub class: Class,
    /// Units of work. The tenant is not charged for them if nothing else waits for the switch.
    pub cost: u32,
    /// Units of work at the switch, for the window and the tenant's share. More than `cost` if the message changes many
    /// entries.
    pub share: u32,
    /// The number of the last store operation that must be safe before the message is sent.
    pub gate: u64,
    /// When the message arrived.
    pub arrived: Instant,
}

impl Item {
    /// A message that does not wait for the store and changes no table. The operator's rates do not limit the message.
    pub(crate) fn new(awaits: Awaits, cost: u32, arrived: Instant) -> Item {
        Item {
            origin: None,
            awaits,
            operation: None,
            written: None,
            class: Class::Other,
            cost,
            share: cost,
            gate: 0,
            arrived,
        }
    }
}

/// A class of messages with one rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// BARRIER.
    Barrier,
    /// PACKET_OUT.
    PacketOut,
    /// FLOW_MOD, GROUP_MOD, METER_MOD, PORT_MOD.
    Modification,
    /// A statistics request.
    Statistics,
    /// Any other request with an answer.
    Other,
}

impl Class {
    /// The class in a data sheet.
    pub(super) fn measured(self) -> MessageClass {
        match self {
            Class::PacketOut => MessageClass::PacketOut,
            Class::Modification => MessageClass::FlowMod,
            Class::Statistics => MessageClass::Statistics,
            Class::Barrier | Class::Other => MessageClass::Other,
        }
    }
}

/// A question for the switch, and the cost of the answer.
#[derive(Debug)]
pub(crate) struct Question {
    pub message: Vec<u8>,
    pub cost: u32,
}

/// The queue: items, and their bytes back to back.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    items: VecDeque<Waiting>,
    bytes: Vec<u8>,
    head: usize,
    /// How many messages have been taken from the queue.
    taken: u64,
    /// How many items are cut. The first item is never cut.
    cut: usize,
    /// How many items belong to changes of tables.
    changes: usize,
}

#[derive(Debug)]
struct Waiting {
    item: Item,
    length: u32,
    /// The message is not sent. Its place stays, so that the places of later messages do not change.
    is_cut: bool,
}

impl Queue {
    /// Messages that wait.
    pub(crate) fn len(&self) -> usize {
        self.items.len() - self.cut
    }

    /// Whether none waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Messages that wait and belong to changes of tables.
    pub(crate) fn changes(&self) -> usize {
        self.changes
    }

    /// Bytes that wait.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len() - self.head
    }

    /// The messages that wait: each item, and the bytes.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (&Item, &[u8])> {
        let mut at = self.head;
        self.items.iter().filter_map(move |it| {
            let start = at;
            at += it.length as usize;
            let message = self.bytes.get(start..at).unwrap_or_default();
            (!it.is_cut).then_some((&it.item, message))
        })
    }

    /// Adds a whole message at the end. Returns the message's place.
    pub(crate) fn push(&mut self, item: Item, message: &[u8]) -> u64 {
        let place = self.taken + self.items.len() as u64;
        self.changes += usize::from(item.operation.is_some());
        self.items.push_back(Waiting { item, length: message.len() as u32, is_cut: false });
        self.bytes.extend_from_slice(message);
        place
    }

    /// The place of the next message among all messages of this queue so far. If the queue is empty, the place of the
    /// next message that is added.
    pub(crate) fn place(&self) -> u64 {
        self.taken
    }

    /// The next item.
    pub(crate) fn front(&self) -> Option<&Item> {
        self.items.front().map(|it| &it.item)
    }

    /// The number of the last store operation that any message of the queue waits for; gates never fall.
    pub(crate) fn gate(&self) -> Option<u64> {
        self.items.iter().rev().map(|it| it.item.gate).find(|gate| *gate > 0)
    }

    /// Takes the next message: returns the item, and appends the bytes to `out`.
    pub(crate) fn pop_into(&mut self, out: &mut Vec<u8>) -> Option<Item> {
        let Waiting { item, length, .. } = self.items.pop_front()?;
        self.taken += 1;
        self.changes -= usize::from(item.operation.is_some());
        out.extend_from_slice(&self.bytes[self.head..self.head + length as usize]);
        self.head += length as usize;
        self.skip_cut();
        Some(item)
    }

    /// Cuts the messages for which `is_cut` says yes, wherever they are.
    pub(crate) fn cut(&mut self, mut is_cut: impl FnMut(&mut Item, &[u8]) -> bool) {
        let mut at = self.head;
        for waiting in &mut self.items {
            let length = waiting.length as usize;
            let message = &self.bytes[at..at + length];
            at += length;
            if waiting.is_cut {
                continue;
            }
            let was_change = waiting.item.operation.is_some();
            waiting.is_cut = is_cut(&mut waiting.item, message);
            self.cut += usize::from(waiting.is_cut);
            let is_change = waiting.item.operation.is_some() && !waiting.is_cut;
            self.changes -= usize::from(was_change && !is_change);
        }
        self.skip_cut();
    }

    fn skip_cut(&mut self) {
        while let Some(cut) = self.items.front().filter(|it| it.is_cut) {
            let length = cut.length;
            self.items.pop_front();
            self.taken += 1;
            self.head += length as usize;
            self.cut -= 1;
        }
        if self.items.is_empty() {
            self.bytes.clear();
            self.head = 0;
            self.bytes.shrink_to(64 * 1024);
        } else if self.head > 64 * 1024 && self.head > self.bytes.len() / 2 {
            self.bytes.drain(..self.head);
            self.head = 0;
        }
    }
}
