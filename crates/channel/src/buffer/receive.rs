//! What has been read and not yet taken.

use super::pool;

/// A run of received bytes with room behind it, in a block borrowed from the thread's pool.
#[derive(Debug, Default)]
pub(crate) struct ReceiveBuffer {
    block: Box<[u8]>,
    start: usize,
    end: usize,
}

impl ReceiveBuffer {
    /// Bytes received and not taken.
    pub(crate) fn filled(&self) -> &[u8] {
        self.block.get(self.start..self.end).unwrap_or_default()
    }

    pub(crate) fn len(&self) -> usize {
        self.end - self.start
    }

    /// Memory held, in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.block.len()
    }

    /// At least `want` bytes of room to read into.
    pub(crate) fn spare(&mut self, want: usize) -> &mut [u8] {
        if self.block.len() - self.end < want {
            let len = self.len();
            if self.block.len() - len >= want {
                self.block.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, len);
            } else {
                self.move_to(pool::take_block(len + want));
            }
        }
        self.block.get_mut(self.end..).unwrap_or_default()
    }

    /// Counts `n` bytes of [`spare`](Self::spare) as received.
    pub(crate) fn fill(&mut self, n: usize) {
        self.end = (self.end + n).min(self.block.len());
    }

    /// Takes the first `n` bytes. They stay in place until the next call that changes the buffer.
    pub(crate) fn take(&mut self, n: usize) -> &mut [u8] {
        let from = self.start;
        self.start = (from + n).min(self.end);
        self.block.get_mut(from..self.start).unwrap_or_default()
    }

    /// Gives back what the bytes held do not need: everything when there are none.
    pub(crate) fn trim(&mut self) {
        let len = self.len();
        if len == 0 {
            pool::give_block(std::mem::take(&mut self.block));
            (self.start, self.end) = (0, 0);
        } else if pool::block_size(len) < self.block.len() {
            self.move_to(pool::take_block(len));
        }
    }

    fn move_to(&mut self, mut block: Box<[u8]>) {
        let len = self.len();
        if let Some(target) = block.get_mut(..len) {
            target.copy_from_slice(self.filled());
        }
        pool::give_block(std::mem::replace(&mut self.block, block));
        (self.start, self.end) = (0, len);
    }
}

impl Drop for ReceiveBuffer {
    fn drop(&mut self) {
        pool::give_block(std::mem::take(&mut self.block));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(buffer: &mut ReceiveBuffer, bytes: &[u8]) {
        buffer.spare(bytes.len())[..bytes.len()].copy_from_slice(bytes);
        buffer.fill(bytes.len());
    }

    #[test]
    fn received_bytes_stay_in_order_when_the_buffer_grows_or_is_trimmed() {
        let mut buffer = ReceiveBuffer::default();
        let mut expected = Vec::new();
        for step in 0..5_000_usize {
            let piece: Vec<u8> = (0..step % 97).map(|i| (i * step) as u8).collect();
            push(&mut buffer, &piece);
            expected.extend_from_slice(&piece);
            let n = (step % 89).min(expected.len());
            assert_eq!(buffer.take(n), &expected[..n]);
            expected.drain(..n);
            if step % 5 == 0 {
                buffer.trim();
            }
            assert_eq!(buffer.filled(), expected);
        }
        assert!(buffer.len() > 10_000, "the run must have made the buffer grow");
    }

    #[test]
    fn an_empty_buffer_uses_no_memory_and_a_few_bytes_use_one_page() {
        let mut buffer = ReceiveBuffer::default();
        assert_eq!(buffer.capacity(), 0);
        push(&mut buffer, &[1; 100_000]);
        assert_eq!(buffer.capacity(), 128 << 10);
        buffer.take(99_990);
        buffer.trim();
        assert_eq!((buffer.filled(), buffer.capacity()), (&[1; 10][..], pool::SMALLEST));
        buffer.take(10);
        buffer.trim();
        assert_eq!(buffer.capacity(), 0);
    }
}
