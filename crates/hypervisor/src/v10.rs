//! Messages of OpenFlow 1.0: what Weir asks a switch, and what Weir reads in them. What a [`Switch`](crate::Switch) does with them is in
//! `switch::v10`.

pub(crate) mod flow_mod;
pub(crate) mod ports;
pub(crate) mod requests;
pub(crate) mod statistics;

use openflow::{ErrorCode, Version};

/// The switch's own bytes make no sense. Nobody asked, so nobody is told; it is counted.
pub(crate) fn unreadable(error: openflow::DecodeError) -> ErrorCode {
    error.openflow_error(Version::V1_0)
}
