//! The transports under a connection, behind one face.

use std::io::{self, Read, Write};
use std::net::Shutdown;

use mio::event::Source;
use mio::net::{TcpStream, UnixStream};

use crate::CloseReason;
use crate::memory::MemoryStream;

/// What moves the bytes.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    /// Between two event loops of one process.
    Local(UnixStream),
    Memory(MemoryStream),
}

impl Socket {
    /// The TCP stream, if it is one.
    pub(crate) fn tcp(&self) -> Option<&TcpStream> {
        match self {
            Socket::Tcp(stream) => Some(stream),
            Socket::Local(_) | Socket::Memory(_) => None,
        }
    }

    /// What the event loop can watch.
    pub(crate) fn pollable(&mut self) -> io::Result<&mut dyn Source> {
        match self {
            Socket::Tcp(stream) => Ok(stream),
            Socket::Local(stream) => Ok(stream),
            Socket::Memory(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Has the kernel acknowledge what has been read. It holds until the kernel finds the connection interactive again.
    pub(crate) fn acknowledge(&self) {
        if let Socket::Tcp(stream) = self {
            // Without it the peer only waits longer.
            let _ = rustix::net::sockopt::set_tcp_quickack(stream, true);
        }
    }

    /// Closes our direction.
    pub(crate) fn finish(&mut self) {
        match self {
            Socket::Tcp(stream) => {
                // An error means that it is closed already.
                let _ = stream.shutdown(Shutdown::Write);
            }
            Socket::Local(stream) => {
                let _ = stream.shutdown(Shutdown::Write);
            }
            Socket::Memory(stream) => stream.finish(),
        }
    }

    /// `None` if nothing is there now, `Some(0)` at the end.
    pub(crate) fn read_now(&mut self, out: &mut [u8]) -> Result<Option<usize>, CloseReason> {
        loop {
            match self.read(out) {
                Ok(n) => return Ok(Some(n)),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(None),
                    io::ErrorKind::Interrupted => {}
                    _ => return Err(CloseReason::from_io(&error)),
                },
            }
        }
    }
}

impl Read for Socket {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.read(out),
            Socket::Local(stream) => stream.read(out),
            Socket::Memory(stream) => stream.read(out),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.write(bytes),
            Socket::Local(stream) => stream.write(bytes),
            Socket::Memory(stream) => stream.write(bytes),
        }
    }

    fn write_vectored(&mut self, slices: &[io::IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.write_vectored(slices),
            Socket::Local(stream) => stream.write_vectored(slices),
            Socket::Memory(stream) => stream.write_vectored(slices),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
