//! The control channel of a real switch. The channel never blocks, and gives each message the time
//! at which the message is read.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use channel::blocking::Client;
use channel::{
    Address, CloseReason, Connection, Event, EventLoop, Handshake, Listener, Options, ReadState,
    Tls, Token, Waker,
};
use openflow::{Version, VersionSet, v10, v13};

use super::clock::Clock;
use super::interface::{Arrival, Happening};
use crate::error::{Error, Result};
use crate::request::Request;
use crate::trace::{Trace, Way};

/// The address of the switch.
#[derive(Debug)]
pub enum SwitchAddress {
    /// The switch connects to this address.
    Listen(Address),
    /// The switch connects to this open listener.
    Listening(Listener),
    /// The testbed connects to the switch, which listens (as with `ptcp:` of Open vSwitch).
    Dial(Address),
}

/// The switch's version, datapath id and ports after the handshake.
pub(crate) struct Greeting {
    pub(crate) version: Version,
    pub(crate) dpid: u64,
    pub(crate) ports: Vec<u32>,
}

/// The most bytes that may wait for a switch that does not read.
const MAX_WAITING: usize = 64 << 20;
/// The most bytes of one read.
const READ: usize = 64 << 10;

pub(crate) struct ControlLink {
    connection: Connection,
    event_loop: EventLoop,
    token: Token,
    events: Vec<Event>,
    /// The messages that did not fit into the connection's buffer.
    backlog: VecDeque<Vec<u8>>,
    waiting: usize,
    /// The number of bytes given to the channel, and the marks with the number of bytes before each
    /// mark.
    given: u64,
    marks: VecDeque<(u64, u32)>,
    readable: bool,
    ended: Option<CloseReason>,
    clock: Clock,
    trace: Option<Trace>,
}

impl ControlLink {
    /// Waits for the switch or connects to the switch, makes the handshake, and requests the ports.
    pub(crate) fn open(
        address: SwitchAddress,
        tls: Option<&Tls>,
        versions: VersionSet,
        patience: Duration,
        clock: Clock,
        trace: Option<Trace>,
    ) -> Result<(ControlLink, Greeting)> {
        let control = Error::Control;
        let accept = |mut listener: Listener| Client::accept(&mut listener, patience);
        let client = match address {
            SwitchAddress::Dial(address) => Client::connect(&address, tls, patience),
            SwitchAddress::Listen(address) => {
                Listener::bind(&address, tls, Options::default()).and_then(accept)
            }
            SwitchAddress::Listening(listener) => accept(listener),
        };
        let mut client = client.map_err(control)?;
        let greeting = greet(&mut client, versions)?;
        let mut connection = client.into_connection().map_err(control)?;
        let mut event_loop = EventLoop::new().map_err(control)?;
        let token = event_loop.register(&mut connection).map_err(control)?;
        let link = ControlLink {
            connection,
            event_loop,
            token,
            events: Vec::new(),
            backlog: VecDeque::new(),
            waiting: 0,
            given: 0,
            marks: VecDeque::new(),
            readable: true,
            ended: None,
            clock,
            trace,
        };
        Ok((link, greeting))
    }

    /// Wakes [`ControlLink::wait`].
    pub(crate) fn waker(&self) -> Waker {
        self.event_loop.waker()
    }

    pub(crate) fn send(&mut self, bytes: Vec<u8>, mark: Option<u32>) -> Result<()> {
        if let Some(trace) = &mut self.trace {
            trace.write(Way::ToSwitch, self.clock.day(self.clock.now()), &bytes)?;
        }
        self.given += bytes.len() as u64;
        self.waiting += bytes.len();
        self.backlog.push_back(bytes);
        if let Some(mark) = mark {
            self.marks.push_back((self.given, mark));
        }
        self.pump()?;
        if self.waiting > MAX_WAITING {
            return Err(Error::NotReading { waiting: self.waiting });
        }
        Ok(())
    }

    /// Writes as many bytes as possible.
    fn pump(&mut self) -> Result<()> {
        loop {
            let room = self.connection.send_buffer().room();
            if room > 0
                && let Some(bytes) = self.backlog.front_mut()
            {
                let part: Vec<u8> = bytes.drain(..room.min(bytes.len())).collect();
                if bytes.is_empty() {
                    self.backlog.pop_front();
                }
                self.waiting -= part.len();
                // The buffer has room, so the push cannot fail.
                let _ = self.connection.push(&part);
                continue;
            }
            if !self.connection.wants_write() {
                return Ok(());
            }
            match self.connection.flush() {
                Ok(_) if self.backlog.is_empty() => return Ok(()),
                Ok(_) if self.connection.send_buffer().room() == 0 => return Ok(()),
                Ok(_) => {}
                // Messages that the switch sent before the end are still to be read; the reader
                // reports the end.
                Err(_) if self.ended.is_none() && self.readable => return Ok(()),
                Err(reason) => return Err(Error::Disconnected(reason)),
            }
        }
    }

    /// Appends the arrivals since the last call.
    pub(crate) fn collect(&mut self, out: &mut VecDeque<Arrival>) -> Result<()> {
        self.pump()?;
        let unsent = self.waiting as u64 + self.connection.unsent_bytes() as u64;
        while let Some((place, mark)) = self.marks.front().copied() {
            if self.given - unsent < place {
                break;
            }
            self.marks.pop_front();
            out.push_back(Arrival { at: self.clock.now(), what: Happening::Sent(mark) });
        }
        if self.readable && self.ended.is_none() {
            match self.connection.receive(READ).state {
                ReadState::More => {}
                ReadState::Drained => self.readable = false,
                ReadState::Closed(reason) => self.ended = Some(reason),
            }
        }
        let at = self.clock.now();
        loop {
            let frame = self.connection.next_frame();
            let frame = frame.map_err(|error| Error::NotOpenFlow(error.to_string()))?;
            let Some(frame) = frame else { break };
            if let Some(trace) = &mut self.trace {
                trace.write(Way::FromSwitch, self.clock.day(at), frame)?;
            }
            out.push_back(Arrival { at, what: Happening::Message(frame.to_vec()) });
        }
        match (&self.ended, out.is_empty()) {
            (Some(reason), true) => Err(Error::Disconnected(reason.clone())),
            _ => Ok(()),
        }
    }

    /// Waits for the socket or a wake-up, at most `limit`.
    pub(crate) fn wait(&mut self, limit: Duration) -> Result<()> {
        // epoll counts in milliseconds: the caller polls repeatedly for shorter times.
        let limit = limit.saturating_sub(Duration::from_millis(1));
        self.event_loop.wait(&mut self.events, Some(limit)).map_err(Error::Control)?;
        for event in &self.events {
            if let Event::Ready(readiness) = event
                && readiness.token == self.token
            {
                self.connection.note(readiness);
                self.readable |= readiness.readable || readiness.read_closed;
            }
        }
        if self.events.is_empty() && limit.is_zero() {
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Whether more bytes may be readable at once.
    pub(crate) fn is_readable(&self) -> bool {
        self.readable && self.ended.is_none()
    }

    /// The number of received TCP segments with data so far, if the kernel has the number.
    pub(crate) fn segments(&self) -> Option<f64> {
        let (local, peer) = (self.connection.local_address()?, self.connection.peer_address()?);
        let mut segments = None;
        packet::tcp_connections(|one| {
            if (one.local_port, one.remote_port) == (local.port(), peer.port()) {
                segments = Some(one.data_in as f64);
            }
        })?;
        segments
    }

    /// Ends the trace of the control channel.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.trace.take().map_or(Ok(()), Trace::finish)
    }
}

fn greet(client: &mut Client, versions: VersionSet) -> Result<Greeting> {
    let handshake = Handshake::towards_switch(versions, 1);
    let established = client.shake_hands(handshake).map_err(Error::Control)?;
    let version = established.version;
    let features = established.switch.map(|switch| (switch.dpid, switch.frame));
    let (dpid, frame) = features.unwrap_or_default();
    if version == Version::V1_0 {
        let ports = match v10::Message::parse(&frame) {
            Ok((_, v10::Message::FeaturesReply(it))) => {
                it.ports.iter().map(|port| port.port_no.0.into()).collect()
            }
            _ => Vec::new(),
        };
        return Ok(Greeting { version, dpid, ports });
    }
    let mut request = Vec::new();
    // The request is short, so writing cannot fail.
    let _ = Request::Ports.write(version, 2, &mut request);
    client.send(&request).map_err(Error::Control)?;
    let mut ports = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(5);
    while Instant::now() < deadline {
        let frame = client.receive().map_err(Error::Control)?;
        let Ok((_, v13::Message::MultipartReply(reply))) = v13::Message::parse(&frame) else {
            continue;
        };
        if let v13::MultipartReplyBody::PortDesc(list) = reply.body {
            ports.extend(list.iter().map(|port| port.port_no.0));
            if !reply.flags.contains(v13::MultipartFlags::MORE) {
                return Ok(Greeting { version, dpid, ports });
            }
        }
    }
    Err(Error::Control(channel::Error::TimedOut { what: "the switch's ports" }))
}
