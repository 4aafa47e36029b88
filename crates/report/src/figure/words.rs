//! Describes a figure in a sentence, and writes its data as CSV.

use super::drawing::{Drawing, Form};
use super::heatmap::HeatMap;
use super::lines::{Line, Lines};
use super::marks::{Marks, label};
use crate::names::capital;
use crate::table::{Table, number};

impl Drawing {
    /// Describes the figure in a sentence: the smallest and the largest value, with their names.
    #[must_use]
    pub fn says(&self) -> String {
        let sentence = match &self.form {
            Form::Lines(lines) if lines.steps => steps(lines),
            Form::Lines(lines) => at_the_end(lines),
            Form::Marks(marks) => middles(marks),
            Form::HeatMap(map) => extremes(map),
        };
        sentence.unwrap_or_else(|| "There is nothing to draw: no value was measured.".to_owned())
    }

    /// Writes the data as CSV, with one row for each point, mark or cell.
    #[must_use]
    pub fn csv(&self) -> String {
        let table = match &self.form {
            Form::Lines(lines) => lines_table(lines),
            Form::Marks(marks) => marks_table(marks),
            Form::HeatMap(map) => cells_table(map),
        };
        table.to_csv()
    }
}

fn lines_table(lines: &Lines) -> Table {
    let mut table = Table::new(["panel", "name", &lines.x_label, &lines.y_label, "± 95 %"]);
    for line in &lines.lines {
        for (index, (x, y)) in line.points.iter().enumerate() {
            let half = line.errors.get(index).map(f64::to_string).unwrap_or_default();
            table.row([line.panel.clone(), line.label(), x.to_string(), y.to_string(), half]);
        }
    }
    table
}

fn marks_table(marks: &Marks) -> Table {
    let value = marks.value_label.as_str();
    let mut table =
        Table::new(["panel", "category", "name", value, "low", "q1", "median", "q3", "high"]);
    let text = |value: Option<f64>| value.map(|it| it.to_string()).unwrap_or_default();
    for mark in &marks.marks {
        let shape = &mark.shape;
        table.row([
            mark.panel.clone(),
            mark.category.clone(),
            label(&mark.system, &mark.variant),
            text(shape.bar.or(shape.dot)),
            text(shape.whiskers.map(|it| it.0)),
            text(shape.quartiles.map(|it| it.0)),
            text(shape.quartiles.map(|it| it.1)),
            text(shape.quartiles.map(|it| it.2)),
            text(shape.whiskers.map(|it| it.1)),
        ]);
    }
    table
}

fn cells_table(map: &HeatMap) -> Table {
    let mut table = Table::new([&map.x_label, &map.y_label, &map.value_label]);
    for (column, cells) in map.columns.iter().zip(map.cells.chunks(map.rows.len().max(1))) {
        for (row, value) in map.rows.iter().zip(cells) {
            let value = value.map(|it| it.to_string()).unwrap_or_default();
            table.row([column.to_string(), row.to_string(), value]);
        }
    }
    table
}

/// The name of a line and its panel.
fn named(line: &Line) -> String {
    let label = line.label();
    match (label.is_empty(), label.contains(&line.panel)) {
        (false, true) => label,
        (true, _) => line.panel.clone(),
        (false, false) => format!("{label}, {}", line.panel),
    }
}

/// Describes a cumulative distribution by the median of each line.
fn steps(lines: &Lines) -> Option<String> {
    let half = |line: &Line| line.points.iter().find(|(_, share)| *share >= 50.0).map(|it| it.0);
    let values = lines.lines.iter().filter_map(|line| Some((named(line), half(line)?))).collect();
    let (what, unit) = quantity(&lines.x_label);
    Some(format!("Half have a {what} of at most {}.", between(values, unit)?))
}

/// Describes lines by their last values at the right.
fn at_the_end(lines: &Lines) -> Option<String> {
    let last = |line: &Line| line.points.last().copied();
    let ends: Vec<(String, (f64, f64))> =
        lines.lines.iter().filter_map(|line| Some((named(line), last(line)?))).collect();
    let x = ends.iter().map(|(_, (x, _))| *x).fold(f64::MIN, f64::max);
    let there: Vec<(String, f64)> = ends
        .iter()
        .filter(|(_, end)| end.0 == x)
        .map(|(name, (_, y))| (name.clone(), *y))
        .collect();
    let (what, unit) = quantity(&lines.y_label);
    let is_alone = lines.lines.len() == 1;
    let first = lines.lines.first().and_then(|line| line.points.first()).filter(|_| is_alone);
    if let (Some((x0, y0)), [(_, y)]) = (first, &there[..])
        && *x0 != x
    {
        let (from, to) = (valued(*y0, unit), valued(*y, unit));
        let (start, end) = (place(*x0, ""), place(x, &lines.x_label));
        return Some(format!("{}: {from} at {start}, {to} at {end}.", upper(what)));
    }
    let end = place(x, &lines.x_label);
    Some(format!("{} at {end}: {}.", upper(what), between(there, unit)?))
}

fn middles(marks: &Marks) -> Option<String> {
    let is_box = marks.marks.iter().any(|mark| mark.shape.quartiles.is_some());
    let (what, unit) = quantity(&marks.value_label);
    let value = |mark: &super::Mark| {
        let whose = match mark.category.starts_with(&mark.system) {
            true => mark.category.clone(),
            false => label(&mark.system, &mark.variant),
        };
        let at = if whose == mark.category { "" } else { &mark.category };
        // A number alone has no meaning, so the label of the category is added.
        let at = match at.parse::<f64>() {
            Ok(_) => format!("{} {at}", marks.category_label).trim().to_owned(),
            Err(_) => at.to_owned(),
        };
        let panel = if mark.panel.contains(&whose) {
            mark.panel.clone()
        } else {
            format!("{whose}, {}", mark.panel)
        };
        let parts = [panel.trim_matches([',', ' ']), &at];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        Some((parts.join(", "), mark.shape.middle()?))
    };
    let values = marks.marks.iter().filter_map(value).collect();
    let what = if is_box { format!("Median {what}") } else { upper(what) };
    Some(format!("{what}: {}.", between(values, unit)?))
}

fn extremes(map: &HeatMap) -> Option<String> {
    let (low, high) = map.span()?;
    let (what, unit) = quantity(&map.value_label);
    let blank = map.cells.iter().filter(|cell| cell.is_none()).count();
    let share = 100.0 * blank as f64 / map.cells.len().max(1) as f64;
    let blank = match blank {
        0 => String::new(),
        _ => format!("; {share:.0} % of the cells are blank"),
    };
    Some(format!("{}: {} to {}{blank}.", upper(what), valued(low, unit), valued(high, unit)))
}

/// Describes a few values one by one, or the smallest and the largest of many values, with their
/// names.
fn between(values: Vec<(String, f64)>, unit: &str) -> Option<String> {
    let text = |(name, value): &(String, f64)| match name.is_empty() {
        true => valued(*value, unit),
        false => format!("{} ({name})", valued(*value, unit)),
    };
    if values.len() <= 3 {
        let all: Vec<String> = values.iter().map(text).collect();
        return (!all.is_empty()).then(|| all.join(", "));
    }
    let least = values.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let most = values.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(format!("{} to {}", text(least), text(most)))
}

/// Splits a label such as `latency, ms` into the quantity and its unit.
fn quantity(label: &str) -> (&str, &str) {
    label.rsplit_once(", ").unwrap_or((label, ""))
}

fn valued(value: f64, unit: &str) -> String {
    format!("{} {unit}", number(value)).trim_end().to_owned()
}

/// Describes a position on an axis. The label of the axis is not always a noun that can follow a
/// number.
fn place(x: f64, label: &str) -> String {
    let is_noun = label.len() > 2 && !label.contains([':', ',']);
    match (label.is_empty(), is_noun) {
        (true, _) => number(x),
        (false, true) => format!("{} {label}", number(x)),
        (false, false) => format!("{} ({label})", number(x)),
    }
}

fn upper(text: &str) -> String {
    // A word at the start of a sentence gets a capital letter. A short unit such as `ms` keeps its
    // letters.
    if text.len() > 3 { capital(text) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::super::Scale;
    use super::*;

    fn line(name: &str, points: &[(f64, f64)]) -> Line {
        Line { name: name.into(), points: points.to_vec(), ..Line::default() }
    }

    #[test]
    fn the_sentence_of_a_figure_names_the_lowest_and_the_highest_value() {
        let mut lines = Lines {
            x_label: "tenants".into(),
            y_label: "latency, ms".into(),
            y_scale: Scale::Logarithmic,
            lines: vec![line("weir", &[(1.0, 2.0), (20.0, 3.0)])],
            ..Lines::default()
        };
        assert_eq!(lines.draw().says(), "Latency: 2 ms at 1, 3 ms at 20 tenants.");
        lines.lines.push(line("direct", &[(20.0, 1.0)]));
        assert_eq!(lines.draw().says(), "Latency at 20 tenants: 3 ms (weir), 1 ms (direct).");
        lines.lines.extend(["a", "b"].map(|name| line(name, &[(20.0, 7.5)])));
        assert_eq!(lines.draw().says(), "Latency at 20 tenants: 1 ms (direct) to 7.50 ms (b).");
        lines.lines.clear();
        assert!(lines.draw().says().starts_with("There is nothing"));
    }

    #[test]
    fn figure_data_are_written_as_csv_rows() {
        let mut lines = Lines { x_label: "s".into(), ..Lines::default() };
        lines.lines = vec![line("a, \"b\"", &[(1.0, 2.0), (f64::NAN, 3.0)])];
        let csv = lines.draw().csv();
        assert_eq!(
            csv.lines().collect::<Vec<_>>(),
            ["panel,name,s,,± 95 %", ",\"a, \"\"b\"\"\",1,2,"]
        );
    }
}
