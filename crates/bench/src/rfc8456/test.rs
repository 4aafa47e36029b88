//! Describes a benchmark as data.

use super::context::Context;
use crate::error::Error;
use crate::measure::Measurement;

/// One benchmark.
#[derive(Clone, Copy)]
pub struct Test {
    /// The name on the command line.
    pub name: &'static str,
    /// The section in RFC 8456; empty for cbench's own benchmarks.
    pub section: &'static str,
    /// The subject of the benchmark, in a line.
    pub about: &'static str,
    /// The needs of the benchmark.
    pub needs: &'static [Need],
    /// The main figures of the benchmark; the results have all other figures as well.
    pub headline: &'static [&'static str],
    /// Runs the benchmark.
    pub(crate) measure: fn(&mut Context<'_>) -> Result<Vec<Measurement>, Error>,
}

/// A need of a benchmark, in addition to the controller's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A northbound helper that orders flow entries from the controller.
    Northbound,
    /// A second controller, and an operator that ends the first controller.
    Backup,
    /// A topology with a second path between its ends.
    Loop,
}

impl PartialEq for Test {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl std::fmt::Debug for Test {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}
