//! Makes drawings of marks: boxes side by side, dots in groups, and groups of bars.

use super::axis::Scale;
use super::drawing::Drawing;
use super::lines::Line;
use super::marks::{Mark, Marks, Shape};

/// A distribution as a box: whiskers, quartiles, median.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BoxPlot {
    /// The name beside the box.
    pub name: String,
    /// The lower whisker's end.
    pub low: f64,
    /// The lower quartile.
    pub q1: f64,
    /// The median.
    pub median: f64,
    /// The upper quartile.
    pub q3: f64,
    /// The upper whisker's end.
    pub high: f64,
    /// The mean, as a dot.
    pub mean: Option<f64>,
}

impl BoxPlot {
    /// Makes a distribution with a known mean only, such as a published distribution. The drawing
    /// is a dot on a dashed line.
    #[must_use]
    pub fn of_mean(name: &str, mean: f64) -> Self {
        let (low, q1, median, q3, high) = (f64::NAN, f64::NAN, f64::NAN, f64::NAN, f64::NAN);
        Self { name: name.to_owned(), low, q1, median, q3, high, mean: Some(mean) }
    }

    /// Returns the shape of the box.
    #[must_use]
    pub fn shape(&self) -> Shape {
        Shape {
            whiskers: Some((self.low, self.high)),
            quartiles: Some((self.q1, self.median, self.q3)),
            dot: self.mean,
            ..Shape::default()
        }
    }
}

/// Draws boxes by name, as SVG.
#[must_use]
pub fn boxes(title: &str, y_label: &str, scale: Scale, boxes: &[BoxPlot]) -> String {
    draw_boxes(title, y_label, scale, boxes).svg()
}

/// Draws boxes by name.
#[must_use]
pub fn draw_boxes(title: &str, y_label: &str, scale: Scale, boxes: &[BoxPlot]) -> Drawing {
    let mark = |plot: &BoxPlot| {
        // A distribution with a mean only has no measured median.
        let dashed = !plot.median.is_finite();
        let line = Line { name: plot.name.clone(), dashed, ..Line::default() };
        let (system, variant) = line.series();
        let (category, shape) = (plot.name.clone(), plot.shape());
        Mark { category, system, variant, panel: String::new(), shape }
    };
    let marks = boxes.iter().map(mark).collect();
    let (title, value_label) = (title.to_owned(), y_label.to_owned());
    Marks { title, value_label, category_label: String::new(), scale, marks }.draw()
}

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
        let (system, variant) = series_of(name);
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
    let (title, value_label) = (title.to_owned(), y_label.to_owned());
    Marks { title, value_label, category_label: String::new(), scale, marks }.draw()
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
            let (system, variant) = ((*name).to_owned(), String::new());
            let (category, panel) = (category.clone(), String::new());
            marks.push(Mark { category, system, variant, panel, shape });
        }
    }
    let (title, value_label) = (title.to_owned(), y_label.to_owned());
    Marks { title, value_label, category_label: String::new(), scale: Scale::Linear, marks }.draw()
}

/// Splits a name into the system at its start and the rest.
fn series_of(name: &str) -> (String, String) {
    Line { name: name.to_owned(), ..Line::default() }.series()
}
