//! A tenant's accepted requests that are not done, and whether Weir reads further requests.

use crate::account::Held;
use crate::time::Instant;

/// See the module.
#[derive(Default)]
pub(crate) struct Backlog {
    /// Requests that were accepted and have not been answered.
    unanswered: usize,
    /// Work done for requests in flight, in examined entries.
    ahead: u64,
    /// Bytes held for requests that are not finished. Messages that wait for the switch are not counted here.
    held: Held,
    /// Until this time Weir reads no request, since the tenant has changed more, or caused more refusals, than a rate
    /// allows.
    rests: Option<Instant>,
    /// Whether Weir has stopped to read from a controller.
    is_paused: bool,
    /// Whether something has ended that requests may wait for, since Weir last looked at waiting requests.
    is_decided: bool,
}

impl Backlog {
    // ---- Accepted requests that are not done

    /// The tenant awaits an answer.
    #[inline]
    pub(crate) fn await_answer(&mut self) {
        self.unanswered += 1;
    }

    /// The tenant awaits an answer no longer.
    #[inline]
    pub(crate) fn answered(&mut self) {
        self.unanswered = self.unanswered.saturating_sub(1);
    }

    /// The tenant awaits statistics; to report them will cost `work`.
    pub(crate) fn await_statistics(&mut self, work: u64) {
        self.unanswered += 1;
        self.ahead += work;
    }

    /// The tenant awaits these statistics no longer. The caller calls [`answered`](Self::answered) as well.
    pub(crate) fn statistics_over(&mut self, work: u64) {
        self.ahead = self.ahead.saturating_sub(work);
        self.is_decided = true;
    }

    /// A change in flight has cost more `work`, and holds `bytes` now. It held `before`.
    pub(crate) fn grow_change(&mut self, work: u64, before: usize, bytes: usize) {
        self.ahead += work;
        self.held.remove(before);
        self.held.add(bytes);
    }

    /// A change is in flight no longer.
    pub(crate) fn end_change(&mut self, work: u64, bytes: usize) {
        self.ahead = self.ahead.saturating_sub(work);
        self.held.remove(bytes);
        self.is_decided = true;
    }

    /// Requests that were accepted and have not been answered.
    #[inline]
    pub(crate) fn unanswered(&self) -> usize {
        self.unanswered
    }

    /// Work done for requests in flight, in examined entries.
    #[inline]
    pub(crate) fn ahead(&self) -> u64 {
        self.ahead
    }

    /// Bytes held for requests that are not finished. Messages that wait for the switch are not counted here.
    #[inline]
    pub(crate) fn held(&self) -> &Held {
        &self.held
    }

    /// See [`held`](Self::held).
    pub(crate) fn held_mut(&mut self) -> &mut Held {
        &mut self.held
    }

    // ---- Whether Weir reads further requests

    /// Until this time Weir reads no request.
    pub(crate) fn rest(&mut self, until: Instant) {
        self.rests = self.rests.max(Some(until));
    }

    /// Until when the tenant rests.
    #[inline]
    pub(crate) fn rests(&self) -> Option<Instant> {
        self.rests
    }

    /// The tenant rests no longer.
    pub(crate) fn end_rest(&mut self) {
        self.rests = None;
    }

    /// Weir stops to read from a controller.
    #[inline]
    pub(crate) fn pause(&mut self) {
        self.is_paused = true;
    }

    /// Whether Weir has stopped to read from a controller, and the tenant does not rest.
    #[inline]
    pub(crate) fn may_resume(&self) -> bool {
        self.is_paused && self.rests.is_none()
    }

    /// Weir reads from all controllers of the tenant again.
    pub(crate) fn resume(&mut self) {
        self.is_paused = false;
    }

    // ---- Whether Weir looks at waiting requests

    /// Whether Weir has to look at waiting requests.
    #[inline]
    pub(crate) fn is_decided(&self) -> bool {
        self.is_decided
    }

    /// Something has ended for which requests may wait.
    pub(crate) fn note_decided(&mut self) {
        self.is_decided = true;
    }

    /// Weir looks at waiting requests now.
    pub(crate) fn begin_look(&mut self) {
        self.is_decided = false;
    }
}
