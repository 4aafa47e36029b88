//! Bytes on their way to one peer.

use alloc::vec::Vec;

/// A bounded run of messages that the driver takes from the front.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    head: usize,
}

/// Capacity that an empty outbox may keep.
const KEEP: usize = 64 * 1024;

impl Outbox {
    /// What waits to be written.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[self.head..]
    }

    /// Bytes that wait to be written.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.head
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first `n` bytes have been written.
    pub fn consume(&mut self, n: usize) {
        self.head = (self.head + n).min(self.bytes.len());
        if self.head == self.bytes.len() {
            self.bytes.clear();
            self.head = 0;
            if self.bytes.capacity() > KEEP {
                self.bytes.shrink_to(KEEP);
            }
        } else if self.head > KEEP && self.head > self.bytes.len() / 2 {
            self.bytes.drain(..self.head);
            self.head = 0;
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.consume(usize::MAX - self.head);
    }

    /// What stands from `start` (counted from the front) to the end.
    pub(crate) fn tail(&mut self, start: usize) -> &mut [u8] {
        let start = (self.head + start).min(self.bytes.len());
        &mut self.bytes[start..]
    }

    /// The end of the run, to append whole messages to.
    pub(crate) fn end(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_as_they_went_in() {
        let mut outbox = Outbox::default();
        let mut expected = Vec::new();
        let mut got = Vec::new();
        for i in 0..200_000u32 {
            outbox.end().extend_from_slice(&i.to_be_bytes());
            expected.extend_from_slice(&i.to_be_bytes());
            if i % 3 == 0 {
                let n = outbox.len().min(9);
                got.extend_from_slice(&outbox.as_slice()[..n]);
                outbox.consume(n);
            }
        }
        got.extend_from_slice(outbox.as_slice());
        outbox.clear();
        assert_eq!(got, expected);
        assert!(outbox.is_empty());
        assert!(outbox.bytes.capacity() <= KEEP);
    }
}
