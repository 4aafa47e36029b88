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
