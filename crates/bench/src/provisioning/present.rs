//! Presents the results as tables and figures.

use crate::comparison::Verdict;
use crate::error::Error;
use report::figure::draw_groups;
use report::results::Extras;
use report::table::number;
use report::{Figure, Point, Results, Table};
use std::collections::BTreeSet;
use std::path::Path;

/// The start of the names of metrics of CPU time, for threads of the system under test.
const THREAD: &str = "cpu_system_";

/// The results, one row for each case: means over the runs, and the slowest run.
#[must_use]
pub fn table(results: &Results) -> Table {
    let mut table = Table::new([
        "case",
        "reply ms",
        "rules ms",
        "controller ms",
        "total ms",
        "slowest ms",
        "changes",
        "entries",
        "CPU ms",
        "generator CPU ms",
    ]);
    for point in &results.points {
        let cell = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), number);
        let mean = |metric: &str| cell(point.mean(metric));
        table.row([
            point.label(),
            mean("reply_ms"),
            mean("rules_ms"),
            mean("controller_ms"),
            mean("total_ms"),
            cell(slowest(point)),
            mean("changes"),
            mean("entries"),
            mean("cpu_ms"),
            mean("cpu_generator_ms"),
        ]);
    }
    table
}

/// Writes the results directory.
///
/// # Errors
/// [`Error::Report`].
pub fn write(verdict: &Verdict, dir: &Path) -> Result<(), Error> {
    let results = &verdict.results;
    let groups = |of: &dyn Fn(&Point) -> Vec<f64>| -> Vec<(String, Vec<f64>)> {
        results.points.iter().map(|point| (short(point), of(point))).collect()
    };
    let times = groups(&|point| {
        [point.mean("total_ms"), slowest(point)].map(|value| value.unwrap_or(f64::NAN)).into()
    });
    let threads = threads(results);
    let used = groups(&|point| threads.iter().map(|kind| used_by(point, kind)).collect());
    let names: Vec<&str> = threads.iter().map(String::as_str).collect();
    let figures = vec![
        Figure {
            name: "time".to_owned(),
            drawing: draw_groups("Until it has started or moved", "ms", &["mean", "slowest"], &times),
            caption: "From the request, or the failure, until all rules are acknowledged and (of a start) the tenant's \
                      controller sees all ports up."
                .to_owned(),
        },
        Figure {
            name: "cpu".to_owned(),
            drawing: draw_groups("CPU time of the system's threads", "ms", &names, &used),
            caption: "Means over the runs, from the request or the failure until the tables have stood still for 0.7 s."
                .to_owned(),
        },
    ];
    let tables = vec![
        ("What was measured".to_owned(), table(results)),
        ("What was asked for".to_owned(), verdict.criteria_table()),
    ];
    let extras = Extras { figures, tables };
    Ok(results.write_with(dir, &verdict.histograms, verdict.window, &extras)?)
}

fn slowest(point: &Point) -> Option<f64> {
    point.metrics.get("total_ms")?.samples.iter().copied().reduce(f64::max)
}

/// The name of a case below a figure.
fn short(point: &Point) -> String {
    let value =
        |name: &str| point.parameters.get(name).map(ToString::to_string).unwrap_or_default();
    let backups = if value("backups") == "yes" { ", backups" } else { "" };
    format!("{}{backups}", value("phase"))
}

/// The threads' CPU time in ms. `shard-0` and `shard-1` are one kind of thread.
fn threads_of(point: &Point) -> impl Iterator<Item = (&str, f64)> {
    point.metrics.iter().filter_map(|(name, metric)| {
        let thread = name.strip_prefix(THREAD)?.strip_suffix("_ms")?;
        let kind = thread.split_once('-').map_or(thread, |(kind, _)| kind);
        Some((kind, metric.mean?))
    })
}

fn used_by(point: &Point, kind: &str) -> f64 {
    threads_of(point).filter(|(name, _)| *name == kind).map(|(_, ms)| ms).sum()
}

/// The kinds of threads that used a twentieth or more of the time in some case.
fn threads(results: &Results) -> Vec<String> {
    let mut kinds = BTreeSet::new();
    for point in &results.points {
        let all: f64 = threads_of(point).map(|(_, ms)| ms).sum();
        let much = threads_of(point).filter(|(kind, _)| used_by(point, kind) >= all / 20.0);
        kinds.extend(much.map(|(kind, _)| kind.to_owned()));
    }
    kinds.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::{Better, Metric};

    #[test]
    fn cpu_time_of_numbered_threads_is_added_and_idle_threads_are_left_out() {
        let mut point = Point::default();
        for (name, ms) in [("shard-0", 30.0), ("shard-1", 10.0), ("store", 3.0), ("control", 0.5)] {
            let metric = Metric::new("ms", Better::Lower, vec![ms]);
            point.metrics.insert(format!("{THREAD}{name}_ms"), metric);
        }
        assert_eq!(used_by(&point, "shard"), 40.0);
        let mut results = Results::new("t", 1, report::Environment::capture(&[]));
        results.points.push(point);
        assert_eq!(threads(&results), ["shard", "store"]);
    }
}
