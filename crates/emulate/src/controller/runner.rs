//! A controller on a real socket: one thread, one listener, any number of switches.
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

/// How a controller treats its sockets, whatever it says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manner {
    /// As it should be.
    #[default]
    Polite,
    /// Says HELLO and never reads anything.
    NeverReads,
    /// Writes one byte at a time.
    OneByteAtATime,
}

/// A controller to be; [`ControllerRunner::start`] sets it going.
pub struct ControllerRunner {
    behaviour: Behaviour,
    versions: VersionSet,
    manner: Manner,
    tls: Option<Tls>,
    options: Options,
}

impl ControllerRunner {
    /// A controller that speaks 1.0 and 1.3.
    pub fn new(behaviour: Behaviour) -> ControllerRunner {
        ControllerRunner {
            behaviour,
            versions: VersionSet::SUPPORTED,
            manner: Manner::Polite,
            tls: None,
            options: Options { send_buffer: 1 << 20, ..Options::default() },
        }
    }

    /// The versions that it speaks.
    #[must_use]
    pub fn versions(mut self, versions: VersionSet) -> ControllerRunner {
        self.versions = versions;
        self
    }

    /// How it treats its sockets.
    #[must_use]
    pub fn manner(mut self, manner: Manner) -> ControllerRunner {
        self.manner = manner;
        self
    }

    /// The identity for an `ssl:` address.
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> ControllerRunner {
        self.tls = Some(tls);
        self
    }

    /// How connections are set up.
    #[must_use]
    pub fn options(mut self, options: Options) -> ControllerRunner {
        self.options = options;
        self
    }

    /// Listens and starts the thread. With port 0 the kernel chooses.
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

/// What a running controller has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControllerCounters {
    /// Switches whose handshake is complete now.
    pub switches: u64,
    /// Connections accepted so far.
    pub connections: u64,
    /// Messages received.
    pub received: u64,
    /// PACKET_INs among them.
    pub packet_ins: u64,
    /// ERRORs among them.
    pub errors: u64,
    /// Messages sent.
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

/// A controller in motion. Dropping it stops it.
pub struct RunningController {
    address: Address,
    waker: Waker,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<(), Error>>>,
}

impl RunningController {
    /// Where it listens.
    pub fn address(&self) -> Address {
        self.address
    }

    /// What it has done so far. Takes no lock.
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

    /// Waits until the counters are as wanted, looking once a millisecond.
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

    /// Stops; tells what went wrong if the thread ended early.
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
    /// What is to be written one byte at a time.
    drip: Vec<u8>,
}

/// When to accept again after that failed.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// Messages of one switch handled before others have their turn.
const MESSAGES_PER_TURN: usize = 256;
/// Bytes waiting to be written one at a time, beyond which nothing more is read.
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

    /// How long the poller may wait.
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

    /// Takes the connections that wait.
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
                    // Out of descriptors, say: ask again.
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

    /// One switch's turn; `false` when its connection is over.
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
