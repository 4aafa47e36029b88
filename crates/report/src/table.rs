//! Writes plain text tables and CSV, the output of measuring commands on stdout.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A table of text cells. [`fmt::Display`] writes aligned columns. [`Table::to_csv`] writes CSV.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Makes an empty table with these column titles.
    #[must_use]
    pub fn new<S: Into<String>>(header: impl IntoIterator<Item = S>) -> Self {
        Self { header: header.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Appends a row. Missing cells are empty. Additional cells are kept.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) -> &mut Self {
        self.rows.push(cells.into_iter().map(Into::into).collect());
        self
    }

    /// Whether the table has no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Writes the table as CSV of RFC 4180. Cells with a comma, quote or line break are quoted.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let mut out = String::new();
        for row in self.lines() {
            let cells: Vec<String> = row.iter().map(|cell| quote(cell)).collect();
            out.push_str(&cells.join(","));
            out.push_str("\r\n");
        }
        out
    }

    pub(crate) fn header(&self) -> &[String] {
        &self.header
    }

    pub(crate) fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// For each column, whether every filled cell starts like a number. Such a column is aligned to the right.
    pub(crate) fn numeric(&self) -> Vec<bool> {
        let columns = self.lines().map(Vec::len).max().unwrap_or(0);
        let looks_numeric = |cell: &String| {
            cell == "–" || cell.starts_with(|c: char| c.is_ascii_digit() || "+-−±∞".contains(c))
        };
        (0..columns)
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                let mut filled = cells.filter(|cell| !cell.is_empty()).peekable();
                filled.peek().is_some() && filled.all(looks_numeric)
            })
            .collect()
    }

    fn lines(&self) -> impl Iterator<Item = &Vec<String>> {
        std::iter::once(&self.header).chain(&self.rows)
    }
}

/// Splits a text into parts of at most `width` characters, at spaces if possible. All parts except the first are two
/// characters shorter, because these parts may be indented.
fn broken(text: &str, width: usize) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest = text;
    let mut room = width.max(3);
    while rest.chars().count() > room {
        // The text can also be split at a space directly behind the part.
        let end = rest.char_indices().nth(room).map_or(rest.len(), |(at, _)| at);
        let space = rest.char_indices().take(room + 1).filter(|(_, it)| *it == ' ').last();
        let at = space.map(|(at, _)| at).filter(|at| *at > 0).unwrap_or(end);
        let (part, behind) = rest.split_at(at);
        parts.push(part.to_owned());
        rest = behind.trim_start();
        room = width.max(3) - 2;
    }
    parts.push(rest.to_owned());
    parts
}

fn quote(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

/// The number of terminal columns that a table may use. The value 0 means no limit.
static ROOM: AtomicUsize = AtomicUsize::new(0);

/// Sets the number of columns of the terminal for all tables from now on: see [`Table::fitted`].
pub fn fit_to(columns: usize) {
    ROOM.store(columns, Ordering::Relaxed);
}

impl Table {
    /// Writes the table in at most `room` columns of text. First the first column gets at most a third of the room, and
    /// a longer cell continues in the next line. Then columns are left out from the right, one by one, until the rest
    /// fits. The first column always stays. A last line names the columns that were left out.
    #[must_use]
    pub fn fitted(&self, room: usize) -> String {
        let widths = self.widths();
        let needed = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
        let narrow = (room / 3).max(1);
        if needed > room && widths.first().is_some_and(|first| *first > narrow) {
            return self.with_first_broken(narrow).fitted_as_is(room);
        }
        self.fitted_as_is(room)
    }

    /// Makes a copy of the table in which long cells of the first column continue in additional rows.
    fn with_first_broken(&self, width: usize) -> Table {
        let mut rows = Vec::new();
        for row in &self.rows {
            let mut row = row.clone();
            let first = row.first_mut().map(std::mem::take).unwrap_or_default();
            let mut parts = broken(&first, width).into_iter();
            if let (Some(cell), Some(part)) = (row.first_mut(), parts.next()) {
                *cell = part;
            }
            rows.push(row);
            rows.extend(parts.map(|part| vec![format!("  {part}")]));
        }
        Table { header: self.header.clone(), rows }
    }

    fn fitted_as_is(&self, room: usize) -> String {
        let widths = self.widths();
        let wide = |count: usize| {
            let shown = widths.iter().take(count);
            shown.sum::<usize>() + 2 * count.saturating_sub(1)
        };
        let count = (1..=widths.len()).rev().find(|&count| wide(count) <= room).unwrap_or(1);
        let mut text = self.written(count);
        let left_out: Vec<&str> = self.header.iter().skip(count).map(String::as_str).collect();
        if !left_out.is_empty() {
            let line = format!(
                "(too wide for this terminal, left out: {}; all are there in a pipe)",
                left_out.join(", ")
            );
            for part in broken(&line, room) {
                text.push_str(&part);
                text.push('\n');
            }
        }
        text
    }

    /// Writes the whole table, also on a terminal. This is for lists that are useless without all columns.
    #[must_use]
    pub fn whole(&self) -> String {
        self.written(usize::MAX)
    }

    /// The width of each column.
    fn widths(&self) -> Vec<usize> {
        let columns = self.lines().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.lines().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
        };
        (0..columns).map(|column| width(column).unwrap_or(0)).collect()
    }

    /// Writes the first columns, aligned.
    fn written(&self, count: usize) -> String {
        let (widths, numeric) = (self.widths(), self.numeric());
        let mut text = String::new();
        for row in self.lines() {
            let mut line = String::new();
            for (column, (&width, &right)) in widths.iter().zip(&numeric).take(count).enumerate() {
                let cell = row.get(column).map_or("", String::as_str);
                let between = if column > 0 { "  " } else { "" };
                line += &match right {
                    true => format!("{between}{cell:>width$}"),
                    false => format!("{between}{cell:<width$}"),
                };
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&match ROOM.load(Ordering::Relaxed) {
            0 => self.whole(),
            room => self.fitted(room),
        })
    }
}

/// Writes a number for people, with three significant digits and grouped thousands.
#[must_use]
pub fn number(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return "–".to_owned();
    }
    let digits = if size >= 100.0 || value == value.round() {
        0
    } else if size >= 10.0 {
        1
    } else if size >= 1.0 {
        2
    } else {
        3
    };
    let sign = if value.is_sign_negative() { "-" } else { "" };
    format!("{sign}{}", grouped(&format!("{size:.digits$}")))
}

/// Writes a number without a sign with the digits before its point in groups of three.
pub(crate) fn grouped(number: &str) -> String {
    let whole = number.find('.').unwrap_or(number.len());
    let mut grouped = String::new();
    for (place, digit) in number.chars().enumerate() {
        if place > 0 && place < whole && (whole - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_a_table_are_aligned_to_the_right() {
        let mut table = Table::new(["system", "p50 µs"]);
        table.row(["direct", "81"]).row(["through the relay", "1,070"]);
        assert_eq!(
            table.to_string(),
            "system             p50 µs\ndirect                 81\nthrough the relay   1,070\n"
        );
    }

    #[test]
    fn columns_are_left_out_from_the_right_until_a_table_fits() {
        let titles: Vec<String> = (0..30).map(|column| format!("column {column}")).collect();
        let mut table = Table::new(titles.clone());
        table.row(titles.iter().map(|_| "12,345"));
        for room in [20, 40, 80, 120] {
            let text = table.fitted(room);
            assert!(text.lines().all(|line| line.chars().count() <= room), "{room}:\n{text}");
            assert!(
                text.starts_with("column 0") && text.replace('\n', " ").contains("column 29"),
                "{room}:\n{text}"
            );
        }
        assert_eq!(table.fitted(1_000), table.whole());
        assert!(table.fitted(1).starts_with("column 0\n"), "the first stays");
        assert_eq!(Table::default().fitted(80), Table::default().to_string());
    }

    #[test]
    fn a_first_column_that_is_too_wide_continues_in_the_next_line() {
        let mut table = Table::new(["point", "metric", "verdict"]);
        table.row(["a switch match=exact rules=100", "p50 µs", "worse"]);
        table.row(["one-word-that-is-longer", "p99 µs", "better"]);
        assert_eq!(
            table.fitted(40),
            "point          metric  verdict\n\
             a switch       p50 µs  worse\n  match=exact\n  rules=100\n\
             one-word-that  p99 µs  better\n  -is-longer\n"
        );
        // If the table fits, no cell is split.
        assert_eq!(table.fitted(60), table.whole());
        for room in 1..60 {
            let fitted = table.fitted(room);
            let widest = fitted.lines().map(|line| line.chars().count()).max();
            assert!(room < 20 || widest <= Some(room), "{room}:\n{fitted}");
        }
        let text = "µ".repeat(50) + " " + &"x".repeat(9);
        let parts = broken(&text, 10);
        assert!(parts.iter().all(|part| part.chars().count() <= 10), "{parts:?}");
        assert_eq!(parts.concat(), text.replace(' ', ""));
        assert_eq!(broken("", 10), [""]);
    }

    #[test]
    fn csv_keeps_short_rows_and_quotes_commas() {
        let mut table = Table::new(["a", "b"]);
        table.row(["x,\"y\""]).row(["1", "2"]);
        assert_eq!(table.to_csv(), "a,b\r\n\"x,\"\"y\"\"\"\r\n1,2\r\n");
        assert!(table.to_string().starts_with("a      b\n"));
    }

    #[test]
    fn numbers_are_rounded_and_have_thousands_separators() {
        for (value, want) in [
            (0.0, "0"),
            (0.1234, "0.123"),
            (4.5, "4.50"),
            (81.23, "81.2"),
            (1_970_000.4, "1,970,000"),
            (-1234.0, "-1,234"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(number(value), want);
        }
    }
}
