//! The session's clock: nanoseconds since the session was opened, the same for all its threads.

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

    /// Sleeps until `at`; returns at once if `at` is past.
    pub(crate) fn sleep_until(self, at: u64) {
        let now = self.now();
        if at > now {
            std::thread::sleep(Duration::from_nanos(at - now));
        }
    }
}
