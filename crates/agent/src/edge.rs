//! The edge daemon: drives [`Control`] with the kernel's counters and the other agents' datagrams.
//!
//! One thread, one loop; nothing is shared:
//!
//! ```text
//!   every 5 ms:  for each VNIC: Shaper::counters, Shaper::received ──▶ Control::handle_counters
//!                Control::handle_step ──▶ poll_message ──▶ Sessions::seal ──▶ UDP ══▶ other agents, hypervisor
//!                                    └──▶ poll_ceiling ──▶ Shaper::set_ceiling
//!   in between:  UDP ══▶ Sessions::open ──▶ Control::handle_message ──▶ poll_ceiling ──▶ Shaper::set_ceiling
//! ```
//!
//! What is bounded: a datagram in 1,232 bytes, what is sent in one step by the pairs of VNICs, what is received by half of
//! the time until the next step; the socket's buffer loses what comes beyond, and the next report makes up for it.
//!
//! That thread runs before ordinary ones where the user may ask for it (`CAP_SYS_NICE`): on a server whose cores are full,
//! grants would lapse while it waits for its turn. A flood of datagrams has at most half of a core.
//!
//! An interface that goes away, or whose shaper somebody removes, is tried again every second; the others go on. Dropping
//! an [`Edge`] gives every interface back as it was. For an agent that is killed there is [`fall_back`], which a process
//! beside it calls.

use crate::error::{Error, Result};
use crate::eyeq::{Control, Oddities, Vnic};
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

/// From step to step.
const INTERVAL: Duration = Duration::from_millis(5);
/// Of which at most so much is spent on datagrams.
const HEARING: Duration = Duration::from_micros(2_500);
/// How often an interface that went away is looked for.
const RETRY: Duration = Duration::from_secs(1);
/// What happened and nobody asked for yet.
const MOST_EVENTS: usize = 256;

/// A virtual interface, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Its name, for people.
    pub name: String,
    /// Its hardware address.
    pub mac: MacAddress,
    /// What it may send, and receive.
    pub bandwidth: Bandwidth,
    /// VNICs of one tenant send to each other.
    pub tenant: String,
    /// Which agent serves it.
    pub agent: String,
    /// The network namespace of its interface on that agent's machine; the agent's own if there is none.
    pub namespace: Option<String>,
    /// The interface at whose egress its frames leave.
    pub interface: String,
}

/// What an agent has to know.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its own name.
    pub own: String,
    /// All VNICs of the fabric, others' too.
    pub vnics: Vec<Site>,
    /// Where it hears the other agents; not needed by one that serves all.
    pub listen: Option<SocketAddr>,
    /// Where the others are.
    pub peers: Vec<(String, SocketAddr)>,
    /// Who is told the rates.
    pub hypervisor: Option<(String, SocketAddr)>,
    /// What agents prove themselves with; needed as soon as there is somebody to talk to.
    pub key: Option<EdgeKey>,
}

/// A VNIC of this agent, as it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// Its name.
    pub name: String,
    /// What it receives.
    pub received: Bandwidth,
    /// What it sends to other VNICs.
    pub sent: Bandwidth,
    /// Whether its senders are held to their shares.
    pub congested: bool,
    /// Whether its interface is there, with its shaper.
    pub shaped: bool,
    /// To whom it sends: the name, what goes there, and the most that may.
    pub destinations: Vec<(String, Bandwidth, Bandwidth)>,
}

/// What was counted since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Steps of the loop, and those of them that came more than an interval late.
    pub steps: u64,
    /// See there.
    pub late: u64,
    /// Datagrams that were sent, and those that the kernel did not take.
    pub sent: u64,
    /// See there.
    pub unsent: u64,
    /// Datagrams that were taken.
    pub taken: u64,
    /// Not of our making: garbage, or another key.
    pub garbage: u64,
    /// From or to somebody whom nobody named.
    pub strangers: u64,
    /// Before their peer was greeted, or from an earlier life.
    pub unplaced: u64,
    /// Taken before.
    pub repeated: u64,
    /// Entries of datagrams that were taken.
    pub oddities: Oddities,
}

/// What to do for an interface whose agent was killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fallback {
    /// The interface's network namespace.
    pub namespace: Option<String>,
    /// What it was shaped to.
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
    /// The namespace's identity: a name may be given again.
    identity: Option<(u64, u64)>,
    looked: Instant,
}

struct Wire {
    socket: UdpSocket,
    sessions: Sessions,
    addresses: BTreeMap<AgentId, SocketAddr>,
}

impl Edge {
    /// Shapes every interface of this agent's VNICs.
    ///
    /// # Errors
    /// [`Error::Option`] for settings that contradict each other; [`Error::Shaping`] when the kernel lacks something, an
    /// interface is shaped by somebody else, or there is no privilege; [`Error::Packet`] when an interface or namespace
    /// is not there. What was made until then is removed.
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
            // If one fails, dropping the edge gives back those before it.
            place.install().map_err(|error| place.explain(error))?;
            edge.places.push(place);
        }
        Ok(edge)
    }

    /// Runs until `stop`, and calls `observe` after every step. The calling thread comes before ordinary ones from then on.
    ///
    /// # Errors
    /// What `observe` returns, and [`Error::Io`] when the socket fails for good.
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
                // What was missed is not made up for: counters and clock tell all.
                self.counts.late += 1;
                next = now;
            }
            self.listen(next)?;
        }
        Ok(())
    }

    /// This agent's VNICs as they are now.
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

    /// What was counted.
    pub fn counts(&self) -> Counts {
        Counts { oddities: self.control.oddities(), ..self.counts }
    }

    /// Where it is heard, if it listens.
    pub fn address(&self) -> Option<SocketAddr> {
        self.wire.as_ref().and_then(|wire| wire.socket.local_addr().ok())
    }

    /// What happened since somebody last asked, in sentences.
    pub fn take_events(&mut self) -> Vec<String> {
        self.events.drain(..).collect()
    }

    /// What is to be done for its interfaces if it is killed.
    pub fn fallbacks(&self) -> Vec<Fallback> {
        let fallback = |place: &Place| Fallback {
            namespace: place.site.namespace.clone(),
            shape: place.shape.clone(),
        };
        self.places.iter().map(fallback).collect()
    }

    /// Gives every interface back as it was.
    ///
    /// # Errors
    /// The first that the kernel refused; the others are given back nonetheless.
    pub fn close(mut self) -> Result<()> {
        self.restore()
    }

    fn restore(&mut self) -> Result<()> {
        let mut outcome = Ok(());
        for place in &mut self.places {
            if let Some(mut shaper) = place.shaper.take() {
                // An interface that is gone took its shaper along.
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
        let wire = self.wire.as_mut();
        if let Some(wire) = wire {
            while let Some((to, message)) = self.control.poll_message() {
                if let Some(datagram) = wire.sessions.seal(to, &message) {
                    wire.send(to, &datagram, &mut self.counts);
                }
            }
        }
        self.apply(now);
    }

    /// Takes what comes until that time.
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
            // Rounded up: a wake-up too early would only ask again.
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
                // A peer that is down answers by ICMP.
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
        // Nobody is left to be told; `close` tells.
        let _ = self.restore();
    }
}

/// What a look at a VNIC's interface shows.
enum Look {
    Counters(Vec<crate::shaper::Counters>, u64),
    /// It was away, and has a shaper again.
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
            // Our sockets would keep a namespace alive that somebody removed.
            self.shaper = None;
            return Err(Error::Shaping("its network namespace was removed".to_owned()));
        }
        let Some(shaper) = &mut self.shaper else {
            // That it is still away was told when it went.
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
            // The next step says it again.
            Err(_) => counts.unsent += 1,
        }
    }
}

/// Gives every destination the VNIC's whole bandwidth on interfaces whose agent was killed; what could not be done.
pub fn fall_back(fallbacks: &[Fallback]) -> Vec<Error> {
    let one = |fallback: &Fallback| {
        let shape = fallback.shape.clone();
        within(fallback.namespace.as_deref(), || Shaper::fall_back(shape)).err()
    };
    fallbacks.iter().filter_map(one).collect()
}

fn within<T: Send>(namespace: Option<&str>, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    match namespace {
        Some(namespace) => packet::in_namespace(namespace, work)?,
        None => work(),
    }
}

fn note(events: &mut VecDeque<String>, event: String) {
    if events.len() < MOST_EVENTS {
        events.push_back(event);
    }
}

/// What cannot be meant.
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
