//! How `weir` ends.

use std::io::Write;
use std::process::ExitCode;

/// Exit statuses, the same for all commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All is well.
    Success = 0,
    /// It worked, and found something that should not be: an overlap, a leak, a bound that was missed.
    Finding = 1,
    /// The arguments or the configuration file are wrong.
    Usage = 2,
    /// It did not work.
    Failure = 3,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// Says on stderr what went wrong, with the causes.
pub fn complain(error: &anyhow::Error) {
    // If stderr is gone there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "weir: {error:#}");
}
