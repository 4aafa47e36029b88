//! Bytes on their way to one peer.

use alloc::vec::Vec;
use core::cell::Cell;

/// A bounded run of messages that the driver takes from the front.
#[derive(Debug)]
pub struct Outbox {
    bytes: Vec<u8>,
    head: usize,
    /// The outbox is full with this number of bytes.
    limit: usize,
    /// Where the first message begins of which the driver has not taken a byte.
    boundary: usize,
    counted: Cell<Counted>,
}

/// The messages that are counted. Each message is counted once: millions of messages may wait for a controller that
/// does not read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counted {
    /// Where the first message begins that is not counted.
    to: usize,
    /// The number of messages from `Outbox::boundary` to there.
    messages: usize,
}

/// Capacity that an empty outbox keeps.
const KEEP: usize = 64 * 1024;

impl Default for Outbox {
    /// An outbox without a limit of its own.
    fn default() -> Self {
        Outbox::bounded(usize::MAX)
    }
}

impl Outbox {
    /// An outbox that is full with this number of bytes.
    pub(crate) fn bounded(limit: usize) -> Outbox {
        Outbox { bytes: Vec::new(), head: 0, limit, boundary: 0, counted: Cell::default() }
    }

    /// Whether the outbox is full.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.len() >= self.limit
    }

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
            self.boundary = 0;
            self.counted.take();
            if self.bytes.capacity() > KEEP {
                self.bytes.shrink_to(KEEP);
            }
            return;
        }
        let mut taken = 0;
        while self.boundary < self.head
            && let Some(length) = self.length_at(self.boundary)
        {
            self.boundary += length;
            taken += 1;
        }
        let counted = self.counted.get_mut();
        *counted = match self.boundary <= counted.to {
            true => Counted { messages: counted.messages.saturating_sub(taken), ..*counted },
            false => Counted { to: self.boundary, messages: 0 },
        };
        if self.head > KEEP && self.head > self.bytes.len() / 2 {
            self.bytes.drain(..self.head);
            self.boundary = self.boundary.saturating_sub(self.head);
            let counted = self.counted.get_mut();
            counted.to = counted.to.saturating_sub(self.head);
            self.head = 0;
        }
    }

    /// The number of whole messages that wait. The call counts the messages that were added since the last call.
    pub fn messages(&self) -> usize {
        let Counted { mut to, mut messages } = self.counted.get();
        while let Some(length) = self.length_at(to) {
            to += length;
            messages += 1;
        }
        self.counted.set(Counted { to, messages });
        messages
    }

    fn length_at(&self, at: usize) -> Option<usize> {
        openflow::frame::next(self.bytes.get(at..)?).ok()?
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.consume(usize::MAX - self.head);
    }

    /// The bytes from `start` (counted from the front) to the end.
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

    /// A message with this xid and this length.
    fn message(xid: u32, length: u16) -> Vec<u8> {
        let mut bytes = alloc::vec![1, 2];
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(&xid.to_be_bytes());
        bytes.resize(usize::from(length), 0);
        bytes
    }

    #[test]
    fn the_outbox_keeps_the_order_of_bytes_and_counts_messages() {
        let mut outbox = Outbox::default();
        let mut expected = Vec::new();
        let mut got = Vec::new();
        for i in 0..50_000u32 {
            let message = message(i, 8 + (i % 5) as u16);
            outbox.end().extend_from_slice(&message);
            expected.extend_from_slice(&message);
            if i % 3 == 0 {
                let n = outbox.len().min(9);
                got.extend_from_slice(&outbox.as_slice()[..n]);
                outbox.consume(n);
            }
            // The test counts only from time to time. So the outbox consumes some messages before it counts them, and
            // other messages after it has counted them.
            if i % 4_001 == 0 {
                let counted = outbox.messages();
                assert_eq!(
                    outbox.counted.get(),
                    Counted { to: outbox.bytes.len(), messages: counted }
                );
                outbox.counted.set(Counted { to: outbox.boundary, messages: 0 });
                assert_eq!(outbox.messages(), counted, "counted again from the front");
            }
        }
        let mut begun = 0;
        let mut at = 0;
        while at < got.len() {
            at += 8 + begun % 5;
            begun += 1;
        }
        assert_eq!(outbox.messages(), 50_000 - begun);
        got.extend_from_slice(outbox.as_slice());
        outbox.clear();
        assert_eq!(got, expected);
        assert!(outbox.is_empty());
        assert_eq!(outbox.messages(), 0);
        assert!(outbox.bytes.capacity() <= KEEP);
    }
}
