//! PACKET_IN and PACKET_OUT of a network: the port of entry is in the metadata, or the controller names it.

use super::wires::{Marking, Tags, Vlan};
use super::{Packets, said};
use crate::flows::check_length;
use crate::ids::TenantIndex;
use crate::network::{Entered, Entrance, Network};
use crate::switch::{Request, Switch, set_length};
use crate::v13::NO_PORT;
use crate::v13::flow_mod::through_table;
use crate::v13::port_in;
use alloc::vec::Vec;
use fabric::MacAddress;
use fabric::embedding::PortKind;
use flowspace::{Field, Key};
use openflow::error::v13 as code;
use openflow::v13::{Action, PacketOut, PortNo};
use openflow::{ErrorCode, List, NO_BUFFER, frame};

/// Bytes of a PACKET_OUT before its actions.
const PACKET_OUT_ACTIONS: usize = 24;

impl Switch {
    /// The virtual port by which a packet came, by its metadata or, before table 0 has written it, by its looks.
    pub(in crate::v13) fn network_entry_v13(
        &self,
        tenant: TenantIndex,
        metadata: u64,
        key: &Key,
    ) -> Option<u32> {
        let network = self.tenants[tenant.0 as usize].network.as_deref()?;
        let written = port_in(metadata);
        let in_port = key.get(Field::InPort) as u32;
        if network.ports.contains_key(&written) {
            Some(written)
        } else if written == NO_PORT && in_port == PortNo::CONTROLLER.0 {
            // The tenant has sent it into the tables, and they send it back.
            Some(in_port)
        } else {
            network.entry_of(key)
        }
    }

    /// Where a packet that a controller sends is to look as if it came from.
    pub(in crate::v13) fn network_entered_v13(
        &self,
        network: &Network,
        in_port: PortNo,
    ) -> Result<Entered, ErrorCode> {
        match in_port {
            PortNo::CONTROLLER | PortNo::ANY => Ok(Entered::Nowhere),
            PortNo(number) if network.ports.contains_key(&number) => Ok(Entered::Port(number)),
            _ => Err(code::BAD_REQUEST_BAD_PORT),
        }
    }

    /// The PACKET_OUT for the switch; `key` bears the headers, `physical` the switch's buffer id.
    #[allow(clippy::too_many_arguments)]
    pub(in crate::v13) fn build_network_packet_out_v13(
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
        let (entered, in_port) = entrance(network, entered);
        frame::set_in_port(out, in_port.0);
        let actions = packet.actions;
        self.network_packet_actions_v13(request.tenant, network, key, entered, actions, out)?;
        let actions_len =
            u16::try_from(out.len() - PACKET_OUT_ACTIONS).map_err(|_| code::BAD_ACTION_TOO_MANY)?;
        if let Some(field) = out.get_mut(16..18) {
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

    /// By which of the switch's ports, and by which actions, a packet that has come by a virtual port goes through the
    /// tables again as it came then.
    pub(in crate::v13) fn network_entering_v13(
        &self,
        tenant: TenantIndex,
        network: &Network,
        in_port: PortNo,
        key: &Key,
    ) -> Result<(PortNo, Vec<u8>), ErrorCode> {
        let entered = self.network_entered_v13(network, in_port)?;
        let (entered, in_port) = entrance(network, entered);
        let through = through_table();
        let mut actions = Vec::new();
        let list = through.as_list();
        self.network_packet_actions_v13(tenant, network, key, entered, list, &mut actions)?;
        Ok((in_port, actions))
    }

    fn network_packet_actions_v13(
        &self,
        tenant: TenantIndex,
        network: &Network,
        key: &Key,
        entered: Entered,
        actions: List<'_, Action<'_>>,
        out: &mut Vec<u8>,
    ) -> Result<(), ErrorCode> {
        let mut packets = Packets {
            entered,
            tags: Tags::new(Vlan::of_field(key.get(Field::VlanVid))),
            destination: Some(key.get(Field::DlDst)),
            defers: false,
        };
        let id = self.tenants[tenant.0 as usize].id;
        let mut source = address(key.get(Field::DlSrc));
        for action in actions {
            if let Action::Output { port: PortNo::TABLE, .. } = action {
                match entered.port() {
                    Some(number) => {
                        self.network_enter_v13(network, number, source, out)?;
                    }
                    None => {
                        let tag = self.entering_tag(id).ok_or(code::BAD_ACTION_BAD_OUT_PORT)?;
                        Marking::Put(tag).send_to(PortNo::TABLE, out);
                    }
                }
                continue;
            }
            if let Action::SetField(oxm) = action
                && oxm.basic() == Some(openflow::v13::OxmField::ETH_SRC)
            {
                source = oxm.number().and_then(address);
            }
            let done = self.network_action_v13(tenant, network, &mut packets, action, out);
            done.map_err(said)?;
            check_length(out)?;
        }
        Ok(())
    }
}

/// A packet as if it had come in by a port, whether it has or the controller says so, and wherever it has by another way; and
/// the switch's port.
fn entrance(network: &Network, entered: Entered) -> (Entered, PortNo) {
    let Some(port) = entered.port() else { return (entered, PortNo::CONTROLLER) };
    let at = physical_entry(network, port);
    (Entered::Way(Entrance { port, at }), PortNo(at))
}

/// The switch's port that stands for where a packet is said to have come from.
fn physical_entry(network: &Network, number: u32) -> u32 {
    let arrival = match network.ports.get(&number).map(|port| &port.kind) {
        Some(PortKind::Edge { port, .. }) => Some(port.get()),
        Some(PortKind::Link { .. }) => network.arrival_hop(number).map(|hop| hop.port.get()),
        _ => None,
    };
    arrival.unwrap_or(PortNo::CONTROLLER.0)
}

fn address(number: u128) -> Option<MacAddress> {
    let bytes = (number as u64).to_be_bytes();
    MacAddress::new([bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7]]).ok()
}
