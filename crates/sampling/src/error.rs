//! What can go wrong, each with its place.

use std::fmt;

/// This crate's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong with a problem.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// A value that cannot be used.
    Input {
        /// Where it stands: `traffic[2][3]`, `line 4, column "s2"`.
        place: String,
        /// What is wrong with it.
        message: String,
    },
    /// These servers cannot even forward their traffic: constraint 1 fails with nothing sampled.
    Overloaded(Vec<Shortfall>),
    /// These servers or tenants cannot be sampled at the minimum rate that is asked for.
    Unreachable(Vec<Shortfall>),
    /// A solver that only knows the paper's full mesh was given more.
    Unsupported {
        /// The solver's name.
        solver: &'static str,
        /// What it does not know.
        what: &'static str,
    },
    /// There are too few or unfit measurements to fit the model to.
    Fit(String),
    /// The solver stopped without an answer.
    Solver(String),
}

/// How much a server or tenant lacks.
#[derive(Clone, Debug, PartialEq)]
pub struct Shortfall {
    /// `server s1` or `tenant red`.
    pub who: String,
    /// In units of capacity for an overloaded server, in packets per second for a minimum rate.
    pub by: f64,
    /// What it would need in all, in the same unit.
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

/// The worst few; a data centre's worth of names helps nobody.
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
