//! A client that waits, for tests and simple tools: one connection, one call at a time.

use std::time::{Duration, Instant};

use crate::{
    Address, CloseReason, Connection, Error, Established, Event, EventLoop, Flushed, Handshake,
    Listener, Options, ReadState, Step, Tls, Token,
};

/// What is read in one go.
const READ: usize = 64 << 10;

/// A [`Connection`] whose calls wait, at most for the time given when it was made.
#[derive(Debug)]
pub struct Client {
    connection: Connection,
    event_loop: EventLoop,
    token: Token,
    events: Vec<Event>,
    timeout: Duration,
}

impl Client {
    /// Connects, and under TLS shakes hands, within `timeout`, which then holds for every call.
    pub fn connect(address: &Address, tls: Option<&Tls>, timeout: Duration) -> Result<Self, Error> {
        let connection = Connection::dial(address, tls, &Options::default())?;
        let mut client = Self::new(connection, timeout)?;
        client.wait_until("the connection", |connection| {
            connection.is_connected() && !connection.is_tls_handshaking()
        })?;
        Ok(client)
    }

    /// Waits for the next connection on a listener.
    pub fn accept(listener: &mut Listener, timeout: Duration) -> Result<Self, Error> {
        let deadline = Instant::now() + timeout;
        let mut event_loop = EventLoop::new()?;
        let token = event_loop.register(listener)?;
        let mut events = Vec::new();
        let accepted = loop {
            match listener.accept() {
                Ok(None) => {}
                Ok(Some((connection, _))) => break Ok(connection),
                Err(error) => break Err(error),
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break Err(Error::TimedOut { what: "a connection to accept" });
            }
            event_loop.wait(&mut events, Some(left))?;
        };
        event_loop.deregister(token, listener)?;
        Self::new(accepted?, timeout)
    }

    /// Takes over any connection with a socket.
    pub fn new(mut connection: Connection, timeout: Duration) -> Result<Self, Error> {
        let mut event_loop = EventLoop::new()?;
        let token = event_loop.register(&mut connection)?;
        Ok(Client { connection, event_loop, token, events: Vec::new(), timeout })
    }

    /// The connection itself.
    pub fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// Gives the connection back, for another event loop; what was received and not taken is in it.
    pub fn into_connection(mut self) -> Result<Connection, Error> {
        self.event_loop.deregister(self.token, &mut self.connection)?;
        Ok(self.connection)
    }

    /// Sends bytes (one frame, several, or for a test a part of one), and waits until the kernel
    /// has them.
    pub fn send(&mut self, frame: &[u8]) -> Result<(), Error> {
        let limit = self.connection.send_buffer().limit().max(1);
        for piece in frame.chunks(limit) {
            self.wait_until("room to send", |connection| connection.unsent_bytes() == 0)?;
            // Cannot be refused: the buffer is empty, and the piece fits into it.
            let _ = self.connection.push(piece);
        }
        self.wait_until("the peer to take what is sent", |connection| {
            connection.unsent_bytes() == 0 && !connection.wants_write()
        })
    }

    /// The next frame.
    pub fn receive(&mut self) -> Result<Vec<u8>, Error> {
        self.receive_within(self.timeout)?.ok_or(Error::TimedOut { what: "a message" })
    }

    /// The next frame, or `None` if none has arrived whole within this time.
    pub fn receive_within(&mut self, timeout: Duration) -> Result<Option<Vec<u8>>, Error> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(frame) = self.connection.next_frame().map_err(Error::Frame)? {
                return Ok(Some(frame.to_vec()));
            }
            let received = self.connection.receive(READ);
            // A failure is returned by the next `receive`, after the frames that came before it.
            let _ = self.connection.flush();
            match received.state {
                _ if received.bytes > 0 => {}
                ReadState::Closed(reason) => return Err(Error::Closed(reason)),
                ReadState::More => {}
                ReadState::Drained => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Ok(None);
                    }
                    self.event_loop.wait(&mut self.events, Some(left))?;
                }
            }
        }
    }

    /// Runs a handshake to its end. Frames that are not of it (see [`Step::NotOurs`]) are dropped.
    pub fn shake_hands(&mut self, mut handshake: Handshake) -> Result<Established, Error> {
        let mut out = Vec::new();
        handshake.start(&mut out);
        self.send(&out)?;
        loop {
            let frame = self.receive()?;
            out.clear();
            let step = handshake.handle(&frame, &mut out);
            self.send(&out)?;
            if let Step::Done(established) = step.map_err(Error::Handshake)? {
                return Ok(established);
            }
        }
    }

    /// Waits until the peer's end; frames that come before it are dropped.
    pub fn wait_closed(&mut self) -> Result<CloseReason, Error> {
        loop {
            match self.receive() {
                Ok(_) => {}
                Err(Error::Closed(reason)) => return Ok(reason),
                Err(error) => return Err(error),
            }
        }
    }

    /// Moves bytes until `done`. Received ones stay inside for the next call of `receive`.
    fn wait_until(
        &mut self,
        what: &'static str,
        done: impl Fn(&mut Connection) -> bool,
    ) -> Result<(), Error> {
        let deadline = Instant::now() + self.timeout;
        loop {
            self.flush()?;
            if done(&mut self.connection) {
                return Ok(());
            }
            // Reading while we write: or else two peers with full buffers would wait for ever.
            match self.connection.receive(READ).state {
                ReadState::Closed(CloseReason::PeerClosed)
                    if !self.connection.is_tls_handshaking() => {}
                ReadState::Closed(reason) => return Err(Error::Closed(reason)),
                ReadState::Drained | ReadState::More => {}
            }
            self.flush()?;
            if done(&mut self.connection) {
                return Ok(());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Error::TimedOut { what });
            }
            self.event_loop.wait(&mut self.events, Some(left))?;
        }
    }

    fn flush(&mut self) -> Result<Flushed, Error> {
        self.connection.flush().map_err(Error::Closed)
    }
}
