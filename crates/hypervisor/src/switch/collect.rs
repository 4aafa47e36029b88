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
use crate::time::Instant;
use crate::work::LARGE;
use alloc::vec::Vec;
use compile::Reason;
use openflow::Version;

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

/// The collections of a switch.
#[derive(Default)]
pub(super) struct Collections {
    all: Vec<Collection>,
    /// The id of the next use.
    next: u32,
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
        let changes = state.flows.changes();
        let statistics = state.terms.statistics();

        let asked = Asked { type_, share, tenant, changes, questions };
        self.begin_waiting(&waiter);
        if let Statistics::Cached { max_age } = statistics
            && let Some(at) = self.statistics.cached(&asked, max_age, request.now)
        {
            let answers = core::mem::take(&mut self.statistics.all[at].answers);
            self.answer_statistics(type_, &waiter, &answers);
            self.statistics.all[at].answers = answers;
            return;
        }
        if let Some(shared) = self.statistics.in_flight(&asked) {
            shared.waiters.push(waiter);
            return;
        }

        let oldest_useful = self.oldest_useful();
        let at = self.statistics.begin(&asked, oldest_useful, request.now);
        let collection = &mut self.statistics.all[at];
        let id = collection.id;
        collection.waiters.push(waiter);
        if collection.unanswered == 0 {
            // Nothing of the request is within the tenant's space: the answer is empty, and it is an answer.
            self.finish_collection(at, request.now);
            return;
        }
        if share == Share::Ports {
            let due = self.ask_counts(tenant, request.now);
            self.statistics.all[at].due = Some(due);
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
        match self.statistics.add_part(id, entries, more) {
            Err(TooLarge) => {
                self.collection_failed(id, Reason::AnswerTooLarge.with(self.codes().too_much));
            }
            Ok(true) => self.finish_due(now),
            Ok(false) => {}
        }
    }

    /// The tenant that has a collection's questions asked.
    pub(crate) fn asks(&self, id: u32) -> Option<TenantIndex> {
        self.statistics.asked(id).map(|collection| collection.tenant)
    }

    /// The switch would not answer: all who wait get its error.
    pub(crate) fn collection_failed(&mut self, id: u32, verdict: impl Into<Verdict>) {
        let verdict = verdict.into();
        for waiter in self.statistics.fail(id) {
            self.refuse(&waiter.origin, verdict);
            self.end_waiting(&waiter);
        }
    }

    /// A question of a collection has been sent.
    pub(crate) fn collection_sent(&mut self, id: u32) {
        if let Some(collection) = self.statistics.asked_mut(id) {
            collection.in_flight = true;
        }
    }

    /// Gives the answers that are complete.
    pub(super) fn finish_due(&mut self, now: Instant) {
        for at in 0..self.statistics.all.len() {
            let Collection { due, tenant, .. } = self.statistics.all[at];
            let is_due = || due.is_none_or(|due| self.is_due(tenant, due, now));
            if self.statistics.all[at].is_complete() && is_due() {
                self.finish_collection(at, now);
            }
        }
    }

    /// When the next answer is given without what other switches have not told.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let waiting = self.statistics.all.iter().filter(|c| c.is_complete());
        waiting.filter_map(|c| self.patience(c.tenant, c.due?)).min()
    }

    fn finish_collection(&mut self, at: usize, now: Instant) {
        self.statistics.all[at].state = State::Answering(now);
        self.go_on_answering(at);
    }

    /// Answers those who wait, as far as their tenants have credit. A long answer waits for the tenant's turn.
    fn go_on_answering(&mut self, at: usize) {
        let is_kept = self.oldest_useful().is_some();
        let collection = &mut self.statistics.all[at];
        let State::Answering(since) = collection.state else { return };
        let type_ = collection.type_;
        let waiters = core::mem::take(&mut collection.waiters);
        let mut answers = core::mem::take(&mut collection.answers);
        let cost = answers.len() as u64 / BYTES_EXAMINED;
        let mut left = Vec::new();
        for waiter in waiters {
            let tenant = waiter.origin.tenant;
            if !self.inbox.may(tenant) || cost >= LARGE && !self.inbox.is_on_turn(tenant) {
                self.inbox.wait_for_turn(tenant);
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
        let collection = &mut self.statistics.all[at];
        if left.is_empty() {
            collection.state = State::Done(since);
        }
        (collection.waiters, collection.answers) = (left, answers);
    }

    /// Answers a tenant whose turn it is.
    pub(super) fn answer_in_turn(&mut self, tenant: TenantIndex) {
        for at in 0..self.statistics.all.len() {
            let Collection { state, waiters, .. } = &self.statistics.all[at];
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
        self.tenants[waiter.origin.tenant.0 as usize].backlog.await_statistics(waiter.work);
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
        state.backlog.statistics_over(waiter.work);
        self.answered(origin.tenant);
    }

    /// The greatest age of an answer that any tenant takes.
    fn oldest_useful(&self) -> Option<u64> {
        let ages = self.tenants.iter().filter_map(|tenant| match tenant.terms.statistics() {
            Statistics::Cached { max_age } => Some(max_age),
            Statistics::Passthrough => None,
        });
        ages.max()
    }
}

/// Types of statistics, in both versions.
const FLOW: u16 = 1;
const AGGREGATE: u16 = 2;

/// What a tenant asks for.
struct Asked<'a> {
    type_: u16,
    share: Share,
    tenant: TenantIndex,
    /// The tenant's count of changes.
    changes: u64,
    questions: &'a [u8],
}

/// An answer is larger than what Weir keeps.
struct TooLarge;

impl Collections {
    /// Whether nobody has asked for statistics since the switch connected.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The collection with kept answers to the same question that are not older than `max_age`.
    fn cached(&self, asked: &Asked<'_>, max_age: u64, now: Instant) -> Option<usize> {
        let is_young = |state| matches!(state, State::Done(at) if (now - at).0 <= max_age);
        self.all.iter().position(|c| c.is_same(asked) && is_young(c.state))
    }

    /// The collection for which the switch is being asked the same.
    fn in_flight(&mut self, asked: &Asked<'_>) -> Option<&mut Collection> {
        self.all.iter_mut().find(|c| {
            c.state == State::Asked
                && c.is_same(asked)
                && (asked.share != Share::Tenant || c.changes == asked.changes)
                && (c.in_flight || c.tenant == asked.tenant)
        })
    }

    /// Uses a collection: a free one, else a finished one that nobody would take from the cache any more.
    fn begin(&mut self, asked: &Asked<'_>, oldest_useful: Option<u64>, now: Instant) -> usize {
        let usable = self.all.iter().position(|c| match c.state {
            State::Free => true,
            State::Asked | State::Answering(_) => false,
            State::Done(at) => oldest_useful.is_none_or(|age| (now - at).0 > age),
        });
        let at = usable.unwrap_or_else(|| {
            self.all.push(Collection {
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
            self.all.len() - 1
        });
        let collection = &mut self.all[at];
        collection.id = self.next;
        self.next = self.next.wrapping_add(1);
        collection.state = State::Asked;
        collection.share = asked.share;
        collection.tenant = asked.tenant;
        collection.changes = asked.changes;
        collection.type_ = asked.type_;
        collection.in_flight = false;
        collection.questions.clear();
        collection.questions.extend_from_slice(asked.questions);
        collection.answers.clear();
        collection.unanswered = count_messages(asked.questions);
        collection.due = None;
        at
    }

    fn asked(&self, id: u32) -> Option<&Collection> {
        self.all.iter().find(|c| c.id == id && c.state == State::Asked)
    }

    fn asked_mut(&mut self, id: u32) -> Option<&mut Collection> {
        self.all.iter_mut().find(|c| c.id == id && c.state == State::Asked)
    }

    /// Keeps a part of an answer. Says whether it was the last part.
    fn add_part(&mut self, id: u32, entries: &[u8], more: bool) -> Result<bool, TooLarge> {
        let all: usize = self.all.iter().map(|it| it.answers.len()).sum();
        let Some(collection) = self.asked_mut(id) else { return Ok(false) };
        if collection.answers.len() + entries.len() > LIMIT || all + entries.len() > LIMIT_OF_ALL {
            return Err(TooLarge);
        }
        collection.answers.extend_from_slice(entries);
        if !more {
            collection.unanswered = collection.unanswered.saturating_sub(1);
        }
        Ok(!more)
    }

    /// The switch will not answer. Gives those who wait for the answer.
    fn fail(&mut self, id: u32) -> Vec<Waiter> {
        let Some(collection) = self.asked_mut(id) else { return Vec::new() };
        collection.state = State::Free;
        collection.answers = Vec::new();
        core::mem::take(&mut collection.waiters)
    }
}

impl Collection {
    /// Whether the switch has answered all questions, and nobody has been told.
    fn is_complete(&self) -> bool {
        self.state == State::Asked && self.unanswered == 0
    }

    fn is_same(&self, asked: &Asked<'_>) -> bool {
        self.share == asked.share
            && (asked.share == Share::Anybody || self.tenant == asked.tenant)
            && self.questions == asked.questions
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
