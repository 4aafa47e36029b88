//! Messages of OpenFlow 1.3: what Weir asks a switch, and what Weir reads in them. What a [`Switch`](crate::Switch)
//! does with them is in
//! `switch::v13`.

pub(crate) mod flow_mod;
pub(crate) mod ids;
pub(crate) mod numbers;
pub(crate) mod ports;
pub(crate) mod requests;
pub(crate) mod statistics;

use openflow::{ErrorCode, Version};

/// The error code for bytes that cannot be read.
pub(crate) fn unreadable(error: openflow::DecodeError) -> ErrorCode {
    error.openflow_error(Version::V1_3)
}
