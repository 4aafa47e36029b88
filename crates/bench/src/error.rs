//! What can keep a measurement from being made. What the system under test does wrong is no error:
//! it is part of the result.

use std::fmt;
use std::io;

/// Why no measurement was made.
#[derive(Debug)]
pub enum Error {
    /// A setting is out of its range.
    Setting {
        /// Which.
        name: String,
        /// What was given.
        value: String,
        /// What is allowed.
        range: String,
    },
    /// An arrival process makes no sense; the sentence says why.
    Arrivals(String),
    /// The operating system refused something; the text says what was tried.
    Io(String, io::Error),
    /// An interface could not be used.
    Interface(String, packet::Error),
    /// Not everybody was connected in time.
    Handshake {
        /// How many tenants' controllers were ready.
        ready: usize,
        /// How many should have been.
        wanted: usize,
        /// What was seen, in sentences.
        seen: Vec<String>,
    },
    /// A TLS identity cannot be used; the sentence names the file.
    Tls(String),
    /// The system under test did not start, or ended.
    System(String),
    /// Somebody asked for the end before anything was measured.
    Interrupted,
    /// A thread of the generator ended early: a defect of this program.
    Internal(&'static str),
    /// The results directory could not be written or read.
    Report(report::Error),
}

impl Error {
    /// For `map_err`: says what was being done.
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

/// [`Error::Setting`] unless `good`.
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
