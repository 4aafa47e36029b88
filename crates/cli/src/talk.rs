//! What commands say on stderr while they work.

use crate::signals;
use report::terminal;

/// Says what is being done; says nothing any more once a signal ends the command.
pub fn progress(text: &str) {
    signals::let_end();
    terminal::talk(text);
}

/// Wipes the terminal's line: results come next.
pub fn wipe() {
    terminal::quiet();
}
