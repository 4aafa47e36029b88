//! What can go wrong between an emulated peer and its sockets.

use std::fmt;

use crate::network::SwitchIndex;

/// An error of a runner or a scripted peer. What a *model* refuses is an OpenFlow ERROR, not one of these.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The channel below: address, TLS, socket, or the peer's end.
    Channel(channel::Error),
    /// The operating system would not start a thread.
    Thread(std::io::Error),
    /// The network has no such switch.
    NoSwitch(SwitchIndex),
    /// The runner's thread is gone.
    Stopped,
    /// What was waited for did not come in time.
    TimedOut {
        /// What was waited for.
        what: String,
        /// What came instead, in short.
        instead: Vec<String>,
    },
    /// Something else came than what was expected.
    Unexpected {
        /// What was expected.
        expected: String,
        /// What came.
        came: String,
    },
    /// The peer's message could not be read.
    Decode(openflow::DecodeError),
    /// A message would not fit in a frame.
    TooLong(openflow::TooLong),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Channel(error) => error.fmt(f),
            Error::Thread(error) => write!(f, "start a thread: {error}"),
            Error::NoSwitch(SwitchIndex(index)) => write!(f, "there is no switch {index}"),
            Error::Stopped => f.write_str("the emulation has stopped"),
            Error::TimedOut { what, instead } if instead.is_empty() => {
                write!(f, "timed out waiting for {what}")
            }
            Error::TimedOut { what, instead } => {
                write!(f, "timed out waiting for {what}; there came {}", instead.join(", "))
            }
            Error::Unexpected { expected, came } => write!(f, "expected {expected}, got {came}"),
            Error::Decode(error) => error.fmt(f),
            Error::TooLong(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Channel(error) => Some(error),
            Error::Thread(error) => Some(error),
            Error::Decode(error) => Some(error),
            Error::TooLong(error) => Some(error),
            _ => None,
        }
    }
}

impl From<channel::Error> for Error {
    fn from(error: channel::Error) -> Error {
        Error::Channel(error)
    }
}

impl From<openflow::DecodeError> for Error {
    fn from(error: openflow::DecodeError) -> Error {
        Error::Decode(error)
    }
}

impl From<openflow::TooLong> for Error {
    fn from(error: openflow::TooLong) -> Error {
        Error::TooLong(error)
    }
}
