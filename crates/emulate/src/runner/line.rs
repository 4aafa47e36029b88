//! A connection with a backlog of bytes that did not fit in its send buffer.

use channel::{CloseReason, Connection, EventLoop, ReadState, Readiness, Token};
use openflow::FrameError;

use crate::error::Error;

/// A connection in an event loop.
pub(crate) struct Line {
    connection: Connection,
    token: Token,
    /// The bytes that did not fit in the send buffer. A reply can be long, but no further request
    /// is read while a reply waits. So the longest reply and the messages that the data plane
    /// causes bound the backlog.
    backlog: Vec<u8>,
    /// Whether the socket may have more bytes to read.
    readable: bool,
    /// The reason why the connection ended.
    ended: Option<CloseReason>,
    /// The arrival time of the available bytes, ns.
    arrival: u64,
}

/// The maximum number of bytes that one turn reads from a connection.
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

    /// The arrival time of the available frames, ns.
    pub(crate) fn arrival(&self) -> u64 {
        self.arrival
    }

    /// Whether replies wait for room, so that no more requests should be read.
    pub(crate) fn is_stuffed(&self) -> bool {
        !self.backlog.is_empty()
    }

    pub(crate) fn backlog(&self) -> usize {
        self.backlog.len()
    }

    /// Whether a whole frame is available. If none is, the connection is read first.
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

    /// The reason why the connection ended, once all its frames were taken.
    pub(crate) fn ended(&self) -> Option<&CloseReason> {
        self.ended.as_ref()
    }

    /// Queues all of `bytes` for sending.
    pub(crate) fn send(&mut self, bytes: &mut Vec<u8>) {
        if self.backlog.is_empty() && bytes.len() <= self.connection.send_buffer().room() {
            // The line above has checked that there is room.
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

    /// Writes as many bytes as the socket accepts.
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
        // Dropping the connection closes the socket, even if the poller returns an error.
        let _ = event_loop.deregister(self.token, &mut self.connection);
    }
}
