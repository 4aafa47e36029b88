//! Computes the intended send time of each message from an arrival process. The functions are pure:
//! all times are numbers of nanoseconds.

use fastrand::Rng;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The spacing of a stream's intended send times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// The messages are evenly spaced, at `rate` messages per second.
    Constant {
        /// Messages per second.
        rate: f64,
    },
    /// The gaps are distributed exponentially, with a mean rate of `rate` messages per second.
    Poisson {
        /// Messages per second.
        rate: f64,
    },
    /// The stream sends `count` messages at once, every `every_us` microseconds (perfbench's send
    /// interval).
    Burst {
        /// Messages in a burst.
        count: u32,
        /// Microseconds from the start of a burst to the start of the next burst.
        every_us: f64,
    },
    /// The messages are evenly spaced for `on_ms`, then the stream is silent for `off_ms`, and so
    /// on.
    OnOff {
        /// Messages per second during `on_ms`.
        rate: f64,
        /// The time with messages, in milliseconds.
        on_ms: f64,
        /// The time without messages, in milliseconds.
        off_ms: f64,
    },
    /// The rate changes linearly from `from` to `to` over `over_s` seconds, and then stays at `to`.
    Ramp {
        /// Messages per second at the start.
        from: f64,
        /// Messages per second at the end.
        to: f64,
        /// The time of the change, in seconds.
        over_s: f64,
    },
    /// The rate changes in steps. Each step has its time (seconds since the stream's start) and its
    /// rate (messages per second).
    Steps {
        /// The steps in rising order of time. The first time is 0. A rate of 0 means that no
        /// messages are sent.
        steps: Vec<(f64, f64)>,
    },
    /// The send times are recorded, in nanoseconds since the stream's start, in rising order.
    Trace {
        /// The times.
        #[serde(default)]
        times_ns: Vec<u64>,
        /// A file with the times, in place of the list; see [`crate::recorded::read`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<PathBuf>,
    },
    /// The stream sends as fast as the peer reads. There is no schedule, so the intended time is
    /// the actual time.
    Saturate,
    /// The stream keeps `outstanding` messages unanswered: a closed loop. With 1 this is cbench's
    /// latency mode.
    Closed {
        /// Messages in flight.
        outstanding: u32,
    },
}

impl Arrivals {
    /// The mean rate in messages per second over the first `seconds`; `None` without a schedule.
    #[must_use]
    pub fn mean_rate(&self, seconds: f64) -> Option<f64> {
        match self {
            Self::Constant { rate } | Self::Poisson { rate } => Some(*rate),
            Self::Burst { count, every_us } => Some(f64::from(*count) * 1e6 / every_us),
            Self::OnOff { rate, on_ms, off_ms } => Some(rate * on_ms / (on_ms + off_ms)),
            Self::Ramp { .. } | Self::Steps { .. } | Self::Trace { .. } => {
                let mut schedule = Schedule::new(self.clone(), 0.0, 1);
                let limit = (seconds * 1e9) as u64;
                let count =
                    std::iter::from_fn(|| schedule.next()).take_while(|&t| t < limit).count();
                Some(count as f64 / seconds)
            }
            Self::Saturate | Self::Closed { .. } => None,
        }
    }

    /// The highest rate in messages per second over the first `seconds`; `None` without a schedule.
    #[must_use]
    pub fn highest_rate(&self, seconds: f64) -> Option<f64> {
        match self {
            Self::OnOff { rate, .. } => Some(*rate),
            Self::Ramp { from, to, .. } => Some(from.max(*to)),
            Self::Steps { steps } => steps.iter().map(|step| step.1).max_by(f64::total_cmp),
            _ => self.mean_rate(seconds),
        }
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// A sentence that names the wrong field and its range.
    pub fn check(&self) -> Result<(), String> {
        let rate_ok = |name: &str, rate: f64| {
            if rate.is_finite() && rate > 0.0 && rate <= 10_000_000.0 {
                Ok(())
            } else {
                Err(format!("{name} is {rate}: must be above 0 and at most 10,000,000 messages/s"))
            }
        };
        let positive = |name: &str, value: f64| {
            if value.is_finite() && value > 0.0 {
                Ok(())
            } else {
                Err(format!("{name} is {value}: must be above 0"))
            }
        };
        match self {
            Self::Constant { rate } | Self::Poisson { rate } => rate_ok("rate", *rate),
            Self::Burst { count, every_us } => {
                if *count == 0 || *count > 1_000_000 {
                    return Err(format!("burst count is {count}: must be 1 to 1,000,000"));
                }
                positive("every_us", *every_us)
            }
            Self::OnOff { rate, on_ms, off_ms } => {
                rate_ok("rate", *rate)?;
                positive("on_ms", *on_ms)?;
                positive("off_ms", *off_ms)
            }
            Self::Ramp { from, to, over_s } => {
                rate_ok("from", *from)?;
                rate_ok("to", *to)?;
                positive("over_s", *over_s)
            }
            Self::Steps { steps } => {
                if steps.first().is_none_or(|&(at, _)| at != 0.0) {
                    return Err("the first step must be at 0 seconds".to_owned());
                }
                if !steps.is_sorted_by(|a, b| a.0 < b.0) {
                    return Err("steps must be in rising order of time".to_owned());
                }
                steps.iter().filter(|step| step.1 != 0.0).try_for_each(|&(_, r)| rate_ok("rate", r))
            }
            Self::Trace { file: Some(file), .. } => {
                Err(format!("the trace {} can only be named in a scenario file", file.display()))
            }
            Self::Trace { times_ns, .. } if times_ns.is_sorted() => Ok(()),
            Self::Trace { .. } => Err("trace times must be in rising order".to_owned()),
            Self::Saturate => Ok(()),
            Self::Closed { outstanding } => {
                if (1..=65_536).contains(outstanding) {
                    Ok(())
                } else {
                    Err(format!("outstanding is {outstanding}: must be 1 to 65,536"))
                }
            }
        }
    }
}

/// A running arrival process, which returns intended times in nanoseconds since the stream's start.
///
/// A time is computed from the message's number, not by adding gaps, so the times do not drift.
#[derive(Clone, Debug)]
pub struct Schedule {
    arrivals: Arrivals,
    random: Rng,
    /// The number of messages so far.
    count: u64,
    /// The last time in ns, for processes that must add gaps.
    clock: f64,
    /// A shift in ns, so that messages of tenants with the same rate do not leave at the same
    /// times.
    phase: f64,
    step: usize,
}

impl Schedule {
    /// `phase` (0 to 1) shifts an evenly spaced process by that part of its gap.
    #[must_use]
    pub fn new(arrivals: Arrivals, phase: f64, seed: u64) -> Self {
        let gap = match &arrivals {
            Arrivals::Constant { rate } | Arrivals::OnOff { rate, .. } => 1e9 / rate,
            Arrivals::Burst { every_us, .. } => every_us * 1e3,
            _ => 0.0,
        };
        let random = Rng::with_seed(seed);
        Self { arrivals, random, count: 0, clock: 0.0, phase: phase * gap, step: 0 }
    }

    /// The next message's intended time; `None` if the process has ended or has no schedule.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "an infinite schedule is no collection")]
    pub fn next(&mut self) -> Option<u64> {
        let n = self.count as f64;
        let time = match &self.arrivals {
            Arrivals::Constant { rate } => n * 1e9 / rate + self.phase,
            Arrivals::Poisson { rate } => {
                self.clock -= (1.0 - self.random.f64()).ln() * 1e9 / rate;
                self.clock
            }
            Arrivals::Burst { count, every_us } => {
                (self.count / u64::from((*count).max(1))) as f64 * every_us * 1e3 + self.phase
            }
            Arrivals::OnOff { rate, on_ms, off_ms } => {
                let per_period = (rate * on_ms / 1e3).max(1.0).floor() as u64;
                let (period, place) = (self.count / per_period, self.count % per_period);
                period as f64 * (on_ms + off_ms) * 1e6 + place as f64 * 1e9 / rate + self.phase
            }
            Arrivals::Ramp { from, to, over_s } => ramp_time(n, *from, *to, *over_s),
            Arrivals::Steps { steps } => {
                let (time, step) = step_time(steps, self.clock, self.step)?;
                self.step = step;
                self.clock = time + 1e9 / steps.get(step)?.1;
                time
            }
            Arrivals::Trace { times_ns, .. } => {
                *times_ns.get(usize::try_from(self.count).ok()?)? as f64
            }
            Arrivals::Saturate | Arrivals::Closed { .. } => return None,
        };
        self.count += 1;
        Some(time as u64)
    }
}

/// The time in ns of message `n` of a linear ramp: at this time the integral of the rate is `n`.
fn ramp_time(n: f64, from: f64, to: f64, over_s: f64) -> f64 {
    let slope = (to - from) / over_s;
    let in_ramp = (from + to) / 2.0 * over_s;
    let seconds = if n >= in_ramp {
        over_s + (n - in_ramp) / to
    } else if slope == 0.0 {
        n / from
    } else {
        ((from * from + 2.0 * slope * n).max(0.0).sqrt() - from) / slope
    };
    seconds * 1e9
}

/// The first time at or after `earliest` at which the steps allow a message, and its step.
fn step_time(steps: &[(f64, f64)], earliest: f64, mut step: usize) -> Option<(f64, usize)> {
    let mut time = earliest;
    loop {
        let (_, rate) = steps.get(step)?;
        match steps.get(step + 1) {
            Some(&(next_at, _)) if time >= next_at * 1e9 || *rate == 0.0 => {
                // If a gap of a slow step reaches into the next step, the gap ends at the start of
                // the next step.
                time = next_at * 1e9;
                step += 1;
            }
            None if *rate == 0.0 => return None,
            _ => return Some((time, step)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(arrivals: Arrivals, count: usize) -> Vec<u64> {
        let mut schedule = Schedule::new(arrivals, 0.0, 7);
        std::iter::from_fn(|| schedule.next()).take(count).collect()
    }

    #[test]
    fn the_highest_rate_of_an_arrival_process_is_its_peak_rate() {
        let steps = vec![(0.0, 500.0), (1.0, 0.0), (2.0, 20.0)];
        for (arrivals, want) in [
            (Arrivals::Constant { rate: 40.0 }, Some(40.0)),
            (Arrivals::Burst { count: 3, every_us: 100.0 }, Some(30_000.0)),
            (Arrivals::OnOff { rate: 10_000.0, on_ms: 0.3, off_ms: 0.7 }, Some(10_000.0)),
            (Arrivals::Ramp { from: 5.0, to: 1000.0, over_s: 1.0 }, Some(1000.0)),
            (Arrivals::Steps { steps }, Some(500.0)),
            (Arrivals::Saturate, None),
        ] {
            assert_eq!(arrivals.highest_rate(10.0), want, "{arrivals:?}");
        }
    }

    #[test]
    fn each_arrival_process_gives_the_expected_send_times() {
        let us = |list: &[u64]| list.iter().map(|t| t * 1000).collect::<Vec<_>>();
        for (arrivals, want) in [
            (Arrivals::Constant { rate: 40_000.0 }, us(&[0, 25, 50, 75])),
            (Arrivals::Burst { count: 3, every_us: 100.0 }, us(&[0, 0, 0, 100, 100, 100, 200])),
            (
                Arrivals::OnOff { rate: 10_000.0, on_ms: 0.3, off_ms: 0.7 },
                us(&[0, 100, 200, 1000, 1100, 1200, 2000]),
            ),
            (
                Arrivals::Steps { steps: vec![(0.0, 10_000.0), (0.00025, 0.0), (0.001, 20_000.0)] },
                us(&[0, 100, 200, 1000, 1050, 1100]),
            ),
            (Arrivals::Trace { times_ns: us(&[5, 9, 9]), file: None }, us(&[5, 9, 9])),
            (Arrivals::Ramp { from: 1000.0, to: 1000.0, over_s: 1.0 }, us(&[0, 1000, 2000])),
            (Arrivals::Saturate, vec![]),
        ] {
            assert_eq!(arrivals.check(), Ok(()), "{arrivals:?}");
            assert_eq!(times(arrivals.clone(), want.len().max(1)), want, "{arrivals:?}");
        }
    }

    #[test]
    fn a_schedule_ends_after_a_trace_or_after_a_last_step_of_rate_zero() {
        assert_eq!(times(Arrivals::Trace { times_ns: vec![1, 2], file: None }, 10).len(), 2);
        let steps = vec![(0.0, 1000.0), (0.0025, 0.0)];
        assert_eq!(times(Arrivals::Steps { steps }, 10), [0, 1_000_000, 2_000_000]);
    }

    #[test]
    fn a_ramp_sends_its_mean_rate_times_the_duration() {
        let ramp = Arrivals::Ramp { from: 1000.0, to: 3000.0, over_s: 2.0 };
        let within = times(ramp, 10_000).iter().filter(|&&t| t < 2_000_000_000).count();
        assert!((3999..=4001).contains(&within), "{within}");
    }

    #[test]
    fn poisson_gaps_have_the_expected_mean_and_standard_deviation() {
        let list = times(Arrivals::Poisson { rate: 100_000.0 }, 100_000);
        let gaps: Vec<f64> = list.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
        let mean = report::stats::mean(&gaps).unwrap();
        let deviation = report::stats::sample_variance(&gaps).unwrap().sqrt();
        assert!((mean / 10_000.0 - 1.0).abs() < 0.02, "mean gap {mean}");
        assert!((deviation / 10_000.0 - 1.0).abs() < 0.03, "deviation {deviation}");
    }

    #[test]
    fn a_constant_rate_schedule_has_no_drift_after_an_hour() {
        let mut schedule = Schedule::new(Arrivals::Constant { rate: 30_000.0 }, 0.0, 0);
        schedule.count = 30_000 * 3600;
        assert_eq!(schedule.next(), Some(3_600_000_000_000));
    }

    #[test]
    fn errors_for_invalid_arrival_parameters_name_the_parameter() {
        for (arrivals, word) in [
            (Arrivals::Constant { rate: 0.0 }, "rate"),
            (Arrivals::Poisson { rate: f64::NAN }, "rate"),
            (Arrivals::Burst { count: 0, every_us: 1.0 }, "count"),
            (Arrivals::Burst { count: 1, every_us: -1.0 }, "every_us"),
            (Arrivals::Steps { steps: vec![(1.0, 5.0)] }, "first step"),
            (Arrivals::Closed { outstanding: 0 }, "outstanding"),
        ] {
            let error = arrivals.check().unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }
}
