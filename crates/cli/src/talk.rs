//! Prints the messages of commands on stderr during their work.

use crate::signals;
use report::terminal;

/// Prints the current step. Prints nothing after a signal that ends the command.
pub fn progress(text: &str) {
    signals::let_end();
    terminal::talk(text);
}

/// Clears the terminal's line, because results follow.
pub fn wipe() {
    terminal::quiet();
}
