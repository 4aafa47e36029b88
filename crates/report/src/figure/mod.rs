//! Draws figures: lines (also cumulative distributions), boxes, dots and bars, and heat maps. The
//! output is SVG text and, with the feature `png`, PNG. Figures are self-contained: no script, no
//! font file, nothing fetched.
//!
//! A [`Drawing`] has the data of a figure, not the positions. The layout is computed at the output, for a wide page or
//! a phone, with one [`Palette`] for a whole report. The data can be written as a CSV file. A results directory stores
//! the drawing, so later versions of Weir can draw the figure again.
//!
//! Weir does not use a plotting library, for these reasons. A report must work without network, without script and on
//! paper, must look the same as PNG, must follow the reader's dark mode, and must not let texts overlap at any number
//! of systems. Vega-Lite and charming (ECharts) need about 1 MB of JavaScript in each page, or a JavaScript engine in
//! the build for files. plotters writes SVG without script, but places no legend beside or above a plot, lets texts
//! overlap, and has fixed colours without classes, so no dark mode. With plotters the layout, which is most of the code
//! here, would still be our own code. maud writes and escapes the HTML.
//!
//! `lines`, `marks` and `heatmap` are the forms of figures, and a `drawing` has one form. `frame` draws the common
//! parts: title, legend, panels. `axis` chooses ticks. `palette` chooses colours and styles. `canvas` has the shapes of
//! a figure. `words` describes a figure in a sentence, and writes its data.

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
pub use compared::{Spread, draw_groups, draw_spreads};
pub use drawing::{Drawing, NARROW, WIDE, palette_of};
pub use heatmap::HeatMap;
pub use lines::{Line, Lines};
pub use marks::{Mark, Marks, Shape};
pub use palette::Palette;
use serde::{Deserialize, Serialize};

/// A drawing with the name of its file and its caption.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The name in the source, such as `3a`, which is also the name of the file.
    pub name: String,
    /// The drawing.
    pub drawing: Drawing,
    /// The sentences under the figure.
    pub caption: String,
}

#[cfg(test)]
mod tests;
