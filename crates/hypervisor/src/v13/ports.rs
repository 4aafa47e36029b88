//! Port descriptions: those that a switch sends, and those of a network's ports; and what Weir sends by ports.

use super::unreadable;
use crate::label::Label;
use crate::port_desc::{PortChange, PortState, speed_of};
use crate::south::features::{Connected, Features};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use compile::PhysicalPort;
use fabric::embedding::VirtualPort;
use openflow::text::Name;
use openflow::v13::{
    self, Action, FeaturesReply, PacketOut, Port, PortConfig, PortMod, PortNo, PortStatus,
};
use openflow::{DecodeError, ErrorCode, ListBuf, v10};

/// A FEATURES_REPLY.
pub(crate) fn connected(body: &[u8]) -> Result<Connected, DecodeError> {
    let reply = FeaturesReply::parse(body)?;
    Ok(Connected {
        datapath_id: reply.datapath_id,
        features: Features {
            n_buffers: reply.n_buffers,
            n_tables: reply.n_tables,
            capabilities: reply.capabilities.0,
            actions: 0,
        },
        ports: BTreeMap::new(),
    })
}

/// The core's number of a physical port, and the description that Weir keeps.
pub(crate) fn known(port: &Port) -> (u32, PhysicalPort) {
    let mut description = Vec::with_capacity(Port::LEN);
    port.write(&mut description);
    (port.port_no.0, PhysicalPort { description, no_flood: false })
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
        number: it.port_no.0,
        hw_addr: it.hw_addr,
        config: v10::PortConfig(it.config.0),
        mask: v10::PortConfig(it.mask.0),
        advertises: it.advertise.0 != 0,
    })
}

/// The same port after a PORT_MOD with these bits of its configuration.
pub(crate) fn configured(
    known: &PhysicalPort,
    change: impl Fn(u32) -> u32,
) -> Option<PhysicalPort> {
    let mut port = Port::parse(&known.description).ok()?;
    port.config.0 = change(port.config.0);
    Some(self::known(&port).1)
}

/// The state of a port, read from its description. A port counts as down if its description cannot be read.
pub(crate) fn port_state(wire: &[u8]) -> PortState {
    Port::parse(wire).map_or(PortState::default(), |port| PortState {
        is_up: !port.config.contains(PortConfig::PORT_DOWN)
            && !port.state.contains(v13::PortState::LINK_DOWN),
        speed: match port.curr_speed {
            0 => speed_of(port.curr.0 & 0x3ff),
            speed => u64::from(speed),
        },
    })
}

/// The description of a network's port.
pub(crate) fn describe(number: u32, port: &VirtualPort, config: v10::PortConfig) -> Vec<u8> {
    let kilobits = port.speed.map_or(0, |speed| speed.kilobits_per_second());
    let speed = u32::try_from(kilobits).unwrap_or(u32::MAX);
    let state = match port.up {
        // Taken down, it is not live (specification section 7.2.1), though nothing is wrong with the link.
        true if config.contains(v10::PortConfig::PORT_DOWN) => v13::PortState(0),
        true => v13::PortState::LIVE,
        false => v13::PortState::LINK_DOWN,
    };
    let mut out = Vec::new();
    Port {
        port_no: PortNo(number),
        hw_addr: port.mac,
        name: Name::new(port.name.as_str()),
        config: PortConfig(config.0),
        state,
        curr: v13::PortFeatures(0),
        advertised: v13::PortFeatures(0),
        supported: v13::PortFeatures(0),
        peer: v13::PortFeatures(0),
        curr_speed: speed,
        max_speed: speed,
    }
    .write(&mut out);
    out
}

/// A port description with a label. The current speed is the free bandwidth of the link, and the highest speed is the link's capacity.
pub(crate) fn labelled(wire: Vec<u8>, label: Option<Label>) -> Vec<u8> {
    let (Some(label), Ok(port)) = (label, Port::parse(&wire)) else { return wire };
    let capacity = Label { left: label.capacity, ..label };
    let mut out = Vec::with_capacity(wire.len());
    let (curr_speed, max_speed) = (label.left_kilobits(), capacity.left_kilobits());
    Port { curr_speed, max_speed, ..port }.write(&mut out);
    out
}

/// A PACKET_OUT of Weir's own.
pub(crate) fn packet_out(port: u32, frame: &[u8]) -> Option<Vec<u8>> {
    let actions = ListBuf::from([Action::Output { port: PortNo(port), max_len: 0 }]);
    let packet = PacketOut { actions: actions.as_list(), data: frame, ..Default::default() };
    let mut message = Vec::new();
    packet.write_message(0, &mut message).is_ok().then_some(message)
}
