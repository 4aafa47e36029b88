//! A thread of the generator: one epoll loop that sends the messages that are due and reads arrived
//! messages.
//!
//! ```text
//!  session ──commands──▶ worker ──────────────────────────────┐
//!     ▲                    │  loop:                           │
//!     │                    │   1. build what is due, write it │◀──▶ switches' sockets
//!     └──parts of results──│   2. epoll: sleep until the next │◀──▶ controllers' sockets
//!                          │      is due (Pacing::sleep_ns)   │
//!                          │   3. read what has come          │
//!                          └──────────────────────────────────┘
//! ```
//!
//! With one thread the thread plays both sides; with two threads one thread plays the switches and
//! the other the controllers. Each thread shares only two counters, by which the session sees when
//! all messages have arrived.

mod connections;

use crate::clock::Clock;
use crate::conn::Conn;
use crate::endpoint::{Context, ControllerEnd, SwitchEnd};
use crate::error::Error;
use crate::fault::Faults;
use crate::kind::PROBED;
use crate::load::Load;
use crate::plan::{Identity, Setup, Topology};
use crate::probing::Forwarded;
use crate::progress::Progress;
use crate::run::{Due, Part, Run, Sides};
use crate::sender::Next;
use crate::service::Served;
use channel::{Tls, TlsFiles};
use rustix::event::{Timespec, epoll};
use std::cmp::Reverse;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};

/// A loop reads at most this many bytes of one connection, so that reading delays sending by at
/// most some thirty microseconds.
const READ_AT_ONCE: usize = 64 * 1024;
/// The space for a kept partial frame and a read.
const SCRATCH: usize = 64 * 1024 + READ_AT_ONCE;
/// A slow switch reads few bytes at once, because its queue is short.
const READ_SLOWLY: usize = 2 * 1024;
/// The most messages of one sender, and of all senders, before the loop checks its sockets again.
const SENDER_TURN: usize = 512;
const SEND_TURN: usize = 1024;
/// The number of connections that are written before the loop checks its sockets again, because
/// each write costs microseconds.
const CONNECTIONS_TURN: usize = 32;
/// The bytes of a full write.
const WRITE_AT_ONCE: usize = 64 * 1024;
/// The time between two checks for commands when nothing is due.
const IDLE_NS: u64 = 2_000_000;
const LISTENER: u64 = 1 << 32;

/// A command of the session to a worker.
#[derive(Debug)]
pub(crate) enum Command {
    /// Begin the run with this number.
    Run {
        id: u16,
        load: Arc<Load>,
        start: u64,
        /// The rules that have forwarded a packet, if the load probes rules.
        forwarded: Arc<Forwarded>,
        /// Whether the faults before the run are kept, to explain a failed handshake.
        keep_faults: bool,
    },
    /// The load has further streams, or streams end earlier.
    Change(Arc<Load>),
    /// The run has ended: send the part of the result.
    Finish,
}

#[derive(Debug)]
enum End {
    Switch(Box<SwitchEnd>),
    Controller(ControllerEnd),
}

#[derive(Debug)]
struct Peer {
    conn: Conn,
    end: End,
    reads: bool,
    /// Senders that wait for room in the connection.
    parked: Vec<usize>,
    dirty: bool,
    /// Messages since the last write.
    batched: usize,
    /// Whether epoll reports when the connection has space.
    watches_room: bool,
}

/// One thread's state.
#[derive(Debug)]
pub(crate) struct Worker {
    setup: Arc<Setup>,
    sides: Sides,
    switch_tls: Option<Tls>,
    controller_tls: Option<Tls>,
    clock: Clock,
    epoll: OwnedFd,
    listeners: Vec<TcpListener>,
    peers: Vec<Option<Peer>>,
    /// The ready connections of each tenant, as numbers of peers.
    controllers: Vec<Vec<usize>>,
    /// Each switch's peer.
    switches: Vec<Option<usize>>,
    dials: Vec<SocketAddr>,
    redial_at: u64,
    run: Option<Run>,
    faults: Faults,
    /// Senders that have no connection at the moment.
    homeless: Vec<usize>,
    dirty: Vec<usize>,
    scratch: Vec<u8>,
    served: Vec<u8>,
    progress: Arc<Progress>,
    commands: Receiver<Command>,
    parts: Sender<Part>,
}

/// The ends of the channels, and other values that a worker gets from its session.
#[derive(Debug)]
pub(crate) struct Wiring {
    pub(crate) clock: Clock,
    pub(crate) progress: Arc<Progress>,
    pub(crate) commands: Receiver<Command>,
    pub(crate) parts: Sender<Part>,
}

impl Worker {
    /// `listeners` are the tenants' controllers' sockets, in order; `dials` has the address that
    /// each switch dials.
    pub(crate) fn new(
        setup: Arc<Setup>,
        sides: Sides,
        listeners: Vec<TcpListener>,
        dials: Vec<SocketAddr>,
        wiring: Wiring,
    ) -> Result<Self, Error> {
        let failed = |error: rustix::io::Errno| Error::Io("epoll".to_owned(), error.into());
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(failed)?;
        for (tenant, listener) in listeners.iter().enumerate() {
            listener.set_nonblocking(true).map_err(Error::io("listening socket"))?;
            let data = epoll::EventData::new_u64(LISTENER | tenant as u64);
            epoll::add(&epoll, listener, data, epoll::EventFlags::IN).map_err(failed)?;
        }
        Ok(Self {
            switch_tls: identity(setup.tls.switches.as_ref())?,
            controller_tls: identity(setup.tls.controllers.as_ref())?,
            controllers: vec![Vec::new(); setup.tenants],
            switches: vec![None; dials.len()],
            setup,
            sides,
            clock: wiring.clock,
            epoll,
            listeners,
            peers: Vec::new(),
            dials,
            redial_at: 0,
            run: None,
            faults: Faults::default(),
            homeless: Vec::new(),
            dirty: Vec::new(),
            scratch: vec![0; SCRATCH],
            served: Vec::with_capacity(1024),
            progress: wiring.progress,
            commands: wiring.commands,
            parts: wiring.parts,
        })
    }

    /// Works until the session ends.
    pub(crate) fn work(mut self) {
        // Without this call the kernel extends sleeps by up to 50 µs to save wake-ups. If the
        // kernel refuses the call, the lag shows this.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let mut events: Vec<epoll::Event> = Vec::with_capacity(256);
        loop {
            match self.commands.try_recv() {
                Ok(command) => self.obey(command),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return,
            }
            self.dial_missing();
            let wait = self.send_due();
            let timeout = Timespec { tv_sec: 0, tv_nsec: wait.min(IDLE_NS) as i64 };
            events.clear();
            let spare = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.epoll, spare, Some(&timeout)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
            let now = self.clock.now();
            for event in &events {
                let (data, flags) = (event.data.u64(), event.flags);
                if data & LISTENER != 0 {
                    self.accept((data & !LISTENER) as usize);
                } else {
                    self.ready(data as usize, flags, now);
                }
            }
            self.publish();
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Run { id, load, start, forwarded, keep_faults } => {
                if !keep_faults {
                    self.faults = Faults::default();
                }
                self.homeless.clear();
                self.run = Some(Run::new(id, &self.setup, load, self.sides, start, forwarded));
            }
            Command::Change(load) => {
                if let Some(run) = &mut self.run {
                    run.change(&self.setup, load, self.sides);
                }
            }
            Command::Finish => {
                let faults = std::mem::take(&mut self.faults);
                self.peers.iter_mut().flatten().for_each(|peer| peer.parked.clear());
                let run = self.run.take();
                self.finish_service();
                if let Some(run) = run {
                    let part = run.into_part(faults);
                    // A session that has ended does not need this part of the result.
                    let _ = self.parts.send(part);
                }
            }
        }
    }

    /// Answers the waiting requests at once, because outside of runs switches have no service time.
    fn finish_service(&mut self) {
        for token in 0..self.peers.len() {
            if matches!(self.peers.get(token), Some(Some(Peer { end: End::Switch(end), .. })) if end.is_slow())
            {
                self.serve(token, u64::MAX);
            }
        }
    }

    fn publish(&self) {
        if let Some(run) = &self.run {
            run.publish(&self.progress, self.clock.now());
        }
    }

    /// Sends the messages that are due. Returns the time in ns that the thread may sleep: 0 if the
    /// next message is due soon.
    fn send_due(&mut self) -> u64 {
        let now = self.clock.now();
        let homeless = std::mem::take(&mut self.homeless);
        self.resume(&homeless, now);
        let mut budget = SEND_TURN;
        let wait = loop {
            let Some(run) = &mut self.run else { break IDLE_NS };
            let Some(&Reverse((at, due))) = run.due.peek() else { break IDLE_NS };
            let now = self.clock.now();
            if at > now {
                break run.pacing.sleep_ns(at - now);
            }
            if budget == 0 || self.dirty.len() >= CONNECTIONS_TURN {
                break 0;
            }
            run.due.pop();
            match due {
                Due::Send(place) => budget = budget.saturating_sub(self.turn(place, now)),
                Due::Service(token) => self.serve(token, now),
                Due::Probe => self.probe(true),
            }
        };
        self.flush_dirty();
        wait
    }

    /// Sends the due messages of one sender, up to a limit. Returns the number of sent messages.
    fn turn(&mut self, place: usize, mut now: u64) -> usize {
        let mut count = 0;
        loop {
            let Some(run) = &mut self.run else { return count };
            let Some(sender) = run.senders.get_mut(place) else { return count };
            let intended = match sender.next(now) {
                Next::At(at) if at <= now => at,
                Next::At(at) => {
                    run.due.push(Reverse((at, Due::Send(place))));
                    return count.max(1);
                }
                Next::Now => now,
                Next::Reply | Next::Over => return count.max(1),
            };
            if count >= SENDER_TURN {
                // Other senders go first: this sender goes to the end of the queue of senders that
                // are due.
                run.due.push(Reverse((now, Due::Send(place))));
                return count;
            }
            let route = if sender.from_switch {
                route_of_switch(&self.setup, &self.switches, sender.tenant, sender.sequence())
            } else {
                route_of_tenant(&self.controllers, sender.tenant, sender.sequence())
            };
            let Some((token, peer)) =
                route.and_then(|token| Some((token, self.peers.get_mut(token)?.as_mut()?)))
            else {
                // There is no connection: the sender tries again soon. Messages that are due in the
                // meantime do not count as the generator's lag.
                sender.excused_until = now + 1_000_000;
                run.due.push(Reverse((now + 1_000_000, Due::Send(place))));
                return count.max(1);
            };
            if peer.conn.blocked {
                peer.parked.push(place);
                return count.max(1);
            }
            if intended >= sender.excused_until && !sender.is_unscheduled() {
                run.part.lag.record(now - intended);
            }
            let (stream, has_reply) = (sender.stream, sender.kind().has_reply());
            let waiting = sender.build(run.id, intended, &mut peer.conn.out);
            run.left(stream, waiting, has_reply);
            count += 1;
            peer.batched += 1;
            let full = run.load.batch > 0 && peer.batched >= run.load.batch;
            if !peer.dirty {
                peer.dirty = true;
                self.dirty.push(token);
            }
            if full || peer.conn.unsent() >= WRITE_AT_ONCE {
                self.flush_dirty();
            }
            now = self.clock.now();
        }
    }

    /// Checks in the switches' tables whether waiting rules now forward a packet.
    fn probe(&mut self, again: bool) {
        let Some(run) = self.run.as_mut().filter(|run| !run.probers.is_empty()) else { return };
        let now = self.clock.now();
        let mut probers = std::mem::take(&mut run.probers);
        let mut next: Option<u64> = None;
        for prober in &mut probers {
            let tenant = prober.tenant;
            let ports = [self.setup.port(tenant), self.setup.other_port(tenant)];
            let switches = match self.setup.topology {
                Topology::Shared { .. } => self.switches.as_slice(),
                _ => self.switches.get(tenant..=tenant).unwrap_or_default(),
            };
            let peers = &mut self.peers;
            let done = prober.probe(now, usize::MAX, |_, packet| {
                switches.iter().flatten().any(|&token| match peers.get_mut(token) {
                    Some(Some(Peer { end: End::Switch(end), .. })) => {
                        end.forwards(now, ports, packet)
                    }
                    _ => false,
                })
            });
            for (sequence, intended) in done {
                run.arrive(prober.stream, PROBED, sequence, intended, now);
            }
            next = next.into_iter().chain(prober.due(now)).min();
        }
        run.probers = probers;
        if let Some(at) = next.filter(|_| again) {
            run.due.push(Reverse((at, Due::Probe)));
        }
    }

    /// Handles the messages that the slow switch has finished.
    fn serve(&mut self, token: usize, now: u64) {
        let Some(Some(Peer { end: End::Switch(end), conn, .. })) = self.peers.get_mut(token) else {
            return;
        };
        while let Some(Served { work, next }) = end.serve(now, &mut self.served) {
            if let Some(run) = &mut self.run {
                run.busy(work);
            }
            let mut context = Context { run: self.run.as_mut(), faults: &mut self.faults, now };
            end.process(&self.served, &mut conn.out, &mut context);
            if let (Some(at), Some(run)) = (next, &mut self.run)
                && at > now
            {
                run.due.push(Reverse((at, Due::Service(token))));
            }
        }
        self.probe(false);
        self.mark_dirty(token);
        self.flush_dirty();
        self.watch(token);
    }
}

/// Reads the identity in these files.
pub(crate) fn identity(files: Option<&Identity>) -> Result<Option<Tls>, Error> {
    let load = |files: &Identity| {
        let Identity { private_key, certificate, ca } = files.clone();
        Tls::load(&TlsFiles { private_key, certificate, ca_certificate: ca })
    };
    files.map(load).transpose().map_err(|error| Error::Tls(error.to_string()))
}

fn route_of_switch(
    setup: &Setup,
    switches: &[Option<usize>],
    tenant: usize,
    sequence: u32,
) -> Option<usize> {
    let index = match setup.topology {
        Topology::Direct
        | Topology::PerTenant { .. }
        | Topology::Controller { .. }
        | Topology::Interfaces { .. } => tenant,
        Topology::Shared { switches, .. } => sequence as usize % switches.max(1),
    };
    switches.get(index).copied().flatten()
}

fn route_of_tenant(controllers: &[Vec<usize>], tenant: usize, sequence: u32) -> Option<usize> {
    let ready = controllers.get(tenant)?;
    ready.get((sequence as usize).checked_rem(ready.len())?).copied()
}
