//! Port descriptions of switches and of networks' ports, and messages of Weir that name ports.

use super::unreadable;
use crate::label::{Label, UNKNOWN};
use crate::parts::written;
use crate::port_desc::PortChange;
use crate::south::features::{Connected, Features};
use alloc::vec::Vec;
use compile::PhysicalPort;
use flowspace::{port_from_v10, port_to_v10};
use openflow::v10::{
    self, Action, FeaturesReply, PacketOut, PhyPort, PortConfig, PortMod, PortNo, PortState,
    PortStatus,
};
use openflow::v13::{self, Port, PortFeatures};
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
    let description = written(port);
    let no_flood = port.config.contains(PortConfig::NO_FLOOD);
    (port_from_v10(port.port_no.0), PhysicalPort { description, no_flood })
}

/// The switch's report that a port was added, removed or changed.
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

/// A port in the form of 1.3, with the bits of 1.0.
pub(crate) fn read_port(description: &[u8]) -> Option<Port> {
    let it = PhyPort::parse(description).ok()?;
    Some(Port {
        port_no: v13::PortNo(port_from_v10(it.port_no.0)),
        hw_addr: it.hw_addr,
        name: it.name,
        config: v13::PortConfig(it.config.0),
        state: v13::PortState(it.state.0),
        curr: PortFeatures(it.curr.0),
        advertised: PortFeatures(it.advertised.0),
        supported: PortFeatures(it.supported.0),
        peer: PortFeatures(it.peer.0),
        curr_speed: 0,
        max_speed: 0,
    })
}

/// The description of a port that has the bits of 1.0.
pub(crate) fn write_port(it: &Port) -> Vec<u8> {
    written(&PhyPort {
        port_no: PortNo(port_to_v10(it.port_no.0).unwrap_or(0)),
        hw_addr: it.hw_addr,
        name: it.name,
        config: PortConfig(it.config.0),
        state: PortState(it.state.0),
        curr: v10::PortFeatures(it.curr.0),
        advertised: v10::PortFeatures(it.advertised.0),
        supported: v10::PortFeatures(it.supported.0),
        peer: v10::PortFeatures(it.peer.0),
    })
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
