//! One connection of the generator: a non-blocking stream (plain or with TLS), the bytes that wait
//! for writing, and the received part of a frame.

use channel::{CloseReason, TlsStream};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};

/// The number of waiting output bytes at which the generator stops reading from a connection: a
/// peer that sends requests and never reads must not use up the generator's memory.
const STOP_READING_AT: usize = 1 << 20;

/// The result of a write.
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
    tls: Option<Box<TlsStream>>,
    /// Bytes to write; the first `written` bytes are already written.
    pub(crate) out: Vec<u8>,
    written: usize,
    /// The beginning of a frame whose rest has not arrived yet.
    partial: Vec<u8>,
    /// Whether the socket was full at the last write.
    pub(crate) blocked: bool,
    /// The reason why TLS ended the connection.
    failure: Option<CloseReason>,
}

impl Conn {
    pub(crate) fn new(
        stream: TcpStream,
        nodelay: bool,
        tls: Option<TlsStream>,
    ) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(nodelay)?;
        Ok(Self {
            stream,
            tls: tls.map(Box::new),
            out: Vec::new(),
            written: 0,
            partial: Vec::new(),
            blocked: false,
            failure: None,
        })
    }

    pub(crate) fn unsent(&self) -> usize {
        self.out.len() - self.written
    }

    pub(crate) fn may_read(&self) -> bool {
        self.unsent() < STOP_READING_AT
    }

    /// Whether reads return whole TLS records. A read with a small limit would then leave bytes
    /// where no poll reports the bytes.
    pub(crate) fn reads_records(&self) -> bool {
        self.tls.is_some()
    }

    /// The TLS error, if TLS ended the connection.
    pub(crate) fn failure(&self) -> Option<&CloseReason> {
        self.failure.as_ref()
    }

    /// Writes the waiting bytes, with one call in the normal case.
    pub(crate) fn flush(&mut self) -> Flushed {
        let flushed = if self.tls.is_some() { self.flush_tls() } else { self.flush_plain() };
        self.blocked = flushed == Flushed::Blocked;
        match flushed {
            Flushed::All => {
                self.out.clear();
                self.written = 0;
            }
            Flushed::Blocked => self.forget_written(),
            Flushed::Closed => {}
        }
        flushed
    }

    fn flush_plain(&mut self) -> Flushed {
        while let Some(rest) = self.out.get(self.written..).filter(|rest| !rest.is_empty()) {
            match self.stream.write(rest) {
                Ok(0) => return Flushed::Closed,
                Ok(count) => self.written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Flushed::Blocked,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Flushed::Closed,
            }
        }
        Flushed::All
    }

    fn flush_tls(&mut self) -> Flushed {
        let Some(tls) = &mut self.tls else { return Flushed::All };
        loop {
            let rest = self.out.get(self.written..).unwrap_or_default();
            let step = tls.encrypt(rest).and_then(|count| {
                self.written += count;
                tls.write_records(&mut self.stream)
            });
            match step {
                Ok(false) => return Flushed::Blocked,
                // The bytes that rustls keeps until the end of the handshake have a bound, too.
                Ok(true) if tls.is_handshaking() && self.written < self.out.len() => {
                    return Flushed::Blocked;
                }
                Ok(true) if self.written == self.out.len() => return Flushed::All,
                Ok(true) => {}
                Err(reason) => {
                    self.failure = Some(reason);
                    return Flushed::Closed;
                }
            }
        }
    }

    fn forget_written(&mut self) {
        if self.written > 64 * 1024 {
            self.out.drain(..self.written);
            self.written = 0;
        }
    }

    /// Reads once, at most `limit` bytes, into `scratch` after the kept part of an earlier frame.
    /// Returns the number of filled bytes of `scratch`: 0 if no bytes have arrived, `None` at the
    /// end of the connection.
    pub(crate) fn read(&mut self, scratch: &mut [u8], limit: usize) -> Option<usize> {
        let held = self.partial.len();
        scratch.get_mut(..held)?.copy_from_slice(&self.partial);
        let end = scratch.len().min(held + limit);
        let room = scratch.get_mut(held..end)?;
        let count = match &mut self.tls {
            Some(tls) => match tls.read(&mut self.stream, room) {
                Ok(count) => count,
                Err(reason) => {
                    self.failure = Some(reason);
                    return None;
                }
            },
            None => read_plain(&mut self.stream, room)?,
        };
        match count {
            Some(0) => None,
            Some(count) => {
                self.partial.clear();
                Some(held + count)
            }
            None => Some(0),
        }
    }

    /// Keeps the beginning of a frame for the next [`Conn::read`].
    pub(crate) fn keep(&mut self, partial: &[u8]) {
        self.partial.extend_from_slice(partial);
    }
}

/// Returns `Some(None)` if no bytes have arrived, `Some(Some(0))` at the end, and `None` if the
/// socket failed.
fn read_plain(stream: &mut TcpStream, room: &mut [u8]) -> Option<Option<usize>> {
    loop {
        match stream.read(room) {
            Ok(count) => return Some(Some(count)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Some(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        if let Some(tls) = self.tls.as_mut().filter(|_| self.failure.is_none()) {
            // The peer can then distinguish a regular end from a lost connection, unless the socket
            // is full.
            tls.finish();
            let _ = tls.write_records(&mut self.stream);
        }
    }
}

impl AsFd for Conn {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
