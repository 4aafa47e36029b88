//! PACKET_IN and PACKET_OUT: the forwarding path. Nothing is allocated here for a message.

use crate::buffers::Buffered;
use crate::ids::TenantIndex;
use crate::lldp;
use crate::north::controllers::Asynchronous;
use crate::south::session::set_length;
use crate::switch::{Cause, Request, Switch};
use crate::tally::Count;
use crate::time::Instant;
use crate::v10::unreadable;
use compile::{Actions, Reason, Refused};
use flowspace::{Field, Key, port_from_v10, port_to_v10};
use openflow::error::v10 as code;
use openflow::v10::{Action, PacketIn, PacketInReason, PacketOut, PortNo};
use openflow::{ErrorCode, Header, List, ListBuf, NO_BUFFER, frame};

/// The most entries that are searched for a packet's entry: all tenants wait meanwhile.
const MOST_LOOKED_UP: usize = 4096;

/// Whether an action sends a packet through the table.
fn sends_to_table(action: Action<'_>) -> bool {
    matches!(action, Action::Output { port: PortNo::TABLE, .. })
}

/// Bytes of a PACKET_IN before the packet.
const PACKET_IN_DATA: usize = 18;

impl Switch {
    /// Delivers a packet to its owner, and copies to the tenants that may observe it.
    pub(crate) fn packet_in_v10(&mut self, frame: &[u8], now: Instant) -> Result<(), ErrorCode> {
        let body = frame.get(Header::LEN..).unwrap_or_default();
        let packet = PacketIn::parse(body).map_err(unreadable)?;
        self.announces(packet.buffer_id);
        let key = Key::extract(port_from_v10(packet.in_port.0), packet.data);
        if key.get(Field::DlType) == u128::from(lldp::ETHERTYPE)
            && let Some((id, frame)) = self.map.lldp().verify(packet.data, now)
        {
            if let Some(tenant) = self.tenant_of(id)
                && self.map.ownership().sees_port(tenant, port_from_v10(packet.in_port.0))
            {
                let packet = PacketIn {
                    buffer_id: NO_BUFFER,
                    total_len: frame.len() as u16,
                    data: &frame,
                    ..packet
                };
                self.notify(tenant, Asynchronous::PacketIn(packet.reason.0), |out| {
                    packet.write_message(0, out)
                });
            }
            return Ok(());
        }
        if self.take_probe(&key, packet.data) {
            return Ok(());
        }
        let owner = self.map.ownership().owner(&key);
        if let Some(tenant) = owner.filter(|_| packet.reason == PacketInReason::NO_MATCH) {
            self.tenants[tenant].packets.lookups_mut().missed();
        }
        let is_network = owner.is_some_and(|tenant| self.tenants[tenant].network.is_some());
        match owner {
            Some(tenant) if is_network => self.deliver_network_v10(tenant, &packet, &key, now),
            Some(tenant) => self.deliver_v10(tenant, &packet, &key, frame, true, now),
            None => self.reports.counters_mut().unclaimed += 1,
        }
        if !is_network && self.map.ownership().has_readers() {
            self.deliver_to_readers(owner, &key, |switch, tenant| {
                switch.deliver_v10(tenant, &packet, &key, frame, false, now);
            });
        }
        Ok(())
    }

    fn deliver_v10(
        &mut self,
        tenant: TenantIndex,
        packet: &PacketIn<'_>,
        key: &Key,
        frame: &[u8],
        owner: bool,
        now: Instant,
    ) {
        if !self.tenants[tenant].takes_packet_in(now) {
            return;
        }
        let buffered = packet.buffer_id != NO_BUFFER && owner;
        let buffer_id = if buffered {
            let (physical, length) = (packet.buffer_id, packet.total_len);
            self.tenants.give_buffered(tenant, Buffered { physical, key: *key, length })
        } else {
            NO_BUFFER
        };
        // If the tenant can release the packet by its buffer id, the tenant gets only as many bytes as it wants. If an
        // action has sent the packet, the switch has shortened it already, to the length in the action.
        let missed = packet.reason == PacketInReason::NO_MATCH;
        let miss_send_len = self.tenants[tenant].packets.miss_send_len();
        let wanted = if buffered && missed { usize::from(miss_send_len) } else { usize::MAX };
        let end = frame.len().min(PACKET_IN_DATA.saturating_add(wanted));
        let shortened = frame.get(..end).unwrap_or(frame);
        self.notify(tenant, Asynchronous::PacketIn(packet.reason.0), |out| {
            let start = out.len();
            out.extend_from_slice(shortened);
            if let Some(message) = out.get_mut(start..) {
                frame::set_buffer_id(message, buffer_id);
                set_length(message);
            }
            Ok(())
        });
    }

    /// Calls `deliver` once for each tenant that may observe the packet, except its owner.
    pub(crate) fn deliver_to_readers(
        &mut self,
        owner: Option<TenantIndex>,
        key: &Key,
        mut deliver: impl FnMut(&mut Switch, TenantIndex),
    ) {
        let mut readers = alloc::vec::Vec::new();
        self.map.ownership().for_each_reader(key, |reader| readers.push(reader));
        readers.sort_unstable();
        readers.dedup();
        for reader in readers {
            if Some(reader) != owner {
                deliver(self, reader);
            }
        }
    }

    /// A packet that a tenant sends: the packet and all its actions have to belong to the tenant.
    pub(crate) fn packet_out_v10(&mut self, request: &Request<'_>) -> Result<(), Refused> {
        let packet = PacketOut::parse(request.body()).map_err(unreadable)?;
        if !self.may_write(request.tenant) {
            return Err(Reason::ReadOnly.with(code::BAD_REQUEST_EPERM));
        }
        self.send_packet_v10(request, &packet)
    }

    /// Sends a packet with the actions of `packet`, whatever the actions of the request are.
    fn send_packet_v10(
        &mut self,
        request: &Request<'_>,
        packet: &PacketOut<'_>,
    ) -> Result<(), Refused> {
        let tenant = request.tenant;
        let is_network = self.tenants[tenant].network.is_some();
        let port = port_from_v10(packet.in_port.0);
        let found = self.find_packet(tenant, packet.buffer_id, port, packet.data, || {
            if packet.data.len() < 14 {
                return Err(Reason::ShortPacket.with(code::BAD_REQUEST_BAD_LEN));
            }
            match packet.in_port {
                PortNo::NONE | PortNo::CONTROLLER => Ok(None),
                _ if self.has_port(tenant, port) => Ok(Some(port)),
                _ => Err(Reason::InPort.of(port, code::BAD_REQUEST_EPERM)),
            }
        })?;
        let alone = packet.actions.iter().count() == 1;
        if is_network
            && found.in_port.is_none()
            && alone
            && packet.actions.iter().any(sends_to_table)
        {
            return self.enter_table_v10(request, packet, &found.key);
        }
        let actions = Actions::V10(packet.actions);
        let built = self.send_packet_out(request, &found, packet.buffer_id, actions, packet.data);
        if built.is_ok() && is_network {
            self.report_outputs_v10(tenant, packet, request.now);
        }
        built
    }

    /// A packet without an ingress port enters the table of a network. On the switch each rule has an ingress port, so
    /// Weir finds the entry itself, and sends the packet with its actions. The packet counts for the entry, but does
    /// not keep the entry's rules from being idle.
    fn enter_table_v10(
        &mut self,
        request: &Request<'_>,
        packet: &PacketOut<'_>,
        key: &Key,
    ) -> Result<(), Refused> {
        let state = &mut self.tenants[request.tenant];
        if state.flows.len() > MOST_LOOKED_UP {
            return Err(Reason::LongTable.with(code::BAD_REQUEST_EPERM));
        }
        let length = packet.data.len() as u64;
        let matching = state.flows.iter().filter(|(_, flow)| flow.match_.matches(key));
        let Some((number, _)) = matching.max_by_key(|(_, flow)| flow.priority) else {
            state.packets.lookups_mut().missed();
            let (tenant, reason) = (request.tenant, PacketInReason::NO_MATCH);
            self.report_sent_v10(tenant, packet.in_port, reason, packet.data, request.now);
            return Ok(());
        };
        let Some(flow) = state.flows.get_mut(number) else { return Ok(()) };
        flow.count_past(Count { packets: 1, bytes: length });
        let actions = flow.actions.clone();
        let actions = List::parse(&actions).unwrap_or_default();
        // Actions that are not possible with such a packet are left out, as on any switch.
        let _ = self.send_packet_v10(request, &PacketOut { actions, ..*packet });
        Ok(())
    }

    /// Sends a buffered packet through the table if none of the changed entries has taken it. 1.0 leaves this open; the
    /// specification of 1.3 (section 6.4) says so. Otherwise the packet would stay in the switch's buffers for ever.
    pub(crate) fn release_through_table_v10(&mut self, cause: &Cause, buffered: &Buffered) {
        let in_port = buffered.key.get(Field::InPort) as u32;
        let Some(in_port) = port_to_v10(in_port) else { return };
        let actions = ListBuf::from([Action::Output { port: PortNo::TABLE, max_len: 0 }]);
        let mut message = self.scratch.take_message();
        let packet = PacketOut {
            buffer_id: buffered.physical,
            in_port: PortNo(in_port),
            actions: actions.as_list(),
            data: &[],
        };
        if packet.write_message(0, &mut message).is_ok() {
            self.submit_change(cause, &message);
        }
        self.scratch.put_message(message);
    }
}
