//! An in-memory transport: two ends of a bounded, non-blocking byte pipe, for tests of protocols
//! without sockets, clocks or threads.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Two connected ends, each of which takes up to `capacity` bytes before its writer gets
/// [`WouldBlock`](io::ErrorKind::WouldBlock).
pub fn pair(capacity: usize) -> (MemoryStream, MemoryStream) {
    let there = Arc::new(Mutex::new(Pipe::new(capacity)));
    let back = Arc::new(Mutex::new(Pipe::new(capacity)));
    let left = MemoryStream { incoming: back.clone(), outgoing: there.clone() };
    let right = MemoryStream { incoming: there, outgoing: back };
    (left, right)
}

/// One end of a [`pair`]. Dropping it closes both directions.
#[derive(Debug)]
pub struct MemoryStream {
    incoming: Arc<Mutex<Pipe>>,
    outgoing: Arc<Mutex<Pipe>>,
}

#[derive(Debug)]
struct Pipe {
    bytes: VecDeque<u8>,
    capacity: usize,
    /// No more will be written.
    finished: bool,
    /// Nobody will read.
    abandoned: bool,
}

impl Pipe {
    fn new(capacity: usize) -> Self {
        Pipe { bytes: VecDeque::new(), capacity, finished: false, abandoned: false }
    }
}

impl MemoryStream {
    /// Half-close: the other end reads what is in the pipe, then end of file.
    pub fn finish(&mut self) {
        lock(&self.outgoing).finished = true;
    }

    /// Changes how much the direction towards the other end holds; what is in stays.
    pub fn set_capacity(&mut self, capacity: usize) {
        lock(&self.outgoing).capacity = capacity;
    }
}

impl Read for MemoryStream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut pipe = lock(&self.incoming);
        if pipe.bytes.is_empty() && !pipe.finished && !out.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        pipe.bytes.read(out)
    }
}

impl Write for MemoryStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut pipe = lock(&self.outgoing);
        if pipe.abandoned || pipe.finished {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let room = pipe.capacity.saturating_sub(pipe.bytes.len());
        let taken = bytes.get(..room).unwrap_or(bytes);
        if taken.is_empty() && !bytes.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        pipe.bytes.extend(taken);
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for MemoryStream {
    fn drop(&mut self) {
        self.finish();
        lock(&self.incoming).abandoned = true;
    }
}

/// A pipe is consistent after every statement, so a panic elsewhere does not spoil it.
fn lock(pipe: &Mutex<Pipe>) -> MutexGuard<'_, Pipe> {
    pipe.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind<T: std::fmt::Debug>(result: io::Result<T>) -> io::ErrorKind {
        result.unwrap_err().kind()
    }

    #[test]
    fn an_in_memory_pair_behaves_like_a_non_blocking_socket() {
        let (mut left, mut right) = pair(4);
        let mut out = [0; 8];
        assert_eq!(kind(right.read(&mut out)), io::ErrorKind::WouldBlock);
        assert_eq!(left.write(b"abcdef").unwrap(), 4);
        assert_eq!(kind(left.write(b"ef")), io::ErrorKind::WouldBlock);
        assert_eq!(right.read(&mut out).unwrap(), 4);
        assert_eq!(&out[..4], b"abcd");
        assert_eq!(left.write(b"ef").unwrap(), 2);
        left.finish();
        assert_eq!(right.read(&mut out).unwrap(), 2);
        assert_eq!(right.read(&mut out).unwrap(), 0);
        assert_eq!(right.write(b"back").unwrap(), 4, "half-closed the other way only");
        drop(right);
        assert_eq!(left.read(&mut out).unwrap(), 4);
        assert_eq!(left.read(&mut out).unwrap(), 0);
        assert_eq!(kind(left.write(b"x")), io::ErrorKind::BrokenPipe);
    }
}
