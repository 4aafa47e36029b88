//! Draws lines over an axis of numbers, also cumulative distributions. Many lines get several
//! panels.

use super::axis::{Axis, Scale};
use super::canvas::{Canvas, Stroke};
use super::frame::{Frame, MOST_PANELS, Outline, Place, left_of, panel_height, with_more};
use super::palette::{DASHED, INK, Palette};
use crate::groups::{by_key, unique};
use serde::{Deserialize, Serialize};

/// The maximum number of lines that a reader can distinguish in one panel.
const MOST_LINES: usize = 8;

/// One line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The name in the legend. The text before the first `, ` or `: ` is the system of the line.
    pub name: String,
    /// The variant of the system, such as `ND`. The variant decides the style of the line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub variant: String,
    /// The heading of the panel of the line; empty if there is only one panel.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub panel: String,
    /// The points (x, y) in rising order of x.
    pub points: Vec<(f64, f64)>,
    /// Half the height of each point's error bar; empty for no error bars.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<f64>,
    /// Whether the line is dashed, which marks published values beside measured values.
    #[serde(default)]
    pub dashed: bool,
}

impl Line {
    /// The system and its variant, which decide colour and style.
    pub(super) fn series(&self) -> (String, String) {
        let name = self.name.split_once(": ").map_or(self.name.as_str(), |(name, _)| name);
        let (system, rest) = name.split_once(", ").unwrap_or((name, ""));
        let dashed = if self.dashed && !rest.contains("published") { DASHED } else { "" };
        let parts =
            [self.variant.as_str(), rest, dashed].into_iter().filter(|part| !part.is_empty());
        (system.to_owned(), parts.collect::<Vec<_>>().join(", "))
    }

    /// The name of the line in legends and sentences.
    pub(super) fn label(&self) -> String {
        match (self.name.split_once(", "), self.variant.is_empty()) {
            (_, true) => self.name.clone(),
            (Some((system, rest)), _) => format!("{system} {}, {rest}", self.variant),
            (None, _) => format!("{} {}", self.name, self.variant).trim().to_owned(),
        }
    }
}

/// Lines over an axis of numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lines {
    /// The title above the figure.
    pub title: String,
    /// The label under the x axis.
    pub x_label: String,
    /// The label above the y axis.
    pub y_label: String,
    /// The scale of the x axis.
    pub x_scale: Scale,
    /// The scale of the y axis.
    pub y_scale: Scale,
    /// Whether the x axis begins at 0, as for time.
    #[serde(default)]
    pub x_from_zero: bool,
    /// The lines.
    pub lines: Vec<Line>,
    /// Whether the lines are drawn as steps, as for a cumulative distribution.
    #[serde(default)]
    pub steps: bool,
}

impl Lines {
    /// Returns a copy without values that are not finite, because files and axes cannot have such
    /// values.
    pub(super) fn finite(&self) -> Lines {
        let mut lines = self.clone();
        for line in &mut lines.lines {
            let finite = |(x, y): &(f64, f64)| x.is_finite() && y.is_finite();
            let keep: Vec<bool> = line.points.iter().map(finite).collect();
            let mut kept = keep.iter().copied();
            line.errors.retain(|_| kept.next().unwrap_or(true));
            line.errors.iter_mut().filter(|half| !half.is_finite()).for_each(|half| *half = 0.0);
            line.points.retain(finite);
        }
        lines
    }

    /// Groups the lines by panel.
    fn panels(&self) -> Vec<(String, Vec<&Line>)> {
        let panels = by_key(self.lines.iter().map(|line| (line.panel.as_str(), line)));
        panels.into_iter().flat_map(|(name, lines)| split(name, lines)).collect()
    }

    pub(super) fn render(&self, note: &str, across: f64, palette: &Palette) -> Canvas {
        let mut panels = self.panels();
        let more = panels.len().saturating_sub(MOST_PANELS);
        panels.truncate(MOST_PANELS);
        let note = with_more(note, more);
        let all = || self.lines.iter().flat_map(|line| &line.points);
        let from_zero = self.x_from_zero && self.x_scale == Scale::Linear;
        let x = Axis::over(all().map(|point| point.0), self.x_scale, from_zero);
        let y = Axis::over(all().map(|point| point.1), self.y_scale, self.y_scale == Scale::Linear);
        let height = panel_height(panels.len(), across);
        let outline = Outline {
            title: &self.title,
            note: &note,
            x_label: &self.x_label,
            y_label: &self.y_label,
            legend: legend(&panels, palette),
            panels: panels.iter().map(|(name, _)| name.clone()).collect(),
            height,
            left: left_of(&y, height),
        };
        let (mut frame, places) = Frame::new(&outline, across);
        for (place, (_, lines)) in places.iter().zip(&panels) {
            frame.y_axis(place, &y);
            frame.x_axis(place, &x);
            for line in lines {
                self.draw_line(&mut frame, place, (&x, &y), line, palette);
            }
        }
        frame.finish()
    }

    fn draw_line(
        &self,
        frame: &mut Frame,
        place: &Place,
        (x, y): (&Axis, &Axis),
        line: &Line,
        palette: &Palette,
    ) {
        let (system, variant) = line.series();
        let stroke =
            Stroke { colour: palette.colour(&system), width: 1.8, dash: palette.dash(&variant) };
        // Lines with many points get no dots, because the dots would overlap.
        let dots = !self.steps && self.lines.iter().all(|line| line.points.len() <= 40);
        let mut path: Vec<(f64, f64)> = Vec::new();
        for (index, &point) in line.points.iter().enumerate() {
            let (Some(px), Some(py)) =
                (x.place(point.0, place.across()), y.place(point.1, place.upwards()))
            else {
                continue;
            };
            if let Some(&(_, before)) = path.last().filter(|_| self.steps) {
                path.push((px, before));
            }
            path.push((px, py));
            if dots {
                frame.dot((px, py), stroke.colour, 2.4);
            }
            if let Some(&half) = line.errors.get(index).filter(|half| **half > 0.0) {
                let bottom = y.place(point.1 - half, place.upwards()).unwrap_or(place.bottom);
                let Some(top) = y.place(point.1 + half, place.upwards()) else { continue };
                let ends = [top, bottom].map(|y| vec![(px - 3.0, y), (px + 3.0, y)]);
                let lines = [vec![(px, bottom), (px, top)]].into_iter().chain(ends).collect();
                frame.strokes(lines, Stroke::solid(stroke.colour, 1.0), None);
            }
        }
        frame.strokes(vec![path], stroke, Some((&system, &variant)));
    }
}

/// Splits a panel with too many lines into several panels: one for each variant, else one for each system, else one for
/// each group of [`MOST_LINES`] lines.
fn split<'a>(name: &str, lines: Vec<&'a Line>) -> Vec<(String, Vec<&'a Line>)> {
    if lines.len() <= MOST_LINES {
        return vec![(name.to_owned(), lines)];
    }
    let by = |key: fn(&Line) -> String| {
        let groups = by_key(lines.iter().map(|line| (key(line), *line)));
        let fits = groups.len() > 1 && groups.iter().all(|(_, lines)| lines.len() <= MOST_LINES);
        fits.then_some(groups)
    };
    let groups = by(|line| line.series().1).or_else(|| by(|line| line.series().0));
    match groups {
        Some(groups) => groups
            .into_iter()
            .map(|(key, lines)| (format!("{name} {key}").trim().to_owned(), lines))
            .collect(),
        None => lines
            .chunks(MOST_LINES)
            .enumerate()
            .map(|(index, lines)| {
                let from = index * MOST_LINES + 1;
                let which = format!("lines {from} to {}", from + lines.len() - 1);
                (format!("{name} {which}").trim().to_owned(), lines.to_vec())
            })
            .collect(),
    }
}

/// The system or the variant of a series.
type Part = fn((String, String)) -> String;

/// Makes one legend entry for each style of line. If each panel has only one system, or only one variant, the name of
/// the panel contains this part, and the legend contains the other part only.
fn legend(panels: &[(String, Vec<&Line>)], palette: &Palette) -> Vec<(String, Stroke)> {
    let alike = |part: Part| {
        let same = |lines: &[&Line]| {
            lines
                .windows(2)
                .all(|pair| pair.iter().map(|it| part(it.series())).is_sorted_by(|a, b| a == b))
        };
        panels.len() > 1 && panels.iter().all(|(_, lines)| same(lines))
    };
    let several = |part: Part| {
        let mut all = panels.iter().flat_map(|(_, lines)| lines).map(|line| part(line.series()));
        all.next().is_some_and(|first| all.any(|other| other != first))
    };
    let (system, variant): (Part, Part) = (|it| it.0, |it| it.1);
    // The part is known from the panels only if their names contain the part.
    let is_named = |part: Part| {
        panels.iter().all(|(name, lines)| lines.iter().all(|it| name.contains(&part(it.series()))))
    };
    let by_system = alike(system) && several(system) && is_named(system);
    let by_variant = !by_system && alike(variant) && several(variant) && is_named(variant);
    let mut entries = unique(panels.iter().flat_map(|(_, lines)| lines).map(|line| {
        let (system, variant) = line.series();
        let colour = if by_system || system.is_empty() { INK } else { palette.colour(&system) };
        let dash = if by_variant { palette.dash("") } else { palette.dash(&variant) };
        let label = match (by_system, by_variant) {
            (true, _) => variant,
            (_, true) => system,
            _ => line.label(),
        };
        (label, Stroke { colour, width: 1.8, dash })
    }));
    // A single entry without a label is left out, because the panels or the title name the line.
    if entries.len() < 2 && entries.iter().all(|(label, _)| label.is_empty()) {
        entries.clear();
    }
    entries
}
