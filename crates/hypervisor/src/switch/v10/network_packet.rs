//! PACKET_IN of a network, also for packets that the tenant sends to its own controllers.

use crate::buffers::Buffered;
use crate::ids::TenantIndex;
use crate::north::controllers::Asynchronous;
use crate::south::session::set_length;
use crate::switch::Switch;
use crate::time::Instant;
use flowspace::frame::apply_v10;
use flowspace::{Key, port_to_v10};
use openflow::NO_BUFFER;
use openflow::v10::{Action, PacketIn, PacketInReason, PacketOut, PortNo};

/// Bytes of a frame before its VLAN tag, and of the tag.
const ADDRESSES: usize = 12;
const TAG: usize = 4;

impl Switch {
    /// Delivers a packet of a network: with the virtual port, without the link's tag.
    pub(super) fn deliver_network_v10(
        &mut self,
        tenant: TenantIndex,
        packet: &PacketIn<'_>,
        key: &Key,
        now: Instant,
    ) {
        let state = &mut self.tenants[tenant];
        let network = state.network.as_deref();
        let Some((network, port)) = network.and_then(|it| Some((it, it.ingress_of(key)?))) else {
            self.reports.counters_mut().unclaimed += 1;
            return;
        };
        let is_tagged = network.is_link(port);
        let is_miss = packet.reason == PacketInReason::NO_MATCH;
        if network.sends_no_packet_in(port, is_miss) {
            state.counters.unwanted += 1;
            return;
        }
        if !state.takes_packet_in(now) {
            return;
        }
        let total_len = packet.total_len.saturating_sub(if is_tagged { TAG as u16 } else { 0 });
        let is_buffered = packet.buffer_id != NO_BUFFER;
        let buffer_id = if is_buffered {
            // To release the packet, Weir needs its ingress port on the switch.
            let (physical, length) = (packet.buffer_id, total_len);
            self.tenants.give_buffered(tenant, Buffered { physical, key: *key, length })
        } else {
            NO_BUFFER
        };
        let miss_send_len = self.tenants[tenant].packets.miss_send_len();
        let wanted = if is_buffered && is_miss { usize::from(miss_send_len) } else { usize::MAX };
        let (before, after) = match is_tagged {
            true => (
                packet.data.get(..ADDRESSES).unwrap_or(packet.data),
                packet.data.get(ADDRESSES + TAG..).unwrap_or_default(),
            ),
            false => (packet.data, &[][..]),
        };
        let after = after.get(..wanted.saturating_sub(before.len())).unwrap_or(after);
        let before = before.get(..wanted).unwrap_or(before);
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

    /// Sends a tenant a PACKET_IN for each output to CONTROLLER in a PACKET_OUT whose packet is not buffered. Weir does
    /// this itself: the switch would report the packet as received.
    pub(super) fn report_outputs_v10(
        &mut self,
        tenant: TenantIndex,
        sent: &PacketOut<'_>,
        now: Instant,
    ) {
        if sent.buffer_id != NO_BUFFER || !sent.actions.iter().any(sends_packet_in) {
            return;
        }
        let mut frame = sent.data.to_vec();
        for action in sent.actions {
            match action {
                Action::Output { port: PortNo::CONTROLLER, .. } => {
                    self.report_sent_v10(tenant, sent.in_port, PacketInReason::ACTION, &frame, now);
                }
                // The switch sends PACKET_INs for the outputs behind an action of an experimenter.
                Action::Vendor { .. } => return,
                change => apply_v10(&mut frame, &change),
            }
        }
    }

    /// Sends a tenant a PACKET_IN for a packet that the tenant has sent itself.
    pub(super) fn report_sent_v10(
        &mut self,
        tenant: TenantIndex,
        in_port: PortNo,
        reason: PacketInReason,
        data: &[u8],
        now: Instant,
    ) {
        if !self.tenants[tenant].takes_packet_in(now) {
            return;
        }
        let total_len = u16::try_from(data.len()).unwrap_or(u16::MAX);
        self.notify(tenant, Asynchronous::PacketIn(reason.0), |out| {
            let buffer_id = NO_BUFFER;
            PacketIn { buffer_id, total_len, in_port, reason, data }.write_message(0, out)
        });
    }
}

/// Whether an action sends a PACKET_IN.
fn sends_packet_in(action: Action<'_>) -> bool {
    matches!(action, Action::Output { port: PortNo::CONTROLLER, .. })
}
