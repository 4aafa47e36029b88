//! Plain text tables and CSV: what measuring commands print to stdout.

use std::fmt;

/// A table of text cells. [`fmt::Display`] aligns it; [`Table::to_csv`] gives the same as CSV.
#[derive(Clone, Debug, Default)]
pub struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table with these column titles.
    #[must_use]
    pub fn new<S: Into<String>>(header: impl IntoIterator<Item = S>) -> Self {
        Self { header: header.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Appends a row; missing cells are empty, surplus cells are kept.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) -> &mut Self {
        self.rows.push(cells.into_iter().map(Into::into).collect());
        self
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// RFC 4180: cells with a comma, quote or line break are quoted.
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

    fn lines(&self) -> impl Iterator<Item = &Vec<String>> {
        std::iter::once(&self.header).chain(&self.rows)
    }
}

fn quote(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.lines().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.lines().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
        };
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
        // A column whose every filled cell starts like a number is set flush right.
        let numeric: Vec<bool> = (0..columns)
            .map(|column| {
                let mut cells = self
                    .rows
                    .iter()
                    .filter_map(|row| row.get(column))
                    .filter(|cell| !cell.is_empty());
                let looks_numeric = |cell: &String| {
                    cell == "–"
                        || cell.starts_with(|c: char| c.is_ascii_digit() || "+-−±∞".contains(c))
                };
                cells.clone().next().is_some() && cells.all(looks_numeric)
            })
            .collect();
        for row in self.lines() {
            let mut line = String::new();
            for (column, (&width, &right)) in widths.iter().zip(&numeric).enumerate() {
                let cell = row.get(column).map_or("", String::as_str);
                if column > 0 {
                    line.push_str("  ");
                }
                let padding = " ".repeat(width.saturating_sub(cell.chars().count()));
                if right {
                    line.push_str(&padding);
                    line.push_str(cell);
                } else {
                    line.push_str(cell);
                    line.push_str(&padding);
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// A number as people read it: three significant digits, thousands grouped.
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
    let text = format!("{value:.digits$}");
    let (whole, fraction) =
        text.split_once('.').map_or((text.as_str(), None), |(w, f)| (w, Some(f)));
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |rest| ("-", rest));
    let mut grouped = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    fraction.map_or_else(|| format!("{sign}{grouped}"), |f| format!("{sign}{grouped}.{f}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_flush_right() {
        let mut table = Table::new(["system", "p50 µs"]);
        table.row(["direct", "81"]).row(["through the relay", "1,070"]);
        assert_eq!(
            table.to_string(),
            "system             p50 µs\ndirect                 81\nthrough the relay   1,070\n"
        );
    }

    #[test]
    fn short_rows_and_quotes() {
        let mut table = Table::new(["a", "b"]);
        table.row(["x,\"y\""]).row(["1", "2"]);
        assert_eq!(table.to_csv(), "a,b\r\n\"x,\"\"y\"\"\"\r\n1,2\r\n");
        assert!(table.to_string().starts_with("a      b\n"));
    }

    #[test]
    fn numbers_are_grouped() {
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
