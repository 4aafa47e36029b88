//! What is to be written and has not been yet.

use std::fmt;

use super::pool;

/// Frames waiting to be written, at most `limit` bytes of them.
///
/// What does not fit is refused whole and counted; what is in stays in order. The bytes are
/// written by [`Connection::flush`](crate::Connection::flush).
#[derive(Debug)]
pub struct SendBuffer {
    bytes: Vec<u8>,
    /// How many of `bytes`, from the front, have been written already.
    written: usize,
    limit: usize,
    refused_frames: u64,
    refused_bytes: u64,
}

/// The send buffer has no room for this frame; nothing of it was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the send buffer is full")
    }
}

impl std::error::Error for Full {}

impl SendBuffer {
    /// An empty buffer for at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        SendBuffer { bytes: Vec::new(), written: 0, limit, refused_frames: 0, refused_bytes: 0 }
    }

    /// Bytes waiting.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.written
    }

    /// True if nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that still fit.
    pub fn room(&self) -> usize {
        self.limit.saturating_sub(self.len())
    }

    /// The most bytes that may wait.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// How many frames were refused so far.
    pub fn refused_frames(&self) -> u64 {
        self.refused_frames
    }

    /// How many bytes were refused so far.
    pub fn refused_bytes(&self) -> u64 {
        self.refused_bytes
    }

    /// Appends one frame (or several: they are taken or refused together).
    pub fn push(&mut self, frame: &[u8]) -> Result<(), Full> {
        if frame.len() > self.room() {
            return Err(self.refuse(frame.len()));
        }
        self.make_room(frame.len());
        self.bytes.extend_from_slice(frame);
        Ok(())
    }

    /// Lets `build` append frames in place, which saves a copy. `build` must only append. What it
    /// appended is removed, and refused, if it is more than [`room`](Self::room).
    pub fn build<R>(&mut self, build: impl FnOnce(&mut Vec<u8>) -> R) -> Result<R, Full> {
        self.make_room(0);
        let before = self.bytes.len();
        let room = self.room();
        let result = build(&mut self.bytes);
        let added = self.bytes.len().saturating_sub(before);
        if added > room {
            self.bytes.truncate(before);
            return Err(self.refuse(added));
        }
        Ok(result)
    }

    /// The bytes to write next.
    pub(crate) fn unwritten(&self) -> &[u8] {
        self.bytes.get(self.written..).unwrap_or_default()
    }

    /// Counts the first `n` bytes of [`unwritten`](Self::unwritten) as written.
    pub(crate) fn advance(&mut self, n: usize) {
        self.written = (self.written + n).min(self.bytes.len());
        if self.is_empty() {
            self.clear();
        }
    }

    /// Forgets what waits, and gives the memory back.
    pub(crate) fn clear(&mut self) {
        self.written = 0;
        pool::give_vec(std::mem::take(&mut self.bytes));
    }

    /// Gives back what the waiting bytes do not need by far; for when they will wait long.
    pub(crate) fn trim(&mut self) {
        if self.bytes.capacity() > 4 * pool::block_size(self.len()) {
            let mut small = pool::take_small_vec(self.len());
            small.extend_from_slice(self.unwritten());
            pool::give_vec(std::mem::replace(&mut self.bytes, small));
            self.written = 0;
        }
    }

    /// Memory held, in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    fn refuse(&mut self, bytes: usize) -> Full {
        self.refused_frames += 1;
        self.refused_bytes += bytes as u64;
        Full
    }

    /// Makes sure that `more` bytes can be appended without outgrowing about twice the limit.
    fn make_room(&mut self, more: usize) {
        if self.bytes.capacity() == 0 {
            self.bytes = pool::take_vec(more);
        }
        // Moving the rest to the front is paid for by the bytes written since the last time.
        if self.written > 0
            && (self.bytes.capacity() - self.bytes.len() < more || self.written >= self.limit)
            && self.written >= self.len()
        {
            self.bytes.drain(..self.written);
            self.written = 0;
        }
    }
}

impl Drop for SendBuffer {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_beyond_the_buffer_limit_are_refused_whole_and_counted() {
        let mut buffer = SendBuffer::new(20);
        assert_eq!(buffer.push(&[1; 12]), Ok(()));
        assert_eq!(buffer.push(&[2; 9]), Err(Full));
        assert_eq!(buffer.push(&[3; 8]), Ok(()));
        assert_eq!(buffer.room(), 0);
        assert_eq!(buffer.build(|out| out.push(9)), Err(Full));
        assert_eq!((buffer.refused_frames(), buffer.refused_bytes()), (2, 10));
        assert_eq!(buffer.unwritten(), [[1; 12].as_slice(), &[3; 8]].concat());
    }

    #[test]
    fn build_returns_the_result_of_the_closure() {
        let mut buffer = SendBuffer::new(20);
        assert_eq!(buffer.build(|out| out.extend_from_slice(b"abc")), Ok(()));
        assert_eq!(buffer.build(|out| out.len()), Ok(3));
        assert_eq!(buffer.unwritten(), b"abc");
    }

    #[test]
    fn a_few_unsent_bytes_use_one_page_after_trim() {
        let mut buffer = SendBuffer::new(1 << 20);
        for number in 0..1000_u32 {
            buffer.push(&[number as u8; 100]).unwrap();
        }
        buffer.advance(99_950);
        buffer.trim();
        assert_eq!((buffer.unwritten(), buffer.capacity()), (&[231; 50][..], pool::SMALLEST));
        buffer.push(&[1; 10]).unwrap();
        assert_eq!(buffer.unwritten(), [&[231; 50][..], &[1; 10]].concat());
    }

    #[test]
    fn order_and_memory_bound_hold_under_partial_writes() {
        let limit = 10_000;
        let mut buffer = SendBuffer::new(limit);
        let (mut pushed, mut written) = (0_u32, 0_u32);
        for step in 0..20_000_usize {
            for _ in 0..step % 7 {
                if buffer.push(&pushed.to_be_bytes()).is_ok() {
                    pushed += 1;
                }
            }
            for chunk in buffer.unwritten().chunks_exact(4).take(step % 6) {
                assert_eq!(chunk, written.to_be_bytes());
                written += 1;
            }
            buffer.advance((step % 6 * 4).min(buffer.len()));
            assert!(buffer.len() <= limit);
            assert!(buffer.capacity() <= 4 * limit, "{} held", buffer.capacity());
        }
        assert!(written > 40_000 && buffer.refused_frames() > 0);
        buffer.advance(buffer.len());
        assert_eq!(buffer.capacity(), 0);
    }
}
