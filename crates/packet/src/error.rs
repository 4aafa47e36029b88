//! Everything that can go wrong, each in one sentence that says what to do.

use std::fmt;
use std::io;

/// Shorthand for this crate's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong with probes and interfaces.
#[derive(Debug)]
pub enum Error {
    /// There is no interface of that name in this network namespace.
    NoSuchInterface(String),
    /// The interface is administratively down, so nothing can be sent or captured.
    InterfaceDown(String),
    /// The interface went away while it was in use.
    InterfaceGone(String),
    /// This user may not do that.
    Privilege {
        /// What was attempted.
        action: String,
    },
    /// There is no network namespace of that name.
    NoSuchNamespace(String),
    /// A probe, filter or ring is not possible as it was described.
    Invalid(String),
    /// A system call failed.
    Io {
        /// What was attempted.
        action: String,
        /// The operating system's answer.
        source: io::Error,
    },
}

impl Error {
    /// An error of its own for each cause that has a remedy of its own.
    pub(crate) fn system(action: impl Into<String>, source: impl Into<io::Error>) -> Error {
        let (action, source) = (action.into(), source.into());
        match source.kind() {
            io::ErrorKind::PermissionDenied => Error::Privilege { action },
            _ => Error::Io { action, source },
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoSuchInterface(name) => {
                write!(f, "there is no interface {name:?} in this network namespace")
            }
            Error::InterfaceDown(name) => {
                write!(f, "interface {name:?} is down; bring it up: ip link set {name} up")
            }
            Error::InterfaceGone(name) => {
                write!(f, "interface {name:?} went away while it was in use")
            }
            Error::Privilege { action } => {
                write!(f, "cannot {action}: run as root (needs CAP_NET_RAW and CAP_SYS_ADMIN)")
            }
            Error::NoSuchNamespace(name) => write!(f, "there is no network namespace {name:?}"),
            Error::Invalid(message) => f.write_str(message),
            Error::Io { action, source } => write!(f, "cannot {action}: {source}"),
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
