//! A network in memory: switches, links and hosts. The network forwards each packet to its
//! destinations.
//!
//! Links have no delay. The caller gives the time, which only makes entries expire and token
//! buckets of meters fill. Every step returns a [`Journey`] with the path of the packet, the hosts
//! that received the packet, and the switches that sent a PACKET_IN.

use std::collections::VecDeque;

use hashbrown::HashMap;

use crate::config::Config;
use crate::effects::{Outcome, Transmit};
use crate::frame::build::host_mac;
use crate::host::Host;
use crate::session::SessionId;
use crate::switch::Switch;

/// The index of a switch of a [`Network`], in the order of addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SwitchIndex(pub usize);

/// The index of a host of a [`Network`], in the order of addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostIndex(pub usize);

/// A port of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Point {
    /// The switch.
    pub switch: SwitchIndex,
    /// The port number.
    pub port: u32,
}

/// A network in memory.
#[derive(Default)]
pub struct Network {
    switches: Vec<Switch>,
    hosts: Vec<Host>,
    /// The other end of each connected port.
    wires: HashMap<Point, End>,
    /// The port to which each host is connected.
    places: Vec<Point>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Switch(Point),
    Host(HostIndex),
}

/// The paths of packets in one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Journey {
    /// The ports at which switches received a copy, in order.
    pub hops: Vec<Point>,
    /// The hosts that received a copy, in order, with the bytes of the copy.
    pub delivered: Vec<(HostIndex, Vec<u8>)>,
    /// The switches that sent a copy to a controller, once for each copy and session.
    pub packet_ins: Vec<SwitchIndex>,
    /// The unconnected ports by which copies left the network.
    pub lost: Vec<Point>,
    /// Whether the step ended at its limit of receptions (a forwarding loop).
    pub endless: bool,
    /// Whether the switch that received the message closes its controller's connection.
    pub disconnect: bool,
}

impl Journey {
    /// The hosts that received a copy, each once, sorted.
    pub fn reached(&self) -> Vec<HostIndex> {
        let mut hosts: Vec<HostIndex> = self.delivered.iter().map(|(host, _)| *host).collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts
    }
}

/// The limit of receptions in one step. Without a limit, a loop without TTL would never end.
const MAX_HOPS: usize = 10_000;

/// Builds a network.
impl Network {
    /// Makes an empty network.
    pub fn new() -> Network {
        Network::default()
    }

    /// Makes one switch with `hosts` hosts at ports 1, 2, …. `configure` may change the
    /// configuration first.
    pub fn single(hosts: u16, configure: impl FnOnce(&mut Config)) -> Network {
        let mut network = Network::new();
        let mut config = Config::new(1, hosts.into());
        configure(&mut config);
        let switch = network.add_switch(Switch::new(config));
        for n in 1..=hosts {
            network.add_numbered_host(n, Point { switch, port: n.into() });
        }
        network
    }

    /// Makes a row of `switches` switches with dpids 1, 2, …. Each switch has a host at port 1, its
    /// left neighbour at port 2 and its right neighbour at port 3.
    pub fn linear(switches: u16, mut configure: impl FnMut(&mut Config)) -> Network {
        let mut network = Network::new();
        for n in 1..=switches {
            let mut config = Config::new(n.into(), 3);
            configure(&mut config);
            let switch = network.add_switch(Switch::new(config));
            network.add_numbered_host(n, Point { switch, port: 1 });
            if n > 1 {
                let left = SwitchIndex(switch.0 - 1);
                network.link(Point { switch: left, port: 3 }, Point { switch, port: 2 });
            }
        }
        network
    }

    /// Adds a switch.
    pub fn add_switch(&mut self, switch: Switch) -> SwitchIndex {
        self.switches.push(switch);
        SwitchIndex(self.switches.len() - 1)
    }

    /// Connects two ports. A new link replaces the old links of both ports.
    pub fn link(&mut self, a: Point, b: Point) {
        self.wires.insert(a, End::Switch(b));
        self.wires.insert(b, End::Switch(a));
    }

    /// Adds a host at a port.
    pub fn add_host(&mut self, host: Host, at: Point) -> HostIndex {
        let index = HostIndex(self.hosts.len());
        self.hosts.push(host);
        self.places.push(at);
        self.wires.insert(at, End::Host(index));
        index
    }

    /// Adds host `n` with address 10.0.x.y (n = 256 x + y) and [`host_mac`]`(n)`.
    pub fn add_numbered_host(&mut self, n: u16, at: Point) -> HostIndex {
        self.add_host(Host::new(host_mac(n), 0x0a00_0000 + u32::from(n)), at)
    }
}

/// Reads the state of a network.
impl Network {
    /// Returns a switch.
    pub fn switch(&self, index: SwitchIndex) -> Option<&Switch> {
        self.switches.get(index.0)
    }

    /// Returns a switch for changes. The caller has to forward the frames that the switch sends
    /// because of a change.
    pub fn switch_mut(&mut self, index: SwitchIndex) -> Option<&mut Switch> {
        self.switches.get_mut(index.0)
    }

    /// The indexes of all switches. The iterator borrows nothing.
    pub fn switch_indices(&self) -> impl Iterator<Item = SwitchIndex> + use<> {
        (0..self.switches.len()).map(SwitchIndex)
    }

    /// All switches.
    pub fn switches(&self) -> impl ExactSizeIterator<Item = (SwitchIndex, &Switch)> {
        self.switches.iter().enumerate().map(|(index, switch)| (SwitchIndex(index), switch))
    }

    /// Returns a host.
    pub fn host(&self, index: HostIndex) -> Option<&Host> {
        self.hosts.get(index.0)
    }

    /// All hosts.
    pub fn hosts(&self) -> impl ExactSizeIterator<Item = (HostIndex, &Host)> {
        self.hosts.iter().enumerate().map(|(index, host)| (HostIndex(index), host))
    }

    /// The port to which a host is connected.
    pub fn place_of(&self, host: HostIndex) -> Option<Point> {
        self.places.get(host.0).copied()
    }

    /// The links between switches, each from both its ends.
    pub(crate) fn switch_wires(&self) -> impl Iterator<Item = (Point, Point)> {
        self.wires.iter().filter_map(|(from, end)| match end {
            End::Switch(to) => Some((*from, *to)),
            End::Host(_) => None,
        })
    }

    /// The earliest time at which [`Network::tick`] may have work, ns.
    pub fn next_deadline(&self) -> Option<u64> {
        self.switches.iter().filter_map(Switch::next_deadline).min()
    }
}

/// Processes messages, packets, time and link changes.
impl Network {
    /// Connects a controller to a switch's main session, and appends the switch's HELLO.
    pub fn connect(&mut self, index: SwitchIndex, out: &mut Vec<u8>) {
        if let Some(switch) = self.switches.get_mut(index.0) {
            switch.connect(out);
        }
    }

    /// Takes the bytes that a switch sends to the controller of a session.
    pub fn take_output(&mut self, index: SwitchIndex, session: SessionId) -> Vec<u8> {
        let output = self.switches.get_mut(index.0).and_then(|switch| switch.output(session));
        output.map(std::mem::take).unwrap_or_default()
    }

    /// Sends a frame from a host.
    pub fn inject(&mut self, now: u64, host: HostIndex, frame: &[u8]) -> Journey {
        match self.place_of(host) {
            Some(point) => self.inject_at(now, point, frame),
            None => Journey::default(),
        }
    }

    /// Delivers a frame to a port of a switch.
    pub fn inject_at(&mut self, now: u64, point: Point, frame: &[u8]) -> Journey {
        let mut journey = Journey::default();
        self.travel(now, VecDeque::from([(point, frame.to_vec())]), &mut journey);
        journey
    }

    /// Handles a message of the controller of a switch's main session.
    ///
    /// [`Network::take_output`] returns the replies of the switch, and the PACKET_INs that the
    /// message causes at *all* switches.
    pub fn handle_message(&mut self, now: u64, index: SwitchIndex, frame: &[u8]) -> Journey {
        self.handle_on(now, index, SessionId::MAIN, frame)
    }

    /// Handles a message as [`Network::handle_message`] does, for any session.
    pub fn handle_on(
        &mut self,
        now: u64,
        index: SwitchIndex,
        session: SessionId,
        frame: &[u8],
    ) -> Journey {
        let Some(switch) = self.switches.get_mut(index.0) else { return Journey::default() };
        let outcome = switch.handle_on(now, session, frame);
        let mut journey = Journey { disconnect: outcome.disconnect, ..Journey::default() };
        let mut waiting = VecDeque::new();
        self.leave(index, outcome, &mut waiting, &mut journey);
        self.travel(now, waiting, &mut journey);
        journey
    }

    /// Advances the time of every switch.
    pub fn tick(&mut self, now: u64) -> Journey {
        let mut journey = Journey::default();
        let mut waiting = VecDeque::new();
        for index in 0..self.switches.len() {
            if let Some(switch) = self.switches.get_mut(index) {
                let outcome = switch.advance(now);
                self.leave(SwitchIndex(index), outcome, &mut waiting, &mut journey);
            }
        }
        self.travel(now, waiting, &mut journey);
        journey
    }

    /// Sets a link up or down at both ends. The switches send PORT_STATUS to their controllers.
    pub fn set_link_up(&mut self, end: Point, up: bool) {
        let other = match self.wires.get(&end) {
            Some(End::Switch(other)) => Some(*other),
            _ => None,
        };
        for point in [Some(end), other].into_iter().flatten() {
            if let Some(switch) = self.switches.get_mut(point.switch.0) {
                switch.set_link(point.port, up);
            }
        }
    }

    fn travel(&mut self, now: u64, mut waiting: VecDeque<(Point, Vec<u8>)>, journey: &mut Journey) {
        while let Some((point, frame)) = waiting.pop_front() {
            if journey.hops.len() >= MAX_HOPS {
                journey.endless = true;
                return;
            }
            journey.hops.push(point);
            let Some(switch) = self.switches.get_mut(point.switch.0) else { continue };
            let outcome = switch.receive(now, point.port, &frame);
            self.leave(point.switch, outcome, &mut waiting, journey);
        }
    }

    /// Forwards the frames that a switch sent over its links.
    fn leave(
        &mut self,
        switch: SwitchIndex,
        outcome: Outcome,
        waiting: &mut VecDeque<(Point, Vec<u8>)>,
        journey: &mut Journey,
    ) {
        journey.packet_ins.extend((0..outcome.packet_ins).map(|_| switch));
        for Transmit { port, frame, .. } in outcome.sent {
            let from = Point { switch, port };
            match self.wires.get(&from) {
                None => journey.lost.push(from),
                Some(End::Switch(to)) => waiting.push_back((*to, frame)),
                Some(End::Host(index)) => {
                    let answer = self.hosts.get_mut(index.0).and_then(|host| host.receive(&frame));
                    journey.delivered.push((*index, frame));
                    waiting.extend(answer.map(|answer| (from, answer)));
                }
            }
        }
    }
}
