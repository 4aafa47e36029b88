//! Tests of the window with models of different switches, in virtual time. They measure how busy the window keeps the
//! switch, and how much work is in flight.

use super::*;
use alloc::boxed::Box;
use alloc::collections::VecDeque;

const MICRO: u64 = 1_000;
const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

/// A model of a switch. The arguments are the time at which a message arrives, and the time at which the switch
/// finished the last message. The results are the time at which the switch finishes the message, and the time at which
/// the reply leaves.
type Model = Box<dyn FnMut(u64, u64) -> (u64, u64)>;

/// The replies that acknowledge work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answered {
    /// Each message has a reply.
    Each,
    /// Only barriers have a reply. The hypervisor sends a barrier after half a window of messages.
    ByBarriers,
}

/// Measurements of the last second of a run.
#[derive(Debug)]
struct Seen {
    /// The number of acknowledged messages of tenants.
    done: u64,
    /// The longest time that a message waited for the window, in nanoseconds.
    longest: u64,
    /// The average work in flight.
    in_flight: f64,
    /// The number of acknowledged barriers of the hypervisor. A barrier takes as long as a message.
    barriers: u64,
}

struct Loop {
    window: Window,
    model: Model,
    answered: Answered,
    now: u64,
    /// The round-trip time to the switch, in nanoseconds.
    delay: u64,
    tenants: u32,
    /// The hypervisor runs only at multiples of this time, in nanoseconds.
    turn: u64,
    free: u64,
    last_arrival: u64,
    /// Replies in flight. Each has the time of its arrival, its message, and the work that the reply acknowledges.
    due: VecDeque<(u64, Sent, u32)>,
    unacknowledged: u32,
    uncovered: u32,
    /// The time from one message of the tenants to the next message, in nanoseconds. The time is 0 if messages always
    /// wait.
    interval: u64,
    /// The time at which the tenants have the next message.
    next: u64,
    /// If not 0, the tenants have so many messages at once, and the next so many when these are sent and some time has
    /// passed: `pause` on average, in nanoseconds.
    batch: u32,
    pause: u64,
    /// The messages of the batch that are not sent.
    left: u32,
    random: u64,
}

impl Loop {
    fn new(
        delay: u64,
        answered: Answered,
        model: impl FnMut(u64, u64) -> (u64, u64) + 'static,
    ) -> Self {
        let window = Window::new(Instant(0));
        let model = Box::new(model);
        let (due, now) = (VecDeque::new(), 1);
        Loop {
            window,
            model,
            answered,
            now,
            tenants: 2,
            delay,
            turn: 1,
            free: 0,
            last_arrival: 0,
            due,
            unacknowledged: 0,
            uncovered: 0,
            interval: 0,
            next: 0,
            batch: 0,
            pause: 0,
            left: 0,
            random: 1,
        }
    }

    fn send(&mut self, cost: u32) {
        let sent = self.window.on_send(cost, Instant(self.now));
        let arrival = self.now + self.delay / 2;
        let (done, leaves) = (self.model)(arrival, self.free);
        self.free = done;
        self.uncovered += cost;
        if self.answered == Answered::Each || cost == 0 {
            self.last_arrival = self.last_arrival.max(leaves + self.delay / 2);
            let at = self.last_arrival.div_ceil(self.turn) * self.turn;
            self.due.push_back((at, sent, core::mem::take(&mut self.uncovered)));
            self.unacknowledged = 0;
        } else {
            self.unacknowledged += cost;
        }
    }

    /// The tenants send one more message of their batch.
    fn take_from_batch(&mut self) {
        if self.left == 0 {
            self.left = self.batch;
        }
        self.left -= 1;
        if self.left == 0 {
            self.next = self.now + self.pause / 2 + noise(&mut self.random, self.pause);
        }
    }

    /// Sends the waiting messages, as the hypervisor does.
    fn fill(&mut self) {
        for tenant in 0..self.tenants {
            self.window.note_demand(tenant, Instant(self.now));
        }
        while self.next <= self.now && self.window.is_open() {
            self.next += self.interval;
            if self.batch > 0 {
                self.take_from_batch();
            }
            self.send(1);
            if self.unacknowledged >= self.window.barrier_interval() {
                self.send(0);
            }
        }
        if self.next > self.now {
            return self.window.note_drained();
        }
        self.window.note_full();
        if self.due.is_empty() {
            self.send(0);
        }
    }

    /// The time at which the hypervisor runs next.
    fn wakes(&self) -> u64 {
        let answer = self.due.front().map(|due| due.0);
        let message =
            Some(self.next.div_ceil(self.turn) * self.turn).filter(|_| self.next > self.now);
        [answer, message].into_iter().flatten().min().unwrap_or(self.now)
    }

    fn run(&mut self, time: u64) -> Seen {
        let end = self.now + time;
        let from = end.saturating_sub(SECOND).max(self.now);
        let (mut done, mut area, mut longest, mut barriers) = (0, 0, 0, 0);
        self.fill();
        loop {
            let before = self.now;
            self.now = self.now.max(self.wakes());
            if self.now > from {
                area += u64::from(self.window.in_flight()) * (self.now - before.max(from));
                longest = longest.max(self.now.saturating_sub(self.next));
            }
            if self.now >= end {
                break;
            }
            self.fill();
            // In one turn, the hypervisor handles all replies that have arrived. After each reply it sends the next
            // messages.
            let mut due = self.due.len() as u32;
            while let Some(&(at, sent, cost)) = self.due.front()
                && at <= self.now
            {
                self.due.pop_front();
                if self.now > from {
                    done += u64::from(cost);
                    barriers += u64::from(sent.cost() == 0);
                }
                self.window.on_ack(sent, cost, due, Instant(self.now));
                self.fill();
                due = self.due.len() as u32;
            }
        }
        Seen { done, longest, in_flight: area as f64 / (self.now - from) as f64, barriers }
    }
}

/// A pseudo-random number in `0..below`.
fn noise(n: &mut u64, below: u64) -> u64 {
    *n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*n >> 33) % below
}

fn singly(service: u64) -> impl FnMut(u64, u64) -> (u64, u64) {
    move |arrival, free| (arrival.max(free) + service, arrival.max(free) + service)
}

/// A switch that finishes up to `most` messages together at the end of each `period`.
fn in_batches(most: u64, period: u64) -> impl FnMut(u64, u64) -> (u64, u64) {
    let (mut batch, mut taken) = (0, 0);
    move |arrival, _| {
        let next = arrival.div_ceil(period);
        if next > batch {
            (batch, taken) = (next, 0);
        } else if taken == most {
            (batch, taken) = (batch + 1, 0);
        }
        taken += 1;
        (batch * period, batch * period)
    }
}

/// A switch with a token bucket. It does one message in the time `service`, and up to `most` messages at once after a
/// time without messages.
fn by_tokens(most: u64, service: u64) -> impl FnMut(u64, u64) -> (u64, u64) {
    let mut full = 0;
    move |arrival, _| {
        full = arrival.max(full) + service;
        let done = arrival.max(full.saturating_sub(most * service));
        (done, done)
    }
}

/// A switch that does one message after another. The reply leaves between `least` and `most` after the message is done.
fn late(service: u64, least: u64, most: u64) -> impl FnMut(u64, u64) -> (u64, u64) {
    let mut n = 1;
    move |arrival, free| {
        let done = arrival.max(free) + service;
        (done, done + least + noise(&mut n, most - least))
    }
}

/// A switch that runs for the time `slice`. Then other processes use the core for between `least` and `most`.
fn on_a_shared_core(
    service: u64,
    slice: u64,
    least: u64,
    most: u64,
) -> impl FnMut(u64, u64) -> (u64, u64) {
    let (mut n, mut starts, mut stops) = (1, 0, slice);
    move |arrival, free| {
        let mut done = arrival.max(free).max(starts) + service;
        while done > stops {
            starts = stops + least + noise(&mut n, most - least);
            stops = starts + slice;
            done = done.max(starts + service);
        }
        (done, done)
    }
}

/// A switch that works as Open vSwitch does. It does up to 50 messages of a connection, then handles all its ports in
/// the time `ports`, and begins again. A message takes between `least` and `most`.
fn in_a_loop(least: u64, most: u64, ports: u64) -> impl FnMut(u64, u64) -> (u64, u64) {
    let (mut n, mut next, mut free, mut taken) = (1, 0, 0, 50);
    move |arrival, _| {
        if taken == 50 || arrival > free {
            (taken, free) = (0, arrival.max(next));
        }
        taken += 1;
        free += least + noise(&mut n, most - least);
        next = free + ports;
        (free, free)
    }
}

const BOTH: [Answered; 2] = [Answered::Each, Answered::ByBarriers];

/// Runs for three seconds. In the last second the switch does at least `busy` percent of the `most` messages that it
/// can do. The average work in flight is in the range `in_flight`.
fn check(mut world: Loop, most: u64, busy: u64, in_flight: core::ops::RangeInclusive<f64>) {
    let answered = world.answered;
    let seen = world.run(3 * SECOND);
    let seen_in_words =
        alloc::format!("{answered:?}: {seen:?}, at most {most}, limit {}", world.window.limit());
    assert!((seen.done + seen.barriers) * 100 >= most * busy, "{seen_in_words}");
    assert!(in_flight.contains(&seen.in_flight), "{seen_in_words}");
}

#[test]
fn a_slow_switch_keeps_a_short_queue_and_stays_busy() {
    for answered in BOTH {
        check(Loop::new(60 * MICRO, answered, singly(125 * MICRO)), 8_000, 97, 1.5..=4.0);
    }
}

#[test]
fn a_switch_that_works_in_batches_gets_whole_batches() {
    for answered in BOTH {
        let world = Loop::new(60 * MICRO, answered, in_batches(17, 2_125 * MICRO));
        check(world, 8_000, 95, 12.0..=34.0);
    }
}

#[test]
fn a_switch_with_a_token_bucket_keeps_a_short_queue_and_stays_busy() {
    for answered in BOTH {
        check(Loop::new(60 * MICRO, answered, by_tokens(17, 125 * MICRO)), 8_000, 97, 1.5..=4.0);
    }
}

#[test]
fn stalls_of_the_host_neither_close_nor_open_the_window() {
    for answered in BOTH {
        // Every hundredth reply is 5 ms late, and delays the replies after it.
        let mut n = 0;
        let world = Loop::new(60 * MICRO, answered, move |arrival, free| {
            n += 1;
            let done = arrival.max(free) + 125 * MICRO;
            (done, done + if n % 100 == 0 { 5 * MILLI } else { 0 })
        });
        check(world, 8_000, 70, 1.5..=8.0);
    }
}

#[test]
fn replies_that_are_late_for_any_queue_length_do_not_close_the_window() {
    for answered in BOTH {
        let world = Loop::new(30 * MICRO, answered, late(2 * MICRO, 50 * MICRO, 150 * MICRO));
        check(world, 500_000, 80, 40.0..=200.0);
    }
}

#[test]
fn a_switch_on_a_shared_cpu_core_is_kept_busy() {
    for answered in BOTH {
        // The switch has the core for half of the time, in slices of 1 ms. The hypervisor runs every 0.5 ms.
        let model = on_a_shared_core(8 * MICRO, MILLI, MILLI / 2, 3 * MILLI / 2);
        let world = Loop { turn: MILLI / 2, ..Loop::new(50 * MICRO, answered, model) };
        check(world, 62_500, 85, 60.0..=400.0);
    }
}

#[test]
fn a_fast_switch_with_a_short_delay_is_kept_busy() {
    for answered in BOTH {
        check(Loop::new(50 * MICRO, answered, singly(3 * MICRO)), 333_333, 90, 10.0..=60.0);
    }
}

#[test]
fn a_switch_with_a_long_delay_is_kept_busy() {
    for answered in BOTH {
        check(Loop::new(10 * MILLI, answered, singly(10 * MICRO)), 100_000, 85, 800.0..=2_048.0);
    }
}

#[test]
fn a_slow_switch_with_a_long_delay_keeps_a_short_queue_and_stays_busy() {
    for answered in BOTH {
        // 80 messages are on their way to the switch and back.
        check(Loop::new(10 * MILLI, answered, singly(125 * MICRO)), 8_000, 90, 80.0..=130.0);
    }
}

/// A switch like Open vSwitch, and a hypervisor that runs every `turn` microseconds.
fn beside_a_loop(answered: Answered, turn: u64) -> Loop {
    let model = in_a_loop(8 * MICRO, 12 * MICRO, 230 * MICRO);
    Loop { turn: turn * MICRO, ..Loop::new(60 * MICRO, answered, model) }
}

/// Values of the time between two runs of the hypervisor, in microseconds.
const TURNS: [u64; 5] = [100, 200, 300, 500, 800];

#[test]
fn a_switch_that_alternates_messages_and_port_work_is_kept_busy() {
    for (answered, turn) in BOTH.into_iter().flat_map(|it| TURNS.map(|turn| (it, turn))) {
        let seen = beside_a_loop(answered, turn).run(3 * SECOND);
        // Fifty messages take 500 us on average, and the ports take 230 us.
        let at_most = 50 * SECOND / (730 * MICRO);
        assert!(seen.done * 100 >= at_most * 85, "{answered:?}, {turn} us: {seen:?}");
        assert!(seen.in_flight <= 150.0, "{answered:?}, {turn} us: {seen:?}");
    }
}

#[test]
fn messages_below_the_rate_of_the_switch_wait_at_most_5_ms() {
    for (answered, turn) in BOTH.into_iter().flat_map(|it| TURNS.map(|turn| (it, turn))) {
        let world = beside_a_loop(answered, turn);
        let seen = Loop { interval: SECOND / 60_000, ..world }.run(3 * SECOND);
        assert!(seen.longest <= 5 * MILLI, "{answered:?}, {turn} us: {seen:?}");
    }
}

#[test]
fn messages_below_the_rate_of_the_switch_need_few_barriers() {
    for turn in TURNS {
        let world = beside_a_loop(Answered::ByBarriers, turn);
        let seen = Loop { interval: SECOND / 55_000, ..world }.run(3 * SECOND);
        assert!(seen.barriers * 100 <= seen.done * 2, "{turn} us: {seen:?}");
    }
}

#[test]
fn the_queue_becomes_short_when_overload_follows_light_load() {
    for answered in BOTH {
        // The switch can do 8,000 messages per second. At first, the tenants send 4,000 messages per second.
        let world = Loop::new(60 * MICRO, answered, singly(125 * MICRO));
        let mut world = Loop { interval: SECOND / 4_000, ..world };
        let seen = world.run(2 * SECOND);
        assert!(seen.longest <= MILLI, "{answered:?}: {seen:?}");
        (world.interval, world.next) = (0, world.now);
        world.run(SECOND / 2);
        check(world, 8_000, 97, 1.5..=4.0);
    }
}

#[test]
fn the_queue_becomes_short_when_messages_come_in_batches() {
    for answered in BOTH {
        for pause in [300, 1_000, 2_000, 4_000] {
            // The switch is far away at first, so the window becomes large.
            let model = in_a_loop(18 * MICRO, 30 * MICRO, 100 * MICRO);
            let mut world = Loop::new(10 * MILLI, answered, model);
            world.run(3 * SECOND);
            (world.delay, world.turn) = (60 * MICRO, 100 * MICRO);
            (world.batch, world.pause) = (256, pause * MICRO);
            assert!(world.window.limit() >= 256);
            world.run(3 * SECOND);
            let seen = world.run(SECOND);
            assert!(seen.in_flight <= 20.0, "{answered:?}, {pause} us: {seen:?}");
            // Nothing is in flight in the pauses.
            let at_most = (256 * SECOND).div_ceil(7 * MILLI + pause * MICRO);
            assert!(seen.done * 100 >= at_most * 80, "{answered:?}, {pause} us: {seen:?}");
        }
    }
}

#[test]
fn the_window_adapts_when_the_switch_changes_its_speed() {
    for answered in BOTH {
        let speed = alloc::rc::Rc::new(core::cell::Cell::new(125 * MICRO));
        let set = speed.clone();
        let mut world = Loop::new(500 * MICRO, answered, move |arrival, free| {
            let done = arrival.max(free) + speed.get();
            (done, done)
        });
        for (service, busy, in_flight) in
            [(125, 97, 3.0..=12.0), (12, 85, 30.0..=90.0), (125, 97, 3.0..=12.0)]
        {
            set.set(service * MICRO);
            let seen = world.run(2 * SECOND);
            let most = SECOND / (service * MICRO);
            let seen_in_words = alloc::format!(
                "{answered:?} at {service} us: {seen:?}, limit {}",
                world.window.limit()
            );
            assert!((seen.done + seen.barriers) * 100 >= most * busy, "{seen_in_words}");
            assert!(in_flight.contains(&seen.in_flight), "{seen_in_words}");
        }
    }
}

#[test]
fn replies_before_the_work_is_done_do_not_close_the_window() {
    // The switch replies before it does the work. The reply has no information about the queue, so Weir cannot bound
    // the queue.
    let world = Loop::new(60 * MICRO, Answered::ByBarriers, |arrival, _| (arrival, arrival));
    check(world, 100_000, 100, 3.0..=2048.0);
}

#[test]
fn a_single_active_tenant_has_a_large_window() {
    let mut window = Window::new(Instant(0));
    for now in 0..u64::from(ALONE) {
        window.note_demand(3, Instant(now));
        assert!(window.is_open());
        window.on_send(1, Instant(now));
    }
    assert!(!window.is_open());
    window.release(ALONE / 2, Instant(900));
    assert!(window.is_open());
    window.note_demand(4, Instant(1_000));
    assert!(!window.is_open(), "shared now");
    window.note_demand(4, Instant(1_000) + WANTS_FOR);
    assert!(window.is_open(), "the other has been silent for long");
}

#[test]
fn a_single_active_tenant_keeps_a_switch_with_a_long_delay_busy() {
    let world = Loop { tenants: 1, ..Loop::new(10 * MILLI, Answered::Each, singly(10 * MICRO)) };
    check(world, 100_000, 85, 800.0..=1_600.0);
}

#[test]
fn a_large_message_closes_the_window_and_delays_the_next_large_message() {
    let at = |millis: u64| Instant(millis * MILLI);
    let mut window = Window::new(at(0));
    // The window of a single active tenant has 256 units.
    window.note_demand(3, at(0));
    window.on_send(63, at(0));
    assert!(window.is_open());
    window.on_send(64, at(0));
    assert!(!window.is_open(), "127 units of 256 are in flight, and the last message is large");
    window.release(126, at(50));
    assert!(!window.is_open(), "the large message is not done");
    window.release(1, at(51));
    assert!(window.is_open());
    // The large message took 51 ms, so the next large message waits for another 51 ms.
    assert_eq!(window.admit(64, at(51)), Err(at(102)));
    assert_eq!(window.admit(63, at(51)), Ok(()));
    assert_eq!(window.admit(64, at(102)), Ok(()));
    // A large message that takes 3 s delays the next large message by only 200 ms.
    window.on_send(1_000, at(1_000));
    window.release(1_000, at(4_000));
    assert_eq!(window.admit(64, at(4_000)), Err(at(4_200)));
    assert_eq!(window.admit(64, at(4_200)), Ok(()));
}
