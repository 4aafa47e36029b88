//! When switches have had the time to follow.
//!
//! The embedding does not know the time. From when something begins for which switches have to follow, and as long as anything waits for
//! that, [`Embedding::rejoin`](super::Embedding::rejoin) ends one *round* after another, each of which is as long as switches are given. What
//! begins while a round runs waits for the end of the next one. So it has its time whatever else waits, at most twice as long, and whatever
//! begins after it cannot keep it waiting.

/// How many have ended, and whether one runs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    ended: u64,
    is_running: bool,
}

/// One of them, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Round(u64);

impl Rounds {
    /// The one at whose end switches have followed what begins now.
    pub(super) fn next_whole(self) -> Round {
        Round(self.ended + 1 + u64::from(self.is_running))
    }

    /// Something waits: one runs from now on, if none does already.
    pub(super) fn run(&mut self) {
        self.is_running = true;
    }

    pub(super) fn end(&mut self) {
        self.ended += 1;
        self.is_running = false;
    }

    pub(super) fn has_ended(self, round: Round) -> bool {
        round.0 <= self.ended
    }
}
