//! The errors of this crate; each error is one sentence.

use std::fmt;
use std::io;

/// This crate's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error on a server.
#[derive(Debug)]
pub enum Error {
    /// An option cannot be used.
    Option(String),
    /// The configuration file cannot be read, or asks for an impossible setting.
    Config(String),
    /// A datagram is not sFlow v5; the sender is at fault.
    Datagram(String),
    /// Open vSwitch's database refused a request or sent an invalid reply; the peer is at fault.
    Database(String),
    /// The interface or its ring failed.
    Packet(packet::Error),
    /// Shaping an interface failed: the kernel lacks a feature, or another program shapes the interface.
    Shaping(String),
    /// A system call failed.
    Io {
        /// The attempted action.
        action: String,
        /// The error of the operating system.
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
            // The text of `packet::Error` is the text of this error.
            Error::Packet(error) => error.source(),
            Error::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
