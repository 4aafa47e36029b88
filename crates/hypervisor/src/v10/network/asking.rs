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
//! Which entry a packet has met is found out as the switch did: by what it looks like, among those that tell anybody. Of packets
//! that a list changes before it outputs them to CONTROLLER it is not known what they looked like: one that looks then as
//! if it had met an entry that asks is taken for such a one.

use super::packet::kept;
use super::{Sends, Writer};
use crate::ids::TenantIndex;
use crate::network::Network;
use crate::pending::Awaits;
use crate::queue::{Class, Item};
use crate::switch::Switch;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::vec::Vec;
use flowspace::Key;
use openflow::v10::{Action, PacketIn, PacketInReason, PacketOut, PortNo};
use openflow::{List, NO_BUFFER};

/// Tells the hypervisor of a packet, all of it.
pub(super) const ASK: Action<'static> =
    Action::Output { port: PortNo::CONTROLLER, max_len: u16::MAX };

impl Switch {
    /// The actions of the tenant's rule by which the switch asks what is to become of this packet, if it does.
    pub(super) fn asked_by(
        &self,
        tenant: TenantIndex,
        packet: &PacketIn<'_>,
        key: &Key,
    ) -> Option<Box<[u8]>> {
        if packet.reason != PacketInReason::ACTION {
            return None;
        }
        let (flow, tells) = self.tenants[tenant.0 as usize].flows.told_by(key)?;
        tells.asks().then(|| flow.actions.clone())
    }

    /// Sends a packet to the hosts that the switch could not tell from others', and says how often the rule wants the tenant to be
    /// told of it.
    pub(super) fn send_left(
        &mut self,
        tenant: TenantIndex,
        network: &Network,
        packet: &PacketIn<'_>,
        key: &Key,
        actions: &[u8],
        now: Instant,
    ) -> usize {
        let Ok(actions) = List::<Action<'_>>::parse(actions) else { return 0 };
        let mut left = Vec::new();
        let mut writer = Writer::new(network, kept(network, key), &mut left, Sends::Left);
        let written = self.network_actions_v10(tenant, &mut writer, actions);
        let is_kept = packet.buffer_id != NO_BUFFER;
        let is_whole = is_kept || packet.data.len() >= usize::from(packet.total_len);
        let sends = written.is_ok() && List::<Action<'_>>::parse(&left).is_ok_and(sends_any);
        let state = &mut self.tenants[tenant.0 as usize];
        if state.backlog() >= self.settings.tenant_backlog || sends && !is_whole {
            state.counters.unsent += 1;
        } else if sends || is_kept {
            // What the switch keeps goes out of it also where nothing is sent.
            let left = if sends { &left[..] } else { &[] };
            self.send_on(tenant, packet, left, now);
        }
        let tells =
            |action: &Action<'_>| matches!(action, Action::Output { port: PortNo::CONTROLLER, .. });
        actions.iter().filter(tells).count()
    }

    fn send_on(
        &mut self,
        tenant: TenantIndex,
        packet: &PacketIn<'_>,
        actions: &[u8],
        now: Instant,
    ) {
        let Ok(actions) = List::parse(actions) else { return };
        let PacketIn { buffer_id, in_port, .. } = *packet;
        let data = if buffer_id == NO_BUFFER { packet.data } else { &[] };
        let mut message = core::mem::take(&mut self.scratch);
        message.clear();
        let sent = PacketOut { buffer_id, in_port, actions, data };
        if sent.write_message(0, &mut message).is_ok() {
            let item = Item {
                origin: None,
                awaits: Awaits::Nothing,
                operation: None,
                class: Class::PacketOut,
                cost: 1,
                gate: 0,
                arrived: now,
            };
            self.submit(tenant, item, &message);
        }
        self.scratch = message;
    }
}

fn sends_any(actions: List<'_, Action<'_>>) -> bool {
    actions.iter().any(|action| matches!(action, Action::Output { .. }))
}
