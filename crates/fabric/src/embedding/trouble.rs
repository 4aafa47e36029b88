//! Why a trunk is nowhere.

use crate::error::Error;
use crate::units::{Dpid, PortId};
use core::fmt;

/// Why a trunk is nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// A physical switch that it needs has not connected.
    Waiting(Dpid),
    /// There is no way for it now.
    Route(Error),
    /// No tag is free on what this port sends.
    Tags(PortId),
    /// This physical switch does not take what would let it pass, and there is no way around.
    Refused(Dpid),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Waiting(dpid) => write!(f, "physical switch {dpid} has not connected"),
            Trouble::Route(error) => error.fmt(f),
            Trouble::Tags(port) => write!(f, "no tag is free on the link at {port}"),
            Trouble::Refused(dpid) => {
                write!(f, "physical switch {dpid} refuses its entries, and no other way is left")
            }
        }
    }
}
