//! One requirement of a lab that this machine does not meet.

use std::fmt;

/// One thing that is missing, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The thing, such as `ovs-vswitchd`.
    pub what: String,
    /// A sentence that says how to get it.
    pub remedy: String,
}

impl Missing {
    pub(crate) fn program(name: &str, package: &str) -> Missing {
        let remedy = format!("not installed; on Debian: apt-get install {package}");
        Missing { what: name.to_owned(), remedy }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.remedy)
    }
}
