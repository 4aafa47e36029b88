//! What commands say on stderr while they work. If stderr is gone there is nobody to tell.

use crate::signals;
use std::io::{IsTerminal, Write};

/// Says what is being done, on a line of its own.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Says what is being done: on one line of a terminal, which the next replaces, else line by line.
pub fn progress(text: &str) {
    signals::let_end();
    let mut stderr = std::io::stderr();
    let _ = if stderr.is_terminal() {
        write!(stderr, "\r\x1b[K{text}")
    } else {
        writeln!(stderr, "{text}")
    };
}

/// Wipes the terminal's line of [`progress`].
pub fn wipe() {
    let mut stderr = std::io::stderr();
    if stderr.is_terminal() {
        let _ = write!(stderr, "\r\x1b[K");
    }
}
