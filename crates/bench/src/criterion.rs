//! The criteria of a measurement: whether each is met, not met, or undecided.

use report::table::number;
use report::{Finding, Point, Results, Table};

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

/// From points (in the cases' order) to criteria.
pub type Judge = Box<dyn Fn(&[Point]) -> Vec<Criterion>>;

/// Judges results. A criterion that depends on runs in which the generator was late is undecided. If the measurement
/// ended early, all criteria are undecided.
pub(crate) fn judge(results: &Results, judge: &Judge) -> Vec<Criterion> {
    let mut criteria = judge(&results.points);
    // A criterion depends on the late points if its value differs when these points are empty. A criterion about the
    // generator's own lag does not depend on them, because such a criterion judges that lag.
    let without: Vec<Point> = results.points.iter().map(without_late_runs).collect();
    let same = |one: &Criterion, other: &Criterion| {
        (one.measured.to_bits(), one.limit.to_bits())
            == (other.measured.to_bits(), other.limit.to_bits())
    };
    for (criterion, other) in criteria.iter_mut().zip(judge(&without)) {
        criterion.is_valid = !results.is_partial() && same(criterion, &other);
    }
    criteria
}

/// The point. If the generator was late in any run of the point, only the generator's own lag stays in the point.
fn without_late_runs(point: &Point) -> Point {
    let mut point = point.clone();
    if point.mean(GENERATOR_BEHIND).is_some_and(|runs| runs > 0.0) {
        point.metrics.retain(|name, _| name.starts_with("lag_"));
        point.latency.clear();
        point.tenants.clear();
    }
    point
}

/// A finding about each criterion that is not met, or not decided.
pub(crate) fn findings(criteria: &[Criterion]) -> impl Iterator<Item = Finding> {
    criteria.iter().filter_map(|criterion| {
        let Criterion { name, .. } = criterion;
        let (measured, limit) = (number(criterion.measured), number(criterion.limit));
        let (code, why) = match criterion.ruling() {
            Ruling::Met => return None,
            Ruling::NotMet => (NOT_MET, ""),
            Ruling::Undecided => (UNDECIDED, "; undecided, since these runs are not valid"),
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

/// The result of all criteria together. If the only findings are that criteria are undecided, the result is undecided.
pub(crate) fn overall(results: &Results, criteria: &[Criterion]) -> Ruling {
    let is_there = |ruling| criteria.iter().any(|criterion| criterion.ruling() == ruling);
    let says_nothing =
        |finding: &Finding| [GENERATOR_BEHIND_CODE, UNDECIDED].contains(&finding.code.as_str());
    if is_there(Ruling::NotMet) || !results.findings.iter().all(says_nothing) {
        Ruling::NotMet
    } else if is_there(Ruling::Undecided) || !results.findings.is_empty() {
        Ruling::Undecided
    } else {
        Ruling::Met
    }
}

/// The metric that counts the runs in which the generator was behind.
pub(crate) const GENERATOR_BEHIND: &str = "generator_behind";
/// Codes of findings.
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
    fn late_runs_leave_what_rests_on_them_undecided() {
        use Ruling::{Met, NotMet, Undecided};
        let good = || point("relay", 10.0, 5.0, 0.0);
        check(good(), point("weir", 12.0, 5.0, 0.0), false, [Met; 3], Met);
        check(good(), point("weir", 16.0, 5.0, 0.0), false, [NotMet, Met, Met], NotMet);
        let late = |system| point(system, 2.8e6, 2.8e6, 1.0);
        check(late("relay"), good(), false, [Undecided, Met, Met], Undecided);
        // A criterion about the generator's own lag judges late points as well.
        check(good(), late("weir"), false, [Undecided, Undecided, NotMet], NotMet);
        check(good(), good(), true, [Undecided; 3], Undecided);
    }
}
