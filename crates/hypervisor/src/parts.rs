//! Replies to statistics requests: the parts of a reply, and the structures in a reply.

use crate::semantics::Semantics;
use alloc::vec::Vec;
use compile::Wire;
use openflow::{Encode, TooLong, Version};

/// Room for entries in one part of a reply, behind its header of 1.3.
const PART: usize = u16::MAX as usize - 16;

/// What this is on the wire.
pub(crate) fn written(it: &impl Encode) -> Vec<u8> {
    // Matches of 1.0 and descriptions of ports are not longer.
    let mut out = Vec::with_capacity(64);
    it.write(&mut out);
    out
}

/// Appends a reply in as many parts as it takes; an empty one is one part.
pub(crate) fn write_parts(
    version: Version,
    type_: u16,
    xid: u32,
    entries: impl IntoIterator<Item: Encode>,
    out: &mut Vec<u8>,
) -> Result<(), TooLong> {
    let mut part = Vec::new();
    for entry in entries {
        let end = part.len();
        entry.write(&mut part);
        if part.len() > PART && end > 0 {
            // It begins the next one.
            write_part(version, type_, xid, &part[..end], true, out)?;
            part.drain(..end);
        }
    }
    write_part(version, type_, xid, &part, false, out)
}

/// Appends one part of a STATS or MULTIPART reply.
pub(crate) fn write_part(
    version: Version,
    type_: u16,
    xid: u32,
    body: &[u8],
    more: bool,
    out: &mut Vec<u8>,
) -> Result<(), TooLong> {
    let Semantics { types, layout, .. } = Semantics::of(Wire::of(version));
    openflow::frame::write(version, types.statistics_reply, xid, out, |out| {
        out.extend_from_slice(&type_.to_be_bytes());
        out.extend_from_slice(&u16::from(more).to_be_bytes());
        out.extend_from_slice(layout.statistics_padding);
        out.extend_from_slice(body);
    })
}
