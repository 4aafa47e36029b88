//! PACKET_IN and PACKET_OUT: the forwarding path. Nothing is allocated here for a message.

use crate::buffers::Buffered;
use crate::cookie::Cookie;
use crate::flows::Flow;
use crate::ids::TenantIndex;
use crate::lldp;
use crate::north::controllers::Asynchronous;
use crate::switch::{Cause, Request, Switch};
use crate::time::Instant;
use crate::v13::flow_mod::through_table;
use crate::v13::unreadable;
use alloc::vec::Vec;
use compile::packet::{self, Sent, ingress_by_metadata};
use compile::{Actions, Reason, Refused, Space, metadata};
use flowspace::{Field, Key};
use openflow::error::v13 as code;
use openflow::v13::{
    Action, Instruction, Match, OxmField, PacketIn, PacketInReason, PacketOut, PortNo,
};
use openflow::{ErrorCode, List, NO_BUFFER};

/// The cookie of a PACKET_IN that no entry caused.
const NO_COOKIE: u64 = u64::MAX;

/// A PACKET_IN for a tenant.
struct Seen<'a> {
    packet: PacketIn<'a>,
    in_port: u32,
    /// The tenant's own metadata.
    metadata: u64,
    /// How many bytes the owner wants of a buffered packet, if that is known.
    wanted: Option<u16>,
}

impl Switch {
    /// Delivers a packet to its owner, and copies to the tenants that may observe it.
    pub(crate) fn packet_in_v13(&mut self, body: &[u8], now: Instant) -> Result<(), ErrorCode> {
        let packet = PacketIn::parse(body).map_err(unreadable)?;
        self.announces(packet.buffer_id);
        let in_port = packet.match_.in_port().map_or(PortNo::ANY.0, |port| port.0);
        let mut key = Key::extract(in_port, packet.data);
        let metadata = packet.match_.get(OxmField::METADATA).and_then(|oxm| oxm.number());
        let metadata = metadata.map_or(0, |metadata| metadata as u64);
        if key.get(Field::DlType) == u128::from(lldp::ETHERTYPE)
            && let Some((id, frame)) = self.map.lldp().verify(packet.data, now)
        {
            if let Some(tenant) = self.tenant_of(id)
                && self.map.ownership().sees_port(tenant, in_port)
            {
                self.report_link_probe(tenant, &packet, in_port, metadata, &frame);
            }
            return Ok(());
        }
        if self.take_probe(&key, packet.data) {
            return Ok(());
        }
        let mut seen =
            Seen { packet, in_port, metadata: metadata & !metadata::TENANT, wanted: None };
        seen.packet.table_id = packet.table_id.saturating_sub(self.target().first_table());
        let entry = Cookie::of_entry(packet.cookie, self.settings.installation);
        let owner = match entry {
            Some(cookie) => self.tenant_of(cookie.tenant),
            None => self
                .owner_by_metadata(packet.cookie, metadata)
                .or_else(|| self.map.ownership().owner(&key)),
        };
        let Some(tenant) = owner else {
            self.reports.counters_mut().unclaimed += 1;
            return Ok(());
        };
        if let Some(network) = self.tenants[tenant].network.as_deref() {
            let Some(port) = ingress_by_metadata(network, metadata, &key) else {
                self.reports.counters_mut().unclaimed += 1;
                return Ok(());
            };
            seen.in_port = port;
            seen.metadata = metadata & !metadata::PORT;
            key.set(Field::InPort, u128::from(port));
        }
        self.caused_by(tenant, entry, &mut seen);
        let is_miss = seen.packet.reason == PacketInReason::NO_MATCH;
        let state = &mut self.tenants[tenant];
        if state.network.as_ref().is_some_and(|it| it.sends_no_packet_in(seen.in_port, is_miss)) {
            state.counters.unwanted += 1;
            return Ok(());
        }
        self.deliver_v13(tenant, &seen, &key, true, now);
        let is_slice = self.tenants[tenant].network.is_none();
        if is_slice && self.map.ownership().has_readers() {
            self.deliver_to_readers(owner, &key, |switch, reader| {
                let packet = PacketIn { cookie: NO_COOKIE, ..seen.packet };
                let copy = Seen { packet, metadata: 0, ..seen };
                switch.deliver_v13(reader, &copy, &key, false, now);
            });
        }
        Ok(())
    }

    /// Sets the cookie and the reason of a PACKET_IN by the tenant's entry that has sent the packet, if there is one.
    fn caused_by(&self, tenant: TenantIndex, entry: Option<Cookie>, seen: &mut Seen<'_>) {
        seen.packet.cookie = NO_COOKIE;
        let flows = &self.tenants[tenant].flows;
        let Some(flow) = entry.and_then(|cookie| flows.get(cookie.number)) else { return };
        seen.packet.cookie = flow.cookie;
        if seen.packet.buffer_id != NO_BUFFER {
            seen.wanted = asked_for(flow);
        }
        // The rule of the tenant's table-miss entry also matches on the tenant's number, so for the switch it is an
        // ordinary rule.
        let is_sent = seen.packet.reason == PacketInReason::ACTION;
        if is_sent && flow.priority == 0 && flow.match_.is(&flowspace::Match::ANY) {
            seen.packet.reason = PacketInReason::NO_MATCH;
        }
    }

    /// Sends a tenant a PACKET_IN for its own link probe, with the tenant's entry that has sent it, if there is one.
    /// Entries of other tenants and Weir's own rules are not shown.
    fn report_link_probe(
        &mut self,
        tenant: TenantIndex,
        packet: &PacketIn<'_>,
        in_port: u32,
        metadata: u64,
        frame: &[u8],
    ) {
        let id = self.tenants[tenant].id;
        let entry = Cookie::of_entry(packet.cookie, self.settings.installation)
            .filter(|cookie| cookie.tenant == id);
        let packet = PacketIn {
            buffer_id: NO_BUFFER,
            total_len: frame.len() as u16,
            data: frame,
            ..*packet
        };
        let mut seen = Seen { packet, in_port, metadata: 0, wanted: None };
        match entry {
            Some(_) => {
                seen.packet.table_id = packet.table_id.saturating_sub(self.target().first_table());
                seen.metadata = metadata & !metadata::TENANT;
            }
            None => {
                seen.packet.table_id = 0;
                seen.packet.reason = PacketInReason::ACTION;
                seen.packet.match_ = Match::ANY;
            }
        }
        self.caused_by(tenant, entry, &mut seen);
        self.report_packet(tenant, &seen);
    }

    /// The tenant in whose tables a packet matched no entry: Open vSwitch then carries out the action set.
    fn owner_by_metadata(&self, cookie: u64, metadata: u64) -> Option<TenantIndex> {
        let is_own = Cookie::from_wire(cookie, self.settings.installation).is_some();
        (!is_own).then(|| self.tenant_of(metadata::tenant(metadata)))?
    }

    fn deliver_v13(
        &mut self,
        tenant: TenantIndex,
        seen: &Seen<'_>,
        key: &Key,
        owner: bool,
        now: Instant,
    ) {
        if !self.tenants[tenant].takes_packet_in(now) {
            return;
        }
        let (buffer_id, wanted) = match seen.packet.buffer_id {
            physical if owner && physical != NO_BUFFER => {
                let length = seen.packet.total_len;
                let buffered = Buffered { physical, key: *key, length };
                (self.tenants.give_buffered(tenant, buffered), seen.wanted)
            }
            _ => (NO_BUFFER, None),
        };
        let data = seen.packet.data;
        let data = wanted.and_then(|wanted| data.get(..usize::from(wanted))).unwrap_or(data);
        let seen = Seen { packet: PacketIn { buffer_id, data, ..seen.packet }, ..*seen };
        self.report_packet(tenant, &seen);
    }

    fn report_packet(&mut self, tenant: TenantIndex, seen: &Seen<'_>) {
        let is_network = self.tenants[tenant].network.is_some();
        let mut fields = self.scratch.take_match();
        fields.exact(OxmField::IN_PORT, u128::from(seen.in_port));
        for oxm in seen.packet.match_.fields {
            match oxm.basic() {
                Some(OxmField::IN_PORT | OxmField::METADATA) => {}
                // For its tenant a virtual port has no physical port.
                Some(OxmField::IN_PHY_PORT) if is_network => {}
                _ => {
                    fields.push(oxm);
                }
            }
        }
        if seen.metadata != 0 {
            fields.exact(OxmField::METADATA, u128::from(seen.metadata));
        }
        let reason = seen.packet.reason.0;
        self.notify(tenant, Asynchronous::PacketIn(reason), |out| {
            PacketIn { match_: fields.as_match(), ..seen.packet }.write_message(0, out)
        });
        self.scratch.put_match(fields);
    }

    /// A packet that a tenant sends: the packet and all its actions have to belong to the tenant.
    pub(crate) fn packet_out_v13(&mut self, request: &Request<'_>) -> Result<(), Refused> {
        let packet = PacketOut::parse(request.body()).map_err(unreadable)?;
        let tenant = request.tenant;
        let is_network = self.tenants[tenant].network.is_some();
        let port = packet.in_port.0;
        let found = self.find_packet(tenant, packet.buffer_id, port, packet.data, || {
            if packet.data.len() < 14 {
                return Err(code::BAD_REQUEST_BAD_PACKET.into());
            }
            match packet.in_port {
                PortNo::CONTROLLER | PortNo::ANY => Ok(None),
                _ if is_network || self.map.ownership().sees_port(tenant, port) => Ok(Some(port)),
                _ => Err(Reason::InPort.of(port, code::BAD_REQUEST_BAD_PORT)),
            }
        })?;
        let actions = Actions::V13(packet.actions);
        self.send_packet_out(request, &found, packet.buffer_id, actions, packet.data)
    }

    /// Sends a buffered packet through the tables after a change that has not released it, as the specification says
    /// (section 6.4). The change may have led to several messages, or none, and the packet must be sent once.
    pub(crate) fn release_through_table_v13(&mut self, cause: &Cause, buffered: &Buffered) {
        let in_port = PortNo(buffered.key.get(Field::InPort) as u32);
        let through = through_table();
        let cx = self.context(cause.tenant);
        let entered = match cx.space {
            Space::Slice(_) => Ok((in_port, through.clone().into_bytes())),
            Space::Network(network) => {
                let sent = Sent { key: &buffered.key, in_port: Some(in_port.0), is_buffered: true };
                let (list, mut actions) = (Actions::V13(through.as_list()), Vec::new());
                packet::compile(&cx, network, &sent, list, &mut actions).map(|at| (at, actions))
            }
        };
        // A port that was removed meanwhile has no packets.
        let Ok((in_port, actions)) = entered else { return };
        let packet = PacketOut {
            buffer_id: buffered.physical,
            in_port,
            actions: List::parse(&actions).unwrap_or_default(),
            data: &[],
        };
        let mut message = self.scratch.take_message();
        if packet.write_message(0, &mut message).is_ok() {
            self.submit_change(cause, &message);
        }
        self.scratch.put_message(message);
    }
}

/// How many bytes an entry wants of buffered packets, if that is certain: a PACKET_IN by a group, or by an action set
/// from an earlier table, has the same cookie.
fn asked_for(flow: &Flow) -> Option<u16> {
    let instructions = List::<Instruction<'_>>::parse(&flow.actions).ok()?;
    let lists = instructions.iter().filter_map(|instruction| match instruction {
        Instruction::ApplyActions(list) | Instruction::WriteActions(list) => Some(list),
        _ => None,
    });
    let mut most = None;
    for action in lists.flat_map(|list| list.iter()) {
        match action {
            Action::Output { port: PortNo::CONTROLLER, max_len } => most = most.max(Some(max_len)),
            Action::Group(_) => return None,
            _ => {}
        }
    }
    most.filter(|_| flow.table == 0)
}
