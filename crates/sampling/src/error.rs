//! The errors of this crate, each with its place.

use std::fmt;

/// This crate's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a problem.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// A value that cannot be used.
    Input {
        /// The place of the value: `traffic[2][3]`, `line 4, column "s2"`.
        place: String,
        /// What is wrong with the value.
        message: String,
    },
    /// These servers cannot even forward their traffic: constraint 1 fails without any sampling.
    Overloaded(Vec<Shortfall>),
    /// These servers or tenants cannot be sampled at their minimum rate.
    Unreachable(Vec<Shortfall>),
    /// The problem has a feature that the solver does not support.
    Unsupported {
        /// The solver's name.
        solver: &'static str,
        /// The unsupported feature.
        what: &'static str,
    },
    /// The measurements are too few, or unfit, for the model.
    Fit(String),
    /// The solver stopped without an answer.
    Solver(String),
}

/// The shortfall of a server or tenant.
#[derive(Clone, Debug, PartialEq)]
pub struct Shortfall {
    /// `server s1` or `tenant red`.
    pub who: String,
    /// The shortfall: in units of capacity for an overloaded server, in packets per second for a
    /// minimum rate.
    pub by: f64,
    /// The total need, in the same unit.
    pub of: f64,
}

impl Error {
    pub(crate) fn input(place: impl Into<String>, message: impl Into<String>) -> Error {
        Error::Input { place: place.into(), message: message.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Input { place, message } => write!(f, "{place}: {message}"),
            Error::Overloaded(all) => {
                write!(f, "no plan is possible: ")?;
                list(f, all, |f, one| {
                    let Shortfall { who, by, of } = one;
                    write!(
                        f,
                        "{who} has to forward {of:.1} packets/s, {by:.1} more than its capacity"
                    )
                })
            }
            Error::Unreachable(all) => {
                write!(f, "no plan reaches the minimum rates: ")?;
                list(f, all, |f, one| {
                    let Shortfall { who, by, of } = one;
                    write!(
                        f,
                        "{who} is to have {of:.1} packets/s sampled, at least {by:.1} too many"
                    )
                })
            }
            Error::Unsupported { solver, what } => {
                write!(
                    f,
                    "the {solver} solver knows only the paper's full mesh, not {what}; the linear solver does"
                )
            }
            Error::Fit(message) => write!(f, "the model cannot be fitted: {message}"),
            Error::Solver(message) => write!(f, "the solver gave up: {message}"),
        }
    }
}

/// Lists only the few largest shortfalls: the names of a whole data centre do not help.
fn list(
    f: &mut fmt::Formatter<'_>,
    all: &[Shortfall],
    one: impl Fn(&mut fmt::Formatter<'_>, &Shortfall) -> fmt::Result,
) -> fmt::Result {
    const SHOWN: usize = 5;
    for (index, shortfall) in all.iter().take(SHOWN).enumerate() {
        if index > 0 {
            f.write_str("; ")?;
        }
        one(f, shortfall)?;
    }
    match all.len().checked_sub(SHOWN) {
        Some(more) if more > 0 => write!(f, "; and {more} more"),
        _ => Ok(()),
    }
}

impl std::error::Error for Error {}
