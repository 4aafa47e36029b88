//! The time that switches are given to follow.

use std::time::{Duration, Instant};

/// How long that is, before links that move take their next step.
const FOLLOWING: Duration = Duration::from_secs(1);

/// One round of that time after another, as long as anything waits. What begins meanwhile does not set a round back: the embedding
/// knows what has had all of it.
#[derive(Default)]
pub(super) struct Rounds {
    since: Option<Instant>,
}

impl Rounds {
    /// Something waits: one runs from now on, if none does already.
    pub(super) fn run(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// Whether one is over, which is told once.
    pub(super) fn end(&mut self, now: Instant) -> bool {
        let is_over = |since: &mut Instant| now.duration_since(*since) > FOLLOWING;
        self.since.take_if(is_over).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_end_however_often_something_begins() {
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
