//! What every form of figure has: title, axes with ticks, groups, legend.

use super::Scale;
use super::drawing::{Anchor, Drawing, SIZE, Shape, Stroke, Text};
use crate::table::number;

const WIDTH: f64 = SIZE.0;
const HEIGHT: f64 = SIZE.1;
pub(super) const LEFT: f64 = 74.0;
const RIGHT: f64 = 16.0;
/// What a legend beside the plot takes: by its names, within these.
const LEGEND_LEAST: f64 = 90.0;
const LEGEND: f64 = 300.0;
const LEGEND_LINE: f64 = 16.0;
pub(super) const TOP: f64 = 46.0;
pub(super) const BOTTOM: f64 = 52.0;
/// About half of what a letter takes of a line.
const HALF_LETTER: f64 = 3.4;
/// Okabe and Ito's colours, which colour-blind readers tell apart.
const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];

pub(super) fn colour(index: usize) -> &'static str {
    COLOURS.get(index % COLOURS.len()).copied().unwrap_or("#000000")
}

pub(super) fn span_x() -> (f64, f64) {
    (LEFT, WIDTH - RIGHT)
}

pub(super) fn group_middle(index: usize, count: usize) -> f64 {
    let (from, to) = span_x();
    from + (to - from) * (index as f64 + 0.5) / count.max(1) as f64
}

/// An axis: its range, and where its ticks are.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
}

impl Axis {
    /// Over all values that the scale can show.
    pub(super) fn over(values: impl Iterator<Item = f64>, scale: Scale, from_zero: bool) -> Self {
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
    pub(super) fn place(&self, value: f64, (from, to): (f64, f64)) -> Option<f64> {
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

/// Where a value stands, upwards.
pub(super) fn place_y(y: &Axis, value: f64) -> Option<f64> {
    y.place(value, (HEIGHT - BOTTOM, TOP))
}

/// A drawing under way.
pub(super) struct Frame {
    drawing: Drawing,
    y: Axis,
    /// Where the plot ends.
    right: f64,
}

impl Frame {
    pub(super) fn new(title: &str, y_label: &str, y: Axis) -> Self {
        Self::with_names(title, y_label, y, std::iter::empty(), |_, _, _| false)
    }

    /// With room for a legend of these names: beside the plot when they are many, or would cover a line.
    pub(super) fn with_names<'a>(
        title: &str,
        y_label: &str,
        y: Axis,
        names: impl ExactSizeIterator<Item = &'a str>,
        covers: impl Fn(&Axis, (f64, f64), (f64, f64)) -> bool,
    ) -> Self {
        let drawing = Drawing { title: title.to_owned(), shapes: Vec::new() };
        let count = names.len();
        let longest = names.map(|name| name.chars().count()).max().unwrap_or(0) as f64;
        let within = (LEFT + 40.0 + 7.0 * longest, TOP + 6.0 + LEGEND_LINE * count as f64);
        let beside = count > 4 || (count > 0 && covers(&y, span_x(), within));
        let room = (34.0 + 5.6 * longest).clamp(LEGEND_LEAST, LEGEND);
        let right = WIDTH - RIGHT - if beside { room } else { 0.0 };
        let mut frame = Self { drawing, y, right };
        let heading = Text::new((LEFT, 20.0), title, Anchor::Start);
        frame.text(Text { size: 14.0, bold: true, ..heading });
        frame.y_axis(y_label);
        frame
    }

    pub(super) fn y(&self, value: f64) -> Option<f64> {
        place_y(&self.y, value)
    }

    /// Where the plot begins and ends.
    pub(super) fn span(&self) -> (f64, f64) {
        (LEFT, self.right)
    }

    fn y_axis(&mut self, label: &str) {
        let (from, to) = self.span();
        for tick in self.y.ticks() {
            let Some(y) = self.y(tick) else { continue };
            self.strokes(vec![vec![(from, y), (to, y)]], Stroke::solid("#dddddd", 1.0));
            self.text(Text::new((LEFT - 6.0, y + 4.0), &number(tick), Anchor::End));
        }
        let bottom = HEIGHT - BOTTOM;
        self.strokes(
            vec![vec![(LEFT, TOP), (LEFT, bottom), (to, bottom)]],
            Stroke::solid("#333333", 1.0),
        );
        let at = (16.0, (TOP + bottom) / 2.0);
        self.text(Text { turn: -90.0, ..Text::new(at, label, Anchor::Middle) });
    }

    pub(super) fn x_axis(&mut self, label: &str, x: &Axis) {
        let bottom = HEIGHT - BOTTOM;
        for tick in x.ticks() {
            let Some(place) = x.place(tick, self.span()) else { continue };
            let line = vec![(place, bottom), (place, bottom + 4.0)];
            self.strokes(vec![line], Stroke::solid("#333333", 1.0));
            let name = number(tick);
            // Of the last, all has to stand inside.
            let middle = place.min(WIDTH - 2.0 - HALF_LETTER * name.len() as f64);
            self.text(Text::new((middle, bottom + 17.0), &name, Anchor::Middle));
        }
        let middle = f64::midpoint(LEFT, self.right);
        self.text(Text::new((middle, HEIGHT - 14.0), label, Anchor::Middle));
    }

    /// Names under groups; the answer is a group's width.
    pub(super) fn groups(&mut self, names: &[&str]) -> f64 {
        let slanted = names.len() > 6 || names.iter().any(|name| name.chars().count() > 16);
        let turn: f64 = if slanted { -12.0 } else { 0.0 };
        for (index, name) in names.iter().enumerate() {
            // The higher end stays under the axis.
            let rise = HALF_LETTER * name.chars().count() as f64 * turn.abs().to_radians().sin();
            let y = HEIGHT - BOTTOM + 17.0 + rise.min(BOTTOM / 3.0);
            let at = (group_middle(index, names.len()), y);
            self.text(Text { size: 11.0, turn, ..Text::new(at, name, Anchor::Middle) });
        }
        let (from, to) = span_x();
        (to - from) / names.len().max(1) as f64
    }

    pub(super) fn rectangle(
        &mut self,
        corner: (f64, f64),
        size: (f64, f64),
        fill: &'static str,
        stroke: Stroke,
    ) {
        self.drawing.shapes.push(Shape::Rectangle { corner, size, fill, stroke });
    }

    pub(super) fn strokes(&mut self, lines: Vec<Vec<(f64, f64)>>, stroke: Stroke) {
        self.drawing.shapes.push(Shape::Strokes { lines, stroke });
    }

    pub(super) fn dot(&mut self, middle: (f64, f64), colour: &'static str, radius: f64) {
        self.drawing.shapes.push(Shape::Dot { middle, radius, fill: colour });
    }

    fn text(&mut self, text: Text) {
        self.drawing.shapes.push(Shape::Text(text));
    }

    pub(super) fn error_bar(&mut self, x: f64, low: f64, high: f64, stroke: Stroke) {
        let bottom = self.y(low).unwrap_or(HEIGHT - BOTTOM);
        let Some(top) = self.y(high) else { return };
        let ends = [top, bottom].map(|y| vec![(x - 4.0, y), (x + 4.0, y)]);
        let lines = [vec![(x, bottom), (x, top)]].into_iter().chain(ends).collect();
        self.strokes(lines, stroke);
    }

    /// Names beside short strokes as their lines have them.
    pub(super) fn legend<'a>(&mut self, lines: impl Iterator<Item = (&'a str, Stroke)>) {
        let beside = self.right < WIDTH - RIGHT;
        let (left, size) = if beside { (self.right + 2.0, 10.0) } else { (LEFT + 12.0, 12.0) };
        for (index, (name, stroke)) in lines.enumerate() {
            let y = TOP + 14.0 + LEGEND_LINE * index as f64;
            let line = vec![(left, y - 4.0), (left + 18.0, y - 4.0)];
            self.strokes(vec![line], Stroke { width: 2.4, ..stroke });
            let text = Text::new((left + 24.0, y), name, Anchor::Start);
            self.text(Text { size, ..text });
        }
    }

    /// A row of colours at the top right, between what the first and the last stand for.
    pub(super) fn colours(&mut self, colours: &[&'static str], label: &str, low: &str, high: &str) {
        let (width, y) = (12.0, TOP - 20.0);
        let right = span_x().1 - 46.0;
        let left = right - width * colours.len() as f64;
        for (index, colour) in colours.iter().enumerate() {
            let corner = (left + width * index as f64, y);
            self.rectangle(corner, (width, 12.0), colour, Stroke::NONE);
        }
        let words = format!("{label}  {low}");
        self.text(Text::new((left - 5.0, y + 10.0), &words, Anchor::End));
        self.text(Text::new((right + 5.0, y + 10.0), high, Anchor::Start));
    }

    pub(super) fn finish(self) -> Drawing {
        self.drawing
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
}
