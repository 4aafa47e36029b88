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

/// The times of discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Time between two probes from the same port.
    pub interval: Duration,
    /// How long a link stays up without a probe.
    pub lifetime: Duration,
    /// How long a probe may travel.
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

/// A link that went up or down; the lower port comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// Probes have passed both ways.
    LinkUp(PortId, PortId),
    /// A port went down, or no probe has arrived for `lifetime`.
    LinkDown(PortId, PortId),
}

/// The reason why a received frame is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The frame is no probe with a valid tag. It may be a tenant's own probe.
    NotAProbe,
    /// The probe travelled for too long.
    Stale,
    /// The receiving port, or the port named in the probe, is unknown or down.
    NoSuchPort,
    /// The receiving port, or the port named in the probe, is an edge port: somebody forwarded the probe.
    AtTheEdge,
    /// The probe returned to the port that sent it.
    Reflected,
    /// The probe was received before, or the port has sent a newer probe since.
    Replayed,
    /// The receiving port or the sending port has a live link to another port.
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
    /// The port that sends the frame.
    pub port: PortId,
    /// The frame.
    pub frame: Vec<u8>,
}

/// The known ports and the wires between them.
#[derive(Clone, Debug)]
pub struct Discovery {
    key: LldpKey,
    settings: Settings,
    ports: BTreeMap<PortId, Port>,
    /// Ports by the time of their next probe, and by the time when the probes that they received expire.
    due: BTreeSet<(Instant, PortId)>,
    expiring: BTreeSet<(Instant, PortId)>,
    latest: Instant,
}

#[derive(Clone, Copy, Debug, Default)]
struct Port {
    is_up: bool,
    is_edge: bool,
    due: Option<Instant>,
    /// The time of the newest probe, which alone is accepted.
    outstanding: Option<Instant>,
    /// The port whose probes arrive here, and the arrival of the last probe.
    heard: Option<(PortId, Instant)>,
    /// The port where this port's probes arrive.
    reaches: Option<PortId>,
}

impl Discovery {
    /// Nothing is known yet.
    pub fn new(key: LldpKey, settings: Settings) -> Discovery {
        let (due, expiring) = (BTreeSet::new(), BTreeSet::new());
        Discovery { key, settings, ports: BTreeMap::new(), due, expiring, latest: Instant(0) }
    }

    /// Continues with other settings. Received probes count as received now, so live links have time for their next
    /// probe. No port waits longer than the new interval for its next probe.
    pub fn set_settings(&mut self, settings: Settings, now: Instant) {
        self.settings = settings;
        self.latest = now;
        self.plan(|due| due.min(now + settings.interval), now);
    }

    /// Adds a port, or changes its state (FEATURES_REPLY, PORT_DESC, PORT_STATUS).
    pub fn set_port(&mut self, port: PortId, is_up: bool, now: Instant) -> Option<Event> {
        self.ports.entry(port).or_default().is_up = is_up;
        self.begin_or_end(port, now)
    }

    /// Declares a port as an edge port with hosts, or ends this declaration.
    pub fn set_edge(&mut self, port: PortId, is_edge: bool, now: Instant) -> Option<Event> {
        self.ports.entry(port).or_default().is_edge = is_edge;
        self.begin_or_end(port, now)
    }

    /// Removes a port. The declaration as an edge port is forgotten, too.
    pub fn remove_port(&mut self, port: PortId, now: Instant) -> Option<Event> {
        let event = self.set_port(port, false, now);
        self.ports.remove(&port);
        event
    }

    /// Removes a switch with its ports.
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

    /// Handles a frame that a port has received.
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
        // A link that has passed probes in one direction only is replaced: a host may have forwarded those probes, and
        // the real link behind them would never be discovered.
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

    /// Links whose last probe is older than the lifetime.
    pub fn poll_event(&mut self, now: Instant) -> Option<Event> {
        self.mind_the_clock(now);
        while let Some(&(deadline, port)) = self.expiring.first().filter(|(at, _)| *at <= now) {
            self.expiring.remove(&(deadline, port));
            let peer = self.peer(port);
            self.forget(port);
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

    /// Begins to probe a port that is up and no edge port. For any other port, forgets the received probes and the
    /// remote end.
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
        self.forget(port);
        if let Some(to) = state.reaches {
            self.forget(to);
        }
        let Port { is_up, is_edge, .. } = state;
        self.change(port, |state| *state = Port { is_up, is_edge, ..Port::default() });
        peer.map(|peer| Event::LinkDown(port.min(peer), port.max(peer)))
    }

    /// Forgets the sender of the probes that a port receives.
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

    /// After the clock was set back, all probes are due at once, and received probes count as received now. Otherwise
    /// probing would stop until the clock has caught up.
    fn mind_the_clock(&mut self, now: Instant) {
        if now < self.latest {
            self.plan(|_| now, now);
        }
        self.latest = now;
    }

    /// Plans the times of all probes again; received probes count as received now.
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
