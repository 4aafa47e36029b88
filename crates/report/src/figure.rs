//! Figures as SVG text: lines (also cumulative distributions), boxes, strips and bars.
//! Self-contained: no script, no font file, nothing fetched.
//!
//! It deliberately knows no more of plotting than these four forms need. Each form says what it
//! shows; `Frame` draws what all share: title, axes, ticks, legend.

use crate::table::number;
use std::fmt::Write as _;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 52.0;
/// Okabe and Ito's colours, which colour-blind readers tell apart.
const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];

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
    /// The lines.
    pub lines: Vec<Line>,
    /// Draw steps, as a cumulative distribution has them.
    pub steps: bool,
}

impl Lines {
    /// The figure.
    #[must_use]
    pub fn svg(&self) -> String {
        let all = || self.lines.iter().flat_map(|line| &line.points);
        let x = Axis::over(all().map(|point| point.0), self.x_scale, false);
        let y = Axis::over(all().map(|point| point.1), self.y_scale, self.y_scale == Scale::Linear);
        let mut frame = Frame::new(&self.title, &self.y_label, y);
        frame.x_axis(&self.x_label, &x);
        for (index, line) in self.lines.iter().enumerate() {
            let colour = colour(index);
            let mut path = String::new();
            let mut last: Option<(f64, f64)> = None;
            for (place, &point) in line.points.iter().enumerate() {
                let (Some(px), Some(py)) = (x.place(point.0, span_x()), frame.y(point.1)) else {
                    continue;
                };
                match last {
                    None => _ = write!(path, "M{px:.1} {py:.1}"),
                    Some((_, before)) if self.steps => {
                        _ = write!(path, "L{px:.1} {before:.1}L{px:.1} {py:.1}");
                    }
                    Some(_) => _ = write!(path, "L{px:.1} {py:.1}"),
                }
                last = Some((px, py));
                if !self.steps {
                    frame.dot(px, py, colour, 2.5);
                }
                if let Some(&half) = line.errors.get(place) {
                    frame.error_bar(px, point.1 - half, point.1 + half, colour);
                }
            }
            let dashes = if line.dashed { " stroke-dasharray=\"6 4\"" } else { "" };
            frame.put(format_args!(
                "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\"{dashes}/>"
            ));
        }
        frame.legend(self.lines.iter().map(|line| line.name.as_str()));
        frame.finish()
    }
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
}

/// Boxes side by side.
#[must_use]
pub fn boxes(title: &str, y_label: &str, scale: Scale, boxes: &[BoxPlot]) -> String {
    let values = boxes.iter().flat_map(|b| [b.low, b.q1, b.median, b.q3, b.high]);
    let mut frame = Frame::new(title, y_label, Axis::over(values, scale, scale == Scale::Linear));
    let names: Vec<&str> = boxes.iter().map(|b| b.name.as_str()).collect();
    let width = frame.groups(&names) * 0.4;
    for (index, plot) in boxes.iter().enumerate() {
        let middle = group_middle(index, boxes.len());
        let colour = colour(index);
        let (Some(q1), Some(q3)) = (frame.y(plot.q1), frame.y(plot.q3)) else { continue };
        frame.error_bar(middle, plot.low, plot.high, colour);
        frame.put(format_args!(
            "<rect x=\"{:.1}\" y=\"{q3:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"#fff\" \
             stroke=\"{colour}\"/>",
            middle - width / 2.0,
            (q1 - q3).max(0.5)
        ));
        if let Some(median) = frame.y(plot.median) {
            frame.put(format_args!(
                "<path d=\"M{:.1} {median:.1}h{width:.1}\" stroke=\"{colour}\" stroke-width=\"2.4\"/>",
                middle - width / 2.0
            ));
        }
    }
    frame.finish()
}

/// Every value as a dot, in groups: one dot per tenant, one group per system.
#[must_use]
pub fn strips(title: &str, y_label: &str, scale: Scale, groups: &[(String, Vec<f64>)]) -> String {
    let values = groups.iter().flat_map(|(_, values)| values.iter().copied());
    let mut frame = Frame::new(title, y_label, Axis::over(values, scale, scale == Scale::Linear));
    let names: Vec<&str> = groups.iter().map(|(name, _)| name.as_str()).collect();
    let width = frame.groups(&names) * 0.7;
    for (index, (_, values)) in groups.iter().enumerate() {
        let middle = group_middle(index, groups.len());
        for (place, &value) in values.iter().enumerate() {
            let Some(y) = frame.y(value) else { continue };
            // In the order of tenants, so that one tenant stands at the same place in each group.
            let along = (place as f64 + 0.5) / values.len() as f64 - 0.5;
            frame.dot(middle + along * width, y, colour(index), 2.2);
        }
    }
    frame.finish()
}

/// Bars side by side, with error bars: (name, value, half the error bar's height).
#[must_use]
pub fn bars(title: &str, y_label: &str, bars: &[(String, f64, f64)]) -> String {
    let values = bars.iter().map(|&(_, value, half)| value + half);
    let mut frame = Frame::new(title, y_label, Axis::over(values, Scale::Linear, true));
    let names: Vec<&str> = bars.iter().map(|(name, ..)| name.as_str()).collect();
    let width = frame.groups(&names) * 0.6;
    for (index, &(_, value, half)) in bars.iter().enumerate() {
        let middle = group_middle(index, bars.len());
        let (Some(top), Some(bottom)) = (frame.y(value), frame.y(0.0)) else { continue };
        frame.put(format_args!(
            "<rect x=\"{:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{}\"/>",
            middle - width / 2.0,
            (bottom - top).max(0.0),
            colour(index)
        ));
        if half > 0.0 {
            frame.error_bar(middle, value - half, value + half, "#000000");
        }
    }
    frame.finish()
}

fn colour(index: usize) -> &'static str {
    COLOURS.get(index % COLOURS.len()).copied().unwrap_or("#000000")
}

fn span_x() -> (f64, f64) {
    (LEFT, WIDTH - RIGHT)
}

fn group_middle(index: usize, count: usize) -> f64 {
    let (from, to) = span_x();
    from + (to - from) * (index as f64 + 0.5) / count.max(1) as f64
}

/// Escapes text for XML and HTML.
#[must_use]
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// An axis: its range, and where its ticks are.
#[derive(Clone, Debug)]
struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
}

impl Axis {
    /// Over all values that the scale can show.
    fn over(values: impl Iterator<Item = f64>, scale: Scale, from_zero: bool) -> Self {
        let usable = |value: &f64| value.is_finite() && (scale == Scale::Linear || *value > 0.0);
        let (low, high) = values
            .filter(usable)
            .fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        let (mut low, mut high) = if low > high { (1.0, 10.0) } else { (low, high) };
        if scale == Scale::Logarithmic {
            (low, high) = (10f64.powf(low.log10().floor()), 10f64.powf(high.log10().ceil()));
            high = if high <= low { low * 10.0 } else { high };
        } else {
            low = if from_zero { low.min(0.0) } else { low };
            high = if high <= low { low + 1.0 } else { high };
            high += (high - low) * 0.04;
        }
        Self { scale, low, high }
    }

    /// Where a value is between two ends; `None` when the scale cannot show it.
    fn place(&self, value: f64, (from, to): (f64, f64)) -> Option<f64> {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Logarithmic if value > 0.0 => {
                (value / self.low).log10() / (self.high / self.low).log10()
            }
            Scale::Logarithmic => return None,
        };
        share.is_finite().then(|| from + share.clamp(-0.02, 1.02) * (to - from))
    }

    fn ticks(&self) -> Vec<f64> {
        if self.scale == Scale::Logarithmic {
            let decades = (self.high / self.low).log10().round() as i32;
            return (0..=decades).map(|decade| self.low * 10f64.powi(decade)).collect();
        }
        let rough = (self.high - self.low) / 6.0;
        let magnitude = 10f64.powf(rough.log10().floor());
        let factors = [1.0, 2.0, 2.5, 5.0, 10.0];
        let step = factors.map(|f| f * magnitude).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(magnitude * 10.0);
        let first = (self.low / step).ceil() as i64;
        (first..first + 12).map(|n| n as f64 * step).take_while(|tick| *tick <= self.high).collect()
    }
}

/// What every figure has.
struct Frame {
    svg: String,
    y: Axis,
}

impl Frame {
    fn new(title: &str, y_label: &str, y: Axis) -> Self {
        let svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
             font-family=\"sans-serif\" font-size=\"12\"><title>{0}</title>\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\
             <text x=\"{LEFT}\" y=\"20\" font-size=\"14\" font-weight=\"bold\">{0}</text>",
            escape(title)
        );
        let mut frame = Self { svg, y };
        frame.y_axis(y_label);
        frame
    }

    fn put(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        _ = self.svg.write_fmt(text);
    }

    fn y(&self, value: f64) -> Option<f64> {
        self.y.place(value, (HEIGHT - BOTTOM, TOP))
    }

    fn y_axis(&mut self, label: &str) {
        let right = WIDTH - RIGHT;
        for tick in self.y.ticks() {
            let Some(y) = self.y(tick) else { continue };
            self.put(format_args!(
                "<path d=\"M{LEFT} {y:.1}H{right}\" stroke=\"#ddd\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 6.0,
                y + 4.0,
                number(tick)
            ));
        }
        let middle = (TOP + HEIGHT - BOTTOM) / 2.0;
        self.put(format_args!(
            "<path d=\"M{LEFT} {TOP}V{}H{right}\" fill=\"none\" stroke=\"#333\"/>\
             <text transform=\"translate(16 {middle}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            HEIGHT - BOTTOM,
            escape(label)
        ));
    }

    fn x_axis(&mut self, label: &str, x: &Axis) {
        let bottom = HEIGHT - BOTTOM;
        for tick in x.ticks() {
            let Some(place) = x.place(tick, span_x()) else { continue };
            self.put(format_args!(
                "<path d=\"M{place:.1} {bottom}v4\" stroke=\"#333\"/>\
                 <text x=\"{place:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                bottom + 17.0,
                number(tick)
            ));
        }
        let middle = f64::midpoint(LEFT, WIDTH - RIGHT);
        self.put(format_args!(
            "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            HEIGHT - 14.0,
            escape(label)
        ));
    }

    /// Names under groups; the answer is a group's width.
    fn groups(&mut self, names: &[&str]) -> f64 {
        let slanted = names.len() > 6 || names.iter().any(|name| name.chars().count() > 16);
        for (index, name) in names.iter().enumerate() {
            let x = group_middle(index, names.len());
            let y = HEIGHT - BOTTOM + 17.0;
            let turn = if slanted {
                format!(" transform=\"rotate(-12 {x:.1} {y})\"")
            } else {
                String::new()
            };
            self.put(format_args!(
                "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\" font-size=\"11\"{turn}>{}</text>",
                escape(name)
            ));
        }
        let (from, to) = span_x();
        (to - from) / names.len().max(1) as f64
    }

    fn dot(&mut self, x: f64, y: f64, colour: &str, radius: f64) {
        self.put(format_args!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{colour}\"/>"
        ));
    }

    fn error_bar(&mut self, x: f64, low: f64, high: f64, colour: &str) {
        let bottom = self.y(low).unwrap_or(HEIGHT - BOTTOM);
        let Some(top) = self.y(high) else { return };
        self.put(format_args!(
            "<path d=\"M{x:.1} {bottom:.1}V{top:.1}M{:.1} {top:.1}h8M{:.1} {bottom:.1}h8\" \
             stroke=\"{colour}\" fill=\"none\"/>",
            x - 4.0,
            x - 4.0
        ));
    }

    fn legend<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        for (index, name) in names.enumerate() {
            let y = TOP + 14.0 + 16.0 * index as f64;
            self.put(format_args!(
                "<path d=\"M{} {}h18\" stroke=\"{}\" stroke-width=\"2.4\"/><text x=\"{}\" y=\"{y}\">{}</text>",
                LEFT + 12.0,
                y - 4.0,
                colour(index),
                LEFT + 36.0,
                escape(name)
            ));
        }
    }

    fn finish(mut self) -> String {
        self.svg.push_str("</svg>");
        self.svg
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        let axis = |low, high, scale| Axis { scale, low, high }.ticks();
        assert_eq!(axis(0.0, 100.0, Scale::Linear), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(axis(1.0, 1000.0, Scale::Logarithmic), [1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(axis(-1.0, 1.0, Scale::Linear), [-1.0, -0.5, 0.0, 0.5, 1.0]);
    }

    #[test]
    fn higher_values_stand_higher() {
        for scale in [Scale::Linear, Scale::Logarithmic] {
            let frame = Frame::new("t", "y", Axis::over([1.0, 90.0].into_iter(), scale, false));
            let (low, high) = (frame.y(2.0).unwrap(), frame.y(80.0).unwrap());
            assert!(high < low && high > TOP - 1.0 && low < HEIGHT - BOTTOM + 1.0);
        }
    }

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
                let svg = Lines {
                    title: "x < y".into(),
                    lines: vec![line],
                    x_scale: scale,
                    y_scale: scale,
                    ..Lines::default()
                }
                .svg();
                check_xml(&svg);
            }
        }
        check_xml(&boxes("b", "µs", Scale::Logarithmic, &[BoxPlot::default()]));
        check_xml(&strips(
            "s",
            "µs",
            Scale::Linear,
            &[("a".into(), vec![]), ("b".into(), vec![1.0])],
        ));
        check_xml(&bars("c", "%", &[("a".into(), 0.0, 0.0), ("b".into(), 9.0, 2.0)]));
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
