//! One clock for everything: ns since the testbed was opened, to which the kernel's packet
//! timestamps (CLOCK_REALTIME) are converted.

use std::time::Instant;

use packet::Timestamp;

/// The testbed's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Instant,
    /// What the kernel's time of day is ahead, ns.
    offset: u64,
}

impl Clock {
    /// Starts at (almost) zero.
    pub(crate) fn start() -> Clock {
        let origin = Instant::now();
        let pair = || {
            let before = origin.elapsed().as_nanos() as u64;
            let day = Timestamp::now().0;
            let after = origin.elapsed().as_nanos() as u64;
            (after - before, day.saturating_sub(u64::midpoint(before, after)))
        };
        // The pair that was read in the least time is the best.
        let offset = (0..16).map(|_| pair()).min().map_or(0, |(_, offset)| offset);
        Clock { origin, offset }
    }

    pub(crate) fn now(self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }

    /// What the time of day is ahead of this clock, ns.
    pub(crate) fn day_ahead(self) -> u64 {
        self.offset
    }

    /// A time of day on this clock.
    pub(crate) fn of(self, time: Timestamp) -> u64 {
        time.0.saturating_sub(self.offset)
    }

    /// A time of this clock as time of day.
    pub(crate) fn day(self, at: u64) -> Timestamp {
        Timestamp(at.saturating_add(self.offset))
    }
}
