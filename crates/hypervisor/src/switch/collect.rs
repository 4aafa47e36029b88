//! Statistics: one question to the switch may answer requests of several tenants.
//!
//! A request becomes a [`Collection`]: the questions to the switch, the answers so far, and the controllers that wait
//! for these answers. An equal request joins the collection in flight. Joining never makes a tenant wait for another
//! tenant's turn: a question that still waits in a queue is joined only by requests of the same tenant. And no tenant
//! gets an answer that is older than its own changes of the table: flow statistics are joined only if no change came
//! between.

pub(super) mod collections;
pub(super) mod waiter;

use super::entry_statistics::BYTES_EXAMINED;
use super::{Request, Share, Switch, Waiter};
use crate::ids::TenantIndex;
use crate::north::Controller;
use crate::policy::Statistics;
use crate::refusals::Verdict;
use crate::south::pending::Awaits;
use crate::south::queue::{Class, Item};
use crate::time::Instant;
use alloc::vec::Vec;
use collections::{Asked, Collection, State, TooLarge};
use compile::Reason;
use openflow::v13::MultipartType;

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
        let work = match MultipartType(type_) {
            MultipartType::FLOW | MultipartType::AGGREGATE => {
                self.tenants[tenant].flows.len() as u64
            }
            _ => 1,
        };
        let waiter = Waiter { origin: request.origin(), request: request.body().to_vec(), work };
        let state = &mut self.tenants[tenant];
        let changes = state.flows.changes();
        let statistics = state.terms.statistics;

        let asked = Asked { type_, share, tenant, changes, questions };
        self.begin_waiting(&waiter);
        if let Statistics::Cached { max_age } = statistics
            && let Some(at) = self.statistics.cached(&asked, max_age, request.now)
        {
            self.statistics.all[at].answer_again(waiter);
            self.go_on_answering(at);
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
            // The request means nothing in the tenant's space: the answer is an empty list.
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
            // The item has no origin, since the waiter already counts the answer that the tenant waits for.
            let item = Item::new(Awaits::Collection(id), cost, request.now);
            self.submit(tenant, Item { class: Class::Statistics, ..item }, message);
            rest = tail;
        }
    }

    /// A part of an answer has come; `entries` are the statistics in it.
    pub(crate) fn collection_part(&mut self, id: u32, entries: &[u8], more: bool, now: Instant) {
        let rules: usize = self.tenants.iter().map(|tenant| tenant.flows.entries()).sum();
        self.statistics.own_rules(rules);
        match self.statistics.add_part(id, entries, more) {
            Err(TooLarge) => {
                self.collection_failed(id, Reason::AnswerTooLarge.with(self.codes().too_much));
            }
            Ok(true) => self.finish_due(now),
            Ok(false) => {}
        }
    }

    /// The tenant whose request began a collection.
    pub(crate) fn asks(&self, id: u32) -> Option<TenantIndex> {
        self.statistics.asked(id).map(|collection| collection.tenant)
    }

    /// The switch has refused a question: all waiting controllers get its error.
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

    /// Sends the complete answers.
    pub(super) fn finish_due(&mut self, now: Instant) {
        for at in 0..self.statistics.all.len() {
            let Collection { due, tenant, .. } = self.statistics.all[at];
            let is_due = || due.is_none_or(|due| self.tenants[tenant].counts.is_due(due, now));
            if self.statistics.all[at].is_complete() && is_due() {
                self.finish_collection(at, now);
            }
        }
    }

    /// When Weir sends the next answer without the counters that other switches have not reported.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let waiting = self.statistics.all.iter().filter(|c| c.is_complete());
        waiting.filter_map(|c| self.patience(c.tenant, c.due?)).min()
    }

    fn finish_collection(&mut self, at: usize, now: Instant) {
        self.statistics.all[at].state = State::Answering(now);
        self.go_on_answering(at);
    }

    /// Answers waiting requests, as far as their tenants have credit. A long answer waits for the tenant's turn, and
    /// begins if no other answer of the tenant has begun. While a change of the tenant is applied in part, all answers
    /// wait: an answer shows only whole changes.
    fn go_on_answering(&mut self, at: usize) {
        let collection = &mut self.statistics.all[at];
        let (id, type_) = (collection.id, collection.type_);
        let waiters = core::mem::take(&mut collection.waiters);
        let answers = core::mem::take(&mut collection.answers);
        let mut left = Vec::new();
        for waiter in waiters {
            let tenant = waiter.origin.tenant;
            // A change ends in the tenant's turn, and the tenant's answers follow in this turn, one after the other.
            let is_answering =
                || type_ == MultipartType::FLOW.0 && self.statistics.is_answering(tenant);
            if self.is_between(tenant) || is_answering() {
                left.push(waiter);
                continue;
            }
            let may = self.inbox.turns().may(tenant.0);
            let is_long = may && self.is_long_answer(type_, &waiter, answers.len());
            if !may || is_long && !self.inbox.turns().is_on_turn(tenant.0) {
                self.inbox.turns_mut().wait(tenant.0);
                left.push(waiter);
                continue;
            }
            match self.begin_entry_answer(id, type_, waiter) {
                Ok(it) if is_long => self.statistics.set_answer(tenant, it),
                Ok(mut it) => {
                    while !self.answer_batch(&mut it, &answers) {}
                    self.end_waiting(it.waiter());
                }
                Err(waiter) => {
                    let cost = answers.len() as u64 / BYTES_EXAMINED;
                    self.tenants[tenant].flows.meter().add(cost);
                    self.write_statistics(type_, &waiter, &answers);
                    self.end_waiting(&waiter);
                }
            }
            self.charge_work(tenant);
        }
        let collection = &mut self.statistics.all[at];
        (collection.waiters, collection.answers) = (left, answers);
        self.end_answering(at);
    }

    /// If no request waits any more, the answers are kept only for tenants that take cached answers.
    fn end_answering(&mut self, at: usize) {
        let is_kept = self.oldest_useful().is_some();
        self.statistics.end_answering(at, is_kept);
    }

    /// Answers requests of the tenant whose turn it is; of a long answer one batch.
    pub(super) fn answer_in_turn(&mut self, tenant: TenantIndex) {
        for at in self.statistics.awaited_by(tenant) {
            self.go_on_answering(at);
        }
        let Some(mut it) = self.statistics.take_answer(tenant) else { return };
        let Some(at) = self.statistics.position(it.collection()) else { return };
        let answers = core::mem::take(&mut self.statistics.all[at].answers);
        let asker = self.controllers.get(it.waiter().origin.controller);
        let is_over =
            asker.is_none_or(Controller::is_closing) || self.answer_batch(&mut it, &answers);
        self.statistics.all[at].answers = answers;
        match is_over {
            true => self.end_waiting(it.waiter()),
            false => self.statistics.set_answer(tenant, it),
        }
        self.end_answering(at);
        self.charge_work(tenant);
    }

    /// A tenant that waits for answers gets its next turn.
    pub(super) fn await_answers(&mut self, tenant: TenantIndex) {
        let waits = || !self.is_between(tenant) && !self.statistics.awaited_by(tenant).is_empty();
        if self.statistics.is_answering(tenant) || waits() {
            self.inbox.turns_mut().wait(tenant.0);
        }
    }

    fn begin_waiting(&mut self, waiter: &Waiter) {
        self.tenants[waiter.origin.tenant].backlog.await_statistics(waiter.work);
        if let Some(controller) = self.controllers.get_mut(waiter.origin.controller) {
            controller.statistics += 1;
        }
    }

    /// The waiting request is answered: later requests may continue.
    fn end_waiting(&mut self, waiter: &Waiter) {
        let origin = &waiter.origin;
        if let Some(controller) = self.controllers.get_mut(origin.controller) {
            controller.statistics = controller.statistics.saturating_sub(1);
        }
        let state = &mut self.tenants[origin.tenant];
        state.backlog.statistics_over(waiter.work);
        self.answered(origin.tenant);
    }

    /// The greatest age of an answer that any tenant takes.
    fn oldest_useful(&self) -> Option<u64> {
        let ages = self.tenants.iter().filter_map(|tenant| match tenant.terms.statistics {
            Statistics::Cached { max_age } => Some(max_age),
            Statistics::Passthrough => None,
        });
        ages.max()
    }
}
