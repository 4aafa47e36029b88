//! One end of a connection, which a test scripts.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use channel::CloseReason;
use channel::blocking::Client;
use openflow::{TooLong, Version, frame, v10, v13};

use crate::error::Error;

/// A message of 1.0 or 1.3 that can be encoded as a frame.
pub trait Message {
    /// Encodes the whole frame.
    ///
    /// # Errors
    /// The frame would be longer than 65,535 bytes.
    fn to_frame(&self, xid: u32) -> Result<Vec<u8>, TooLong>;
}

impl Message for v10::Message<'_> {
    fn to_frame(&self, xid: u32) -> Result<Vec<u8>, TooLong> {
        let mut frame = Vec::new();
        self.write(xid, &mut frame)?;
        Ok(frame)
    }
}

impl Message for v13::Message<'_> {
    fn to_frame(&self, xid: u32) -> Result<Vec<u8>, TooLong> {
        let mut frame = Vec::new();
        self.write(xid, &mut frame)?;
        Ok(frame)
    }
}

/// One end of a connection, played by a script. The peer answers ECHO_REQUEST by itself.
pub struct Peer {
    client: Client,
    timeout: Duration,
    next_xid: u32,
    /// The messages that came while the test waited for another message, the oldest first.
    aside: VecDeque<Vec<u8>>,
}

const ECHO_REQUEST: u8 = 2;
const ECHO_REPLY: u8 = 3;

impl Peer {
    /// Makes a peer on a connection. `timeout` is the limit of each wait.
    pub fn new(client: Client, timeout: Duration) -> Peer {
        Peer { client, timeout, next_xid: 0x1000, aside: VecDeque::new() }
    }

    /// Sends bytes without changes: one frame, several frames, or a part of a frame.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), Error> {
        Ok(self.client.send(bytes)?)
    }

    /// Sends a message with a new transaction id. Returns the transaction id.
    pub fn say(&mut self, message: &impl Message) -> Result<u32, Error> {
        self.next_xid = self.next_xid.wrapping_add(1);
        self.send(&message.to_frame(self.next_xid)?)?;
        Ok(self.next_xid)
    }

    /// Sends a message and waits for the reply, which can be an ERROR. Other messages are put
    /// aside.
    pub fn ask(&mut self, message: &impl Message) -> Result<Vec<u8>, Error> {
        let xid = self.say(message)?;
        self.expect_answer(xid)
    }

    /// Waits for the message with this transaction id. Other messages are put aside.
    pub fn expect_answer(&mut self, xid: u32) -> Result<Vec<u8>, Error> {
        let what = format!("an answer with xid {xid:#x}");
        self.wait_for(&what, |message| frame::xid(message) == Some(xid))
    }

    /// Waits for a message of this type. Other messages are put aside.
    pub fn expect(&mut self, message_type: u8) -> Result<Vec<u8>, Error> {
        let what = format!("a message of type {message_type}");
        self.wait_for(&what, |message| frame::type_(message) == Some(message_type))
    }

    /// Waits for the message that `wanted` accepts. Other messages are put aside.
    pub fn wait_for(
        &mut self,
        what: &str,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<Vec<u8>, Error> {
        if let Some(found) = self.aside.iter().position(|message| wanted(message))
            && let Some(message) = self.aside.remove(found)
        {
            return Ok(message);
        }
        let deadline = Instant::now() + self.timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.receive_within(left)? {
                Some(message) if wanted(&message) => return Ok(message),
                Some(message) => self.aside.push_back(message),
                None => {
                    let instead = self.aside.iter().map(|message| describe(message)).collect();
                    return Err(Error::TimedOut { what: what.to_owned(), instead });
                }
            }
        }
    }

    /// Returns the next message of any type. Messages that were put aside come first.
    pub fn next_message(&mut self) -> Result<Vec<u8>, Error> {
        self.wait_for("a message", |_| true)
    }

    /// Fails if a message comes within this time, or was put aside before.
    pub fn expect_nothing(&mut self, within: Duration) -> Result<(), Error> {
        let came = match self.aside.pop_front() {
            Some(message) => Some(message),
            None => self.receive_within(within)?,
        };
        match came {
            None => Ok(()),
            Some(message) => {
                let came = describe(&message);
                Err(Error::Unexpected { expected: "nothing".to_owned(), came })
            }
        }
    }

    /// Removes and returns the messages that were put aside.
    pub fn take_aside(&mut self) -> Vec<Vec<u8>> {
        self.aside.drain(..).collect()
    }

    /// Waits until the other end closes the connection.
    pub fn expect_closed(&mut self) -> Result<CloseReason, Error> {
        Ok(self.client.wait_closed()?)
    }

    /// The connection of the peer.
    pub fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    /// Returns the next message except ECHO_REQUEST, if a message comes in time.
    pub(super) fn receive_within(&mut self, limit: Duration) -> Result<Option<Vec<u8>>, Error> {
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Some(message) = self.client.receive_within(left)? else { return Ok(None) };
            if frame::type_(&message) != Some(ECHO_REQUEST) {
                return Ok(Some(message));
            }
            let mut answer = message;
            if let Some(type_) = answer.get_mut(1) {
                *type_ = ECHO_REPLY;
            }
            self.client.send(&answer)?;
        }
    }
}

/// Describes a message in a few words, for errors.
pub(super) fn describe(message: &[u8]) -> String {
    let text = match frame::version(message) {
        Some(Version::V1_0) => v10::Message::parse(message).map(|(_, m)| format!("{m:?}")),
        _ => v13::Message::parse(message).map(|(_, m)| format!("{m:?}")),
    };
    let mut text = text.unwrap_or_else(|error| format!("unreadable: {error}"));
    if let Some((cut, _)) = text.char_indices().nth(300) {
        text.truncate(cut);
        text.push('…');
    }
    let xid = frame::xid(message).unwrap_or_default();
    format!("xid {xid:#x}: {text}")
}
