//! Edits of raw Ethernet frames: what the OpenFlow actions do to the bytes.
//!
//! Every edit keeps the checksums right (incrementally, RFC 1624; SCTP by recomputing its CRC) and
//! does nothing when the frame has no such header, as a switch does. Nothing here can read or write
//! outside the frame. There is no matching here.
//!
//! Start at [`Headers::locate`], which all edits share.

mod actions;
pub mod build;
mod bytes;
mod checksum;
mod edit;
mod headers;
mod tags;

pub use actions::{apply_v10, apply_v13, decrement_ttl, set_field};
pub use edit::*;
pub use headers::*;
pub use tags::*;

#[cfg(test)]
mod tests;
