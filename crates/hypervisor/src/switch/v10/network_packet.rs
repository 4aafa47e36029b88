//! PACKET_IN of a network, also for packets that the tenant sends to its own controllers.

use crate::buffers::Buffered;
use crate::ids::TenantIndex;
use crate::north::controllers::Asynchronous;
use crate::south::session::set_length;
use crate::switch::Switch;
use crate::time::Instant;
use alloc::vec::Vec;
use compile::Network;
use flowspace::frame::apply_v10;
use flowspace::{Key, port_to_v10};
use openflow::v10::{Action, PacketIn, PacketInReason, PacketOut, PortNo};
use openflow::{List, NO_BUFFER};

/// Bytes of a frame before its VLAN tag, and of the tag.
const ADDRESSES: usize = 12;
const TAG: usize = 4;

impl Switch {
    /// Delivers a packet of a network: with the virtual port, without the link's tag.
    pub(super) fn deliver_network_v10(
        &mut self,
        tenant: TenantIndex,
        network: &Network,
        packet: &PacketIn<'_>,
        key: &Key,
        now: Instant,
    ) {
        let Some(came) = network.ingress_of(key) else {
            self.reports.counters_mut().nobody += 1;
            return;
        };
        let state = &mut self.tenants[tenant];
        let missed = packet.reason == PacketInReason::NO_MATCH;
        if network.sends_no_packet_in(came, missed) {
            state.counters.unwanted += 1;
            return;
        }
        if !state.admit_packet_in(now) {
            state.counters.limited += 1;
            return;
        }
        self.report_network_v10(tenant, network, packet, key, came);
    }

    /// Sends a tenant a PACKET_IN for a packet that the tenant has sent to CONTROLLER with a PACKET_OUT, if the packet
    /// is not buffered. The rate of PACKET_INs applies. Weir does this itself: the switch would report the packet as
    /// received.
    pub(super) fn report_sent_v10(
        &mut self,
        tenant: TenantIndex,
        sent: &PacketOut<'_>,
        now: Instant,
    ) {
        if sent.buffer_id != NO_BUFFER || !sent.actions.iter().any(sends_packet_in) {
            return;
        }
        let state = &mut self.tenants[tenant];
        if state.admit_packet_in(now) {
            self.report_outputs_v10(tenant, sent.in_port, sent.data.to_vec(), sent.actions, now);
        } else {
            state.counters.limited += 1;
        }
    }

    /// Sends a PACKET_IN for each output to CONTROLLER in a list. The rate has admitted the first; the others have to
    /// be admitted, too.
    fn report_outputs_v10(
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
                    let state = &mut self.tenants[tenant];
                    if !core::mem::take(&mut is_first) && !state.admit_packet_in(now) {
                        state.counters.limited += 1;
                        continue;
                    }
                    let total_len = u16::try_from(frame.len()).unwrap_or(u16::MAX);
                    self.report_frame_v10(tenant, in_port, total_len, &frame);
                }
                // The switch sends PACKET_INs for the outputs behind an action of an experimenter.
                Action::Vendor { .. } => return,
                change => apply_v10(&mut frame, &change),
            }
        }
    }

    fn report_frame_v10(
        &mut self,
        tenant: TenantIndex,
        in_port: PortNo,
        total_len: u16,
        data: &[u8],
    ) {
        let state = &mut self.tenants[tenant];
        if state.controllers.is_empty() {
            state.counters.absent += 1;
            return;
        }
        let (buffer_id, reason) = (NO_BUFFER, PacketInReason::ACTION);
        self.notify(tenant, Asynchronous::PacketIn(reason.0), |out| {
            PacketIn { buffer_id, total_len, in_port, reason, data }.write_message(0, out)
        });
    }

    fn report_network_v10(
        &mut self,
        tenant: TenantIndex,
        network: &Network,
        packet: &PacketIn<'_>,
        key: &Key,
        came: u32,
    ) {
        let buffered = packet.buffer_id != NO_BUFFER;
        let missed = packet.reason == PacketInReason::NO_MATCH;
        let state = &mut self.tenants[tenant];
        if state.controllers.is_empty() {
            state.counters.absent += 1;
            return;
        }
        let tagged = network.is_link(came);
        let total_len = own_length(network, packet, came);
        let buffer_id = match buffered {
            // To release the packet, Weir needs its ingress port on the switch.
            true => {
                let (physical, length) = (packet.buffer_id, total_len);
                self.tenants.give_buffered(tenant, Buffered { physical, key: *key, length })
            }
            false => NO_BUFFER,
        };
        let miss_send_len = self.tenants[tenant].packets.miss_send_len();
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
}

/// The length of a packet for its tenant.
fn own_length(network: &Network, packet: &PacketIn<'_>, came: u32) -> u16 {
    packet.total_len.saturating_sub(if network.is_link(came) { TAG as u16 } else { 0 })
}

/// Whether an action sends a PACKET_IN.
fn sends_packet_in(action: Action<'_>) -> bool {
    matches!(action, Action::Output { port: PortNo::CONTROLLER, .. })
}
