//! A study: what every way to choose paths has reached in all runs, as a table, as results and as figures.

use crate::optimum::{Optimum, Proof};
use crate::run::{Moment, Outcome};
use report::figure::{Figure, Line, Lines, Scale};
use report::results::{Extras, Scalar};
use report::stats::{confidence95, mean};
use report::table::number;
use report::{Better, Finding, Metric, Point, Results, Table};
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// The length of a step.
pub(crate) const STEP_SECONDS: f64 = 0.1;

/// What damped choice by the freshest labels has to reach, in percent of the optimum.
const TARGET: f64 = 95.0;

/// A way to choose paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A path by chance.
    Random,
    /// A path by a hash of the flow.
    EqualCost,
    /// By labels, when a flow begins.
    NewFlows,
    /// By labels, at every update: the path with the most room.
    Herding,
    /// By labels, at every update: only from overloaded links, and by chance.
    Damped,
}

impl Way {
    const ALL: [Way; 5] = [Way::Random, Way::EqualCost, Way::NewFlows, Way::Herding, Way::Damped];

    fn name(self) -> &'static str {
        match self {
            Way::Random => "random",
            Way::EqualCost => "equal-cost",
            Way::NewFlows => "labels, new flows",
            Way::Herding => "labels, herding",
            Way::Damped => "labels, damped",
        }
    }
}

/// A way to choose paths, and the seconds between two updates of its labels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Case {
    /// The way.
    pub way: Way,
    /// The seconds; `None` for a way without labels.
    pub interval: Option<f64>,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.way.name())?;
        self.interval.map_or(Ok(()), |interval| write!(f, " every {interval} s"))
    }
}

/// All that was simulated.
pub struct Study {
    results: Results,
    /// By run.
    optima: Vec<Vec<Optimum>>,
    /// By case, and there by run.
    cases: Vec<(Case, Vec<Outcome>)>,
}

impl Study {
    /// A study without runs. `results` has the environment and no points.
    pub fn new(results: Results) -> Study {
        Study { results, optima: Vec::new(), cases: Vec::new() }
    }

    /// Notes a setting.
    pub fn set(&mut self, name: &str, value: impl Into<Scalar>) {
        self.results.settings.insert(name.to_owned(), value.into());
    }

    /// The next outcomes are of a run with these optima.
    pub(crate) fn begin_run(&mut self, optima: Vec<Optimum>) {
        self.optima.push(optima);
    }

    /// Adds the outcome of a way to choose paths in this run.
    pub(crate) fn add(&mut self, case: Case, outcome: Outcome) {
        match self.cases.iter_mut().find(|(known, _)| *known == case) {
            Some((_, outcomes)) => outcomes.push(outcome),
            None => self.cases.push((case, vec![outcome])),
        }
    }

    /// Works out figures and findings when all runs are done.
    pub(crate) fn conclude(&mut self) {
        let points = self.cases.iter().map(|(case, outcomes)| self.point(case, outcomes));
        self.results.points = points.collect();
        if self.proof() == Some(Proof::Bound) {
            let text = "the linear program was too large: the yardstick is a bound that no routing can pass, and the \
                        optimum may be below it";
            let (code, text) = ("optimum-not-known".to_owned(), text.to_owned());
            self.results.findings.push(Finding { code, text });
        }
        if let Some(reached) = self.freshest().filter(|reached| *reached < TARGET) {
            let text = format!(
                "damped choice by the freshest labels reaches {reached:.1} % of the optimum, less than {TARGET:.0} %"
            );
            self.results.findings.push(Finding { code: "below-target".to_owned(), text });
        }
    }

    /// The settings, the points and the findings.
    pub fn results(&self) -> &Results {
        &self.results
    }

    /// Whether damped choice by the freshest labels stays below what it has to reach.
    pub fn is_below_target(&self) -> bool {
        self.results.findings.iter().any(|finding| finding.code == "below-target")
    }

    /// Writes results, tables and figures to a folder.
    pub fn write(&self, out: &Path) -> Result<(), report::Error> {
        let tables = vec![("Throughput and fairness".to_owned(), self.table())];
        let figures = vec![self.by_interval(), self.by_time()];
        self.results.write_with(out, &[], Duration::ZERO, &Extras { figures, tables })
    }

    /// Percent of the optimum at each moment of each run.
    fn shares(&self, outcomes: &[Outcome]) -> Vec<Vec<f64>> {
        let percent = |(outcome, optima): (&Outcome, &Vec<Optimum>)| {
            outcome.shares(optima).map(|share| share * 100.0).collect()
        };
        outcomes.iter().zip(&self.optima).map(percent).collect()
    }

    fn point(&self, case: &Case, outcomes: &[Outcome]) -> Point {
        let interval = case.interval.map(|interval| ("labels_every_s", interval));
        let mut point = Point::new(case.way.name(), interval);
        let shares = self.shares(outcomes);
        let each = |moment: fn(&Moment) -> f64| -> Vec<Vec<f64>> {
            outcomes.iter().map(|it| it.moments.iter().map(moment).collect()).collect()
        };
        let means = |runs: &[Vec<f64>]| runs.iter().filter_map(|run| mean(run)).collect();
        let lows = |runs: &[Vec<f64>]| runs.iter().map(|run| low(run)).collect();
        let moves = |outcome: &Outcome| {
            let moments = outcome.moments.last().map_or(1, |last| last.step + 1);
            let minutes = f64::from(moments) * STEP_SECONDS / 60.0;
            outcome.moved as f64 / outcome.flows.max(1) as f64 / minutes
        };
        let flows = outcomes.iter().map(|outcome| outcome.flows as f64).collect();
        let carried = each(|moment| moment.carried / 1e9);
        let least = each(|moment| moment.least * 100.0);
        let metrics: [(&str, &str, Better, Vec<f64>); 7] = [
            ("optimum_percent", "%", Better::Higher, means(&shares)),
            ("worst_moment_percent", "%", Better::Higher, lows(&shares)),
            ("carried_gbit_per_s", "Gbit/s", Better::Higher, means(&carried)),
            ("jain", "", Better::Higher, means(&each(|moment| moment.fairness))),
            ("least_flow_percent", "%", Better::Higher, means(&least)),
            ("moves_per_flow_minute", "1/min", Better::Lower, outcomes.iter().map(moves).collect()),
            ("flows", "", Better::Neither, flows),
        ];
        for (name, unit, better, samples) in metrics {
            point.metrics.insert(name.to_owned(), Metric::new(unit, better, samples));
        }
        point
    }

    /// What damped choice reaches with the shortest interval.
    fn freshest(&self) -> Option<f64> {
        let damped = self.cases.iter().filter(|(case, _)| case.way == Way::Damped);
        let interval = |case: &Case| case.interval.unwrap_or(f64::INFINITY);
        let (_, outcomes) = damped.min_by(|a, b| interval(&a.0).total_cmp(&interval(&b.0)))?;
        mean(&self.shares(outcomes).concat())
    }

    /// The weakest proof of all: one moment without makes the whole a bound.
    fn proof(&self) -> Option<Proof> {
        self.optima.iter().flatten().map(|optimum| optimum.proof).max()
    }

    fn table(&self) -> Table {
        let mut table = Table::new([
            "paths",
            "labels every",
            "of optimum %",
            "± 95 %",
            "worst moment %",
            "fairness",
            "least flow %",
            "moves/flow/min",
        ]);
        for ((case, outcomes), point) in self.cases.iter().zip(&self.results.points) {
            let value = |name: &str| {
                point.mean(name).map_or_else(|| "–".to_owned(), |value| format!("{value:.1}"))
            };
            let runs: Vec<f64> = self.shares(outcomes).iter().filter_map(|run| mean(run)).collect();
            table.row([
                case.way.name().to_owned(),
                case.interval.map_or_else(|| "–".to_owned(), |interval| format!("{interval} s")),
                value("optimum_percent"),
                confidence95(&runs).map_or_else(|| "–".to_owned(), |half| format!("{half:.1}")),
                value("worst_moment_percent"),
                point.mean("jain").map_or_else(|| "–".to_owned(), |jain| format!("{jain:.3}")),
                value("least_flow_percent"),
                point.mean("moves_per_flow_minute").map_or_else(|| "–".to_owned(), number),
            ]);
        }
        table
    }

    /// Throughput against the interval: where labels stop helping, and where they do harm.
    fn by_interval(&self) -> Figure {
        let intervals = self.cases.iter().filter_map(|(case, _)| case.interval);
        let ends = [intervals.clone().fold(f64::INFINITY, f64::min), intervals.fold(0.0, f64::max)];
        let line = |way: Way| {
            let ours = self.cases.iter().zip(&self.results.points);
            let ours = ours.filter(|((case, _), _)| case.way == way);
            let points = ours.flat_map(|((case, _), point)| {
                let share = point.mean("optimum_percent").unwrap_or(0.0);
                // What knows no labels is the same at every interval.
                let at = case.interval.map_or_else(|| ends.to_vec(), |interval| vec![interval]);
                at.into_iter().map(move |interval| (interval, share))
            });
            let dashed = matches!(way, Way::Random | Way::EqualCost);
            let mut points: Vec<(f64, f64)> = points.collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            Line { name: way.name().to_owned(), points, dashed, ..Line::default() }
        };
        let lines = Lines {
            title: "Throughput by the age of labels".to_owned(),
            x_label: "seconds between two updates of all labels".to_owned(),
            y_label: "throughput, % of the optimum".to_owned(),
            x_scale: Scale::Logarithmic,
            lines: Way::ALL.map(line).to_vec(),
            ..Lines::default()
        };
        let caption = format!("Means over {} runs.", self.optima.len());
        Figure { name: "intervals".to_owned(), drawing: lines.draw(), caption }
    }

    /// The first run's course, with labels of the middle interval.
    fn by_time(&self) -> Figure {
        let mut intervals: Vec<f64> =
            self.cases.iter().filter_map(|(case, _)| case.interval).collect();
        intervals.sort_by(f64::total_cmp);
        let middle = intervals.get(intervals.len() / 2).copied();
        let shown = self.cases.iter().filter(|(case, _)| {
            case.way != Way::Random && (case.interval.is_none() || case.interval == middle)
        });
        let line = |(case, outcomes): &(Case, Vec<Outcome>)| {
            let shares = self.shares(outcomes).into_iter().next().unwrap_or_default();
            let moments = outcomes.first().map(|outcome| &outcome.moments[..]).unwrap_or_default();
            let time = moments.iter().map(|moment| f64::from(moment.step) * STEP_SECONDS);
            let points = time.zip(shares).collect();
            Line {
                name: case.to_string(),
                points,
                dashed: case.interval.is_none(),
                ..Line::default()
            }
        };
        let lines = Lines {
            title: "Throughput over time".to_owned(),
            x_label: "seconds".to_owned(),
            y_label: "throughput, % of the optimum".to_owned(),
            lines: shown.map(line).collect(),
            ..Lines::default()
        };
        let caption = "The first run.".to_owned();
        Figure { name: "course".to_owned(), drawing: lines.draw(), caption }
    }
}

impl fmt::Display for Study {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.table())?;
        let most: Vec<f64> =
            self.optima.iter().flatten().map(|optimum| optimum.bits / 1e9).collect();
        let known = match self.proof() {
            Some(Proof::EvenSplit) => "optimum: all demands fit when they are split evenly",
            Some(Proof::LinearProgram) => {
                "optimum: the multicommodity linear program over the shortest paths"
            }
            Some(Proof::Bound) | None => {
                "a bound, not the optimum: what the edge switches' links can carry"
            }
        };
        writeln!(
            f,
            "\n100 % is {} Gbit/s on average ({known}).",
            number(mean(&most).unwrap_or(0.0))
        )?;
        for finding in &self.results.findings {
            writeln!(f, "\n{}: {}", finding.code, finding.text)?;
        }
        Ok(())
    }
}

fn low(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}
