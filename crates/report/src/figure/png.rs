//! Paints a figure as PNG, for documents without support for SVG. tiny-skia fills outlines. The only font is compiled
//! in (a subset of DejaVu Sans), so the picture is the same on every machine, with or without installed fonts.

use super::canvas::{Anchor, Canvas, Shape, Stroke, Text};
use super::palette::Colour;
use tiny_skia::{
    Color, FillRule, LineCap, Paint, PathBuilder, Pixmap, Rect, StrokeDash, Transform,
};
use ttf_parser::{Face, OutlineBuilder};

/// Pixels per user unit.
const SCALE: f32 = 2.0;

static FONT: &[u8] = include_bytes!("../../fonts/DejaVuSans-subset.ttf");

/// Paints the picture. Returns `None` only if there is not enough memory for the picture.
pub(super) fn paint(canvas: &Canvas) -> Option<Vec<u8>> {
    let face = Face::parse(FONT, 0).ok()?;
    let (width, height) = (canvas.size.0 as f32 * SCALE, canvas.size.1 as f32 * SCALE);
    let mut painter = Painter { pixmap: Pixmap::new(width as u32, height as u32)?, face };
    painter.pixmap.fill(Color::WHITE);
    canvas.shapes.iter().for_each(|shape| painter.paint(shape));
    painter.pixmap.encode_png().ok()
}

struct Painter {
    pixmap: Pixmap,
    face: Face<'static>,
}

impl Painter {
    fn paint(&mut self, shape: &Shape) {
        match shape {
            Shape::Rectangle { corner, size, fill, stroke } => {
                let (x, y) = (corner.0 as f32, corner.1 as f32);
                let rect = Rect::from_xywh(x, y, size.0 as f32, size.1 as f32);
                let Some(path) = rect.map(PathBuilder::from_rect) else { return };
                self.fill(&path, *fill, Transform::identity());
                if let Some(stroke) = stroke {
                    self.stroke(&path, stroke, Transform::identity());
                }
            }
            Shape::Strokes { lines, stroke, .. } => {
                let mut builder = PathBuilder::new();
                for line in lines {
                    let mut points = line.iter().map(|&(x, y)| (x as f32, y as f32));
                    if let Some((x, y)) = points.next() {
                        builder.move_to(x, y);
                    }
                    points.for_each(|(x, y)| builder.line_to(x, y));
                }
                let Some(path) = builder.finish() else { return };
                self.stroke(&path, stroke, Transform::identity());
            }
            Shape::Dot { middle: (x, y), radius, fill } => {
                let Some(path) = PathBuilder::from_circle(*x as f32, *y as f32, *radius as f32)
                else {
                    return;
                };
                self.fill(&path, *fill, Transform::identity());
            }
            Shape::Text(text) => self.text(text),
        }
    }

    fn fill(&mut self, path: &tiny_skia::Path, colour: Colour, place: Transform) {
        let place = place.post_scale(SCALE, SCALE);
        self.pixmap.fill_path(path, &paint_of(colour), FillRule::Winding, place, None);
    }

    fn stroke(&mut self, path: &tiny_skia::Path, stroke: &Stroke, place: Transform) {
        let mut lengths = stroke.dash.lengths();
        if lengths.len() % 2 == 1 {
            lengths.extend(lengths.clone());
        }
        let dash = (!lengths.is_empty()).then(|| StrokeDash::new(lengths, 0.0));
        let pen = tiny_skia::Stroke {
            width: stroke.width as f32,
            dash: dash.flatten(),
            line_cap: LineCap::Butt,
            ..tiny_skia::Stroke::default()
        };
        let place = place.post_scale(SCALE, SCALE);
        self.pixmap.stroke_path(path, &paint_of(stroke.colour), &pen, place, None);
    }

    fn text(&mut self, text: &Text) {
        let mut outline = Outline::default();
        for character in text.text.chars() {
            // A character that the font does not have becomes a box.
            let glyph = self.face.glyph_index(character).unwrap_or_default();
            self.face.outline_glyph(glyph, &mut outline);
            outline.across += f32::from(self.face.glyph_hor_advance(glyph).unwrap_or(0));
        }
        let size = text.size as f32 / f32::from(self.face.units_per_em());
        let before = match text.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => outline.across / 2.0,
            Anchor::End => outline.across,
        };
        let Some(path) = outline.builder.finish() else { return };
        let place = Transform::from_translate(-before, 0.0)
            // In fonts the y axis points upwards.
            .post_scale(size, -size)
            .post_translate(text.at.0 as f32, text.at.1 as f32);
        self.fill(&path, text.colour, place);
        if text.bold {
            // The subset has no bold face, so a thin outline makes the text bold.
            let rim = Stroke::solid(text.colour, 0.045 * f64::from(self.face.units_per_em()));
            self.stroke(&path, &rim, place);
        }
    }
}

fn paint_of(colour: Colour) -> Paint<'static> {
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    let [red, green, blue] = colour.channels();
    paint.set_color_rgba8(red, green, blue, 255);
    paint
}

/// The outlines of a line of text, in the font's units.
#[derive(Default)]
struct Outline {
    builder: PathBuilder,
    across: f32,
}

impl OutlineBuilder for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        self.builder.move_to(self.across + x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.builder.line_to(self.across + x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.builder.quad_to(self.across + x1, y1, self.across + x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let across = self.across;
        self.builder.cubic_to(across + x1, y1, across + x2, y2, across + x, y);
    }

    fn close(&mut self) {
        self.builder.close();
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::box_of;
    use super::super::{Drawing, Line, Lines, Marks};
    use super::*;

    fn pixels(drawing: &Drawing) -> Pixmap {
        Pixmap::decode_png(&drawing.png().unwrap()).unwrap()
    }

    /// The number of pixels of a part (in user units) that are not white.
    fn ink(pixmap: &Pixmap, x: std::ops::Range<u32>, y: std::ops::Range<u32>) -> usize {
        let white = tiny_skia::PremultipliedColorU8::from_rgba(255, 255, 255, 255);
        let places = y.flat_map(|y| x.clone().map(move |x| (x * 2, y * 2)));
        places.filter(|&(x, y)| pixmap.pixel(x, y) != white).count()
    }

    #[test]
    fn the_png_shows_the_title_the_note_and_dashed_lines() {
        let line = |dashed| Line {
            name: "weir".into(),
            points: vec![(0.0, 1.0 + f64::from(dashed)), (10.0, 1.0 + f64::from(dashed))],
            dashed,
            ..Line::default()
        };
        let lines = |all| Lines {
            title: "A title".into(),
            y_label: "µs".into(),
            lines: all,
            ..Lines::default()
        };
        let plain = pixels(&lines(vec![line(false)]).draw());
        assert_eq!(plain.width(), 1440);
        assert!(ink(&plain, 8..70, 10..26) > 50, "the title");
        assert_eq!(ink(&plain, 300..700, 5..24), 0, "nothing beside the title");
        let noted = pixels(&lines(vec![line(false)]).draw().with_note("quick"));
        assert!(noted.height() > plain.height(), "the note");
        let both = pixels(&lines(vec![line(false), line(true)]).draw());
        let (both, plain) = (blue(&both), blue(&plain));
        assert!(both > plain * 5 / 4 && both < plain * 15 / 8, "dashes leave gaps: {both} {plain}");
    }

    /// The number of pixels with the colour of Weir.
    fn blue(pixmap: &Pixmap) -> usize {
        let colour = tiny_skia::PremultipliedColorU8::from_rgba(0x2f, 0x7f, 0xd6, 255);
        pixmap.pixels().iter().filter(|&&pixel| Some(pixel) == colour).count()
    }

    #[test]
    fn boxes_of_a_box_plot_are_coloured_in_the_png() {
        let marks = Marks { marks: vec![box_of("weir")], ..Marks::default() };
        let pixmap = pixels(&marks.draw());
        assert!(blue(&pixmap) > 500);
    }

    #[test]
    fn the_font_has_the_characters_that_figures_use() {
        let face = Face::parse(FONT, 0).unwrap();
        for character in "AZaz09%/.,()=&<>–—−µ≤≥±×αβ…→".chars() {
            assert!(face.glyph_index(character).is_some(), "{character}");
        }
    }
}
