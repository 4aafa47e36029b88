//! Writes and reads the bytes of netlink messages: header, body, attributes (`linux/netlink.h`).
//!
//! Numbers are in the byte order of the machine, as in the kernel. The reader checks the length before each read: the
//! kernel is no adversary, but a truncated message must not end the program.

/// `NLM_F_REQUEST | NLM_F_ACK`: every message is a request, and the kernel acknowledges every request.
pub(crate) const ASK: u16 = 0x1 | 0x4;
/// `NLM_F_CREATE | NLM_F_EXCL`.
pub(crate) const NEW: u16 = 0x400 | 0x200;
/// `NLM_F_REQUEST | NLM_F_ROOT | NLM_F_MATCH`.
pub(crate) const DUMP: u16 = 0x1 | 0x100 | 0x200;

pub(crate) const HEADER: usize = 16;
const ALIGNMENT: usize = 4;

/// A message that is being written.
pub(crate) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// A message with a header of that type and flags; `finish` writes the length and the sequence number.
    pub(crate) fn new(kind: u16, flags: u16, body: &[u8]) -> Message {
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes.extend_from_slice(body);
        Message { bytes }
    }

    pub(crate) fn attribute(mut self, kind: u16, value: &[u8]) -> Message {
        let length = (4 + value.len()) as u16;
        self.bytes.extend_from_slice(&length.to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(value);
        self.align();
        self
    }

    /// Adds a text with the zero at the end that the kernel expects.
    pub(crate) fn text(self, kind: u16, text: &str) -> Message {
        self.attribute(kind, &[text.as_bytes(), &[0]].concat())
    }

    /// Adds an attribute that contains attributes.
    pub(crate) fn nested(mut self, kind: u16, fill: impl FnOnce(Message) -> Message) -> Message {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        let mut message = fill(self);
        let length = (message.bytes.len() - at) as u16;
        message.bytes[at..at + 2].copy_from_slice(&length.to_ne_bytes());
        message.bytes[at + 2..at + 4].copy_from_slice(&kind.to_ne_bytes());
        message
    }

    /// The bytes of the complete message.
    pub(crate) fn finish(mut self, sequence: u32) -> Vec<u8> {
        let length = self.bytes.len() as u32;
        self.bytes[..4].copy_from_slice(&length.to_ne_bytes());
        self.bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.bytes
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGNMENT), 0);
    }
}

/// A received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Received<'a> {
    pub(crate) kind: u16,
    pub(crate) sequence: u32,
    /// The bytes after the header.
    pub(crate) body: &'a [u8],
}

/// The messages in the bytes of one read; the iterator ends at the first truncated message.
pub(crate) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Received<'_>> {
    std::iter::from_fn(move || {
        let length = u32_at(bytes, 0)? as usize;
        let message = bytes.get(..length).filter(|_| length >= HEADER)?;
        bytes = bytes.get(length.next_multiple_of(ALIGNMENT)..).unwrap_or_default();
        let kind = u16_at(message, 4)?;
        Some(Received { kind, sequence: u32_at(message, 8)?, body: message.get(HEADER..)? })
    })
}

/// The attributes in these bytes; the iterator ends at the first truncated attribute.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(bytes, 0)?);
        let value = bytes.get(4..length)?;
        // The two highest bits are flags of the value's encoding.
        let kind = u16_at(bytes, 2)? & 0x3fff;
        bytes = bytes.get(length.next_multiple_of(ALIGNMENT)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The value of the first attribute of that type.
pub(crate) fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(found, _)| *found == kind).map(|(_, value)| value)
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_netlink_message_is_read_back() {
        let inner = |message: Message| message.attribute(7, &[1, 2, 3]).text(8, "ab");
        let bytes = Message::new(36, ASK, &[9; 4]).nested(2, inner).attribute(3, &[]).finish(5);
        let read: Vec<_> = messages(&bytes).collect();
        assert_eq!(read.len(), 1);
        assert_eq!((read[0].kind, read[0].sequence, &read[0].body[..4]), (36, 5, &[9; 4][..]));
        let outer: Vec<_> = attributes(&read[0].body[4..]).collect();
        assert_eq!(outer.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(attribute(outer[0].1, 7), Some(&[1, 2, 3][..]));
        assert_eq!(attribute(outer[0].1, 8), Some(&b"ab\0"[..]));
    }

    #[test]
    fn reading_ends_at_a_truncated_message_or_a_wrong_length() {
        let one = Message::new(1, ASK, &[1, 2, 3, 4]).attribute(1, &[1; 9]).finish(1);
        let two = [one.clone(), one.clone()].concat();
        assert_eq!(messages(&two).count(), 2);
        for end in 0..two.len() {
            assert!(messages(&two[..end]).count() < 2);
            assert!(attributes(&two[..end]).count() < 20);
        }
        for length in [0, 3, 15, u32::MAX] {
            let mut wrong = one.clone();
            wrong[..4].copy_from_slice(&length.to_ne_bytes());
            assert_eq!(messages(&wrong).count(), 0, "{length}");
        }
        for length in [0_u16, 3, 200] {
            assert_eq!(attributes(&[&length.to_ne_bytes()[..], &[0; 6]].concat()).count(), 0);
        }
    }
}
