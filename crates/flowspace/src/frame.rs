//! Edits of raw Ethernet frames: the effect of OpenFlow actions on the bytes.
//!
//! Every edit keeps the checksums right (incrementally, RFC 1624; SCTP by computing its CRC again).
//! Like a switch, an edit does nothing if the frame lacks the header. No edit can read or write
//! outside the frame. The module does no matching.
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
