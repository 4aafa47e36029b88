//! The errors of runners and scripted peers.

use std::fmt;

use crate::network::SwitchIndex;

/// An error of a runner or a scripted peer. A request that a *model* refuses gets an OpenFlow ERROR instead.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// An error of the channel: an address, TLS, a socket, or a connection that the peer closed.
    Channel(channel::Error),
    /// The operating system refused to start a thread.
    Thread(std::io::Error),
    /// The network has no such switch.
    NoSwitch(SwitchIndex),
    /// The runner's thread has ended.
    Stopped,
    /// The expected message or state did not come within the time.
    TimedOut {
        /// The expected message or state.
        what: String,
        /// Short descriptions of the messages that came instead.
        instead: Vec<String>,
    },
    /// Another message came instead of the expected one.
    Unexpected {
        /// The expected message.
        expected: String,
        /// The message that came.
        came: String,
    },
    /// The peer's message could not be decoded.
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
