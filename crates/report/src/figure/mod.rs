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
//! `lines`, `marks` and `heatmap` are the forms, and a `drawing` has one of them; `frame` has what all share: title, legend, panels;
//! `axis` chooses ticks; `palette` chooses colours and styles; `canvas` is what figures are made of;
//! `words` says in a sentence what a figure shows, and writes its data.

mod axis;
mod canvas;
mod compared;
mod drawing;
mod frame;
mod heatmap;
mod lines;
mod marks;
mod palette;
#[cfg(feature = "png")]
mod png;
mod text;
mod words;

pub use axis::Scale;
pub use canvas::escape;
pub use compared::{BoxPlot, Spread, boxes, draw_boxes, draw_groups, draw_spreads};
pub use drawing::{Drawing, NARROW, WIDE, palette_of};
pub use heatmap::HeatMap;
pub use lines::{Line, Lines};
pub use marks::{Mark, Marks, Shape};
pub use palette::Palette;
use serde::{Deserialize, Serialize};

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

#[cfg(test)]
mod tests;
