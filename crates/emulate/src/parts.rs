//! Writes statistics replies, in several messages if needed.

use openflow::Version;

/// Writes the entries of one statistics reply. A full message is followed by a new message.
pub(crate) struct Parts<'a> {
    version: Version,
    kind: u16,
    xid: u32,
    out: &'a mut Vec<u8>,
    /// Where the current message begins.
    start: usize,
    entries: usize,
    max_entries: usize,
}

const STATS_REPLY_V10: u8 = 17;
const MULTIPART_REPLY_V13: u8 = 19;
const MAX_LEN: usize = 65_535;

impl<'a> Parts<'a> {
    /// Begins a reply of statistics type `kind` with at most `max_entries` entries in one message.
    pub(crate) fn new(
        version: Version,
        kind: u16,
        xid: u32,
        max_entries: usize,
        out: &'a mut Vec<u8>,
    ) -> Parts<'a> {
        let mut parts =
            Parts { version, kind, xid, start: out.len(), out, entries: 0, max_entries };
        parts.begin();
        parts
    }

    /// Appends one entry. An entry that is too long for a message is left out.
    pub(crate) fn entry(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if self.entries >= self.max_entries {
            self.end(true);
            self.begin();
        }
        let at = self.out.len();
        write(self.out);
        if self.out.len() - self.start > MAX_LEN {
            let entry = self.out.split_off(at);
            if self.entries > 0 {
                self.end(true);
                self.begin();
            }
            if self.out.len() - self.start + entry.len() > MAX_LEN {
                return;
            }
            self.out.extend_from_slice(&entry);
        }
        self.entries += 1;
    }

    /// Ends the reply.
    pub(crate) fn finish(mut self) {
        self.end(false);
    }

    fn begin(&mut self) {
        self.start = self.out.len();
        self.entries = 0;
        let is_v10 = self.version == Version::V1_0;
        let type_ = if is_v10 { STATS_REPLY_V10 } else { MULTIPART_REPLY_V13 };
        self.out.extend_from_slice(&[self.version.0, type_, 0, 0]);
        self.out.extend_from_slice(&self.xid.to_be_bytes());
        self.out.extend_from_slice(&self.kind.to_be_bytes());
        let flags_and_padding: &[u8] = if is_v10 { &[0; 2] } else { &[0; 6] };
        self.out.extend_from_slice(flags_and_padding);
    }

    fn end(&mut self, more: bool) {
        let length = (self.out.len() - self.start) as u16;
        if let Some(field) = self.out.get_mut(self.start + 2..self.start + 4) {
            field.copy_from_slice(&length.to_be_bytes());
        }
        if let Some(flags) = self.out.get_mut(self.start + 11) {
            *flags = u8::from(more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts_of(entry: usize, count: usize, max_entries: usize) -> Vec<(usize, u8)> {
        let mut out = Vec::new();
        let mut parts = Parts::new(Version::V1_3, 1, 9, max_entries, &mut out);
        for _ in 0..count {
            parts.entry(|out| out.resize(out.len() + entry, 7));
        }
        parts.finish();
        let mut rest = out.as_slice();
        let mut found = Vec::new();
        while let Some(length) = openflow::frame::next(rest).unwrap() {
            found.push((length - 16, rest[11]));
            rest = &rest[length..];
        }
        assert!(rest.is_empty());
        found
    }

    #[test]
    fn a_statistics_reply_is_split_when_a_message_is_full() {
        assert_eq!(parts_of(96, 0, usize::MAX), [(0, 0)], "an empty reply is a reply");
        assert_eq!(parts_of(96, 2, usize::MAX), [(192, 0)]);
        assert_eq!(parts_of(30_000, 3, usize::MAX), [(60_000, 1), (30_000, 0)]);
        assert_eq!(parts_of(10, 5, 2), [(20, 1), (20, 1), (10, 0)]);
        assert_eq!(parts_of(70_000, 1, 2), [(0, 0)]);
    }
}
