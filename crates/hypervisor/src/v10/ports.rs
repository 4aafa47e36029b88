//! Port descriptions: those that a switch sends, and those of a network's ports; and what Weir sends by ports.

use super::unreadable;
use crate::label::{Label, UNKNOWN};
use crate::port_desc::{PortChange, PortState, speed_of};
use crate::south::features::{Connected, Features};
use alloc::vec::Vec;
use compile::PhysicalPort;
use fabric::embedding::VirtualPort;
use flowspace::{port_from_v10, port_to_v10};
use openflow::text::Name;
use openflow::v10::{
    self, Action, FeaturesReply, PacketOut, PhyPort, PortConfig, PortMod, PortNo, PortStatus,
};
use openflow::{DecodeError, ErrorCode, ListBuf};

/// A FEATURES_REPLY.
pub(crate) fn connected(body: &[u8]) -> Result<Connected, DecodeError> {
    let reply = FeaturesReply::parse(body)?;
    Ok(Connected {
        datapath_id: reply.datapath_id,
        features: Features {
            n_buffers: reply.n_buffers,
            n_tables: 1,
            capabilities: reply.capabilities.0,
            actions: reply.actions.0,
        },
        ports: reply.ports.iter().map(|port| known(&port)).collect(),
    })
}

/// The core's number of a physical port, and the description that Weir keeps.
pub(crate) fn known(port: &PhyPort) -> (u32, PhysicalPort) {
    let mut description = Vec::with_capacity(PhyPort::LEN);
    port.write(&mut description);
    let no_flood = port.config.contains(PortConfig::NO_FLOOD);
    (port_from_v10(port.port_no.0), PhysicalPort { description, no_flood })
}

/// The switch's report that a port has come, gone or changed.
pub(crate) fn port_status(body: &[u8]) -> Result<(u8, u32, PhysicalPort), ErrorCode> {
    let status = PortStatus::parse(body).map_err(unreadable)?;
    let (number, port) = known(&status.desc);
    Ok((status.reason.0, number, port))
}

/// A tenant's PORT_MOD.
pub(crate) fn port_mod(body: &[u8]) -> Result<PortChange, ErrorCode> {
    let it = PortMod::parse(body).map_err(unreadable)?;
    Ok(PortChange {
        number: port_from_v10(it.port_no.0),
        hw_addr: it.hw_addr,
        config: it.config,
        mask: it.mask,
        advertises: it.advertise.0 != 0,
    })
}

/// The same port after a PORT_MOD with these bits of its configuration.
pub(crate) fn configured(
    known: &PhysicalPort,
    change: impl Fn(u32) -> u32,
) -> Option<PhysicalPort> {
    let mut port = PhyPort::parse(&known.description).ok()?;
    port.config.0 = change(port.config.0);
    Some(self::known(&port).1)
}

/// The state of a port, read from its description. A port counts as down if its description cannot be read.
pub(crate) fn port_state(wire: &[u8]) -> PortState {
    PhyPort::parse(wire).map_or(PortState::default(), |port| PortState {
        is_up: !port.config.contains(PortConfig::PORT_DOWN)
            && !port.state.contains(v10::PortState::LINK_DOWN),
        speed: speed_of(port.curr.0 & 0x7f),
    })
}

/// The description of a network's port.
pub(crate) fn describe(number: u32, port: &VirtualPort, config: PortConfig) -> Vec<u8> {
    let mut out = Vec::new();
    PhyPort {
        port_no: PortNo(port_to_v10(number).unwrap_or(0)),
        hw_addr: port.mac,
        name: Name::new(port.name.as_str()),
        config,
        state: if port.up { v10::PortState(0) } else { v10::PortState::LINK_DOWN },
        curr: v10::PortFeatures(0),
        advertised: v10::PortFeatures(0),
        supported: v10::PortFeatures(0),
        peer: v10::PortFeatures(0),
    }
    .write(&mut out);
    out
}

/// A port description with a label. The free bandwidth of the link, in kilobits per second, follows the description.
pub(crate) fn labelled(mut wire: Vec<u8>, label: Option<Label>) -> Vec<u8> {
    let left = label.map_or(UNKNOWN, |label| label.left_kilobits());
    wire.extend_from_slice(&left.to_be_bytes());
    wire
}

/// A PACKET_OUT of Weir's own; `None` for a port that 1.0 cannot name.
pub(crate) fn packet_out(port: u32, frame: &[u8]) -> Option<Vec<u8>> {
    let port = PortNo(port_to_v10(port)?);
    let actions = ListBuf::from([Action::Output { port, max_len: 0 }]);
    let packet = PacketOut { actions: actions.as_list(), data: frame, ..Default::default() };
    let mut message = Vec::new();
    packet.write_message(0, &mut message).is_ok().then_some(message)
}
