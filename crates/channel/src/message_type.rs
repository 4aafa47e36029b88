//! The message types that mean the same in every version of OpenFlow: all that a connection needs
//! to know before a version is agreed.

pub(crate) const HELLO: u8 = 0;
pub(crate) const ERROR: u8 = 1;
pub(crate) const ECHO_REQUEST: u8 = 2;
pub(crate) const ECHO_REPLY: u8 = 3;
pub(crate) const FEATURES_REQUEST: u8 = 5;
pub(crate) const FEATURES_REPLY: u8 = 6;
