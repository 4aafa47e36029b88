//! Writes progress and tables to a terminal.
//!
//! Progress goes to stderr. On a terminal each step replaces the step before. In a pipe or a file each step has its own
//! line. Tables go to stdout. On a terminal columns are left out from the right until the table fits.

use std::io::{IsTerminal, Write};

/// The number of columns if the terminal reports none.
const USUAL: usize = 80;

/// Makes all tables fit the terminal from now on, if stdout is a terminal.
pub fn fit_tables() {
    if std::io::stdout().is_terminal() {
        crate::table::fit_to(columns());
    }
}

/// Writes the current step to stderr.
pub fn talk(text: &str) {
    let mut stderr = std::io::stderr();
    // An error is ignored, because stderr is the only output for errors.
    let _ = match stderr.is_terminal() {
        true => write!(stderr, "\r\x1b[K{}", cut(text, columns().saturating_sub(1))),
        false => writeln!(stderr, "{text}"),
    };
}

/// Clears the progress line, before results are written.
pub fn quiet() {
    let mut stderr = std::io::stderr();
    if stderr.is_terminal() {
        let _ = write!(stderr, "\r\x1b[K");
    }
}

fn columns() -> usize {
    terminal_size::terminal_size().map_or(USUAL, |(width, _)| usize::from(width.0).max(20))
}

/// Cuts a text to the line, because a longer text would stay on the terminal when the line is redrawn. The remaining
/// time in brackets at the end is kept.
fn cut(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let end = text.rfind(" (").filter(|_| text.ends_with(')')).and_then(|at| text.get(at..));
    let width = |text: &str| text.chars().count();
    let end = end.filter(|end| width(end) < room).unwrap_or_default();
    let kept: String = text.chars().take(room.saturating_sub(width(end) + 1)).collect();
    format!("{kept}…{end}")
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn a_long_progress_line_is_shortened_to_the_terminal_width() {
        assert_eq!(cut("run 1 of 3", 79), "run 1 of 3");
        let long = cut(&"µ".repeat(200), 79);
        assert!(long.chars().count() == 79 && long.ends_with('…'));
        assert_eq!(cut("abc", 0), "…");
        let step = "run 1 of 1: weir message=PORT_STATS (2 of 12, about 9 s left)";
        assert_eq!(cut(step, 40), "run 1 of 1: w… (2 of 12, about 9 s left)");
        assert_eq!(cut(step, 20), "run 1 of 1: weir me…");
    }
}
