//! Figures: lines (also cumulative distributions), boxes, strips, bars and heat maps, as SVG text and, with the
//! feature `png`, as PNG. Self-contained: no script, no font file, nothing fetched.
//!
//! It deliberately knows no more of plotting than these five forms need. Each form says what it
//! shows; `frame` draws what all share: title, axes, ticks, legend; `drawing` is what they are made
//! of.

mod drawing;
mod frame;
mod heatmap;
#[cfg(feature = "png")]
mod png;

use drawing::Stroke;
pub use drawing::{Drawing, escape};
use frame::{Axis, Frame, colour, group_middle, place_y};
pub use heatmap::HeatMap;

/// A drawing with the name of its file, and what there is to say of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure {
    /// As the source names it, such as `3a`; also the file's name.
    pub name: String,
    /// The drawing.
    pub drawing: Drawing,
    /// Under it: sentences.
    pub caption: String,
}

/// How values are laid along an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    #[default]
    Linear,
    /// By powers of ten; values that are not above 0 are left out.
    Logarithmic,
}

/// One line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// What the legend calls it.
    pub name: String,
    /// (x, y) in rising order of x.
    pub points: Vec<(f64, f64)>,
    /// Half the height of each point's error bar; empty for none.
    pub errors: Vec<f64>,
    /// A dashed line: published figures beside measured ones.
    pub dashed: bool,
}

/// Lines over an axis of numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lines {
    /// Above the figure.
    pub title: String,
    /// Under the x axis.
    pub x_label: String,
    /// Beside the y axis.
    pub y_label: String,
    /// Of the x axis.
    pub x_scale: Scale,
    /// Of the y axis.
    pub y_scale: Scale,
    /// The x axis begins at 0, as time does.
    pub x_from_zero: bool,
    /// The lines.
    pub lines: Vec<Line>,
    /// Draw steps, as a cumulative distribution has them.
    pub steps: bool,
}

impl Lines {
    /// The figure as SVG.
    #[must_use]
    pub fn svg(&self) -> String {
        self.draw().svg()
    }

    /// The figure.
    #[must_use]
    pub fn draw(&self) -> Drawing {
        let all = || self.lines.iter().flat_map(|line| &line.points);
        let from_zero = self.x_from_zero && self.x_scale == Scale::Linear;
        let x = Axis::over(all().map(|point| point.0), self.x_scale, from_zero);
        let y = Axis::over(all().map(|point| point.1), self.y_scale, self.y_scale == Scale::Linear);
        let names = self.lines.iter().map(|line| line.name.as_str());
        let mut frame =
            Frame::with_names(&self.title, &self.y_label, y, names, |y, span, (right, bottom)| {
                let place = |&(px, py): &(f64, f64)| Some((x.place(px, span)?, place_y(y, py)?));
                let inside = |(px, py): (f64, f64)| px < right && py < bottom;
                self.lines.iter().any(|line| {
                    let places: Vec<(f64, f64)> = line.points.iter().filter_map(place).collect();
                    let first = places.first().is_some_and(|at| inside(*at));
                    first || places.windows(2).any(|pair| along(pair).any(inside))
                })
            });
        frame.x_axis(&self.x_label, &x);
        let stroke = |index: usize, line: &Line| Stroke {
            colour: colour(index),
            width: 1.6,
            dashed: line.dashed,
        };
        for (index, line) in self.lines.iter().enumerate() {
            let stroke = stroke(index, line);
            let mut path: Vec<(f64, f64)> = Vec::new();
            for (place, &point) in line.points.iter().enumerate() {
                let (Some(px), Some(py)) = (x.place(point.0, frame.span()), frame.y(point.1))
                else {
                    continue;
                };
                if let Some(&(_, before)) = path.last().filter(|_| self.steps) {
                    path.push((px, before));
                }
                path.push((px, py));
                if !self.steps {
                    frame.dot((px, py), stroke.colour, 2.5);
                }
                if let Some(&half) = line.errors.get(place) {
                    let bar = Stroke::solid(stroke.colour, 1.0);
                    frame.error_bar(px, point.1 - half, point.1 + half, bar);
                }
            }
            frame.strokes(vec![path], stroke);
        }
        let lines = self.lines.iter().enumerate();
        frame.legend(lines.map(|(index, line)| (line.name.as_str(), stroke(index, line))));
        frame.finish()
    }
}

/// Places on the way from one point to the next.
fn along(pair: &[(f64, f64)]) -> impl Iterator<Item = (f64, f64)> {
    let ends = (pair.first().copied(), pair.last().copied());
    (0..=32).filter_map(move |step| {
        let ((x0, y0), (x1, y1)) = ends.0.zip(ends.1)?;
        let share = f64::from(step) / 32.0;
        Some((x0 + (x1 - x0) * share, y0 + (y1 - y0) * share))
    })
}

/// A distribution as a box: whiskers, quartiles, median.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BoxPlot {
    /// Under the box.
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
    /// A distribution of which only the mean is known, such as a published one: a dot on a dashed
    /// line.
    #[must_use]
    pub fn of_mean(name: &str, mean: f64) -> Self {
        let (low, q1, median, q3, high) = (f64::NAN, f64::NAN, f64::NAN, f64::NAN, f64::NAN);
        Self { name: name.to_owned(), low, q1, median, q3, high, mean: Some(mean) }
    }
}

/// Boxes side by side, as SVG.
#[must_use]
pub fn boxes(title: &str, y_label: &str, scale: Scale, boxes: &[BoxPlot]) -> String {
    draw_boxes(title, y_label, scale, boxes).svg()
}

/// Boxes side by side.
#[must_use]
pub fn draw_boxes(title: &str, y_label: &str, scale: Scale, boxes: &[BoxPlot]) -> Drawing {
    let values =
        boxes.iter().flat_map(|b| [b.low, b.q1, b.median, b.q3, b.high].into_iter().chain(b.mean));
    let mut frame = Frame::new(title, y_label, Axis::over(values, scale, scale == Scale::Linear));
    let names: Vec<&str> = boxes.iter().map(|b| b.name.as_str()).collect();
    let width = frame.groups(&names) * 0.4;
    for (index, plot) in boxes.iter().enumerate() {
        draw_box(&mut frame, plot, group_middle(index, boxes.len()), width, colour(index));
    }
    frame.finish()
}

fn draw_box(frame: &mut Frame, plot: &BoxPlot, middle: f64, width: f64, colour: &'static str) {
    let (left, right) = (middle - width / 2.0, middle + width / 2.0);
    let mut known = false;
    if let (Some(q1), Some(q3)) = (frame.y(plot.q1), frame.y(plot.q3)) {
        known = true;
        frame.error_bar(middle, plot.low, plot.high, Stroke::solid(colour, 1.0));
        let size = (width, (q1 - q3).max(0.5));
        frame.rectangle((left, q3), size, "#ffffff", Stroke::solid(colour, 1.0));
        if let Some(y) = frame.y(plot.median) {
            frame.strokes(vec![vec![(left, y), (right, y)]], Stroke::solid(colour, 2.4));
        }
    }
    if let Some(y) = plot.mean.and_then(|mean| frame.y(mean)) {
        if !known {
            let stroke = Stroke { colour, width: 1.6, dashed: true };
            frame.strokes(vec![vec![(left, y), (right, y)]], stroke);
        }
        frame.dot((middle, y), colour, 3.5);
    }
}

/// One of many values with its spread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// The bar's lower end.
    pub low: f64,
    /// The dot.
    pub middle: f64,
    /// The bar's upper end.
    pub high: f64,
}

/// Every value as a dot, in groups: one dot per tenant, one group per system. As SVG.
#[must_use]
pub fn strips(title: &str, y_label: &str, scale: Scale, groups: &[(String, Vec<f64>)]) -> String {
    let dot = |&value: &f64| Spread { low: value, middle: value, high: value };
    let groups: Vec<(String, Vec<Spread>)> = groups
        .iter()
        .map(|(name, values)| (name.clone(), values.iter().map(dot).collect()))
        .collect();
    draw_spreads(title, y_label, scale, &groups).svg()
}

/// Every value as a dot with a bar through it, in groups.
#[must_use]
pub fn draw_spreads(
    title: &str,
    y_label: &str,
    scale: Scale,
    groups: &[(String, Vec<Spread>)],
) -> Drawing {
    let values = groups.iter().flat_map(|(_, values)| values);
    let values = values.flat_map(|spread| [spread.low, spread.middle, spread.high]);
    let mut frame = Frame::new(title, y_label, Axis::over(values, scale, scale == Scale::Linear));
    let names: Vec<&str> = groups.iter().map(|(name, _)| name.as_str()).collect();
    let width = frame.groups(&names) * 0.8;
    for (index, (_, values)) in groups.iter().enumerate() {
        let middle = group_middle(index, groups.len());
        for (place, spread) in values.iter().enumerate() {
            let Some(y) = frame.y(spread.middle) else { continue };
            // In the order of tenants, so that one tenant stands at the same place in each group.
            let along = (place as f64 + 0.5) / values.len() as f64 - 0.5;
            let x = middle + along * width;
            if let (Some(low), Some(high)) = (frame.y(spread.low), frame.y(spread.high))
                && spread.high > spread.low
            {
                frame.strokes(vec![vec![(x, low), (x, high)]], Stroke::solid(colour(index), 1.0));
            }
            frame.dot((x, y), colour(index), 2.2);
        }
    }
    frame.finish()
}

/// Bars side by side, with error bars: (name, value, half the error bar's height). As SVG.
#[must_use]
pub fn bars(title: &str, y_label: &str, bars: &[(String, f64, f64)]) -> String {
    let values = bars.iter().map(|&(_, value, half)| value + half);
    let mut frame = Frame::new(title, y_label, Axis::over(values, Scale::Linear, true));
    let names: Vec<&str> = bars.iter().map(|(name, ..)| name.as_str()).collect();
    let width = frame.groups(&names) * 0.6;
    for (index, &(_, value, half)) in bars.iter().enumerate() {
        let middle = group_middle(index, bars.len());
        let (Some(top), Some(bottom)) = (frame.y(value), frame.y(0.0)) else { continue };
        let corner = (middle - width / 2.0, top);
        frame.rectangle(corner, (width, (bottom - top).max(0.0)), colour(index), Stroke::NONE);
        if half > 0.0 {
            frame.error_bar(middle, value - half, value + half, Stroke::solid("#000000", 1.0));
        }
    }
    frame.finish().svg()
}

/// Groups of bars, one of each name in every group.
#[must_use]
pub fn draw_groups(
    title: &str,
    y_label: &str,
    names: &[&str],
    groups: &[(String, Vec<f64>)],
) -> Drawing {
    let values = || groups.iter().flat_map(|(_, values)| values.iter().copied());
    // Headroom for the legend.
    let highest = values().filter(|value| value.is_finite()).fold(0.0, f64::max) * 1.3;
    let y = Axis::over(values().chain([highest]), Scale::Linear, true);
    let mut frame = Frame::new(title, y_label, y);
    let under: Vec<&str> = groups.iter().map(|(name, _)| name.as_str()).collect();
    let width = frame.groups(&under) * 0.8 / names.len().max(1) as f64;
    for (index, (_, values)) in groups.iter().enumerate() {
        let left = group_middle(index, groups.len()) - width * names.len() as f64 / 2.0;
        for (place, value) in values.iter().enumerate() {
            let (Some(top), Some(bottom)) = (frame.y(*value), frame.y(0.0)) else { continue };
            let corner = (left + width * place as f64, top);
            let size = (width * 0.92, (bottom - top).max(0.0));
            frame.rectangle(corner, size, colour(place), Stroke::NONE);
        }
    }
    let legend = names.iter().enumerate();
    frame.legend(legend.map(|(place, name)| (*name, Stroke::solid(colour(place), 2.4))));
    frame.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_data_still_gives_a_figure() {
        for points in [
            vec![],
            vec![(1.0, 1.0)],
            vec![(0.0, 0.0), (f64::NAN, 3.0)],
            vec![(1.0, f64::INFINITY), (2.0, -1.0)],
        ] {
            for scale in [Scale::Linear, Scale::Logarithmic] {
                let line =
                    Line { name: "<a & b>".into(), points: points.clone(), ..Line::default() };
                let drawing = Lines {
                    title: "x < y".into(),
                    lines: vec![line],
                    x_scale: scale,
                    y_scale: scale,
                    ..Lines::default()
                }
                .draw()
                .with_note("one & two");
                check_xml(&drawing.svg());
            }
        }
        let known = BoxPlot { mean: Some(2.0), ..BoxPlot::default() };
        let plots = [known, BoxPlot::of_mean("published", 3.0)];
        check_xml(&boxes("b", "µs", Scale::Logarithmic, &plots));
        check_xml(&strips(
            "s",
            "µs",
            Scale::Linear,
            &[("a".into(), vec![]), ("b".into(), vec![1.0])],
        ));
        check_xml(&bars("c", "%", &[("a".into(), 0.0, 0.0), ("b".into(), 9.0, 2.0)]));
        let groups = [("a".into(), vec![1.0, f64::NAN]), ("b".into(), vec![])];
        check_xml(&draw_groups("d", "%", &["x", "y"], &groups).svg());
        check_xml(&draw_groups("d", "%", &[], &[]).svg());
    }

    #[test]
    fn what_is_published_is_dashed() {
        let line =
            |dashed| Line { points: vec![(1.0, 1.0), (2.0, 2.0)], dashed, ..Line::default() };
        let svg = |dashed| Lines { lines: vec![line(dashed)], ..Lines::default() }.svg();
        // The line and its place in the legend.
        assert_eq!([true, false].map(|it| svg(it).matches("stroke-dasharray").count()), [2, 0]);
        let only_a_mean = boxes("b", "ms", Scale::Linear, &[BoxPlot::of_mean("p", 3.0)]);
        assert_eq!(only_a_mean.matches("stroke-dasharray").count(), 1);
        // No box but the background's.
        assert_eq!(only_a_mean.matches("<rect").count(), 1);
    }

    #[test]
    fn a_legend_stands_beside_the_plot_if_it_is_long_or_covers_a_line() {
        let line = |points: &[(f64, f64)]| Line { points: points.to_vec(), ..Line::default() };
        let low = line(&[(0.0, 1.0), (9.0, 1.0), (9.0, 9.0)]);
        let high = line(&[(0.0, 9.0), (9.0, 8.0)]);
        let crossing = line(&[(0.0, 0.0), (0.5, 9.0), (9.0, 0.0)]);
        let widest = |lines: Vec<Line>| {
            let svg = Lines { lines, ..Lines::default() }.svg();
            let places = svg.split("<circle cx=\"").skip(1);
            places.filter_map(|it| it.split('"').next()?.parse::<f64>().ok()).fold(0.0, f64::max)
        };
        for (lines, beside) in [
            (vec![low.clone(); 4], false),
            (vec![low.clone(); 5], true),
            (vec![low.clone(), high], true),
            (vec![low, crossing], true),
        ] {
            let widest = widest(lines.clone());
            assert_eq!(widest < 620.0, beside, "{widest}: {lines:?}");
        }
    }

    #[test]
    fn time_begins_at_zero() {
        let line = Line { points: vec![(5.0, 1.0), (10.0, 1.0)], ..Line::default() };
        let first = |x_from_zero| {
            let svg = Lines { lines: vec![line.clone()], x_from_zero, ..Lines::default() }.svg();
            let place = svg.split("<circle cx=\"").nth(1).and_then(|it| it.split('"').next());
            place.and_then(|it| it.parse::<f64>().ok()).unwrap_or(0.0)
        };
        assert!(first(false) < 80.0 && first(true) > 250.0, "{} {}", first(false), first(true));
    }

    #[test]
    fn a_spread_has_a_bar_and_a_dot() {
        let spread = Spread { low: 1.0, middle: 2.0, high: 9.0 };
        let without = strips("s", "ms", Scale::Linear, &[("a".into(), vec![2.0])]);
        let with = draw_spreads("s", "ms", Scale::Linear, &[("a".into(), vec![spread])]).svg();
        assert_eq!(with.matches("<circle").count(), 1);
        let bars = |svg: &str| svg.matches("stroke=\"#0072b2\"").count();
        assert_eq!((bars(&with), bars(&without)), (1, 0));
    }

    /// Every tag is closed in its order, and no number is missing.
    fn check_xml(svg: &str) {
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        let mut open = Vec::new();
        for tag in svg.split('<').skip(1).map(|part| part.split('>').next().unwrap()) {
            let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap();
            if tag.starts_with('/') {
                assert_eq!(open.pop(), Some(name), "{svg}");
            } else if !tag.ends_with('/') {
                open.push(name);
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }
}
