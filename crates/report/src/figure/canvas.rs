//! The shapes of a figure in one list: rectangles, strokes, dots and text. This module writes the
//! list as SVG, and the module `png` paints the list as PNG. Both outputs are self-contained.

use super::palette::{Colour, Dash, INK};
use std::fmt::Write as _;

/// Shapes on a surface of a given size, in the user units of SVG.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Canvas {
    pub(super) title: String,
    pub(super) size: (f64, f64),
    pub(super) shapes: Vec<Shape>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    Rectangle {
        corner: (f64, f64),
        size: (f64, f64),
        fill: Colour,
        stroke: Option<Stroke>,
    },
    /// Several strokes of one kind. `series` is the name of the data, for readers of the file.
    Strokes {
        lines: Vec<Vec<(f64, f64)>>,
        stroke: Stroke,
        series: Option<(String, String)>,
    },
    Dot {
        middle: (f64, f64),
        radius: f64,
        fill: Colour,
    },
    Text(Text),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stroke {
    pub(super) colour: Colour,
    pub(super) width: f64,
    pub(super) dash: Dash,
}

impl Stroke {
    pub(super) fn solid(colour: Colour, width: f64) -> Self {
        Self { colour, width, dash: Dash::default() }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Text {
    /// The position of the start, middle or end of the base line.
    pub(super) at: (f64, f64),
    pub(super) text: String,
    pub(super) size: f64,
    pub(super) anchor: Anchor,
    pub(super) bold: bool,
    pub(super) colour: Colour,
    /// The whole text, if `text` is cut.
    pub(super) whole: Option<String>,
}

/// The point of a text that is at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Text {
    pub(super) fn new(at: (f64, f64), text: &str, anchor: Anchor) -> Self {
        let text = text.to_owned();
        Self { at, text, size: 11.0, anchor, bold: false, colour: INK, whole: None }
    }
}

impl Canvas {
    /// Writes self-contained SVG: no script, no font file, nothing fetched. Classes let a page
    /// change the colours of paper, ink and grid in dark mode.
    pub(super) fn svg(&self) -> String {
        let (width, height) = self.size;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height:.0}\" role=\"img\" \
             font-family=\"sans-serif\" font-size=\"11\"><title>{}</title>\
             <rect class=\"p\" width=\"{width}\" height=\"{height:.0}\" fill=\"#ffffff\"/>",
            escape(&self.title)
        );
        for shape in &self.shapes {
            write_shape(&mut svg, shape);
        }
        svg.push_str("</svg>");
        svg
    }
}

// Writing to a String cannot fail.
fn write_shape(svg: &mut String, shape: &Shape) {
    match shape {
        Shape::Rectangle { corner: (x, y), size: (width, height), fill, stroke } => {
            _ = write!(
                svg,
                "<rect{} x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{}\"{}/>",
                fill.class(),
                fill.hex(),
                stroke.as_ref().map(attributes).unwrap_or_default()
            );
        }
        Shape::Strokes { lines, stroke, series } => {
            let mut path = String::new();
            for line in lines {
                for (index, (x, y)) in line.iter().enumerate() {
                    let letter = if index == 0 { 'M' } else { 'L' };
                    _ = write!(path, "{letter}{x:.1} {y:.1}");
                }
            }
            let series = series.as_ref().map_or_else(String::new, |(system, variant)| {
                let (system, variant) = (escape(system), escape(variant));
                format!(" data-system=\"{system}\" data-variant=\"{variant}\"")
            });
            let class = stroke.colour.class();
            _ = write!(
                svg,
                "<path{class} d=\"{path}\" fill=\"none\"{}{series}/>",
                attributes(stroke)
            );
        }
        Shape::Dot { middle: (x, y), radius, fill } => {
            _ = write!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{}\"/>",
                fill.hex()
            );
        }
        Shape::Text(text) => write_text(svg, text),
    }
}

fn attributes(stroke: &Stroke) -> String {
    let mut text = format!(" stroke=\"{}\" stroke-width=\"{}\"", stroke.colour.hex(), stroke.width);
    if !stroke.dash.is_solid() {
        _ = write!(text, " stroke-dasharray=\"{}\"", stroke.dash.text());
    }
    text
}

fn write_text(svg: &mut String, text: &Text) {
    let (x, y) = text.at;
    _ = write!(svg, "<text{} x=\"{x:.1}\" y=\"{y:.1}\"", text.colour.class());
    match text.anchor {
        Anchor::Start => {}
        Anchor::Middle => svg.push_str(" text-anchor=\"middle\""),
        Anchor::End => svg.push_str(" text-anchor=\"end\""),
    }
    if text.size != 11.0 {
        _ = write!(svg, " font-size=\"{}\"", text.size);
    }
    if text.bold {
        svg.push_str(" font-weight=\"bold\"");
    }
    if text.colour != INK {
        _ = write!(svg, " fill=\"{}\"", text.colour.hex());
    }
    let whole = text.whole.as_ref().map(|whole| format!("<title>{}</title>", escape(whole)));
    _ = write!(svg, ">{}{}</text>", whole.unwrap_or_default(), escape(&text.text));
}

/// Escapes text for XML and HTML. Characters that XML does not allow are left out.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\t' | '\n' | '\r' => escaped.push(' '),
            other if other.is_control() || matches!(other, '\u{fffe}' | '\u{ffff}') => {}
            other => escaped.push(other),
        }
    }
    escaped
}
