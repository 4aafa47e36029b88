//! Replies to statistics requests: the parts of a reply, and the structures in a reply.

use crate::semantics::Semantics;
use alloc::vec::Vec;
use compile::Wire;
use openflow::{Encode, TooLong, Version};

/// Room for entries in one part of a reply, behind its header of 1.3.
const PART: usize = u16::MAX as usize - 16;

/// The bytes of a structure on the wire.
pub(crate) fn written(it: &impl Encode) -> Vec<u8> {
    // Matches of 1.0 and descriptions of ports are not longer.
    let mut out = Vec::with_capacity(64);
    it.write(&mut out);
    out
}

/// A reply that is written entry by entry, in as many parts as necessary. A reply without entries has one part.
pub(crate) struct Parts {
    version: Version,
    type_: u16,
    xid: u32,
    /// The entries of the part that has not been written.
    part: Vec<u8>,
}

impl Parts {
    pub(crate) fn new(version: Version, type_: u16, xid: u32) -> Parts {
        Parts { version, type_, xid, part: Vec::new() }
    }

    /// Adds an entry. Appends a part to `out` if the entry has no room in this part.
    pub(crate) fn add(&mut self, entry: &impl Encode, out: &mut Vec<u8>) -> Result<(), TooLong> {
        let end = self.part.len();
        entry.write(&mut self.part);
        if self.part.len() > PART && end > 0 {
            // The entry begins the next part.
            write_part(self.version, self.type_, self.xid, &self.part[..end], true, out)?;
            self.part.drain(..end);
        }
        Ok(())
    }

    /// Appends the last part.
    pub(crate) fn end(&mut self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        write_part(self.version, self.type_, self.xid, &self.part, false, out)
    }
}

/// The first structures of a list, at most `most` and at most one part of a reply. Each structure begins with its
/// length. If a length is not valid, the result has all structures that follow, because they cannot be read.
pub(crate) fn first_entries(list: &[u8], most: usize) -> &[u8] {
    let mut end = 0;
    for _ in 0..most {
        let rest = list.get(end..).unwrap_or_default();
        let length =
            rest.first_chunk().map_or(0, |length| usize::from(u16::from_be_bytes(*length)));
        if length == 0 || length > rest.len() {
            return list;
        }
        if end > 0 && end + length > PART {
            break;
        }
        end += length;
        if end == list.len() {
            break;
        }
    }
    &list[..end]
}

/// The rules in a part of the switch's answer, each with its cookie, up to the first rule whose length is not valid.
/// `cookie_at` is the offset of the cookie.
pub(crate) fn rules_with_cookies(
    part: &[u8],
    cookie_at: usize,
) -> impl Iterator<Item = (u64, &[u8])> {
    let mut rest = part;
    core::iter::from_fn(move || {
        let length = rest.first_chunk().map(|length| usize::from(u16::from_be_bytes(*length)))?;
        let (rule, others) = rest.split_at_checked(length)?;
        let cookie = u64::from_be_bytes(*rule.get(cookie_at..)?.first_chunk()?);
        rest = others;
        Some((cookie, rule))
    })
}

/// Appends a reply in as many parts as necessary. A reply without entries has one part.
pub(crate) fn write_parts(
    version: Version,
    type_: u16,
    xid: u32,
    entries: impl IntoIterator<Item: Encode>,
    out: &mut Vec<u8>,
) -> Result<(), TooLong> {
    let mut parts = Parts::new(version, type_, xid);
    for entry in entries {
        parts.add(&entry, out)?;
    }
    parts.end(out)
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
