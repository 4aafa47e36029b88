//! A rate, from a counter that is read from time to time.

use crate::time::{Duration, Instant};
use crate::units::Bandwidth;
use alloc::collections::VecDeque;

/// The most readings that a meter keeps.
const MOST_LOOKS: usize = 64;

/// The last few readings of a counter.
#[derive(Clone, Debug)]
pub struct Meter {
    window: Duration,
    looks: VecDeque<(Instant, u64)>,
}

impl Meter {
    /// A meter for rates over at least this time, if readings of that age exist.
    pub fn over(window: Duration) -> Meter {
        Meter { window, looks: VecDeque::new() }
    }

    /// Adds a reading of the counter.
    ///
    /// If the clock or the counter went back, the meter starts again, because earlier readings
    /// cannot be compared.
    pub fn look(&mut self, now: Instant, bytes: u64) {
        if self.looks.back().is_some_and(|&(last, before)| now < last || bytes < before) {
            self.looks.clear();
        }
        if let Some(last) = self.looks.back_mut().filter(|(last, _)| *last == now) {
            last.1 = bytes;
            return;
        }
        self.looks.push_back((now, bytes));
        // The oldest reading that is kept is the last one before the window.
        let window = self.window;
        let outside =
            |look: Option<&(Instant, u64)>| look.is_some_and(|&(at, _)| now - at >= window);
        while outside(self.looks.get(1)) || self.looks.len() > MOST_LOOKS {
            self.looks.pop_front();
        }
    }

    /// The rate over the window; 0 before the second reading.
    pub fn rate(&self) -> Bandwidth {
        self.between(self.looks.front())
    }

    /// The rate between the last two readings.
    pub fn latest(&self) -> Bandwidth {
        self.between(self.looks.len().checked_sub(2).and_then(|at| self.looks.get(at)))
    }

    /// The last value of the counter.
    pub fn bytes(&self) -> Option<u64> {
        self.looks.back().map(|(_, bytes)| *bytes)
    }

    fn between(&self, first: Option<&(Instant, u64)>) -> Bandwidth {
        let (Some(&(start, before)), Some(&(end, after))) = (first, self.looks.back()) else {
            return Bandwidth::ZERO;
        };
        let bits = u128::from(after - before) * 8 * 1_000_000_000;
        let rate = bits.checked_div(u128::from(end.nanos_since(start))).unwrap_or(0);
        Bandwidth::from_bits_per_second(u64::try_from(rate).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(looks: &[(u64, u64)], expected: u64) {
        let mut meter = Meter::over(Duration::from_millis(50));
        for &(ms, bytes) in looks {
            meter.look(Instant(0) + Duration::from_millis(ms), bytes);
        }
        assert_eq!(meter.rate().bits_per_second(), expected, "{looks:?}");
    }

    #[test]
    fn rates() {
        check(&[], 0);
        check(&[(0, 7)], 0);
        check(&[(0, 1_000), (10, 2_000)], 800_000);
        // Of two readings at the same time the second counts.
        check(&[(0, 0), (10, 500), (10, 1_000)], 800_000);
        // Readings from before the window do not count.
        check(&[(0, 0), (100, 1_000_000), (150, 1_000_000), (160, 1_000_000)], 0);
        // With rare readings the window is longer.
        check(&[(0, 0), (1_000, 1_000)], 8_000);
        // The interface was created again; the clock was set back.
        check(&[(0, 9_000), (10, 0), (20, 1_000)], 800_000);
        check(&[(5_000, 0), (10, 5_000), (20, 6_000)], 800_000);
        check(&[(0, 0), (1, u64::MAX)], u64::MAX);
    }

    #[test]
    fn the_meter_keeps_a_limited_number_of_readings() {
        let mut meter = Meter::over(Duration::from_millis(50));
        (0..10_000).for_each(|ns| meter.look(Instant(ns), ns));
        assert!(meter.looks.len() <= MOST_LOOKS);
        assert_eq!(meter.rate().bits_per_second(), 8_000_000_000);
    }
}
