//! PACKET_IN and PACKET_OUT of a network.

use super::{Packets, Unsaid, Vlan, Writer};
use crate::buffers::Buffered;
use crate::ids::TenantIndex;
use crate::network::{Entered, Network};
use crate::switch::{Asynchronous, Request, Switch, set_length};
use crate::time::Instant;
use alloc::vec::Vec;
use fabric::embedding::PortKind;
use flowspace::frame::apply_v10;
use flowspace::{Field, Key, port_to_v10};
use openflow::error::v10 as code;
use openflow::v10::{Action, PacketIn, PacketInReason, PacketOut, PortNo};
use openflow::{ErrorCode, List, NO_BUFFER, frame};

/// Bytes of a PACKET_OUT before its actions.
const PACKET_OUT_ACTIONS: usize = 16;
/// Bytes of a frame before its VLAN tag, and of that.
const ADDRESSES: usize = 12;
const TAG: usize = 4;

impl Switch {
    /// A packet of a network: by the virtual port, without the link's tag.
    pub(in crate::v10) fn deliver_network_v10(
        &mut self,
        tenant: TenantIndex,
        network: &Network,
        packet: &PacketIn<'_>,
        key: &Key,
        now: Instant,
    ) {
        let Some(came) = network.entry_of(key) else {
            self.counters.nobody += 1;
            return;
        };
        let state = &mut self.tenants[tenant.0 as usize];
        let missed = packet.reason == PacketInReason::NO_MATCH;
        if network.keeps_back(came, missed) {
            state.counters.unwanted += 1;
            return;
        }
        if !state.admit_packet_in(now) {
            state.counters.limited += 1;
            return;
        }
        self.tell_network_v10(tenant, network, packet, key, came);
    }

    /// Tells a tenant of the packet that it has sent itself, and not kept by the switch, if it has so: by its rate, and without the
    /// switch, which would tell of it as of one that has come in.
    pub(in crate::v10) fn tell_sent_v10(
        &mut self,
        tenant: TenantIndex,
        sent: &PacketOut<'_>,
        now: Instant,
    ) {
        if sent.buffer_id != NO_BUFFER || !sent.actions.iter().any(is_told) {
            return;
        }
        let state = &mut self.tenants[tenant.0 as usize];
        if state.admit_packet_in(now) {
            self.tell_outputs_v10(tenant, sent.in_port, sent.data.to_vec(), sent.actions, now);
        } else {
            state.counters.limited += 1;
        }
    }

    /// Tells a tenant of a packet that has been admitted, by each output to CONTROLLER in a list. All but the first have to be
    /// admitted, too.
    fn tell_outputs_v10(
        &mut self,
        tenant: TenantIndex,
        in_port: PortNo,
        mut frame: Vec<u8>,
        actions: List<'_, Action<'_>>,
        now: Instant,
    ) {
        let mut is_first = true;
        for action in actions {
            match action {
                Action::Output { port: PortNo::CONTROLLER, .. } => {
                    let state = &mut self.tenants[tenant.0 as usize];
                    if !core::mem::take(&mut is_first) && !state.admit_packet_in(now) {
                        state.counters.limited += 1;
                        continue;
                    }
                    let total_len = u16::try_from(frame.len()).unwrap_or(u16::MAX);
                    self.tell_frame_v10(tenant, in_port, total_len, &frame);
                }
                // The switch tells of what comes behind.
                Action::Vendor { .. } => return,
                change => apply_v10(&mut frame, &change),
            }
        }
    }

    fn tell_frame_v10(
        &mut self,
        tenant: TenantIndex,
        in_port: PortNo,
        total_len: u16,
        data: &[u8],
    ) {
        let state = &mut self.tenants[tenant.0 as usize];
        if state.controllers.is_empty() {
            state.counters.absent += 1;
            return;
        }
        let (buffer_id, reason) = (NO_BUFFER, PacketInReason::ACTION);
        self.notify(tenant, Asynchronous::PacketIn(reason.0), |out| {
            PacketIn { buffer_id, total_len, in_port, reason, data }.write_message(0, out)
        });
    }

    fn tell_network_v10(
        &mut self,
        tenant: TenantIndex,
        network: &Network,
        packet: &PacketIn<'_>,
        key: &Key,
        came: u32,
    ) {
        let buffered = packet.buffer_id != NO_BUFFER;
        let missed = packet.reason == PacketInReason::NO_MATCH;
        let state = &mut self.tenants[tenant.0 as usize];
        if state.controllers.is_empty() {
            state.counters.absent += 1;
            return;
        }
        let tagged = bears_tag(network, came);
        let total_len = own_length(network, packet, came);
        let buffer_id = match buffered {
            // Where it came in, on the switch, is what is needed to release it.
            true => {
                let (physical, length) = (packet.buffer_id, total_len);
                self.give_kept(tenant, Buffered { physical, key: *key, length })
            }
            false => NO_BUFFER,
        };
        let miss_send_len = self.tenants[tenant.0 as usize].miss_send_len;
        let wanted = if buffered && missed { usize::from(miss_send_len) } else { usize::MAX };
        let (before, after) = match tagged {
            true => (
                packet.data.get(..ADDRESSES).unwrap_or(packet.data),
                packet.data.get(ADDRESSES + TAG..).unwrap_or_default(),
            ),
            false => (packet.data, &[][..]),
        };
        let after = after.get(..wanted.saturating_sub(before.len())).unwrap_or(after);
        let before = before.get(..wanted).unwrap_or(before);
        let in_port = PortNo(port_to_v10(came).unwrap_or(PortNo::NONE.0));
        self.notify(tenant, Asynchronous::PacketIn(packet.reason.0), |out| {
            let start = out.len();
            PacketIn { buffer_id, total_len, in_port, data: before, ..*packet }
                .write_message(0, out)?;
            out.extend_from_slice(after);
            if let Some(message) = out.get_mut(start..) {
                set_length(message);
            }
            Ok(())
        });
    }

    /// The PACKET_OUT for the switch. `said` is the virtual port by which the tenant says that the packet came.
    #[allow(clippy::too_many_arguments)]
    pub(in crate::v10) fn build_network_packet_out_v10(
        &self,
        request: &Request<'_>,
        network: &Network,
        packet: &PacketOut<'_>,
        key: &Key,
        said: Option<u32>,
        physical: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), ErrorCode> {
        out.extend_from_slice(request.frame.get(..PACKET_OUT_ACTIONS).unwrap_or_default());
        frame::set_buffer_id(out, physical);
        // Of a kept packet it is known how it came, whatever the tenant says of it.
        let packets = match physical {
            NO_BUFFER => sent(network, key, said),
            _ => kept(network, key),
        };
        let in_port = packets.came_at(network).and_then(port_to_v10).unwrap_or(PortNo::NONE.0);
        frame::set_in_port(out, in_port.into());
        let tenant = request.tenant;
        for action in packet.actions {
            if let Action::Output { port: PortNo::TABLE, max_len } = action {
                // Back through the table, looking as if it had come by the port; nothing else may be done with it.
                let alone = packet.actions.iter().count() == 1;
                let tag = looks_like_entry(network, &packets, key).filter(|_| alone);
                let tag = tag.ok_or(code::BAD_ACTION_EPERM)?;
                Writer::new(network, packets, out, false).bear(tag);
                Action::Output { port: PortNo::TABLE, max_len }.write(out);
            }
        }
        if out.len() == PACKET_OUT_ACTIONS {
            // Of what is not kept by the switch the tenant is told here.
            let mut writer = Writer::new(network, packets, out, physical == NO_BUFFER);
            self.network_actions_v10(tenant, &mut writer, packet.actions).map_err(Unsaid::code)?;
        }
        let actions_len =
            u16::try_from(out.len() - PACKET_OUT_ACTIONS).map_err(|_| code::BAD_ACTION_TOO_MANY)?;
        if let Some(field) = out.get_mut(14..16) {
            field.copy_from_slice(&actions_len.to_be_bytes());
        }
        if physical == NO_BUFFER {
            out.extend_from_slice(packet.data);
        }
        if out.len() > usize::from(u16::MAX) {
            return Err(code::BAD_REQUEST_BAD_LEN);
        }
        set_length(out);
        Ok(())
    }
}

/// How long a packet is as the tenant knows it.
fn own_length(network: &Network, packet: &PacketIn<'_>, came: u32) -> u16 {
    packet.total_len.saturating_sub(if bears_tag(network, came) { TAG as u16 } else { 0 })
}

/// Whether the tenant is told by an action.
fn is_told(action: Action<'_>) -> bool {
    matches!(action, Action::Output { port: PortNo::CONTROLLER, .. })
}

/// Whether a packet that came by this port bears a link's tag.
fn bears_tag(network: &Network, came: u32) -> bool {
    let kind = network.ports.get(&came).map(|port| &port.kind);
    matches!(kind, Some(PortKind::Link { .. }))
}

/// A packet from a controller: it bears what it bears.
fn sent(network: &Network, key: &Key, said: Option<u32>) -> Packets {
    let hop = said.and_then(|number| network.arrival_hop(number));
    Packets {
        entered: said.map_or(Entered::Nowhere, Entered::Port),
        by_link: hop.map(|hop| hop.port.get()),
        vlan: Vlan::from_field(key.get(Field::VlanVid)),
        tag: None,
        dl_dst: Some(key.get(Field::DlDst)),
        dl_type: Some(key.get(Field::DlType)),
    }
}

/// A packet that the switch keeps: it bears the tag with which it came.
fn kept(network: &Network, key: &Key) -> Packets {
    let Some(came) = network.entry_of(key) else { return sent(network, key, None) };
    let vid = key.get(Field::VlanVid);
    let by_link = bears_tag(network, came);
    Packets {
        entered: Entered::Port(came),
        by_link: by_link.then_some(key.get(Field::InPort) as u32),
        vlan: if by_link { Vlan::Untagged } else { Vlan::from_field(vid) },
        tag: by_link.then_some((vid & 0xfff) as u16),
        dl_dst: Some(key.get(Field::DlDst)),
        dl_type: Some(key.get(Field::DlType)),
    }
}

/// Which tag a packet has to bear to be taken, in the table, for what the tenant says that it is; `None` if it cannot be.
fn looks_like_entry(network: &Network, packets: &Packets, key: &Key) -> Option<Option<u16>> {
    let Entered::Port(number) = packets.entered else { return None };
    match &network.ports.get(&number)?.kind {
        PortKind::Edge { hosts, .. } => {
            let source = key.get(Field::DlSrc);
            let known = |host| crate::network::number_of(host) == source;
            (hosts.is_empty() || hosts.iter().copied().any(known)).then_some(None)
        }
        PortKind::Link { .. } => {
            let tag = network.arrival_tag(number, packets.by_link?)?;
            (packets.vlan == Vlan::Untagged).then_some(Some(tag.get()))
        }
        PortKind::Remote { .. } => None,
    }
}
