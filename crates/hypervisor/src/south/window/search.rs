//! The search for the knee: the least work in flight at which the switch does as much as it can.
//!
//! While messages wait, Weir compares the rate with the present limit and the rate with a lower or a higher limit, which
//! Weir tries for a few rounds. Weir keeps a lower limit if the rate falls by at most 5 %, and a higher limit if the rate rises by at least 10 %. How late answers are has no influence. BBR (draft-ietf-ccwg-bbr)
//! also measures the bottleneck's rate, and PCC Vivace (NSDI 2018) also compares rates. Both look for a sending rate;
//! this search looks for an amount of work in flight, because the limit is the length of a queue.
//!
//! A *round* ends when a message is answered that was sent after the round's beginning. Of some rounds the slowest is
//! left out, so that a stall of the host spoils one round and not the comparison. A round counts if messages waited at
//! some time of the round. Tenants that send in bursts fill a large window again and again, but do not always have a
//! message that waits: if only rounds with waiting messages all the time counted, the window would stay large.
//!
//! While no message waits for the window, the tenants' own rate bounds the queue, and the limit is at least the work of
//! 3 ms at this rate. When messages begin to wait, the search begins with this limit.
//!
//! Rates are compared only in the long run, but a switch that runs dry shows at once: all answers that were due come
//! together. Whatever the reason is (a switch that works in batches, a host that runs each process for some
//! milliseconds), more work has to be in flight, and the limit grows.
//!
//! ```text
//!   Rest ──▶ Fewer: lower limit ──costs throughput──▶ Rest ──▶ More: higher limit ──does not pay──▶ Rest (longer)
//!             └──costs nothing──▶ keep, go on          └── the switch runs dry ──▶ grow ──▶ Rest     │
//!                                                                              keep, go on ◀──pays──┘
//! ```

use crate::time::{Duration, Instant, nanos};

/// One unit being served, one waiting, one on its way: with less the switch idles between an answer and what follows.
/// With four, a tenant's message would wait behind more than three services' worth of a neighbour's.
pub(super) const LEAST: u32 = 3;
const MOST: u32 = 2048;
/// Small, and quickly found to be too small: a limit that is too high shows only when messages wait.
const INITIAL: u32 = 16;
/// Rounds that make a rate.
const ROUNDS: usize = 6;
/// Units in a round, at least: a round of three units is too short to be timed.
const ROUND_UNITS: u32 = 8;
/// Rounds in a row in which the switch ran dry before the limit grows. One such round may be the hypervisor's own
/// stall.
const DRY_ROUNDS: u32 = 3;
/// A lower limit may cost this fraction of the rate, in percent.
const MAY_COST: u64 = 5;
/// Twice the limit must bring this fraction of the rate, in percent. Some switches have work beside messages, for
/// example a look at each port. Their rate rises with the limit, at first much, then less and less. For such a switch
/// the two numbers together mean some nine tenths of its full rate.
const MUST_PAY: u64 = 10;
/// Rounds between two comparisons, and the longest time between them.
const SHORTEST_REST: u32 = 8;
const LONGEST_REST: u32 = 256;
const LONGEST_REST_TIME: Duration = Duration::from_millis(500);
/// While no message waits, the work of this time may be in flight: the tenants' own rate bounds the queue in front of
/// the switch, and a smaller limit would only bring more barriers.
const SPARE: Duration = Duration::from_millis(3);
/// The time over which that work is measured.
const SPARE_MEASURED: Duration = Duration::from_millis(10);
/// The most of such work, in units.
const MOST_SPARE: u32 = 256;

/// The search.
#[derive(Debug)]
pub(super) struct Search {
    /// The knee as far as it is known, in units of work.
    limit: u32,
    /// What may be in flight in any case.
    floor: u32,
    /// What may be in flight while no message waits.
    spare: Spare,
    phase: Phase,
    /// By how much a lower limit is lower. Large steps first: at the beginning the limit may be far too high.
    step: Step,
    round: Round,
    /// Messages wait because the window is closed.
    waiting: bool,
    /// Whether the round to come is still under the old limit.
    is_settling: bool,
    rates: Rates,
    /// The rate under `limit`, with which others are compared.
    base: u64,
    dry_rounds: u32,
    rest: Rest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Under the limit itself.
    Rest,
    /// Under a lower limit.
    Fewer(u32),
    /// Under a higher limit.
    More(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Quarter,
    Half,
    TwoThirds,
}

#[derive(Debug)]
struct Round {
    start: Instant,
    served: u32,
    /// Messages waited all the time.
    is_full: bool,
    /// Messages waited at some time.
    has_waited: bool,
    ran_dry: bool,
}

/// The last rounds: units and nanoseconds of each.
#[derive(Debug, Default)]
struct Rates {
    last: [(u32, u64); ROUNDS],
    count: usize,
}

/// Work in flight that is allowed while no message waits.
#[derive(Debug)]
struct Spare {
    limit: u32,
    /// The beginning of the measurement, and the units of work since then.
    since: Instant,
    served: u32,
}

#[derive(Debug)]
struct Rest {
    since: Instant,
    rounds: u32,
    /// How many rounds it takes.
    long: u32,
    /// Whether a higher limit is tried next, not a lower one.
    then_more: bool,
}

impl Search {
    pub(super) fn new(now: Instant) -> Self {
        Search {
            limit: INITIAL,
            floor: LEAST,
            spare: Spare::new(now),
            phase: Phase::Rest,
            step: Step::Quarter,
            round: Round::new(now),
            waiting: false,
            is_settling: false,
            rates: Rates::default(),
            base: 0,
            dry_rounds: 0,
            rest: Rest { since: now, rounds: 0, long: 0, then_more: true },
        }
    }

    /// The limit now, in units of work.
    pub(super) fn limit(&self) -> u32 {
        let found = match self.phase {
            Phase::Rest => self.limit,
            Phase::Fewer(limit) | Phase::More(limit) => limit,
        };
        found.max(self.floor).max(self.spare.limit)
    }

    /// The work that the switch does in this time, in units, if messages wait and the rate is known.
    pub(super) fn done_in(&self, time: Duration) -> Option<u32> {
        (self.waiting && self.base > 0).then(|| {
            let units = self.base.saturating_mul(nanos(time)) / nanos(Duration::from_secs(1));
            u32::try_from(units).unwrap_or(u32::MAX)
        })
    }

    /// From now on so much may be in flight in any case.
    pub(super) fn set_floor(&mut self, floor: u32, now: Instant) {
        if self.floor != floor {
            self.floor = floor;
            self.turn_to(Phase::Rest, now);
        }
    }

    /// A message waits because the window is closed.
    pub(super) fn note_waiting(&mut self) {
        self.waiting = true;
    }

    /// No message waits: the rate is the tenants' and says nothing of the switch.
    pub(super) fn note_drained(&mut self) {
        self.waiting = false;
        self.round.is_full = false;
    }

    /// Learns from the answer to a message that was sent at `sent`. The answer shows that so many units of work are
    /// done, and maybe that the switch has run dry.
    pub(super) fn on_answer(&mut self, sent: Instant, served: u32, ran_dry: bool, now: Instant) {
        self.round.served += served;
        self.spare.served += served;
        self.round.is_full &= self.waiting;
        self.round.has_waited |= self.waiting;
        self.round.ran_dry |= ran_dry && self.waiting;
        if sent < self.round.start || self.round.served < ROUND_UNITS || now == self.round.start {
            return;
        }
        let round = core::mem::replace(&mut self.round, Round::new(now));
        if round.is_full {
            // The search begins with the work that was allowed until now.
            self.limit = self.limit.max(self.spare.limit);
        }
        self.spare.on_round(round.is_full, now);
        self.dry_rounds = if round.ran_dry { self.dry_rounds + 1 } else { 0 };
        if self.dry_rounds >= DRY_ROUNDS {
            self.ran_dry(now);
        } else if !round.has_waited {
            // Under a higher limit all that waited has left. It pays if that was quicker.
            if let Phase::More(trial) = self.phase {
                self.rates.add(round.served, now.nanos_since(round.start));
                let rate = self.rates.rate(1).unwrap_or_default();
                self.judge_more(trial, rate);
            }
            self.turn_to(Phase::Rest, now);
        } else if self.is_settling {
            self.is_settling = false;
        } else {
            self.rates.add(round.served, now.nanos_since(round.start));
            self.rest.rounds += 1;
            self.compare(now);
        }
    }

    /// The limit is too low.
    fn ran_dry(&mut self, now: Instant) {
        if let Phase::Fewer(_) = self.phase {
            self.keep_from_fewer(now);
        } else {
            self.limit = more(self.limit());
            self.step = Step::Half;
            self.turn_to(Phase::Rest, now);
        }
    }

    /// Fewer would cost throughput.
    fn keep_from_fewer(&mut self, now: Instant) {
        // With the finest step the other direction is next.
        self.rest.then_more = self.step == Step::TwoThirds;
        self.step = self.step.finer();
        self.turn_to(Phase::Rest, now);
    }

    /// Goes on to the next phase if enough is known.
    fn compare(&mut self, now: Instant) {
        let needed = if self.step == Step::Quarter { ROUNDS / 2 + 1 } else { ROUNDS };
        let Some(rate) = self.rates.rate(needed) else { return };
        match self.phase {
            Phase::Rest => {
                // Another rate means that the switch, or what it is asked, has changed.
                if rate > self.base.saturating_mul(3) / 2 || rate < self.base * 2 / 3 {
                    self.rest.long = self.rest.long.min(SHORTEST_REST);
                }
                if self.rest.is_over(now) {
                    (self.base, self.limit) = (rate, self.limit());
                    let fewer = self.fewer(self.limit);
                    let phase = match self.rest.then_more || fewer == self.limit {
                        true => Phase::More(more(self.limit)),
                        false => Phase::Fewer(fewer),
                    };
                    self.turn_to(phase, now);
                }
            }
            Phase::Fewer(trial) if rate >= self.base - self.base / 100 * MAY_COST => {
                (self.limit, self.base) = (trial, rate);
                self.rest.long = SHORTEST_REST;
                match self.fewer(trial) {
                    fewer if fewer < trial => self.turn_to(Phase::Fewer(fewer), now),
                    _ => self.turn_to(Phase::Rest, now),
                }
            }
            Phase::Fewer(_) => self.keep_from_fewer(now),
            Phase::More(trial) => {
                let next = match self.judge_more(trial, rate) {
                    true => Phase::More(more(trial)),
                    false => Phase::Rest,
                };
                self.turn_to(next, now);
            }
        }
    }

    /// Keeps a higher limit if it pays; says whether it does.
    fn judge_more(&mut self, trial: u32, rate: u64) -> bool {
        let pays = trial > self.limit && rate >= self.base + self.base / 100 * MUST_PAY;
        if pays {
            (self.limit, self.base) = (trial, rate);
            self.rest.long = SHORTEST_REST;
        } else {
            self.rest.then_more = false;
            self.rest.long = (self.rest.long * 2).clamp(SHORTEST_REST, LONGEST_REST);
        }
        pays
    }

    /// The next lower limit.
    fn fewer(&self, limit: u32) -> u32 {
        self.step.of(limit).max(self.floor).min(limit)
    }

    fn turn_to(&mut self, phase: Phase, now: Instant) {
        self.phase = phase;
        self.is_settling = true;
        self.dry_rounds = 0;
        self.rates.clear();
        (self.rest.since, self.rest.rounds) = (now, 0);
    }
}

/// The next higher limit.
fn more(limit: u32) -> u32 {
    (limit * 2).min(MOST)
}

impl Step {
    fn of(self, limit: u32) -> u32 {
        match self {
            Step::Quarter => limit / 4,
            Step::Half => limit / 2,
            Step::TwoThirds => limit * 2 / 3,
        }
    }

    fn finer(self) -> Self {
        match self {
            Step::Quarter => Step::Half,
            Step::Half | Step::TwoThirds => Step::TwoThirds,
        }
    }
}

impl Round {
    fn new(start: Instant) -> Self {
        Round { start, served: 0, is_full: true, has_waited: false, ran_dry: false }
    }
}

impl Spare {
    fn new(now: Instant) -> Self {
        Spare { limit: 0, since: now, served: 0 }
    }

    /// A round ended. If messages waited throughout the round, the search alone decides.
    fn on_round(&mut self, was_full: bool, now: Instant) {
        let passed = now - self.since;
        if was_full {
            *self = Spare::new(now);
        } else if passed >= SPARE_MEASURED {
            let units = u64::from(self.served) * nanos(SPARE) / nanos(passed);
            let limit = u32::try_from(units).unwrap_or(MOST_SPARE).min(MOST_SPARE);
            *self = Spare { limit, ..Spare::new(now) };
        }
    }
}

impl Rates {
    fn add(&mut self, units: u32, took: u64) {
        self.last[self.count % ROUNDS] = (units, took.max(1));
        self.count += 1;
    }

    fn clear(&mut self) {
        self.count = 0;
    }

    /// The rate of the last rounds in units per second, once there are so many. The slowest of several does not count.
    fn rate(&self, needed: usize) -> Option<u64> {
        let rounds = &self.last[..self.count.min(ROUNDS)];
        let sum =
            rounds.iter().fold((0, 0), |sum, round| (sum.0 + u64::from(round.0), sum.1 + round.1));
        let pace = |(units, took): &&(u32, u64)| took / u64::from((*units).max(1));
        let (units, took) = match rounds.iter().max_by_key(pace) {
            Some(slowest) if rounds.len() > 2 => (sum.0 - u64::from(slowest.0), sum.1 - slowest.1),
            _ => sum,
        };
        (rounds.len() >= needed).then(|| units * 1_000_000_000 / took.max(1))
    }
}

impl Rest {
    fn is_over(&self, now: Instant) -> bool {
        self.rounds >= self.long || now - self.since >= LONGEST_REST_TIME
    }
}
