//! A heat map: one coloured cell for each pair of parameters. A cell without a value is blank.

use super::axis::Axis;
use super::canvas::{Anchor, Canvas, Text};
use super::frame::{Frame, Outline, left_of, panel_height};
use super::palette::{Colour, Palette};
use crate::table::number;
use serde::{Deserialize, Serialize};

/// The colours from low to high values. In shades of grey a higher value is darker, too.
const COLOURS: [u32; 10] = [
    0xfd_e725, 0xb5_de2b, 0x6e_ce58, 0x35_b779, 0x1f_9e89, 0x26_828e, 0x31_688e, 0x3e_4989,
    0x48_2878, 0x44_0154,
];

/// Values over two axes of numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HeatMap {
    /// The title above the figure.
    pub title: String,
    /// The label under the x axis.
    pub x_label: String,
    /// The label above the y axis.
    pub y_label: String,
    /// The quantity of the colours, with its unit.
    pub value_label: String,
    /// The middles of the cells along the x axis, evenly spaced and rising.
    pub columns: Vec<f64>,
    /// The middles of the cells along the y axis, evenly spaced and rising.
    pub rows: Vec<f64>,
    /// The values, column by column. `None` leaves a cell blank.
    pub cells: Vec<Option<f64>>,
    /// The values of the first and the last colour. If the range is absent, these are the smallest and the largest
    /// value of the map. Maps that are compared need the same range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<(f64, f64)>,
}

impl HeatMap {
    /// Returns a copy without values that are not finite.
    pub(super) fn finite(&self) -> HeatMap {
        let mut map = self.clone();
        map.cells.iter_mut().for_each(|cell| *cell = cell.filter(|value| value.is_finite()));
        map
    }

    /// The smallest and the largest value.
    pub(super) fn span(&self) -> Option<(f64, f64)> {
        let values = || self.cells.iter().copied().flatten().filter(|value| value.is_finite());
        let (low, high) = (values().fold(f64::MAX, f64::min), values().fold(f64::MIN, f64::max));
        (low <= high).then_some((low, high))
    }

    pub(super) fn render(&self, note: &str, across: f64, _: &Palette) -> Canvas {
        let (wide, high) = (spacing(&self.columns), spacing(&self.rows));
        let axis = |middles: &[f64], size: f64| {
            let ends = middles.first().copied().zip(middles.last().copied());
            let (low, high) = ends.unwrap_or((0.0, 1.0));
            Axis::between(low - size / 2.0, high + size / 2.0)
        };
        let (x, y) = (axis(&self.columns, wide), axis(&self.rows, high));
        let range = self.range.or_else(|| self.span());
        let height = panel_height(1, across);
        let legend_room = range.map(|(low, high)| (number(low), number(high)));
        let outline = Outline {
            title: &self.title,
            note,
            x_label: &self.x_label,
            y_label: &self.y_label,
            // The row of colours replaces the legend.
            legend: Vec::new(),
            panels: vec![String::new()],
            height: height + 24.0,
            left: left_of(&y, height),
        };
        let (mut frame, places) = Frame::new(&outline, across);
        let Some(place) = places.first().copied() else { return frame.finish() };
        let place = super::frame::Place { top: place.top + 24.0, ..place };
        if let Some((low, high)) = legend_room {
            let start = super::text::width(&self.value_label, 11.0, false)
                + super::text::width(&low, 11.0, false);
            let left = (place.left + start + 16.0).min(place.right - 160.0);
            let words = format!("{}  {low}", self.value_label);
            frame.text(Text::new((left - 5.0, place.top - 14.0), &words, Anchor::End));
            for (index, colour) in COLOURS.iter().enumerate() {
                let corner = (left + 10.0 * index as f64, place.top - 24.0);
                frame.rectangle(corner, (10.0, 12.0), Colour::rgb(*colour), None);
            }
            let at = (left + 105.0, place.top - 14.0);
            frame.text(Text::new(at, &high, Anchor::Start));
        }
        let colour_of = |value: &Option<f64>| {
            let (low, high) = range?;
            Some(colour((*value)?, low, high))
        };
        for (column, cells) in self.columns.iter().zip(self.cells.chunks(self.rows.len().max(1))) {
            let mut from = 0;
            // Neighbour cells of one colour become one rectangle.
            while from < cells.len().min(self.rows.len()) {
                let colour = cells.get(from).and_then(colour_of);
                let alike =
                    cells.iter().skip(from).take_while(|it| colour_of(it) == colour).count();
                let to = (from + alike.max(1)).min(self.rows.len());
                let ends = self.rows.get(from).zip(self.rows.get(to - 1));
                from = to;
                let (Some(colour), Some((first, last))) = (colour, ends) else { continue };
                let left = x.place(column - wide / 2.0, place.across());
                let right = x.place(column + wide / 2.0, place.across());
                let top = y.place(last + high / 2.0, place.upwards());
                let bottom = y.place(first - high / 2.0, place.upwards());
                let (Some((left, right)), Some((top, bottom))) = (left.zip(right), top.zip(bottom))
                else {
                    continue;
                };
                // Rectangles are slightly larger, so that no gap is visible between neighbours.
                let size = (right - left + 0.3, bottom - top + 0.3);
                frame.rectangle((left, top), size, Colour::rgb(colour), None);
            }
        }
        frame.axes_plain(&place, &x, &y);
        frame.finish()
    }
}

fn spacing(middles: &[f64]) -> f64 {
    match middles {
        [first, .., last] => (last - first) / (middles.len() - 1) as f64,
        _ => 1.0,
    }
}

fn colour(value: f64, low: f64, high: f64) -> u32 {
    let share = if high > low { (value - low) / (high - low) } else { 0.0 };
    let last = COLOURS.len() - 1;
    let index = ((share.max(0.0) * COLOURS.len() as f64) as usize).min(last);
    COLOURS.get(index).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(cells: Vec<Option<f64>>, range: Option<(f64, f64)>) -> HeatMap {
        let middles = vec![0.25, 0.75];
        HeatMap { columns: middles.clone(), rows: middles, cells, range, ..HeatMap::default() }
    }

    fn count(map: &HeatMap, index: usize) -> usize {
        map.draw().svg().matches(&format!("fill=\"#{:06x}\"", COLOURS[index])).count()
    }

    #[test]
    fn cells_with_values_are_coloured_and_cells_without_values_are_blank() {
        let found = map(vec![Some(0.0), Some(100.0), None, Some(f64::NAN)], None);
        // Each colour is once in the legend. The smallest and the largest value are also in a cell.
        assert_eq!([0, 5, 9].map(|index| count(&found, index)), [2, 1, 2]);
        assert!(!found.draw().svg().contains("NaN"));
    }

    #[test]
    fn a_given_range_sets_the_colour_scale_of_a_heatmap() {
        let cells = vec![Some(50.0), Some(50.0), Some(0.0), None];
        assert_eq!(count(&map(cells.clone(), None), 9), 2, "the largest of its own");
        assert_eq!(count(&map(cells, Some((0.0, 100.0))), 9), 1, "half of what others have");
    }

    #[test]
    fn an_empty_heatmap_and_a_single_cell_give_a_valid_figure() {
        assert!(HeatMap::default().draw().svg().ends_with("</svg>"));
        let one = HeatMap { columns: vec![1.0], rows: vec![1.0], ..map(vec![Some(5.0)], None) };
        assert_eq!(count(&one, 0), 2);
    }
}
