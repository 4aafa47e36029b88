//! Rules that send by an edge port which tenants share, and do not say for whom the packets are.
//!
//! There a packet may only go to the tenant's own hosts, so what is done with it depends on its destination, which one entry
//! cannot ask; and of several in the one table of 1.0, without masks, none means "any other address". So the switch does what it
//! can, and tells the hypervisor of the packet, as it came; which knows the destination, and sends the packet there.
//!
//! ```text
//!   the rule    output:1,output:7        7 is shared, red's hosts there are 7a and 7b
//!   an entry    CONTROLLER,output:1
//!                 │ PACKET_IN            to 7a or 7b: output
//!                 ▼                      for many:    a copy for each of the two
//!               asked_by, send_left      else:        nothing
//!                 │
//!                 ▼
//!               PACKET_OUT               by red's turn; by red's rates of either
//! ```
//!
//! Which entry a packet has met is found out as the switch did: by what it looks like, among those that tell anybody. So a switch
//! on which there may be such entries tells of no packet that the tenant has changed: the hypervisor is told of it as it came, and
//! tells the tenant what has become of it. What experimenters' actions make of packets it does not know; those it leaves to the
//! switch.

use super::packet::kept;
use super::{Sends, Writer};
use crate::flows::Tells;
use crate::ids::TenantIndex;
use crate::network::Network;
use crate::switch::Switch;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::vec::Vec;
use flowspace::Key;
use openflow::v10::{Action, PacketIn, PacketInReason, PacketOut, PortNo};
use openflow::{List, NO_BUFFER};

/// Tells the hypervisor of a packet, all of it.
pub(in crate::v10) const ASK: Action<'static> =
    Action::Output { port: PortNo::CONTROLLER, max_len: u16::MAX };

/// Most actions of a rule that asks: the hypervisor goes through them for each packet, in time that is everybody's.
pub(in crate::v10) const MOST_ASKED: usize = 64;

impl Switch {
    /// The actions of the tenant's rule by which the switch asks what is to become of this packet, if it does, and how much of
    /// them is left to do.
    pub(super) fn asked_by(
        &self,
        tenant: TenantIndex,
        packet: &PacketIn<'_>,
        key: &Key,
    ) -> Option<(Box<[u8]>, Tells)> {
        if packet.reason != PacketInReason::ACTION {
            return None;
        }
        let (flow, tells) = self.tenants[tenant.0 as usize].flows.told_by(key)?;
        tells.asks().then(|| (flow.actions.clone(), tells))
    }

    /// Does with a packet what the switch could not.
    pub(super) fn send_left(
        &mut self,
        tenant: TenantIndex,
        network: &Network,
        packet: &PacketIn<'_>,
        key: &Key,
        (actions, tells): (List<'_, Action<'_>>, Tells),
        now: Instant,
    ) {
        let sends = match tells {
            Tells::Hypervisor => Some(Sends::Left),
            Tells::HypervisorForAll => Some(Sends::Alone),
            Tells::TenantByHypervisor | Tells::Tenant | Tells::Nobody => None,
        };
        let mut left = Vec::new();
        if let Some(sends) = sends {
            let mut writer = Writer::new(network, kept(network, key), &mut left, sends);
            if self.network_actions_v10(tenant, &mut writer, actions).is_err() {
                left.clear();
            }
        }
        let acts = |action| matches!(action, Action::Output { .. } | Action::Vendor { .. });
        if !List::<Action<'_>>::parse(&left).is_ok_and(|left| left.iter().any(acts)) {
            left.clear();
        }
        // What the switch keeps goes out of it also where nothing is sent.
        let goes = !left.is_empty() || packet.buffer_id != NO_BUFFER;
        if goes && self.may_send_on(tenant, is_whole(packet)) {
            self.send_on(tenant, now, |out| sent(packet, &left).write_message(0, out));
        }
    }
}

/// Whether all of a packet is there, here or on the switch.
pub(super) fn is_whole(packet: &PacketIn<'_>) -> bool {
    packet.buffer_id != NO_BUFFER || packet.data.len() >= usize::from(packet.total_len)
}

/// What sends a packet on with these actions.
pub(super) fn sent<'a>(packet: &PacketIn<'a>, actions: &'a [u8]) -> PacketOut<'a> {
    let PacketIn { buffer_id, in_port, .. } = *packet;
    let data = if buffer_id == NO_BUFFER { packet.data } else { &[] };
    PacketOut { buffer_id, in_port, actions: List::parse(actions).unwrap_or_default(), data }
}
