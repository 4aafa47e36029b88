//! Runs a controller on a real socket, with one thread, one listener and any number of switches.
//!
//! ```text
//!  caller                         thread "controller"
//!  ┌───────────────────┐          ┌───────────────────────────────┐
//!  │ RunningController │◀─atomics─│ Controller ◀── frames ── Line ─┼─── switch
//!  │  stop ────────────┼──waker──▶│            ─── frames ──▶ Line ─┼─── switch …
//!  └───────────────────┘          └───────────────────────────────┘
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use channel::{Address, Event, EventLoop, Listener, Options, Readiness, TimerKey, Tls, Waker};
use openflow::VersionSet;

use super::behaviour::Behaviour;
use super::model::{ConnectionId, Controller};
use crate::error::Error;
use crate::runner::Line;

/// How a controller reads and writes its sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manner {
    /// The controller reads and writes normally.
    #[default]
    Polite,
    /// The controller sends HELLO and never reads.
    NeverReads,
    /// The controller writes one byte at a time.
    OneByteAtATime,
}

/// The configuration of a controller. [`ControllerRunner::start`] starts the controller.
pub struct ControllerRunner {
    behaviour: Behaviour,
    versions: VersionSet,
    manner: Manner,
    tls: Option<Tls>,
    options: Options,
}

impl ControllerRunner {
    /// Configures a controller that offers 1.0 and 1.3.
    pub fn new(behaviour: Behaviour) -> ControllerRunner {
        ControllerRunner {
            behaviour,
            versions: VersionSet::SUPPORTED,
            manner: Manner::Polite,
            tls: None,
            options: Options { send_buffer: 1 << 20, ..Options::default() },
        }
    }

    /// Sets the offered versions.
    #[must_use]
    pub fn versions(mut self, versions: VersionSet) -> ControllerRunner {
        self.versions = versions;
        self
    }

    /// Sets how the controller reads and writes its sockets.
    #[must_use]
    pub fn manner(mut self, manner: Manner) -> ControllerRunner {
        self.manner = manner;
        self
    }

    /// Sets the TLS identity for an `ssl:` address.
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> ControllerRunner {
        self.tls = Some(tls);
        self
    }

    /// Sets the options of connections.
    #[must_use]
    pub fn options(mut self, options: Options) -> ControllerRunner {
        self.options = options;
        self
    }

    /// Listens and starts the thread. With port 0 the kernel chooses the port.
    pub fn start(self, address: Address) -> Result<RunningController, Error> {
        let mut event_loop = EventLoop::new()?;
        let mut listener = Listener::bind(&address, self.tls.as_ref(), self.options)?;
        event_loop.register(&mut listener)?;
        let address = listener.address();
        let waker = event_loop.waker();
        let shared = Arc::new(Shared::default());
        let worker = Worker {
            event_loop,
            listener,
            controller: Controller::new(self.behaviour, self.versions),
            manner: self.manner,
            peers: Vec::new(),
            shared: Arc::clone(&shared),
            started: Instant::now(),
            unfinished: false,
        };
        let thread = std::thread::Builder::new()
            .name("controller".to_owned())
            .spawn(move || worker.run())
            .map_err(Error::Thread)?;
        Ok(RunningController { address, waker, shared, thread: Some(thread) })
    }
}

/// The counters of a running controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControllerCounters {
    /// The current number of switches with a complete handshake.
    pub switches: u64,
    /// The number of accepted connections.
    pub connections: u64,
    /// The number of received messages.
    pub received: u64,
    /// The number of received PACKET_INs.
    pub packet_ins: u64,
    /// The number of received ERRORs.
    pub errors: u64,
    /// The number of sent messages.
    pub sent: u64,
}

#[derive(Default)]
struct Shared {
    stopping: AtomicBool,
    switches: AtomicU64,
    connections: AtomicU64,
    received: AtomicU64,
    packet_ins: AtomicU64,
    errors: AtomicU64,
    sent: AtomicU64,
}

/// A running controller. Dropping the value stops the controller.
pub struct RunningController {
    address: Address,
    waker: Waker,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<(), Error>>>,
}

impl RunningController {
    /// The address on which the controller listens.
    pub fn address(&self) -> Address {
        self.address
    }

    /// Returns the counters, without a lock.
    pub fn counters(&self) -> ControllerCounters {
        let shared = &self.shared;
        ControllerCounters {
            switches: shared.switches.load(Relaxed),
            connections: shared.connections.load(Relaxed),
            received: shared.received.load(Relaxed),
            packet_ins: shared.packet_ins.load(Relaxed),
            errors: shared.errors.load(Relaxed),
            sent: shared.sent.load(Relaxed),
        }
    }

    /// Waits until the counters meet the condition. The condition is tested once per millisecond.
    pub fn wait_for(
        &self,
        what: &str,
        timeout: Duration,
        is_so: impl Fn(&ControllerCounters) -> bool,
    ) -> Result<ControllerCounters, Error> {
        let deadline = Instant::now() + timeout;
        loop {
            let counters = self.counters();
            if is_so(&counters) {
                return Ok(counters);
            }
            if Instant::now() >= deadline {
                let instead = vec![format!("{counters:?}")];
                return Err(Error::TimedOut { what: what.to_owned(), instead });
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Stops the controller. Returns the error of the thread if the thread ended early.
    pub fn stop(mut self) -> Result<(), Error> {
        self.end().ok_or(Error::Stopped)?
    }

    fn end(&mut self) -> Option<Result<(), Error>> {
        let thread = self.thread.take()?;
        self.shared.stopping.store(true, Relaxed);
        let _ = self.waker.wake();
        thread.join().ok()
    }
}

impl Drop for RunningController {
    fn drop(&mut self) {
        self.end();
    }
}

struct Worker {
    event_loop: EventLoop,
    listener: Listener,
    controller: Controller,
    manner: Manner,
    peers: Vec<Peer>,
    shared: Arc<Shared>,
    started: Instant,
    unfinished: bool,
}

struct Peer {
    id: ConnectionId,
    line: Line,
    /// The bytes that the controller still has to write one at a time.
    drip: Vec<u8>,
}

/// The time after a failed accept until the next accept.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// The maximum number of messages of one switch that one turn handles.
const MESSAGES_PER_TURN: usize = 256;
/// The maximum number of waiting bytes of [`Manner::OneByteAtATime`]. The controller reads no
/// messages above this limit.
const MAX_DRIP: usize = 1 << 20;
const PACKET_IN: u8 = 10;
const ERROR: u8 = 1;

impl Worker {
    fn run(mut self) -> Result<(), Error> {
        let mut events = Vec::new();
        while !self.shared.stopping.load(Relaxed) {
            let limit = self.limit();
            self.event_loop.wait(&mut events, limit)?;
            for event in events.drain(..) {
                match event {
                    Event::Ready(readiness) => self.ready(&readiness),
                    Event::Timer(_) => self.accept(),
                    Event::Woken => {}
                }
            }
            self.turn();
        }
        Ok(())
    }

    fn now(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    /// The maximum wait of the poller.
    fn limit(&mut self) -> Option<Duration> {
        if std::mem::take(&mut self.unfinished) {
            return Some(Duration::ZERO);
        }
        let deadlines = self.peers.iter().filter_map(|peer| self.controller.next_deadline(peer.id));
        let due = deadlines.min()?;
        Some(Duration::from_nanos(due.saturating_sub(self.now())))
    }

    fn ready(&mut self, readiness: &Readiness) {
        match self.peers.iter_mut().find(|peer| peer.line.token() == readiness.token) {
            Some(peer) => peer.line.note(readiness),
            None => self.accept(),
        }
    }

    /// Accepts the waiting connections.
    fn accept(&mut self) {
        loop {
            match self.listener.accept() {
                Ok(Some((connection, _))) => {
                    let Ok(line) = Line::new(&mut self.event_loop, connection) else { continue };
                    let mut drip = Vec::new();
                    let id = self.controller.connect(&mut drip);
                    self.shared.connections.fetch_add(1, Relaxed);
                    self.shared.sent.fetch_add(1, Relaxed);
                    self.peers.push(Peer { id, line, drip });
                }
                Ok(None) => return,
                Err(_) => {
                    // For example, the process has no file descriptors left. The controller accepts
                    // again later.
                    let later = self.event_loop.now() + ACCEPT_AGAIN;
                    return self.event_loop.set_timer(TimerKey(0), later);
                }
            }
        }
    }

    fn turn(&mut self) {
        let mut gone = Vec::new();
        for index in 0..self.peers.len() {
            if !self.serve(index) {
                gone.push(index);
            }
        }
        for index in gone.into_iter().rev() {
            let peer = self.peers.swap_remove(index);
            self.controller.disconnect(peer.id);
            peer.line.close(&mut self.event_loop);
        }
        self.shared.switches.store(self.controller.switches().count() as u64, Relaxed);
    }

    /// Handles messages of one switch. Returns `false` if its connection has ended.
    fn serve(&mut self, index: usize) -> bool {
        let now = self.now();
        let mut out = Vec::new();
        let Some(peer) = self.peers.get_mut(index) else { return true };
        let mut goes_on = true;
        let has_room = !peer.line.is_stuffed() && peer.drip.len() < MAX_DRIP;
        if self.manner != Manner::NeverReads && has_room {
            for turn in 0..MESSAGES_PER_TURN {
                match peer.line.has_frame(now) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(_) => return false,
                }
                let Ok(Some(frame)) = peer.line.next_frame() else { return false };
                count(&self.shared, frame);
                goes_on = self.controller.handle_message(now, peer.id, frame, &mut out);
                self.unfinished |= turn + 1 == MESSAGES_PER_TURN;
                if !goes_on {
                    break;
                }
            }
            self.controller.tick(now, peer.id, &mut out);
        }
        self.shared.sent.fetch_add(frames_in(&out), Relaxed);
        let flushed = match self.manner {
            Manner::OneByteAtATime => {
                peer.drip.append(&mut out);
                if !peer.drip.is_empty() {
                    let mut byte: Vec<u8> = peer.drip.drain(..1).collect();
                    peer.line.send(&mut byte);
                    self.unfinished = true;
                }
                peer.line.flush()
            }
            Manner::Polite | Manner::NeverReads => {
                peer.drip.append(&mut out);
                peer.line.send(&mut peer.drip);
                peer.line.flush()
            }
        };
        goes_on && flushed.is_ok() && (peer.line.ended().is_none())
    }
}

fn count(shared: &Shared, frame: &[u8]) {
    shared.received.fetch_add(1, Relaxed);
    match openflow::frame::type_(frame) {
        Some(PACKET_IN) => shared.packet_ins.fetch_add(1, Relaxed),
        Some(ERROR) => shared.errors.fetch_add(1, Relaxed),
        _ => 0,
    };
}

fn frames_in(mut bytes: &[u8]) -> u64 {
    let mut frames = 0;
    while let Ok(Some(length)) = openflow::frame::next(bytes) {
        frames += 1;
        bytes = bytes.get(length..).unwrap_or_default();
    }
    frames
}
