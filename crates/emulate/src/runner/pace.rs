//! Waits exactly until a moment: the thread sleeps first, then spins.

use std::time::{Duration, Instant};

/// The limit below which the thread sleeps by itself, because epoll counts in milliseconds.
const NEAR: Duration = Duration::from_millis(1);
/// The maximum length of one sleep, because the thread does not poll its sockets during a sleep.
const NAP: Duration = Duration::from_micros(100);
/// The time that a sleep may be late. The thread spins for this time instead.
const SPIN: Duration = Duration::from_micros(15);

/// How a thread waits for its next turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Waits in the poller for at most this time; `None` means until an event.
    Poll(Option<Duration>),
    /// Polls once, then sleeps until this moment.
    Nap(Instant),
    /// Polls once, then spins until this moment.
    Spin(Instant),
}

/// Returns how to wait at `now` for `due`.
pub(super) fn wait_for(now: Instant, due: Option<Instant>) -> Wait {
    let Some(due) = due else { return Wait::Poll(None) };
    let left = due.saturating_duration_since(now);
    if left.is_zero() {
        Wait::Poll(Some(Duration::ZERO))
    } else if left <= SPIN {
        Wait::Spin(due)
    } else if left <= 2 * NEAR {
        Wait::Nap(due.checked_sub(SPIN).unwrap_or(due).min(now + NAP))
    } else {
        Wait::Poll(Some(left - NEAR))
    }
}

/// Sleeps or spins until the moment of `wait`. Does nothing for [`Wait::Poll`].
pub(super) fn pass(wait: Wait) {
    match wait {
        Wait::Poll(_) => {}
        Wait::Nap(until) => {
            std::thread::sleep(until.saturating_duration_since(Instant::now()));
        }
        Wait::Spin(until) => {
            while Instant::now() < until {
                std::hint::spin_loop();
            }
        }
    }
}

/// Makes the sleeps of this thread end within one microsecond of their time. The usual value is
/// fifty.
pub(super) fn sharpen_sleep() {
    // If the call fails, sleeps end some tens of microseconds later. The rate of the queue stays
    // correct.
    let _ = nix::sys::prctl::set_timerslack(1_000);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_uses_poll_sleep_or_spin_depending_on_the_time_to_the_deadline() {
        let now = Instant::now();
        let us = Duration::from_micros;
        assert_eq!(wait_for(now, None), Wait::Poll(None));
        assert_eq!(wait_for(now, Some(now)), Wait::Poll(Some(Duration::ZERO)));
        assert_eq!(wait_for(now, Some(now + us(10))), Wait::Spin(now + us(10)));
        assert_eq!(wait_for(now, Some(now + us(50))), Wait::Nap(now + us(35)));
        assert_eq!(wait_for(now, Some(now + us(500))), Wait::Nap(now + us(100)));
        assert_eq!(wait_for(now, Some(now + us(5000))), Wait::Poll(Some(us(4000))));
    }
}
