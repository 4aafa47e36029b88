//! The errors of a testbed; each error is one sentence.

use std::fmt;

/// Shorthand for this crate's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error around an experiment.
#[derive(Debug)]
pub enum Error {
    /// A parameter is out of its range or does not fit the others.
    Parameter {
        /// The name of the parameter.
        name: String,
        /// The fault of the parameter.
        message: String,
    },
    /// The control channel could not be opened.
    Control(channel::Error),
    /// The switch closed the control channel during an experiment.
    Disconnected(channel::CloseReason),
    /// The switch sends bytes that are not OpenFlow.
    NotOpenFlow(String),
    /// The switch does not read from the control channel.
    NotReading {
        /// The number of bytes that wait.
        waiting: usize,
    },
    /// A data channel cannot be used.
    Data {
        /// The interface of the data channel.
        interface: String,
        /// The cause.
        source: packet::Error,
    },
    /// A channel leads to a port that the switch does not have.
    NoSuchPort {
        /// The missing port.
        port: u32,
        /// The ports of the switch.
        ports: Vec<u32>,
    },
    /// A thread could not be started, or ended unexpectedly.
    Thread(String),
    /// A file could not be read or written.
    File {
        /// The path of the file.
        path: std::path::PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The user interrupted the experiment.
    Interrupted,
}

impl Error {
    /// The error of a wrong parameter.
    pub fn parameter(name: &str, message: impl Into<String>) -> Error {
        Error::Parameter { name: name.to_owned(), message: message.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Parameter { name, message } => write!(f, "{name}: {message}"),
            Error::Control(error) => write!(f, "the control channel: {error}"),
            Error::Disconnected(reason) => {
                write!(f, "the switch ended the control channel: {reason}")
            }
            Error::NotOpenFlow(why) => write!(f, "the switch sent what is no OpenFlow: {why}"),
            Error::NotReading { waiting } => {
                write!(f, "the switch does not read: {waiting} bytes wait for it")
            }
            Error::Data { interface, source } => write!(f, "data channel {interface}: {source}"),
            Error::NoSuchPort { port, ports } => {
                write!(f, "the switch has no port {port}; it has {ports:?}")
            }
            Error::Thread(why) => f.write_str(why),
            Error::File { path, source } => write!(f, "{}: {source}", path.display()),
            Error::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Control(error) => Some(error),
            Error::Data { source, .. } => Some(source),
            Error::File { source, .. } => Some(source),
            _ => None,
        }
    }
}
