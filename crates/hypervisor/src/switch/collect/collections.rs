//! Questions to the switch, their answers, and the requests that wait for them.

use super::waiter::Waiter;
use crate::ids::TenantIndex;
use crate::north::types;
use crate::pool::Taken;
use crate::switch::counts::port_counts::Due;
use crate::switch::entry_statistics::entry_answer::EntryAnswer;
use crate::time::Instant;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Capacity that a collection may keep.
const KEEP: usize = 64 << 10;

/// Bytes of answers that are kept for one collection.
const LIMIT: usize = 16 << 20;

/// Bytes of answers that are kept for all collections.
const LIMIT_OF_ALL: usize = 64 << 20;

/// Bytes of answers for each rule of the tenants that an unlisted switch may send without taking shared memory.
const OF_RULE: usize = 512;

/// The tenants that may share the answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    /// All tenants: the answer is about the switch.
    Anybody,
    /// Only this tenant, and only while its tables have not changed since the question.
    Tenant,
    /// Only this tenant: the counters of its ports, for which Weir may have to wait for other switches.
    Ports,
}

/// See the module.
pub(crate) struct Collection {
    /// The id changes with each use, so that a late answer finds nothing.
    pub(super) id: u32,
    pub(super) state: State,
    share: Share,
    pub(super) tenant: TenantIndex,
    /// The tenant's count of changes when the switch was asked.
    changes: u64,
    pub(super) type_: u16,
    /// The questions to the switch, without xids: these identify the collection.
    questions: Vec<u8>,
    pub(super) unanswered: usize,
    /// Counters of other switches that the answer waits for.
    pub(super) due: Option<Due>,
    pub(super) in_flight: bool,
    pub(super) waiters: Vec<Waiter>,
    pub(super) answers: Vec<u8>,
}

/// The collections of a switch.
#[derive(Default)]
pub(crate) struct Collections {
    pub(super) all: Vec<Collection>,
    /// Long answers that Weir puts together.
    answers: BTreeMap<TenantIndex, EntryAnswer>,
    /// The id of the next use.
    next: u32,
    /// The memory for answers, if other switches share it, and the bytes of the switch's own memory.
    taken: Taken,
    own: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Free,
    Asked,
    /// Complete since then; a waiting request is answered in its tenant's turn.
    Answering(Instant),
    /// Kept since then, for tenants that take cached answers.
    Done(Instant),
}

/// A tenant's request for statistics.
pub(super) struct Asked<'a> {
    pub(super) type_: u16,
    pub(super) share: Share,
    pub(super) tenant: TenantIndex,
    /// The tenant's count of changes.
    pub(super) changes: u64,
    pub(super) questions: &'a [u8],
}

/// An answer that is larger than Weir keeps.
pub(super) struct TooLarge;

impl Collections {
    /// The collection with kept answers to the same question that are not older than `max_age`.
    pub(super) fn cached(&self, asked: &Asked<'_>, max_age: u64, now: Instant) -> Option<usize> {
        let is_young = |state| matches!(state, State::Done(at) if now.nanos_since(at) <= max_age);
        self.all.iter().position(|c| c.is_same(asked) && is_young(c.state))
    }

    /// The collection in flight with the same questions.
    pub(super) fn in_flight(&mut self, asked: &Asked<'_>) -> Option<&mut Collection> {
        self.all.iter_mut().find(|c| {
            c.state == State::Asked
                && c.is_same(asked)
                && (asked.share != Share::Tenant || c.changes == asked.changes)
                && (c.in_flight || c.tenant == asked.tenant)
        })
    }

    /// Uses a collection: a free one, else a finished one with answers that no tenant would take from the cache.
    pub(super) fn begin(
        &mut self,
        asked: &Asked<'_>,
        oldest_useful: Option<u64>,
        now: Instant,
    ) -> usize {
        let usable = self.all.iter().position(|c| match c.state {
            State::Free => true,
            State::Asked | State::Answering(_) => false,
            State::Done(at) => oldest_useful.is_none_or(|age| now.nanos_since(at) > age),
        });
        let mut answers = Vec::new();
        if let Some(used) = usable.and_then(|at| self.all.get_mut(at)) {
            answers = core::mem::take(&mut used.answers);
            answers.clear();
        }
        let collection = Collection {
            id: self.next,
            state: State::Asked,
            share: asked.share,
            tenant: asked.tenant,
            changes: asked.changes,
            type_: asked.type_,
            questions: asked.questions.to_vec(),
            unanswered: types(asked.questions).count(),
            due: None,
            in_flight: false,
            waiters: Vec::new(),
            answers,
        };
        self.next = self.next.wrapping_add(1);
        match usable {
            Some(at) => self.all[at] = collection,
            None => self.all.push(collection),
        }
        usable.unwrap_or(self.all.len() - 1)
    }

    pub(super) fn asked(&self, id: u32) -> Option<&Collection> {
        self.all.iter().find(|c| c.id == id && c.state == State::Asked)
    }

    pub(super) fn asked_mut(&mut self, id: u32) -> Option<&mut Collection> {
        self.all.iter_mut().find(|c| c.id == id && c.state == State::Asked)
    }

    /// Keeps a part of an answer. Says whether it was the last part.
    pub(super) fn add_part(
        &mut self,
        id: u32,
        entries: &[u8],
        more: bool,
    ) -> Result<bool, TooLarge> {
        let all = self.bytes() + entries.len();
        let Collections { all: collections, taken, own, .. } = self;
        let is_it = |c: &&mut Collection| c.id == id && c.state == State::Asked;
        let Some(collection) = collections.iter_mut().find(is_it) else { return Ok(false) };
        if collection.answers.len() + entries.len() > LIMIT
            || all > LIMIT_OF_ALL
            || !taken.set(all.saturating_sub(*own))
        {
            return Err(TooLarge);
        }
        collection.answers.extend_from_slice(entries);
        if !more {
            collection.unanswered = collection.unanswered.saturating_sub(1);
        }
        Ok(!more)
    }

    /// The switch will not answer. Returns the waiting requests.
    pub(super) fn fail(&mut self, id: u32) -> Vec<Waiter> {
        let Some(collection) = self.asked_mut(id) else { return Vec::new() };
        collection.state = State::Free;
        collection.answers = Vec::new();
        let waiters = core::mem::take(&mut collection.waiters);
        self.give_back();
        waiters
    }

    // ---- Long answers

    /// Whether Weir puts a long answer to the tenant together.
    pub(crate) fn is_answering(&self, tenant: TenantIndex) -> bool {
        self.answers.contains_key(&tenant)
    }

    /// Begins or continues a long answer to the tenant.
    pub(super) fn set_answer(&mut self, tenant: TenantIndex, it: EntryAnswer) {
        self.answers.insert(tenant, it);
    }

    /// Takes the long answer to the tenant.
    pub(super) fn take_answer(&mut self, tenant: TenantIndex) -> Option<EntryAnswer> {
        self.answers.remove(&tenant)
    }

    /// The collection in use under this id.
    pub(super) fn position(&self, id: u32) -> Option<usize> {
        self.all.iter().position(|it| it.id == id)
    }

    /// The complete collections for which the tenant waits, by their age.
    pub(super) fn awaited_by(&self, tenant: TenantIndex) -> Vec<usize> {
        let waits = |it: &Waiter| it.origin.tenant == tenant;
        let is_awaited = |(_, it): &(usize, &Collection)| {
            matches!(it.state, State::Answering(_)) && it.waiters.iter().any(waits)
        };
        let mut awaited: Vec<_> = self.all.iter().enumerate().filter(is_awaited).collect();
        awaited.sort_unstable_by_key(|(_, it)| it.id);
        awaited.into_iter().map(|(at, _)| at).collect()
    }

    /// If no request waits for a complete collection any more, the collection is done, and its answers are kept or not.
    pub(super) fn end_answering(&mut self, at: usize, is_kept: bool) {
        let collection = &mut self.all[at];
        let State::Answering(since) = collection.state else { return };
        let is_read = self.answers.values().any(|it| it.collection() == collection.id);
        if !collection.waiters.is_empty() || is_read {
            return;
        }
        collection.state = State::Done(since);
        if !is_kept {
            collection.answers.clear();
            collection.answers.shrink_to(KEEP);
        }
        self.give_back();
    }

    /// From now on answers take memory that other switches share.
    pub(crate) fn share(&mut self, taken: Taken) {
        self.taken = taken;
    }

    /// The tenants have this many rules on the switch.
    pub(super) fn own_rules(&mut self, rules: usize) {
        self.own = rules * OF_RULE;
    }

    /// Bytes of answers.
    fn bytes(&self) -> usize {
        self.all.iter().map(|it| it.answers.len()).sum()
    }

    /// Some answers were dropped: returns shared memory.
    pub(super) fn give_back(&mut self) {
        self.taken.set(self.bytes().saturating_sub(self.own));
    }
}

impl Collection {
    /// Whether the switch has answered all questions, and Weir has not begun to answer the requests.
    pub(super) fn is_complete(&self) -> bool {
        self.state == State::Asked && self.unanswered == 0
    }

    /// Adds a request that gets the kept answers.
    pub(super) fn answer_again(&mut self, waiter: Waiter) {
        if let State::Done(since) = self.state {
            self.state = State::Answering(since);
        }
        self.waiters.push(waiter);
    }

    fn is_same(&self, asked: &Asked<'_>) -> bool {
        self.share == asked.share
            && (asked.share == Share::Anybody || self.tenant == asked.tenant)
            && self.questions == asked.questions
    }
}
