//! Errors in a configuration, with their places, in the style of rustc.

use std::fmt;
use std::ops::Range;

/// A place in a file; both count from 1, the column in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// One error in a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file name that the user gave.
    pub file: String,
    /// The start of the wrong text.
    pub at: Position,
    /// The key of the wrong text, such as `tenants[0].flowspace[1].match`; empty for errors of TOML syntax.
    pub key: String,
    /// The error.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
    line_text: String,
    width: usize,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Diagnostic { file, at, key, message, .. } = self;
        write!(f, "{file}:{at}: ")?;
        if !key.is_empty() {
            write!(f, "{key}: ")?;
        }
        writeln!(f, "{message}")?;
        let number = at.line.to_string();
        let margin = " ".repeat(number.len());
        let indent: String = self
            .line_text
            .chars()
            .take(at.column - 1)
            .map(|c| if c == '\t' { c } else { ' ' })
            .collect();
        writeln!(
            f,
            "{margin} |\n{number} | {}\n{margin} | {indent}{}",
            self.line_text,
            "^".repeat(self.width)
        )?;
        match &self.help {
            Some(help) => writeln!(f, "{margin} = help: {help}"),
            None => Ok(()),
        }
    }
}

/// All errors of one file, by position. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics(pub(super) Vec<Diagnostic>);

impl Diagnostics {
    /// The errors, by position.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.0.iter()
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|diagnostic| writeln!(f, "{diagnostic}"))?;
        let count = self.0.len();
        write!(f, "{count} error{} in the configuration", if count == 1 { "" } else { "s" })
    }
}

impl std::error::Error for Diagnostics {}

/// A file's name and text, and an index of its lines.
pub(super) struct Source<'a> {
    pub(super) name: &'a str,
    pub(super) text: &'a str,
    line_starts: Vec<usize>,
}

impl<'a> Source<'a> {
    pub(super) fn new(name: &'a str, text: &'a str) -> Self {
        let starts =
            text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n').map(|(i, _)| i + 1);
        Source { name, text, line_starts: std::iter::once(0).chain(starts).collect() }
    }

    /// The place of a byte offset.
    pub(super) fn position(&self, offset: usize) -> Position {
        let line = self.line_starts.partition_point(|&start| start <= offset);
        let start = self.line_starts.get(line - 1).copied().unwrap_or(0);
        let before = self.text.get(start..offset.min(self.text.len())).unwrap_or("");
        Position { line, column: before.chars().count() + 1 }
    }

    /// An error at a range of bytes; the range is cut at the end of the first line.
    pub(super) fn diagnostic(
        &self,
        span: Range<usize>,
        key: &str,
        message: String,
        help: Option<String>,
    ) -> Diagnostic {
        let at = self.position(span.start);
        let line_text = self.text.lines().nth(at.line - 1).unwrap_or("").to_owned();
        let marked = self.text.get(span).unwrap_or("").lines().next().unwrap_or("");
        let room = (line_text.chars().count() + 1).saturating_sub(at.column);
        let width = marked.chars().count().min(room).max(1);
        Diagnostic {
            file: self.name.to_owned(),
            at,
            key: key.to_owned(),
            message,
            help,
            line_text,
            width,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_not_bytes() {
        let source = Source::new("f", "a\nbé = ü1\n");
        let at = |offset| source.position(offset).to_string();
        assert_eq!([at(0), at(1), at(2), at(3), at(5)], ["1:1", "1:2", "2:1", "2:2", "2:3"]);
        assert_eq!(at(source.text.len()), "3:1");
        assert_eq!(at(1_000), "3:1", "beyond the end is the end");
    }

    #[test]
    fn the_wrong_text_is_underlined_in_a_diagnostic() {
        let source = Source::new("weir.toml", "x = 1\n\tü = \"abc\"\n");
        let diagnostic =
            source.diagnostic(12..17, "ü", "wrong".to_owned(), Some("do better".to_owned()));
        let expected = "weir.toml:2:6: ü: wrong\n  |\n2 | \tü = \"abc\"\n  | \t    ^^^^^\n  = help: do better\n";
        assert_eq!(diagnostic.to_string(), expected);
    }
}
