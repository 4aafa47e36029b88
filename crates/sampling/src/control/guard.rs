//! Whether a server's headroom has vanished.

use std::time::Duration;

/// Watches how busy a server is, poll by poll.
#[derive(Clone, Copy, Debug)]
pub struct Guard {
    limit: f64,
    patience: Duration,
    since: Option<Duration>,
}

impl Guard {
    /// Headroom has vanished when the server is busier than `limit` (a share of its CPU, 0 to 1) for as long as
    /// `patience`.
    #[must_use]
    pub fn new(limit: f64, patience: Duration) -> Guard {
        Guard { limit, patience, since: None }
    }

    /// How busy the server was from `since` to `now`. Returns whether the server must stop sampling; the guard then
    /// starts again.
    pub fn handle_busy(&mut self, since: Duration, now: Duration, busy: f64) -> bool {
        // NaN counts as busy: NaN is no reason to go on sampling.
        if busy <= self.limit {
            self.since = None;
            return false;
        }
        let from = *self.since.get_or_insert(since);
        let is_time = now.saturating_sub(from) >= self.patience;
        if is_time {
            self.since = None;
        }
        is_time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampling_stops_after_a_long_overload_but_not_after_a_short_peak() {
        let cases: [(&[f64], Option<usize>); 5] = [
            (&[0.5, 0.99, 0.99, 0.5, 0.99, 0.99, 0.4], None),
            (&[0.5, 0.99, 0.99, 0.99, 0.99], Some(3)),
            (&[1.2, 1.2, 1.2], Some(2)),
            (&[0.95, 0.95, 0.95, 0.95], None),
            (&[f64::NAN, f64::NAN, f64::NAN], Some(2)),
        ];
        for (course, expected) in cases {
            let mut guard = Guard::new(0.95, Duration::from_millis(300));
            let poll = |(index, busy): (usize, &f64)| {
                let from = Duration::from_millis(100) * index as u32;
                guard.handle_busy(from, from + Duration::from_millis(100), *busy)
            };
            let cut = course.iter().enumerate().map(poll).position(|is_time| is_time);
            assert_eq!(cut, expected, "{course:?}");
        }
    }
}
