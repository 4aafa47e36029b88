//! One connection of the generator: a non-blocking stream, what is not yet written, and the part
//! of a frame that was read.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};

/// A connection stops being read when this much waits to be written to it: a peer that asks and
/// never reads must not make the generator grow.
const STOP_READING_AT: usize = 1 << 20;

/// What a write came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flushed {
    All,
    Blocked,
    Closed,
}

/// A connection to the system under test, or straight to the other end.
#[derive(Debug)]
pub(crate) struct Conn {
    stream: TcpStream,
    /// Bytes to write; the first `written` of them are.
    pub(crate) out: Vec<u8>,
    written: usize,
    /// The beginning of a frame whose rest is still to come.
    partial: Vec<u8>,
    /// The socket took no more at the last write.
    pub(crate) blocked: bool,
}

impl Conn {
    pub(crate) fn new(stream: TcpStream, nodelay: bool) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(nodelay)?;
        Ok(Self { stream, out: Vec::new(), written: 0, partial: Vec::new(), blocked: false })
    }

    pub(crate) fn unsent(&self) -> usize {
        self.out.len() - self.written
    }

    pub(crate) fn may_read(&self) -> bool {
        self.unsent() < STOP_READING_AT
    }

    /// Writes what waits, with one call in the normal case.
    pub(crate) fn flush(&mut self) -> Flushed {
        while let Some(rest) = self.out.get(self.written..).filter(|rest| !rest.is_empty()) {
            match self.stream.write(rest) {
                Ok(0) => return Flushed::Closed,
                Ok(count) => self.written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.blocked = true;
                    self.forget_written();
                    return Flushed::Blocked;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Flushed::Closed,
            }
        }
        self.out.clear();
        self.written = 0;
        self.blocked = false;
        Flushed::All
    }

    fn forget_written(&mut self) {
        if self.written > 64 * 1024 {
            self.out.drain(..self.written);
            self.written = 0;
        }
    }

    /// Reads once, at most `limit` bytes, into `scratch` behind what is left of an earlier frame.
    /// The answer is how many bytes of `scratch` are filled, 0 when nothing has come; `None` is the
    /// end.
    pub(crate) fn read(&mut self, scratch: &mut [u8], limit: usize) -> Option<usize> {
        let held = self.partial.len();
        scratch.get_mut(..held)?.copy_from_slice(&self.partial);
        let end = scratch.len().min(held + limit);
        let room = scratch.get_mut(held..end)?;
        loop {
            match self.stream.read(room) {
                Ok(0) => return None,
                Ok(count) => {
                    self.partial.clear();
                    return Some(held + count);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Some(0),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }

    /// Keeps the beginning of a frame for the next [`Conn::read`].
    pub(crate) fn keep(&mut self, partial: &[u8]) {
        self.partial.extend_from_slice(partial);
    }
}

impl AsFd for Conn {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
