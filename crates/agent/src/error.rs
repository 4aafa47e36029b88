//! What can go wrong, each in one sentence.

use std::fmt;
use std::io;

/// This crate's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong on a server.
#[derive(Debug)]
pub enum Error {
    /// An option cannot be used.
    Option(String),
    /// The configuration file cannot be read, or says what cannot be done.
    Config(String),
    /// A datagram is not sFlow v5: the sender's fault.
    Datagram(String),
    /// Open vSwitch's database said no, or nothing understandable: the peer's fault.
    Database(String),
    /// The interface or its ring failed.
    Packet(packet::Error),
    /// Shaping an interface failed: the kernel lacks something, or somebody else shapes it.
    Shaping(String),
    /// A system call failed.
    Io {
        /// What was attempted.
        action: String,
        /// The operating system's answer.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn io(action: impl Into<String>, source: impl Into<io::Error>) -> Error {
        Error::Io { action: action.into(), source: source.into() }
    }
}

impl From<packet::Error> for Error {
    fn from(error: packet::Error) -> Error {
        Error::Packet(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Option(message) | Error::Config(message) => f.write_str(message),
            Error::Datagram(message) => write!(f, "not an sFlow v5 datagram: {message}"),
            Error::Database(message) => write!(f, "Open vSwitch's database: {message}"),
            Error::Packet(error) => error.fmt(f),
            Error::Shaping(message) => f.write_str(message),
            Error::Io { action, source } => write!(f, "cannot {action}: {source}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // Its sentence is ours.
            Error::Packet(error) => error.source(),
            Error::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
