//! Rounds: when switches have had the time to follow a change.
//!
//! The embedding does not know the time. While a step waits for switches to follow,
//! [`Embedding::rejoin`](super::Embedding::rejoin) ends one *round* after another. A round is as long as the time that
//! switches get. A step that begins during a round waits for the end of the next round. So each step waits at least
//! that time and at most twice that time, and later steps cannot delay it.

/// The number of ended rounds, and whether a round is running.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    ended: u64,
    is_running: bool,
}

/// A round, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Round(u64);

impl Rounds {
    /// The round at whose end switches have followed a step that begins now.
    pub(super) fn next_whole(self) -> Round {
        Round(self.ended + 1 + u64::from(self.is_running))
    }

    /// Notes that a step waits: starts a round unless one is running.
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
