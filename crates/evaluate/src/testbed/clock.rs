//! One clock for everything: ns since the testbed was opened. The kernel's packet timestamps
//! (CLOCK_REALTIME) are converted to this clock.

use std::time::Instant;

use packet::Timestamp;

/// The testbed's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Instant,
    /// The kernel's time of day minus this clock, ns.
    offset: u64,
}

impl Clock {
    /// Starts the clock at (almost) zero.
    pub(crate) fn start() -> Clock {
        let origin = Instant::now();
        let pair = || {
            let before = origin.elapsed().as_nanos() as u64;
            let day = Timestamp::now().0;
            let after = origin.elapsed().as_nanos() as u64;
            (after - before, day.saturating_sub(u64::midpoint(before, after)))
        };
        // The pair with the shortest reading time is the most exact.
        let offset = (0..16).map(|_| pair()).min().map_or(0, |(_, offset)| offset);
        Clock { origin, offset }
    }

    pub(crate) fn now(self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }

    /// The time of day minus this clock, ns.
    pub(crate) fn day_ahead(self) -> u64 {
        self.offset
    }

    /// Converts a time of day to this clock.
    pub(crate) fn of(self, time: Timestamp) -> u64 {
        time.0.saturating_sub(self.offset)
    }

    /// Converts a time of this clock to the time of day.
    pub(crate) fn day(self, at: u64) -> Timestamp {
        Timestamp(at.saturating_add(self.offset))
    }
}
