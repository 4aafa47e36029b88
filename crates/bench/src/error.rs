//! The errors that prevent a measurement. A fault of the system under test is no error: the fault
//! is a part of the result.

use std::fmt;
use std::io;

/// The reason why no measurement was made.
#[derive(Debug)]
pub enum Error {
    /// A setting is out of its range.
    Setting {
        /// The setting.
        name: String,
        /// The given value.
        value: String,
        /// The allowed range.
        range: String,
    },
    /// An arrival process is invalid; the sentence says why.
    Arrivals(String),
    /// The operating system refused a call; the text names the step.
    Io(String, io::Error),
    /// An interface could not be used.
    Interface(String, packet::Error),
    /// Some connections were missing at the end of the time limit.
    Handshake {
        /// The number of tenants' controllers that were ready.
        ready: usize,
        /// The number of controllers that should have been ready.
        wanted: usize,
        /// The observations, as sentences.
        seen: Vec<String>,
    },
    /// A TLS identity cannot be used; the sentence names the file.
    Tls(String),
    /// The system under test did not start, or ended.
    System(String),
    /// The user ended the measurement before the first result.
    Interrupted,
    /// A thread of the generator ended early: a defect of this program.
    Internal(&'static str),
    /// The results directory could not be written or read.
    Report(report::Error),
}

impl Error {
    /// Adds the current step to the error, for `map_err`.
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |error| Self::Io(doing, error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting { name, value, range } => write!(f, "{name} is {value}: must be {range}"),
            Self::Arrivals(text) => write!(f, "arrivals: {text}"),
            Self::Io(doing, error) => write!(f, "{doing}: {error}"),
            Self::Interface(name, error) => write!(f, "interface {name}: {error}"),
            Self::Handshake { ready, wanted, seen } => {
                write!(
                    f,
                    "handshake: {ready} of {wanted} controller sessions became ready in time"
                )?;
                seen.iter().try_for_each(|line| write!(f, "; {line}"))
            }
            Self::Tls(text) => write!(f, "TLS: {text}"),
            Self::System(text) => write!(f, "system under test: {text}"),
            Self::Interrupted => f.write_str("interrupted"),
            Self::Internal(text) => write!(f, "internal: {text}"),
            Self::Report(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<report::Error> for Error {
    fn from(error: report::Error) -> Self {
        Self::Report(error)
    }
}

/// Returns [`Error::Setting`] if `good` is false.
pub(crate) fn setting(
    good: bool,
    name: &str,
    value: impl ToString,
    range: &str,
) -> Result<(), Error> {
    if good {
        return Ok(());
    }
    Err(Error::Setting { name: name.to_owned(), value: value.to_string(), range: range.to_owned() })
}
