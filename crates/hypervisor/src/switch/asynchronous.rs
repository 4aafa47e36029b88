//! Asynchronous messages that Weir asks the switch for (1.3, SET_ASYNC): all messages that any controller wants.
//!
//! Weir itself needs PORT_STATUS, FLOW_REMOVED and PACKET_IN of entries, so Weir always asks for these messages. A
//! PACKET_IN for an invalid TTL (INVALID_TTL) comes only if a controller wants it. Each controller gets the messages
//! that it wants, whatever other controllers want.

pub(super) mod asked;

use super::Switch;
use crate::north::Wanted;
use crate::south::pending::Awaits;
use crate::time::Instant;
use alloc::vec::Vec;
use openflow::v13::{AsyncConfig as Masks, Message, PacketInReason};

impl Switch {
    /// Some controller may want other messages from now on.
    pub(crate) fn want_others(&mut self, now: Instant) {
        self.datapath.asked().suspect();
        self.settle_asynchronous(now);
    }

    /// Asks the switch for the messages that are wanted now, if these differ.
    pub(super) fn settle_asynchronous(&mut self, now: Instant) {
        if !self.semantics().has_set_async || !self.datapath.asked().is_due() {
            return;
        }
        let invalid_ttl = self.is_wanted(PacketInReason::INVALID_TTL);
        if !self.datapath.asked().want(invalid_ttl) {
            return;
        }
        let Wanted { packet_in: [always, _], port_status: [ports, _], flow_removed: [removed, _] } =
            Wanted::default();
        let packets = always | u32::from(invalid_ttl) << PacketInReason::INVALID_TTL.0;
        let masks = Masks {
            packet_in_mask: [packets; 2],
            port_status_mask: [ports; 2],
            flow_removed_mask: [removed; 2],
        };
        let mut message = Vec::new();
        if Message::SetAsync(masks).write(0, &mut message).is_ok() {
            self.send_own(Awaits::Nothing, &message, now);
            self.session.send_barrier(now);
        }
    }

    fn is_wanted(&self, reason: PacketInReason) -> bool {
        let indices = self.tenants.iter().flat_map(|tenant| tenant.controllers.iter());
        let mut controllers = indices.filter_map(|index| self.controllers.get(*index));
        controllers.any(|it| Wanted::has(it.wanted.packet_in, it.role, reason.0))
    }
}
