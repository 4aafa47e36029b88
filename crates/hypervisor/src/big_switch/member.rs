//! A member: its connection, its tables, and the messages on their way to the member.

use super::request::{Object, Request, To};
use super::tables::{Entry, Tables};
use super::wire::{self, Sent};
use crate::outbox::Outbox;
use crate::semantics::Semantics;
use crate::time::Instant;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use compile::Wire;
use openflow::v13::Port;

/// How many messages without an answer go to a member before Weir sends a barrier.
const UNANSWERED: usize = 512;

/// A member that is connected.
pub(super) struct Member {
    wire: Wire,
    pub(super) out: Outbox,
    /// The member's ports, by number, as the member describes them.
    pub(super) ports: BTreeMap<u32, Port>,
    pub(super) progress: Progress,
    /// What the member has reported of its tables, until Weir compares that with the tables of the big switch.
    pub(super) learned: Learned,
    /// The member's tables, as far as barriers have confirmed them.
    pub(super) held: Tables,
    /// Changes that no barrier has confirmed, in order.
    writes: VecDeque<Write>,
    /// Other messages that may be answered, by a number of which the xid is the lower half.
    sent: BTreeMap<u64, Sent>,
    next: u64,
    /// Messages without an answer since the last barrier.
    unanswered: usize,
    /// Whether Weir has sent a part of a difference since the last barrier.
    is_asking: bool,
    /// Objects of which Weir does not know what the member holds.
    pub(super) unknown: BTreeSet<Object>,
    /// Objects of the difference that the member has refused once since it connected.
    pub(super) refused: BTreeSet<Object>,
    /// Objects that the member does without, since it has refused them.
    pub(super) lacks: BTreeSet<Object>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Weir has asked the member for its entries, groups and meters; this many answers are due.
    Learning(u8),
    /// Weir knows the member's tables and has sent the difference; the barrier with this number confirms the
    /// difference.
    Filling(u64),
    /// The member has the entries of the big switch.
    Up,
}

#[derive(Default)]
pub(super) struct Learned {
    pub(super) flows: Vec<u8>,
    pub(super) groups: Vec<u8>,
    pub(super) meters: Vec<u8>,
}

/// A change on its way to a member, or a barrier.
pub(super) struct Write {
    number: u64,
    /// The number of the last change in the log when Weir sent the message.
    pub(super) seq: u64,
    /// Whether the message is a part of a difference, and not that change.
    pub(super) is_own: bool,
    /// Nothing for a barrier.
    pub(super) request: Option<Arc<Request>>,
}

impl Member {
    pub(super) fn new(wire: Wire, ports: BTreeMap<u32, Port>) -> Member {
        let questions: Vec<(Sent, Vec<u8>)> = wire::questions(wire).collect();
        let mut member = Member {
            wire,
            out: Outbox::default(),
            ports,
            progress: Progress::Learning(questions.len() as u8),
            learned: Learned::default(),
            held: Tables::default(),
            writes: VecDeque::new(),
            sent: BTreeMap::new(),
            next: 1,
            unanswered: 0,
            is_asking: false,
            unknown: BTreeSet::new(),
            refused: BTreeSet::new(),
            lacks: BTreeSet::new(),
        };
        for (what, question) in questions {
            member.send(what, &question);
        }
        member
    }

    /// Whether the member gets each change.
    pub(super) fn is_live(&self) -> bool {
        !matches!(self.progress, Progress::Learning(_))
    }

    pub(super) fn is_filling(&self) -> bool {
        matches!(self.progress, Progress::Filling(_))
    }

    // ---- Messages on their way

    pub(super) fn send(&mut self, what: Sent, message: &[u8]) {
        let number = self.push(message);
        self.sent.insert(number, what);
        if matches!(what, Sent::Plain(_)) {
            self.count_unanswered(self.writes.back().map_or(0, |last| last.seq));
        }
    }

    /// Sends a change of the front, or a part of a difference.
    pub(super) fn write(&mut self, seq: u64, is_own: bool, request: Arc<Request>, message: &[u8]) {
        let number = self.push(message);
        self.writes.push_back(Write { number, seq, is_own, request: Some(request) });
        self.is_asking |= is_own;
        self.count_unanswered(seq);
    }

    fn count_unanswered(&mut self, seq: u64) {
        self.unanswered += 1;
        if self.unanswered >= UNANSWERED {
            self.barrier(seq);
        }
    }

    /// Sends a barrier.
    pub(super) fn barrier(&mut self, seq: u64) -> u64 {
        let number = self.push(&wire::barrier(self.wire));
        self.writes.push_back(Write { number, seq, is_own: true, request: None });
        (self.unanswered, self.is_asking) = (0, false);
        number
    }

    /// Makes sure that a barrier follows all messages on their way.
    pub(super) fn drain(&mut self, seq: u64) {
        if self.unanswered > 0 {
            self.barrier(seq);
        }
    }

    /// Sends a barrier behind the parts of a difference, if no barrier is on its way.
    pub(super) fn ask(&mut self, seq: u64) {
        if self.is_asking && self.writes.iter().all(|write| write.request.is_some()) {
            self.barrier(seq);
        }
    }

    fn push(&mut self, message: &[u8]) -> u64 {
        let number = self.next;
        self.next += 1;
        let start = self.out.len();
        self.out.end().extend_from_slice(message);
        openflow::frame::set_xid(self.out.tail(start), number as u32);
        number
    }

    /// The number of a message by its xid.
    fn number(&self, xid: u32) -> u64 {
        self.next.wrapping_sub(u64::from((self.next as u32).wrapping_sub(xid)))
    }

    /// The purpose of a message, by its xid. `is_last`: no other answer will come.
    pub(super) fn sent(&mut self, xid: u32, is_last: bool) -> Option<Sent> {
        let number = self.number(xid);
        let what = self.sent.get(&number).copied();
        if is_last {
            self.sent.remove(&number);
        }
        what
    }

    /// Nobody waits for answers any more.
    pub(super) fn forget_askers(&mut self) {
        self.sent.retain(|_, what| !matches!(what, Sent::Plain(_)));
    }

    /// The member has refused a change or a barrier: takes the message out of those on their way.
    pub(super) fn take_write(&mut self, xid: u32) -> Option<Write> {
        let number = self.number(xid);
        let at = self.writes.binary_search_by_key(&number, |write| write.number).ok()?;
        self.writes.remove(at)
    }

    /// A barrier reply has confirmed all messages before the barrier.
    pub(super) fn confirm(&mut self, xid: u32, now: Instant) {
        let number = self.number(xid);
        while self.writes.front().is_some_and(|write| write.number <= number) {
            let Some(write) = self.writes.pop_front() else { break };
            let Some(request) = write.request else { continue };
            self.held.apply(self.wire, &request, now);
            if self.held.has(request.object) {
                self.lacks.remove(&request.object);
            }
        }
        self.sent.retain(|&at, what| at > number || !matches!(what, Sent::Plain(_)));
        if matches!(self.progress, Progress::Filling(barrier) if barrier <= number) {
            self.progress = Progress::Up;
            self.refused.clear();
        }
    }

    /// Whether no change is on its way.
    pub(super) fn is_drained(&self) -> bool {
        self.writes.is_empty()
    }

    /// Whether the member has confirmed this change of the log.
    pub(super) fn has_done(&self, seq: u64) -> bool {
        self.writes.front().is_none_or(|write| write.seq > seq)
    }

    /// Changes of an object on their way.
    pub(super) fn on_the_way(&self, object: Object) -> impl DoubleEndedIterator<Item = &Request> {
        let requests = self.writes.iter().filter_map(|write| write.request.as_deref());
        requests.filter(move |request| request.object == object)
    }

    // ---- Copies of entries

    /// Whether the member has a copy of an entry, or one is on its way, and whether the copy is idle.
    pub(super) fn copy(&self, cookie: u64) -> Option<bool> {
        if let Some(Entry { is_idle, .. }) = self.held.entry(cookie) {
            return Some(*is_idle);
        }
        self.on_the_way(Object::Entry(cookie)).find_map(|request| match &request.to {
            To::Add { spec, is_again, .. } => Some(*is_again && spec.flow.idle_timeout > 0),
            To::Modify { .. } => Semantics::of(self.wire).modify_adds.then_some(false),
            _ => None,
        })
    }

    /// Whether the member misses its copy of an entry.
    pub(super) fn misses(&self, object: Object) -> bool {
        let Object::Entry(cookie) = object else { return false };
        self.is_live() && !self.lacks.contains(&object) && self.copy(cookie).is_none()
    }
}
