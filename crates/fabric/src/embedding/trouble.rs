//! The reasons why a trunk has no path.

use crate::error::Error;
use crate::units::{Dpid, PortId};
use core::fmt;

/// The reason why a trunk has no path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// A physical switch that the trunk needs has not connected.
    Waiting(Dpid),
    /// There is no path for the trunk now.
    Route(Error),
    /// No tag is free on the link of this sending port.
    Tags(PortId),
    /// This physical switch refuses the rules for the trunk's transit, and there is no path around
    /// the switch.
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
