//! Reproduces *OFLOPS: An Open Framework for OpenFlow Switch Evaluation* (2012): compares the five switches of 2012
//! with Open vSwitch here.

use evaluate::modules::{
    Change, Insert, Interaction, MatchKind, Modification, Modify, Statistics, StatisticsKind,
    Timestamp,
};
use evaluate::{Common, Evaluation, Experiment};
use report::figure::{Line, Lines, Scale};
use report::stats::median;
use report::table::number;
use report::{Extras, Figure, Point, Scalar, Table};
use std::str::FromStr;

/// The experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Oflops2012 {
    /// The parts to measure; an empty list means all parts.
    pub parts: Vec<Part>,
    /// The parameters of all experiments.
    pub common: Common,
    /// Whether to use fewer probes, rules and repetitions; figures state this.
    pub quick: bool,
}

/// A table or a figure of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Table 2: packet modifications.
    Table2,
    /// Figure 2: precision of timestamps.
    Timestamps,
    /// Figure 3, insertion: all entries sent, barrier reply, first packet.
    Insertion,
    /// Figure 4: insertion and modification, exact and wildcard.
    Kinds,
    /// Figure 5: statistics replies and CPU time against the polling rate.
    Polling,
    /// Figure 6: changes of entries during polling.
    Interaction,
}

impl FromStr for Part {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Part, &'static str> {
        match text {
            "table2" => Ok(Part::Table2),
            "2" => Ok(Part::Timestamps),
            "3" => Ok(Part::Insertion),
            "4" => Ok(Part::Kinds),
            "5" => Ok(Part::Polling),
            "6" => Ok(Part::Interaction),
            _ => Err("no part of this paper: must be one of table2, 2, 3, 4, 5, 6"),
        }
    }
}

/// The median and the standard deviation.
type Cell = Option<(u32, u32)>;
/// A row of table 2: the name, the modifications, and the cell and loss of each switch.
type Row = (&'static str, &'static [Modification], [Cell; 5], [u32; 5]);

/// Table 2: median and standard deviation in µs, loss in percent, of Switch1, Open vSwitch, Switch2, Switch3, NetFPGA.
/// A dash in the paper means that all packets were lost; here the cell is `None`.
const TABLE_2: [Row; 8] = {
    use Modification as M;
    const fn of(median: u32, deviation: u32) -> Cell {
        Some((median, deviation))
    }
    const HARD: [u32; 5] = [0; 5];
    const SLOW: [u32; 5] = [0, 0, 88, 100, 0];
    const SLOW2: [u32; 5] = [0, 0, 88, 0, 0];
    [
        ("Forward", &[], [of(4, 0), of(35, 13), of(6, 0), of(5, 0), of(3, 0)], HARD),
        (
            "MAC addr.",
            &[M::DestinationMac],
            [of(4, 0), of(35, 13), of(302, 727), None, of(3, 0)],
            SLOW,
        ),
        (
            "IP addr.",
            &[M::DestinationIp],
            [of(3, 0), of(36, 13), of(302, 615), None, of(3, 0)],
            SLOW,
        ),
        ("IP ToS", &[M::Tos], [of(3, 0), of(36, 16), of(6, 0), None, of(3, 0)], [0, 0, 0, 100, 0]),
        (
            "L4 port",
            &[M::DestinationPort],
            [of(3, 0), of(35, 15), of(302, 611), None, of(3, 0)],
            SLOW,
        ),
        (
            "VLAN pcp",
            &[M::VlanPriority],
            [of(3, 0), of(36, 20), of(6, 0), of(5, 0), of(3, 0)],
            HARD,
        ),
        ("VLAN id", &[M::VlanId], [of(4, 0), of(35, 17), of(301, 610), of(5, 0), of(3, 0)], SLOW2),
        (
            "VLAN rem.",
            &[M::StripVlan],
            [of(4, 0), of(35, 15), of(335, 626), of(5, 0), of(3, 0)],
            SLOW2,
        ),
    ]
};
const SWITCHES: [&str; 5] = ["Switch1", "Open vSwitch 2012", "Switch2", "Switch3", "NetFPGA"];

impl Oflops2012 {
    /// The measurement of the tool's own floor: 125,000 probes per second (100 Mb/s with 100 bytes) for two minutes, as
    /// in the paper. A quick run has fewer probes and less time; the other parameters are those of the caller.
    #[must_use]
    pub fn floor(&self) -> Option<Timestamp> {
        let (rate, seconds) = if self.quick { (12_500.0, 5) } else { (125_000.0, 120) };
        let common = Common { rate, ..self.common.clone() };
        let floor = Timestamp { common, duration: seconds * 1_000_000_000 };
        self.wants(Part::Timestamps).then_some(floor)
    }

    fn wants(&self, part: Part) -> bool {
        self.parts.is_empty() || self.parts.contains(&part)
    }

    /// The experiments, in the order of the measurement.
    #[must_use]
    pub fn experiments(&self) -> Vec<Box<dyn Experiment>> {
        let (common, quick) = (self.common.clone(), self.quick);
        let mut all: Vec<Box<dyn Experiment>> = Vec::new();
        if self.wants(Part::Table2) {
            let rate = if quick { 12_500.0 } else { 125_000.0 };
            let common = Common { rate, ..common.clone() };
            let sets = TABLE_2.iter().map(|(_, set, ..)| set.to_vec()).collect();
            let duration = if quick { 500_000_000 } else { 2_000_000_000 };
            all.push(Box::new(Modify { common, duration, sets }));
        }
        let rules =
            if quick { vec![1, 10, 100] } else { vec![1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] };
        let kinds = self.wants(Part::Kinds);
        let matches = if kinds {
            vec![MatchKind::Exact, MatchKind::Wildcard]
        } else {
            vec![MatchKind::Exact]
        };
        let insert = Insert { rules, matches, ..Insert::new(common.clone()) };
        if self.wants(Part::Insertion) || kinds {
            all.push(Box::new(insert.clone()));
        }
        if kinds {
            all.push(Box::new(Change(insert)));
        }
        if self.wants(Part::Polling) {
            let polls = if quick {
                vec![1.0, 10.0, 50.0]
            } else {
                vec![1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]
            };
            let duration = if quick { 2_000_000_000 } else { 5_000_000_000 };
            let kinds = vec![StatisticsKind::Flow];
            all.push(Box::new(Statistics {
                polls,
                duration,
                kinds,
                ..Statistics::new(common.clone())
            }));
        }
        if self.wants(Part::Interaction) {
            let polls = if quick {
                vec![0.0, 5.0, 20.0]
            } else {
                vec![0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0]
            };
            all.push(Box::new(Interaction { polls, ..Interaction::new(common) }));
        }
        all
    }

    /// The tables and figures of the measurements.
    #[must_use]
    pub fn extras(&self, evaluation: &Evaluation) -> Extras {
        let note = match self.quick {
            true => "quick: fewer probes, rules and repetitions than a full run",
            false => "",
        };
        let points = &evaluation.results.points;
        let mut extras = Extras::default();
        if self.wants(Part::Table2) {
            let heading = "Table 2: median, standard deviation (µs) and loss of modifications, published and here";
            extras.tables.push((heading.to_owned(), table_2(points)));
        }
        for (part, name, lines, caption) in figures(points) {
            if self.wants(part) {
                let drawing = lines.draw().with_note(note);
                let (name, caption) = (name.to_owned(), caption.to_owned());
                extras.figures.push(Figure { name, drawing, caption });
            }
        }
        extras
    }
}

fn table_2(points: &[Point]) -> Table {
    let mut header = vec!["modification".to_owned()];
    header.extend(SWITCHES.iter().map(|name| format!("{name} (published)")));
    header.push("here".to_owned());
    let mut table = Table::new(header);
    for (name, set, cells, losses) in TABLE_2 {
        let mut row = vec![name.to_owned()];
        row.extend(cells.iter().zip(losses).map(|(cell, loss)| match cell {
            Some((median, deviation)) => format!("{median} ± {deviation}, {loss} %"),
            None => format!("–, {loss} %"),
        }));
        let names: Vec<_> = set.iter().map(|it| it.name()).collect();
        let wanted = if names.is_empty() { "forward".to_owned() } else { names.join("+") };
        let point =
            points.iter().find(|point| is(point, "module", "modify") && is(point, "set", &wanted));
        let value = |metric: &str| {
            let samples =
                point.and_then(|point| point.metrics.get(metric)).map(|metric| &metric.samples);
            samples.and_then(|samples| median(samples)).map_or_else(|| "–".to_owned(), number)
        };
        row.push(format!(
            "{} ± {}, {} %",
            value("median_us"),
            value("deviation_us"),
            value("loss_percent")
        ));
        table.row(row);
    }
    table
}

/// The figures, each with its caption.
fn figures(points: &[Point]) -> Vec<(Part, &'static str, Lines, &'static str)> {
    let of = |module: &str, metric: &str, x: &str, name: &str, filter: &[(&str, &str)]| Line {
        name: name.to_owned(),
        points: curve(points, module, metric, x, filter),
        ..Line::default()
    };
    let rules = |title: &str, lines: Vec<Line>| Lines {
        title: title.to_owned(),
        x_label: "entries".to_owned(),
        y_label: "time, ms".to_owned(),
        x_scale: Scale::Logarithmic,
        y_scale: Scale::Logarithmic,
        lines,
        ..Lines::default()
    };
    let exact: &[(&str, &str)] = &[("match", "exact")];
    let wildcard: &[(&str, &str)] = &[("match", "wildcard")];
    // Section 4.2 of the paper states in words: 1.8 ms for one entry, converging to 1 ms for each entry.
    let switch1 = Line {
        name: "Switch1, first packet, published".to_owned(),
        points: vec![(1.0, 1.8), (1000.0, 1000.0)],
        dashed: true,
        ..Line::default()
    };
    let precision = ["kernel", "user space"].map(|name| Line {
        name: format!("{name} stamp"),
        points: points
            .iter()
            .find(|point| is(point, "module", "floor"))
            .and_then(|point| point.latency.get(name))
            .map(|delay| delay.cdf.iter().map(|(us, share)| (*us, share * 100.0)).collect())
            .unwrap_or_default(),
        ..Line::default()
    });
    let polls = |title: &str, y_label: &str, lines: Vec<Line>| Lines {
        title: title.to_owned(),
        x_label: "polls of flow statistics per second".to_owned(),
        y_label: y_label.to_owned(),
        lines,
        ..Lines::default()
    };
    vec![
        (
            Part::Timestamps,
            "2",
            Lines {
                title: "Precision of our capture, on two looped interfaces".to_owned(),
                x_label: "delay behind the generator's stamp, µs".to_owned(),
                y_label: "% of probes at most".to_owned(),
                x_scale: Scale::Logarithmic,
                lines: precision.into(),
                steps: true,
                ..Lines::default()
            },
            "Published: pcap's stamps drift by 6 ms in two minutes against a DAG card, NetFPGA's by a few µs. Here the reference is the generator's own stamp; the drift in ppm is in the table.",
        ),
        (
            Part::Insertion,
            "3",
            rules(
                "Insertion: sent, acknowledged, real",
                vec![
                    of("insert", "sent_us", "rules", "all sent", exact),
                    of("insert", "barrier_us", "rules", "barrier reply", exact),
                    of("insert", "last_rule_us", "rules", "first packet of the last entry", exact),
                    switch1,
                ],
            ),
            "Medians. The paper's curves are not printed as numbers; what its text says of Switch1 is dashed.",
        ),
        (
            Part::Kinds,
            "4",
            rules(
                "Insertion and modification, from the data plane",
                vec![
                    of("insert", "last_rule_us", "rules", "insert, exact", exact),
                    of("insert", "last_rule_us", "rules", "insert, wildcard", wildcard),
                    of("change", "last_rule_us", "rules", "modify, exact", exact),
                    of("change", "last_rule_us", "rules", "modify, wildcard", wildcard),
                ],
            ),
            "Medians. Published, in words: for software switches neither kind makes a difference; Switch1 and Switch2 take longer to modify than to insert from some ten entries on.",
        ),
        (
            Part::Polling,
            "5a",
            polls(
                "Reply time of flow statistics",
                "time, ms",
                vec![Line {
                    name: "median reply".to_owned(),
                    points: points
                        .iter()
                        .filter(|point| is(point, "module", "statistics"))
                        .filter_map(|point| {
                            Some((
                                at(point, "polls_per_s")?,
                                point.latency.get("reply")?.p50_us / 1e3,
                            ))
                        })
                        .collect(),
                    ..Line::default()
                }],
            ),
            "Published, in words: nearly constant for every switch.",
        ),
        (
            Part::Polling,
            "5b",
            polls(
                "The switch's CPU while polled",
                "% of one core",
                vec![scaled(of("statistics", "cpu_percent", "polls_per_s", "CPU", &[]), 1e3)],
            ),
            "Published, in words: no effect for software switches; Switch2's rises with the rate.",
        ),
        (
            Part::Interaction,
            "6",
            polls(
                "100 changes in a table of 1,024 while polled",
                "time, ms",
                vec![
                    of("interaction", "last_rule_us", "polls_per_s", "last entry real", &[]),
                    of("interaction", "all_rules_us", "polls_per_s", "all entries real", &[]),
                ],
            ),
            "Medians. Published, in words: nearly constant at low rates; a marginal decrease with more variance for Open vSwitch.",
        ),
    ]
}

/// The medians of a metric in ms against a parameter.
fn curve(
    points: &[Point],
    module: &str,
    metric: &str,
    x: &str,
    filter: &[(&str, &str)],
) -> Vec<(f64, f64)> {
    points
        .iter()
        .filter(|point| is(point, "module", module))
        .filter(|point| filter.iter().all(|(name, value)| is(point, name, value)))
        .filter_map(|point| {
            let samples = &point.metrics.get(metric)?.samples;
            Some((at(point, x)?, median(samples)? / 1e3))
        })
        .collect()
}

fn scaled(mut line: Line, factor: f64) -> Line {
    line.points.iter_mut().for_each(|point| point.1 *= factor);
    line
}

fn is(point: &Point, parameter: &str, value: &str) -> bool {
    matches!(point.parameters.get(parameter), Some(Scalar::Text(text)) if text == value)
}

fn at(point: &Point, parameter: &str) -> Option<f64> {
    match point.parameters.get(parameter)? {
        Scalar::Number(number) => Some(*number),
        _ => None,
    }
}
