//! How many bytes of a datagram are what.

/// No datagram is longer: it fits a frame on any network that carries IPv6.
pub const LONGEST_DATAGRAM: usize = 1232;

/// What stands in front of the entries.
pub(super) const HEADER: usize = 48;
/// What stands behind the entries.
pub(super) const HASH: usize = 16;
/// All bytes of a datagram that are no entries.
pub(super) const OVERHEAD: usize = HEADER + HASH;
