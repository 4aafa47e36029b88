//! Packets to which a switch of 1.0 has given physical addresses, and which come by a link to one of 1.3.
//!
//! Table 0 gives them their own back, by an entry for each that they may bear. Of a network with many hosts that would be too many
//! where both addresses are physical; there an entry asks the hypervisor, which sends the packet back into table 0 as one that
//! has come by the link with the tenant's addresses.
//!
//! ```text
//!   link, tag "both"  ──▶ CONTROLLER ─PACKET_IN─▶ restore_v13
//!   link, tag         ◀── TABLE ◀──PACKET_OUT──── SET_FIELD ipv4_src, ipv4_dst, vlan_vid
//! ```

use super::set;
use super::wires::set_vlan;
use crate::ids::TenantIndex;
use crate::switch::Switch;
use crate::time::Instant;
use alloc::vec::Vec;
use fabric::embedding::{AddressMap, Frames, Mapped, Side};
use flowspace::{Field, Key, Match};
use openflow::v13::{Action, OxmField, PacketIn, PacketOut, PortNo};
use openflow::{List, NO_BUFFER};

const IPV4: u128 = 0x0800;
/// Both addresses of a packet: which it is, and by what it is matched and written.
const ADDRESSES: [(Side, Field, OxmField); 2] = [
    (Side::Source, Field::NwSrc, OxmField::IPV4_SRC),
    (Side::Destination, Field::NwDst, OxmField::IPV4_DST),
];

/// For packets that bear physical addresses, these, by what they bear: the actions that give them the tenant's back.
pub(in crate::v13) fn restorations(
    map: &AddressMap,
    mapped: Mapped,
) -> impl Iterator<Item = (Match, Vec<u8>)> + '_ {
    map.borne(mapped).map(|own| {
        let (mut borne, mut actions) = (Match::exact(Field::DlType, IPV4), Vec::new());
        for ((_, field, oxm), own) in ADDRESSES.into_iter().zip(own) {
            if let Some(own) = own {
                borne = borne.with(field, map.physical(own).into());
                set(oxm, own.into(), &mut actions);
            }
        }
        (borne, actions)
    })
}

impl Switch {
    /// Sends a packet that has come by a link back into table 0, with the tenant's addresses, if the switch asks for that. Says
    /// whether it does.
    pub(in crate::v13) fn restore_v13(
        &mut self,
        tenant: TenantIndex,
        packet: &PacketIn<'_>,
        key: &Key,
        now: Instant,
    ) -> bool {
        let Some(actions) = self.restoration(tenant, key) else { return false };
        let PacketIn { buffer_id, total_len, data, .. } = *packet;
        let is_kept = buffer_id != NO_BUFFER;
        let is_whole = is_kept || data.len() >= usize::from(total_len);
        let state = &mut self.tenants[tenant.0 as usize];
        if !state.admit_packet_in(now) {
            state.counters.limited += 1;
        } else if self.may_send_on(tenant, is_whole) {
            let again = PacketOut {
                buffer_id,
                in_port: PortNo(key.get(Field::InPort) as u32),
                actions: List::parse(&actions).unwrap_or_default(),
                data: if is_kept { &[] } else { data },
            };
            self.send_on(tenant, now, |out| again.write_message(0, out));
        }
        true
    }

    /// What makes the packet one that has come by the same link with the tenant's addresses; `None` if entries do that, or there is
    /// nothing to be done.
    fn restoration(&self, tenant: TenantIndex, key: &Key) -> Option<Vec<u8>> {
        let network = self.tenants[tenant.0 as usize].network.as_deref()?;
        let map = network.addresses.as_ref()?;
        let came = network.entry_of(key)?;
        let Frames::Mapped(mapped) = came.frames else { return None };
        if map.is_restored_by_entries(mapped) {
            return None;
        }
        let at = key.get(Field::InPort) as u32;
        let tag = network.arrival_tag(came.port, at, Frames::Untagged)?;
        let mut actions = Vec::new();
        for (side, field, oxm) in ADDRESSES {
            if mapped.has(side) {
                set(oxm, map.own(key.get(field) as u32).into(), &mut actions);
            }
        }
        set_vlan(tag.get(), &mut actions);
        Action::Output { port: PortNo::TABLE, max_len: 0 }.write(&mut actions);
        Some(actions)
    }
}
