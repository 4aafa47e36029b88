//! Draws the figures that are possible for any result: metrics against the varied parameter, latency by system and
//! case, and values over time.

use crate::figure::{Drawing, Figure, Line, Lines, Mark, Marks, Scale, Shape};
use crate::groups::{by_key, unique};
use crate::histogram::LatencySummary;
use crate::names::{capital, metric_in_words, parameter_in_words, with_unit};
use crate::results::{Interval, Metric, Point, Results, Scalar};

/// The maximum number of figures. Each figure limits the amount of its own data.
const MOST_FIGURES: usize = 40;
/// The units that get a figure. Plain counts and flags are in tables.
const UNITS: [(&str, &str); 9] = [
    ("µs", "time"),
    ("ms", "time"),
    ("s", "time"),
    ("1/s", "rate"),
    ("packet/s", "rate"),
    ("Mbit/s", "throughput"),
    ("Mb/s", "throughput"),
    ("Gbit/s", "throughput"),
    ("%", "share"),
];

/// Draws all possible figures of the points.
pub(super) fn figures(results: &Results) -> Vec<Figure> {
    let points = &results.points;
    let mut figures = Vec::new();
    let by_module = modules(points);
    if by_module.iter().any(|(name, _)| !name.is_empty()) {
        by_module.iter().for_each(|(name, points)| module(&mut figures, name, points));
    } else {
        load(&mut figures, points, &results.tool);
        if figures.is_empty() {
            module(&mut figures, "", &points.iter().collect::<Vec<_>>());
        }
    }
    figures.truncate(MOST_FIGURES);
    figures
}

/// Groups the points by experiment, in their order.
fn modules(points: &[Point]) -> Vec<(String, Vec<&Point>)> {
    let name = |point: &Point| point.parameters.get("module").map(ToString::to_string);
    let mut modules = by_key(points.iter().map(|point| (name(point).unwrap_or_default(), point)));
    // The floor of the tool is measured first, but comes last in the report, because readers want
    // the other results first.
    modules.sort_by_key(|(name, _)| name == "floor");
    modules
}

/// Draws the points of a load generator: latency, rate, CPU, and values over time.
fn load(figures: &mut Vec<Figure>, points: &[Point], tool: &str) {
    let all: Vec<&Point> = points.iter().collect();
    for parameter in ["rate", "tenants"] {
        if values(&all, parameter) < 2 {
            continue;
        }
        for metric in ["p50_us", "p99_us"] {
            let found = points.iter().any(|point| point.metrics.contains_key(metric));
            if found {
                let name = format!("{}-by-{parameter}", metric.trim_end_matches("_us"));
                let lines = sweep(&all, parameter, &[metric], Scale::Logarithmic);
                let title = format!("{} by {parameter}", capital(&metric_in_words(metric)));
                let caption = "Means over runs with 95 % confidence intervals.";
                figures.push(figure(&name, Lines { title, ..lines }.draw(), caption));
            }
        }
    }
    let latencies: Vec<(&Point, &LatencySummary)> = points
        .iter()
        .filter_map(|point| Some((point, point.latency.get("latency")?)))
        .filter(|(_, latency)| latency.count > 0)
        .collect();
    if !latencies.is_empty() {
        figures.push(latency_boxes(&latencies));
        figures.push(distribution(&latencies));
    }
    let many = points.iter().filter(|point| point.tenants.len() > 1);
    let many: Vec<&Point> = many.collect();
    if !many.is_empty() {
        // The columns are the emulated tenants, or the emulated switches of a controller.
        figures
            .push(each_tenant(&many, if tool == "bench controller" { "switch" } else { "tenant" }));
    }
    if points.iter().any(|point| point.metrics.contains_key("cpu_percent")) {
        let title = "CPU of the system under test";
        figures.push(figure("cpu", by_case(&all, "cpu_percent", title), CONFIDENCE));
    }
    if points.iter().any(|point| point.intervals.len() > 1) {
        figures.push(course(&all));
    }
}

const CONFIDENCE: &str = "Means over runs; thin lines are 95 % confidence intervals.";

fn figure(name: &str, drawing: Drawing, caption: &str) -> Figure {
    Figure { name: name.to_owned(), drawing, caption: caption.to_owned() }
}

/// The number of different values of a numeric parameter.
fn values(points: &[&Point], parameter: &str) -> usize {
    let numbers = points.iter().filter_map(|point| number_of(point, parameter));
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    numbers.len()
}

/// The maximum number of values of a parameter in one curve, with all other parameters the same.
fn along(points: &[&Point], parameter: &str) -> usize {
    let cases = by_key(points.iter().map(|point| (case(point, &[parameter]), *point)));
    cases.iter().map(|(_, points)| values(points, parameter)).max().unwrap_or(0)
}

fn number_of(point: &Point, parameter: &str) -> Option<f64> {
    match point.parameters.get(parameter) {
        Some(Scalar::Number(number)) => Some(*number),
        _ => None,
    }
}

/// The parameters of a point as text, except the parameters in `without`.
fn case(point: &Point, without: &[&str]) -> String {
    let rest = point.parameters.iter().filter(|(name, _)| !without.contains(&name.as_str()));
    rest.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

/// Draws metrics of one unit against a numeric parameter, with a panel for each case and a line for
/// each system and metric.
fn sweep(points: &[&Point], parameter: &str, metrics: &[&str], y_scale: Scale) -> Lines {
    let mut lines: Vec<Line> = Vec::new();
    let mut unit = String::new();
    let several = one_system(points).is_none();
    for point in points {
        let Some(x) = number_of(point, parameter) else { continue };
        for metric in metrics {
            let Some(found) = point.metrics.get(*metric) else { continue };
            let Some(mean) = found.mean else { continue };
            unit.clone_from(&found.unit);
            let (name, variant) = match (metrics.len() > 1, several) {
                (true, true) => (point.system.clone(), metric_in_words(metric)),
                (true, false) => (metric_in_words(metric), String::new()),
                _ => (point.system.clone(), String::new()),
            };
            let panel = case(point, &[parameter, "module"]);
            let same = |it: &Line| it.name == name && it.variant == variant && it.panel == panel;
            let at = match lines.iter().position(same) {
                Some(at) => at,
                None => {
                    let line = Line { name, variant, panel, ..Line::default() };
                    lines.push(line);
                    lines.len() - 1
                }
            };
            if let Some(line) = lines.get_mut(at) {
                let at = line.points.partition_point(|point| point.0 < x);
                line.points.insert(at, (x, mean));
                line.errors.insert(at, half(found));
            }
        }
    }
    let y_label = match metrics {
        [metric] => with_unit(&metric_in_words(metric), &unit),
        _ => unit,
    };
    Lines { x_label: parameter_in_words(parameter), y_label, y_scale, lines, ..Lines::default() }
}

/// Half the width of the confidence interval. With two runs the interval is useless, because
/// Student's t is 12.7.
fn half(metric: &Metric) -> f64 {
    metric.ci95.filter(|_| metric.samples.len() > 2).unwrap_or(0.0)
}

fn one_system<'a>(points: &[&'a Point]) -> Option<&'a str> {
    let first = points.first()?.system.as_str();
    points.iter().all(|point| point.system == first).then_some(first)
}

/// Draws one experiment: for each unit its metrics against the varied parameter, or by case.
fn module(figures: &mut Vec<Figure>, module: &str, points: &[&Point]) {
    let names = points.iter().flat_map(|point| point.parameters.keys());
    let varied = names.max_by_key(|name| along(points, name)).map(String::as_str);
    let varied = varied.filter(|name| along(points, name) > 1);
    for (unit, quantity) in UNITS {
        // A metric that is zero everywhere needs no figure.
        let is_shown =
            |metric: &Metric| metric.unit == unit && metric.mean.is_some_and(|mean| mean != 0.0);
        let shown = points.iter().flat_map(|point| &point.metrics).filter(|(_, it)| is_shown(it));
        let metrics = unique(shown.map(|(name, _)| name.as_str()));
        // A metric that does not vary with the parameter gets its own figure.
        let at_all = |metric: &&str| {
            let mut its = points.iter().filter(|point| point.metrics.contains_key(*metric));
            varied.is_some_and(|varied| its.all(|point| number_of(point, varied).is_some()))
        };
        let (swept, alone): (Vec<&str>, Vec<&str>) = metrics.into_iter().partition(at_all);
        let start = if module.is_empty() { String::new() } else { format!("{module}-") };
        let title = if module.is_empty() { "What was measured" } else { module };
        let title = format!("{}: {quantity}", capital(&title.replace('-', " ")));
        let caption = "Means over repetitions with 95 % confidence intervals.";
        if let Some(parameter) = varied.filter(|_| !swept.is_empty()) {
            let lines = sweep(points, parameter, &swept, Scale::Linear);
            let all = || lines.lines.iter().flat_map(|line| &line.points);
            let (x_scale, y_scale) = (is_wide(all().map(|it| it.0)), is_wide(all().map(|it| it.1)));
            let y_label = match swept[..] {
                [_] => lines.y_label.clone(),
                _ => with_unit(quantity, unit),
            };
            let title = format!("{title} by {}", lines.x_label);
            let lines = Lines { title, y_label, x_scale, y_scale, ..lines };
            figures.push(figure(&format!("{start}{quantity}"), lines.draw(), caption));
        }
        if !alone.is_empty() {
            let drawing = by_metric(points, &alone, &with_unit(quantity, unit), &title);
            figures.push(figure(&format!("{start}{quantity}-by-case"), drawing, caption));
        }
    }
}

/// Selects a logarithmic scale if values differ by more than a factor of 30 and no value is zero.
fn is_wide(values: impl Iterator<Item = f64>) -> Scale {
    let (low, high) = values
        .fold((f64::MAX, 0.0), |(low, high): (f64, f64), value| (low.min(value), high.max(value)));
    if low > 0.0 && high > low * 30.0 { Scale::Logarithmic } else { Scale::Linear }
}

/// Draws metrics of one unit, with a panel for each metric and a row for each case.
fn by_metric(points: &[&Point], metrics: &[&str], label: &str, title: &str) -> Drawing {
    let mut marks = Vec::new();
    for metric in metrics {
        for point in points {
            let Some(found) = point.metrics.get(*metric) else { continue };
            let Some(mean) = found.mean else { continue };
            let half = half(found);
            let whiskers = (half > 0.0).then_some((mean - half, mean + half));
            let shape = Shape { whiskers, dot: Some(mean), ..Shape::default() };
            let case = case(point, &["module"]);
            let category = if case.is_empty() { point.system.clone() } else { case };
            let panel = metric_in_words(metric);
            marks.push(Mark { category, panel, shape, ..place(point) });
        }
    }
    let scale = is_wide(marks.iter().filter_map(|mark| mark.shape.dot));
    Marks::new(title, label, scale, marks).draw()
}

/// Draws one metric, with a panel for each case and a bar for each system. A single case needs no
/// panels.
fn by_case(points: &[&Point], metric: &str, title: &str) -> Drawing {
    let mut unit = String::new();
    let mark = |point: &&Point| {
        let found = point.metrics.get(metric)?;
        let mean = found.mean?;
        unit.clone_from(&found.unit);
        let half = half(found);
        let whiskers = (half > 0.0).then_some((mean - half, mean + half));
        let shape = Shape { bar: Some(mean), whiskers, ..Shape::default() };
        Some(Mark { shape, ..place(point) })
    };
    let marks = points.iter().filter_map(mark).collect();
    let unit = if metric == "cpu_percent" { "% of one core" } else { unit.as_str() };
    let label = with_unit(&metric_in_words(metric), unit);
    Marks::new(title, &label, Scale::Linear, marks).draw()
}

fn place(point: &Point) -> Mark {
    Mark {
        category: point.system.clone(),
        system: point.system.clone(),
        panel: point.label(),
        ..Mark::default()
    }
}

fn latency_boxes(latencies: &[(&Point, &LatencySummary)]) -> Figure {
    let mark = |(point, latency): &(&Point, &LatencySummary)| Mark {
        shape: Shape {
            whiskers: Some((latency.min_us, latency.p99_us)),
            quartiles: Some((latency.p25_us, latency.p50_us, latency.p75_us)),
            dot: Some(latency.mean_us),
            ..Shape::default()
        },
        ..place(point)
    };
    let marks = latencies.iter().map(mark).collect();
    let title = "Latency by system and case";
    let drawing = Marks::new(title, "latency, µs", Scale::Logarithmic, marks);
    let caption = "Boxes: quartiles and median; thin lines from the least to the 99th percentile; dots: means.";
    figure("latency", drawing.draw(), caption)
}

fn distribution(latencies: &[(&Point, &LatencySummary)]) -> Figure {
    let line = |(point, latency): &(&Point, &LatencySummary)| Line {
        name: point.system.clone(),
        panel: point.label(),
        points: latency.cdf.iter().map(|&(us, share)| (us, share * 100.0)).collect(),
        ..Line::default()
    };
    let lines = Lines {
        title: "Latency, cumulative".to_owned(),
        x_label: "latency, µs".to_owned(),
        y_label: "% of messages at most".to_owned(),
        x_scale: Scale::Logarithmic,
        lines: latencies.iter().map(line).collect(),
        steps: true,
        ..Lines::default()
    };
    figure("latency-cumulative", lines.draw(), "")
}

fn each_tenant(points: &[&Point], who: &str) -> Figure {
    let mut marks = Vec::new();
    for point in points {
        let panel = format!("{} {}", point.system, point.label()).trim().to_owned();
        for (index, tenant) in point.tenants.iter().enumerate() {
            let shape = Shape { dot: Some(tenant.latency.mean_us), ..Shape::default() };
            let (category, panel) = ((index + 1).to_string(), panel.clone());
            marks.push(Mark { category, panel, shape, ..place(point) });
        }
    }
    let drawing = Marks {
        title: format!("Mean latency of each {who}"),
        value_label: "mean latency, µs".to_owned(),
        category_label: who.to_owned(),
        scale: Scale::Logarithmic,
        marks,
    };
    figure(&format!("each-{who}"), drawing.draw(), "")
}

fn course(points: &[&Point]) -> Figure {
    let answered = |interval: &&Interval| interval.received > 0;
    let line = |point: &&Point| Line {
        name: point.system.clone(),
        panel: point.label(),
        points: point.intervals.iter().filter(answered).map(|i| (i.start_s, i.mean_us)).collect(),
        ..Line::default()
    };
    let lines = Lines {
        title: "Mean latency over the first run".to_owned(),
        x_label: "seconds since its start".to_owned(),
        y_label: "mean latency, µs".to_owned(),
        y_scale: Scale::Logarithmic,
        lines: points.iter().map(line).collect(),
        ..Lines::default()
    };
    figure("course", lines.draw(), "")
}
