//! The data of a figure, and the output as SVG and PNG.

use super::canvas::Canvas;
use super::heatmap::HeatMap;
use super::lines::{Line, Lines};
use super::marks::Marks;
use super::palette::Palette;
use serde::{Deserialize, Serialize};

/// The width of a figure for a page and in files, in the user units of SVG.
pub const WIDE: f64 = 720.0;
/// The width of a figure for a phone, in the user units of SVG.
pub const NARROW: f64 = 340.0;

/// The data of a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drawing {
    pub(super) form: Form,
    /// The note in small text under the title.
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

    /// Adds a note in small text under the title, with facts that a reader must know before using
    /// the figure.
    #[must_use]
    pub fn with_note(mut self, note: &str) -> Self {
        note.clone_into(&mut self.note);
        self
    }

    /// The title above the figure.
    #[must_use]
    pub fn title(&self) -> &str {
        match &self.form {
            Form::Lines(lines) => &lines.title,
            Form::Marks(marks) => &marks.title,
            Form::HeatMap(map) => &map.title,
        }
    }

    /// The (system, variant) pairs of all series, in order.
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

    /// Writes the figure as SVG with its own palette.
    #[must_use]
    pub fn svg(&self) -> String {
        self.svg_in(WIDE, &palette_of([self]))
    }

    /// Writes the figure as SVG of this width, with the palette of a report.
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

    /// Writes the figure as PNG with the palette of a report. The PNG has two pixels for each user unit.
    ///
    /// Returns `None` only if there is not enough memory for the picture.
    #[cfg(feature = "png")]
    #[must_use]
    pub fn png_in(&self, palette: &Palette) -> Option<Vec<u8>> {
        super::png::paint(&self.render(WIDE, palette))
    }

    /// Writes the figure as PNG with its own palette.
    ///
    /// Returns `None` only if there is not enough memory for the picture.
    #[cfg(feature = "png")]
    #[must_use]
    pub fn png(&self) -> Option<Vec<u8>> {
        self.png_in(&palette_of([self]))
    }
}

/// Makes one palette for all these drawings.
#[must_use]
pub fn palette_of<'a>(drawings: impl IntoIterator<Item = &'a Drawing>) -> Palette {
    let series: Vec<(String, String)> =
        drawings.into_iter().flat_map(|drawing| drawing.series()).collect();
    Palette::of(series.iter().map(|(system, variant)| (system.as_str(), variant.as_str())))
}

impl Lines {
    /// Writes the figure as SVG.
    #[must_use]
    pub fn svg(&self) -> String {
        self.draw().svg()
    }

    /// Makes the drawing.
    #[must_use]
    pub fn draw(&self) -> Drawing {
        Drawing::new(Form::Lines(self.finite()))
    }
}

impl Marks {
    /// Makes the drawing.
    #[must_use]
    pub fn draw(&self) -> Drawing {
        Drawing::new(Form::Marks(self.finite()))
    }
}

impl HeatMap {
    /// Makes the drawing.
    #[must_use]
    pub fn draw(&self) -> Drawing {
        Drawing::new(Form::HeatMap(self.finite()))
    }
}
