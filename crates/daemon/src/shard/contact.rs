//! The state of one link over all its connections decides when the back-off starts again and which lines Weir logs.
//!
//! A short connection counts as a failure, whatever was sent on it: the back-off continues, and the log has no further
//! lines until a connection lasts. So a controller that sends HELLO and closes costs one attempt per longest back-off,
//! and two log lines.

use crate::metrics::Lost;
use std::time::{Duration, Instant};

/// The state of a link.
#[derive(Debug, Default)]
pub(super) struct Contact {
    up: Option<Instant>,
    logged: Logged,
    /// Whether a connection was established and did not last, and none has lasted since.
    flaps: bool,
}

/// The last logged state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Logged {
    #[default]
    Nothing,
    Up,
    Down(Lost),
}

/// The consequences of the end or the failure of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Whether the connection had lasted: then the back-off starts again.
    pub lasted: bool,
    /// Whether the state has to be logged.
    pub log: bool,
}

impl Contact {
    /// Notes that the controller has sent HELLO. Returns whether to log this.
    pub(super) fn connected(&mut self, now: Instant) -> bool {
        self.up = Some(now);
        let log = self.logged != Logged::Up && !self.flaps;
        if log {
            self.logged = Logged::Up;
        }
        log
    }

    /// Checks an established connection. Returns whether to log that it has lasted.
    pub(super) fn stands(&mut self, now: Instant, lasting: Duration) -> bool {
        if !self.flaps || !self.has_lasted(now, lasting) {
            return false;
        }
        self.flaps = false;
        self.logged = Logged::Up;
        true
    }

    /// Notes that the connection failed or ended.
    pub(super) fn lost(&mut self, why: Lost, now: Instant, lasting: Duration) -> Verdict {
        let lasted = self.has_lasted(now, lasting);
        if self.up.take().is_some() {
            self.flaps = !lasted;
        }
        let log = self.logged != Logged::Down(why);
        self.logged = Logged::Down(why);
        Verdict { lasted, log }
    }

    fn has_lasted(&self, now: Instant, lasting: Duration) -> bool {
        self.up.is_some_and(|since| now.saturating_duration_since(since) >= lasting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use channel::Backoff;

    const LASTING: Duration = Duration::from_secs(10);

    /// Simulates a controller whose connections last `lasts` each. Returns the numbers of connection attempts and of
    /// log lines in the time `within`.
    fn flap(lasts: Duration, within: Duration) -> (u32, u32) {
        let mut contact = Contact::default();
        let mut backoff = Backoff::new(Duration::from_millis(100), LASTING, 7);
        let began = Instant::now();
        let (mut now, mut dials, mut lines) = (began, 0, 0);
        while now < began + within {
            dials += 1;
            lines += u32::from(contact.connected(now));
            now += lasts;
            lines += u32::from(contact.stands(now, LASTING));
            let verdict = contact.lost(Lost::Closed, now, LASTING);
            lines += u32::from(verdict.log);
            if verdict.lasted {
                backoff.reset();
            }
            now += backoff.next_delay();
        }
        (dials, lines)
    }

    #[test]
    fn a_controller_that_closes_after_hello_is_dialled_with_growing_delays() {
        let (dials, lines) = flap(Duration::from_millis(1), Duration::from_secs(600));
        // The delay is longest after seven attempts. Then one attempt follows every 5 to 10 s.
        assert!((60..=127).contains(&dials), "{dials}");
        assert_eq!(lines, 2, "that it came and that it went");
    }

    #[test]
    fn after_a_lasting_connection_the_controller_is_dialled_at_once() {
        let (dials, lines) = flap(LASTING, Duration::from_secs(600));
        assert!(dials >= 59, "{dials}");
        assert_eq!(lines, dials * 2);
    }

    #[test]
    fn each_change_of_a_controller_connection_gives_a_single_log_line() {
        let (mut contact, now) = (Contact::default(), Instant::now());
        let lost = |contact: &mut Contact, why| contact.lost(why, now, LASTING).log;
        assert!(lost(&mut contact, Lost::Unreachable));
        assert!(!lost(&mut contact, Lost::Unreachable));
        assert!(lost(&mut contact, Lost::Tls), "another reason is news");
        assert!(!lost(&mut contact, Lost::Tls));
        assert!(contact.connected(now), "it has not come and gone before");
        let later = now + LASTING;
        assert_eq!(contact.lost(Lost::Closed, later, LASTING), Verdict { lasted: true, log: true });
        assert!(contact.connected(later));
        assert!(contact.lost(Lost::Closed, later, LASTING).log);
        assert!(!contact.connected(later), "it came and did not last");
        assert!(!contact.stands(later, LASTING));
        assert!(contact.stands(later + LASTING, LASTING), "now it has");
        assert!(!contact.stands(later + LASTING, LASTING), "which is said once");
    }
}
