//! Makes drawings of marks: dots in groups, and groups of bars.

use super::axis::Scale;
use super::drawing::Drawing;
use super::lines::Line;
use super::marks::{Mark, Marks, Shape};

/// One value with its spread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// The bar's lower end.
    pub low: f64,
    /// The value of the dot.
    pub middle: f64,
    /// The bar's upper end.
    pub high: f64,
}

/// Draws every value as a dot with a bar through the dot. Each group has a row, or its own panel if a group has several
/// values.
#[must_use]
pub fn draw_spreads(
    title: &str,
    y_label: &str,
    scale: Scale,
    groups: &[(String, Vec<Spread>)],
) -> Drawing {
    let is_many = groups.iter().any(|(_, values)| values.len() > 1);
    let mut marks = Vec::new();
    for (name, values) in groups {
        let (system, variant) = Line { name: name.clone(), ..Line::default() }.series();
        for (index, spread) in values.iter().enumerate() {
            let bar = (spread.high > spread.low).then_some((spread.low, spread.high));
            let shape = Shape { whiskers: bar, dot: Some(spread.middle), ..Shape::default() };
            let (category, panel) = match is_many {
                true => ((index + 1).to_string(), name.clone()),
                false => (name.clone(), String::new()),
            };
            let (system, variant) = (system.clone(), variant.clone());
            marks.push(Mark { category, system, variant, panel, shape });
        }
    }
    Marks::new(title, y_label, scale, marks).draw()
}

/// Draws groups of bars. Every group has one bar of each name.
#[must_use]
pub fn draw_groups(
    title: &str,
    y_label: &str,
    names: &[&str],
    groups: &[(String, Vec<f64>)],
) -> Drawing {
    let mut marks = Vec::new();
    for (category, values) in groups {
        for (name, value) in names.iter().zip(values) {
            let shape = Shape { bar: Some(*value), ..Shape::default() };
            let (category, system) = (category.clone(), (*name).to_owned());
            marks.push(Mark { category, system, shape, ..Mark::default() });
        }
    }
    Marks::new(title, y_label, Scale::Linear, marks).draw()
}
