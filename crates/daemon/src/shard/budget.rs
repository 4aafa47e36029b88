//! The part of the event loops' time that questions (traces, flow tables, refusals) may take. A trace through thousands
//! of entries takes milliseconds, and the event loop forwards no messages meanwhile.
//!
//! Each question is charged with the processor time of its answer, not with elapsed time: on a busy machine a thread
//! sometimes stands still. The asking thread waits until earlier questions are paid for; the event loop never waits.

use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// Questions may take one `PART`th of the time.
const PART: u32 = 20;
/// The time that questions may take at once.
pub(super) const AT_ONCE: Duration = Duration::from_millis(50);

/// The time that questions have used and not yet paid for.
#[derive(Debug)]
pub(super) struct Budget {
    owed: Duration,
    at: Instant,
}

impl Budget {
    /// The budget before the first question.
    pub(super) fn new(now: Instant) -> Budget {
        Budget { owed: Duration::ZERO, at: now }
    }

    /// How long the next question has to wait.
    pub(super) fn wait(&mut self, now: Instant) -> Duration {
        self.owed = self.owed.saturating_sub(now.saturating_duration_since(self.at) / PART);
        self.at = now;
        self.owed.saturating_sub(AT_ONCE) * PART
    }

    /// Charges the time of a question.
    pub(super) fn charge(&mut self, took: Duration) {
        self.owed += took;
    }
}

/// The processor time of this thread.
pub(super) fn thread_time() -> Duration {
    let taken = clock_gettime(ClockId::ThreadCPUTime);
    let (seconds, nanoseconds) = (u64::try_from(taken.tv_sec), u32::try_from(taken.tv_nsec));
    Duration::new(seconds.unwrap_or(0), nanoseconds.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_use_at_most_a_twentieth_of_the_time_and_a_burst() {
        let start = Instant::now();
        let (mut budget, mut now) = (Budget::new(start), start);
        // Each query is a trace through 9,000 entries, and takes 2.3 ms. The next query begins as soon as the budget
        // allows a query.
        let (each, mut spent) = (Duration::from_micros(2_300), Duration::ZERO);
        while now < start + Duration::from_secs(10) {
            let wait = budget.wait(now);
            if wait.is_zero() {
                budget.charge(each);
                spent += each;
                now += each;
            } else {
                now += wait;
            }
        }
        let at_once = Duration::from_millis(50);
        let most = Duration::from_secs(10) / 20 + at_once + each;
        assert!(spent <= most && spent + 2 * each > most - at_once, "{spent:?}");
    }

    #[test]
    fn after_a_long_query_the_next_query_must_wait() {
        let start = Instant::now();
        let (mut budget, at_once) = (Budget::new(start), Duration::from_millis(50));
        budget.charge(at_once);
        assert_eq!(budget.wait(start), Duration::ZERO);
        budget.charge(at_once);
        assert_eq!(budget.wait(start), at_once * 20);
        assert_eq!(budget.wait(start + at_once * 20), Duration::ZERO);
        assert_eq!(budget.wait(start + Duration::from_secs(3600)), Duration::ZERO);
    }
}
