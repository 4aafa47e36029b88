//! How long a switch takes to answer when nothing else stands there.
//!
//! There are two parts. The quickest answers to each class of message say what the switch itself needs. What lonely messages
//! take beyond that is the same for all classes: the switch or its host is busy with other things, and late however
//! little is asked of it. A smaller window would not help, so that much is tolerated.
//!
//! Under load nothing is alone unless the window closes for it, which costs twice the time of an answer: one until
//! nothing stands there, and the sample. Samples are taken often while they bring news, ever more rarely while they do
//! not, and never for more than a fiftieth of the time in the long run.

use crate::time::{Duration, Instant};

/// Classes of messages whose service times differ.
const CLASSES: usize = 16;
/// Samples of which the second slowest counts: one stall of the machine is not the switch's way.
const SAMPLES: usize = 7;
/// By how much a sample has to be later than is tolerated to be news.
const NEWS: u64 = 50_000;
/// Pauses between samples, in times of an answer; the longest is at least `LONGEST`.
const SHORTEST_ANSWERS: u64 = 4;
const LONGEST_ANSWERS: u64 = 100;
const LONGEST: u64 = 200_000_000;

/// What is known of it; times are in nanoseconds.
#[derive(Debug)]
pub(crate) struct Unloaded {
    /// The quickest, by class; zero where none has been seen.
    quickest: [u64; CLASSES],
    /// By how much the last lonely messages were slower than the quickest of their class, in a ring.
    late: [u64; SAMPLES],
    count: usize,
    /// By how much a lonely message is late now, at most times: the second largest of those.
    tolerated: u64,
    last: Instant,
    /// How long the last one took.
    took: u64,
    pause: u64,
}

impl Unloaded {
    pub(crate) fn new(now: Instant) -> Self {
        let (quickest, late) = ([0; CLASSES], [0; SAMPLES]);
        Unloaded { quickest, late, count: 0, tolerated: 0, last: now, took: 0, pause: 0 }
    }

    /// A lonely message has been answered after this time. Gives by how much more is tolerated for it.
    pub(crate) fn sample(&mut self, class: u8, took: Duration, now: Instant) -> Duration {
        self.learn(class, took.0, true);
        let before = self.tolerated;
        let late = took.0.saturating_sub(self.quickest[index(class)]);
        self.late[self.count % SAMPLES] = late;
        self.count = self.count.wrapping_add(1);
        let pause = if late > before + NEWS { self.pause / 2 } else { self.pause * 2 };
        self.pause = pause.clamp(SHORTEST_ANSWERS * took.0, LONGEST.max(LONGEST_ANSWERS * took.0));
        (self.last, self.took) = (now, took.0);
        let mut sorted = self.late;
        sorted.sort_unstable();
        self.tolerated = sorted[SAMPLES - 2];
        Duration(self.tolerated.saturating_sub(before))
    }

    /// One that was not alone has been answered.
    pub(crate) fn note(&mut self, class: u8, took: Duration) {
        self.learn(class, took.0, false);
    }

    /// How long an answer takes where nothing of the window's own stands before it.
    pub(crate) fn expected(&self, class: u8) -> Option<Duration> {
        let quickest = self.quickest[index(class)];
        (quickest > 0).then(|| Duration(quickest + self.tolerated))
    }

    /// Whether it is time for another sample.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        now - self.last > Duration(self.pause)
    }

    /// Whether what was sent then stands behind a whole window that went all at once, after a sample.
    pub(crate) fn is_in_wake(&self, sent: Instant) -> bool {
        sent - self.last <= Duration(self.took)
    }

    /// A lonely answer says how long it takes; one that came sooner than that although it was not alone says so too.
    fn learn(&mut self, class: u8, took: u64, alone: bool) {
        let known = &mut self.quickest[index(class)];
        *known = match (alone, *known) {
            (true, 0) => took,
            (false, 0) => 0,
            // Far too long: the first ones often are, while the connection is set up.
            (_, long) if took < long / 2 => took,
            (_, long) if took < long => (long * 3 + took) / 4,
            (true, short) => (short * 7 + took) / 8,
            (false, short) => short,
        };
    }
}

fn index(class: u8) -> usize {
    usize::from(class) % CLASSES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(unloaded: &mut Unloaded, took: &[u64]) -> u64 {
        let grown = took.iter().map(|&took| {
            let now = Instant(unloaded.last.0 + unloaded.pause + took);
            unloaded.sample(0, Duration(took * 1_000), now).0
        });
        grown.sum()
    }

    #[test]
    fn one_stall_is_not_tolerated_and_what_lasts_is() {
        let mut unloaded = Unloaded::new(Instant(0));
        assert_eq!(unloaded.expected(0), None);
        samples(&mut unloaded, &[100; 20]);
        assert_eq!(samples(&mut unloaded, &[5_000, 100, 100]), 0);
        assert!(unloaded.expected(0).unwrap() < Duration(1_000_000));
        assert!(samples(&mut unloaded, &[5_000; 3]) > 3_000_000);
        assert!(unloaded.expected(0).unwrap() > Duration(4_000_000));
        samples(&mut unloaded, &[100; 10]);
        assert!(unloaded.expected(0).unwrap() < Duration(1_000_000));
    }

    #[test]
    fn samples_are_frequent_only_while_they_bring_news() {
        let mut unloaded = Unloaded::new(Instant(0));
        samples(&mut unloaded, &[100; 20]);
        assert_eq!(unloaded.pause, LONGEST);
        samples(&mut unloaded, &[400; 1]);
        assert_eq!(unloaded.pause, LONGEST / 2);
        samples(&mut unloaded, &[400; 20]);
        assert_eq!(unloaded.pause, LONGEST);
        // A switch far away: for at most a fiftieth of the time.
        samples(&mut unloaded, &[10_000; 40]);
        assert_eq!(unloaded.pause, 100 * 10_000_000);
    }
}
