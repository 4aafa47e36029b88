//! The errors of this crate. The text of each error is one sentence with the remedy.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::missing::Missing;

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a lab.
#[derive(Debug)]
pub enum Error {
    /// This machine or this user does not meet the requirements. The list has every missing part.
    Missing(Vec<Missing>),
    /// A topology (file, built-in or builder) is not a valid network.
    Topology {
        /// The 1-based line of the topology file; `None` without a file.
        line: Option<usize>,
        /// The mistake, with a suggestion if a similar name exists.
        message: String,
    },
    /// An option is not usable, such as a controller's address.
    Option {
        /// The name of the option.
        option: &'static str,
        /// The reason why the option is not usable.
        message: String,
    },
    /// A program that the lab ran failed.
    Command {
        /// The program and its arguments.
        command: String,
        /// The exit status of the program in words.
        status: String,
        /// The output of the program on stderr, trimmed.
        stderr: String,
    },
    /// A system call or file operation failed.
    Io {
        /// The operation, such as `read`, and its object.
        action: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A lab of that name already exists.
    NameTaken(String),
    /// No lab of that name exists in this state directory.
    NoSuchLab {
        /// The requested name.
        name: String,
        /// The labs that exist.
        existing: Vec<String>,
    },
    /// The topology has no such switch or host.
    NoSuchNode {
        /// The requested name.
        name: String,
        /// The most similar name, if a similar name exists.
        suggestion: Option<String>,
    },
    /// An object that the lab has to create already exists, and the lab did not make the object.
    Occupied(String),
    /// A lab's state file cannot be decoded.
    State {
        /// The file.
        path: PathBuf,
        /// The mistake in the file.
        message: String,
    },
    /// An event did not happen in time.
    Timeout {
        /// The expected event.
        what: String,
        /// The time of the wait.
        after: Duration,
    },
}

impl Error {
    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let action = action.into();
        move |source| Error::Io { action, source }
    }

    pub(crate) fn path<'a>(verb: &'a str, path: &'a Path) -> impl FnOnce(io::Error) -> Error + 'a {
        move |source| Error::Io { action: format!("{verb} {}", path.display()), source }
    }

    pub(crate) fn topology(message: impl Into<String>) -> Error {
        Error::Topology { line: None, message: message.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Missing(missing) => {
                write!(f, "a lab cannot be made here:")?;
                missing.iter().try_for_each(|one| write!(f, "\n  {one}"))
            }
            Error::Topology { line: Some(line), message } => {
                write!(f, "topology, line {line}: {message}")
            }
            Error::Topology { line: None, message } => write!(f, "topology: {message}"),
            Error::Option { option, message } => write!(f, "{option}: {message}"),
            Error::Command { command, status, stderr } if stderr.is_empty() => {
                write!(f, "`{command}` failed ({status})")
            }
            Error::Command { command, status, stderr } => {
                write!(f, "`{command}` failed ({status}): {stderr}")
            }
            Error::Io { action, source } => write!(f, "cannot {action}: {source}"),
            Error::NameTaken(name) => write!(
                f,
                "a lab named {name:?} exists already; take it down first or choose another name"
            ),
            Error::NoSuchLab { name, existing } if existing.is_empty() => {
                write!(f, "no lab named {name:?}: no lab is up")
            }
            Error::NoSuchLab { name, existing } => {
                write!(f, "no lab named {name:?}; up are: {}", existing.join(", "))
            }
            Error::NoSuchNode { name, suggestion: Some(near) } => {
                write!(f, "no switch or host named {name:?}; did you mean {near:?}?")
            }
            Error::NoSuchNode { name, suggestion: None } => {
                write!(f, "no switch or host named {name:?}")
            }
            Error::Occupied(what) => write!(f, "{what} exists already and is not this lab's"),
            Error::State { path, message } => write!(f, "state file {}: {message}", path.display()),
            Error::Timeout { what, after } => {
                write!(f, "{what}: not within {} s", after.as_secs_f64())
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
