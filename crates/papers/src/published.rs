//! Represents published values as points.
//!
//! A published value is a [`report::Point`] with a system of the name `NAME, published`. Therefore
//! results, tables and figures treat a published value like a measured value, and the name
//! distinguishes the two.

use report::table::number;
use report::{Better, Metric, Point, Scalar, Table};

const PUBLISHED: &str = ", published";

/// A point that a paper prints.
pub(crate) fn published<'a>(
    system: &str,
    parameters: impl IntoIterator<Item = (&'a str, Scalar)>,
    metric: &str,
    unit: &str,
    value: f64,
) -> Point {
    let mut point = Point::new(&format!("{system}{PUBLISHED}"), parameters);
    point.metrics.insert(metric.to_owned(), Metric::new(unit, Better::Lower, vec![value]));
    point
}

/// Whether a point comes from a paper and not from a measurement here.
#[must_use]
pub fn is_published(point: &Point) -> bool {
    point.system.ends_with(PUBLISHED)
}

/// A table of published and measured values, one row per case; `columns` contains title, metric and
/// factor of each column.
pub(crate) fn side_by_side(
    points: &[&Point],
    columns: &[(&str, &str, f64)],
    name: impl Fn(&Point) -> String,
) -> Table {
    let titles = columns.iter().map(|&(title, ..)| title);
    let mut table = Table::new(["case", "system"].into_iter().chain(titles));
    for point in points {
        let cells = columns.iter().map(|&(_, metric, factor)| {
            point.mean(metric).map_or_else(|| "–".to_owned(), |value| number(value * factor))
        });
        table.row([point.label(), name(point)].into_iter().chain(cells));
    }
    table
}
