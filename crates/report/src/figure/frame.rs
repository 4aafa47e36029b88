//! Draws the common parts of all forms of figures: title, legend, axes, and panels side by side.

use super::axis::Axis;
use super::canvas::{Anchor, Canvas, Shape, Stroke, Text};
use super::palette::{Colour, GRID, INK, NOTE};
use super::text::{cut, width, wrap};

/// The distance to the edges of the figure.
pub(super) const EDGE: f64 = 8.0;
/// The size of all texts except the title.
pub(super) const SMALL: f64 = 11.0;
const LEGEND_LINE: f64 = 17.0;
const SWATCH: f64 = 22.0;
const BETWEEN: f64 = 14.0;
/// The minimum width of one of several panels.
const PANEL: f64 = 215.0;
/// The height below each row of panels, for the names of the x axes.
const BELOW: f64 = 26.0;
/// The maximum number of panels. If panels are missing, the figure has a note.
pub(super) const MOST_PANELS: usize = 24;

/// The parts around the panels.
#[derive(Clone, Debug, Default)]
pub(super) struct Outline<'a> {
    pub(super) title: &'a str,
    pub(super) note: &'a str,
    pub(super) x_label: &'a str,
    pub(super) y_label: &'a str,
    /// The entries of the legend. An empty list means no legend.
    pub(super) legend: Vec<(String, Stroke)>,
    /// The name of each panel.
    pub(super) panels: Vec<String>,
    /// The height of each panel.
    pub(super) height: f64,
    /// The maximum width of the names of the y axis.
    pub(super) left: f64,
}

/// The position of one panel's plot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Place {
    pub(super) fn across(&self) -> (f64, f64) {
        (self.left, self.right)
    }

    pub(super) fn upwards(&self) -> (f64, f64) {
        (self.bottom, self.top)
    }
}

/// A drawing in progress.
pub(super) struct Frame {
    canvas: Canvas,
}

impl Frame {
    /// Draws the title, note, legend, labels and names of panels. Returns a place for each panel.
    pub(super) fn new(outline: &Outline<'_>, across: f64) -> (Self, Vec<Place>) {
        let canvas = Canvas { title: outline.title.to_owned(), ..Canvas::default() };
        let mut frame = Self { canvas };
        let room = across - 2.0 * EDGE;
        let mut y = EDGE;
        for line in wrap(outline.title, room, 14.0, true, 4) {
            y += 17.0;
            let text = Text::new((EDGE, y), &line, Anchor::Start);
            frame.text(Text { size: 14.0, bold: true, ..text });
        }
        for line in wrap(outline.note, room, SMALL, false, 4) {
            y += 15.0;
            frame.text(Text { colour: NOTE, ..Text::new((EDGE, y), &line, Anchor::Start) });
        }
        y = frame.legend(&outline.legend, y + 6.0, across);
        for line in wrap(outline.y_label, room, SMALL, false, 2) {
            y += 15.0;
            frame.text(Text::new((EDGE, y), &line, Anchor::Start));
        }
        let (places, bottom) = frame.panels(outline, y + 8.0, across);
        let mut y = bottom;
        for line in wrap(outline.x_label, room, SMALL, false, 2) {
            y += 14.0;
            frame.text(Text::new((across / 2.0, y), &line, Anchor::Middle));
        }
        frame.canvas.size = (across, (y + EDGE).ceil());
        (frame, places)
    }

    /// Draws the names beside strokes in the style of their lines, in rows. Returns the y position of the end of the
    /// last row.
    fn legend(&mut self, entries: &[(String, Stroke)], mut y: f64, across: f64) -> f64 {
        let mut x = EDGE;
        for (index, (name, stroke)) in entries.iter().enumerate() {
            let shown = cut(name, across - 2.0 * EDGE - SWATCH - 6.0, SMALL, false);
            let wide = SWATCH + 6.0 + width(&shown, SMALL, false);
            if index == 0 || x + wide > across - EDGE {
                (x, y) = (EDGE, y + LEGEND_LINE);
            }
            let line = vec![(x, y - 4.0), (x + SWATCH, y - 4.0)];
            self.strokes(vec![line], Stroke { width: 2.6, ..stroke.clone() }, None);
            self.named((x + SWATCH + 6.0, y), name, &shown, Anchor::Start, false);
            x += wide + BETWEEN;
        }
        y
    }

    fn panels(&mut self, outline: &Outline<'_>, top: f64, across: f64) -> (Vec<Place>, f64) {
        let columns = columns(outline.panels.len(), across, outline.left);
        let wide = (across - EDGE) / columns as f64;
        let mut places = Vec::new();
        let mut y = top;
        for row in outline.panels.chunks(columns) {
            let lines: Vec<Vec<String>> =
                row.iter().map(|name| wrap(name, wide - outline.left, SMALL, true, 3)).collect();
            let most = lines.iter().map(Vec::len).max().unwrap_or(0) as f64;
            let plot_top = y + most * 14.0 + 6.0;
            for (column, lines) in lines.iter().enumerate() {
                let left = wide * column as f64 + outline.left;
                for (index, line) in lines.iter().enumerate() {
                    let below = (lines.len() - index - 1) as f64 * 14.0;
                    let at = (left, plot_top - 6.0 - below);
                    let room = wide * (column + 1) as f64 - left;
                    let shown = cut(line, room, SMALL, true);
                    self.named(at, line, &shown, Anchor::Start, true);
                }
                let right = wide * (column + 1) as f64 - EDGE;
                places.push(Place {
                    left,
                    right,
                    top: plot_top,
                    bottom: plot_top + outline.height,
                });
            }
            y = plot_top + outline.height + BELOW;
        }
        (places, y)
    }

    /// Draws both axes without lines across the plot.
    pub(super) fn axes_plain(&mut self, place: &Place, x: &Axis, y: &Axis) {
        self.y_names(place, y, 4.0, INK);
        self.x_axis(place, x);
    }

    pub(super) fn y_axis(&mut self, place: &Place, axis: &Axis) {
        self.y_names(place, axis, place.left - place.right, GRID);
    }

    fn y_names(&mut self, place: &Place, axis: &Axis, out: f64, colour: Colour) {
        for (tick, name) in axis.ticks(ticks_up(place.bottom - place.top)) {
            let Some(y) = axis.place(tick, place.upwards()) else { continue };
            let line = vec![vec![(place.left, y), (place.left - out, y)]];
            self.strokes(line, Stroke::solid(colour, 1.0), None);
            self.text(Text::new((place.left - 6.0, y + 4.0), &name, Anchor::End));
        }
        self.corner(place);
    }

    pub(super) fn x_axis(&mut self, place: &Place, axis: &Axis) {
        let mut taken = place.left - 200.0;
        let wanted = (((place.right - place.left) / 56.0) as usize).max(3);
        for (tick, name) in axis.ticks(wanted) {
            let Some(x) = axis.place(tick, place.across()) else { continue };
            let half = width(&name, SMALL, false) / 2.0;
            // The name of the last tick must be inside the figure.
            let middle = x.min(place.right + EDGE - 2.0 - half);
            if middle - half < taken + 7.0 {
                continue;
            }
            taken = middle + half;
            let line = vec![(x, place.bottom), (x, place.bottom + 4.0)];
            self.strokes(vec![line], Stroke::solid(INK, 1.0), None);
            self.text(Text::new((middle, place.bottom + 16.0), &name, Anchor::Middle));
        }
    }

    pub(super) fn corner(&mut self, place: &Place) {
        let line =
            vec![(place.left, place.top), (place.left, place.bottom), (place.right, place.bottom)];
        self.strokes(vec![line], Stroke::solid(INK, 1.0), None);
    }

    /// Draws a text that may be cut. A tooltip shows the whole text of a cut text.
    pub(super) fn named(
        &mut self,
        at: (f64, f64),
        whole: &str,
        shown: &str,
        anchor: Anchor,
        bold: bool,
    ) {
        let hidden = (whole != shown).then(|| whole.to_owned());
        self.text(Text { bold, whole: hidden, ..Text::new(at, shown, anchor) });
    }

    pub(super) fn text(&mut self, text: Text) {
        self.canvas.shapes.push(Shape::Text(text));
    }

    pub(super) fn rectangle(
        &mut self,
        corner: (f64, f64),
        size: (f64, f64),
        fill: Colour,
        stroke: Option<Stroke>,
    ) {
        self.canvas.shapes.push(Shape::Rectangle { corner, size, fill, stroke });
    }

    pub(super) fn strokes(
        &mut self,
        lines: Vec<Vec<(f64, f64)>>,
        stroke: Stroke,
        series: Option<(&str, &str)>,
    ) {
        let series = series.map(|(system, variant)| (system.to_owned(), variant.to_owned()));
        self.canvas.shapes.push(Shape::Strokes { lines, stroke, series });
    }

    pub(super) fn dot(&mut self, middle: (f64, f64), fill: Colour, radius: f64) {
        self.canvas.shapes.push(Shape::Dot { middle, radius, fill });
    }

    pub(super) fn finish(self) -> Canvas {
        self.canvas
    }
}

/// The number of panels in a row. Rows have about the same number of panels: four panels make two rows of two, not three
/// and one.
pub(super) fn columns(panels: usize, across: f64, left: f64) -> usize {
    let count = panels.max(1);
    let fit = ((across - EDGE) / PANEL.max(left + 90.0)).floor().max(1.0) as usize;
    count.div_ceil(count.div_ceil(fit.min(count)))
}

fn ticks_up(height: f64) -> usize {
    (height / 38.0) as usize
}

/// The maximum width of the names of an axis' ticks, including the distance to the axis.
pub(super) fn left_of(axis: &Axis, height: f64) -> f64 {
    let names = axis.ticks(ticks_up(height));
    let widest = names.iter().map(|(_, name)| width(name, SMALL, false)).fold(0.0, f64::max);
    (widest + 12.0).max(24.0)
}

/// The height of a panel. A single panel is higher than one of several panels, and slightly lower
/// on a phone.
pub(super) fn panel_height(panels: usize, across: f64) -> f64 {
    match (panels, across < 500.0) {
        (0 | 1, false) => 300.0,
        (0 | 1, true) => 220.0,
        _ => 160.0,
    }
}

pub(super) fn with_more(note: &str, panels: usize) -> String {
    if panels == 0 {
        return note.to_owned();
    }
    joined(note, &format!("{panels} more panels are not drawn; the CSV has all"))
}

pub(super) fn joined(note: &str, more: &str) -> String {
    if note.is_empty() { more.to_owned() } else { format!("{note}; {more}") }
}
