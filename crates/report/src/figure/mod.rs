//! Figures: lines (also cumulative distributions), boxes, dots and bars, and heat maps, as SVG text
//! and, with the feature `png`, as PNG. Self-contained: no script, no font file, nothing fetched.
//!
//! A [`Drawing`] is data: what is shown, not where. It is laid out when it is written, for a wide page
//! or a phone, with one [`Palette`] for a whole report; its data are a CSV file; and a results
//! directory keeps it, so later versions of Weir can draw it again.
//!
//! Why this is our own code. A report has to be read without network, without script and on paper, be
//! the same as PNG, follow the reader's dark mode, and keep texts apart at any number of systems. Vega-Lite
//! and charming (ECharts) need about 1 MB of JavaScript in each page, or a JavaScript engine in the build
//! for files. plotters writes SVG without script, but places no legend beside or above a plot, does not
//! keep texts apart, and has fixed colours, no classes, so no dark mode; the layout, which is most of the
//! code here, would have to be written all the same. HTML is written by maud, which escapes.
//!
//! `lines`, `marks` and `heatmap` are the forms; `frame` has what all share: title, legend, panels;
//! `axis` chooses ticks; `palette` chooses colours and styles; `canvas` is what figures are made of;
//! `words` says in a sentence what a figure shows, and writes its data.

mod axis;
mod canvas;
mod compared;
mod frame;
mod heatmap;
mod lines;
mod marks;
mod palette;
#[cfg(feature = "png")]
mod png;
mod text;
mod words;

pub use canvas::escape;
pub use compared::{BoxPlot, Spread, boxes, draw_boxes, draw_groups, draw_spreads};
pub use heatmap::HeatMap;
pub use lines::{Line, Lines};
pub use marks::{Mark, Marks, Shape};
pub use palette::Palette;
use serde::{Deserialize, Serialize};

/// How wide a figure is for a page, in SVG's user units; also in files.
pub const WIDE: f64 = 720.0;
/// How wide a figure is for a phone.
pub const NARROW: f64 = 340.0;

/// A drawing with the name of its file, and what there is to say of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// As the source names it, such as `3a`; also the file's name.
    pub name: String,
    /// The drawing.
    pub drawing: Drawing,
    /// Under it: sentences.
    pub caption: String,
}

/// What a figure shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drawing {
    form: Form,
    /// Small print under the title.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    note: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Form {
    Lines(Lines),
    Marks(Marks),
    HeatMap(HeatMap),
}

/// How values are laid along an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Evenly.
    #[default]
    Linear,
    /// By powers of ten; values that are not above 0 are left out.
    Logarithmic,
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

    fn render(&self, width: f64, palette: &Palette) -> canvas::Canvas {
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
        png::paint(&self.render(WIDE, palette))
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

/// One panel is higher than one of several; and on a phone a little lower.
fn panel_height(panels: usize, across: f64) -> f64 {
    match (panels, across < 500.0) {
        (0 | 1, false) => 300.0,
        (0 | 1, true) => 220.0,
        _ => 160.0,
    }
}

fn with_more(note: &str, panels: usize) -> String {
    if panels == 0 {
        return note.to_owned();
    }
    joined(note, &format!("{panels} more panels are not drawn; the CSV has all"))
}

fn joined(note: &str, more: &str) -> String {
    if note.is_empty() { more.to_owned() } else { format!("{note}; {more}") }
}

#[cfg(test)]
mod tests;
