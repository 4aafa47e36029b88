//! Finds the highest rate that a system under test sustains, by bisection (RFC 8456, section 5.1.3).

use crate::Error;
use crate::Verdict;
use crate::criterion::GENERATOR_BEHIND_CODE;
use crate::error::setting;
use crate::load::{Kind, Load};
use crate::measure::LAG_LIMIT_NS;
use crate::session::Session;
use report::pace::Pace;
use report::table::number;
use report::{Better, Environment, Finding, LatencySummary, Metric, Point, Results, Scalar, Table};
use std::time::Duration;

/// The condition that a rate must meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// At least 98 % of the requested messages are served within the run: the highest rate.
    Highest,
    /// Every message is sent on schedule and arrives in time: the highest loss-free rate.
    LossFree,
}

/// The parameters of the search.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// The message.
    pub kind: Kind,
    /// The number of tenants that share the rate.
    pub tenants: usize,
    /// The lowest rate of the search, in messages per second in total.
    pub low: f64,
    /// The highest rate of the search.
    pub high: f64,
    /// The search stops when the bounds differ by less than this: 0.02 is 2 %.
    pub resolution: f64,
    /// The time of each trial, in ms.
    pub trial_ms: u64,
    /// The condition for a rate.
    pub goal: Goal,
}

/// A trial of one rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// The requested rate, per second.
    pub asked: f64,
    /// The served rate.
    pub served: f64,
    /// Messages that never arrived, or that the system under test never read.
    pub lost: u64,
    /// Messages later than the load's limit.
    pub late: u64,
    /// The latency.
    pub latency: LatencySummary,
    /// The 99th percentile of the generator's own lag behind its schedule, in µs.
    pub lag_p99_us: f64,
    /// Whether the generator kept its own schedule. If not, the trial is no measurement of the system.
    pub generator_kept_up: bool,
    /// Whether the goal was met.
    pub passed: bool,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The highest rate that passed; `None` if even the lowest rate did not pass.
    pub rate: Option<f64>,
    /// Whether the highest rate of the search passed, so that the true limit is higher.
    pub at_upper_bound: bool,
    /// Every trial, in order.
    pub trials: Vec<Trial>,
    /// Whether the search was ended early.
    pub is_partial: bool,
}

impl Found {
    /// Whether a trial failed because of the generator, so that the rate is the generator's limit.
    #[must_use]
    pub fn limited_by_generator(&self) -> bool {
        let lowest_failed = self
            .trials
            .iter()
            .filter(|trial| !trial.passed)
            .min_by(|a, b| a.asked.total_cmp(&b.asked));
        lowest_failed.is_some_and(|trial| !trial.generator_kept_up)
    }

    /// The content of a result: the highest rate, and every trial.
    #[must_use]
    pub fn verdict(&self, search: &Search, system: &str, settings: &[(&str, Scalar)]) -> Verdict {
        let mut results = Results::new("bench search", 1, Environment::capture(&[]));
        let loss_free = search.goal == Goal::LossFree;
        let own: [(&str, Scalar); 6] = [
            ("message", search.kind.name().into()),
            ("tenants", search.tenants.into()),
            ("goal", if loss_free { "loss-free" } else { "highest" }.into()),
            ("low", search.low.into()),
            ("high", search.high.into()),
            ("trial_ms", search.trial_ms.into()),
        ];
        let settings = own.iter().chain(settings).cloned();
        results.settings.extend(settings.map(|(name, value)| (name.to_owned(), value)));
        let name = if loss_free { "loss_free_rate_per_s" } else { "highest_rate_per_s" };
        let mut found = Point::new(system, [("message", search.kind.name())]);
        let rate = self.rate.into_iter().collect();
        found.metrics.insert(name.to_owned(), Metric::new("1/s", Better::Higher, rate));
        results.points.push(found);
        results.points.extend(self.trials.iter().map(|trial| trial.point(system)));
        if self.limited_by_generator() {
            results.findings.push(Finding {
                code: GENERATOR_BEHIND_CODE.to_owned(),
                text: "the generator was the limit, not the system under test".to_owned(),
            });
        }
        if self.is_partial {
            let text = "interrupted: the rate found is the highest that had passed by then";
            results.mark_partial(text);
        } else if self.rate.is_none() {
            let text = format!("not even {}/s passed", number(search.low));
            results.findings.push(Finding { code: "no-rate".to_owned(), text });
        }
        let window = Duration::from_millis(search.trial_ms);
        Verdict { results, histograms: Vec::new(), criteria: Vec::new(), window }
    }

    /// The table of the trials, for stdout.
    #[must_use]
    pub fn table(&self) -> Table {
        let mut table = Table::new([
            "asked/s",
            "served/s",
            "lost",
            "late",
            "p50 µs",
            "p99 µs",
            "generator",
            "lag p99 µs",
            "",
        ]);
        for trial in &self.trials {
            table.row([
                number(trial.asked),
                number(trial.served),
                trial.lost.to_string(),
                trial.late.to_string(),
                number(trial.latency.p50_us),
                number(trial.latency.p99_us),
                if trial.generator_kept_up { "on time" } else { "behind" }.to_owned(),
                number(trial.lag_p99_us),
                if trial.passed { "passed" } else { "failed" }.to_owned(),
            ]);
        }
        table
    }
}

impl Trial {
    fn point(&self, system: &str) -> Point {
        let mut point = Point::new(system, [("asked", self.asked)]);
        for (name, unit, better, value) in [
            ("rate_per_s", "1/s", Better::Higher, self.served),
            ("lost", "", Better::Lower, self.lost as f64),
            ("late", "", Better::Lower, self.late as f64),
            ("p50_us", "µs", Better::Lower, self.latency.p50_us),
            ("p99_us", "µs", Better::Lower, self.latency.p99_us),
            ("lag_p99_us", "µs", Better::Neither, self.lag_p99_us),
            ("passed", "", Better::Higher, f64::from(u8::from(self.passed))),
        ] {
            point.metrics.insert(name.to_owned(), Metric::new(unit, better, vec![value]));
        }
        point.latency.insert("latency".to_owned(), self.latency.clone());
        point
    }
}

impl Search {
    /// Tries rates over an open session until the highest passing rate is known, or the session is stopped. Before each
    /// trial `talk` gets the rate and the longest time of the remaining trials.
    ///
    /// # Errors
    /// [`Error::Setting`] for invalid bounds, otherwise as [`Session::run`].
    pub fn run(&self, session: &mut Session, talk: &mut dyn FnMut(&str)) -> Result<Found, Error> {
        self.check()?;
        let mut trials: Vec<Trial> = Vec::new();
        let mut pace = Pace::new(self.most_trials() as usize, Duration::from_millis(self.trial_ms));
        let found = bisect(self.low, self.high, self.resolution, |asked| {
            talk(&format!("trying {}/s ({})", number(asked), pace.step()));
            let trial = self.attempt(session, asked)?;
            let passed = trial.passed;
            trials.push(trial);
            Ok::<_, Error>(passed)
        });
        match found {
            Ok((rate, at_upper_bound)) => {
                Ok(Found { rate, at_upper_bound, trials, is_partial: false })
            }
            Err(_) if session.is_asked_to_stop() && !trials.is_empty() => {
                let passed = trials.iter().filter(|trial| trial.passed).map(|trial| trial.asked);
                let rate = passed.reduce(f64::max);
                Ok(Found { rate, at_upper_bound: false, trials, is_partial: true })
            }
            Err(error) => Err(error),
        }
    }

    /// The largest number of trials.
    #[must_use]
    pub fn most_trials(&self) -> u32 {
        let halvings = ((self.high / self.low).ln() / self.resolution.ln_1p()).log2().ceil();
        // The number of halvings is negative, or NaN, if the bounds are invalid.
        2 + halvings.max(0.0) as u32
    }

    fn check(&self) -> Result<(), Error> {
        let low = self.low >= 1.0 && self.low.is_finite();
        setting(low, "lowest rate", self.low, "at least 1 message/s")?;
        let high = self.high > self.low && self.high <= 1e7;
        setting(high, "highest rate", self.high, "above the lowest and at most 10,000,000/s")?;
        let resolution = (0.001..=1.0).contains(&self.resolution);
        setting(resolution, "resolution", self.resolution, "0.001 to 1")
    }

    fn attempt(&self, session: &mut Session, asked: f64) -> Result<Trial, Error> {
        let load = Load::constant(self.kind, self.tenants, asked, self.trial_ms);
        // A rate that is not sustained leaves a backlog that grows with the trial. Messages that have not arrived soon
        // after the end of the trial count as lost. The ends of the trial are not cut off, because the backlog is at
        // the end.
        let load = Load { drain_ms: self.trial_ms / 50 + 20, ..load };
        let outcome = session.run(&load, &[])?;
        let counts = outcome.counts();
        let lost = counts.unanswered() + counts.blocked + counts.refused;
        let lag = outcome.lag.percentile(99.0).unwrap_or(0);
        let generator_kept_up = lag <= LAG_LIMIT_NS;
        let due = counts.sent + counts.blocked;
        let in_time = counts.received - counts.late;
        let passed = match self.goal {
            Goal::Highest => in_time as f64 >= 0.98 * due as f64,
            Goal::LossFree => lost == 0 && counts.late == 0 && generator_kept_up,
        };
        Ok(Trial {
            asked,
            served: outcome.rate(),
            lost,
            late: counts.late,
            latency: outcome.latency().summary(),
            lag_p99_us: lag as f64 / 1e3,
            generator_kept_up,
            passed,
        })
    }
}

/// The highest passing value between `low` and `high`, to within `resolution` (relative), and whether this value is
/// `high`. The search halves the ratio, not the difference, because rates span decades.
fn bisect<E>(
    low: f64,
    high: f64,
    resolution: f64,
    mut passes: impl FnMut(f64) -> Result<bool, E>,
) -> Result<(Option<f64>, bool), E> {
    if passes(high)? {
        return Ok((Some(high), true));
    }
    if !passes(low)? {
        return Ok((None, false));
    }
    let (mut good, mut bad) = (low, high);
    while bad / good > 1.0 + resolution {
        let middle = (good * bad).sqrt();
        if passes(middle)? {
            good = middle;
        } else {
            bad = middle;
        }
    }
    Ok((Some(good), false))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result, whether the result is the bound, and the number of trials.
    fn search(limit: f64) -> (Option<f64>, bool, usize) {
        let mut count = 0;
        let passes = |rate: f64| {
            count += 1;
            Ok::<_, ()>(rate <= limit)
        };
        let (rate, bound) = bisect(1000.0, 1_000_000.0, 0.02, passes).unwrap();
        (rate, bound, count)
    }

    #[test]
    fn bisection_ends_within_its_resolution() {
        for limit in [1000.0, 1001.0, 8_000.0, 123_456.0, 999_999.0] {
            let (rate, bound, count) = search(limit);
            let rate = rate.unwrap();
            assert!(rate <= limit && limit / rate <= 1.0201, "{rate} for {limit}");
            assert!(!bound && count < 14, "{count} trials");
            let search = Search {
                kind: Kind::Echo,
                tenants: 1,
                low: 1000.0,
                high: 1_000_000.0,
                resolution: 0.02,
                trial_ms: 1,
                goal: Goal::Highest,
            };
            assert!(count <= search.most_trials() as usize && search.most_trials() < 14);
        }
    }

    #[test]
    fn a_limit_outside_the_search_bounds_is_marked() {
        assert_eq!(search(2_000_000.0), (Some(1_000_000.0), true, 1));
        assert_eq!(search(10.0), (None, false, 2));
    }

    #[test]
    fn an_error_in_a_trial_ends_the_search() {
        assert_eq!(bisect(1.0, 2.0, 0.1, |_| Err("broken")), Err("broken"));
    }
}
