//! Messages of OpenFlow 1.0: what Weir asks a switch, and what Weir reads in them. What a [`Switch`](crate::Switch)
//! does with them is in
//! `switch::v10`.

pub(crate) mod flow_mod;
pub(crate) mod ports;
pub(crate) mod requests;
pub(crate) mod statistics;

use openflow::{ErrorCode, Version};

/// The error code for bytes that cannot be read. For messages of a switch it is only counted, since nobody gets an
/// error.
pub(crate) fn unreadable(error: openflow::DecodeError) -> ErrorCode {
    error.openflow_error(Version::V1_0)
}
