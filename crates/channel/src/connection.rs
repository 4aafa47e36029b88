//! One non-blocking connection that carries OpenFlow frames.
//!
//! ```text
//! socket ──receive──▶ [receive buffer] ──next_frame──▶ caller
//! socket ◀───flush─── [send buffer]    ◀──────push──── caller
//! ```
//!
//! The rules for a driver are few:
//! 1. When the socket is readable, call [`receive`](Connection::receive) with the budget of this
//!    turn, then take frames with [`next_frame`](Connection::next_frame) for as long as there is
//!    somewhere to put what they cause. Frames left inside wait; that is back-pressure.
//! 2. As long as `receive` says [`ReadState::More`], or frames were left inside, come back without
//!    waiting for the socket: it reports a change only once (edge-triggered).
//! 3. After a turn, and when the socket is writable, call [`flush`](Connection::flush) if
//!    [`wants_write`](Connection::wants_write): one write carries all that the turn produced.

use std::any::Any;
use std::fmt;
use std::io::{self, Write};
use std::net::SocketAddr;

use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use openflow::{FrameError, frame};

use crate::buffer::{ReceiveBuffer, SendBuffer};
use crate::memory::MemoryStream;
use crate::socket::Socket;
use crate::tls::{Tls, TlsStream};
use crate::{Address, CloseReason, Error, Options, PeerCertificate, Readiness, Scheme};

/// A stream of frames in both directions: plain TCP, TLS over TCP, within the process, or in memory.
pub struct Connection {
    socket: Socket,
    tls: Option<Box<TlsStream>>,
    incoming: ReceiveBuffer,
    outgoing: SendBuffer,
    receive_limit: usize,
    /// See [`Options::acknowledge_reads`].
    acknowledge_reads: bool,
    /// Dialled, and not known to be connected yet.
    connecting: bool,
    /// The first bytes have been checked for a TLS hello on a plain endpoint.
    greeted: bool,
    /// A read that returns less than it could has emptied the socket.
    short_read_drains: bool,
    /// Why nothing more can be read.
    closed: Option<CloseReason>,
    /// Why nothing more can be written. What the peer sent before may still be there to read.
    broken: Option<CloseReason>,
    counters: Counters,
    /// What lives as long as the connection.
    held: Vec<Box<dyn Any + Send + Sync>>,
}

/// What [`Connection::receive`] did.
#[derive(Debug, Clone, PartialEq)]
pub struct Received {
    /// Bytes read now.
    pub bytes: usize,
    /// What to expect of the next call.
    pub state: ReadState,
}

/// What is known about bytes that have not been read.
#[derive(Debug, Clone, PartialEq)]
pub enum ReadState {
    /// The budget, or the receive buffer, was used up; there may be more. Call again after taking
    /// frames; no event will remind you.
    More,
    /// Nothing is left to read; an event comes when there is more.
    Drained,
    /// Nothing will ever come. Complete frames received before are still there to be taken.
    Closed(CloseReason),
}

/// What [`Connection::flush`] left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flushed {
    /// All is written.
    Empty,
    /// The socket takes no more now (or is still connecting, or in the TLS handshake); an event
    /// comes when it takes more.
    Blocked,
}

/// Totals of one connection. With frames counted by the caller they give messages per read and
/// per write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes of frames received (under TLS: decrypted).
    pub received_bytes: u64,
    /// Bytes of frames written (under TLS: handed to encryption).
    pub sent_bytes: u64,
    /// Reads that returned bytes.
    pub reads: u64,
    /// Writes that took bytes.
    pub writes: u64,
}

impl Connection {
    /// Takes over an accepted TCP stream; with `tls`, as the TLS server.
    pub fn accepted(
        stream: TcpStream,
        tls: Option<&Tls>,
        options: &Options,
    ) -> Result<Self, Error> {
        let tls = tls.map(TlsStream::accept).transpose()?;
        options.apply(&stream)?;
        Ok(Self::new(Socket::Tcp(stream), tls, options))
    }

    /// Starts to connect and returns at once. Bytes can be put in the send buffer immediately;
    /// they leave when the connection stands. Failure appears as
    /// [`CloseReason::ConnectFailed`] on the next [`receive`](Self::receive) or
    /// [`flush`](Self::flush).
    pub fn dial(address: &Address, tls: Option<&Tls>, options: &Options) -> Result<Self, Error> {
        let tls = Tls::for_address(address, tls)?;
        let tls = tls.map(|tls| TlsStream::connect(tls, address.addr)).transpose()?;
        let stream = TcpStream::connect(address.addr)
            .map_err(|error| Error::io(format!("connect to {address}"), error))?;
        options.apply(&stream)?;
        let mut connection = Self::new(Socket::Tcp(stream), tls, options);
        connection.connecting = true;
        Ok(connection)
    }

    /// A connection over one end of a [`memory::pair`](crate::memory::pair).
    pub fn in_memory(stream: MemoryStream, options: &Options) -> Self {
        Self::new(Socket::Memory(stream), None, options)
    }

    /// Both ends of a connection within the process, which event loops can watch, also different ones. How much it
    /// holds is bounded by the kernel.
    pub fn local_pair(options: &Options) -> Result<(Self, Self), Error> {
        let pair = UnixStream::pair();
        let (a, b) = pair.map_err(|error| Error::io("make a pair of sockets", error))?;
        let end = |stream| Self::new(Socket::Local(stream), None, options);
        Ok((end(a), end(b)))
    }

    pub(crate) fn new(socket: Socket, tls: Option<TlsStream>, options: &Options) -> Self {
        Connection {
            socket,
            greeted: tls.is_some(),
            tls: tls.map(Box::new),
            incoming: ReceiveBuffer::default(),
            outgoing: SendBuffer::new(options.send_buffer),
            receive_limit: options.receive_buffer.max(LARGEST_FRAME),
            acknowledge_reads: options.acknowledge_reads,
            connecting: false,
            short_read_drains: false,
            closed: None,
            broken: None,
            counters: Counters::default(),
            held: Vec::new(),
        }
    }

    /// Keeps something for as long as the connection is there, say the permit for it.
    pub fn hold(&mut self, what: impl Send + Sync + 'static) {
        self.held.push(Box::new(what));
    }

    /// Reads at most `limit` bytes into the receive buffer, and never more than the buffer's own
    /// bound ([`Options::receive_buffer`]) leaves room for.
    pub fn receive(&mut self, limit: usize) -> Received {
        let mut bytes = 0;
        let state = loop {
            if let Some(reason) = &self.closed {
                break ReadState::Closed(reason.clone());
            }
            let room = self.receive_limit.saturating_sub(self.incoming.len()).min(limit - bytes);
            if room == 0 {
                break ReadState::More;
            }
            match self.read(room) {
                // A broken connection gets nothing new, and raises no event.
                Ok(None) if self.broken.is_some() => self.closed = self.broken.clone(),
                Ok(None) => break ReadState::Drained,
                Ok(Some(0)) => {
                    self.closed = self.broken.clone().or(Some(CloseReason::PeerClosed));
                }
                Ok(Some(n)) => {
                    bytes += n;
                    if n < room && self.short_read_drains {
                        break ReadState::Drained;
                    }
                }
                Err(reason) => {
                    self.closed = Some(reason);
                    self.outgoing.clear();
                }
            }
        };
        if self.incoming.len() == 0 {
            self.incoming.trim();
        }
        Received { bytes, state }
    }

    /// Takes the next complete frame out of the receive buffer, for reading or for editing in
    /// place. `None` if the rest is not a whole frame yet.
    ///
    /// An error means that the stream cannot be followed any further, since nobody knows where
    /// the next frame starts; it is repeated on every call.
    pub fn next_frame(&mut self) -> Result<Option<&mut [u8]>, FrameError> {
        match frame::next(self.incoming.filled())? {
            Some(length) => Ok(Some(self.incoming.take(length))),
            None => {
                self.incoming.trim();
                Ok(None)
            }
        }
    }

    /// The frame that [`next_frame`](Self::next_frame) will take.
    pub fn peek_frame(&self) -> Result<Option<&[u8]>, FrameError> {
        let filled = self.incoming.filled();
        Ok(frame::next(filled)?.and_then(|length| filled.get(..length)))
    }

    /// Bytes received and not taken: whole frames, and the part of one. After `next_frame` said
    /// `None`, more than zero means in mid-frame.
    pub fn pending_bytes(&self) -> usize {
        self.incoming.len()
    }

    /// Shrinks the receive buffer to what it holds. Worth calling when frames are left inside for
    /// long; [`next_frame`](Self::next_frame) does it by itself when it runs out.
    pub fn trim(&mut self) {
        self.incoming.trim();
    }

    /// The frames waiting to be written; append here.
    pub fn send_buffer(&mut self) -> &mut SendBuffer {
        &mut self.outgoing
    }

    /// Shorthand for `send_buffer().push(frame)`.
    pub fn push(&mut self, frame: &[u8]) -> Result<(), crate::Full> {
        self.outgoing.push(frame)
    }

    /// Bytes of frames that have not been written.
    pub fn unsent_bytes(&self) -> usize {
        self.outgoing.len()
    }

    /// True if [`flush`](Self::flush) has something to do.
    pub fn wants_write(&self) -> bool {
        !self.outgoing.is_empty() || self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Writes what waits, normally in one write. It works on after the peer's half-close
    /// ([`CloseReason::PeerClosed`]); any other end is returned here, and again on each call. Then
    /// [`receive`](Self::receive) still gives what the peer sent before it went away.
    pub fn flush(&mut self) -> Result<Flushed, CloseReason> {
        match (&self.broken, &self.closed) {
            (None, None | Some(CloseReason::PeerClosed)) => {}
            (Some(reason), _) | (None, Some(reason)) => return Err(reason.clone()),
        }
        let result = match self.tls.is_some() {
            true => self.flush_tls(),
            false => self.flush_plain(),
        };
        if result == Ok(Flushed::Blocked) {
            self.outgoing.trim();
        }
        result.map_err(|reason| self.fail(reason))
    }

    /// Says goodbye: writes what the socket takes, then closes our direction (under TLS with
    /// close_notify). The peer's frames can still be received.
    pub fn finish(&mut self) {
        let _ = self.flush();
        if let Some(tls) = &mut self.tls {
            tls.finish();
            let _ = tls.write_records(&mut self.socket);
        }
        self.socket.finish();
    }

    /// True once a dialled connection stands (under TLS: the TCP connection, see
    /// [`is_tls_handshaking`](Self::is_tls_handshaking)); accepted ones always do.
    pub fn is_connected(&mut self) -> bool {
        if self.connecting && self.peer_address().is_some() {
            self.connecting = false;
        }
        !self.connecting
    }

    /// True while the TLS handshake runs. Nothing in the send buffer leaves before its end.
    pub fn is_tls_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    /// The certificate that the peer has shown and whose key it has; `None` without TLS, and before its handshake is
    /// over.
    pub fn peer_certificate(&self) -> Option<PeerCertificate> {
        self.tls.as_ref()?.peer_certificate()
    }

    /// Plain TCP (or memory) or TLS.
    pub fn scheme(&self) -> Scheme {
        if self.tls.is_some() { Scheme::Ssl } else { Scheme::Tcp }
    }

    /// Why the connection is over, in both directions or (after
    /// [`PeerClosed`](CloseReason::PeerClosed)) in the peer's, if it is.
    pub fn closed(&self) -> Option<&CloseReason> {
        self.broken.as_ref().or(self.closed.as_ref())
    }

    /// The peer's address; `None` in memory, while connecting, and after a reset.
    pub fn peer_address(&self) -> Option<SocketAddr> {
        self.socket.tcp()?.peer_addr().ok()
    }

    /// Our own address; `None` in memory.
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.socket.tcp()?.local_addr().ok()
    }

    /// Totals so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Memory held in buffers, in bytes (without the kernel's and rustls' own).
    pub fn memory(&self) -> usize {
        self.incoming.capacity() + self.outgoing.capacity()
    }

    /// Gives the connection an event, which saves [`receive`](Self::receive) the read that
    /// would only say "nothing left". Optional; without it every `receive` reads to the end.
    ///
    /// Why this is sound (epoll(7), "edge-triggered"): a short read has emptied a stream socket.
    /// What may be hidden behind it is an end that came together with the bytes, and such an
    /// event says [`read_closed`](Readiness::read_closed); an end that comes later makes a new
    /// event.
    pub fn note(&mut self, readiness: &Readiness) {
        self.short_read_drains =
            !readiness.read_closed && self.tls.is_none() && self.socket.tcp().is_some();
    }

    fn read(&mut self, room: usize) -> Result<Option<usize>, CloseReason> {
        let spare = self.incoming.spare(room);
        let out = spare.get_mut(..room).unwrap_or_default();
        let result = match &mut self.tls {
            Some(tls) => tls.read(&mut self.socket, out),
            None => self.socket.read_now(out),
        };
        match result {
            Ok(Some(n)) if n > 0 => {
                self.connecting = false;
                self.incoming.fill(n);
                self.counters.reads += 1;
                self.counters.received_bytes += n as u64;
                self.check_greeting()?;
                if self.acknowledge_reads {
                    self.socket.acknowledge();
                }
                Ok(Some(n))
            }
            Ok(other) => Ok(other),
            Err(reason) => Err(self.connect_failure(reason)),
        }
    }

    /// A TLS record on a plain connection would look like version 22 of OpenFlow, and leave both
    /// sides waiting for the rest of a long frame.
    fn check_greeting(&mut self) -> Result<(), CloseReason> {
        if self.greeted {
            return Ok(());
        }
        if let Some(first) = self.incoming.filled().first_chunk::<2>() {
            self.greeted = true;
            if is_tls(*first) {
                self.incoming.take(usize::MAX);
                return Err(CloseReason::TlsPeer);
            }
        }
        Ok(())
    }

    fn flush_plain(&mut self) -> Result<Flushed, CloseReason> {
        while !self.outgoing.is_empty() {
            match self.socket.write(self.outgoing.unwritten()) {
                Ok(0) => return Ok(Flushed::Blocked),
                Ok(n) => {
                    self.connecting = false;
                    self.sent(n);
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(Flushed::Blocked),
                    io::ErrorKind::Interrupted => {}
                    _ => return Err(CloseReason::from_io(&error)),
                },
            }
        }
        Ok(Flushed::Empty)
    }

    fn flush_tls(&mut self) -> Result<Flushed, CloseReason> {
        loop {
            let Some(tls) = &mut self.tls else { return Ok(Flushed::Empty) };
            if !tls.write_records(&mut self.socket)? {
                return Ok(Flushed::Blocked);
            }
            if self.outgoing.is_empty() {
                return Ok(Flushed::Empty);
            }
            // Before the end of the handshake rustls would only hoard the bytes, uncounted.
            if tls.is_handshaking() {
                return Ok(Flushed::Blocked);
            }
            match tls.encrypt(self.outgoing.unwritten())? {
                0 => return Ok(Flushed::Blocked),
                n => self.sent(n),
            }
        }
    }

    fn sent(&mut self, n: usize) {
        self.outgoing.advance(n);
        self.counters.writes += 1;
        self.counters.sent_bytes += n as u64;
    }

    fn fail(&mut self, reason: CloseReason) -> CloseReason {
        let reason = self.connect_failure(reason);
        self.broken = Some(reason.clone());
        self.outgoing.clear();
        reason
    }

    fn connect_failure(&self, reason: CloseReason) -> CloseReason {
        match reason {
            CloseReason::Reset(kind) | CloseReason::Io(kind) if self.connecting => {
                CloseReason::ConnectFailed(kind)
            }
            reason => reason,
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("scheme", &self.scheme())
            .field("local", &self.local_address())
            .field("peer", &self.peer_address())
            .field("pending_bytes", &self.pending_bytes())
            .field("unsent_bytes", &self.unsent_bytes())
            .field("closed", &self.closed())
            .finish_non_exhaustive()
    }
}

/// An in-memory connection raises no events: its driver polls it.
impl Source for Connection {
    fn register(
        &mut self,
        registry: &Registry,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        self.socket.pollable()?.register(registry, token, interest)
    }

    fn reregister(
        &mut self,
        registry: &Registry,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        self.socket.pollable()?.reregister(registry, token, interest)
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        self.socket.pollable()?.deregister(registry)
    }
}

/// The length field has 16 bits.
const LARGEST_FRAME: usize = u16::MAX as usize;

/// How a TLS peer begins: with a handshake record if it is a client, with an alert (0x15) if it is
/// a server that was greeted in plain OpenFlow; then the major version (RFC 8446, section 5.1).
fn is_tls(first: [u8; 2]) -> bool {
    matches!(first, [0x15 | 0x16, 0x03])
}
