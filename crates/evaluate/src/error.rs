//! Why a testbed cannot be had or cannot go on, each in one sentence.

use std::fmt;

/// Shorthand for this crate's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong around an experiment.
#[derive(Debug)]
pub enum Error {
    /// A parameter is out of its range or does not fit the others.
    Parameter {
        /// Its name.
        name: String,
        /// What is wrong with it.
        message: String,
    },
    /// The control channel could not be opened.
    Control(channel::Error),
    /// The switch ended the control channel in the middle of an experiment.
    Disconnected(channel::CloseReason),
    /// The switch sends bytes that are no OpenFlow.
    NotOpenFlow(String),
    /// The switch does not read what it is sent.
    NotReading {
        /// Bytes that wait.
        waiting: usize,
    },
    /// A data channel cannot be used.
    Data {
        /// Its interface.
        interface: String,
        /// Why.
        source: packet::Error,
    },
    /// A channel leads to a port that the switch does not have.
    NoSuchPort {
        /// The port.
        port: u32,
        /// Those that it has.
        ports: Vec<u32>,
    },
    /// A thread could not be started, or ended by itself.
    Thread(String),
    /// A file could not be read or written.
    File {
        /// Its path.
        path: std::path::PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The user asked for the end.
    Interrupted,
}

impl Error {
    /// A parameter that is wrong.
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
