//! Packets with two physical addresses that leave a big switch by the edge port of another member, of a network with many hosts.
//!
//! They come out of a tunnel, where nobody's rules are asked; an entry for each two hosts would be too many, so one asks the
//! hypervisor, which sends the packet out with the tenant's addresses.
//!
//! ```text
//!   tunnel, tag "both"  ──▶ CONTROLLER ─PACKET_IN─▶ restore_v10
//!   edge port           ◀──────────────PACKET_OUT── SET_NW_SRC, SET_NW_DST, STRIP_VLAN
//! ```

use super::asking::{is_whole, sent};
use super::egress::{self, Leaving};
use super::{Addresses, Packets, Sends, Vlan, Writer};
use crate::network::{Entered, WayOut, Wire};
use crate::switch::Switch;
use crate::time::Instant;
use crate::view::Restored;
use alloc::vec::Vec;
use flowspace::{Field, Key, port_to_v10};
use openflow::v10::PacketIn;

impl Switch {
    /// Sends out a packet that leaves a big switch here, with the tenant's addresses again, if the switch asks for that. Says whether
    /// it does.
    pub(in crate::v10) fn restore_v10(
        &mut self,
        packet: &PacketIn<'_>,
        key: &Key,
        now: Instant,
    ) -> bool {
        let Some(Restored { tenant, port, mapped }) = self.view.restored(key) else { return false };
        let Some(network) = self.tenants[tenant.0 as usize].network.clone() else { return false };
        let by = network.addresses.as_ref().map(|map| (map, mapped));
        let packets = Packets {
            entered: Entered::Nowhere,
            by_link: None,
            vlan: Vlan::Untagged,
            tag: Some((key.get(Field::VlanVid) & 0xfff) as u16),
            is_longer: true,
            dl_dst: Some(key.get(Field::DlDst)),
            dl_type: Some(key.get(Field::DlType)),
            addresses: Addresses::of_packet(key, by),
        };
        let mut actions = Vec::new();
        let mut writer = Writer::new(&network, packets, &mut actions, Sends::All);
        let is_restored = writer.restore().is_ok();
        writer.bear(None);
        let is_back = port_to_v10(port.get()) == Some(packet.in_port.0);
        let leaving = Leaving { is_longer: true, is_back };
        let ways = network.shared_edges().filter_map(|number| network.way_back(number));
        let shared = ways.filter(|way| way.wire == Wire::Plain).find(|way| way.port == port.get());
        let way = WayOut { port: port.get(), wire: Wire::Plain, hosts: &[] };
        let target = egress::target(&network, &shared.unwrap_or(way), leaving);
        let Some(target) = target else { return false };
        target.write(&mut actions);
        let state = &mut self.tenants[tenant.0 as usize];
        if !state.admit_packet_in(now) {
            state.counters.limited += 1;
        } else if self.may_send_on(tenant, is_whole(packet) && is_restored) {
            self.send_on(tenant, now, |out| sent(packet, &actions).write_message(0, out));
        }
        true
    }
}
