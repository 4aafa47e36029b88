//! Fewer turns of the event loop while threads wait for a core.
//!
//! At tens of thousands of messages per second the event loop wakes up for almost every message, and so do the programs
//! at the other ends of the connections. On idle cores this gives the least latency. If all cores are busy, each
//! wake-up takes time from a thread that waits for a core, and messages queue up in front of that thread. Then the
//! event loop has one turn per [`INTERVAL`], and each turn reads and writes several messages.
//!
//! Only messages of switches count. Controllers' messages do not: while Weir waits for answers of a switch before Weir
//! sends more of them, a turn that comes later makes the switch do less.
//!
//! The kernel's pressure stall information (`/proc/pressure/cpu`) has the time for which threads waited. Without this
//! file the event loop has all its turns.

use crate::metrics::EventLoopMetrics;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time from one turn to the next while turns are coalesced.
const INTERVAL: Duration = Duration::from_micros(100);
/// The time between two decisions.
const PERIOD: Duration = Duration::from_millis(20);
/// The kernel's count of the time for which threads waited for a core.
const PRESSURE: &str = "/proc/pressure/cpu";

/// Messages of switches per second, and the percentage of the time for which threads wait for a core.
#[derive(Clone, Copy)]
struct Load {
    messages: u64,
    waiting: u64,
}

/// From this load on turns are coalesced. At lower rates wake-ups take less than a fifth of a core.
const BEGINS: Load = Load { messages: 30_000, waiting: 25 };
/// Below this load turns are no longer coalesced.
const ENDS: Load = Load { messages: 20_000, waiting: 12 };

/// Decides whether turns are coalesced.
#[derive(Debug)]
pub(super) struct Coalescing {
    pressure: Option<File>,
    /// The kernel's count, and when it was read.
    waited: Option<(Duration, Instant)>,
    decided: Instant,
    /// Messages of switches since the last decision.
    messages: u64,
    is_on: bool,
    metrics: Arc<EventLoopMetrics>,
}

impl Coalescing {
    /// Every turn comes at once.
    pub(super) fn new(now: Instant, metrics: Arc<EventLoopMetrics>) -> Coalescing {
        let pressure = File::open(PRESSURE).ok();
        Coalescing { pressure, waited: None, decided: now, messages: 0, is_on: false, metrics }
    }

    /// The event loop has handled a message of a switch.
    pub(super) fn count(&mut self) {
        self.messages += 1;
    }

    /// A turn is over. Returns the new least time from one turn to the next, if it changes.
    pub(super) fn turn(&mut self, now: Instant) -> Option<Duration> {
        let passed = now.saturating_duration_since(self.decided);
        if passed < PERIOD {
            return None;
        }
        self.decided = now;
        let messages = per_second(std::mem::take(&mut self.messages), passed);
        // At low rates the file is not worth a system call.
        let waiting = if messages < ENDS.messages { 0 } else { self.waiting(now) };
        self.settle(passed, Load { messages, waiting })
    }

    /// Decides by the load of the time that passed since the last decision.
    fn settle(&mut self, passed: Duration, load: Load) -> Option<Duration> {
        let is_on = decide(self.is_on, load);
        let was_on = std::mem::replace(&mut self.is_on, is_on);
        self.metrics.coalesced.set(u64::from(is_on));
        if was_on {
            self.metrics.coalesced_nanos.add(passed.as_nanos() as u64);
        }
        (is_on != was_on).then_some(if is_on { INTERVAL } else { Duration::ZERO })
    }

    /// The percentage of the time since the last reading for which threads waited; 0 if the kernel does not count.
    fn waiting(&mut self, now: Instant) -> u64 {
        let mut text = [0; 256];
        let length = self.pressure.as_ref().and_then(|file| file.read_at(&mut text, 0).ok());
        let text = text.get(..length.unwrap_or(0)).unwrap_or_default();
        let Some(waited) = std::str::from_utf8(text).ok().and_then(total) else { return 0 };
        let (before, at) = self.waited.replace((waited, now)).unwrap_or((waited, now));
        percent(waited.saturating_sub(before), now.saturating_duration_since(at))
    }
}

/// Whether turns are coalesced under this load.
fn decide(is_on: bool, load: Load) -> bool {
    let least = if is_on { ENDS } else { BEGINS };
    load.messages >= least.messages && load.waiting >= least.waiting
}

fn per_second(count: u64, time: Duration) -> u64 {
    count.saturating_mul(1_000_000) / (time.as_micros() as u64).max(1)
}

fn percent(part: Duration, whole: Duration) -> u64 {
    (part.as_micros() as u64).saturating_mul(100) / (whole.as_micros() as u64).max(1)
}

/// The time in the line `some avg10=0.00 avg60=0.00 avg300=0.00 total=15226131`: microseconds for which at least one
/// thread waited for a core.
fn total(text: &str) -> Option<Duration> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    let (_, total) = line.rsplit_once("total=")?;
    total.parse().ok().map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coalescing_starts_when_threads_wait_and_many_messages_arrive() {
        let on = |load| decide(false, load);
        assert!(on(Load { messages: 40_000, waiting: 40 }));
        assert!(!on(Load { messages: 40_000, waiting: 4 }), "a core is idle");
        assert!(!on(Load { messages: 20_000, waiting: 60 }), "wake-ups take little time");
    }

    #[test]
    fn coalescing_stays_on_until_the_load_is_clearly_lower() {
        let stays_on = |load| decide(true, load);
        assert!(stays_on(Load { messages: 25_000, waiting: 15 }));
        assert!(!stays_on(Load { messages: 25_000, waiting: 5 }));
        assert!(!stays_on(Load { messages: 15_000, waiting: 60 }));
    }

    #[test]
    fn the_total_waiting_time_is_parsed_from_pressure_text_of_the_kernel() {
        let text = "some avg10=6.85 avg60=5.36 avg300=2.98 total=15226131\n\
                    full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
        assert_eq!(total(text), Some(Duration::from_micros(15_226_131)));
        assert_eq!(total("full avg10=0.00 total=1\n"), None);
        assert_eq!(total("some total=-1"), None);
    }

    #[test]
    fn coalescing_is_decided_once_per_period_and_ends_with_few_messages() {
        let start = Instant::now();
        let mut coalescing = Coalescing::new(start, Arc::default());
        coalescing.is_on = true;
        assert_eq!(coalescing.turn(start + PERIOD / 2), None);
        coalescing.count();
        assert_eq!(coalescing.turn(start + PERIOD), Some(Duration::ZERO));
        assert_eq!(coalescing.turn(start + 2 * PERIOD), None, "nothing changes");
    }

    #[test]
    fn metrics_show_the_state_and_the_total_time_of_coalescing() {
        let metrics = Arc::<EventLoopMetrics>::default();
        let mut coalescing = Coalescing::new(Instant::now(), Arc::clone(&metrics));
        let mut check = |passed: u64, waiting: u64, coalesced: (u64, u64)| {
            coalescing.settle(Duration::from_nanos(passed), Load { messages: 40_000, waiting });
            assert_eq!((metrics.coalesced.get(), metrics.coalesced_nanos.get()), coalesced);
        };
        check(20, 50, (1, 0));
        check(20, 50, (1, 20));
        check(40, 0, (0, 60));
        check(20, 0, (0, 60));
    }
}
