//! Prints the output of the demo: lines of at most 80 columns on stdout, in colour on a terminal. The module keeps a
//! copy of the lines for `demo.txt`.

use report::Table;
use std::io::{self, IsTerminal, Write};

/// The output of the demo, with the verdicts.
pub(crate) struct Screen {
    stdout: io::Stdout,
    colour: bool,
    transcript: String,
    failures: usize,
    undecided: usize,
    /// The text of the last heading.
    chapter: String,
    /// Each expectation: chapter, mark, text.
    steps: Vec<[String; 3]>,
}

/// The number of columns of a line.
const WIDTH: usize = 80;

const GREEN: &str = "\x1b[32m";
const RED: &str = "\x1b[31m";
const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

impl Screen {
    pub(crate) fn new() -> Screen {
        let stdout = io::stdout();
        let colour = stdout.is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Screen {
            stdout,
            colour,
            transcript: String::new(),
            failures: 0,
            undecided: 0,
            chapter: String::new(),
            steps: Vec::new(),
        }
    }

    /// Prints the heading of a new chapter.
    pub(crate) fn heading(&mut self, text: &str) -> io::Result<()> {
        self.blank()?;
        text.clone_into(&mut self.chapter);
        self.put("", BOLD, text, "")
    }

    /// Prints an expectation and whether the expectation was met. Counts the expectations that were not met.
    pub(crate) fn verdict(&mut self, holds: bool, text: &str) -> io::Result<()> {
        let mark = if holds { "✓" } else { "✗" };
        self.steps.push([self.chapter.clone(), mark.to_owned(), text.to_owned()]);
        if holds {
            return self.put("  ", GREEN, "✓", &format!(" {text}"));
        }
        self.failures += 1;
        self.put("  ", RED, "✗", &format!(" {text}"))
    }

    /// Prints an expectation for which this run gives no verdict.
    pub(crate) fn undecided(&mut self, text: &str) -> io::Result<()> {
        self.steps.push([self.chapter.clone(), "?".to_owned(), text.to_owned()]);
        self.undecided += 1;
        self.put("  ", BOLD, "?", &format!(" {text}"))
    }

    /// Prints a text of another program, indented. A line that is too long is broken.
    pub(crate) fn quote(&mut self, text: &str) -> io::Result<()> {
        wrapped(text, WIDTH - 6).iter().try_for_each(|line| self.line(&format!("      {line}")))
    }

    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        self.put("", "", text, "")
    }

    pub(crate) fn blank(&mut self) -> io::Result<()> {
        self.line("")
    }

    /// The table of all expectations with their verdicts, for the report.
    pub(crate) fn steps(&self) -> Table {
        let mut table = Table::new(["part", "held", "what was expected, and what happened"]);
        for [chapter, mark, text] in &self.steps {
            table.row([chapter.trim_end_matches([':', '.']), mark, text]);
        }
        table
    }

    /// The number of expectations that were not met.
    pub(crate) fn failures(&self) -> usize {
        self.failures
    }

    /// Whether an expectation has no verdict.
    pub(crate) fn is_something_undecided(&self) -> bool {
        self.undecided > 0
    }

    /// All printed text, without colours.
    pub(crate) fn transcript(&self) -> &str {
        &self.transcript
    }

    fn put(&mut self, before: &str, style: &str, styled: &str, after: &str) -> io::Result<()> {
        self.transcript += &format!("{before}{styled}{after}\n");
        let mut stdout = self.stdout.lock();
        if self.colour && !style.is_empty() {
            writeln!(stdout, "{before}{style}{styled}{PLAIN}{after}")?;
        } else {
            writeln!(stdout, "{before}{styled}{after}")?;
        }
        stdout.flush()
    }
}

/// Breaks a text after commas and spaces. A longer word without these characters is not broken.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_inclusive([',', ' ']) {
        let fits = |line: &String| {
            line.is_empty() || line.chars().count() + word.trim_end().chars().count() <= width
        };
        match lines.last_mut().filter(|line| fits(line)) {
            Some(line) => line.push_str(word),
            None => lines.push(format!("  {word}")),
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn long_lines_are_broken_at_spaces_and_commas() {
        for (text, expected) in [
            ("a,b c", &["a,b c"] as &[&str]),
            ("aaaa,bbbb,cccc", &["aaaa,bbbb,", "  cccc"]),
            ("aaaa bbbb ccc", &["aaaa bbbb", "  ccc"]),
            ("aaaaaaaaaaaaaaa", &["aaaaaaaaaaaaaaa"]),
            ("", &[""]),
        ] {
            assert_eq!(wrapped(text, 10), expected, "{text}");
        }
    }
}
