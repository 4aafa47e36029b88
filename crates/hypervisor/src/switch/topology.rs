//! What the switch shows of the network it stands in: its ports, and the hypervisor's own link probes.
//!
//! Nothing is decided here: [`Event::Ports`](super::Event::Ports) and [`Event::Probe`](super::Event::Probe) are for the part that keeps the topology, and
//! [`Switch::send_own_packet_out`] sends what it wants sent.

use super::Switch;
use super::event::PortState;
use crate::cookie::Cookie;
use crate::lldp;
use crate::policy::TenantId;
use crate::south::pending::Awaits;
use crate::time::Instant;
use alloc::vec::Vec;
use compile::PhysicalPort;
use flowspace::{Field, Key, port_to_v10};
use openflow::{ListBuf, Version, v10, v13};

impl Switch {
    /// Sends a frame of the hypervisor's own out of a port. False, and nothing sent, when the switch is not ready, has
    /// no such port, or has too much waiting for it already.
    pub fn send_own_packet_out(&mut self, port: u32, frame: &[u8], now: Instant) -> bool {
        if !self.is_ready() || !self.datapath.ports().contains_key(&port) || self.session.is_full()
        {
            return false;
        }
        self.expect_probes(now);
        let mut message = Vec::new();
        let written = match self.version {
            Version::V1_0 => {
                let Some(port) = port_to_v10(port) else { return false };
                let mut actions = ListBuf::<v10::Action<'static>>::new();
                actions.push(v10::Action::Output { port: v10::PortNo(port), max_len: 0 });
                v10::PacketOut { actions: actions.as_list(), data: frame, ..Default::default() }
                    .write_message(0, &mut message)
            }
            _ => {
                let mut actions = ListBuf::<v13::Action<'static>>::new();
                actions.push(v13::Action::Output { port: v13::PortNo(port), max_len: 0 });
                v13::PacketOut { actions: actions.as_list(), data: frame, ..Default::default() }
                    .write_message(0, &mut message)
            }
        };
        if written.is_ok() {
            self.send_own(Awaits::Nothing, &message, now);
        }
        written.is_ok()
    }

    /// Tells of all ports.
    pub(crate) fn report_topology(&mut self) {
        let state = |port: &PhysicalPort| Some(state(self.version, &port.description));
        let ports = self.datapath.ports().iter().map(|(&number, port)| (number, state(port)));
        self.reports.push_ports(ports);
    }

    /// What the switch says of a port.
    pub(crate) fn port_state(&self, number: u32) -> Option<PortState> {
        self.datapath.ports().get(&number).map(|port| state(self.version, &port.description))
    }

    /// Tells of one.
    pub(crate) fn report_port_change(&mut self, number: u32) {
        if self.is_ready() {
            let port = self
                .datapath
                .ports()
                .get(&number)
                .map(|port| state(self.version, &port.description));
            self.reports.push_ports([(number, port)]);
        }
    }

    /// A packet that came in, if it is a probe of the hypervisor's own: no tenant sees it, even if a tenant's rule sent it on.
    pub(crate) fn take_probe(&mut self, key: &Key, frame: &[u8]) -> bool {
        if key.get(Field::DlType) != u128::from(lldp::ETHERTYPE) || !self.map.lldp().is_probe(frame)
        {
            return false;
        }
        self.reports.push_probe(key.get(Field::InPort) as u32, frame);
        true
    }

    /// Appends a link probe that a tenant sends with the tenant's tag, by which it finds back. Where LLDP is not the tenant's, it is
    /// not to meet the entries of the tenant that owns the packet. False, and nothing appended, for what is no whole LLDP frame, and where
    /// switches are joined, of which the members tag.
    pub(crate) fn tag_probe(
        &self,
        id: TenantId,
        frame: &[u8],
        is_own: bool,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> bool {
        !self.datapath.is_joined()
            && match is_own {
                true => self.map.lldp().tag(frame, id, now, out),
                false => self.map.lldp().tag_as_guest(frame, id, now, out),
            }
    }

    /// Whether a packet that a tenant sends may arrive as a probe of the hypervisor's own, which a host was sent. What is LLDP as
    /// it stands gets the tenant's tag, and so is none any more, but not in a network of the tenant's own.
    pub(crate) fn passes_probe_on(is_network: bool, frame: &[u8]) -> bool {
        let is_lldp = frame.get(12..14) == Some(&lldp::ETHERTYPE.to_be_bytes());
        (is_network || !is_lldp) && lldp::looks_like_probe(frame)
    }

    /// On OpenFlow 1.0 a tenant's entry for all its packets would take the probes from here, so they get an entry
    /// of the highest priority. Of a tenant's entry of that priority that matches them too, the specification does not
    /// say which wins.
    fn expect_probes(&mut self, now: Instant) {
        if self.version != Version::V1_0 || self.map.expects_probes() {
            return;
        }
        let mut actions = ListBuf::<v10::Action<'static>>::new();
        let whole = u16::MAX;
        actions.push(v10::Action::Output { port: v10::PortNo::CONTROLLER, max_len: whole });
        let probe = flowspace::Match::exact(Field::DlType, u128::from(lldp::ETHERTYPE))
            .with(Field::DlSrc, number(lldp::PROBE_SOURCE));
        let Ok(match_) = probe.to_v10() else { return };
        let entry = v10::FlowMod {
            match_,
            cookie: Cookie { tenant: Cookie::OWN, number: 0 }.to_wire(self.settings.installation),
            command: v10::FlowModCommand::ADD,
            priority: u16::MAX,
            actions: actions.as_list(),
            ..Default::default()
        };
        let mut message = Vec::new();
        if entry.write_message(0, &mut message).is_ok() {
            self.send_own(Awaits::Nothing, &message, now);
            self.map.note_probes_expected();
        }
    }
}

/// An address as a number.
pub(crate) fn number(address: [u8; 6]) -> u128 {
    address.iter().fold(0, |number, octet| number << 8 | u128::from(*octet))
}

/// A port of which the description cannot be read counts as down.
fn state(version: Version, wire: &[u8]) -> PortState {
    match version {
        Version::V1_0 => v10::PhyPort::parse(wire).map_or(PortState::default(), |port| PortState {
            is_up: !port.config.contains(v10::PortConfig::PORT_DOWN)
                && !port.state.contains(v10::PortState::LINK_DOWN),
            speed: speed_of(port.curr.0 & 0x7f),
        }),
        _ => v13::Port::parse(wire).map_or(PortState::default(), |port| PortState {
            is_up: !port.config.contains(v13::PortConfig::PORT_DOWN)
                && !port.state.contains(v13::PortState::LINK_DOWN),
            speed: match port.curr_speed {
                0 => speed_of(port.curr.0 & 0x3ff),
                speed => u64::from(speed),
            },
        }),
    }
}

/// The highest of the rates in a port's features, in kilobits per second. Both versions number those that they have
/// alike.
fn speed_of(features: u32) -> u64 {
    const RATES: [u64; 10] = [
        10_000,
        10_000,
        100_000,
        100_000,
        1_000_000,
        1_000_000,
        10_000_000,
        40_000_000,
        100_000_000,
        1_000_000_000,
    ];
    let held = RATES.iter().enumerate().filter(|(bit, _)| features >> bit & 1 == 1);
    held.map(|(_, rate)| *rate).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_say_the_highest_rate() {
        for (features, kilobits) in
            [(0, 0), (0b1, 10_000), (0b10_1000, 1_000_000), (1 << 6, 10_000_000), (1 << 11, 0)]
        {
            assert_eq!(speed_of(features), kilobits, "{features:#b}");
        }
    }
}
