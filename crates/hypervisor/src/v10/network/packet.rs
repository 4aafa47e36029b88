//! PACKET_IN and PACKET_OUT of a network.

use super::{Vlan, Writer};
use crate::buffers::Buffered;
use crate::ids::TenantIndex;
use crate::network::{Entered, Network};
use crate::switch::{Asynchronous, Request, Switch, set_length};
use crate::time::Instant;
use alloc::vec::Vec;
use fabric::embedding::PortKind;
use flowspace::field::VLAN_PRESENT;
use flowspace::{Field, Key, port_to_v10};
use openflow::error::v10 as code;
use openflow::v10::{Action, PacketIn, PacketInReason, PacketOut, PortNo};
use openflow::{ErrorCode, NO_BUFFER, frame};

/// Bytes of a PACKET_OUT before its actions.
const PACKET_OUT_ACTIONS: usize = 16;
/// Bytes of a frame before its VLAN tag, and of that.
const ADDRESSES: usize = 12;
const TAG: usize = 4;

impl Switch {
    /// A packet of a network: by the virtual port, and without the link's tag.
    pub(in crate::v10) fn deliver_network_v10(
        &mut self,
        tenant: TenantIndex,
        network: &Network,
        packet: &PacketIn<'_>,
        key: &Key,
        now: Instant,
    ) {
        let Some(port) = network.entry_of(key) else {
            self.counters.nobody += 1;
            return;
        };
        let state = &mut self.tenants[tenant.0 as usize];
        let missed = packet.reason == PacketInReason::NO_MATCH;
        if network.keeps_back(port, key, missed) {
            state.counters.unwanted += 1;
            return;
        }
        if !state.admit_packet_in(now) {
            state.counters.limited += 1;
            return;
        }
        if state.controllers.is_empty() {
            state.counters.absent += 1;
            return;
        }
        let tagged =
            matches!(network.ports.get(&port).map(|port| &port.kind), Some(PortKind::Link { .. }));
        let buffered = packet.buffer_id != NO_BUFFER;
        let buffer_id = match buffered {
            // Where it came in, on the switch, is what is needed to release it.
            true => state.buffers.give(Buffered { physical: packet.buffer_id, key: *key }),
            false => NO_BUFFER,
        };
        let wanted = if buffered && missed { usize::from(state.miss_send_len) } else { usize::MAX };
        let (before, after) = match tagged {
            true => (
                packet.data.get(..ADDRESSES).unwrap_or(packet.data),
                packet.data.get(ADDRESSES + TAG..).unwrap_or_default(),
            ),
            false => (packet.data, &[][..]),
        };
        let after = after.get(..wanted.saturating_sub(before.len())).unwrap_or(after);
        let before = before.get(..wanted).unwrap_or(before);
        let total_len = packet.total_len.saturating_sub(if tagged { TAG as u16 } else { 0 });
        let in_port = PortNo(port_to_v10(port).unwrap_or(PortNo::NONE.0));
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

    /// The PACKET_OUT for the switch.
    #[allow(clippy::too_many_arguments)]
    pub(in crate::v10) fn build_network_packet_out_v10(
        &self,
        request: &Request<'_>,
        network: &Network,
        packet: &PacketOut<'_>,
        key: &Key,
        entered: Entered,
        physical: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), ErrorCode> {
        out.extend_from_slice(request.frame.get(..PACKET_OUT_ACTIONS).unwrap_or_default());
        frame::set_buffer_id(out, physical);
        let hop = match entered {
            Entered::Port(number) => network.arrival_hop(number),
            _ => None,
        };
        let in_port = match entered {
            Entered::Port(number) => hop.map(|hop| hop.port.get()).or(network.physical(number)),
            _ => None,
        };
        let in_port = in_port.and_then(port_to_v10).unwrap_or(PortNo::NONE.0);
        frame::set_in_port(out, in_port.into());
        // A kept packet bears the tag with which it came; one from the controller bears what it bears.
        let vid = key.get(Field::VlanVid);
        let vlan = match (physical, hop) {
            (NO_BUFFER, _) | (_, None) if vid & VLAN_PRESENT != 0 => Vlan::Own,
            (NO_BUFFER, _) | (_, None) => Vlan::Untagged,
            (_, Some(_)) => Vlan::Tag((vid & 0xfff) as u16),
        };
        let tenant = request.tenant;
        let dl_dst = Some(key.get(Field::DlDst));
        for action in packet.actions {
            if let Action::Output { port: PortNo::TABLE, max_len } = action {
                // Back through the table, looking as if it had come by the port; nothing else may be done with it.
                let alone = packet.actions.iter().count() == 1;
                let allowed = alone && matches!(entered, Entered::Port(_));
                if !allowed || !self.looks_like_entry_v10(network, entered, key, vlan) {
                    return Err(code::BAD_ACTION_EPERM);
                }
                let mut writer = Writer { network, entered, arrived: None, vlan, dl_dst, out };
                if let Some(hop) = hop {
                    writer.settle(Some(hop.tag.get()));
                }
                Action::Output { port: PortNo::TABLE, max_len }.write(out);
            }
        }
        if out.len() == PACKET_OUT_ACTIONS {
            let list = packet.actions;
            self.network_actions_v10(tenant, network, (entered, dl_dst), vlan, list, out)?;
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

    /// Whether a packet, sent to the table, would be taken for what the tenant says that it is.
    fn looks_like_entry_v10(
        &self,
        network: &Network,
        entered: Entered,
        key: &Key,
        vlan: Vlan,
    ) -> bool {
        let Entered::Port(number) = entered else { return false };
        match network.ports.get(&number).map(|port| &port.kind) {
            Some(PortKind::Edge { hosts, .. }) => {
                let source = key.get(Field::DlSrc);
                hosts.is_empty()
                    || hosts.iter().any(|host| crate::network::number_of(*host) == source)
            }
            Some(PortKind::Link { .. }) => {
                network.arrival_hop(number).is_some() && vlan != Vlan::Own
            }
            _ => false,
        }
    }
}
