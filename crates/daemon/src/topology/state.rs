//! The state of the known network: declared and discovered links together. The module is pure: no threads, clocks or
//! sockets.
//!
//! A declared link is up if both its ports are up; it is not probed. A discovered link has passed probes in both
//! directions ([`Discovery`]); it goes down if one of its ports goes down, or without further probes. Edge ports are
//! neither probed nor ends of links. At a declared port, discovered links are ignored.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fabric::discovery::{self, Discovery, Probe, Refusal};
use fabric::{
    Bandwidth, Dpid, End, Instant, LinkId, LldpKey, Network, PortId, PortNumber, Tagging,
};
use hypervisor::PortState;
use openflow::Version;

use crate::config;

/// The bandwidth of a link without a configured or reported bandwidth.
const UNSAID: Bandwidth = Bandwidth::from_megabits_per_second(1_000);

/// The origin of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The operator has declared the link.
    Declared,
    /// Probes have discovered the link.
    Discovered,
}

/// A present or past link between two switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// The ports of the link, the lower first.
    pub ends: [PortId; 2],
    /// The origin of the link.
    pub origin: Origin,
    /// The direction from the lower port; `None` for a declared link that was never up.
    pub link: Option<LinkId>,
}

/// The known network, and its discovery.
pub struct State {
    config: config::Topology,
    key: LldpKey,
    network: Network,
    discovery: Option<Discovery>,
    /// Ports that the configuration declares as edge ports, and as ends of links.
    edges: BTreeSet<PortId>,
    declared: BTreeMap<PortId, config::Link>,
    ports: BTreeMap<PortId, PortState>,
    wires: BTreeMap<[PortId; 2], Wire>,
    changed: BTreeSet<LinkId>,
    is_changed: bool,
    refused: u64,
}

impl State {
    /// The state of this configuration, without connected switches.
    pub fn new(config: config::Topology, key: LldpKey) -> State {
        let mut state = State {
            config: config::Topology::default(),
            key,
            network: Network::default(),
            discovery: None,
            edges: BTreeSet::new(),
            declared: BTreeMap::new(),
            ports: BTreeMap::new(),
            wires: BTreeMap::new(),
            changed: BTreeSet::new(),
            is_changed: true,
            refused: 0,
        };
        state.configure(config, Instant(0));
        state
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Present and past links between switches.
    pub fn wires(&self) -> impl Iterator<Item = &Wire> {
        self.wires.values()
    }

    /// Received probes that were ignored.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Links that changed since the last call; `None` if nothing has changed.
    pub fn take_changed(&mut self) -> Option<Vec<LinkId>> {
        if !std::mem::take(&mut self.is_changed) {
            return None;
        }
        Some(std::mem::take(&mut self.changed).into_iter().collect())
    }

    /// Applies another configuration. Links with unchanged definitions do not change.
    pub fn configure(&mut self, config: config::Topology, now: Instant) {
        let before = std::mem::replace(&mut self.config, config);
        self.is_changed = true;
        let edges: BTreeSet<PortId> = self.config.edges.iter().copied().collect();
        let edges_before = std::mem::replace(&mut self.edges, edges);
        let links = self.config.links.iter();
        let ends = links.flat_map(|link| link.between.map(|port| (port, link.clone())));
        self.declared = ends.collect();
        let declared: BTreeSet<[PortId; 2]> =
            self.config.links.iter().map(|link| link.between).collect();
        let gone: Vec<[PortId; 2]> = before
            .links
            .iter()
            .map(|l| l.between)
            .filter(|ends| !declared.contains(ends))
            .collect();
        for ends in gone {
            self.unplug(ends);
            self.wires.remove(&ends);
        }
        for port in edges_before.difference(&self.edges) {
            if let Ok(changed) = self.network.unplug(*port) {
                self.changed.extend(changed);
            }
        }
        if before.discovery != self.config.discovery {
            self.restart_discovery(now);
        } else if [before.interval, before.lifetime] != [self.config.interval, self.config.lifetime]
        {
            let settings = self.settings();
            if let Some(discovery) = &mut self.discovery {
                discovery.set_settings(settings, now);
            }
        }
        for ends in declared {
            // A discovered link ends when its port is declared.
            for port in ends {
                self.drop_found(port, ends);
            }
            let wire = Wire { ends, origin: Origin::Declared, link: None };
            let known = self.wires.entry(ends).or_insert(wire);
            known.origin = Origin::Declared;
        }
        let ports: Vec<(PortId, PortState)> =
            self.ports.iter().map(|(port, state)| (*port, *state)).collect();
        for (port, state) in ports {
            self.inform_discovery(port, Some(state), now);
            self.attach(port);
        }
        self.follow_capacities();
    }

    /// Handles a disconnected switch, with all its ports.
    pub fn handle_switch_gone(&mut self, dpid: Dpid, now: Instant) {
        let Ok(first) = PortNumber::new(1) else { return };
        let ports: Vec<PortId> = self
            .ports
            .range(PortId::new(dpid, first)..)
            .map(|(port, _)| *port)
            .take_while(|port| port.dpid == dpid)
            .collect();
        for port in ports {
            self.handle_port(port, None, now);
        }
        if let Ok(changed) = self.network.remove_switch(dpid) {
            self.changed.extend(changed);
        }
        self.is_changed = true;
    }

    /// Handles a connected switch.
    pub fn handle_switch(&mut self, dpid: Dpid) {
        if self.network.switch_index(dpid).is_err() {
            if let Err(error) = self.network.add_switch(dpid) {
                tracing::warn!(%dpid, %error, "the switch is left out of the topology");
            }
            self.is_changed = true;
        }
    }

    /// Sets the version of a switch, if the switch is connected.
    pub fn handle_version(&mut self, dpid: Dpid, version: Version) {
        let tagging = match version {
            Version::V1_0 => Tagging::Single,
            _ => Tagging::Stacked,
        };
        let Ok(index) = self.network.switch_index(dpid) else { return };
        if self.network.switch(index).tagging() != tagging {
            self.is_changed |= self.network.set_tagging(dpid, tagging).is_ok();
        }
    }

    /// Handles a port's new state; `None`: removed.
    pub fn handle_port(&mut self, port: PortId, state: Option<PortState>, now: Instant) {
        self.is_changed = true;
        match state {
            Some(state) => {
                self.handle_switch(port.dpid);
                self.ports.insert(port, state);
                // The call is refused if the port exists already.
                let _ = self.network.add_port(port);
                if let Ok(changed) = self.network.set_port_up(port, state.is_up) {
                    self.changed.extend(changed);
                }
                self.inform_discovery(port, Some(state), now);
                self.attach(port);
                // The speed may have changed, also of a link that is plugged in already.
                if let Ok(link) = self.network.link_from(port) {
                    self.follow_capacity(link);
                }
            }
            None => {
                self.ports.remove(&port);
                self.inform_discovery(port, None, now);
                if let Ok(changed) = self.network.remove_port(port) {
                    self.changed.extend(changed);
                }
            }
        }
    }

    /// Handles a received frame with the tag of a probe.
    pub fn handle_probe(&mut self, at: PortId, frame: &[u8], now: Instant) -> Result<(), Refusal> {
        let Some(discovery) = &mut self.discovery else { return Ok(()) };
        match discovery.handle_frame(at, frame, now) {
            Ok(event) => {
                if let Some(event) = event {
                    self.handle_event(event);
                }
                Ok(())
            }
            Err(refusal) => {
                self.refused += 1;
                Err(refusal)
            }
        }
    }

    /// Handles time-outs: links without probes for too long go down.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(event) = self.discovery.as_mut().and_then(|all| all.poll_event(now)) {
            self.handle_event(event);
        }
    }

    /// The next probe to be sent, if one is due.
    pub fn poll_probe(&mut self, now: Instant) -> Option<Probe> {
        self.discovery.as_mut()?.poll_probe(now)
    }

    /// The time of the next event.
    pub fn next_due(&self) -> Option<Instant> {
        self.discovery.as_ref()?.next_due()
    }

    fn restart_discovery(&mut self, now: Instant) {
        self.forget(|wire| wire.origin == Origin::Discovered);
        let settings = self.settings();
        self.discovery = self.config.discovery.then(|| Discovery::new(self.key, settings));
        self.handle_timeout(now);
    }

    fn settings(&self) -> discovery::Settings {
        discovery::Settings {
            interval: self.config.interval,
            lifetime: self.config.lifetime,
            ..discovery::Settings::default()
        }
    }

    /// Informs discovery about a port. Declared edge ports and link ends are not discovered, and neither is LOCAL,
    /// where no wire can be plugged in.
    fn inform_discovery(&mut self, port: PortId, state: Option<PortState>, now: Instant) {
        let is_declared = self.is_declared(port) || port.port == PortNumber::LOCAL;
        let Some(discovery) = &mut self.discovery else { return };
        let events = match state {
            Some(state) => [
                discovery.set_edge(port, is_declared, now),
                discovery.set_port(port, state.is_up, now),
            ],
            None => [discovery.remove_port(port, now), None],
        };
        for event in events.into_iter().flatten() {
            self.handle_event(event);
        }
    }

    fn is_declared(&self, port: PortId) -> bool {
        self.edges.contains(&port) || self.declared.contains_key(&port)
    }

    fn handle_event(&mut self, event: discovery::Event) {
        match event {
            discovery::Event::LinkUp(a, b) => {
                for port in [a, b] {
                    self.drop_found(port, [a, b]);
                }
                let wire = Wire { ends: [a, b], origin: Origin::Discovered, link: None };
                self.wires.entry([a, b]).or_insert(wire);
                self.plug([a, b]);
            }
            discovery::Event::LinkDown(a, b) => self.unplug([a, b]),
        }
    }

    /// Forgets discovered links at a port, except this one.
    fn drop_found(&mut self, port: PortId, but: [PortId; 2]) {
        self.forget(|wire| {
            wire.origin == Origin::Discovered && wire.ends.contains(&port) && wire.ends != but
        });
    }

    fn forget(&mut self, is_gone: impl Fn(&Wire) -> bool) {
        let gone = self.wires.values().filter(|wire| is_gone(wire)).map(|wire| wire.ends);
        for ends in gone.collect::<Vec<_>>() {
            self.unplug(ends);
            self.wires.remove(&ends);
        }
    }

    /// Plugs in the declared link or edge of a port, if the other end exists, too.
    fn attach(&mut self, port: PortId) {
        if self.edges.contains(&port) {
            if self.network.link_from(port).is_err() {
                let capacity = self.capacity(&[port], None);
                match self.network.add_edge(port, capacity, self.latency(None)) {
                    Ok((_, changed)) => self.changed.extend(changed),
                    Err(error) => tracing::warn!(%port, %error, "not an edge port"),
                }
            }
        } else if let Some(link) = self.declared.get(&port) {
            self.plug(link.between);
        }
    }

    fn plug(&mut self, ends: [PortId; 2]) {
        let [a, b] = ends;
        let is_there = |port| self.ports.contains_key(port);
        if !ends.iter().all(is_there) || self.network.link_from(a).is_ok() {
            return;
        }
        let said = self.declared.get(&a).filter(|link| link.between == ends);
        let capacity = self.capacity(&ends, said.and_then(|link| link.bandwidth));
        let latency = self.latency(said.and_then(|link| link.latency));
        match self.network.connect(a, b, capacity, latency) {
            Ok((link, changed)) => {
                if let Some(wire) = self.wires.get_mut(&ends) {
                    wire.link = Some(link);
                }
                self.changed.extend(changed);
                self.is_changed = true;
            }
            Err(error) => tracing::warn!(%a, %b, %error, "the link is left out of the topology"),
        }
    }

    fn unplug(&mut self, ends: [PortId; 2]) {
        let link = self.wires.get(&ends).and_then(|wire| wire.link);
        if let Some(link) = link
            && self.network.link_from(ends[0]) == Ok(link)
            && let Ok(changed) = self.network.unplug(ends[0])
        {
            self.changed.extend(changed);
            self.is_changed = true;
        }
    }

    /// The capacity of a link: as configured for the link, for all links, or the speed of the slower port.
    fn capacity(&self, ports: &[PortId], said: Option<Bandwidth>) -> Bandwidth {
        let speeds = ports.iter().filter_map(|port| self.ports.get(port)).map(|port| port.speed);
        let slowest = speeds.filter(|speed| *speed > 0).min();
        said.or(self.config.bandwidth)
            .or(slowest.map(Bandwidth::from_kilobits_per_second))
            .unwrap_or(UNSAID)
    }

    fn latency(&self, said: Option<Duration>) -> Duration {
        said.unwrap_or(self.config.latency)
    }

    /// Updates the capacities of unchanged links after a new configuration.
    fn follow_capacities(&mut self) {
        let links: Vec<LinkId> = self.network.links().map(|(id, _)| id).collect();
        for id in links {
            self.follow_capacity(id);
        }
    }

    /// Updates the capacity of a link in both directions, from the configuration and the ports.
    fn follow_capacity(&mut self, id: LinkId) {
        let &fabric::Link { from: End::Switch { port, .. }, to, capacity: known, .. } =
            self.network.link(id)
        else {
            return;
        };
        let ports = match to {
            End::Switch { port: far, .. } => vec![port.min(far), port.max(far)],
            End::Hosts(_) => vec![port],
        };
        let said = self.declared.get(&port).filter(|link| link.between[..] == ports[..]);
        let capacity = self.capacity(&ports, said.and_then(|link| link.bandwidth));
        if known != capacity && self.network.set_capacity(port, capacity).is_ok() {
            self.changed.extend([id, id.reverse()]);
        }
    }
}

#[cfg(test)]
mod tests;
