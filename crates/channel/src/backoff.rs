//! How long to wait before dialling again.

use fastrand::Rng;
use std::time::Duration;

/// Exponential back-off with jitter: the n-th delay is drawn evenly from the upper half of
/// `min · 2ⁿ`, capped at `max`. Pure: the same seed gives the same delays.
///
/// The jitter keeps a thousand tenants from calling at the same instant after a restart.
#[derive(Debug, Clone)]
pub struct Backoff {
    min: Duration,
    max: Duration,
    ceiling: Duration,
    random: Rng,
}

impl Backoff {
    /// Delays between `min / 2` and `max`. A `max` below `min` counts as `min`.
    pub fn new(min: Duration, max: Duration, seed: u64) -> Self {
        Backoff { min, max: max.max(min), ceiling: min, random: Rng::with_seed(seed) }
    }

    /// The delay after one more failure.
    pub fn next_delay(&mut self) -> Duration {
        let ceiling = self.ceiling;
        self.ceiling = ceiling.saturating_mul(2).min(self.max);
        let half = ceiling / 2;
        half + (ceiling - half).mul_f64(self.random.f64())
    }

    /// Starts again at `min`.
    pub fn reset(&mut self) {
        self.ceiling = self.min;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN: Duration = Duration::from_millis(100);
    const MAX: Duration = Duration::from_secs(8);

    #[test]
    fn delay_doubles_up_to_the_maximum_until_a_reset() {
        for seed in 0..200 {
            let mut backoff = Backoff::new(MIN, MAX, seed);
            for ceiling in [100, 200, 400, 800, 1600, 3200, 6400, 8000, 8000, 8000] {
                let ceiling = Duration::from_millis(ceiling);
                let delay = backoff.next_delay();
                assert!(ceiling / 2 <= delay && delay <= ceiling, "{delay:?} of {ceiling:?}");
            }
            backoff.reset();
            assert!(backoff.next_delay() <= MIN);
        }
    }

    #[test]
    fn equal_seeds_give_equal_delays_and_different_seeds_different_delays() {
        let first = |seed| Backoff::new(MIN, MAX, seed).next_delay();
        assert_eq!(first(7), first(7));
        let mut delays: Vec<_> = (0..100).map(first).collect();
        delays.sort();
        delays.dedup();
        assert_eq!(delays.len(), 100);
        assert!(delays[99] - delays[0] > MIN / 3, "the jitter covers the upper half");
    }

    #[test]
    fn extreme_durations_do_not_overflow() {
        let mut backoff = Backoff::new(Duration::MAX, Duration::ZERO, 1);
        assert!(backoff.next_delay() >= Duration::MAX / 2);
        assert!(backoff.next_delay() >= Duration::MAX / 2);
        let mut never = Backoff::new(Duration::ZERO, Duration::ZERO, 1);
        assert_eq!(never.next_delay(), Duration::ZERO);
    }
}
