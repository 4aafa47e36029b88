//! Port descriptions of switches and of networks' ports, and messages of Weir that name ports.

use super::unreadable;
use crate::label::Label;
use crate::parts::written;
use crate::port_desc::PortChange;
use crate::south::features::{Connected, Features};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use compile::PhysicalPort;
use openflow::v13::{Action, FeaturesReply, PacketOut, Port, PortMod, PortNo, PortStatus};
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
    (port.port_no.0, PhysicalPort { description: write_port(port), no_flood: false })
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
        number: it.port_no.0,
        hw_addr: it.hw_addr,
        config: v10::PortConfig(it.config.0),
        mask: v10::PortConfig(it.mask.0),
        advertises: it.advertise.0 != 0,
    })
}

/// A port.
pub(crate) fn read_port(description: &[u8]) -> Option<Port> {
    Port::parse(description).ok()
}

/// The description of a port.
pub(crate) fn write_port(port: &Port) -> Vec<u8> {
    written(port)
}

/// A port description with a label. The current speed is the free bandwidth of the link, and the highest speed is the
/// link's capacity.
pub(crate) fn labelled(wire: Vec<u8>, label: Option<Label>) -> Vec<u8> {
    let (Some(label), Some(port)) = (label, read_port(&wire)) else { return wire };
    let capacity = Label { left: label.capacity, ..label };
    let (curr_speed, max_speed) = (label.left_kilobits(), capacity.left_kilobits());
    write_port(&Port { curr_speed, max_speed, ..port })
}

/// A PACKET_OUT of Weir.
pub(crate) fn packet_out(port: u32, frame: &[u8]) -> Option<Vec<u8>> {
    let actions = ListBuf::from([Action::Output { port: PortNo(port), max_len: 0 }]);
    let packet = PacketOut { actions: actions.as_list(), data: frame, ..Default::default() };
    let mut message = Vec::new();
    packet.write_message(0, &mut message).is_ok().then_some(message)
}
