//! Draws boxes, dots with bars, and bars by category. Marks are side by side if the names of the
//! categories fit below them. Otherwise marks are in rows with the names before them, so names
//! never overlap.

use super::axis::{Axis, Scale};
use super::canvas::{Anchor, Canvas, Stroke, Text};
use super::frame::{
    EDGE, Frame, MOST_PANELS, Outline, Place, SMALL, columns, joined, left_of, panel_height,
    with_more,
};
use super::palette::{Colour, GRID, INK, PAPER, Palette};
use super::text::{cut, width};
use crate::groups::{by_key, unique};
use serde::{Deserialize, Serialize};

/// One distribution, value or bar.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// The category of the mark: a rate, a tenant, a system.
    pub category: String,
    /// The system, which decides the colour.
    pub system: String,
    /// The variant of the system, which decides the style.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub variant: String,
    /// The heading of the panel of the mark.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub panel: String,
    /// The shape of the mark.
    #[serde(flatten)]
    pub shape: Shape,
}

/// The parts of a mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// The end of a bar that begins at zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bar: Option<f64>,
    /// The ends of a thin line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whiskers: Option<(f64, f64)>,
    /// The lower quartile, the median and the upper quartile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quartiles: Option<(f64, f64, f64)>,
    /// The value of a dot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dot: Option<f64>,
}

impl Shape {
    fn values(&self) -> impl Iterator<Item = f64> {
        let whiskers = self.whiskers.map(|(low, high)| [low, high]);
        let quartiles = self.quartiles.map(|(q1, _, q3)| [q1, q3]);
        let pairs = whiskers.into_iter().chain(quartiles).flatten();
        pairs.chain(self.bar).chain(self.dot)
    }

    /// The value that represents the mark: median, bar or dot.
    pub(super) fn middle(&self) -> Option<f64> {
        self.quartiles.map(|(_, median, _)| median).or(self.bar).or(self.dot)
    }

    /// Removes values that are not finite, because files and axes cannot have such values.
    fn finite(mut self) -> Self {
        self.bar = self.bar.filter(|it| it.is_finite());
        self.dot = self.dot.filter(|it| it.is_finite());
        self.whiskers = self.whiskers.filter(|(a, b)| a.is_finite() && b.is_finite());
        self.quartiles =
            self.quartiles.filter(|(a, b, c)| a.is_finite() && b.is_finite() && c.is_finite());
        self
    }
}

/// Marks over categories.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Marks {
    /// The title above the figure.
    pub title: String,
    /// The measured quantity, with its unit.
    pub value_label: String,
    /// The name of the categories; empty if the names of the categories are clear.
    pub category_label: String,
    /// The scale of the values.
    pub scale: Scale,
    /// The marks, in the order of drawing.
    pub marks: Vec<Mark>,
}

/// The height of a row, and the height of one of several marks in a row.
const ROW: f64 = 19.0;
const IN_ROW: f64 = 11.0;
/// The minimum width of one of several marks side by side.
const SLOT: f64 = 6.0;
/// The maximum number of rows of one panel. If rows are missing, the figure has a note.
const MOST_ROWS: usize = 80;

/// One panel's marks.
struct Panel<'a> {
    name: &'a str,
    categories: Vec<&'a str>,
    series: Vec<(&'a str, &'a str)>,
    marks: Vec<&'a Mark>,
}

impl<'a> Panel<'a> {
    fn new(name: &'a str, marks: Vec<&'a Mark>) -> Self {
        let categories = unique(marks.iter().map(|mark| mark.category.as_str()));
        let series = unique(marks.iter().map(|mark| (mark.system.as_str(), mark.variant.as_str())));
        Self { name, categories, series, marks }
    }

    /// The maximum number of marks in one category. If each category has one mark, the category
    /// names the system.
    fn in_a_category(&self) -> usize {
        let of = |category: &&str| self.marks.iter().filter(|it| it.category == *category).count();
        self.categories.iter().map(of).max().unwrap_or(1).max(1)
    }
}

impl Marks {
    /// Marks with clear names of the categories.
    #[must_use]
    pub fn new(title: &str, value_label: &str, scale: Scale, marks: Vec<Mark>) -> Marks {
        let (title, value_label) = (title.to_owned(), value_label.to_owned());
        Marks { title, value_label, category_label: String::new(), scale, marks }
    }

    /// Returns a copy without values that are not finite.
    pub(super) fn finite(&self) -> Marks {
        let mut marks = self.clone();
        marks.marks.iter_mut().for_each(|mark| mark.shape = mark.shape.finite());
        marks
    }

    fn panels(&self) -> Vec<Panel<'_>> {
        let panels = by_key(self.marks.iter().map(|mark| (mark.panel.as_str(), mark)));
        panels.into_iter().map(|(name, marks)| Panel::new(name, marks)).collect()
    }

    pub(super) fn render(&self, note: &str, across: f64, palette: &Palette) -> Canvas {
        let mut panels = self.panels();
        let more = panels.len().saturating_sub(MOST_PANELS);
        panels.truncate(MOST_PANELS);
        let mut note = with_more(note, more);
        let values = self.marks.iter().flat_map(|mark| mark.shape.values());
        let axis = Axis::over(values, self.scale, self.scale == Scale::Linear);
        let height = panel_height(panels.len(), across);
        let left = left_of(&axis, height);
        if panels.iter().all(|panel| stands(panel, across, left, panels.len())) {
            return self.upright(&panels, &note, across, palette, (&axis, height, left));
        }
        let cut_off: usize =
            panels.iter().map(|panel| panel.categories.len().saturating_sub(MOST_ROWS)).sum();
        if cut_off > 0 {
            note = joined(&note, &format!("{cut_off} more rows are in the CSV"));
        }
        self.in_rows(&panels, &note, across, palette, &axis)
    }

    fn legend(panels: &[Panel<'_>], palette: &Palette) -> Vec<(String, Stroke)> {
        if panels.iter().all(|panel| panel.in_a_category() == 1) {
            return Vec::new();
        }
        let series = unique(panels.iter().flat_map(|panel| &panel.series));
        let entry = |(system, variant): &(&str, &str)| {
            (label(system, variant), stroke(palette, system, variant))
        };
        series.into_iter().map(entry).collect()
    }

    fn upright(
        &self,
        panels: &[Panel<'_>],
        note: &str,
        across: f64,
        palette: &Palette,
        (axis, height, left): (&Axis, f64, f64),
    ) -> Canvas {
        let outline = Outline {
            title: &self.title,
            note,
            x_label: &self.category_label,
            y_label: &self.value_label,
            legend: Self::legend(panels, palette),
            panels: panels.iter().map(|panel| panel.name.to_owned()).collect(),
            height,
            left,
        };
        let (mut frame, places) = Frame::new(&outline, across);
        for (place, panel) in places.iter().zip(panels) {
            frame.y_axis(place, axis);
            let slot = (place.right - place.left) / panel.categories.len().max(1) as f64;
            let widest = panel.categories.iter().map(|it| width(it, SMALL, false));
            let every = step(widest.fold(0.0, f64::max) + 5.0, slot);
            for (index, category) in panel.categories.iter().enumerate() {
                let middle = place.left + slot * (index as f64 + 0.5);
                if every == 1 || (index + 1).is_multiple_of(every) {
                    let at = (middle, place.bottom + 16.0);
                    frame.text(Text::new(at, category, Anchor::Middle));
                }
                let across = |index: usize, of: usize| {
                    let step = slot * 0.84 / of as f64;
                    (middle - slot * 0.42 + step * (index as f64 + 0.5), step)
                };
                each(panel, category, |mark, index, of| {
                    let (middle, room) = across(index, of);
                    let pen = Pen { middle, room, axis, along: place.upwards(), flip: false };
                    pen.draw(&mut frame, mark, palette);
                });
            }
        }
        frame.finish()
    }

    fn in_rows(
        &self,
        panels: &[Panel<'_>],
        note: &str,
        across: f64,
        palette: &Palette,
        axis: &Axis,
    ) -> Canvas {
        let rows = |panel: &Panel<'_>| -> f64 {
            let shown = panel.categories.len().min(MOST_ROWS) as f64;
            shown * row_height(panel)
        };
        let names = panels.iter().flat_map(|panel| &panel.categories);
        let widest = names.map(|name| width(name, SMALL, false)).fold(0.0, f64::max);
        let outline = Outline {
            title: &self.title,
            note,
            x_label: &self.value_label,
            y_label: &self.category_label,
            legend: Self::legend(panels, palette),
            panels: panels.iter().map(|panel| panel.name.to_owned()).collect(),
            height: panels.iter().map(rows).fold(0.0, f64::max) + 8.0,
            left: (widest + 14.0).min(across * if panels.len() > 1 { 0.3 } else { 0.52 }),
        };
        let (mut frame, places) = Frame::new(&outline, across);
        for (place, panel) in places.iter().zip(panels) {
            let place = Place { bottom: place.top + rows(panel) + 8.0, ..*place };
            for (tick, _) in axis.ticks(((place.right - place.left) / 62.0) as usize) {
                let Some(x) = axis.place(tick, place.across()) else { continue };
                let line = vec![vec![(x, place.top), (x, place.bottom)]];
                frame.strokes(line, Stroke::solid(GRID, 1.0), None);
            }
            frame.corner(&place);
            frame.x_axis(&place, axis);
            for (index, category) in panel.categories.iter().take(MOST_ROWS).enumerate() {
                let row = row_height(panel);
                let middle = place.top + 4.0 + row * (index as f64 + 0.5);
                let shown = cut(category, outline.left - 14.0, SMALL, false);
                let at = (place.left - 6.0, middle + 4.0);
                frame.named(at, category, &shown, Anchor::End, false);
                each(panel, category, |mark, index, of| {
                    let step = (row - 5.0) / of as f64;
                    let middle = middle - (row - 5.0) / 2.0 + step * (index as f64 + 0.5);
                    let along = place.across();
                    let pen = Pen { middle, room: step, axis, along, flip: true };
                    pen.draw(&mut frame, mark, palette);
                });
            }
        }
        frame.finish()
    }
}

/// Whether the names of a panel's categories fit below its marks. If the names are numbers, some names may be left out.
fn stands(panel: &Panel<'_>, across: f64, left: f64, panels: usize) -> bool {
    let room = (across - EDGE) / columns(panels, across, left) as f64 - left - EDGE;
    let slot = room / panel.categories.len().max(1) as f64;
    let numbers = panel.categories.iter().all(|it| it.replace(',', "").parse::<f64>().is_ok());
    let widest = panel.categories.iter().map(|it| width(it, SMALL, false)).fold(0.0, f64::max);
    let least = SLOT * if numbers && panel.in_a_category() == 1 { 0.4 } else { 1.0 };
    (numbers || widest + 6.0 <= slot) && slot * 0.84 / panel.in_a_category() as f64 >= least
}

/// The distance between two named categories, so that names do not overlap.
fn step(widest: f64, slot: f64) -> usize {
    let least = (widest / slot).ceil().max(1.0) as usize;
    let round = |power: u32| [1, 2, 5].map(|factor| factor * 10usize.pow(power));
    (0..6).flat_map(round).find(|step| *step >= least).unwrap_or(least)
}

fn row_height(panel: &Panel<'_>) -> f64 {
    ROW.max(IN_ROW * panel.in_a_category() as f64 + 5.0)
}

/// Calls `one` for each mark of a category, with the place of the mark and the number of places.
fn each<'a>(panel: &Panel<'a>, category: &str, mut one: impl FnMut(&'a Mark, usize, usize)) {
    let here: Vec<&Mark> =
        panel.marks.iter().copied().filter(|mark| mark.category == category).collect();
    let most = panel.in_a_category();
    for (index, mark) in here.iter().enumerate() {
        // If all categories have all series, a series has the same place in each category.
        let series = (mark.system.as_str(), mark.variant.as_str());
        let place = panel.series.iter().position(|it| *it == series);
        let place = place.filter(|_| most == panel.series.len()).unwrap_or(index);
        one(mark, place, most);
    }
}

pub(super) fn label(system: &str, variant: &str) -> String {
    match (system, variant) {
        (system, "") => system.to_owned(),
        ("", variant) => variant.to_owned(),
        (system, variant) => format!("{system}, {variant}"),
    }
}

fn stroke(palette: &Palette, system: &str, variant: &str) -> Stroke {
    Stroke { colour: palette.colour(system), width: 1.4, dash: palette.dash(variant) }
}

/// Draws marks vertically or horizontally.
struct Pen<'a> {
    /// The middle of the mark across the axis of values.
    middle: f64,
    room: f64,
    axis: &'a Axis,
    along: (f64, f64),
    flip: bool,
}

impl Pen<'_> {
    fn draw(&self, frame: &mut Frame, mark: &Mark, palette: &Palette) {
        let Mark { system, variant, shape, .. } = mark;
        let pen = stroke(palette, system, variant);
        let series = Some((system.as_str(), variant.as_str()));
        let half = (self.room * 0.38).clamp(1.0, 14.0);
        if let Some(bar) = shape.bar {
            let colour = if pen.dash.is_solid() { pen.colour } else { PAPER };
            self.rectangle(frame, (self.axis.ground(), bar), half, colour, &pen);
        }
        if let Some((low, high)) = shape.whiskers {
            let ink = if shape.bar.is_some() { INK } else { pen.colour };
            let thin = Stroke::solid(ink, 1.0);
            self.line(frame, [(0.0, low), (0.0, high)], thin.clone(), None);
            if shape.quartiles.is_some() || shape.bar.is_some() {
                for end in [low, high] {
                    self.line(frame, [(-half / 2.0, end), (half / 2.0, end)], thin.clone(), None);
                }
            }
        }
        if let Some((q1, median, q3)) = shape.quartiles {
            // A small box has a solid outline, because a dashed outline would look broken.
            let rim = if half < 8.0 { Stroke::solid(pen.colour, 1.4) } else { pen.clone() };
            self.rectangle(frame, (q1, q3), half, PAPER, &rim);
            let thick = Stroke { width: 2.4, ..pen.clone() };
            self.line(frame, [(-half, median), (half, median)], thick, series);
        }
        if let Some(dot) = shape.dot {
            if shape.quartiles.is_none() && shape.whiskers.is_none() && !pen.dash.is_solid() {
                self.line(frame, [(-half, dot), (half, dot)], pen.clone(), series);
            }
            if let Some(place) = self.place(0.0, dot) {
                frame.dot(place, pen.colour, (self.room * 0.3).clamp(1.2, 3.2));
            }
        }
    }

    fn place(&self, aside: f64, value: f64) -> Option<(f64, f64)> {
        let along = self.axis.place(value, self.along)?;
        let across = self.middle + aside;
        Some(if self.flip { (along, across) } else { (across, along) })
    }

    fn line(
        &self,
        frame: &mut Frame,
        ends: [(f64, f64); 2],
        stroke: Stroke,
        series: Option<(&str, &str)>,
    ) {
        let places: Vec<_> =
            ends.into_iter().filter_map(|(aside, value)| self.place(aside, value)).collect();
        if places.len() == 2 {
            frame.strokes(vec![places], stroke, series);
        }
    }

    fn rectangle(
        &self,
        frame: &mut Frame,
        (from, to): (f64, f64),
        half: f64,
        fill: Colour,
        pen: &Stroke,
    ) {
        let (Some(a), Some(b)) = (self.place(-half, from), self.place(half, to)) else { return };
        let corner = (a.0.min(b.0), a.1.min(b.1));
        let size = ((a.0 - b.0).abs().max(0.5), (a.1 - b.1).abs().max(0.5));
        frame.rectangle(corner, size, fill, Some(pen.clone()));
    }
}
