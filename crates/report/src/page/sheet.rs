//! Writes a page that fits one sheet of paper, with blocks of a sentence and a small figure.

use super::parts::document;
use super::{findings, style};
use crate::figure::{Drawing, NARROW, palette_of};
use crate::results::Finding;
use maud::{PreEscaped, html};

/// The content of the sheet.
#[derive(Clone, Debug, Default)]
pub struct Sheet {
    /// The heading at the top.
    pub heading: String,
    /// The line below the heading: the measured system, the time, and the machine.
    pub about: String,
    /// The blocks, in two columns.
    pub blocks: Vec<Block>,
    /// The findings, which are shown on a screen only, because they do not fit the sheet.
    pub findings: Vec<Finding>,
}

/// One question and its answer.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// The heading, such as `What lies`.
    pub heading: String,
    /// The answer.
    pub sentence: String,
    /// The figure of the answer.
    pub figure: Option<Drawing>,
}

/// Returns the text of the page.
#[must_use]
pub fn sheet(sheet: &Sheet) -> String {
    let palette = palette_of(sheet.blocks.iter().filter_map(|block| block.figure.as_ref()));
    let body = html! {
        h1 { (sheet.heading) }
        p.small { (sheet.about) }
        div.sheet {
            @for block in &sheet.blocks {
                section {
                    h2 { (block.heading) }
                    p { (block.sentence) }
                    @if let Some(figure) = &block.figure {
                        (PreEscaped(figure.svg_in(NARROW, &palette)))
                    }
                }
            }
        }
        div.screen { (findings::html(&sheet.findings)) }
    };
    let style = format!("{}{}", style::PAGE, style::SHEET);
    document(&sheet.heading, &style, &body)
}
