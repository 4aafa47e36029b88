//! The layout of a datagram in bytes.

/// The most bytes of a datagram: it fits into one frame on any network that carries IPv6.
pub const LONGEST_DATAGRAM: usize = 1232;

/// Bytes before the entries.
pub(super) const HEADER: usize = 48;
/// Bytes after the entries.
pub(super) const HASH: usize = 16;
/// All bytes of a datagram outside the entries.
pub(super) const OVERHEAD: usize = HEADER + HASH;
