//! `report.html`: one self-contained page, readable without network and without script.

use crate::figure::{BoxPlot, Line, Lines, Scale, bars, boxes, escape, strips};
use crate::histogram::LatencySummary;
use crate::results::{Extras, Interval, Point, Results};
use crate::sweep::sweep_figures;
use crate::table::{Table, number};
use std::fmt::Write as _;

const STYLE: &str = "body{font:15px/1.45 sans-serif;max-width:60em;margin:2em auto;padding:0 1em;\
color:#222}table{border-collapse:collapse;margin:1em 0;font-size:13px;display:block;overflow-x:auto}\
td,th{border-bottom:1px solid #ddd;padding:.25em .7em;text-align:right;white-space:nowrap}\
td:first-child,th:first-child,td:nth-child(2),th:nth-child(2){text-align:left}\
svg{width:100%;height:auto;border:1px solid #eee;margin:.6em 0}code,pre{background:#f4f4f4}\
pre{padding:.7em;overflow-x:auto}figure{margin:1.5em 0}figcaption{font-size:13px}.finding{background:#fff3e0;border-left:4px solid #d55e00;\
padding:.4em .8em;margin:.4em 0}";

/// The page's text. A result that brings figures of its own is shown by them; else there are those
/// that can be drawn of any result.
#[must_use]
pub fn html(results: &Results, extras: &Extras) -> String {
    let mut page = format!(
        "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title>\
         <style>{STYLE}</style></head><body><h1>{0}</h1>",
        escape(&results.tool)
    );
    // Writing to a String cannot fail.
    _ = write!(
        page,
        "<p>{}, on {}.</p><pre>{}</pre>",
        escape(&results.started),
        escape(&results.environment.machine()),
        escape(&command_line(&results.environment.command))
    );
    for finding in &results.findings {
        _ = write!(
            page,
            "<p class=\"finding\"><b>{}</b>: {}</p>",
            escape(&finding.code),
            escape(&finding.text)
        );
    }
    page.push_str("<h2>Figures</h2>");
    for figure in &extras.figures {
        _ = write!(
            page,
            "<figure>{}<figcaption>{}</figcaption></figure>",
            figure.drawing.svg(),
            escape(&figure.caption)
        );
    }
    for (heading, table) in &extras.tables {
        _ = write!(page, "<h3>{}</h3>{}", escape(heading), table_html(table));
    }
    let summary = summary(&results.points);
    if !summary.rows().is_empty() {
        page.push_str(&table_html(&summary));
    }
    if extras.figures.is_empty() {
        // What stands beside each other there: emulated tenants, or a controller's emulated switches.
        let who = if results.tool == "bench controller" { "switch" } else { "tenant" };
        figures(&mut page, &results.points, who);
    }
    page.push_str("<h2>Settings</h2>");
    page.push_str(&table_html(&settings(results)));
    page.push_str(
        "<p>Latency is arrival minus <i>intended</i> send time. The same data: <code>result.json</code>, \
         <code>metrics.csv</code>, <code>tenants.csv</code>, and <code>histograms.hlog</code> for \
         HdrHistogram's tools.</p></body></html>\n",
    );
    page
}

/// A table as HTML.
#[must_use]
pub fn table_html(table: &Table) -> String {
    let row = |cells: &[String], tag: &str| {
        let cells: String =
            cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect();
        format!("<tr>{cells}</tr>")
    };
    let rows: String = table.rows().iter().map(|cells| row(cells, "td")).collect();
    format!("<table><thead>{}</thead><tbody>{rows}</tbody></table>", row(table.header(), "th"))
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

fn name_of(point: &Point) -> String {
    format!("{} {}", point.system, point.label()).trim_end().to_owned()
}

/// Rates and latencies; what has neither is in tables of its own.
fn summary(points: &[Point]) -> Table {
    let mut table = Table::new([
        "system",
        "case",
        "runs",
        "rate/s",
        "p50 µs",
        "± 95 %",
        "p90 µs",
        "p99 µs",
        "± 95 %",
        "p99.9 µs",
        "max µs",
        "unanswered %",
        "CPU %",
        "generator's lag p99 µs",
    ]);
    let figures = ["rate_per_s", "p50_us", "cpu_percent"];
    let has_any = |point: &&Point| figures.iter().any(|name| point.mean(name).is_some());
    for point in points.iter().filter(has_any) {
        let mean = |name: &str| point.mean(name).map_or_else(|| "–".to_owned(), number);
        let half = |name: &str| {
            let half = point.metrics.get(name).and_then(|metric| metric.ci95);
            half.map_or_else(|| "–".to_owned(), number)
        };
        let runs = point.metrics.values().map(|metric| metric.samples.len()).max().unwrap_or(0);
        table.row([
            point.system.clone(),
            point.label(),
            runs.to_string(),
            mean("rate_per_s"),
            mean("p50_us"),
            half("p50_us"),
            mean("p90_us"),
            mean("p99_us"),
            half("p99_us"),
            mean("p999_us"),
            mean("max_us"),
            mean("unanswered_percent"),
            mean("cpu_percent"),
            mean("lag_p99_us"),
        ]);
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

fn figures(page: &mut String, points: &[Point], who: &str) {
    let latencies: Vec<(String, &LatencySummary)> = points
        .iter()
        .filter_map(|point| Some((name_of(point), point.latency.get("latency")?)))
        .filter(|(_, latency)| latency.count > 0)
        .collect();
    if !latencies.is_empty() {
        page.push_str(&distribution("Latency, cumulative", &latencies));
        page.push_str(&latency_boxes(&latencies));
    }
    for drawing in sweep_figures(points) {
        page.push_str(&drawing.svg());
    }
    let strips_of: Vec<(String, Vec<f64>)> = points
        .iter()
        .filter(|point| point.tenants.len() > 1)
        .map(|point| (name_of(point), point.tenants.iter().map(|t| t.latency.mean_us).collect()))
        .collect();
    if !strips_of.is_empty() {
        let title = format!("Mean latency of each {who}, in their order");
        page.push_str(&strips(&title, "µs", Scale::Logarithmic, &strips_of));
    }
    let cpu: Vec<(String, f64, f64)> = points
        .iter()
        .filter_map(|point| {
            let metric = point.metrics.get("cpu_percent")?;
            Some((name_of(point), metric.mean?, metric.ci95.unwrap_or(0.0)))
        })
        .collect();
    if !cpu.is_empty() {
        page.push_str(&bars("CPU of the system under test", "% of one core", &cpu));
    }
    if points.iter().any(|point| point.intervals.len() > 1) {
        page.push_str(&course(points));
    }
}

fn distribution(title: &str, latencies: &[(String, &LatencySummary)]) -> String {
    let line = |(name, latency): &(String, &LatencySummary)| Line {
        name: name.clone(),
        points: latency.cdf.iter().map(|&(us, share)| (us, share * 100.0)).collect(),
        ..Line::default()
    };
    let lines = latencies.iter().map(line).collect();
    Lines {
        title: title.to_owned(),
        x_label: "latency, µs".to_owned(),
        y_label: "% of messages at most".to_owned(),
        x_scale: Scale::Logarithmic,
        lines,
        steps: true,
        ..Lines::default()
    }
    .svg()
}

fn latency_boxes(latencies: &[(String, &LatencySummary)]) -> String {
    let plot = |(name, latency): &(String, &LatencySummary)| BoxPlot {
        name: name.clone(),
        low: latency.min_us,
        q1: latency.p25_us,
        median: latency.p50_us,
        q3: latency.p75_us,
        high: latency.p99_us,
        mean: Some(latency.mean_us),
    };
    let plots: Vec<BoxPlot> = latencies.iter().map(plot).collect();
    boxes(
        "Latency: least, quartiles, 99th percentile; mean as a dot",
        "µs",
        Scale::Logarithmic,
        &plots,
    )
}

fn course(points: &[Point]) -> String {
    let answered = |interval: &&Interval| interval.received > 0;
    let line = |point: &Point| Line {
        name: name_of(point),
        points: point.intervals.iter().filter(answered).map(|i| (i.start_s, i.mean_us)).collect(),
        ..Line::default()
    };
    let lines = points.iter().map(line).collect();
    Lines {
        title: "Mean latency over the first run".to_owned(),
        x_label: "seconds since its start".to_owned(),
        y_label: "µs".to_owned(),
        y_scale: Scale::Logarithmic,
        lines,
        ..Lines::default()
    }
    .svg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;
    use crate::results::{Better, Finding, Metric};
    use crate::{Histogram, Precision, TenantRow};

    #[test]
    fn the_page_has_everything_and_fetches_nothing() {
        let mut environment = Environment::capture(&[]);
        environment.command = vec!["weir".into(), "bench".into(), "it's <b>".into()];
        let mut results = Results::new("bench relay", 7, environment);
        let mut histogram = Histogram::new(Precision::Fine);
        (1..100).for_each(|us| histogram.record(us * 1000));
        let mut point = Point::new("weir", [("rate", 40_000.0)]);
        let samples = vec![1.0, 2.0];
        point.metrics.insert("cpu_percent".into(), Metric::new("%", Better::Lower, samples));
        point.latency.insert("latency".into(), histogram.summary());
        let row = TenantRow { latency: histogram.summary(), ..TenantRow::default() };
        point.tenants = vec![row.clone(), row];
        point.intervals = vec![Interval { received: 5, mean_us: 3.0, ..Interval::default() }; 2];
        results.points.push(point);
        results.findings.push(Finding { code: "leak".into(), text: "a < b".into() });
        let page = html(&results, &Extras::default());
        for part in ["weir bench 'it'\\''s &lt;b&gt;'", "leak", "a &lt; b", "rate=40,000"] {
            assert!(page.contains(part), "{part} is missing");
        }
        assert_eq!(page.matches("<svg").count(), 5);
        for part in ["src=", "href=", "<script", "@import", "url("] {
            assert!(!page.contains(part), "{part} would fetch or run something");
        }
    }
}
