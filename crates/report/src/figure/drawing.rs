//! What a figure shows, as data, and its picture.

use super::canvas::Canvas;
use super::heatmap::HeatMap;
use super::lines::{Line, Lines};
use super::marks::Marks;
use super::palette::Palette;
use serde::{Deserialize, Serialize};

/// How wide a figure is for a page, in SVG's user units; also in files.
pub const WIDE: f64 = 720.0;
/// How wide a figure is for a phone.
pub const NARROW: f64 = 340.0;

/// What a figure shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drawing {
    pub(super) form: Form,
    /// Small print under the title.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    note: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Form {
    Lines(Lines),
    Marks(Marks),
    HeatMap(HeatMap),
}

impl Default for Drawing {
    fn default() -> Self {
        Self::new(Form::Lines(Lines::default()))
    }
}

impl Drawing {
    fn new(form: Form) -> Self {
        Self { form, note: String::new() }
    }

    /// A line of small print under the title: what a reader must know before believing the figure.
    #[must_use]
    pub fn with_note(mut self, note: &str) -> Self {
        note.clone_into(&mut self.note);
        self
    }

    /// What stands above it.
    #[must_use]
    pub fn title(&self) -> &str {
        match &self.form {
            Form::Lines(lines) => &lines.title,
            Form::Marks(marks) => &marks.title,
            Form::HeatMap(map) => &map.title,
        }
    }

    /// (system, variant) of all that is shown, in order.
    #[must_use]
    pub fn series(&self) -> Vec<(String, String)> {
        match &self.form {
            Form::Lines(lines) => lines.lines.iter().map(Line::series).collect(),
            Form::Marks(marks) => {
                marks.marks.iter().map(|it| (it.system.clone(), it.variant.clone())).collect()
            }
            Form::HeatMap(_) => Vec::new(),
        }
    }

    /// As SVG, by itself.
    #[must_use]
    pub fn svg(&self) -> String {
        self.svg_in(WIDE, &palette_of([self]))
    }

    /// As SVG of this width, with the colours of the report that it is a part of.
    #[must_use]
    pub fn svg_in(&self, width: f64, palette: &Palette) -> String {
        self.render(width, palette).svg()
    }

    fn render(&self, width: f64, palette: &Palette) -> Canvas {
        match &self.form {
            Form::Lines(lines) => lines.render(&self.note, width, palette),
            Form::Marks(marks) => marks.render(&self.note, width, palette),
            Form::HeatMap(map) => map.render(&self.note, width, palette),
        }
    }

    /// As PNG, twice as many pixels as user units, with the colours of the report that it is a part of.
    ///
    /// `None` only if memory for the picture cannot be had.
    #[cfg(feature = "png")]
    #[must_use]
    pub fn png_in(&self, palette: &Palette) -> Option<Vec<u8>> {
        super::png::paint(&self.render(WIDE, palette))
    }

    /// As PNG, by itself.
    ///
    /// `None` only if memory for the picture cannot be had.
    #[cfg(feature = "png")]
    #[must_use]
    pub fn png(&self) -> Option<Vec<u8>> {
        self.png_in(&palette_of([self]))
    }
}

/// One palette for all these drawings.
#[must_use]
pub fn palette_of<'a>(drawings: impl IntoIterator<Item = &'a Drawing>) -> Palette {
    let series: Vec<(String, String)> =
        drawings.into_iter().flat_map(|drawing| drawing.series()).collect();
    Palette::of(series.iter().map(|(system, variant)| (system.as_str(), variant.as_str())))
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
        Drawing::new(Form::Lines(self.finite()))
    }
}

impl Marks {
    /// The figure.
    #[must_use]
    pub fn draw(&self) -> Drawing {
        Drawing::new(Form::Marks(self.finite()))
    }
}

impl HeatMap {
    /// The figure.
    #[must_use]
    pub fn draw(&self) -> Drawing {
        Drawing::new(Form::HeatMap(self.finite()))
    }
}
