//! Discovers the links between switches by probes that no host can forge or replay.
//!
//! A probe is an LLDP frame (IEEE 802.1AB) that is sent out of a port, names this port, and carries the keyed tag of
//! [`crate::lldp`]. The port that receives the probe is the other end of the wire. A link is up when probes have
//! arrived in both directions. A link is down when one of its ports goes down, or no probe has arrived for
//! [`Settings::lifetime`].
//!
//! A host can do little against discovery. A host cannot make a probe without the key. Only the last probe of each port
//! counts, once, and only for [`Settings::flight`]. A probe from or at an edge port is ignored, and a port with a live
//! link accepts no other link. A probe that one host forwards has passed in one direction only, and a probe from the
//! wire replaces it. Relaying remains: two hosts that forward each other's probes, at ports that are not declared as
//! edge ports, look like a wire. Declared edge ports prevent this.
//!
//! This is a state machine without clock or sockets. Its inputs are ports and received probes, its outputs are
//! [`Event`]s and probes to send.

mod probe;

use crate::lldp::LldpKey;
use crate::time::{Duration, Instant};
use crate::units::{Dpid, PortId, PortNumber};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::fmt;

/// How often, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Between two probes out of the same port.
    pub interval: Duration,
    /// How long a link lives without a probe.
    pub lifetime: Duration,
    /// How long a probe may be under way.
    pub flight: Duration,
}

impl Default for Settings {
    /// A probe per second; three may be lost.
    fn default() -> Settings {
        Settings {
            interval: Duration::from_secs(1),
            lifetime: Duration::from_millis(3_500),
            flight: Duration::from_secs(1),
        }
    }
}

/// A link that came or went; the lower port first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// Probes have passed both ways.
    LinkUp(PortId, PortId),
    /// A port went down, or no probe has come for too long.
    LinkDown(PortId, PortId),
}

/// Why a frame that came in counts for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Not a probe with a valid tag. It may be a tenant's own.
    NotAProbe,
    /// It was under way for too long.
    Stale,
    /// It came in at a port, or claims one, that is unknown or down.
    NoSuchPort,
    /// It came in at an edge port, or claims one: somebody passed it on.
    AtTheEdge,
    /// It came back to the port that it left by.
    Reflected,
    /// It counted already, or a newer one was sent since.
    Replayed,
    /// The port's link, or the sender's, leads elsewhere and lives.
    Occupied,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::NotAProbe => "it is no probe of this Weir's",
            Refusal::Stale => "it was under way for too long",
            Refusal::NoSuchPort => "its port is not known, or down",
            Refusal::AtTheEdge => "a port at the edge has no link",
            Refusal::Reflected => "it came back to the port that it left by",
            Refusal::Replayed => "it counted already",
            Refusal::Occupied => "another link is at that port",
        })
    }
}

/// A frame to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Out of this port.
    pub port: PortId,
    /// The frame.
    pub frame: Vec<u8>,
}

/// What is known of ports and of the wires between them.
#[derive(Clone, Debug)]
pub struct Discovery {
    key: LldpKey,
    settings: Settings,
    ports: BTreeMap<PortId, Port>,
    /// Ports by when their next probe is to be sent, and by when what they heard is too old.
    due: BTreeSet<(Instant, PortId)>,
    expiring: BTreeSet<(Instant, PortId)>,
    latest: Instant,
}

#[derive(Clone, Copy, Debug, Default)]
struct Port {
    is_up: bool,
    is_edge: bool,
    due: Option<Instant>,
    /// When the probe that counts was made.
    outstanding: Option<Instant>,
    /// Whose probes come in here, and when the last one came.
    heard: Option<(PortId, Instant)>,
    /// Where this port's probes come in.
    reaches: Option<PortId>,
}

impl Discovery {
    /// Nothing is known yet.
    pub fn new(key: LldpKey, settings: Settings) -> Discovery {
        let (due, expiring) = (BTreeSet::new(), BTreeSet::new());
        Discovery { key, settings, ports: BTreeMap::new(), due, expiring, latest: Instant(0) }
    }

    /// Goes on with other settings. What was heard is as of now, so that links that live have the time to be heard of
    /// again; probes that would be sent later than the interval from now are sent then.
    pub fn set_settings(&mut self, settings: Settings, now: Instant) {
        self.settings = settings;
        self.latest = now;
        self.plan(|due| due.min(now + settings.interval), now);
    }

    /// A port is there, or went up or down (FEATURES_REPLY, PORT_DESC, PORT_STATUS).
    pub fn set_port(&mut self, port: PortId, is_up: bool, now: Instant) -> Option<Event> {
        self.ports.entry(port).or_default().is_up = is_up;
        self.begin_or_end(port, now)
    }

    /// The operator says that hosts are behind the port, or that none are.
    pub fn set_edge(&mut self, port: PortId, is_edge: bool, now: Instant) -> Option<Event> {
        self.ports.entry(port).or_default().is_edge = is_edge;
        self.begin_or_end(port, now)
    }

    /// A port is gone; that it is an edge port is remembered only if it is declared again.
    pub fn remove_port(&mut self, port: PortId, now: Instant) -> Option<Event> {
        let event = self.set_port(port, false, now);
        self.ports.remove(&port);
        event
    }

    /// A switch is gone, with its ports.
    pub fn remove_switch(&mut self, dpid: Dpid, now: Instant) -> Vec<Event> {
        let Ok(first) = PortNumber::new(1) else { return Vec::new() };
        let from = self.ports.range(PortId::new(dpid, first)..).map(|(&port, _)| port);
        let ports: Vec<PortId> = from.take_while(|port| port.dpid == dpid).collect();
        ports.into_iter().filter_map(|port| self.remove_port(port, now)).collect()
    }

    /// The port at the other end, if a link is up.
    pub fn peer(&self, port: PortId) -> Option<PortId> {
        let state = self.ports.get(&port)?;
        state.reaches.filter(|peer| state.heard.is_some_and(|(from, _)| from == *peer))
    }

    /// A frame came in at a port.
    pub fn handle_frame(
        &mut self,
        at: PortId,
        frame: &[u8],
        now: Instant,
    ) -> Result<Option<Event>, Refusal> {
        self.mind_the_clock(now);
        let made = self.key.verify_probe(frame).ok_or(Refusal::NotAProbe)?;
        let from = probe::sender(frame).ok_or(Refusal::NotAProbe)?;
        if now - made > self.settings.flight {
            return Err(Refusal::Stale);
        }
        let is_up = |state: &Port| state.is_up;
        let sender = self.ports.get(&from).copied().filter(is_up).ok_or(Refusal::NoSuchPort)?;
        let receiver = self.ports.get(&at).copied().filter(is_up).ok_or(Refusal::NoSuchPort)?;
        if sender.is_edge || receiver.is_edge {
            return Err(Refusal::AtTheEdge);
        }
        if from == at {
            return Err(Refusal::Reflected);
        }
        if sender.outstanding != Some(made) {
            return Err(Refusal::Replayed);
        }
        let leads_elsewhere = |port, to| self.peer(port).is_some_and(|peer| peer != to);
        if leads_elsewhere(at, from) || leads_elsewhere(from, at) {
            return Err(Refusal::Occupied);
        }
        // What passed one way only gives way: somebody may have passed it on, and the wire's own would never be heard.
        if receiver.heard.is_some_and(|(before, _)| before != from) {
            self.forget(at);
        }
        if let Some(to) = sender.reaches.filter(|to| *to != at) {
            self.forget(to);
        }
        let was_up = self.peer(at).is_some();
        self.change(from, |sender| (sender.outstanding, sender.reaches) = (None, Some(at)));
        self.change(at, |receiver| receiver.heard = Some((from, now)));
        if let Some((_, before)) = receiver.heard {
            self.expiring.remove(&(before + self.settings.lifetime, at));
        }
        self.expiring.insert((now + self.settings.lifetime, at));
        let is_up = self.peer(at).is_some();
        Ok((is_up && !was_up).then(|| Event::LinkUp(at.min(from), at.max(from))))
    }

    /// The next probe to be sent, if one is due.
    pub fn poll_probe(&mut self, now: Instant) -> Option<Probe> {
        self.mind_the_clock(now);
        let &(due, port) = self.due.first().filter(|(due, _)| *due <= now)?;
        self.due.remove(&(due, port));
        let next = now + self.settings.interval;
        self.due.insert((next, port));
        self.change(port, |state| (state.due, state.outstanding) = (Some(next), Some(now)));
        let frame = probe::frame(&self.key, port, self.settings.lifetime, now);
        Some(Probe { port, frame })
    }

    /// Links that have not been heard of for too long.
    pub fn poll_event(&mut self, now: Instant) -> Option<Event> {
        self.mind_the_clock(now);
        while let Some(&(deadline, port)) = self.expiring.first() {
            if deadline > now {
                break;
            }
            self.expiring.remove(&(deadline, port));
            let peer = self.peer(port);
            let Some((from, _)) = self.ports.get(&port).and_then(|state| state.heard) else {
                continue;
            };
            self.change(port, |state| state.heard = None);
            self.change(from, |state| state.reaches = None);
            if let Some(peer) = peer {
                return Some(Event::LinkDown(port.min(peer), port.max(peer)));
            }
        }
        None
    }

    /// When [`poll_probe`](Discovery::poll_probe) or [`poll_event`](Discovery::poll_event) is next worth calling.
    pub fn next_due(&self) -> Option<Instant> {
        let first = |times: &BTreeSet<(Instant, PortId)>| times.first().map(|(at, _)| *at);
        [first(&self.due), first(&self.expiring)].into_iter().flatten().min()
    }

    /// Probes a port from now on if it is up and no edge, else forgets what it heard and where it reached.
    fn begin_or_end(&mut self, port: PortId, now: Instant) -> Option<Event> {
        self.mind_the_clock(now);
        let state = self.ports.get(&port).copied()?;
        if state.is_up && !state.is_edge {
            if state.due.is_none() {
                self.due.insert((now, port));
                self.change(port, |state| state.due = Some(now));
            }
            return None;
        }
        let peer = self.peer(port);
        if let Some(due) = state.due {
            self.due.remove(&(due, port));
        }
        if let Some((from, at)) = state.heard {
            self.expiring.remove(&(at + self.settings.lifetime, port));
            self.change(from, |sender| sender.reaches = None);
        }
        if let Some(to) = state.reaches {
            if let Some((_, at)) = self.ports.get(&to).and_then(|receiver| receiver.heard) {
                self.expiring.remove(&(at + self.settings.lifetime, to));
            }
            self.change(to, |receiver| receiver.heard = None);
        }
        let Port { is_up, is_edge, .. } = state;
        self.change(port, |state| *state = Port { is_up, is_edge, ..Port::default() });
        peer.map(|peer| Event::LinkDown(port.min(peer), port.max(peer)))
    }

    /// Forgets whose probes come in at a port.
    fn forget(&mut self, port: PortId) {
        let Some((from, at)) = self.ports.get(&port).and_then(|state| state.heard) else { return };
        self.expiring.remove(&(at + self.settings.lifetime, port));
        self.change(port, |state| state.heard = None);
        self.change(from, |state| state.reaches = None);
    }

    fn change(&mut self, port: PortId, change: impl FnOnce(&mut Port)) {
        if let Some(state) = self.ports.get_mut(&port) {
            change(state);
        }
    }

    /// When the clock was set back, what was planned for later is due at once, and what was heard is as of now: probing
    /// must not stop until the clock has caught up.
    fn mind_the_clock(&mut self, now: Instant) {
        if now < self.latest {
            self.plan(|_| now, now);
        }
        self.latest = now;
    }

    /// Plans anew when probes are due, and takes what was heard for heard now.
    fn plan(&mut self, when: impl Fn(Instant) -> Instant, now: Instant) {
        self.due.clear();
        self.expiring.clear();
        for (&port, state) in &mut self.ports {
            if let Some(due) = &mut state.due {
                *due = when(*due);
                self.due.insert((*due, port));
            }
            if let Some((_, at)) = &mut state.heard {
                *at = now;
                self.expiring.insert((now + self.settings.lifetime, port));
            }
        }
    }
}

#[cfg(test)]
mod tests;
