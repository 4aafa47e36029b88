//! How much of a tenant's requests is taken and not finished, and whether more of them are read.

use crate::account::{Account, Held};
use crate::policy::Rate;
use crate::time::Instant;
use alloc::sync::Arc;

/// See the module.
#[derive(Default)]
pub(crate) struct Backlog {
    /// Requests that were accepted and have not been answered.
    unanswered: usize,
    /// Work done for its requests that are on their way, in examined entries.
    ahead: u64,
    /// Bytes held for its requests that are not finished, but for what waits for the switch.
    held: Held,
    /// Until when none of its requests is read, since it has changed more than its rate allows.
    rests: Option<Instant>,
    /// Whether a controller was told to stop reading.
    is_paused: bool,
    /// Whether anything for which requests wait has come to its end since those were last looked at.
    is_decided: bool,
}

impl Backlog {
    // ---- What is taken and not finished

    /// An answer is awaited.
    #[inline]
    pub(crate) fn await_answer(&mut self) {
        self.unanswered += 1;
    }

    /// The answer has come, or will not.
    #[inline]
    pub(crate) fn answered(&mut self) {
        self.unanswered = self.unanswered.saturating_sub(1);
    }

    /// Statistics are awaited that will cost so much.
    pub(crate) fn await_statistics(&mut self, work: u64) {
        self.unanswered += 1;
        self.ahead += work;
    }

    /// They have come, or will not. [`answered`](Self::answered) comes with that.
    pub(crate) fn statistics_over(&mut self, work: u64) {
        self.ahead = self.ahead.saturating_sub(work);
        self.is_decided = true;
    }

    /// A change is on its way that has cost so much and holds so many bytes.
    pub(crate) fn begin_change(&mut self, work: u64, bytes: usize) {
        self.ahead += work;
        self.held.add(bytes);
    }

    /// It is not any more.
    pub(crate) fn end_change(&mut self, work: u64, bytes: usize) {
        self.ahead = self.ahead.saturating_sub(work);
        self.held.remove(bytes);
        self.is_decided = true;
    }

    /// A request of so many bytes waits.
    pub(crate) fn put_off(&mut self, bytes: usize) {
        self.held.add(bytes);
    }

    /// It does not any more.
    pub(crate) fn take_up(&mut self, bytes: usize) {
        self.held.remove(bytes);
    }

    /// Requests that were accepted and have not been answered.
    #[inline]
    pub(crate) fn unanswered(&self) -> usize {
        self.unanswered
    }

    /// Work done for its requests that are on their way, in examined entries.
    #[inline]
    pub(crate) fn ahead(&self) -> u64 {
        self.ahead
    }

    /// Bytes held for its requests that are not finished, but for what waits for the switch.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.held.bytes()
    }

    /// Whether the tenant may go on, of which so much may be held on all switches.
    #[inline]
    pub(crate) fn leaves_room(&self, in_all: usize) -> bool {
        self.held.leaves_room(in_all)
    }

    // ---- What is counted on all switches

    /// What waits for its controllers, and its part of the store, also on other switches.
    pub(crate) fn account(&self) -> &Arc<Account> {
        self.held.account()
    }

    /// From now on it is counted there.
    pub(crate) fn share_account(&mut self, account: Arc<Account>) {
        self.held.share(account);
    }

    // ---- Whether more is read

    /// So many changes go to the store. If that is more than its rate allows, it rests: until when?
    pub(crate) fn charge_changes(
        &mut self,
        changes: u64,
        rate: Rate,
        now: Instant,
    ) -> Option<Instant> {
        let until = self.account().charge_changes(changes, rate, now)?;
        self.rests = Some(until);
        self.rests
    }

    /// Until when it rests.
    #[inline]
    pub(crate) fn rests(&self) -> Option<Instant> {
        self.rests
    }

    /// It rests no more.
    pub(crate) fn end_rest(&mut self) {
        self.rests = None;
    }

    /// A controller is told to stop reading.
    #[inline]
    pub(crate) fn pause(&mut self) {
        self.is_paused = true;
    }

    /// Whether a controller was told to stop reading, and may be told to go on as far as the rate of changes is concerned.
    #[inline]
    pub(crate) fn may_resume(&self) -> bool {
        self.is_paused && self.rests.is_none()
    }

    /// The controllers are told to go on.
    pub(crate) fn resume(&mut self) {
        self.is_paused = false;
    }

    // ---- Whether waiting requests are looked at

    /// Whether to look at requests that wait.
    #[inline]
    pub(crate) fn is_decided(&self) -> bool {
        self.is_decided
    }

    /// Something for which requests may wait has come to its end.
    pub(crate) fn note_decided(&mut self) {
        self.is_decided = true;
    }

    /// Requests that wait are looked at now.
    pub(crate) fn begin_look(&mut self) {
        self.is_decided = false;
    }
}
