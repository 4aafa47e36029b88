//! Writes the parts of pages: the document, figures and tables.

use crate::figure::{Figure, NARROW, Palette, WIDE};
use crate::table::Table;
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// The number of visible rows, and the maximum number of rows. Further rows are folded up to the
/// maximum.
const ROWS_SHOWN: usize = 30;
const ROWS_MOST: usize = 500;

pub(super) fn document(title: &str, style: &str, body: &Markup) -> String {
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

/// Writes a figure: a sentence, the drawing for a page and for a phone, the caption, and the data.
pub(super) fn figure_html(figure: &Figure, palette: &Palette) -> Markup {
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

/// Converts the name of a figure to a file name, without characters that would lead to another
/// folder.
#[must_use]
pub fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = name.chars().map(plain).take(100).collect();
    if name.starts_with('.') || name.is_empty() { format!("figure{name}") } else { name }
}

/// Writes a table as HTML with its own scroll bar. A long table is folded, and cut at the maximum
/// number of rows.
pub(super) fn table_html(table: &Table) -> Markup {
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
