//! The edge daemon: gives [`Control`] the kernel's counters and the datagrams of the other agents.
//!
//! The daemon has one thread with one loop and shares no data:
//!
//! ```text
//!   every 5 ms:  for each VNIC: Shaper::counters, Shaper::received ──▶ Control::handle_counters
//!                Control::handle_step ──▶ poll_message ──▶ Sessions::seal ──▶ UDP ══▶ other agents, hypervisor
//!                                    └──▶ poll_ceiling ──▶ Shaper::set_ceiling
//!   in between:  UDP ══▶ Sessions::open ──▶ Control::handle_message ──▶ poll_ceiling ──▶ Shaper::set_ceiling
//! ```
//!
//! Bounds: a datagram has at most 1,232 bytes; the number of pairs of VNICs bounds the datagrams sent in one step; half
//! of the time until the next step bounds the time for received datagrams. Datagrams beyond that bound overflow the
//! socket's buffer and are lost; the next report replaces a lost report.
//!
//! The thread runs before ordinary threads where the user has the permission (`CAP_SYS_NICE`). Otherwise, on a server
//! with busy cores, grants would expire while the thread waits for a core. A flood of datagrams takes at most half of a
//! core.
//!
//! When an interface goes away, or somebody removes the interface's shaper, the daemon tries again every second; the
//! other interfaces continue. Dropping an [`Edge`] restores every interface. For an agent that was killed, a process
//! beside the agent calls [`fall_back`].

use crate::error::{Error, Result};
use crate::eyeq::{Control, Oddities, Vnic};
use crate::sampler::within;
use crate::shaper::{Shape, Shaper, check_kernel};
use fabric::edge::{AgentId, EdgeKey, LONGEST_DATAGRAM, Refused, Sessions};
use fabric::{Bandwidth, Duration, Instant, MacAddress};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::os::linux::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time;

/// The time from step to step.
const INTERVAL: Duration = Duration::from_millis(5);
/// The most time per interval for received datagrams.
const HEARING: Duration = Duration::from_micros(2_500);
/// The time between two attempts to find a missing interface.
const RETRY: Duration = Duration::from_secs(1);
/// The most events that wait for [`Edge::take_events`].
const MOST_EVENTS: usize = 256;

/// A virtual interface and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The name of the VNIC, for people.
    pub name: String,
    /// The hardware address of the VNIC.
    pub mac: MacAddress,
    /// The bandwidth of the VNIC, for sending and for receiving.
    pub bandwidth: Bandwidth,
    /// VNICs of one tenant send to each other.
    pub tenant: String,
    /// The agent that serves the VNIC.
    pub agent: String,
    /// The network namespace of the VNIC's interface on the agent's machine; `None` is the agent's own namespace.
    pub namespace: Option<String>,
    /// The interface through which the VNIC's frames leave at the egress.
    pub interface: String,
}

/// The settings of an agent.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The agent's own name.
    pub own: String,
    /// All VNICs of the fabric, also the VNICs of other agents.
    pub vnics: Vec<Site>,
    /// The address at which the agent receives datagrams of other agents. An agent that serves all VNICs needs no
    /// address.
    pub listen: Option<SocketAddr>,
    /// The names and addresses of the other agents.
    pub peers: Vec<(String, SocketAddr)>,
    /// The name and address of the hypervisor that gets the rates.
    pub hypervisor: Option<(String, SocketAddr)>,
    /// The key that authenticates agents. An agent with a peer or a hypervisor needs a key.
    pub key: Option<EdgeKey>,
}

/// The present state of a VNIC of this agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// The name of the VNIC.
    pub name: String,
    /// The rate that the VNIC receives.
    pub received: Bandwidth,
    /// The rate that the VNIC sends to other VNICs.
    pub sent: Bandwidth,
    /// Whether grants limit the VNIC's senders to their shares.
    pub congested: bool,
    /// Whether the interface is present and has a shaper.
    pub shaped: bool,
    /// The destinations of the VNIC: name, present rate, ceiling.
    pub destinations: Vec<(String, Bandwidth, Bandwidth)>,
}

/// Counters since the start of the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Steps of the loop.
    pub steps: u64,
    /// Steps that began more than an interval late.
    pub late: u64,
    /// Datagrams that the kernel accepted for sending.
    pub sent: u64,
    /// Datagrams that the kernel did not accept for sending.
    pub unsent: u64,
    /// Received datagrams that the agent accepted.
    pub taken: u64,
    /// Received datagrams with garbage, or with another key.
    pub garbage: u64,
    /// Received datagrams from or to an agent that the settings do not name.
    pub strangers: u64,
    /// Received datagrams that came before the greeting of their peer, or from before a restart of their peer.
    pub unplaced: u64,
    /// Received datagrams that the agent had accepted before.
    pub repeated: u64,
    /// Refused entries of accepted datagrams.
    pub oddities: Oddities,
}

/// The fallback for an interface of an agent that was killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fallback {
    /// The interface's network namespace.
    pub namespace: Option<String>,
    /// The shape that the agent's shaper had.
    pub shape: Shape,
}

/// A running agent.
pub struct Edge {
    start: time::Instant,
    control: Control,
    places: Vec<Place>,
    names: BTreeMap<MacAddress, String>,
    wire: Option<Wire>,
    counts: Counts,
    events: VecDeque<String>,
}

/// A VNIC of this agent.
struct Place {
    site: Site,
    shape: Shape,
    shaper: Option<Shaper>,
    /// The identity of the namespace: a new namespace may get the same name.
    identity: Option<(u64, u64)>,
    looked: Instant,
}

struct Wire {
    socket: UdpSocket,
    sessions: Sessions,
    addresses: BTreeMap<AgentId, SocketAddr>,
}

impl Edge {
    /// Shapes the interface of every VNIC of this agent.
    ///
    /// # Errors
    /// [`Error::Option`] when settings contradict each other. [`Error::Shaping`] when the kernel lacks a feature,
    /// another program shapes an interface, or the process lacks privileges. [`Error::Packet`] when an interface or
    /// namespace is missing. An error leaves no shaper behind.
    pub fn open(settings: &Settings) -> Result<Edge> {
        check(settings)?;
        check_kernel()?;
        let wire = Wire::open(settings)?;
        let own = AgentId::of(&settings.own);
        let tenants: BTreeSet<&str> =
            settings.vnics.iter().map(|site| site.tenant.as_str()).collect();
        let tenants: BTreeMap<&str, u32> = tenants.into_iter().zip(1..).collect();
        let vnic = |site: &Site| Vnic {
            mac: site.mac,
            bandwidth: site.bandwidth,
            tenant: tenants.get(site.tenant.as_str()).copied().unwrap_or(0),
            agent: AgentId::of(&site.agent),
        };
        let vnics: Vec<Vnic> = settings.vnics.iter().map(vnic).collect();
        let hypervisor = settings.hypervisor.as_ref().map(|(name, _)| AgentId::of(name));
        let control = Control::new(own, &vnics, hypervisor);
        let names = settings.vnics.iter().map(|site| (site.mac, site.name.clone())).collect();
        let mut edge = Edge {
            start: time::Instant::now(),
            places: Vec::new(),
            control,
            names,
            wire,
            counts: Counts::default(),
            events: VecDeque::new(),
        };
        for site in settings.vnics.iter().filter(|site| site.agent == settings.own) {
            let shape = Shape {
                interface: site.interface.clone(),
                bandwidth: site.bandwidth,
                destinations: edge.control.destinations(site.mac),
            };
            let mut place = Place {
                site: site.clone(),
                shape,
                shaper: None,
                identity: None,
                looked: Instant::default(),
            };
            // If one interface fails, dropping the edge restores the interfaces before it.
            place.install().map_err(|error| place.explain(error))?;
            edge.places.push(place);
        }
        Ok(edge)
    }

    /// Runs until `stop` is set, and calls `observe` after every step. From then on, the calling thread runs before
    /// ordinary threads.
    ///
    /// # Errors
    /// Errors of `observe`, and [`Error::Io`] when the socket fails for good.
    pub fn run<E: From<Error>>(
        &mut self,
        stop: &AtomicBool,
        mut observe: impl FnMut(&mut Edge) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Err(error) = packet::run_first() {
            note(&mut self.events, format!("{error}; with full cores grants may lapse"));
        }
        let mut next = time::Instant::now();
        while !stop.load(Ordering::SeqCst) {
            self.step();
            observe(self)?;
            next += INTERVAL;
            let now = time::Instant::now();
            if next + INTERVAL < now {
                // The loop skips missed steps: counters and clock cover the time of the missed steps.
                self.counts.late += 1;
                next = now;
            }
            self.listen(next)?;
        }
        Ok(())
    }

    /// The present state of this agent's VNICs.
    pub fn status(&self) -> Vec<Status> {
        let name =
            |mac: MacAddress| self.names.get(&mac).cloned().unwrap_or_else(|| mac.to_string());
        let status = |place: &Place| {
            let mac = place.site.mac;
            let sender = self.control.senders().find(|sender| sender.vnic().mac == mac);
            let receiver = self.control.receiver(mac);
            let pairs = sender.into_iter().flat_map(|sender| sender.pairs());
            Status {
                name: place.site.name.clone(),
                received: receiver.map_or(Bandwidth::ZERO, |it| it.rate()),
                sent: sender.map_or(Bandwidth::ZERO, |it| it.rate()),
                congested: receiver.is_some_and(|it| it.is_congested()),
                shaped: place.shaper.is_some(),
                destinations: pairs.map(|(to, rate, most)| (name(to), rate, most)).collect(),
            }
        };
        self.places.iter().map(status).collect()
    }

    /// The counters since the start.
    pub fn counts(&self) -> Counts {
        Counts { oddities: self.control.oddities(), ..self.counts }
    }

    /// The agent's socket address, if the agent listens.
    pub fn address(&self) -> Option<SocketAddr> {
        self.wire.as_ref().and_then(|wire| wire.socket.local_addr().ok())
    }

    /// Takes the events since the last call; each event is a sentence.
    pub fn take_events(&mut self) -> Vec<String> {
        self.events.drain(..).collect()
    }

    /// The fallbacks for this agent's interfaces, for the case that the agent is killed.
    pub fn fallbacks(&self) -> Vec<Fallback> {
        let fallback = |place: &Place| Fallback {
            namespace: place.site.namespace.clone(),
            shape: place.shape.clone(),
        };
        self.places.iter().map(fallback).collect()
    }

    /// Restores every interface.
    ///
    /// # Errors
    /// The first error of the kernel. The other interfaces are restored nonetheless.
    pub fn close(mut self) -> Result<()> {
        self.restore()
    }

    fn restore(&mut self) -> Result<()> {
        let mut outcome = Ok(());
        for place in &mut self.places {
            if let Some(mut shaper) = place.shaper.take() {
                // The shaper of an interface disappears with the interface.
                let removed = if place.is_there() { shaper.remove() } else { Ok(()) };
                outcome = outcome.and(removed);
            }
        }
        outcome
    }

    fn now(&self) -> Instant {
        Instant(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn step(&mut self) {
        self.counts.steps += 1;
        let now = self.now();
        for place in &mut self.places {
            match place.look(now) {
                Ok(None) => {}
                Ok(Some(Look::Counters(classes, received))) => {
                    self.control.handle_counters(now, place.site.mac, &classes, received);
                }
                Ok(Some(Look::Returned)) => {
                    self.control.handle_reset(place.site.mac);
                    note(&mut self.events, format!("{} is shaped again", place.site.name));
                }
                Err(error) => {
                    let error = place.explain(error);
                    note(&mut self.events, format!("{error}; tried again every second"));
                }
            }
        }
        self.control.handle_step(now);
        if let Some(wire) = &mut self.wire {
            while let Some((to, message)) = self.control.poll_message() {
                if let Some(datagram) = wire.sessions.seal(to, &message) {
                    wire.send(to, &datagram, &mut self.counts);
                }
            }
        }
        self.apply(now);
    }

    /// Receives datagrams until the time `until`.
    fn listen(&mut self, until: time::Instant) -> Result<()> {
        let Some(wire) = &self.wire else {
            std::thread::sleep(until.saturating_duration_since(time::Instant::now()));
            return Ok(());
        };
        let socket = wire.socket.try_clone().map_err(|e| Error::io("share the socket", e))?;
        let mut buffer = [0; LONGEST_DATAGRAM + 1];
        let mut heard = Duration::ZERO;
        loop {
            let left = until.saturating_duration_since(time::Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            if heard > HEARING {
                std::thread::sleep(left);
                return Ok(());
            }
            // The timeout is rounded up: after a timeout that is too short, the loop would only poll again.
            let ms = u16::try_from(left.as_micros().div_ceil(1000)).unwrap_or(u16::MAX);
            let mut wanted = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
            match poll(&mut wanted, PollTimeout::from(ms)) {
                Ok(0) | Err(nix::errno::Errno::EINTR) => return Ok(()),
                Ok(_) => {}
                Err(errno) => return Err(Error::io("wait for the other agents", errno)),
            }
            let began = time::Instant::now();
            match socket.recv(&mut buffer) {
                Ok(length) => self.take(buffer.get(..length).unwrap_or_default()),
                // A peer that is down causes an ICMP error.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(Error::io("hear the other agents", error)),
            }
            heard += began.elapsed();
        }
    }

    fn take(&mut self, datagram: &[u8]) {
        let now = self.now();
        let Some(wire) = &mut self.wire else { return };
        match wire.sessions.open(datagram) {
            Ok(Some(opened)) => {
                self.counts.taken += 1;
                self.control.handle_message(now, opened.from, &opened.message);
            }
            Ok(None) => self.counts.taken += 1,
            Err(Refused::Garbage) => self.counts.garbage += 1,
            Err(Refused::Stranger) => self.counts.strangers += 1,
            Err(Refused::Unplaced) => self.counts.unplaced += 1,
            Err(Refused::Repeated) => self.counts.repeated += 1,
        }
        while let Some((to, hello)) = wire.sessions.poll_hello(now) {
            wire.send(to, &hello, &mut self.counts);
        }
        self.apply(now);
    }

    fn apply(&mut self, now: Instant) {
        while let Some(ceiling) = self.control.poll_ceiling(now) {
            let place = self.places.iter_mut().find(|place| place.site.mac == ceiling.from);
            let Some(place) = place else { continue };
            if let Some(shaper) = &mut place.shaper
                && let Err(error) = shaper.set_ceiling(ceiling.to, ceiling.most)
            {
                place.shaper = None;
                place.looked = now;
                let error = place.explain(error);
                note(&mut self.events, format!("{error}; tried again every second"));
            }
        }
    }
}

impl Drop for Edge {
    fn drop(&mut self) {
        // Nobody can receive an error of `drop`; `close` returns the error.
        let _ = self.restore();
    }
}

/// The result of a check of a VNIC's interface.
enum Look {
    Counters(Vec<crate::shaper::Counters>, u64),
    /// The interface was missing, and has a shaper again.
    Returned,
}

impl Place {
    fn install(&mut self) -> Result<()> {
        let shape = self.shape.clone();
        self.shaper = Some(within(self.site.namespace.as_deref(), || Shaper::install(shape))?);
        self.identity = self.find_identity();
        Ok(())
    }

    fn look(&mut self, now: Instant) -> Result<Option<Look>> {
        let is_due = now < self.looked || now - self.looked >= RETRY;
        if is_due {
            self.looked = now;
        }
        if self.shaper.is_some() && is_due && !self.is_there() {
            // Our sockets would keep a namespace alive after its removal.
            self.shaper = None;
            return Err(Error::Shaping("its network namespace was removed".to_owned()));
        }
        let Some(shaper) = &mut self.shaper else {
            // The agent reported the missing interface when the interface disappeared.
            let is_back = is_due && self.install().is_ok();
            return Ok(is_back.then_some(Look::Returned));
        };
        match shaper.counters().and_then(|classes| Ok((classes, shaper.received()?))) {
            Ok((classes, received)) => Ok(Some(Look::Counters(classes, received))),
            Err(error) => {
                self.shaper = None;
                self.looked = now;
                Err(error)
            }
        }
    }

    fn is_there(&self) -> bool {
        self.site.namespace.is_none() || self.find_identity() == self.identity
    }

    fn find_identity(&self) -> Option<(u64, u64)> {
        let name = self.site.namespace.as_deref()?;
        let path = if name.contains('/') { name.to_owned() } else { format!("/run/netns/{name}") };
        std::fs::metadata(path).ok().map(|found| (found.st_dev(), found.st_ino()))
    }

    fn explain(&self, error: Error) -> Error {
        let name = &self.site.name;
        match error {
            Error::Shaping(message) => Error::Shaping(format!("VNIC {name}: {message}")),
            Error::Packet(error) => Error::Shaping(format!("VNIC {name}: {error}")),
            other => other,
        }
    }
}

impl Wire {
    fn open(settings: &Settings) -> Result<Option<Wire>> {
        let others = settings.peers.iter().chain(&settings.hypervisor);
        let addresses: BTreeMap<AgentId, SocketAddr> =
            others.map(|(name, address)| (AgentId::of(name), *address)).collect();
        let (Some(listen), Some(key)) = (settings.listen, settings.key) else { return Ok(None) };
        let socket =
            UdpSocket::bind(listen).map_err(|e| Error::io(format!("listen on {listen}"), e))?;
        socket.set_nonblocking(true).map_err(|e| Error::io("set up the socket", e))?;
        let mut life = [0; 8];
        File::open("/dev/urandom")
            .and_then(|mut file| file.read_exact(&mut life))
            .map_err(|e| Error::io("read /dev/urandom", e))?;
        let own = AgentId::of(&settings.own);
        let sessions = Sessions::new(key, own, u64::from_ne_bytes(life), addresses.keys().copied());
        Ok(Some(Wire { socket, sessions, addresses }))
    }

    fn send(&self, to: AgentId, datagram: &[u8], counts: &mut Counts) {
        let Some(address) = self.addresses.get(&to) else { return };
        match self.socket.send_to(datagram, address) {
            Ok(_) => counts.sent += 1,
            // The next step sends the report again.
            Err(_) => counts.unsent += 1,
        }
    }
}

/// Gives every destination the VNIC's whole bandwidth on interfaces of an agent that was killed. The result has the
/// errors.
pub fn fall_back(fallbacks: &[Fallback]) -> Vec<Error> {
    let one = |fallback: &Fallback| {
        let shape = fallback.shape.clone();
        within(fallback.namespace.as_deref(), || Shaper::fall_back(shape)).err()
    };
    fallbacks.iter().filter_map(one).collect()
}

fn note(events: &mut VecDeque<String>, event: String) {
    if events.len() < MOST_EVENTS {
        events.push_back(event);
    }
}

/// Refuses settings that contradict each other.
fn check(settings: &Settings) -> Result<()> {
    let wrong = |message: String| Err(Error::Option(message));
    let own = &settings.own;
    let mut agents = BTreeMap::new();
    let others = settings.peers.iter().chain(&settings.hypervisor).map(|(name, _)| name);
    for name in others.chain([own]) {
        if agents.insert(AgentId::of(name), name).is_some() {
            return wrong(format!("there are two agents {name:?}"));
        }
    }
    let mut macs = BTreeMap::new();
    let mut names = BTreeSet::new();
    let mut places = BTreeSet::new();
    for site in &settings.vnics {
        if !agents.contains_key(&AgentId::of(&site.agent)) {
            return wrong(format!("VNIC {}: there is no agent {:?}", site.name, site.agent));
        }
        if let Some(other) = macs.insert(site.mac, &site.name) {
            return wrong(format!("VNICs {other} and {} have the same address", site.name));
        }
        if !names.insert(&site.name) {
            return wrong(format!("there are two VNICs {:?}", site.name));
        }
        if !places.insert((&site.agent, &site.namespace, &site.interface)) {
            return wrong(format!("VNIC {}: its interface is another VNIC's, too", site.name));
        }
    }
    if !settings.vnics.iter().any(|site| site.agent == *own) {
        return wrong(format!("no VNIC is served by the agent {own:?}"));
    }
    let has_peers = !settings.peers.is_empty() || settings.hypervisor.is_some();
    if has_peers && (settings.listen.is_none() || settings.key.is_none()) {
        return wrong("other agents need an address to listen on, and a key".to_owned());
    }
    Ok(())
}
