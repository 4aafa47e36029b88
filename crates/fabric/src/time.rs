//! Time as an argument: nanoseconds since an origin that the caller chooses. This crate never reads a clock.

use core::ops::{Add, Sub};
pub use core::time::Duration;

/// A point in time, in nanoseconds since the caller's origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(pub u64);

impl Instant {
    /// Nanoseconds since another time. Zero if the other time is later: a clock that was set back must not look like
    /// centuries.
    #[inline]
    pub const fn nanos_since(self, earlier: Instant) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    /// At most the highest instant.
    #[inline]
    fn add(self, rhs: Duration) -> Instant {
        Instant(self.0.saturating_add(nanos(rhs)))
    }
}

impl Sub for Instant {
    type Output = Duration;
    /// Zero if `rhs` is later: see [`Instant::nanos_since`].
    #[inline]
    fn sub(self, rhs: Instant) -> Duration {
        Duration::from_nanos(self.nanos_since(rhs))
    }
}

/// The nanoseconds of a duration, or the highest number: some 584 years.
#[inline]
pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The earlier of two times, each of which may be absent.
#[inline]
pub fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    a.into_iter().chain(b).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instant_sums_and_differences_saturate_at_the_limits() {
        let last = Instant(u64::MAX);
        assert_eq!(Instant(1) + Duration::MAX, last);
        assert_eq!(last + Duration::from_nanos(1), last);
        assert_eq!(Instant(1) - last, Duration::ZERO);
        assert_eq!(last - Instant(1), Duration::from_nanos(u64::MAX - 1));
    }
}
