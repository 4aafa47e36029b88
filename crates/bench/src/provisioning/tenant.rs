//! The tenant's controller: one thread that completes the handshake with every switch, learns its ports, and installs
//! given rules.
//!
//! ```text
//!  caller                            thread "tenant"
//!  ┌────────────┐   mpsc + waker    ┌──────────────────────────────────────────┐
//!  │ Tenant     │── rules ─────────▶│ Listener ─▶ Peer, one per virtual switch │◀──▶ system under test
//!  │  view  ◀───┼── Mutex ──────────│             HELLO, FEATURES, ports       │
//!  └────────────┘                   └──────────────────────────────────────────┘
//! ```

use super::shape::BARRIER_XID;
use crate::error::Error;
use crate::plan::Version;
use crate::wire::{Types, kind};
use channel::{
    Address, Connection, Event, EventLoop, Handshake, Listener, Options, ReadState, Readiness,
    Step, Token, Waker,
};
use emulate::Running;
use openflow::{VersionSet, v10, v13};
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The most bytes that are read from one switch before other switches have their turn.
const BUDGET: usize = 64 << 10;

/// A controller that listens, and does not serve switches yet.
pub(super) struct Listening {
    listener: Listener,
    events: EventLoop,
}

/// A running controller. The controller ends when this value is dropped.
pub(super) struct Tenant {
    orders: Sender<Order>,
    waker: Waker,
    view: Arc<Mutex<View>>,
    thread: Option<JoinHandle<()>>,
}

/// The state of the controller.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    /// The ports by switch, and whether each port is up. A switch is in this map when the switch has reported all its
    /// ports.
    switches: BTreeMap<u64, BTreeMap<u32, bool>>,
    /// The number of switches, and of ports that are up, that the caller waits for.
    wanted: Option<(usize, usize)>,
    /// The time when these numbers were reached, in ns of the fabric's clock.
    pub(super) complete: Option<u64>,
    /// The number of answered barriers after the rules.
    pub(super) installed: usize,
    /// The number of received errors.
    pub(super) errors: usize,
}

enum Order {
    /// Frames by switch.
    Send(BTreeMap<u64, Vec<u8>>),
    Stop,
}

impl Listening {
    pub(super) fn bind() -> Result<Listening, Error> {
        let refused = |error: channel::Error| Error::System(format!("the tenant: {error}"));
        let options = Options { send_buffer: 4 << 20, ..Options::default() };
        let address = Address::tcp(SocketAddr::from(([127, 0, 0, 1], 0)));
        let mut listener = Listener::bind(&address, None, options).map_err(refused)?;
        let mut events = EventLoop::new().map_err(refused)?;
        events.register(&mut listener).map_err(refused)?;
        Ok(Listening { listener, events })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.listener.address().addr
    }

    /// Starts the controller; times come from `clock`.
    pub(super) fn start(self, version: Version, clock: Arc<Running>) -> Result<Tenant, Error> {
        let (orders, receiver) = channel();
        let waker = self.events.waker();
        let view = Arc::new(Mutex::new(View::default()));
        let worker = Worker {
            listener: self.listener,
            events: self.events,
            orders: receiver,
            view: Arc::clone(&view),
            version,
            clock,
            peers: HashMap::new(),
        };
        let thread = std::thread::Builder::new().name("tenant".to_owned());
        let thread = thread.spawn(move || worker.run()).map_err(Error::io("start a thread"))?;
        Ok(Tenant { orders, waker, view, thread: Some(thread) })
    }
}

impl Tenant {
    /// Sets the numbers of switches and of ports that are up, for which the caller waits from now on.
    pub(super) fn want(&self, switches: usize, ports: usize) {
        let mut view = lock(&self.view);
        view.wanted = Some((switches, ports));
        view.complete = None;
    }

    pub(super) fn view(&self) -> View {
        lock(&self.view).clone()
    }

    /// Sends each switch its rules, and waits until all switches have their rules.
    pub(super) fn install(
        &self,
        rules: BTreeMap<u64, Vec<u8>>,
        limit: Duration,
    ) -> Result<(), Error> {
        let (wanted, deadline) = (rules.len(), Instant::now() + limit);
        lock(&self.view).installed = 0;
        // A worker that has ended does not answer; the loop below notices this.
        let _ = self.orders.send(Order::Send(rules));
        let _ = self.waker.wake();
        loop {
            let View { installed, errors, .. } = self.view();
            if installed >= wanted {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(Error::System(format!(
                    "{installed} of {wanted} virtual switches answered the barrier behind the tenant's rules \
                     ({errors} errors)"
                )));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Tenant {
    fn drop(&mut self) {
        let _ = self.orders.send(Order::Stop);
        let _ = self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has already printed its message.
            let _ = thread.join();
        }
    }
}

impl View {
    /// The number of switches, and the number of their ports that are up.
    pub(super) fn counts(&self) -> (usize, usize) {
        let up = self.switches.values().flat_map(BTreeMap::values).filter(|up| **up).count();
        (self.switches.len(), up)
    }

    fn look(&mut self, now: u64) {
        if self.complete.is_none() && self.wanted == Some(self.counts()) {
            self.complete = Some(now);
        }
    }
}

struct Worker {
    listener: Listener,
    events: EventLoop,
    orders: Receiver<Order>,
    view: Arc<Mutex<View>>,
    version: Version,
    clock: Arc<Running>,
    peers: HashMap<Token, Peer>,
}

struct Peer {
    connection: Connection,
    handshake: Option<Handshake>,
    dpid: u64,
    /// Bytes that did not fit into the connection's buffer.
    out: Vec<u8>,
    ports: BTreeMap<u32, bool>,
}

/// The content of a frame.
enum Heard {
    Ports(Vec<(u32, bool)>, bool),
    Port(u32, Option<bool>),
    Other,
}

impl Worker {
    fn run(mut self) {
        let mut events = Vec::new();
        // If waiting for events fails, the thread ends; the caller notices that no messages arrive.
        while self.events.wait(&mut events, None).is_ok() {
            for event in events.drain(..) {
                match event {
                    Event::Ready(readiness) if self.peers.contains_key(&readiness.token) => {
                        self.ready(&readiness);
                    }
                    Event::Ready(_) => self.accept(),
                    Event::Woken | Event::Timer(_) => {}
                }
            }
            while let Ok(order) = self.orders.try_recv() {
                match order {
                    Order::Stop => return,
                    Order::Send(frames) => self.send(frames),
                }
            }
        }
    }

    fn accept(&mut self) {
        while let Ok(Some((mut connection, _))) = self.listener.accept() {
            let versions = VersionSet::only(self.version.openflow());
            let handshake = Handshake::towards_switch(versions, 1);
            let mut out = Vec::new();
            handshake.start(&mut out);
            let Ok(token) = self.events.register(&mut connection) else { continue };
            let mut peer = Peer {
                connection,
                handshake: Some(handshake),
                dpid: 0,
                out,
                ports: BTreeMap::new(),
            };
            peer.flush();
            self.peers.insert(token, peer);
        }
    }

    fn send(&mut self, mut frames: BTreeMap<u64, Vec<u8>>) {
        for peer in self.peers.values_mut().filter(|peer| peer.handshake.is_none()) {
            if let Some(mut frames) = frames.remove(&peer.dpid) {
                peer.out.append(&mut frames);
                peer.flush();
            }
        }
    }

    fn ready(&mut self, readiness: &Readiness) {
        let Some(peer) = self.peers.get_mut(&readiness.token) else { return };
        peer.connection.note(readiness);
        let ended = loop {
            let received = peer.connection.receive(BUDGET);
            let (mut ended, mut drained) = (false, false);
            match received.state {
                ReadState::More => {}
                ReadState::Drained => drained = true,
                ReadState::Closed(_) => ended = true,
            }
            while let Ok(Some(frame)) = peer.connection.next_frame() {
                let frame = frame.to_vec();
                if !peer.handle(self.version, &frame, &self.view, &self.clock) {
                    ended = true;
                    break;
                }
            }
            if ended || drained {
                break ended;
            }
        };
        peer.flush();
        if ended && let Some(mut peer) = self.peers.remove(&readiness.token) {
            // Dropping the socket closes the connection, even if the poller returns an error.
            let _ = self.events.deregister(readiness.token, &mut peer.connection);
            lock(&self.view).switches.remove(&peer.dpid);
        }
    }
}

impl Peer {
    /// Handles a frame; false if the connection must be closed.
    fn handle(
        &mut self,
        version: Version,
        frame: &[u8],
        view: &Mutex<View>,
        clock: &Running,
    ) -> bool {
        if let Some(handshake) = &mut self.handshake {
            match handshake.handle(frame, &mut self.out) {
                Ok(Step::Continue) => return true,
                Ok(Step::NotOurs) => {}
                Ok(Step::Done(established)) => {
                    self.handshake = None;
                    let Some(features) = established.switch else { return false };
                    self.dpid = features.dpid;
                    if version == Version::V1_3 {
                        let request = v13::MultipartRequest {
                            flags: v13::MultipartFlags(0),
                            body: v13::MultipartRequestBody::PortDesc,
                        };
                        // A request without a body always fits.
                        let _ = v13::Message::MultipartRequest(request).write(2, &mut self.out);
                    }
                }
                Err(_) => return false,
            }
        }
        let type_ = openflow::frame::type_(frame).unwrap_or_default();
        match hear(version, frame) {
            Heard::Ports(ports, is_all) => {
                self.ports.extend(ports);
                if is_all {
                    let mut view = lock(view);
                    let known = view.switches.entry(self.dpid).or_default();
                    known.extend(std::mem::take(&mut self.ports));
                    view.look(clock.now());
                }
            }
            Heard::Port(port, up) => {
                let mut view = lock(view);
                let known = view.switches.get_mut(&self.dpid);
                let ports = known.unwrap_or(&mut self.ports);
                match up {
                    Some(up) => ports.insert(port, up),
                    None => ports.remove(&port),
                };
                view.look(clock.now());
            }
            Heard::Other if type_ == kind::ERROR => lock(view).errors += 1,
            Heard::Other if type_ == kind::ECHO_REQUEST => {
                let mut answer = frame.to_vec();
                if let Some(type_) = answer.get_mut(1) {
                    *type_ = kind::ECHO_REPLY;
                }
                self.out.append(&mut answer);
            }
            Heard::Other if type_ == Types::of(version).barrier_reply => {
                if openflow::frame::xid(frame) == Some(BARRIER_XID) {
                    lock(view).installed += 1;
                }
            }
            Heard::Other => {}
        }
        true
    }

    /// Writes as much as the connection accepts. If a write fails, the next read reports the end of the connection.
    fn flush(&mut self) {
        loop {
            let room = self.connection.send_buffer().room().min(self.out.len());
            if room > 0 && self.connection.push(self.out.get(..room).unwrap_or_default()).is_ok() {
                self.out.drain(..room);
            }
            match self.connection.flush() {
                Ok(channel::Flushed::Empty) if !self.out.is_empty() => {}
                _ => return,
            }
        }
    }
}

/// Reads a switch's report about its ports: all ports in FEATURES_REPLY (1.0) or in parts of a reply (1.3), then single
/// ports.
fn hear(version: Version, frame: &[u8]) -> Heard {
    match version {
        Version::V1_0 => match v10::Message::parse(frame) {
            Ok((_, v10::Message::FeaturesReply(body))) => {
                let up = |port: v10::PhyPort| !port.state.contains(v10::PortState::LINK_DOWN);
                let ports = body.ports.iter().map(|port| (u32::from(port.port_no.0), up(port)));
                Heard::Ports(ports.collect(), true)
            }
            Ok((_, v10::Message::PortStatus(v10::PortStatus { reason, desc }))) => {
                let is_there = reason != v10::PortReason::DELETE;
                let up = !desc.state.contains(v10::PortState::LINK_DOWN);
                Heard::Port(desc.port_no.0.into(), is_there.then_some(up))
            }
            _ => Heard::Other,
        },
        Version::V1_3 => match v13::Message::parse(frame) {
            Ok((_, v13::Message::MultipartReply(reply))) => match reply.body {
                v13::MultipartReplyBody::PortDesc(ports) => {
                    let up = |port: v13::Port| !port.state.contains(v13::PortState::LINK_DOWN);
                    let ports = ports.iter().map(|port| (port.port_no.0, up(port)));
                    let more = reply.flags.contains(v13::MultipartFlags::MORE);
                    Heard::Ports(ports.collect(), !more)
                }
                _ => Heard::Other,
            },
            Ok((_, v13::Message::PortStatus(v13::PortStatus { reason, desc }))) => {
                let is_there = reason != v13::PortReason::DELETE;
                let up = !desc.state.contains(v13::PortState::LINK_DOWN);
                Heard::Port(desc.port_no.0, is_there.then_some(up))
            }
            _ => Heard::Other,
        },
    }
}

fn lock(view: &Mutex<View>) -> MutexGuard<'_, View> {
    view.lock().unwrap_or_else(PoisonError::into_inner)
}
