//! The time that switches get to follow a change.

use std::time::{Duration, Instant};

/// The time that switches get, before moving links start their next step.
const FOLLOWING: Duration = Duration::from_secs(1);

/// Rounds of this time, one after another, as long as a step waits. A step that begins during a round does not delay
/// the round: the embedding knows which steps have had a whole round.
#[derive(Default)]
pub(super) struct Rounds {
    since: Option<Instant>,
}

impl Rounds {
    /// Notes that a step waits: starts a round unless one is running.
    pub(super) fn run(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// Whether a round has ended; each end is reported once.
    pub(super) fn end(&mut self, now: Instant) -> bool {
        let is_over = |since: &mut Instant| now.duration_since(*since) > FOLLOWING;
        self.since.take_if(is_over).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_end_even_if_steps_begin_during_each_round() {
        let (start, mut rounds) = (Instant::now(), Rounds::default());
        let mut ends = Vec::new();
        for tenths in 0..35 {
            let now = start + Duration::from_millis(100) * tenths;
            if rounds.end(now) {
                ends.push(tenths);
            }
            rounds.run(now);
        }
        assert_eq!(ends, [11, 22, 33]);
        let now = start + Duration::from_secs(10);
        assert!(rounds.end(now) && !rounds.end(now), "nothing waits");
    }
}
