//! Converts OpenFlow versions into Open vSwitch's names.

use bench::Version;
use lab::Protocol;

/// The protocol of a version.
pub fn protocol(version: Version) -> Protocol {
    match version {
        Version::V1_0 => Protocol::OPENFLOW10,
        Version::V1_3 => Protocol::OPENFLOW13,
    }
}
