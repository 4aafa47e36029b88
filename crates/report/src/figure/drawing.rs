//! What a figure is made of: rectangles, strokes, dots and text at places, in one list that is
//! written as SVG (here) or painted as PNG (`png`). Neither needs anything from outside.

use std::fmt::Write as _;

/// A figure's width and height, in SVG's user units.
pub(super) const SIZE: (f64, f64) = (720.0, 400.0);

/// A finished figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drawing {
    pub(super) title: String,
    pub(super) shapes: Vec<Shape>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    Rectangle {
        corner: (f64, f64),
        size: (f64, f64),
        fill: &'static str,
        stroke: Stroke,
    },
    /// Several strokes of one kind.
    Strokes {
        lines: Vec<Vec<(f64, f64)>>,
        stroke: Stroke,
    },
    Dot {
        middle: (f64, f64),
        radius: f64,
        fill: &'static str,
    },
    Text(Text),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stroke {
    /// Empty: none.
    pub(super) colour: &'static str,
    pub(super) width: f64,
    pub(super) dashed: bool,
}

impl Stroke {
    pub(super) const NONE: Self = Self { colour: "", width: 0.0, dashed: false };

    pub(super) fn solid(colour: &'static str, width: f64) -> Self {
        Self { colour, width, dashed: false }
    }
}

/// Dashes and gaps between them, in user units.
pub(super) const DASHES: [f64; 2] = [6.0, 4.0];

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Text {
    /// The base line's start, middle or end.
    pub(super) at: (f64, f64),
    pub(super) text: String,
    pub(super) size: f64,
    pub(super) anchor: Anchor,
    /// Degrees, clockwise, about `at`.
    pub(super) turn: f64,
    pub(super) bold: bool,
    pub(super) colour: &'static str,
}

/// Which point of a text its place is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Text {
    pub(super) fn new(at: (f64, f64), text: &str, anchor: Anchor) -> Self {
        let text = text.to_owned();
        Self { at, text, size: 12.0, anchor, turn: 0.0, bold: false, colour: "#000000" }
    }
}

impl Drawing {
    /// A line of small print under the title: what a reader must know before believing the figure.
    #[must_use]
    pub fn with_note(mut self, note: &str) -> Self {
        let colour = "#b34700";
        let text = Text::new((super::frame::LEFT, 36.0), note, Anchor::Start);
        self.shapes.push(Shape::Text(Text { size: 11.0, colour, ..text }));
        self
    }

    /// As SVG, self-contained: no script, no font file, nothing fetched.
    #[must_use]
    pub fn svg(&self) -> String {
        let (width, height) = SIZE;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
             font-family=\"sans-serif\" font-size=\"12\"><title>{}</title>\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>",
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
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
                 fill=\"{fill}\"{}/>",
                attributes(*stroke)
            );
        }
        Shape::Strokes { lines, stroke } => {
            let mut path = String::new();
            for line in lines {
                for (index, (x, y)) in line.iter().enumerate() {
                    let letter = if index == 0 { 'M' } else { 'L' };
                    _ = write!(path, "{letter}{x:.1} {y:.1}");
                }
            }
            _ = write!(svg, "<path d=\"{path}\" fill=\"none\"{}/>", attributes(*stroke));
        }
        Shape::Dot { middle: (x, y), radius, fill } => {
            _ = write!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{fill}\"/>");
        }
        Shape::Text(text) => write_text(svg, text),
    }
}

fn attributes(stroke: Stroke) -> String {
    if stroke.colour.is_empty() {
        return String::new();
    }
    let [dash, gap] = DASHES;
    let dashes =
        if stroke.dashed { format!(" stroke-dasharray=\"{dash} {gap}\"") } else { String::new() };
    format!(" stroke=\"{}\" stroke-width=\"{}\"{dashes}", stroke.colour, stroke.width)
}

fn write_text(svg: &mut String, text: &Text) {
    let (x, y) = text.at;
    _ = write!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\"");
    match text.anchor {
        Anchor::Start => {}
        Anchor::Middle => svg.push_str(" text-anchor=\"middle\""),
        Anchor::End => svg.push_str(" text-anchor=\"end\""),
    }
    if text.size != 12.0 {
        _ = write!(svg, " font-size=\"{}\"", text.size);
    }
    if text.bold {
        svg.push_str(" font-weight=\"bold\"");
    }
    if text.turn != 0.0 {
        _ = write!(svg, " transform=\"rotate({} {x:.1} {y:.1})\"", text.turn);
    }
    if text.colour != "#000000" {
        _ = write!(svg, " fill=\"{}\"", text.colour);
    }
    _ = write!(svg, ">{}</text>", escape(&text.text));
}

/// Escapes text for XML and HTML.
#[must_use]
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
