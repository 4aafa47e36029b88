//! How `weir` ends.

use daemon::config::LoadError;
use lab::Interrupted;
use std::fmt::Display;
use std::io::{ErrorKind, Write};
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
    /// It worked, and what was measured says neither that all is well nor that it is not.
    Undecided = 4,
    /// SIGINT or SIGTERM ended it before its work was done; what was measured until then is written.
    Interrupted = 130,
}

impl Exit {
    /// Says what is wrong with what the user gave.
    pub fn usage(error: &dyn Display) -> Exit {
        complain(error);
        Exit::Usage
    }

    /// Says what was found.
    pub fn finding(error: &dyn Display) -> Exit {
        complain(error);
        Exit::Finding
    }

    /// Says what is wrong with a configuration; its errors come with their places, and need no other prefix.
    pub fn configuration(error: &LoadError) -> Exit {
        match error {
            LoadError::Invalid(errors) => drop(writeln!(std::io::stderr(), "{errors}")),
            LoadError::Read { .. } => complain(error),
        }
        Exit::Usage
    }

    /// What results without criteria come to.
    pub fn of_results(results: &report::Results) -> Exit {
        if results.is_partial() {
            Exit::Interrupted
        } else if results.findings.is_empty() {
            Exit::Success
        } else {
            Exit::Finding
        }
    }

    /// What an error means; says it on stderr where somebody has to know.
    pub fn of(error: &anyhow::Error) -> Exit {
        if error.chain().any(is_broken_pipe) {
            // The reader of our output has seen enough: `weir lab list | head -1`.
            return Exit::Success;
        }
        let is_ended = matches!(error.downcast_ref(), Some(bench::Error::Interrupted));
        if is_ended || error.is::<Interrupted>() {
            complain(error);
            return Exit::Interrupted;
        }
        complain(&format_args!("{error:#}"));
        if is_usage(error) { Exit::Usage } else { Exit::Failure }
    }
}

/// Whether an error is about what the user gave, rather than about what happened.
fn is_usage(error: &anyhow::Error) -> bool {
    if let Some(error) = error.downcast_ref() {
        use lab::Error::{NameTaken, NoSuchLab, NoSuchNode, Option, Topology};
        return matches!(
            error,
            Topology { .. } | Option { .. } | NameTaken(_) | NoSuchLab { .. } | NoSuchNode { .. }
        );
    }
    if let Some(agent::Error::Option(_)) = error.downcast_ref() {
        return true;
    }
    if let Some(error) = error.downcast_ref::<sampling::Error>() {
        use sampling::Error::{Input, Unsupported};
        return matches!(error, Input { .. } | Unsupported { .. });
    }
    matches!(
        error.downcast_ref::<bench::Error>(),
        Some(bench::Error::Setting { .. } | bench::Error::Arrivals(_) | bench::Error::Tls(_))
    )
}

fn is_broken_pipe(cause: &(dyn std::error::Error + 'static)) -> bool {
    cause
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

fn complain(error: &dyn Display) {
    // The line of progress may still stand.
    report::terminal::quiet();
    // If stderr is gone there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "weir: {error}");
}
