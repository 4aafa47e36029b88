//! A session: emulated switches and controllers that are connected to a system under test, for any number of runs.
//!
//! ```text
//!   emulated switches ──▶ system under test ──▶ emulated controllers   (one listening socket each)
//! ```
//!
//! The session's own thread sleeps during a run, and reads `/proc` from time to time.

use crate::clock::Clock;
use crate::control::{Change, Control};
use crate::cpus::Cpus;
use crate::dataplane::{Capturer, Injector};
use crate::error::Error;
use crate::load::{Kind, Load, Stream};
use crate::observe::{Observer, cpu_by_thread};
use crate::outcome::{Outcome, merge};
use crate::plan::{DataPort, Setup, Topology};
use crate::probing::Forwarded;
use crate::progress::Progress;
use crate::run::{Part, Sides};
use crate::segments::{self, Segments};
use crate::stop::Stop;
use crate::worker::{Command, Wiring, Worker};
use serde_json::{Value, json};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// The tenants' controllers' listening sockets. The sockets are bound before the system under test starts, because the
/// system dials the controllers.
#[derive(Debug)]
pub struct Controllers {
    listeners: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
}

impl Controllers {
    /// Binds one socket per tenant: on consecutive ports from `base`'s port, or on free ports if `base`'s port is 0.
    ///
    /// # Errors
    /// [`Error::Io`] naming the address that could not be bound.
    pub fn bind(tenants: usize, base: SocketAddr) -> Result<Self, Error> {
        let mut listeners = Vec::with_capacity(tenants);
        for index in 0..tenants {
            let mut address = base;
            if base.port() != 0 {
                let port = usize::from(base.port()) + index;
                let port = u16::try_from(port).map_err(|_| Error::Setting {
                    name: "controller base port".to_owned(),
                    value: base.port().to_string(),
                    range: format!("low enough for {tenants} ports"),
                })?;
                address.set_port(port);
            }
            let bound = TcpListener::bind(address);
            listeners.push(bound.map_err(Error::io(format!("controller {index} on {address}")))?);
        }
        let addresses = listeners.iter().map(TcpListener::local_addr).collect::<Result<_, _>>();
        let addresses = addresses.map_err(Error::io("controllers' addresses"))?;
        Ok(Self { listeners, addresses })
    }

    /// Removes and returns the sockets of this tenant and all later tenants. `self` no longer has their addresses.
    pub(crate) fn split_off(&mut self, tenant: usize) -> Vec<TcpListener> {
        self.addresses.truncate(tenant);
        self.listeners.split_off(tenant.min(self.listeners.len()))
    }

    /// No sockets, for the measurement of a real controller.
    #[must_use]
    pub fn none() -> Self {
        Self { listeners: Vec::new(), addresses: Vec::new() }
    }

    /// The address of each tenant's controller.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

/// A session with connected ends, ready to run loads.
#[derive(Debug)]
pub struct Session {
    setup: Arc<Setup>,
    clock: Clock,
    workers: Vec<Remote>,
    runs: u16,
    /// The controllers' ports, by which their sockets are found in the kernel's tables.
    controller_ports: Vec<u16>,
    switch_ports: Vec<u16>,
    stop: Stop,
}

/// The session's ends of the channels to a worker.
#[derive(Debug)]
struct Remote {
    commands: Option<Sender<Command>>,
    parts: Receiver<Part>,
    progress: Arc<Progress>,
    thread: Option<JoinHandle<()>>,
}

impl Session {
    /// Connects all ends and waits until every tenant's controller has completed the handshake.
    ///
    /// # Errors
    /// [`Error::Setting`] for a bad setup, [`Error::Io`] when a thread or socket cannot be made, [`Error::Handshake`]
    /// if the system under test does not connect all ends in time.
    pub fn open(setup: Setup, controllers: &Controllers) -> Result<Self, Error> {
        Session::open_until(setup, controllers, Stop::default())
    }

    /// Like [`Session::open`], but `stop` ends each wait.
    ///
    /// # Errors
    /// As [`Session::open`], and [`Error::Interrupted`].
    pub fn open_until(setup: Setup, controllers: &Controllers, stop: Stop) -> Result<Self, Error> {
        setup.check_tls_sides(&setup.topology)?;
        setup.check()?;
        let dials = match &setup.topology {
            Topology::Direct => controllers.addresses.clone(),
            Topology::PerTenant { switch_addresses } => switch_addresses.clone(),
            Topology::Shared { switch_address, switches } => vec![*switch_address; *switches],
            Topology::Controller { address } => vec![*address; setup.tenants],
            Topology::Interfaces { .. } => Vec::new(),
        };
        let mut session = Self {
            clock: Clock::start(),
            workers: Vec::new(),
            runs: 0,
            controller_ports: controllers.addresses.iter().map(SocketAddr::port).collect(),
            switch_ports: dials.iter().map(SocketAddr::port).collect(),
            setup: Arc::new(setup),
            stop,
        };
        let both = Sides { switches: true, controllers: true, sends: true };
        if let Topology::Interfaces { ports, .. } = &session.setup.topology {
            let ports = ports.clone();
            session.work_on_sockets(Sides { switches: false, ..both }, controllers, dials)?;
            session.work_on_interfaces(&ports)?;
        } else if session.setup.threads == 1 {
            session.work_on_sockets(both, controllers, dials)?;
        } else {
            session.work_on_sockets(Sides { switches: false, ..both }, controllers, Vec::new())?;
            session.work_on_sockets(Sides { controllers: false, ..both }, controllers, dials)?;
        }
        session.wait_ready()?;
        Ok(session)
    }

    fn work_on_sockets(
        &mut self,
        sides: Sides,
        controllers: &Controllers,
        dials: Vec<SocketAddr>,
    ) -> Result<(), Error> {
        let listeners = if sides.controllers {
            let cloned =
                controllers.listeners.iter().map(TcpListener::try_clone).collect::<Result<_, _>>();
            cloned.map_err(Error::io("controllers' sockets"))?
        } else {
            Vec::new()
        };
        let (wiring, remote) = self.wire();
        let worker = Worker::new(Arc::clone(&self.setup), sides, listeners, dials, wiring)?;
        let name = if sides.controllers { "bench-control" } else { "bench-data" };
        // A real switch or controller chooses its own CPUs.
        let is_real = matches!(self.setup.topology, Topology::Controller { .. });
        let is_all_ours = sides.controllers && sides.switches && !is_real;
        let cpus = is_all_ours.then(|| Cpus::of(&self.setup)).flatten();
        self.start(name, remote, move || {
            if let Some(cpus) = cpus {
                cpus.generate();
            }
            worker.work();
        })
    }

    fn work_on_interfaces(&mut self, ports: &[DataPort]) -> Result<(), Error> {
        let (wiring, remote) = self.wire();
        let capturer = Capturer::open(Arc::clone(&self.setup), ports, wiring)?;
        self.start("bench-capture", remote, move || capturer.work())?;
        let (wiring, remote) = self.wire();
        let injector = Injector::open(Arc::clone(&self.setup), ports, wiring)?;
        self.start("bench-inject", remote, move || injector.work())
    }

    /// The thread's ends and the session's ends of a thread's channels.
    fn wire(&self) -> (Wiring, Remote) {
        let (commands, orders) = channel();
        let (results, parts) = channel();
        let progress = Arc::new(Progress::default());
        let wiring = Wiring {
            clock: self.clock,
            progress: Arc::clone(&progress),
            commands: orders,
            parts: results,
        };
        (wiring, Remote { commands: Some(commands), parts, progress, thread: None })
    }

    fn start(
        &mut self,
        name: &str,
        mut remote: Remote,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<(), Error> {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work);
        remote.thread = Some(thread.map_err(Error::io("thread"))?);
        self.workers.push(remote);
        Ok(())
    }

    /// The required number of controller sessions.
    fn wanted(&self) -> usize {
        match self.setup.topology {
            Topology::Shared { switches, .. } | Topology::Interfaces { switches, .. } => {
                self.setup.tenants * switches
            }
            Topology::Direct | Topology::PerTenant { .. } | Topology::Controller { .. } => {
                self.setup.tenants
            }
        }
    }

    fn ready(&self) -> usize {
        let by_switches = matches!(self.setup.topology, Topology::Controller { .. });
        let count = |progress: &Progress| {
            let counter = if by_switches { &progress.introduced } else { &progress.ready };
            counter.load(Ordering::Relaxed)
        };
        self.workers.iter().map(|worker| count(&worker.progress)).sum()
    }

    fn wait_ready(&mut self) -> Result<(), Error> {
        let deadline = self.clock.now() + self.setup.handshake_ms * 1_000_000;
        while self.ready() < self.wanted() {
            self.stop.check()?;
            if self.clock.now() > deadline {
                let (ready, wanted) = (self.ready(), self.wanted());
                // A run without messages collects the faults.
                let load = Load { drain_ms: 0, ..Load::constant(Kind::Echo, 1, 1.0, 1) };
                let seen =
                    self.run_once(&load, &[], true, None).map(|outcome| outcome.faults.sentences());
                return Err(Error::Handshake { ready, wanted, seen: seen.unwrap_or_default() });
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// Whether the session has been stopped.
    #[must_use]
    pub fn is_asked_to_stop(&self) -> bool {
        self.stop.is_asked()
    }

    /// Runs one load, and observes the CPU and memory of the processes `pids` in the window.
    ///
    /// # Errors
    /// [`Error::Setting`] for a bad load, [`Error::Internal`] when a thread of the generator died,
    /// [`Error::Interrupted`].
    pub fn run(&mut self, load: &Load, pids: &[u32]) -> Result<Outcome, Error> {
        self.run_under(load, pids, None)
    }

    /// Like [`Session::run`], with changes by requests to `control` during the run.
    ///
    /// # Errors
    /// As [`Session::run`].
    pub fn run_under(
        &mut self,
        load: &Load,
        pids: &[u32],
        control: Option<&Control>,
    ) -> Result<Outcome, Error> {
        load.check(&self.setup)?;
        self.run_once(load, pids, false, control)
    }

    fn run_once(
        &mut self,
        load: &Load,
        pids: &[u32],
        keep_faults: bool,
        control: Option<&Control>,
    ) -> Result<Outcome, Error> {
        self.runs = self.runs.wrapping_add(1);
        let mut load = Arc::new(load.clone());
        // Removes old requests. A request between two runs gets the answer that there is no run.
        while control.is_some_and(|control| control.next().is_some()) {}
        let forwarded = Arc::new(Forwarded::new(&load));
        // Everything is allocated before the first message is due.
        let prepare = 20_000_000 + load.streams.len() as u64 * 300_000;
        let start = self.clock.now() + prepare;
        for worker in &self.workers {
            // The value until the worker publishes its progress.
            worker.progress.unfinished.store(1, Ordering::Relaxed);
            let command = Command::Run {
                id: self.runs,
                load: Arc::clone(&load),
                start,
                forwarded: Arc::clone(&forwarded),
                keep_faults,
            };
            worker.order(command)?;
        }
        let (from, to) = load.window_ns();
        let cpu = || pids.iter().flat_map(|&pid| cpu_by_thread(pid)).map(|it| it.1).sum::<u64>();
        let cpu_before = cpu();
        self.pass(start + from, start, &mut load, control)?;
        let segments_before = segments::count(&self.controller_ports, &self.switch_ports);
        let mut observer = Observer::start(pids);
        while self.clock.now() < start + to {
            let next = self.clock.now() + 200_000_000;
            self.pass(next.min(start + to), start, &mut load, control)?;
            observer.sample();
        }
        let usage = observer.finish();
        let segments_after = segments::count(&self.controller_ports, &self.switch_ports);
        self.pass(start + load.duration_ms * 1_000_000, start, &mut load, control)?;
        self.drain(&load);
        let cpu_ns = cpu().saturating_sub(cpu_before);
        self.stop.check()?;
        let parts = self.collect()?;
        let mut outcome = merge(&load, parts, self.setup.switches());
        outcome.usage = usage;
        outcome.whole.1 = cpu_ns;
        outcome.segments = segments_before.zip(segments_after).map(|(before, after)| {
            // Probes into a real switch's ports do not pass the generator's TCP sockets.
            let on_wires = matches!(self.setup.topology, Topology::Interfaces { .. });
            let probes = |stream: &Stream| stream.mix.iter().all(|(kind, _)| kind.from_switch());
            let by_sockets = !(on_wires && load.streams.iter().all(probes));
            Segments::between(before, after, outcome.counts(), by_sockets)
        });
        Ok(outcome)
    }

    /// Sleeps until this time or until the session is stopped, and carries out requests.
    fn pass(
        &self,
        until: u64,
        start: u64,
        load: &mut Arc<Load>,
        control: Option<&Control>,
    ) -> Result<(), Error> {
        while self.clock.now() < until {
            self.stop.check()?;
            let Some(control) = control else {
                self.clock.sleep_until(until.min(self.clock.now() + LOOK_FOR_END_NS));
                continue;
            };
            while let Some(order) = control.next() {
                let elapsed_ms = self.clock.now().saturating_sub(start) / 1_000_000;
                match changed(load, &self.setup, &order.change, elapsed_ms) {
                    Ok((answer, None)) => order.answer(Ok(answer)),
                    Ok((answer, Some(new))) => {
                        *load = Arc::new(new);
                        for worker in &self.workers {
                            worker.order(Command::Change(Arc::clone(load)))?;
                        }
                        control.note(format!("at {elapsed_ms} ms: {answer}"));
                        order.answer(Ok(answer));
                    }
                    Err(why) => order.answer(Err(why)),
                }
            }
            let next = self.clock.now() + LOOK_NS;
            self.clock.sleep_until(next.min(until));
        }
        Ok(())
    }

    /// Waits until all sent messages have arrived, at most for the load's time.
    fn drain(&self, load: &Load) {
        let deadline = self.clock.now() + load.drain_ms * 1_000_000;
        let sum = |counter: fn(&Progress) -> u64| -> u64 {
            self.workers.iter().map(|worker| counter(&worker.progress)).sum()
        };
        while self.clock.now() < deadline && !self.stop.is_asked() {
            // The order of the two readings matters: a message that is sent after the second reading belongs to a
            // sender that was unfinished at the first reading.
            let unfinished = sum(|progress| progress.unfinished.load(Ordering::Relaxed) as u64);
            let sent = sum(|progress| progress.sent.load(Ordering::Relaxed));
            let arrived = sum(|progress| progress.arrived.load(Ordering::Relaxed));
            if unfinished == 0 && arrived >= sent {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn collect(&self) -> Result<Vec<Part>, Error> {
        self.workers.iter().try_for_each(|worker| worker.order(Command::Finish))?;
        let take = |worker: &Remote| match worker.parts.recv_timeout(Duration::from_secs(10)) {
            Ok(part) => Ok(part),
            Err(RecvTimeoutError::Timeout) => Err(Error::Internal("a generator thread hangs")),
            Err(RecvTimeoutError::Disconnected) => Err(Error::Internal("a generator thread died")),
        };
        self.workers.iter().map(take).collect()
    }
}

/// The time between two checks whether the session is stopped.
const LOOK_FOR_END_NS: u64 = 200_000_000;
/// The time between two checks for requests to `control`.
const LOOK_NS: u64 = 5_000_000;
/// The time from a request to its change, so that all threads get the change in time.
const LEAD_MS: u64 = 100;

/// The answer to a request, and the load after the change.
fn changed(
    load: &Load,
    setup: &Setup,
    change: &Change,
    elapsed_ms: u64,
) -> Result<(Value, Option<Load>), String> {
    let soon = elapsed_ms + LEAD_MS;
    let mut new = load.clone();
    let mut stop = |number: usize, at: u64| {
        let count = load.streams.len();
        let stream = new.streams.get_mut(number);
        let stream = stream.ok_or_else(|| format!("stream {number}: there are {count}, from 0"))?;
        stream.stop_ms = Some(stream.stop_ms.map_or(at, |earlier| earlier.min(at)));
        Ok::<(), String>(())
    };
    let begin = |stream: &Stream| {
        let mut stream = stream.clone();
        stream.start_ms = stream.start_ms.max(soon);
        if stream.start_ms >= load.duration_ms {
            return Err(format!("the run ends at {} ms", load.duration_ms));
        }
        if stream.is_probed() {
            return Err("flow-mod-packet can only be in the scenario file".to_owned());
        }
        Ok(stream)
    };
    let answer = match change {
        Change::Look => {
            let streams = serde_json::to_value(&load.streams).map_err(|error| error.to_string())?;
            let duration_ms = load.duration_ms;
            let answer =
                json!({ "elapsed_ms": elapsed_ms, "duration_ms": duration_ms, "streams": streams });
            return Ok((answer, None));
        }
        Change::Stop(number) => {
            stop(*number, soon)?;
            json!({ "stream": number, "stop_ms": soon })
        }
        Change::Add(stream) => {
            let stream = begin(stream)?;
            let answer = json!({ "stream": load.streams.len(), "start_ms": stream.start_ms });
            new.streams.push(stream);
            answer
        }
        Change::Replace(number, stream) => {
            let stream = begin(stream)?;
            let start_ms = stream.start_ms;
            stop(*number, start_ms)?;
            new.streams.push(stream);
            let begun = load.streams.len();
            json!({ "stream": begun, "start_ms": start_ms, "in_place_of": number })
        }
    };
    new.check(setup).map_err(|error| error.to_string())?;
    Ok((answer, Some(new)))
}

impl Remote {
    fn order(&self, command: Command) -> Result<(), Error> {
        let sent = self.commands.as_ref().map(|commands| commands.send(command).is_ok());
        if sent == Some(true) { Ok(()) } else { Err(Error::Internal("a generator thread died")) }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            worker.commands = None;
            if let Some(thread) = worker.thread.take() {
                // A thread that panicked has already printed its message.
                let _ = thread.join();
            }
        }
    }
}
