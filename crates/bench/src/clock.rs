//! The clock of a session. The clock counts nanoseconds since the session was opened, and all threads of the session
//! use the same clock.

use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    #[inline]
    pub(crate) fn now(self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }

    /// Sleeps until the time `at`, or returns at once if this time is past.
    pub(crate) fn sleep_until(self, at: u64) {
        let now = self.now();
        if at > now {
            std::thread::sleep(Duration::from_nanos(at - now));
        }
    }
}
