//! The exit statuses of `weir`.

use daemon::config::LoadError;
use lab::Interrupted;
use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

/// The exit statuses, which are the same for all commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The command succeeded without findings.
    Success = 0,
    /// The command succeeded, and found a fault: an overlap, a leak, a missed bound.
    Finding = 1,
    /// The arguments or the configuration file are wrong.
    Usage = 2,
    /// The command failed.
    Failure = 3,
    /// The command succeeded, and the measurement does not decide whether there is a fault.
    Undecided = 4,
    /// SIGINT or SIGTERM ended the command before the end of its work. The results measured so far are written.
    Interrupted = 130,
}

impl Exit {
    /// Prints the error in the user's arguments.
    pub fn usage(error: &dyn Display) -> Exit {
        complain(error);
        Exit::Usage
    }

    /// Prints a finding.
    pub fn finding(error: &dyn Display) -> Exit {
        complain(error);
        Exit::Finding
    }

    /// Prints the errors of a configuration. Each error has its place in the file, and needs no other prefix.
    pub fn configuration(error: &LoadError) -> Exit {
        match error {
            LoadError::Invalid(errors) => drop(writeln!(std::io::stderr(), "{errors}")),
            LoadError::Read { .. } => complain(error),
        }
        Exit::Usage
    }

    /// The exit status for results without criteria.
    pub fn of_results(results: &report::Results) -> Exit {
        if results.is_partial() {
            Exit::Interrupted
        } else if results.findings.is_empty() {
            Exit::Success
        } else {
            Exit::Finding
        }
    }

    /// The exit status of an error. Prints the error on stderr, except for a closed pipe.
    pub fn of(error: &anyhow::Error) -> Exit {
        if error.chain().any(is_broken_pipe) {
            // The reader of the output has closed the pipe, as in `weir lab list | head -1`.
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

/// Whether an error is in the user's arguments or input, and not in the work of the command.
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
    // The terminal may still show the line of progress.
    report::terminal::quiet();
    // If stderr is closed, the message has no receiver.
    let _ = writeln!(std::io::stderr(), "weir: {error}");
}
