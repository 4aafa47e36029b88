//! Ports and packets of a big switch: each belongs to the member that has it.

use super::member::Progress;
use super::request::Object;
use super::tables::Value;
use super::wire::Sent;
use super::{BigSwitch, wire};
use crate::messages;
use crate::port_desc::{PORT_DELETE, changed_ports, write_port_status};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use openflow::error::v13 as code;
use openflow::v13::{Port, PortState};
use openflow::{NO_BUFFER, frame};

/// The bit is the same in both versions.
const LINK_DOWN: PortState = PortState::LINK_DOWN;

impl BigSwitch {
    /// All ports as the front sees them: each as its member describes it. A port is down while its member is not
    /// connected, and while another member says so, since no packet of that member gets to the port. A port that is
    /// down has no other state, so it has the same description for each of these reasons.
    pub(super) fn described(&self) -> BTreeMap<u32, Port> {
        let (mut ports, mut down) = (BTreeMap::new(), BTreeSet::new());
        for (dpid, member) in self.members.iter().filter(|(_, member)| member.is_live()) {
            let is_up = member.progress == Progress::Up;
            for (&number, &port) in &member.ports {
                if is_up && self.plan.owners.get(&number) == Some(dpid) {
                    ports.insert(number, port);
                } else {
                    ports.entry(number).or_insert(Port { state: LINK_DOWN, ..port });
                }
                if is_up && port.state.contains(LINK_DOWN) {
                    down.insert(number);
                }
            }
        }
        for (_, port) in ports.iter_mut().filter(|(number, _)| down.contains(*number)) {
            port.state = LINK_DOWN;
        }
        ports
    }

    /// Sends the front a PORT_STATUS for each port that differs.
    pub(super) fn report_ports(&mut self) {
        if !self.front.is_started() {
            return;
        }
        let now = self.described();
        let before = self.front.show(now.clone());
        let mut messages = Vec::new();
        for (reason, port) in changed_ports(&before, &now) {
            let wire = messages::write_port(self.wire, port);
            // A PORT_STATUS is short, so there is room.
            let _ = write_port_status(self.version(), reason, &wire, &mut messages);
        }
        self.front.send(&messages);
    }

    /// A member's port has changed.
    pub(super) fn port_status(&mut self, dpid: u64, body: &[u8]) {
        let Ok((reason, number, port)) = messages::port_status(self.wire, body) else { return };
        let Some(port) = messages::read_port(self.wire, &port.description) else { return };
        let Some(member) = self.members.get_mut(&dpid) else { return };
        match reason {
            PORT_DELETE => drop(member.ports.remove(&number)),
            _ => drop(member.ports.insert(number, port)),
        }
        member.held.set(Object::Port(number), Some(Value::Config(port.config.0)));
        if !self.members.values().any(|member| member.ports.contains_key(&number)) {
            self.desired.set(Object::Port(number), None);
        }
        self.report_ports();
    }

    /// The member for a packet from this port: the port's member, else the first.
    fn member_for(&self, port: u32) -> Option<u64> {
        let owner = self.plan.owners.get(&port).copied().filter(|dpid| self.is_up(*dpid));
        owner.or_else(|| self.first())
    }

    /// The first member that is up, else the first that gets changes: its answer stands for those of all members.
    pub(super) fn first(&self) -> Option<u64> {
        let up = self.members.iter().find(|(_, member)| member.progress == Progress::Up);
        up.map(|(&dpid, _)| dpid).or_else(|| self.live().first().copied())
    }

    /// A packet from a member, for the front: with another buffer id, if the member buffers the packet.
    pub(super) fn packet_in(&mut self, dpid: u64, message: &[u8]) {
        if !self.front.is_started() {
            return;
        }
        match frame::buffer_id(message).unwrap_or(NO_BUFFER) {
            NO_BUFFER => self.front.send(message),
            kept => {
                let number = self.buffered.give(dpid, kept);
                let change = |message: &mut [u8]| frame::set_buffer_id(message, number);
                self.front.send_changed(message, change);
            }
        }
    }

    /// A PACKET_OUT goes to the member that has its ingress port, or that buffers the packet.
    pub(super) fn packet_out(&mut self, xid: u32, message: &[u8]) {
        let mut part = message.to_vec();
        let kept = frame::buffer_id(message).unwrap_or(NO_BUFFER);
        let dpid = if kept == NO_BUFFER {
            self.member_for(wire::in_port(self.wire, message))
        } else {
            let Some(packet) = self.buffered.take(kept) else {
                self.refuse(xid, code::BAD_REQUEST_BUFFER_UNKNOWN);
                return;
            };
            frame::set_buffer_id(&mut part, packet.at_member);
            Some(packet.member)
        };
        match dpid {
            Some(dpid) => self.send(dpid, Sent::Plain(Some(xid)), &part),
            None => self.refuse(xid, self.no_member()),
        }
    }
}
