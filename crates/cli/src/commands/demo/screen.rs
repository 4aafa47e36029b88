//! What the demo says: lines of at most 80 columns on stdout, in colour on a terminal, and kept for `demo.txt`.

use std::io::{self, IsTerminal, Write};

/// Where the story is told.
pub struct Screen {
    stdout: io::Stdout,
    colour: bool,
    transcript: String,
    failures: usize,
}

const GREEN: &str = "\x1b[32m";
const RED: &str = "\x1b[31m";
const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

impl Screen {
    pub fn new() -> Screen {
        let stdout = io::stdout();
        let colour = stdout.is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Screen { stdout, colour, transcript: String::new(), failures: 0 }
    }

    /// A new chapter.
    pub fn heading(&mut self, text: &str) -> io::Result<()> {
        self.blank()?;
        self.put("", BOLD, text, "")
    }

    /// An expectation and whether it held; counts those that did not.
    pub fn verdict(&mut self, holds: bool, text: &str) -> io::Result<()> {
        if holds {
            return self.put("  ", GREEN, "✓", &format!(" {text}"));
        }
        self.failures += 1;
        self.put("  ", RED, "✗", &format!(" {text}"))
    }

    /// What was really said by somebody, indented.
    pub fn quote(&mut self, text: &str) -> io::Result<()> {
        text.lines().try_for_each(|line| self.line(&format!("      {line}")))
    }

    pub fn line(&mut self, text: &str) -> io::Result<()> {
        self.put("", "", text, "")
    }

    pub fn blank(&mut self) -> io::Result<()> {
        self.line("")
    }

    /// A passing remark on a terminal's last line, replaced by the next; nothing where nobody watches.
    pub fn progress(&self, text: &str) {
        let mut stderr = io::stderr();
        if stderr.is_terminal() {
            // If stderr is gone there is nobody to tell.
            let _ = write!(stderr, "\r\x1b[K{text}");
        }
    }

    /// How many expectations did not hold.
    pub fn failures(&self) -> usize {
        self.failures
    }

    /// All that was said, without colours.
    pub fn transcript(&self) -> &str {
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
