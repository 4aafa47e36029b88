//! `weir report compare A B …`: the same metric of the same point in several results, with a
//! verdict that respects the confidence intervals.

use crate::results::{Better, Metric, Point, Results};
use crate::stats::difference95;
use crate::table::{Table, number};
use std::fmt;

/// What can be said about a metric of `B` against the same of `A`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Better, and the 95 % confidence interval of the difference excludes zero.
    Better,
    /// Worse, and the interval excludes zero.
    Worse,
    /// The interval includes zero.
    Same,
    /// A difference in something that has no good direction.
    Different,
    /// Fewer than two runs on a side: no interval, so no verdict.
    TooFewRuns,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "no difference shown",
            Self::Different => "different",
            Self::TooFewRuns => "too few runs",
        })
    }
}

/// One line of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The point: system and parameters.
    pub point: String,
    /// The metric's name.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// The name of the results that `b` is from.
    pub against: String,
    /// The mean in the first results.
    pub a: f64,
    /// The mean in the other results.
    pub b: f64,
    /// `b − a` and half the width of its 95 % confidence interval, where there are enough runs.
    pub difference: Option<(f64, f64)>,
    /// What can be said.
    pub verdict: Verdict,
}

/// Compares every point and metric of the first results with the same in each of the others.
/// A point or metric that only one side has is left out.
#[must_use]
pub fn compare(results: &[(String, Results)]) -> Vec<Comparison> {
    let Some(((_, first), others)) = results.split_first() else { return Vec::new() };
    let mut lines = Vec::new();
    for point in &first.points {
        for (name, other) in others {
            let Some(same) = other.points.iter().find(|candidate| is_same(point, candidate)) else {
                continue;
            };
            for (metric, a) in &point.metrics {
                let Some(b) = same.metrics.get(metric) else { continue };
                let (Some(mean_a), Some(mean_b)) = (a.mean, b.mean) else { continue };
                let difference = difference95(&a.samples, &b.samples);
                lines.push(Comparison {
                    point: format!("{} {}", point.system, point.label()).trim_end().to_owned(),
                    metric: metric.clone(),
                    unit: a.unit.clone(),
                    against: name.clone(),
                    a: mean_a,
                    b: mean_b,
                    difference,
                    verdict: verdict(a, difference),
                });
            }
        }
    }
    lines
}

/// The lines as a table, for stdout.
#[must_use]
pub fn table(lines: &[Comparison]) -> Table {
    let mut table = Table::new([
        "point",
        "metric",
        "against",
        "first",
        "other",
        "ratio",
        "difference",
        "verdict",
    ]);
    for line in lines {
        let difference = line.difference.map_or_else(
            || "–".to_owned(),
            |(mean, half)| format!("{} ± {}", number(mean), number(half)),
        );
        table.row([
            line.point.clone(),
            format!("{} {}", line.metric, line.unit).trim_end().to_owned(),
            line.against.clone(),
            number(line.a),
            number(line.b),
            number(line.b / line.a),
            difference,
            line.verdict.to_string(),
        ]);
    }
    table
}

fn is_same(a: &Point, b: &Point) -> bool {
    a.system == b.system && a.parameters == b.parameters
}

fn verdict(metric: &Metric, difference: Option<(f64, f64)>) -> Verdict {
    let Some((mean, half)) = difference else { return Verdict::TooFewRuns };
    if mean.abs() <= half {
        return Verdict::Same;
    }
    match metric.better {
        Better::Neither => Verdict::Different,
        Better::Lower if mean < 0.0 => Verdict::Better,
        Better::Higher if mean > 0.0 => Verdict::Better,
        Better::Lower | Better::Higher => Verdict::Worse,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;

    fn with(samples: &[f64], better: Better) -> Results {
        let mut point = Point::new("weir", [("rate", 40_000.0)]);
        point.metrics.insert("m".into(), Metric::new("µs", better, samples.to_vec()));
        let mut results = Results::new("bench", 1, Environment::default());
        results.points.push(point);
        results
    }

    #[test]
    fn verdicts() {
        let low = [10.0, 11.0, 10.5, 10.2];
        let high = [20.0, 21.0, 20.5, 20.2];
        for (a, b, better, want) in [
            (&low[..], &high[..], Better::Lower, Verdict::Worse),
            (&high, &low, Better::Lower, Verdict::Better),
            (&low, &high, Better::Higher, Verdict::Better),
            (&low, &high, Better::Neither, Verdict::Different),
            (&low, &low, Better::Lower, Verdict::Same),
            (&low[..1], &high, Better::Lower, Verdict::TooFewRuns),
        ] {
            let lines = compare(&[("a".into(), with(a, better)), ("b".into(), with(b, better))]);
            assert_eq!(lines.len(), 1);
            assert_eq!(lines[0].verdict, want, "{a:?} {b:?}");
        }
    }

    #[test]
    fn other_points_are_not_compared() {
        let mut other = with(&[1.0, 2.0], Better::Lower);
        other.points[0].parameters.insert("tenants".into(), 20.0.into());
        let all = [("a".into(), with(&[1.0, 2.0], Better::Lower)), ("b".into(), other)];
        assert_eq!(compare(&all), []);
    }
}
