//! Estimates the duration of a measurement before its start, and the remaining time during the
//! measurement.

use std::time::{Duration, Instant};

/// The pace of a measurement with a known number of steps of about the same duration.
#[derive(Clone, Debug)]
pub struct Pace {
    steps: usize,
    begun: usize,
    /// The estimated duration of a step, used until the first step is finished.
    guess: Duration,
    start: Instant,
}

impl Pace {
    /// Makes the pace of a measurement of `steps` steps of about `guess` each. The first step
    /// begins now.
    #[must_use]
    pub fn new(steps: usize, guess: Duration) -> Pace {
        Pace { steps, begun: 0, guess, start: Instant::now() }
    }

    /// The estimated duration of the whole measurement, such as `about 6 h 50 min`.
    #[must_use]
    pub fn whole(&self) -> String {
        readable(self.guess.saturating_mul(u32::try_from(self.steps).unwrap_or(u32::MAX)))
    }

    /// Begins the next step. Returns the number of the step and the remaining time, such as `3 of 40, about 12 min
    /// left`.
    pub fn step(&mut self) -> String {
        let left = left(self.steps, self.begun, self.start.elapsed(), self.guess);
        self.begun += 1;
        format!("{} of {}, {} left", self.begun, self.steps, readable(left))
    }
}

/// The remaining time, if the remaining steps take as long as the finished steps.
fn left(steps: usize, made: usize, elapsed: Duration, guess: Duration) -> Duration {
    let each = if made == 0 { guess.as_secs_f64() } else { elapsed.as_secs_f64() / made as f64 };
    Duration::try_from_secs_f64(each * steps.saturating_sub(made) as f64).unwrap_or(Duration::MAX)
}

/// The remaining time after some steps, as text behind the name of the next step: `, about 12 min left`. The text is
/// empty before the first step is finished.
#[must_use]
pub fn left_after(made: usize, steps: usize, elapsed: Duration) -> String {
    if made == 0 {
        return String::new();
    }
    format!(", {} left", readable(left(steps, made, elapsed, Duration::ZERO)))
}

/// Writes a time for people, with about two digits.
#[must_use]
pub fn readable(time: Duration) -> String {
    let seconds = time.as_secs_f64().round() as u64;
    let minutes = (time.as_secs_f64() / 60.0).round() as u64;
    match (minutes / 60, minutes % 60) {
        _ if seconds < 100 => format!("about {seconds} s"),
        (0, minutes) => format!("about {minutes} min"),
        (hours, 0) => format!("about {hours} h"),
        (hours, minutes) => format!("about {hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_shown_as_rounded_text() {
        for (seconds, expected) in [
            (0.4, "about 0 s"),
            (99.0, "about 99 s"),
            (100.0, "about 2 min"),
            (3_599.0, "about 1 h"),
            (24_600.0, "about 6 h 50 min"),
            (1e9, "about 277777 h 47 min"),
        ] {
            assert_eq!(readable(Duration::from_secs_f64(seconds)), expected);
        }
    }

    #[test]
    fn the_remaining_time_is_computed_from_the_finished_steps() {
        let s = Duration::from_secs;
        for (steps, made, elapsed, expected) in
            [(10, 0, 0, 300), (10, 5, 50, 50), (10, 9, 90, 10), (10, 10, 100, 0), (3, 5, 1, 0)]
        {
            assert_eq!(left(steps, made, s(elapsed), s(30)), s(expected));
        }
        assert_eq!(left(usize::MAX, 1, Duration::MAX, s(1)), Duration::MAX);
        assert_eq!(left_after(0, 4, s(9)), "");
        assert_eq!(left_after(1, 4, s(9)), ", about 27 s left");
        let mut pace = Pace::new(40, s(30));
        assert_eq!(pace.whole(), "about 20 min");
        assert_eq!(pace.step(), "1 of 40, about 20 min left");
        assert!(pace.step().starts_with("2 of 40, "));
    }
}
