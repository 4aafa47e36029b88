//! Ports and packets of a big switch: each belongs to the member that has it.

use super::member::Progress;
use super::request::Object;
use super::tables::Value;
use super::wire::Sent;
use super::{BigSwitch, wire};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use openflow::{Header, NO_BUFFER, frame};

/// OFPPR_ADD, OFPPR_DELETE and OFPPR_MODIFY, in both versions.
const ADD: u8 = 0;
const DELETE: u8 = 1;
const MODIFY: u8 = 2;

impl BigSwitch {
    /// All ports as the front sees them: each as its member describes it. A port is down while its member is not connected, and while
    /// another member says so, since no packet of that member gets to the port.
    pub(super) fn described(&self) -> BTreeMap<u32, Vec<u8>> {
        let (mut ports, mut down) = (BTreeMap::<u32, Vec<u8>>::new(), BTreeSet::new());
        for (dpid, member) in &self.members {
            if !member.is_live() {
                continue;
            }
            for (&number, wire) in &member.ports {
                let is_up = member.progress == Progress::Up;
                if is_up && wire::is_down(self.version, wire) {
                    down.insert(number);
                }
                if self.plan.owners.get(&number) == Some(dpid) && is_up {
                    ports.insert(number, wire.clone());
                } else {
                    ports.entry(number).or_insert_with(|| wire::down(self.version, wire));
                }
            }
        }
        for (_, wire) in ports.iter_mut().filter(|(number, _)| down.contains(*number)) {
            *wire = wire::down(self.version, wire);
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
        let gone = before.iter().filter(|(number, _)| !now.contains_key(number));
        let mut changes: Vec<(u8, &Vec<u8>)> = gone.map(|(_, wire)| (DELETE, wire)).collect();
        for (number, wire) in &now {
            match before.get(number) {
                None => changes.push((ADD, wire)),
                Some(known) if known != wire => changes.push((MODIFY, wire)),
                Some(_) => {}
            }
        }
        for (reason, wire) in changes {
            let mut body = Vec::from([reason, 0, 0, 0, 0, 0, 0, 0]);
            body.extend_from_slice(wire);
            let message = wire::bare(self.version, 12, 0, &body);
            self.front.send(&message);
        }
    }

    /// A member's port has changed.
    pub(super) fn port_status(&mut self, dpid: u64, message: &[u8]) {
        let Some((&reason, wire)) = message.get(Header::LEN).zip(message.get(Header::LEN + 8..))
        else {
            return;
        };
        let number = wire::port_number(self.version, wire);
        let Some(member) = self.members.get_mut(&dpid) else { return };
        match reason {
            DELETE => drop(member.ports.remove(&number)),
            _ => drop(member.ports.insert(number, wire.to_vec())),
        }
        let config = Value::Config(wire::port_config(self.version, wire));
        member.held.set(Object::Port(number), Some(config));
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
            self.member_for(wire::in_port(self.version, message))
        } else {
            let Some(packet) = self.buffered.take(kept) else {
                self.refuse(xid, self.codes().unknown_buffer);
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
