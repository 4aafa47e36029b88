//! What the switch shows of the network it stands in: its ports, and the hypervisor's own link probes.
//!
//! Nothing is decided here: [`Event::Ports`](super::Event::Ports) and [`Event::Probe`](super::Event::Probe) are for the part that keeps the topology, and
//! [`Switch::send_own_packet_out`] sends what it wants sent.

use super::Switch;
use super::map::OwnChange;
use crate::lldp;
use crate::messages;
use crate::policy::TenantId;
use crate::port_desc::PortState;
use crate::south::pending::Awaits;
use crate::time::Instant;
use alloc::vec::Vec;
use compile::{InfraRule, PhysicalPort};
use flowspace::{Field, Key};
use openflow::v13::{CONTROLLER_NO_BUFFER, PortNo};

impl Switch {
    /// Sends a frame of the hypervisor's own out of a port. False, and nothing sent, when the switch is not ready, has
    /// no such port, or has too much waiting for it already.
    pub fn send_own_packet_out(&mut self, port: u32, frame: &[u8], now: Instant) -> bool {
        if !self.is_ready() || !self.datapath.ports().contains_key(&port) || self.session.is_full()
        {
            return false;
        }
        self.expect_probes(now);
        let message = messages::packet_out(self.wire, port, frame);
        if let Some(message) = &message {
            self.send_own(Awaits::Nothing, message, now);
        }
        message.is_some()
    }

    /// Tells of all ports.
    pub(crate) fn report_topology(&mut self) {
        let wire = self.wire;
        let state = |port: &PhysicalPort| Some(messages::port_state(wire, &port.description));
        let ports = self.datapath.ports().iter().map(|(&number, port)| (number, state(port)));
        self.reports.push_ports(ports);
    }

    /// What the switch says of a port.
    pub(crate) fn port_state(&self, number: u32) -> Option<PortState> {
        self.datapath
            .ports()
            .get(&number)
            .map(|port| messages::port_state(self.wire, &port.description))
    }

    /// Tells of one.
    pub(crate) fn report_port_change(&mut self, number: u32) {
        if self.is_ready() {
            self.reports.push_ports([(number, self.port_state(number))]);
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

    /// Without a table of Weir's own a tenant's entry for all its packets would take the probes from here, so they get an entry
    /// of the highest priority. Of a tenant's entry of that priority that matches them too, the specification does not
    /// say which wins.
    fn expect_probes(&mut self, now: Instant) {
        if self.target().has_metadata() || self.map.expects_probes() {
            return;
        }
        let mut actions = Vec::new();
        if self.wire.output(PortNo::CONTROLLER, CONTROLLER_NO_BUFFER, &mut actions).is_err() {
            return;
        }
        let match_ = flowspace::Match::exact(Field::DlType, u128::from(lldp::ETHERTYPE))
            .with(Field::DlSrc, number(lldp::PROBE_SOURCE));
        let entry = InfraRule { table: 0, match_, priority: u16::MAX, actions, counted: None };
        let mut message = Vec::new();
        if self.write_own(&entry, OwnChange::Add, &mut message) {
            self.send_own(Awaits::Nothing, &message, now);
            self.map.note_probes_expected();
        }
    }
}

/// An address as a number.
pub(crate) fn number(address: [u8; 6]) -> u128 {
    address.iter().fold(0, |number, octet| number << 8 | u128::from(*octet))
}
