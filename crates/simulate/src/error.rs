//! What cannot be simulated.

use std::fmt;

/// Why there is no simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The network has fewer than two servers.
    NoServers,
    /// Some servers cannot reach each other.
    Unconnected,
    /// More tenants than there can be with two virtual interfaces each.
    TooManyTenants {
        /// As many as asked for.
        tenants: usize,
        /// As many as there can be.
        most: usize,
    },
    /// A part of the setting is out of range.
    Setting(&'static str),
    /// The fabric's own code refused something.
    Fabric(fabric::Error),
    /// The linear program was not solved.
    Solver(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoServers => f.write_str("the network needs at least two servers"),
            Error::Unconnected => f.write_str("some servers cannot reach each other"),
            Error::TooManyTenants { tenants, most } => {
                write!(f, "{tenants} tenants are too many for this network: {most} at most")
            }
            Error::Setting(what) => f.write_str(what),
            Error::Fabric(error) => error.fmt(f),
            Error::Solver(why) => write!(f, "the linear program was not solved: {why}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<fabric::Error> for Error {
    fn from(error: fabric::Error) -> Error {
        Error::Fabric(error)
    }
}
