//! A heat map: one coloured cell per pair of parameters, blank where there is no value.

use super::Scale;
use super::drawing::{Drawing, Stroke};
use super::frame::{Axis, Frame, span_x};
use crate::table::number;

/// From low to high; also in shades of grey the one gets darker as the value rises.
const COLOURS: [&str; 10] = [
    "#fde725", "#b5de2b", "#6ece58", "#35b779", "#1f9e89", "#26828e", "#31688e", "#3e4989",
    "#482878", "#440154",
];

/// Values over two axes of numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatMap {
    /// Above the figure.
    pub title: String,
    /// Under the x axis.
    pub x_label: String,
    /// Beside the y axis.
    pub y_label: String,
    /// What the colours mean, with their unit.
    pub value_label: String,
    /// The cells' middles along the x axis, evenly spaced and rising.
    pub columns: Vec<f64>,
    /// The cells' middles along the y axis, evenly spaced and rising.
    pub rows: Vec<f64>,
    /// Column by column; `None` leaves a cell blank.
    pub cells: Vec<Option<f64>>,
}

impl HeatMap {
    /// The figure.
    #[must_use]
    pub fn draw(&self) -> Drawing {
        let (width, height) = (spacing(&self.columns), spacing(&self.rows));
        let axis = |middles: &[f64], size: f64| {
            let ends =
                [middles.first().map(|m| m - size / 2.0), middles.last().map(|m| m + size / 2.0)];
            Axis::over(ends.into_iter().flatten(), Scale::Linear, false)
        };
        let (x, y) = (axis(&self.columns, width), axis(&self.rows, height));
        let mut frame = Frame::new(&self.title, &self.y_label, y);
        frame.x_axis(&self.x_label, &x);
        let values = || self.cells.iter().copied().flatten().filter(|value| value.is_finite());
        let (low, high) = (values().fold(f64::MAX, f64::min), values().fold(f64::MIN, f64::max));
        for (column, cells) in self.columns.iter().zip(self.cells.chunks(self.rows.len().max(1))) {
            for (row, value) in self.rows.iter().zip(cells) {
                let Some(value) = value.filter(|value| value.is_finite()) else { continue };
                let along = |middle: f64| x.place(middle, span_x());
                let left = along(column - width / 2.0).zip(along(column + width / 2.0));
                let top = frame.y(row + height / 2.0).zip(frame.y(row - height / 2.0));
                let (Some((left, right)), Some((top, bottom))) = (left, top) else { continue };
                let size = (right - left, bottom - top);
                frame.rectangle((left, top), size, colour(value, low, high), Stroke::NONE);
            }
        }
        if low <= high {
            let name = |value: f64| number(value);
            frame.colours(&COLOURS, &self.value_label, &name(low), &name(high));
        }
        frame.finish()
    }
}

fn spacing(middles: &[f64]) -> f64 {
    match middles {
        [first, .., last] => (last - first) / (middles.len() - 1) as f64,
        _ => 1.0,
    }
}

fn colour(value: f64, low: f64, high: f64) -> &'static str {
    let share = if high > low { (value - low) / (high - low) } else { 0.0 };
    let last = COLOURS.len() - 1;
    let index = ((share * COLOURS.len() as f64) as usize).min(last);
    COLOURS.get(index).copied().unwrap_or("#000000")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_coloured_and_blanks_are_blank() {
        let map = HeatMap {
            columns: vec![0.25, 0.75],
            rows: vec![0.25, 0.75],
            cells: vec![Some(0.0), Some(100.0), None, Some(f64::NAN)],
            ..HeatMap::default()
        };
        let svg = map.draw().svg();
        let of = |colour: &str| svg.matches(&format!("fill=\"{colour}\"")).count();
        // Each colour once in the legend; the least and the largest also in a cell.
        assert_eq!((of(COLOURS[0]), of(COLOURS[5]), of(COLOURS[9])), (2, 1, 2), "{svg}");
        assert!(!svg.contains("NaN"));
    }

    #[test]
    fn nothing_is_still_a_figure() {
        assert!(HeatMap::default().draw().svg().ends_with("</svg>"));
        let one = HeatMap {
            columns: vec![1.0],
            rows: vec![1.0],
            cells: vec![Some(5.0)],
            ..HeatMap::default()
        };
        assert!(one.draw().svg().contains(COLOURS[0]));
    }
}
