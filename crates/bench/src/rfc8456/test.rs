//! A benchmark as data.

use super::context::Context;
use crate::error::Error;
use crate::measure::Measurement;

/// One benchmark.
#[derive(Clone, Copy)]
pub struct Test {
    /// As it is called on the command line.
    pub name: &'static str,
    /// Its section in RFC 8456; empty for cbench's own.
    pub section: &'static str,
    /// What it measures, in a line.
    pub about: &'static str,
    /// What it cannot do without.
    pub needs: &'static [Need],
    /// The figures that it is made for; all the others are in the results as well.
    pub headline: &'static [&'static str],
    /// Makes it.
    pub(crate) measure: fn(&mut Context<'_>) -> Result<Vec<Measurement>, Error>,
}

/// What a benchmark cannot do without, beside the controller's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Somebody who tells the controller to install flows.
    Northbound,
    /// A second controller, and somebody who fails the first.
    Backup,
    /// A topology with a second way between its ends.
    Loop,
}

impl Test {
    pub(crate) fn measure(self, context: &mut Context<'_>) -> Result<Vec<Measurement>, Error> {
        (self.measure)(context)
    }
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
