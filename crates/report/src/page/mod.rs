//! `report.html`: one self-contained page, readable without network and without script.
//!
//! The order is that of a reader's questions: what is to be seen (a sentence and the figure), what to be
//! careful about (findings by kind, details folded), the other figures, the numbers, and how to measure
//! it again (settings, command). [`sheet`] is a page that fits one sheet of paper.

mod findings;
mod generic;
mod sheet;
mod style;

pub use sheet::{Block, Sheet, sheet};

use crate::figure::{Figure, NARROW, Palette, WIDE, palette_of};
use crate::names::tool_title;
use crate::results::{Extras, Point, Results};
use crate::table::{Table, number};
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// Rows that are shown at once; further ones are folded, up to the second number.
const ROWS_SHOWN: usize = 30;
const ROWS_MOST: usize = 500;

/// The page's text. A result that brings figures of its own is shown by them; else there are those
/// that can be drawn of any result.
#[must_use]
pub fn html(results: &Results, extras: &Extras) -> String {
    let figures = figures(results, extras);
    let palette = palette(results, &figures);
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

/// The figures of a result: its own, or those that can be drawn of any result.
#[must_use]
pub fn figures(results: &Results, extras: &Extras) -> Vec<Figure> {
    if extras.figures.is_empty() { generic::figures(results) } else { extras.figures.clone() }
}

/// One palette for all pages of a result: systems in the order of its points, then of its figures.
#[must_use]
pub fn palette(results: &Results, figures: &[Figure]) -> Palette {
    let _ = results;
    palette_of(figures.iter().map(|figure| &figure.drawing))
}

fn document(title: &str, style: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(style)) }
            }
            body { (body) }
        }
    };
    let mut text = page.into_string();
    text.push('\n');
    text
}

/// A sentence, the figure for a page and for a phone, what else there is to say, and the data.
fn figure_html(figure: &Figure, palette: &Palette) -> Markup {
    html! {
        figure {
            p.says { (figure.drawing.says()) }
            div.wide { (PreEscaped(figure.drawing.svg_in(WIDE, palette))) }
            div.narrow { (PreEscaped(figure.drawing.svg_in(NARROW, palette))) }
            figcaption {
                @if !figure.caption.is_empty() { (figure.caption) " " }
                a href={ "figures/" (file_name(&figure.name)) ".csv" } { "CSV" }
            }
        }
    }
}

/// A figure's name as a file's: without what would lead to another folder.
#[must_use]
pub fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = name.chars().map(plain).take(100).collect();
    if name.starts_with('.') || name.is_empty() { format!("figure{name}") } else { name }
}

/// A table as HTML, which scrolls in itself; what is long is folded, and cut at a bound.
fn table_html(table: &Table) -> Markup {
    let rows = table.rows();
    let numeric = table.numeric();
    let class = |index: usize| numeric.get(index).filter(|is| **is).map(|_| "n");
    let part = |rows: &[Vec<String>]| {
        html! {
            div.scroll { table {
                thead { tr { @for (index, cell) in table.header().iter().enumerate() {
                    th class=[class(index)] { (cell) }
                } } }
                tbody { @for row in rows { tr { @for (index, cell) in row.iter().enumerate() {
                    td class=[class(index)] { (cell) }
                } } } }
            } }
        }
    };
    if rows.len() <= ROWS_SHOWN {
        return part(rows);
    }
    let shown = rows.get(..rows.len().min(ROWS_MOST)).unwrap_or(rows);
    let left_out = rows.len() - shown.len();
    html! {
        details {
            summary { "All " (shown.len()) " rows" }
            (part(shown))
        }
        @if left_out > 0 { p.small { (left_out) " more rows are in " code { "metrics.csv" } "." } }
    }
}

/// Quoted so that it can be pasted into a shell.
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

/// Rates and latencies; columns that no point has are left out.
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
