//! Published measurements, made again: a paper's runs as data, what it prints, and its figures drawn
//! from what is measured here, with the published values beside.
//!
//! A published value is a [`report::Point`] whose system is called `NAME, published`; so results,
//! tables and figures treat it like a measured one, and nobody can take it for one.

pub mod basta2017;

use crate::Error;
use crate::comparison::Verdict;
use report::table::number;
use report::{Better, Extras, Metric, Point, Scalar, Table};
use std::path::Path;

/// What came out, as the paper shows it.
#[derive(Debug)]
pub struct Reproduction {
    /// The points, measured and published, and what was found.
    pub verdict: Verdict,
    /// The paper's figures, and published beside measured values as a table.
    pub extras: Extras,
}

impl Reproduction {
    /// Writes the results directory; the figures are in `figures/`.
    ///
    /// # Errors
    /// [`Error::Report`].
    pub fn write(&self, dir: &Path) -> Result<(), Error> {
        let Verdict { results, histograms, window, .. } = &self.verdict;
        Ok(results.write_with(dir, histograms, *window, &self.extras)?)
    }
}

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

/// Whether a point was printed in a paper, rather than measured here.
pub(crate) fn is_published(point: &Point) -> bool {
    point.system.ends_with(PUBLISHED)
}

/// A cell: a metric's mean in another unit.
pub(crate) fn cell(point: &Point, metric: &str, factor: f64) -> String {
    point.mean(metric).map_or_else(|| "–".to_owned(), |value| number(value * factor))
}

/// Published beside measured, case by case: what stands for what is in `columns` (title, metric,
/// factor).
pub(crate) fn side_by_side(
    points: &[&Point],
    columns: &[(&str, &str, f64)],
    name: impl Fn(&Point) -> String,
) -> Table {
    let titles = columns.iter().map(|&(title, ..)| title);
    let mut table = Table::new(["case", "system"].into_iter().chain(titles));
    for point in points {
        let cells = columns.iter().map(|&(_, metric, factor)| cell(point, metric, factor));
        table.row([point.label(), name(point)].into_iter().chain(cells));
    }
    table
}
