//! Compares several results for `weir report compare A B …`: the same metric of the same point in
//! each result, with a verdict from the confidence intervals. Also lists the points and metrics
//! that only one result has.

use crate::figure::{Figure, Scale, Spread, draw_spreads};
use crate::groups::by_key;
use crate::names::metric_in_words;
use crate::results::{Better, Metric, Point, Results};
use crate::stats::difference95;
use crate::table::{Table, number};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// The verdict about a metric of `B` against the same metric of `A`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// `B` is better, and the 95 % confidence interval of the difference excludes zero.
    Better,
    /// `B` is worse, and the interval excludes zero.
    Worse,
    /// The interval includes zero.
    Same,
    /// The interval excludes zero, but neither direction of the metric is better.
    Different,
    /// A side has fewer than two runs, so there is no interval and no verdict.
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

/// The result of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Compared {
    /// The metrics that both sides have.
    pub lines: Vec<Comparison>,
    /// The points and metrics that only one side has.
    pub unmatched: Vec<Unmatched>,
}

/// A point, or a metric of a point, that one side of a comparison lacks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unmatched {
    /// The point: system and parameters.
    pub point: String,
    /// The metric's name; `None` if the whole point is missing.
    pub metric: Option<String>,
    /// The results that have the point or metric.
    pub only_in: String,
    /// The results that lack the point or metric.
    pub not_in: String,
}

/// One line of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The point: system and parameters.
    pub point: String,
    /// The metric's name.
    pub metric: String,
    /// The metric's unit.
    pub unit: String,
    /// The name of the results from which `b` is.
    pub against: String,
    /// The mean in the first results.
    pub a: f64,
    /// The mean in the other results.
    pub b: f64,
    /// `b − a` and half the width of its 95 % confidence interval; `None` if there are too few
    /// runs.
    pub difference: Option<(f64, f64)>,
    /// The verdict.
    pub verdict: Verdict,
}

/// Compares every point and metric of the first results with the same in each of the others.
#[must_use]
pub fn compare(results: &[(String, Results)]) -> Compared {
    let mut compared = Compared::default();
    let Some((first, others)) = results.split_first() else { return compared };
    for point in &first.1.points {
        for other in others {
            match find(&other.1, point) {
                Some(same) => compared.points((&first.0, point), (&other.0, same)),
                None => compared.only(point, None, &first.0, &other.0),
            }
        }
    }
    for other in others {
        for point in other.1.points.iter().filter(|point| find(&first.1, point).is_none()) {
            compared.only(point, None, &other.0, &first.0);
        }
    }
    compared
}

impl Compared {
    fn points(&mut self, (first, a): (&str, &Point), (other, b): (&str, &Point)) {
        let has = |point: &Point, metric: &str| point.mean(metric).is_some();
        for (metric, b_metric) in &b.metrics {
            let Some(mean_b) = b_metric.mean else { continue };
            let Some((a_metric, mean_a)) =
                a.metrics.get(metric).and_then(|it| Some((it, it.mean?)))
            else {
                self.only(b, Some(metric), other, first);
                continue;
            };
            let difference = difference95(&a_metric.samples, &b_metric.samples);
            self.lines.push(Comparison {
                point: named(a),
                metric: metric.clone(),
                unit: a_metric.unit.clone(),
                against: other.to_owned(),
                a: mean_a,
                b: mean_b,
                difference,
                verdict: verdict(a_metric, difference),
            });
        }
        for metric in a.metrics.keys().filter(|metric| has(a, metric) && !has(b, metric)) {
            self.only(a, Some(metric), first, other);
        }
    }

    fn only(&mut self, point: &Point, metric: Option<&str>, only_in: &str, not_in: &str) {
        let (point, metric) = (named(point), metric.map(str::to_owned));
        let (only_in, not_in) = (only_in.to_owned(), not_in.to_owned());
        self.unmatched.push(Unmatched { point, metric, only_in, not_in });
    }

    /// Describes the points and metrics that only one side has, in one sentence for each pair of
    /// results. The sentence names the first ten.
    #[must_use]
    pub fn unmatched_sentences(&self) -> Vec<String> {
        const SHOWN: usize = 10;
        let mut by_sides: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
        for Unmatched { point, metric, only_in, not_in } in &self.unmatched {
            let what = match metric {
                Some(metric) => format!("{metric} of {point}"),
                None => point.clone(),
            };
            by_sides.entry((only_in, not_in)).or_default().push(what);
        }
        let sentence = |((only_in, not_in), all): ((&str, &str), Vec<String>)| {
            let shown = all.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("; ");
            let more = match all.len().saturating_sub(SHOWN) {
                0 => String::new(),
                more => format!("; and {more} more (--json has all)"),
            };
            format!("in {only_in}, and not in {not_in}: {shown}{more}")
        };
        by_sides.into_iter().map(sentence).collect()
    }

    /// Draws one figure for each metric that differs at some point: the ratio of the other results to the first
    /// results, point by point.
    #[must_use]
    pub fn figures(&self) -> Vec<Figure> {
        let differs =
            |line: &&Comparison| !matches!(line.verdict, Verdict::Same | Verdict::TooFewRuns);
        let mut metrics: Vec<&str> =
            self.lines.iter().filter(differs).map(|line| line.metric.as_str()).collect();
        metrics.sort_unstable();
        metrics.dedup();
        metrics.into_iter().map(|metric| self.figure(metric)).collect()
    }

    fn figure(&self, metric: &str) -> Figure {
        let its = |line: &&Comparison| line.metric == metric && line.a != 0.0;
        let groups = by_key(self.lines.iter().filter(its).map(|line| {
            let (middle, half) = (line.b / line.a, line.difference.map_or(0.0, |it| it.1));
            let half = half / line.a.abs();
            (line.point.clone(), Spread { low: middle - half, middle, high: middle + half })
        }));
        let title = format!("Ratio of {}: the others over the first", metric_in_words(metric));
        Figure {
            name: metric.to_owned(),
            drawing: draw_spreads(&title, "ratio of means", Scale::Linear, &groups),
            caption: "Bars: 95 % confidence of the difference. At 1 nothing changed.".to_owned(),
        }
    }
}

fn find<'a>(results: &'a Results, point: &Point) -> Option<&'a Point> {
    let is_same =
        |other: &&Point| other.system == point.system && other.parameters == point.parameters;
    results.points.iter().find(is_same)
}

fn named(point: &Point) -> String {
    format!("{} {}", point.system, point.label()).trim_end().to_owned()
}

/// Writes the lines as CSV, with one plain number in each field.
#[must_use]
pub fn csv(lines: &[Comparison]) -> String {
    let header = "point metric unit against first other ratio difference ci95 verdict";
    let mut table = Table::new(header.split(' '));
    for line in lines {
        let (difference, half) = match line.difference {
            Some((mean, half)) => (mean.to_string(), half.to_string()),
            None => (String::new(), String::new()),
        };
        let ratio = line.b / line.a;
        table.row([
            line.point.clone(),
            line.metric.clone(),
            line.unit.clone(),
            line.against.clone(),
            line.a.to_string(),
            line.b.to_string(),
            if ratio.is_finite() { ratio.to_string() } else { String::new() },
            difference,
            half,
            line.verdict.to_string(),
        ]);
    }
    table.to_csv()
}

/// Writes the lines as a table for stdout.
#[must_use]
pub fn table(lines: &[Comparison]) -> Table {
    // The most important columns come first, because a terminal may have no room for the last
    // columns.
    let are_several = lines.windows(2).any(|pair| pair[0].against != pair[1].against);
    let against = are_several.then_some("against");
    let titles = ["first", "other", "ratio", "verdict", "difference"];
    let mut table = Table::new(["point", "metric"].into_iter().chain(against).chain(titles));
    for line in lines {
        let difference = line.difference.map_or_else(
            || "–".to_owned(),
            |(mean, half)| format!("{} ± {}", number(mean), number(half)),
        );
        let metric = format!("{} {}", line.metric, line.unit).trim_end().to_owned();
        let numbers = [
            number(line.a),
            number(line.b),
            number(line.b / line.a),
            line.verdict.to_string(),
            difference,
        ];
        let against = are_several.then(|| line.against.clone());
        table.row([line.point.clone(), metric].into_iter().chain(against).chain(numbers));
    }
    table
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
    fn the_verdict_depends_on_the_difference_and_the_better_direction() {
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
            let all = [("a".into(), with(a, better)), ("b".into(), with(b, better))];
            let lines = compare(&all).lines;
            assert_eq!(lines.len(), 1);
            assert_eq!(lines[0].verdict, want, "{a:?} {b:?}");
        }
    }

    #[test]
    fn points_and_metrics_of_a_single_side_are_listed_as_unmatched() {
        let low = [1.0, 2.0];
        let mut other = with(&low, Better::Lower);
        other.points[0].parameters.insert("tenants".into(), 20.0.into());
        let mut both = with(&low, Better::Lower);
        both.points[0].metrics.insert("n".into(), Metric::new("", Better::Lower, vec![1.0]));
        both.points[0].metrics.insert("nothing".into(), Metric::new("", Better::Lower, vec![]));
        both.points.extend(other.points.clone());
        let all = [("a/".into(), with(&low, Better::Lower)), ("b/".into(), other)];
        let compared = compare(&all);
        assert_eq!(compared.lines, []);
        assert_eq!(
            compared.unmatched_sentences(),
            [
                "in a/, and not in b/: weir rate=40,000",
                "in b/, and not in a/: weir rate=40,000 tenants=20"
            ]
        );
        let compared = compare(&[("a/".into(), both.clone()), all[0].clone()]);
        assert_eq!((compared.lines.len(), compared.unmatched.len()), (1, 2));
        let sentences = compared.unmatched_sentences();
        assert_eq!(
            sentences,
            ["in a/, and not in a/: n of weir rate=40,000; weir rate=40,000 tenants=20"]
        );
        assert_eq!(compare(&[all[0].clone(), ("b/".into(), both)]).unmatched.len(), 2);
        assert_eq!(compare(&[]), Compared::default());
    }

    #[test]
    fn csv_and_json_have_plain_numbers_and_only_differences_are_drawn() {
        let sides = |a: &[f64], b: &[f64]| {
            compare(&[("a".into(), with(a, Better::Lower)), ("b".into(), with(b, Better::Lower))])
        };
        let compared = sides(&[1.0e7, 1.1e7], &[2.5e7, 2.6e7]);
        let text = csv(&compared.lines);
        let line = text.lines().nth(1).unwrap();
        assert!(line.starts_with("\"weir rate=40,000\",m,µs,b,10500000,25500000,2.42"), "{line}");
        assert!(line.contains(",15000000,") && line.ends_with(",worse"), "{line}");
        assert!(!line.contains('±'), "{line}");
        let json = serde_json::to_value(&compared).unwrap();
        assert_eq!(
            (&json["lines"][0]["verdict"], &json["lines"][0]["a"]),
            (&"worse".into(), &1.05e7.into())
        );
        assert_eq!(compared.figures().len(), 1);
        assert!(compared.figures()[0].drawing.svg().contains("the others over the first"));
        assert_eq!(sides(&[1.0, 2.0], &[1.0, 2.0]).figures().len(), 0);
        assert!(csv(&sides(&[0.0], &[1.0]).lines).ends_with(",0,1,,,,too few runs\r\n"));
    }
}
