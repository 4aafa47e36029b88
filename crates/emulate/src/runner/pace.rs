//! Waiting until a moment, exactly: sleep, then spin.

use std::time::{Duration, Instant};

/// epoll counts milliseconds, so what is nearer than this is slept for apart.
const NEAR: Duration = Duration::from_millis(1);
/// While sleeping the sockets are not watched; so not for longer than this at once.
const NAP: Duration = Duration::from_micros(100);
/// What a sleep may overshoot, and is spun instead.
const SPIN: Duration = Duration::from_micros(15);

/// How a thread waits for its next turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// In the poller, at most this long; `None` is until something happens.
    Poll(Option<Duration>),
    /// A look at the poller, then a nap until this moment.
    Nap(Instant),
    /// A look at the poller, then spinning until this moment.
    Spin(Instant),
}

/// How to wait at `now` for `due`.
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

/// Sleeps or spins as said; does nothing for [`Wait::Poll`].
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

/// Lets this thread's sleeps end within a microsecond of their time, not the usual fifty.
pub(super) fn sharpen_sleep() {
    // Without it sleeps are later by some tens of microseconds; the queue's rate stays right.
    let _ = nix::sys::prctl::set_timerslack(1_000);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_moments_are_polled_for_and_near_ones_slept_then_spun_for() {
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
