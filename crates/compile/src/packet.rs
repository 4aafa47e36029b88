//! PACKET_OUT in a network, and the virtual ingress port of a PACKET_IN.

use crate::class::{PacketClass, Vlan};
use crate::context::Context;
use crate::list::{ListWriter, ToController};
use crate::metadata;
use crate::network::{Ingress, IngressPort, Network, Stop, number_of};
use crate::refusal::{Reason, Refused};
use crate::wire::{Action, Actions, Verb};
use alloc::vec::Vec;
use fabric::MacAddress;
use fabric::embedding::PortKind;
use flowspace::{Field, Key};
use openflow::error::v13 as code;
use openflow::v13::PortNo;

/// A packet that a controller sends.
#[derive(Clone, Copy, Debug)]
pub struct Sent<'a> {
    /// The headers of the packet. For a packet in the buffer of a 1.0 switch: the headers at the ingress, with the
    /// label.
    pub key: &'a Key,
    /// The virtual ingress port of a buffered packet, or the ingress port that the controller names.
    pub in_port: Option<u32>,
    /// Whether the packet is in the switch's buffer.
    pub is_buffered: bool,
}

/// Appends the actions of a PACKET_OUT, and returns the physical ingress port for the PACKET_OUT: ANY if there is none.
pub fn compile(
    cx: &Context<'_>,
    network: &Network,
    sent: &Sent<'_>,
    actions: Actions<'_>,
    out: &mut Vec<u8>,
) -> Result<PortNo, Refused> {
    match cx.target.has_metadata() {
        true => compile_by_metadata(cx, network, sent, actions, out),
        false => compile_by_headers(cx, network, sent, actions, out),
    }
}

/// The virtual ingress port of a packet, from the metadata, or from the headers if table 0 has not written the metadata
/// yet (1.3).
pub fn ingress_by_metadata(network: &Network, metadata: u64, key: &Key) -> Option<u32> {
    let written = metadata::port(metadata);
    let in_port = key.get(Field::InPort) as u32;
    if network.has_port(written) {
        Some(written)
    } else if written == metadata::NO_PORT && in_port == PortNo::CONTROLLER.0 {
        // The tenant sent the packet into the tables, and the tables send the packet to the controller.
        Some(in_port)
    } else {
        network.ingress_of(key)
    }
}

/// 1.3: the packet gets the label of packets from its ingress port, and then goes through the tables like any other
/// packet.
fn compile_by_metadata(
    cx: &Context<'_>,
    network: &Network,
    sent: &Sent<'_>,
    actions: Actions<'_>,
    out: &mut Vec<u8>,
) -> Result<PortNo, Refused> {
    let (ingress, in_port) = match sent.in_port.map_or(PortNo::ANY, PortNo) {
        PortNo::CONTROLLER | PortNo::ANY => (Ingress::Controller, PortNo::CONTROLLER),
        PortNo(port) if network.has_port(port) => {
            // A packet that entered by another physical port is treated like a packet from the active physical port.
            let at = ingress_at(network, port).unwrap_or(PortNo::CONTROLLER.0);
            (Ingress::At(IngressPort { port, at }), PortNo(at))
        }
        PortNo(port) => return Err(Reason::InPort.of(port, code::BAD_REQUEST_BAD_PORT)),
    };
    let class = PacketClass::of_packet(ingress, sent.key);
    let mut source = sent.key.get(Field::DlSrc);
    let mut list = ListWriter::new(cx, network, class, out);
    // 1.0 has no metadata.
    let Actions::V13(actions) = actions else { return Err(code::BAD_REQUEST_BAD_TYPE.into()) };
    for action in actions {
        if let Verb::Output { port: PortNo::TABLE, .. } = action.verb() {
            let label = match ingress.port() {
                Some(number) => label_to_enter(network, number, source)?,
                None => {
                    let label = metadata::controller_label(cx.labels, cx.id);
                    let none = Reason::NoControllerLabel.with(code::BAD_ACTION_BAD_OUT_PORT);
                    Some(label.ok_or(none)?)
                }
            };
            list.enter_tables(label)?;
            continue;
        }
        if let Some(written) = action.source() {
            source = written;
        }
        list.action(&action).map_err(Stop::refusal)?;
    }
    Ok(in_port)
}

/// The label with which a packet of this source address enters the tables like a packet from the port; `None`: no
/// label.
fn label_to_enter(network: &Network, number: u32, source: u128) -> Result<Option<u16>, Refused> {
    let port = network.ports().get(&number).ok_or(code::BAD_REQUEST_BAD_PORT)?;
    let no_entrance = Reason::NoEntrance.of(number, code::BAD_ACTION_BAD_OUT_PORT);
    match &port.kind {
        PortKind::Edge { hosts, .. } => {
            let is_known = may_come_from(source, hosts);
            is_known.then_some(None).ok_or(Reason::ForeignSource.with(code::BAD_ACTION_EPERM))
        }
        PortKind::Link { .. } => {
            let hop = network.hop_received(number).ok_or(no_entrance)?;
            Ok(Some(hop.tag.get()))
        }
        PortKind::Remote { .. } => Err(no_entrance),
    }
}

/// Whether packets with this source address enter by an edge port with these hosts; a whole edge port has no hosts.
fn may_come_from(source: u128, hosts: &[MacAddress]) -> bool {
    hosts.is_empty() || hosts.iter().any(|host| number_of(*host) == source)
}

/// 1.0: the list is written for the ingress port, because only the packet's headers identify the ingress port.
fn compile_by_headers(
    cx: &Context<'_>,
    network: &Network,
    sent: &Sent<'_>,
    actions: Actions<'_>,
    out: &mut Vec<u8>,
) -> Result<PortNo, Refused> {
    let class = match sent.is_buffered {
        true => class_buffered(network, sent.key),
        false => class_sent(network, sent.key, sent.in_port),
    };
    let in_port = match class.ingress {
        Ingress::At(IngressPort { at, .. }) => PortNo(at),
        _ => PortNo::ANY,
    };
    // 1.3 has metadata.
    let Actions::V10(actions) = actions else { return Err(code::BAD_REQUEST_BAD_TYPE.into()) };
    let to_table = actions.iter().find_map(|action| match action.verb() {
        Verb::Output { port: PortNo::TABLE, max_len } => Some(max_len),
        _ => None,
    });
    if let Some(max_len) = to_table {
        // The packet goes through the table like a packet from its ingress port; other actions are not allowed.
        if actions.iter().count() != 1 {
            return Err(Reason::TableNotAlone.with(code::BAD_ACTION_EPERM));
        }
        let label = label_to_look_like(network, &class, sent.key);
        let label = label.ok_or(Reason::UnlikeItsPort.with(code::BAD_ACTION_EPERM))?;
        ListWriter::new(cx, network, class, out).carry(label);
        cx.target.wire.output(PortNo::TABLE, max_len, out)?;
        return Ok(in_port);
    }
    let controller = match sent.is_buffered {
        true => ToController::Switch,
        false => ToController::Weir,
    };
    let mut list = ListWriter::new(cx, network, class, out).informing(controller);
    actions.iter().try_for_each(|action| list.action(&action)).map_err(Stop::refusal)?;
    Ok(in_port)
}

/// The class of a packet that the controller sends: the headers show label and tag.
fn class_sent(network: &Network, key: &Key, in_port: Option<u32>) -> PacketClass {
    let ingress = in_port.map_or(Ingress::Controller, |port| {
        let hop = network.hop_received(port).map(|hop| hop.port.get());
        let at = hop.or_else(|| network.physical(port)).unwrap_or(PortNo::ANY.0);
        Ingress::At(IngressPort { port, at })
    });
    PacketClass::of_packet(ingress, key)
}

/// The class of a packet in the switch's buffer: the packet has the label with which it entered.
fn class_buffered(network: &Network, key: &Key) -> PacketClass {
    let Some(port) = network.ingress_of(key) else { return class_sent(network, key, None) };
    if !network.is_link(port) {
        let at = network.physical(port).unwrap_or(PortNo::ANY.0);
        return PacketClass::of_packet(Ingress::At(IngressPort { port, at }), key);
    }
    let at = key.get(Field::InPort) as u32;
    let label = (key.get(Field::VlanVid) & 0xfff) as u16;
    PacketClass::of_packet(Ingress::At(IngressPort { port, at }), key).labelled(label)
}

/// The label with which the table treats a packet as a packet from its ingress port; `None` if this is impossible.
fn label_to_look_like(network: &Network, class: &PacketClass, key: &Key) -> Option<Option<u16>> {
    let Ingress::At(IngressPort { port, at }) = class.ingress else { return None };
    match &network.ports().get(&port)?.kind {
        PortKind::Edge { hosts, .. } => may_come_from(key.get(Field::DlSrc), hosts).then_some(None),
        PortKind::Link { .. } => {
            let label = network.label_received(port, at)?;
            (class.vlan() == Vlan::Untagged).then_some(Some(label.get()))
        }
        PortKind::Remote { .. } => None,
    }
}

/// The physical ingress port for the ingress port that the controller names.
fn ingress_at(network: &Network, number: u32) -> Option<u32> {
    match network.ports().get(&number).map(|port| &port.kind) {
        Some(PortKind::Edge { port, .. }) => Some(port.get()),
        Some(PortKind::Link { .. }) => network.hop_received(number).map(|hop| hop.port.get()),
        _ => None,
    }
}
