//! The OpenFlow 1.0 part of the switch: executes messages, and encodes events as messages.

mod flow;
mod stats;

use flowspace::{port_from_v10, port_to_v10};
use openflow::error::v13 as code;
use openflow::nicira::{FLOW_MOD_TABLE_ID, NICIRA};
use openflow::text::Name;
use openflow::v10::{
    Capabilities, ConfigFlags, FeaturesReply, FlowRemoved, FlowRemovedReason, Message, MessageType,
    PacketIn, PacketInReason, PacketOut, PacketQueue, PhyPort, PortConfig, PortFeatures, PortMod,
    PortNo, PortReason, PortState, PortStatus, QueueGetConfigReply, SupportedActions, SwitchConfig,
    Vendor,
};
use openflow::{ErrorCode, List, ListBuf, NO_BUFFER, Version};

use crate::effects::{Effects, Event, ToController};
use crate::ports::Port;
use crate::request::Request;
use crate::session::{Session, SessionId};
use crate::state::State;
use crate::table::{Flow, seconds};

/// Whether a controller may send this message type after the handshake. Only then the switch
/// decodes the body.
pub(crate) fn is_for_switches(type_: u8) -> bool {
    let type_ = MessageType(type_);
    type_ == MessageType::ECHO_REPLY
        || type_.name().is_some()
            && !type_.is_reply()
            && !matches!(
                type_,
                MessageType::HELLO
                    | MessageType::PACKET_IN
                    | MessageType::FLOW_REMOVED
                    | MessageType::PORT_STATUS
            )
}

/// Executes a message. Errors have the codes of 1.3.
pub(crate) fn handle(
    switch: &mut State,
    request: &Request<'_>,
    effects: &mut Effects,
) -> Result<(), ErrorCode> {
    let (_, message) =
        Message::parse(request.frame).map_err(|fault| fault.openflow_error(Version::V1_0))?;
    let xid = request.header.xid;
    let id = request.session;
    match message {
        // These messages need no action of the switch.
        Message::Hello(_) | Message::Error(_) | Message::EchoReply(_) => {}
        Message::EchoRequest(data) => {
            switch.reply(id, |out| Message::EchoReply(data).write(xid, out));
        }
        Message::Vendor(Vendor { vendor: NICIRA, body }) if *body == FLOW_MOD_TABLE_ID => {
            if let Some(session) = switch.session(id) {
                session.names_tables = true;
            }
        }
        Message::Vendor(_) => return Err(code::BAD_REQUEST_BAD_EXPERIMENTER),
        Message::FeaturesRequest => features(switch, id, xid),
        Message::GetConfigRequest => {
            let config = SwitchConfig {
                flags: ConfigFlags(switch.datapath.fragments),
                miss_send_len: switch.session_ref(id).map_or(0, |session| session.miss_send_len),
            };
            switch.reply(id, |out| Message::GetConfigReply(config).write(xid, out));
        }
        Message::SetConfig(config) => {
            if let Some(session) = switch.session(id) {
                session.miss_send_len = config.miss_send_len;
            }
            switch.datapath.fragments = config.flags.0;
        }
        Message::PacketOut(packet) => packet_out(switch, request.now, &packet, effects)?,
        Message::FlowMod(body) => {
            let flow = {
                let names_tables = switch.session_ref(id).is_some_and(|it| it.names_tables);
                flow::request(&body, names_tables)?
            };
            switch.flow_mod(request, flow, effects)?;
        }
        Message::PortMod(body) => port_mod(switch, &body, effects)?,
        Message::StatsRequest(body) => stats::answer(switch, request, &body)?,
        Message::BarrierRequest => switch.reply(id, |out| Message::BarrierReply.write(xid, out)),
        Message::QueueGetConfigRequest(body) => queues(switch, id, xid, body.port)?,
        Message::FeaturesReply(_)
        | Message::GetConfigReply(_)
        | Message::PacketIn(_)
        | Message::FlowRemoved(_)
        | Message::PortStatus(_)
        | Message::StatsReply(_)
        | Message::BarrierReply
        | Message::QueueGetConfigReply(_)
        | Message::Unknown { .. } => return Err(code::BAD_REQUEST_BAD_TYPE),
    }
    Ok(())
}

/// Sends an event to a session. Returns whether the session gets the event.
pub(crate) fn announce(session: &mut Session, event: &Event, buffer: Option<u32>) -> bool {
    match event {
        Event::PacketIn(packet) => packet_in(session, packet, buffer),
        Event::FlowRemoved { flow, reason, at, .. } => {
            // 1.0 has no reason for the deletion of a group. Open vSwitch also sends DELETE.
            let reason = FlowRemovedReason(reason.code().min(FlowRemovedReason::DELETE.0));
            flow_removed(flow, reason, *at)
                .is_some_and(|body| Message::FlowRemoved(body).write(0, &mut session.out).is_ok())
        }
        Event::PortStatus { reason, port } => phy_port(port).is_some_and(|desc| {
            let body = PortStatus { reason: PortReason(reason.code()), desc };
            Message::PortStatus(body).write(0, &mut session.out).is_ok()
        }),
    }
}

fn packet_in(session: &mut Session, packet: &ToController, buffer: Option<u32>) -> bool {
    // 1.0 has no reason for an invalid TTL, and no number for some ports of 1.3.
    if packet.reason.code() > PacketInReason::ACTION.0 {
        return false;
    }
    let Some(in_port) = port_to_v10(packet.in_port) else { return false };
    let limit = packet.max_len.unwrap_or(session.miss_send_len);
    let kept = buffer.map_or(packet.frame.len(), |_| packet.frame.len().min(limit.into()));
    let body = PacketIn {
        buffer_id: buffer.unwrap_or(NO_BUFFER),
        total_len: packet.frame.len() as u16,
        in_port: PortNo(in_port),
        reason: PacketInReason(packet.reason.code()),
        data: packet.frame.get(..kept).unwrap_or(&packet.frame),
    };
    Message::PacketIn(body).write(0, &mut session.out).is_ok()
}

fn flow_removed(flow: &Flow, reason: FlowRemovedReason, at: u64) -> Option<FlowRemoved> {
    let (duration_sec, duration_nsec) = seconds(at.saturating_sub(flow.created));
    Some(FlowRemoved {
        match_: flow.match_.to_v10().ok()?,
        cookie: flow.cookie,
        priority: flow.priority,
        reason,
        duration_sec,
        duration_nsec,
        idle_timeout: flow.idle_timeout,
        packet_count: flow.packets,
        byte_count: flow.bytes,
    })
}

fn features(switch: &mut State, id: SessionId, xid: u32) {
    let ports: ListBuf<PhyPort> = switch.ports().filter_map(phy_port).collect();
    let body = FeaturesReply {
        datapath_id: switch.config.dpid,
        n_buffers: switch.datapath.buffers.capacity(),
        n_tables: switch.config.n_tables,
        capabilities: Capabilities::FLOW_STATS
            | Capabilities::TABLE_STATS
            | Capabilities::PORT_STATS
            | Capabilities::QUEUE_STATS
            | Capabilities::ARP_MATCH_IP,
        actions: SupportedActions(0xfff),
        ports: ports.as_list(),
    };
    switch.reply(id, |out| Message::FeaturesReply(body).write(xid, out));
}

/// Encodes a port for 1.0. Returns `None` if 1.0 has no such port number.
fn phy_port(port: &Port) -> Option<PhyPort> {
    let rate = match port.made.speed_kbps {
        ..100_000 => PortFeatures::RATE_10MB_FD,
        100_000..1_000_000 => PortFeatures::RATE_100MB_FD,
        1_000_000..10_000_000 => PortFeatures::RATE_1GB_FD,
        10_000_000.. => PortFeatures::RATE_10GB_FD,
    };
    Some(PhyPort {
        port_no: PortNo(port_to_v10(port.made.number)?),
        hw_addr: port.made.hw_addr,
        name: Name::new(&port.made.name),
        config: PortConfig(port.config),
        state: if port.link_up { PortState::NONE } else { PortState::LINK_DOWN },
        curr: rate | PortFeatures::COPPER,
        advertised: PortFeatures::NONE,
        supported: rate | PortFeatures::COPPER,
        peer: PortFeatures::NONE,
    })
}

fn packet_out(
    switch: &mut State,
    now: u64,
    packet: &PacketOut<'_>,
    effects: &mut Effects,
) -> Result<(), ErrorCode> {
    let actions = flow::actions(packet.actions)?;
    let (buffered_at, frame) = match packet.buffer_id {
        NO_BUFFER => (None, packet.data.to_vec()),
        id => {
            let (in_port, frame) = switch.datapath.take_buffer(id)?;
            (Some(in_port), frame)
        }
    };
    let in_port = match packet.in_port {
        PortNo::NONE => buffered_at.unwrap_or(port_from_v10(PortNo::NONE.0)),
        PortNo(number) => port_from_v10(number),
    };
    switch.datapath.packet_out(now, in_port, frame, &actions, effects);
    Ok(())
}

fn port_mod(switch: &mut State, body: &PortMod, effects: &mut Effects) -> Result<(), ErrorCode> {
    /// All configuration bits of 1.0 except those of spanning tree, which the switch does not run.
    const SETTABLE: u32 = 0b111_0101;
    let number = port_from_v10(body.port_no.0);
    switch.datapath.configure_port(
        number,
        body.hw_addr,
        body.config.0,
        body.mask.0 & SETTABLE,
        effects,
    )
}

fn queues(switch: &mut State, id: SessionId, xid: u32, port: PortNo) -> Result<(), ErrorCode> {
    let found = switch.port(port_from_v10(port.0)).ok_or(code::QUEUE_OP_FAILED_BAD_PORT)?;
    let queues: ListBuf<PacketQueue<'_>> = found
        .queues
        .keys()
        .map(|queue_id| PacketQueue { queue_id: *queue_id, properties: List::EMPTY })
        .collect();
    let body = QueueGetConfigReply { port, queues: queues.as_list() };
    switch.reply(id, |out| Message::QueueGetConfigReply(body).write(xid, out));
    Ok(())
}
