//! The configuration file: TOML in, [`Config`] out, or every error in it with its place.
//!
//! Parse, don't validate: all values of a [`Config`] have been checked, and readers do not check them again. The module
//! deliberately has no I/O except [`load`] and the data sheets that a file names. Each default is here once, and in
//! `docs/configuration.md`; other modules have no defaults.
//!
//! Start reading at [`Config`] (`settings`); `sections` and `tenants` read the file's tables with the help of `reader`.

mod access;
mod address;
mod agents;
mod api;
mod contradictions;
mod datasheet;
mod diagnostic;
mod labels;
mod maxima;
mod networks;
mod own;
mod reader;
mod sections;
mod settings;
mod switches;
mod tenants;
mod tls;
mod topology;

use std::path::Path;
use std::{fmt, fs, io};

pub use access::Access;
pub use agents::Agents;
pub use api::{Api, SOCKET, Socket};
pub(crate) use contradictions::{wanted, why};
pub use diagnostic::{Diagnostic, Diagnostics, Position};
pub use labels::{LabelPolicy, Labels, Vnic};
pub use maxima::{Edge, Maxima};
pub use networks::Network;
pub use settings::{Config, Entry, Keepalive, Listen, Reconnect, Scheduler, Store, Tenant};
pub use switches::{Certificate, Listed};
pub use tls::Tls;
pub use topology::{Link, Topology};

/// A configuration could not be loaded.
#[derive(Debug)]
pub enum LoadError {
    /// The file could not be read.
    Read {
        /// The file.
        file: String,
        /// Why.
        error: io::Error,
    },
    /// The file has errors.
    Invalid(Diagnostics),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Read { file, error } => write!(f, "cannot read {file}: {error}"),
            LoadError::Invalid(diagnostics) => diagnostics.fmt(f),
        }
    }
}

impl std::error::Error for LoadError {}

/// The most bytes of a configuration file. A larger file would be a mistake, and reading it would delay a reload.
pub const MAX_FILE_SIZE: u64 = 64 << 20;

/// Reads and parses a file.
pub fn load(path: &Path) -> Result<Config, LoadError> {
    let file = path.display().to_string();
    match read(path) {
        Ok(text) => sections::parse(&file, &text, own::is_here).map_err(LoadError::Invalid),
        Err(error) => Err(LoadError::Read { file, error }),
    }
}

/// Reads a configuration file's text, within [`MAX_FILE_SIZE`].
pub(crate) fn read(path: &Path) -> io::Result<String> {
    let length = fs::metadata(path)?.len();
    if length > MAX_FILE_SIZE {
        let message = format!(
            "{length} bytes are more than the {MAX_FILE_SIZE} that a configuration may have"
        );
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    fs::read_to_string(path)
}

impl Config {
    /// Parses the text of a file; its name is used in errors, and its folder for relative paths. The function does not
    /// check the addresses of this machine.
    pub fn parse(file: &str, text: &str) -> Result<Config, Diagnostics> {
        sections::parse(file, text, |_| false)
    }
}

#[cfg(test)]
mod tests;
