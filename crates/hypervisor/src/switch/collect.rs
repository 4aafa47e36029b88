//! Statistics: one question to the switch may answer several of the tenants'.
//!
//! A request becomes a [`Collection`]: the questions sent to the switch for it, the answers so far, and everybody who
//! waits for them. A request that is the same as one in flight joins it. Joining never makes anybody wait for another
//! tenant's turn: a question that still stands in a queue is joined by its own tenant only. And nobody is given an
//! answer that is older than its own changes of the table: flow statistics are joined only if no change came between.

use super::counts::Due;
use super::{Request, Switch};
use crate::ids::{ControllerIndex, TenantIndex};
use crate::policy::Statistics;
use crate::refusals::Verdict;
use crate::south::pending::{Awaits, Origin};
use crate::south::queue::{Class, Item};
use crate::tenant::Tenant;
use crate::time::Instant;
use crate::work::LARGE;
use alloc::vec::Vec;
use compile::Reason;
use openflow::{Encode, TooLong, Version};

/// Bytes of answers that are kept for one collection.
const LIMIT: usize = 16 << 20;
/// Bytes of answers that are kept for all.
const LIMIT_OF_ALL: usize = 64 << 20;
/// So many bytes of an answer take as long to tell a tenant as it takes to examine an entry.
const BYTES_EXAMINED: u64 = 16;
/// Capacity that a collection may keep.
const KEEP: usize = 64 << 10;

/// Who may share the answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    /// Everybody: it is about the switch.
    Anybody,
    /// The tenant alone, and only while its tables have not changed since.
    Tenant,
    /// The tenant alone: what its ports have received and sent, which is told when that is known, too.
    Ports,
}

/// See the module.
pub(crate) struct Collection {
    /// Changes with each use, so that a late answer finds nothing.
    id: u32,
    state: State,
    share: Share,
    tenant: TenantIndex,
    /// The tenant's count of changes when it was asked.
    changes: u64,
    type_: u16,
    /// What the switch is asked, without xids: the identity.
    questions: Vec<u8>,
    unanswered: usize,
    /// What is to be known beside the answers.
    due: Option<Due>,
    in_flight: bool,
    waiters: Vec<Waiter>,
    answers: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Asked,
    /// Complete since then; who waits is answered in its tenant's turn.
    Answering(Instant),
    /// Kept for those who take cached answers.
    Done(Instant),
}

/// Somebody who waits for the answers.
pub(crate) struct Waiter {
    pub origin: Origin,
    /// The body of the request.
    pub request: Vec<u8>,
    /// The least that the answer will cost, in examined entries.
    work: u64,
}

impl Switch {
    /// Answers a statistics request from the switch. `questions` are whole messages for it, back to back.
    pub(crate) fn collect(
        &mut self,
        request: &Request<'_>,
        type_: u16,
        share: Share,
        questions: &[u8],
        cost: u32,
    ) {
        let tenant = request.tenant;
        let work = match type_ {
            FLOW | AGGREGATE => self.tenants[tenant.0 as usize].flows.len() as u64,
            _ => 1,
        };
        let waiter = Waiter { origin: request.origin(), request: request.body().to_vec(), work };
        let state = &mut self.tenants[tenant.0 as usize];
        let changes = state.changes;
        let statistics = state.statistics;

        if let Statistics::Cached { max_age } = statistics
            && let Some(at) = self.collections.iter().position(|c| {
                c.is_same(share, tenant, questions)
                    && matches!(c.state, State::Done(at) if (request.now - at).0 <= max_age)
            })
        {
            let answers = core::mem::take(&mut self.collections[at].answers);
            self.begin_waiting(&waiter);
            self.answer_statistics(type_, &waiter, &answers);
            self.collections[at].answers = answers;
            return;
        }
        if let Some(shared) = self.collections.iter_mut().find(|c| {
            c.state == State::Asked
                && c.is_same(share, tenant, questions)
                && (share != Share::Tenant || c.changes == changes)
                && (c.in_flight || c.tenant == tenant)
        }) {
            self.tenants[tenant.0 as usize].wait_for_answer(work);
            shared.waiters.push(waiter);
            self.count_question(request.controller);
            return;
        }

        let at = self.free_collection(request.now);
        let collection = &mut self.collections[at];
        collection.id = self.next_collection;
        self.next_collection = self.next_collection.wrapping_add(1);
        let id = collection.id;
        collection.state = State::Asked;
        collection.share = share;
        collection.tenant = tenant;
        collection.changes = changes;
        collection.type_ = type_;
        collection.in_flight = false;
        collection.questions.clear();
        collection.questions.extend_from_slice(questions);
        collection.answers.clear();
        collection.unanswered = count_messages(questions);
        collection.due = None;
        self.begin_waiting(&waiter);
        self.collections[at].waiters.push(waiter);
        if self.collections[at].unanswered == 0 {
            // Nothing of the request is within the tenant's space: the answer is empty, and it is an answer.
            self.finish_collection(at, request.now);
            return;
        }
        if share == Share::Ports {
            let due = self.ask_counts(tenant, request.now);
            self.collections[at].due = Some(due);
        }
        let mut rest = questions;
        while let Ok(Some(length)) = openflow::frame::next(rest) {
            let (message, tail) = rest.split_at(length);
            let item = Item {
                // What is waited for is counted once, by the waiter.
                origin: None,
                awaits: Awaits::Collection(id),
                operation: None,
                written: None,
                class: Class::Statistics,
                cost,
                share: cost,
                gate: 0,
                arrived: request.now,
            };
            self.submit(tenant, item, message);
            rest = tail;
        }
    }

    /// A part of an answer has come; `entries` are the statistics in it.
    pub(crate) fn collection_part(&mut self, id: u32, entries: &[u8], more: bool, now: Instant) {
        let Some(at) = self.asked(id) else { return };
        let all: usize = self.collections.iter().map(|it| it.answers.len()).sum();
        let collection = &mut self.collections[at];
        if collection.answers.len() + entries.len() > LIMIT || all + entries.len() > LIMIT_OF_ALL {
            self.collection_failed(id, Reason::AnswerTooLarge.with(self.codes().too_much));
            return;
        }
        collection.answers.extend_from_slice(entries);
        if !more {
            collection.unanswered = collection.unanswered.saturating_sub(1);
            self.finish_due(now);
        }
    }

    /// The tenant that has a collection's questions asked.
    pub(crate) fn asks(&self, id: u32) -> Option<TenantIndex> {
        self.asked(id).map(|at| self.collections[at].tenant)
    }

    /// The switch would not answer: all who wait get its error.
    pub(crate) fn collection_failed(&mut self, id: u32, verdict: impl Into<Verdict>) {
        let Some(at) = self.asked(id) else { return };
        let collection = &mut self.collections[at];
        collection.state = State::Free;
        collection.answers = Vec::new();
        let verdict = verdict.into();
        for waiter in core::mem::take(&mut collection.waiters) {
            self.refuse(&waiter.origin, verdict);
            self.end_waiting(&waiter);
        }
    }

    /// A question of a collection has been sent.
    pub(crate) fn collection_sent(&mut self, id: u32) {
        if let Some(at) = self.asked(id) {
            self.collections[at].in_flight = true;
        }
    }

    fn asked(&self, id: u32) -> Option<usize> {
        self.collections.iter().position(|c| c.id == id && c.state == State::Asked)
    }

    /// Gives the answers that are complete.
    pub(super) fn finish_due(&mut self, now: Instant) {
        for at in 0..self.collections.len() {
            let Collection { state, unanswered, due, tenant, .. } = &self.collections[at];
            let is_complete = *state == State::Asked && *unanswered == 0;
            if is_complete && due.is_none_or(|due| self.is_due(*tenant, due, now)) {
                self.finish_collection(at, now);
            }
        }
    }

    /// When the next answer is given without what other switches have not told.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let waits = |c: &&Collection| c.state == State::Asked && c.unanswered == 0;
        let waiting = self.collections.iter().filter(waits);
        waiting.filter_map(|c| self.patience(c.tenant, c.due?)).min()
    }

    fn finish_collection(&mut self, at: usize, now: Instant) {
        self.collections[at].state = State::Answering(now);
        self.go_on_answering(at);
    }

    /// Answers those who wait, as far as their tenants have credit. A long answer waits for the tenant's turn.
    fn go_on_answering(&mut self, at: usize) {
        let is_kept = self.oldest_useful().is_some();
        let collection = &mut self.collections[at];
        let State::Answering(since) = collection.state else { return };
        let type_ = collection.type_;
        let waiters = core::mem::take(&mut collection.waiters);
        let mut answers = core::mem::take(&mut collection.answers);
        let cost = answers.len() as u64 / BYTES_EXAMINED;
        let mut left = Vec::new();
        for waiter in waiters {
            let tenant = waiter.origin.tenant;
            if !self.turns.may(tenant.0) || cost >= LARGE && self.on_turn != Some(tenant) {
                self.turns.wait(tenant.0);
                left.push(waiter);
                continue;
            }
            self.tenants[tenant.0 as usize].flows.meter().add(cost);
            self.answer_statistics(type_, &waiter, &answers);
            self.charge_work(tenant);
        }
        if left.is_empty() && !is_kept {
            answers.clear();
            answers.shrink_to(KEEP);
        }
        let collection = &mut self.collections[at];
        if left.is_empty() {
            collection.state = State::Done(since);
        }
        (collection.waiters, collection.answers) = (left, answers);
    }

    /// Answers a tenant whose turn it is.
    pub(super) fn answer_in_turn(&mut self, tenant: TenantIndex) {
        for at in 0..self.collections.len() {
            let Collection { state, waiters, .. } = &self.collections[at];
            let waits = |it: &Waiter| it.origin.tenant == tenant;
            if matches!(state, State::Answering(_)) && waiters.iter().any(waits) {
                self.go_on_answering(at);
            }
        }
    }

    fn answer_statistics(&mut self, type_: u16, waiter: &Waiter, answers: &[u8]) {
        match self.version {
            Version::V1_0 => self.answer_statistics_v10(type_, waiter, answers),
            _ => self.answer_statistics_v13(type_, waiter, answers),
        }
        self.end_waiting(waiter);
    }

    fn begin_waiting(&mut self, waiter: &Waiter) {
        self.tenants[waiter.origin.tenant.0 as usize].wait_for_answer(waiter.work);
        self.count_question(waiter.origin.controller);
    }

    fn count_question(&mut self, controller: ControllerIndex) {
        if let Some(controller) = self.controllers.get_mut(controller) {
            controller.statistics += 1;
        }
    }

    /// The request that waited is answered: requests behind it may go on.
    fn end_waiting(&mut self, waiter: &Waiter) {
        let origin = &waiter.origin;
        if let Some(controller) = self.controllers.get_mut(origin.controller) {
            controller.statistics = controller.statistics.saturating_sub(1);
        }
        let state = &mut self.tenants[origin.tenant.0 as usize];
        state.is_decided = true;
        state.ahead = state.ahead.saturating_sub(waiter.work);
        self.answered(origin.tenant);
    }

    /// The greatest age of an answer that any tenant takes.
    fn oldest_useful(&self) -> Option<u64> {
        let ages = self.tenants.iter().filter_map(|tenant| match tenant.statistics {
            Statistics::Cached { max_age } => Some(max_age),
            Statistics::Passthrough => None,
        });
        ages.max()
    }

    /// A collection to use: a free one, else a finished one that nobody would take from the cache any more.
    fn free_collection(&mut self, now: Instant) -> usize {
        let oldest_useful = self.oldest_useful();
        let usable = self.collections.iter().position(|c| match c.state {
            State::Free => true,
            State::Asked | State::Answering(_) => false,
            State::Done(at) => oldest_useful.is_none_or(|age| (now - at).0 > age),
        });
        usable.unwrap_or_else(|| {
            self.collections.push(Collection {
                id: 0,
                state: State::Free,
                share: Share::Tenant,
                tenant: TenantIndex(0),
                changes: 0,
                type_: 0,
                questions: Vec::new(),
                unanswered: 0,
                due: None,
                in_flight: false,
                waiters: Vec::new(),
                answers: Vec::new(),
            });
            self.collections.len() - 1
        })
    }
}

/// Types of statistics, in both versions.
const FLOW: u16 = 1;
const AGGREGATE: u16 = 2;

impl Tenant {
    fn wait_for_answer(&mut self, work: u64) {
        self.unanswered += 1;
        self.ahead += work;
    }
}

impl Collection {
    fn is_same(&self, share: Share, tenant: TenantIndex, questions: &[u8]) -> bool {
        self.share == share
            && (share == Share::Anybody || self.tenant == tenant)
            && self.questions == questions
    }
}

fn count_messages(mut messages: &[u8]) -> usize {
    let mut count = 0;
    while let Ok(Some(length)) = openflow::frame::next(messages) {
        count += 1;
        messages = &messages[length..];
    }
    count
}

/// Room for entries in one part of a reply, behind its header of 1.3.
const PART: usize = u16::MAX as usize - 16;

/// Appends a reply in as many parts as it takes; an empty one is one part.
pub(crate) fn write_parts<T: Encode>(
    version: Version,
    type_: u16,
    xid: u32,
    entries: impl Iterator<Item = T>,
    out: &mut Vec<u8>,
) -> Result<(), TooLong> {
    let mut part = Vec::new();
    for entry in entries {
        let end = part.len();
        entry.write(&mut part);
        if part.len() > PART && end > 0 {
            // It begins the next one.
            write_part(version, type_, xid, &part[..end], true, out)?;
            part.drain(..end);
        }
    }
    write_part(version, type_, xid, &part, false, out)
}

/// Appends one part of a STATS or MULTIPART reply.
pub(crate) fn write_part(
    version: Version,
    type_: u16,
    xid: u32,
    body: &[u8],
    more: bool,
    out: &mut Vec<u8>,
) -> Result<(), TooLong> {
    let (message, padding): (u8, &[u8]) =
        if version == Version::V1_0 { (17, &[]) } else { (19, &[0; 4]) };
    openflow::frame::write(version, message, xid, out, |out| {
        out.extend_from_slice(&type_.to_be_bytes());
        out.extend_from_slice(&u16::from(more).to_be_bytes());
        out.extend_from_slice(padding);
        out.extend_from_slice(body);
    })
}
