//! The criteria of a measurement: whether each is met, not met, or undecided.

use report::table::number;
use report::{Finding, Metric, Point, Results, Table};

/// The result of a criterion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// The criterion is met.
    Met,
    /// The criterion is not met.
    NotMet,
    /// The measurement does not decide: the generator was late, or a part was not measured.
    Undecided,
}

/// A required figure, and its measured value.
#[derive(Clone, Debug, PartialEq)]
pub struct Criterion {
    /// The name of the figure.
    pub name: String,
    /// The measured value.
    pub measured: f64,
    /// The limit.
    pub limit: f64,
    /// Whether the limit is a lower limit, not an upper limit.
    pub at_least: bool,
    /// Whether the measured value can be trusted.
    pub is_valid: bool,
}

impl Criterion {
    /// `measured` must not be above `limit`; `None` is not met.
    pub fn at_most(name: impl Into<String>, measured: Option<f64>, limit: f64) -> Self {
        // A value that could not be measured is not met.
        let measured = measured.unwrap_or(f64::NAN);
        Self { name: name.into(), measured, limit, at_least: false, is_valid: true }
    }

    /// `measured` must not be below `limit`; `None` is not met.
    pub fn at_least(name: impl Into<String>, measured: Option<f64>, limit: f64) -> Self {
        Self { at_least: true, ..Self::at_most(name, measured, limit) }
    }

    /// Whether the criterion is met.
    #[must_use]
    pub fn ruling(&self) -> Ruling {
        let is_met =
            if self.at_least { self.measured >= self.limit } else { self.measured <= self.limit };
        match (self.is_valid, is_met) {
            (false, _) => Ruling::Undecided,
            (true, true) => Ruling::Met,
            (true, false) => Ruling::NotMet,
        }
    }
}

/// Makes the criteria from the points, which are in the order of the cases.
pub type Judge = Box<dyn Fn(&[Point]) -> Vec<Criterion>>;

/// Judges results. The delay of a late generator is a part of the measured latencies. A criterion is undecided if its
/// ruling changes when this delay is subtracted from the latencies of late runs, at one point or at all points. A
/// criterion is undecided if its value depends on late runs at all, and the generator was later than
/// [`GROSSLY_LATE_US`] or the figure has no latency of each run. If the measurement ended early, all criteria are
/// undecided.
pub(crate) fn judge(results: &Results, judge: &Judge) -> Vec<Criterion> {
    let points = &results.points;
    let mut criteria = judge(points);
    let unusable = judge(&points.iter().map(without_unusable).collect::<Vec<_>>());
    let late = (0..points.len()).filter(|&at| is_late(&points[at]));
    let one_by_one = late.map(|late| quicker(points, |at| at == late));
    let quicker: Vec<Vec<Criterion>> =
        one_by_one.chain([quicker(points, |_| true)]).map(|points| judge(&points)).collect();
    for (at, criterion) in criteria.iter_mut().enumerate() {
        let same_value = |other: &Criterion| {
            (criterion.measured.to_bits(), criterion.limit.to_bits())
                == (other.measured.to_bits(), other.limit.to_bits())
        };
        let same_ruling = |others: &Vec<Criterion>| {
            others.get(at).is_some_and(|other| other.ruling() == criterion.ruling())
        };
        criterion.is_valid = !results.is_partial()
            && unusable.get(at).is_some_and(same_value)
            && quicker.iter().all(same_ruling);
    }
    criteria
}

/// Whether the generator was late in a run of the point.
fn is_late(point: &Point) -> bool {
    point.mean(GENERATOR_BEHIND).is_some_and(|runs| runs > 0.0)
}

/// The point without the figures that a late generator makes unusable. The generator's own lag stays in the point,
/// because a criterion can judge that lag.
fn without_unusable(point: &Point) -> Point {
    let mut point = point.clone();
    if is_late(&point) {
        let lags = lags(&point);
        if lags.is_empty() || lags.iter().any(|&lag| lag > GROSSLY_LATE_US) {
            point.metrics.retain(|name, _| name.starts_with("lag_"));
        }
        point.latency.clear();
        point.tenants.clear();
    }
    point
}

/// The points. At the chosen late points, each latency is smaller by the generator's lag in that run.
fn quicker(points: &[Point], is_chosen: impl Fn(usize) -> bool) -> Vec<Point> {
    let mut points = points.to_vec();
    for (_, point) in points.iter_mut().enumerate().filter(|(at, it)| is_chosen(*at) && is_late(it))
    {
        let lags = lags(point);
        let latencies = point.metrics.iter_mut();
        for (_, metric) in latencies.filter(|(name, _)| is_latency(name)) {
            let samples = metric.samples.iter().zip(lags.iter().cycle());
            let samples = samples.map(|(sample, lag)| (sample - lag).max(0.0)).collect();
            *metric = Metric::new(&metric.unit, metric.better, samples);
        }
    }
    points
}

/// The generator's lag in each run.
fn lags(point: &Point) -> Vec<f64> {
    point.metrics.get(LAG).map(|lag| lag.samples.clone()).unwrap_or_default()
}

/// Whether the metric is a latency of messages, for example `p50_us` or `echo_p99_us`.
fn is_latency(metric: &str) -> bool {
    metric.ends_with("_us") && !metric.starts_with("lag_") && metric != "spin_us"
}

/// A finding about each criterion that is not met, or not decided.
pub(crate) fn findings(criteria: &[Criterion]) -> impl Iterator<Item = Finding> {
    criteria.iter().filter_map(|criterion| {
        let Criterion { name, .. } = criterion;
        let (measured, limit) = (number(criterion.measured), number(criterion.limit));
        let (code, why) = match criterion.ruling() {
            Ruling::Met => return None,
            Ruling::NotMet => (NOT_MET, ""),
            Ruling::Undecided => (UNDECIDED, "; undecided, because the generator was late"),
        };
        let text = format!("{name}: measured {measured}, limit {limit}{why}");
        Some(Finding { code: code.to_owned(), text })
    })
}

/// The criteria with their results, for stdout.
pub(crate) fn table(criteria: &[Criterion]) -> Table {
    let mut table = Table::new(["criterion", "measured", "limit", ""]);
    for criterion in criteria {
        let sign = if criterion.at_least { "≥" } else { "≤" };
        let ruling = match criterion.ruling() {
            Ruling::Met => "met",
            Ruling::NotMet => "NOT MET",
            Ruling::Undecided => "undecided",
        };
        table.row([
            criterion.name.clone(),
            number(criterion.measured),
            format!("{sign} {}", number(criterion.limit)),
            ruling.to_owned(),
        ]);
    }
    table
}

/// The result of all criteria together. Without criteria, figures with the delay of a late generator are undecided.
pub(crate) fn overall(results: &Results, criteria: &[Criterion]) -> Ruling {
    let is_there = |ruling| criteria.iter().any(|criterion| criterion.ruling() == ruling);
    let says_nothing =
        |finding: &Finding| [GENERATOR_BEHIND_CODE, UNDECIDED].contains(&finding.code.as_str());
    if is_there(Ruling::NotMet) || !results.findings.iter().all(says_nothing) {
        Ruling::NotMet
    } else if is_there(Ruling::Undecided) || (criteria.is_empty() && !results.findings.is_empty()) {
        Ruling::Undecided
    } else {
        Ruling::Met
    }
}

/// The lag of the generator, in microseconds, above which no figure is usable.
const GROSSLY_LATE_US: f64 = 10_000.0;
/// The metric with the generator's lag in each run.
const LAG: &str = "lag_p99_us";
/// The metric that counts the runs in which the generator was behind.
pub(crate) const GENERATOR_BEHIND: &str = "generator_behind";
/// The codes of findings.
const NOT_MET: &str = "criterion-not-met";
const UNDECIDED: &str = "criterion-undecided";
pub(crate) const GENERATOR_BEHIND_CODE: &str = "generator-behind";

#[cfg(test)]
mod tests {
    use super::*;
    use report::{Better, Environment, Metric};

    fn point(system: &str, p50: f64, lag: f64, late_runs: f64) -> Point {
        let mut point = Point::new(system, [("tenants", 1.0)]);
        for (name, value) in [("p50_us", p50), ("lag_p99_us", lag), (GENERATOR_BEHIND, late_runs)] {
            point.metrics.insert(name.to_owned(), Metric::new("", Better::Lower, vec![value]));
        }
        point
    }

    /// Checks the results of a ratio, of a figure of `weir` alone, of the lag, and of all criteria together.
    #[track_caller]
    fn check(relay: Point, weir: Point, is_partial: bool, expected: [Ruling; 3], overall: Ruling) {
        let mut results = Results::new("t", 1, Environment::default());
        if is_partial {
            results.mark_partial("ended after 1 of 2 runs");
        }
        results.points = vec![relay, weir];
        let of = |points: &[Point], index: usize, metric: &str| points.get(index)?.mean(metric);
        let asked: Judge = Box::new(move |points| {
            let ratio = of(points, 1, "p50_us").zip(of(points, 0, "p50_us"));
            vec![
                Criterion::at_most("ratio", ratio.map(|(of, to)| of / to), 1.5),
                Criterion::at_least("own", of(points, 1, "p50_us"), 10.0),
                Criterion::at_most("lag", of(points, 1, "lag_p99_us"), 100.0),
            ]
        });
        let criteria = judge(&results, &asked);
        assert_eq!(criteria.iter().map(Criterion::ruling).collect::<Vec<_>>(), expected);
        results.findings.extend(findings(&criteria));
        results.findings.retain(|finding| finding.code != "partial");
        assert_eq!(super::overall(&results, &criteria), overall);
        let words = table(&criteria).to_string();
        assert_eq!(words.matches("undecided").count(), {
            expected.iter().filter(|ruling| **ruling == Ruling::Undecided).count()
        });
    }

    #[test]
    fn a_criterion_is_undecided_if_generator_lag_could_change_the_result() {
        use Ruling::{Met, NotMet, Undecided};
        let good = || point("relay", 10.0, 5.0, 0.0);
        check(good(), point("weir", 12.0, 5.0, 0.0), false, [Met; 3], Met);
        check(good(), point("weir", 16.0, 5.0, 0.0), false, [NotMet, Met, Met], NotMet);
        let late = |system| point(system, 2.8e6, 2.8e6, 1.0);
        check(late("relay"), good(), false, [Undecided, Met, Met], Undecided);
        // A lag of 150 µs explains 160 µs, but not 8 ms.
        let (some, much) = (point("weir", 160.0, 150.0, 1.0), point("weir", 8_000.0, 150.0, 1.0));
        check(good(), some, false, [Undecided, Met, NotMet], NotMet);
        check(good(), much, false, [NotMet, Met, NotMet], NotMet);
        // A criterion that is met although the lag is in the measured value is met without the lag, too. A lag that is
        // in the limit, here the relay's p50, can have made the limit too high.
        let relay = || point("relay", 1_000.0, 150.0, 1.0);
        check(relay(), point("weir", 1_100.0, 5.0, 0.0), false, [Met, Met, Met], Met);
        check(relay(), point("weir", 1_450.0, 5.0, 0.0), false, [Undecided, Met, Met], Undecided);
        // A criterion about the generator's own lag judges late points as well.
        check(good(), late("weir"), false, [Undecided, Undecided, NotMet], NotMet);
        check(good(), good(), true, [Undecided; 3], Undecided);
    }
}
