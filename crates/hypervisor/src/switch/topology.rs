//! What the switch shows of its network: its ports, and Weir's link probes.
//!
//! Nothing is decided here: [`Event::Ports`] and [`Event::Probe`] are for the component that keeps the topology, and
//! [`Switch::send_own_packet_out`] sends its probes.

use super::map::OwnChange;
use super::{Event, Switch};
use crate::lldp;
use crate::messages;
use crate::policy::TenantId;
use crate::port_desc::PortState;
use crate::south::pending::Awaits;
use crate::time::Instant;
use alloc::vec::Vec;
use compile::InfraRule;
use flowspace::{Field, Key};
use openflow::v13::{CONTROLLER_NO_BUFFER, PortNo};

impl Switch {
    /// Sends a frame of Weir out of a port. False, and nothing is sent, if the switch is not ready, has no such port,
    /// or has too many waiting bytes.
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

    /// Reports all ports.
    pub(crate) fn report_topology(&mut self) {
        let numbers = self.datapath.ports().keys();
        let ports = numbers.map(|&number| (number, self.port_state(number)));
        self.reports.push(Event::Ports(ports.collect()));
    }

    /// The state of a port, by the switch.
    pub(crate) fn port_state(&self, number: u32) -> Option<PortState> {
        let port = self.datapath.ports().get(&number)?;
        Some(messages::port_state(self.wire, &port.description))
    }

    /// Reports one port.
    pub(crate) fn report_port_change(&mut self, number: u32) {
        if self.is_ready() {
            let state = self.port_state(number);
            self.reports.push(Event::Ports(Vec::from([(number, state)])));
        }
    }

    /// Takes a packet that came in if it is a link probe of Weir. No tenant gets the probe, even if a tenant's rule
    /// sent it to the controllers.
    pub(crate) fn take_probe(&mut self, key: &Key, frame: &[u8]) -> bool {
        if key.get(Field::DlType) != u128::from(lldp::ETHERTYPE) || !self.map.lldp().is_probe(frame)
        {
            return false;
        }
        self.reports.push_probe(key.get(Field::InPort) as u32, frame);
        true
    }

    /// Appends a tenant's link probe with the tenant's tag; by this tag Weir finds the tenant again when the probe
    /// comes in. If LLDP does not belong to the tenant, the probe must not match the entries of the tenant that owns
    /// the packet. False, and nothing is appended, for an incomplete LLDP frame, and on the front of a big switch,
    /// whose members tag probes.
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

    /// Whether a packet that a tenant sends may come in as a probe of Weir, which a host has received before. An LLDP
    /// frame gets the tenant's tag, so it is no probe of Weir any more; but frames in the tenant's own network get no
    /// tag.
    pub(crate) fn passes_probe_on(is_network: bool, frame: &[u8]) -> bool {
        let is_lldp = frame.get(12..14) == Some(&lldp::ETHERTYPE.to_be_bytes());
        (is_network || !is_lldp) && lldp::looks_like_probe(frame)
    }

    /// Installs a rule of the highest priority for link probes (1.0). Without table 0, a tenant's rule that matches all
    /// its packets would take the probes. If a tenant's rule has the same priority and matches probes, the
    /// specification does not say which rule wins.
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
        if let Some(message) = self.write_own(&entry, OwnChange::Add) {
            self.send_own(Awaits::Nothing, &message, now);
            self.map.note_probes_expected();
        }
    }
}

/// An address as a number.
pub(crate) fn number(address: [u8; 6]) -> u128 {
    address.iter().fold(0, |number, octet| number << 8 | u128::from(*octet))
}
