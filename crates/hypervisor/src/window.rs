//! How much work may stand at the switch at once.
//!
//! A queue has to stand somewhere when tenants ask for more than the switch can do. In the switch's socket it would be
//! first come, first served; in the hypervisor it is fair. So the work sent but not yet acknowledged is bounded by a
//! window that follows the switch's speed: large enough that the switch never idles, small enough that a tenant's
//! message waits behind few others once it has been sent.
//!
//! The controller is delay-based (as TCP Swift's): while answers come within the time that an unloaded switch takes
//! plus a small queueing allowance, the window grows; when several in a row come later, it shrinks in proportion to the
//! least late of them, since one may be late for reasons that are not the switch's. The unloaded time is learned, for
//! each class of message, from messages that were alone when they were sent; under lasting load the window closes from
//! time to time to let one such sample through (`unloaded`).

mod unloaded;

use crate::time::{Duration, Instant};
use unloaded::Unloaded;

/// One unit being served, one waiting, one on its way: with less the switch idles between an answer and what follows.
/// With four, a tenant's message would wait behind more than three services' worth of a neighbour's.
const MIN: u32 = 3 * SCALE;
const MAX: u32 = 1024 * SCALE;
const INITIAL: u32 = 16 * SCALE;
/// Fixed point: the window is kept in 1/256 units of work.
const SCALE: u32 = 256;
/// Answers in a row that have to be late before the window shrinks.
const LATE_ANSWERS: u32 = 4;
/// Queueing that is always tolerated, however fast the switch is.
const ALLOWANCE: Duration = Duration::from_micros(50);
/// Units of queueing that are always tolerated, however slow the switch is. With the smallest window, which is enough,
/// two stand there: were they tolerated, it would grow as often as not.
const ALLOWED_UNITS: u64 = 1;
/// A bounded amount of unacknowledged work.
#[derive(Debug)]
pub struct Window {
    limit: u32,
    in_flight: u32,
    unloaded: Unloaded,
    /// Time per unit of work while the window was full, in nanoseconds.
    service: u64,
    last_ack: Instant,
    /// By what fraction the least late of the answers that came late in a row was late, and how many did.
    least_late: Option<(u64, u32)>,
    starting: bool,
    was_full: bool,
    probing: bool,
    /// Messages of no cost in flight: they take the switch's time like any other.
    questions: u32,
}

/// What has to be remembered with a message in flight to learn from its answer.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    at: Instant,
    alone: bool,
    class: u8,
    cost: u32,
}

impl Window {
    /// An empty window of a switch about which nothing is known.
    pub fn new(now: Instant) -> Self {
        Window {
            limit: INITIAL,
            in_flight: 0,
            unloaded: Unloaded::new(now),
            service: 0,
            last_ack: now,
            least_late: None,
            starting: true,
            was_full: false,
            probing: false,
            questions: 0,
        }
    }

    /// Whether another message may be sent now.
    pub fn is_open(&self) -> bool {
        !self.probing && (self.in_flight == 0 || self.in_flight < self.limit / SCALE)
    }

    /// Notes that a message waits because the window is closed. Under lasting load it closes for good from time to
    /// time, until a lonely message has been answered.
    pub fn note_full(&mut self, now: Instant) {
        self.was_full = true;
        self.probing |= self.unloaded.is_due(now);
    }

    /// Accounts for a message that is sent. One of no cost asks only how far the switch has got: were it counted, a
    /// window of a few units would be filled by such questions.
    pub fn on_send(&mut self, class: u8, cost: u32, now: Instant) -> Sent {
        let alone = self.in_flight == 0 && self.questions == 0;
        self.in_flight += cost;
        self.questions += u32::from(cost == 0);
        Sent { at: now, alone, class, cost }
    }

    /// Takes back work that is known to be done, without learning from it.
    pub fn release(&mut self, cost: u32) {
        self.in_flight = self.in_flight.saturating_sub(cost);
    }

    /// A message of no cost has been answered, whether or not something is learned from it.
    pub fn question_answered(&mut self) {
        self.questions = self.questions.saturating_sub(1);
    }

    /// Learns from an answer; `cost` is all the work that it shows to be done. Returns the time that it took.
    pub fn on_ack(&mut self, sent: Sent, cost: u32, now: Instant) -> Duration {
        let took = now - sent.at;
        // A barrier of the hypervisor's own takes the switch's time, too.
        let served = cost + u32::from(sent.cost == 0);
        if self.was_full && served > 0 {
            let per_unit = (now - self.last_ack.max(sent.at)).0 / u64::from(served);
            self.service =
                if self.service == 0 { per_unit } else { (self.service * 7 + per_unit) / 8 };
        }
        self.last_ack = now;
        self.in_flight = self.in_flight.saturating_sub(cost);

        if sent.alone {
            self.probing = false;
            // What it shrank for was not this work's doing.
            self.starting |= self.unloaded.sample(sent.class, took, now) > ALLOWANCE;
        } else {
            self.unloaded.note(sent.class, took);
        }
        let Some(expected) = self.unloaded.expected(sent.class) else {
            // Nothing to compare with: this class has only been seen under load.
            return took;
        };
        if sent.alone || !self.unloaded.is_in_wake(sent.at) {
            let allowance = ALLOWANCE.0.max(ALLOWED_UNITS * self.service);
            self.judge(took.0, expected.0 + allowance, cost.max(1));
        }
        if self.in_flight < self.limit / SCALE {
            self.was_full = false;
        }
        took
    }

    /// Follows one answer that took this long where it should have taken at most `target`.
    fn judge(&mut self, took: u64, target: u64, cost: u32) {
        if took <= target {
            self.least_late = None;
            if self.was_full {
                let step = if self.starting {
                    cost * SCALE
                } else {
                    // A unit in four windows' worth of answers: far slower than it shrinks.
                    (cost * SCALE * SCALE / (4 * self.limit).max(1)).max(1)
                };
                self.limit = (self.limit + step).min(MAX);
            }
            return;
        }
        // One late answer may be the machine's doing; a queue that stands makes every answer late. How late is told as a
        // fraction, since answers to different classes of messages are compared.
        let excess = (took - target) * u64::from(SCALE) / took;
        let (excess, seen) = match self.least_late {
            Some((least, seen)) => (least.min(excess), seen + 1),
            None => (excess, 1),
        };
        if seen < LATE_ANSWERS {
            self.least_late = Some((excess, seen));
            return;
        }
        self.least_late = None;
        // At most a half, and with a gain of 0.8.
        let cut = (u64::from(self.limit) * excess * 4 / 5 / u64::from(SCALE))
            .min(u64::from(self.limit) / 2);
        self.limit = self.limit.saturating_sub(cut as u32).max(MIN);
        self.starting = false;
    }

    /// Work that may stand at the switch, in units.
    pub fn limit(&self) -> u32 {
        self.limit / SCALE
    }

    /// Work that stands at the switch, in units.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }
}

impl Sent {
    /// When the message was handed to the connection.
    pub fn at(&self) -> Instant {
        self.at
    }

    /// Its cost in units of work.
    pub fn cost(&self) -> u32 {
        self.cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;

    /// Runs a closed loop against a switch with a fixed service time and delay; gives the mean work in flight at the
    /// end and the fraction of time that the switch was busy.
    fn settle(service_us: u64, delay_us: u64) -> (f64, f64) {
        settle_on(service_us * 1_000, delay_us * 1_000, |_| 0)
    }

    /// The same, where answer number N comes later by as much as `host` says, in order; before all there are three that
    /// do not, when nothing else is asked of the host yet.
    fn settle_on(service: u64, delay: u64, host: impl Fn(u64) -> u64) -> (f64, f64) {
        let mut window = Window::new(Instant(0));
        let mut now = 0;
        let mut free_at = 0;
        let mut busy = 0;
        let mut flying: VecDeque<(u64, Sent)> = VecDeque::new();
        // A lonely message first, as at connection set-up.
        for _ in 0..3 {
            let sent = window.on_send(0, 1, Instant(now));
            now += delay + service;
            window.on_ack(sent, 1, Instant(now));
        }
        let settled = now + 2_000_000_000;
        let end = settled + 1_000_000_000;
        let (mut answers, mut last) = (0, 0);
        let mut sum = 0u64;
        let mut samples = 0u64;
        while now < end {
            let mut send = |window: &mut Window, cost| {
                let sent = window.on_send(0, cost, Instant(now));
                free_at = free_at.max(now + delay / 2) + service;
                busy += if now > settled { service } else { 0 };
                answers += 1;
                last = last.max(free_at + delay / 2 + host(answers));
                flying.push_back((last, sent));
            };
            while window.is_open() {
                send(&mut window, 1);
            }
            window.note_full(Instant(now));
            if window.in_flight() == 0 {
                // As the hypervisor does: a barrier, so that an answer will come.
                send(&mut window, 0);
            }
            let (done, sent) = flying.pop_front().unwrap();
            now = done;
            if sent.cost() == 0 {
                window.question_answered();
            }
            window.on_ack(sent, sent.cost(), Instant(now));
            if now > settled {
                sum += u64::from(window.in_flight());
                samples += 1;
            }
        }
        (sum as f64 / samples as f64, busy as f64 / (now - settled) as f64)
    }

    #[test]
    fn late_answers_of_different_classes_are_judged_together() {
        let mut window = Window::new(Instant(0));
        let mut now = 0;
        // Class 0 takes 1 ms, class 1 takes 100 ms.
        for (class, took) in [(0, 1_000_000), (1, 100_000_000)] {
            let sent = window.on_send(class, 1, Instant(now));
            now += took;
            window.on_ack(sent, 1, Instant(now));
        }
        let before = window.limit();
        for class in [0, 1, 0, 1, 0, 1, 0, 1] {
            let [first, second] = [0; 2].map(|_| window.on_send(class, 1, Instant(now)));
            now += if class == 0 { 3_000_000 } else { 300_000_000 };
            window.release(1);
            window.on_ack(second, 1, Instant(now));
            assert_eq!(first.at(), second.at());
        }
        assert!((3..before).contains(&window.limit()), "{} after {before}", window.limit());
    }

    #[test]
    fn a_slow_switch_keeps_a_short_queue_and_stays_busy() {
        let (in_flight, busy) = settle(125, 60);
        assert!((1.5..=5.0).contains(&in_flight), "in flight: {in_flight}");
        assert!(busy > 0.95, "busy: {busy}");
    }

    #[test]
    fn a_fast_switch_far_away_is_kept_busy() {
        let (in_flight, busy) = settle(4, 400);
        assert!(in_flight >= 90.0, "in flight: {in_flight}");
        assert!(busy > 0.9, "busy: {busy}");
    }

    #[test]
    fn a_switch_is_kept_busy_that_is_late_however_little_stands_there() {
        // While the host works it answers 50 to 150 µs late, whatever is asked of it.
        let (in_flight, busy) =
            settle_on(2_000, 30_000, |n| 50_000 + n.wrapping_mul(0x9e37_79b9) % 100_000);
        assert!(in_flight >= 70.0, "in flight: {in_flight}");
        assert!(busy > 0.7, "busy: {busy}");
    }

    #[test]
    fn stalls_of_the_machine_are_not_taken_for_its_ways() {
        // Every hundredth answer is 5 ms late, and what follows with it.
        let (in_flight, _) =
            settle_on(125_000, 60_000, |n| if n % 100 == 0 { 5_000_000 } else { 0 });
        assert!((1.5..=6.0).contains(&in_flight), "in flight: {in_flight}");
    }

    #[test]
    fn a_fast_switch_nearby_is_kept_busy() {
        let (in_flight, busy) = settle(3, 50);
        assert!((15.0..=60.0).contains(&in_flight), "in flight: {in_flight}");
        assert!(busy > 0.95, "busy: {busy}");
    }
}
