//! Writes `report.html`: one self-contained page, readable without network and without script.
//!
//! The page has this order: the main figure with a sentence, the findings by kind with folded details, the other
//! figures, the numbers, and the settings and the command to repeat the measurement. [`sheet`] is a page that fits one
//! sheet of paper.

mod findings;
mod generic;
mod parts;
mod sheet;
mod style;

pub use parts::file_name;
pub use sheet::{Block, Sheet, sheet};

use crate::figure::{Figure, palette_of};
use crate::names::tool_title;
use crate::results::{Extras, Point, Results};
use crate::table::{Table, number};
use maud::html;
use parts::{document, figure_html, table_html};

/// Returns the text of the page. The page shows the result's own figures if there are any, else the
/// figures that can be drawn of any result.
#[must_use]
pub fn html(results: &Results, extras: &Extras) -> String {
    let figures = figures(results, extras);
    let palette = palette_of(figures.iter().map(|figure| &figure.drawing));
    let title = tool_title(&results.tool);
    let (first, others) = figures.split_at(figures.len().min(1));
    let body = html! {
        h1 { (title.heading) }
        @if let Some(source) = title.source { p.source { (source) } }
        p.small { (results.started) ", " (results.environment.machine()) }
        @if results.is_partial() {
            p.careful {
                b { "Half a result: " }
                (results.findings.first().map_or("the measurement was ended early", |it| it.text.as_str()))
            }
        }
        @for figure in first { (figure_html(figure, &palette)) }
        (findings::html(&results.findings))
        @for figure in others { (figure_html(figure, &palette)) }
        @for (heading, table) in &extras.tables { h2 { (heading) } (table_html(table)) }
        @let summary = summary(&results.points);
        @if !summary.is_empty() { h2 { "Rates and latencies" } (table_html(&summary)) }
        h2 { "Settings" }
        (table_html(&settings(results)))
        p {
            "Latency is arrival minus " i { "intended" } " send time. The same data: "
            code { "result.json" } ", " code { "metrics.csv" } ", " code { "tenants.csv" } ", and "
            code { "histograms.hlog" } " for HdrHistogram's tools."
        }
        h2 { "Command" }
        pre { (command_line(&results.environment.command)) }
    };
    document(title.heading, style::PAGE, &body)
}

/// Returns the result's own figures, or the figures that can be drawn of any result.
#[must_use]
pub fn figures(results: &Results, extras: &Extras) -> Vec<Figure> {
    if extras.figures.is_empty() { generic::figures(results) } else { extras.figures.clone() }
}

/// Quotes a command line so that it can be pasted into a shell.
fn command_line(arguments: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    let quote = |word: &String| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    };
    arguments.iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// Makes the table of rates and latencies. Columns without values are left out.
fn summary(points: &[Point]) -> Table {
    const COLUMNS: [(&str, &str); 11] = [
        ("rate/s", "rate_per_s"),
        ("p50 µs", "p50_us"),
        ("± 95 %", "p50_us"),
        ("p90 µs", "p90_us"),
        ("p99 µs", "p99_us"),
        ("± 95 %", "p99_us"),
        ("p99.9 µs", "p999_us"),
        ("max µs", "max_us"),
        ("unanswered %", "unanswered_percent"),
        ("CPU %", "cpu_percent"),
        ("generator's lag p99 µs", "lag_p99_us"),
    ];
    let value = |point: &Point, (title, name): (&str, &str)| match title {
        "± 95 %" => point.metrics.get(name)?.ci95,
        _ => point.mean(name),
    };
    let has_any = |point: &&Point| {
        ["rate_per_s", "p50_us", "cpu_percent"].iter().any(|name| point.mean(name).is_some())
    };
    let points: Vec<&Point> = points.iter().filter(has_any).collect();
    let known: Vec<(&str, &str)> = COLUMNS
        .into_iter()
        .filter(|column| points.iter().any(|point| value(point, *column).is_some()))
        .collect();
    let titles = known.iter().map(|(title, _)| *title);
    let mut table = Table::new(["system", "case", "runs"].into_iter().chain(titles));
    for point in points {
        let runs = point.metrics.values().map(|metric| metric.samples.len()).max().unwrap_or(0);
        let cells = known.iter().map(|column| value(point, *column));
        let cells = cells.map(|value| value.map_or_else(|| "–".to_owned(), number));
        let start = [point.system.clone(), point.label(), runs.to_string()];
        table.row(start.into_iter().chain(cells));
    }
    table
}

fn settings(results: &Results) -> Table {
    let mut table = Table::new(["setting", "value"]);
    let environment = &results.environment;
    table.row(["seed".to_owned(), results.seed.to_string()]);
    table.row(["weir".to_owned(), environment.weir.clone()]);
    if let Some(commit) = &environment.commit {
        table.row(["commit".to_owned(), commit.clone()]);
    }
    for (name, version) in &environment.versions {
        table.row([name.clone(), version.clone()]);
    }
    for (name, value) in &results.settings {
        table.row([name.clone(), value.to_string()]);
    }
    table
}

#[cfg(test)]
mod tests;
