//! One requirement of a lab that this machine does not meet.

use std::fmt;

/// One missing requirement and its remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The missing part, such as `ovs-vswitchd`.
    pub what: String,
    /// The remedy in one sentence.
    pub remedy: String,
}

impl Missing {
    pub(crate) fn new(what: &str, remedy: impl Into<String>) -> Missing {
        Missing { what: what.to_owned(), remedy: remedy.into() }
    }

    pub(crate) fn program(name: &str, package: &str) -> Missing {
        Missing::new(name, format!("not installed; on Debian: apt-get install {package}"))
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.remedy)
    }
}
