//! One connection with what did not fit in its send buffer.

use channel::{CloseReason, Connection, EventLoop, ReadState, Readiness, Token};
use openflow::FrameError;

use crate::error::Error;

/// A connection in an event loop.
pub(crate) struct Line {
    connection: Connection,
    token: Token,
    /// What the send buffer had no room for. One answer can be long, but while it waits no further
    /// request is taken, so this is bounded by the longest answer and what the data plane causes.
    backlog: Vec<u8>,
    /// Whether the socket may have more to read.
    readable: bool,
    /// Why nothing more will come.
    ended: Option<CloseReason>,
    /// When the bytes that are there came, ns.
    arrival: u64,
}

/// How much is read from one connection before others have their turn.
const BUDGET: usize = 64 << 10;

impl Line {
    pub(crate) fn new(
        event_loop: &mut EventLoop,
        mut connection: Connection,
    ) -> Result<Line, Error> {
        let token = event_loop.register(&mut connection)?;
        Ok(Line { connection, token, backlog: Vec::new(), readable: true, ended: None, arrival: 0 })
    }

    pub(crate) fn token(&self) -> Token {
        self.token
    }

    pub(crate) fn note(&mut self, readiness: &Readiness) {
        self.connection.note(readiness);
        self.readable |= readiness.readable || readiness.read_closed;
    }

    /// When the frames that are there came, ns.
    pub(crate) fn arrival(&self) -> u64 {
        self.arrival
    }

    /// Whether answers wait for room, so that no more requests should be taken.
    pub(crate) fn is_stuffed(&self) -> bool {
        !self.backlog.is_empty()
    }

    pub(crate) fn backlog(&self) -> usize {
        self.backlog.len()
    }

    /// Whether a whole frame is there, after reading if none was.
    pub(crate) fn has_frame(&mut self, now: u64) -> Result<bool, FrameError> {
        if self.connection.peek_frame()?.is_some() {
            return Ok(true);
        }
        while self.readable && self.ended.is_none() {
            let received = self.connection.receive(BUDGET);
            if received.bytes > 0 {
                self.arrival = now;
            }
            match received.state {
                ReadState::More => {}
                ReadState::Drained => self.readable = false,
                ReadState::Closed(reason) => self.ended = Some(reason),
            }
            if self.connection.peek_frame()?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The next whole frame that was read.
    pub(crate) fn next_frame(&mut self) -> Result<Option<&mut [u8]>, FrameError> {
        self.connection.next_frame()
    }

    /// Why the connection is over, once all its frames are taken.
    pub(crate) fn ended(&self) -> Option<&CloseReason> {
        self.ended.as_ref()
    }

    /// Takes all of `bytes` to be sent.
    pub(crate) fn send(&mut self, bytes: &mut Vec<u8>) {
        if self.backlog.is_empty() && bytes.len() <= self.connection.send_buffer().room() {
            // There is room, as was just seen.
            let _ = self.connection.push(bytes);
            bytes.clear();
        } else {
            self.backlog.append(bytes);
            self.refill();
        }
    }

    fn refill(&mut self) {
        let room = self.connection.send_buffer().room().min(self.backlog.len());
        if let Some(part) = self.backlog.get(..room)
            && self.connection.push(part).is_ok()
        {
            self.backlog.drain(..room);
        }
    }

    /// Writes what can be written.
    pub(crate) fn flush(&mut self) -> Result<(), CloseReason> {
        loop {
            if self.connection.wants_write() {
                self.connection.flush()?;
            }
            if self.backlog.is_empty() || self.connection.send_buffer().room() == 0 {
                return Ok(());
            }
            self.refill();
        }
    }

    pub(crate) fn close(mut self, event_loop: &mut EventLoop) {
        // The socket is closed by dropping it, whatever the poller says.
        let _ = event_loop.deregister(self.token, &mut self.connection);
    }
}
