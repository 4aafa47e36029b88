//! The OpenFlow 1.3 part of the switch: executes messages, and encodes events as messages.

mod actions;
mod features;
mod flow;
mod group;
mod role;
mod shape;
mod stats;
mod wire;

use openflow::error::v13 as code;
use openflow::v13::{
    Capabilities, ConfigFlags, FeaturesReply, FlowRemoved, FlowRemovedReason, MatchBuf, Message,
    MessageType, OxmField, PacketIn, PacketInReason, PacketOut, PacketQueue, PortConfig, PortMod,
    PortNo, PortReason, PortStatus, QueueGetConfigReply, SwitchConfig, TABLE_ALL, TableMod,
};
use openflow::{ErrorCode, List, ListBuf, NO_BUFFER, Version};

use crate::action::port;
use crate::effects::{Effects, Event, ToController};
use crate::request::Request;
use crate::session::{Role, Session, SessionId};
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

/// Executes a message.
pub(crate) fn handle(
    switch: &mut State,
    request: &Request<'_>,
    effects: &mut Effects,
) -> Result<(), ErrorCode> {
    let (_, message) =
        Message::parse(request.frame).map_err(|fault| fault.openflow_error(Version::V1_3))?;
    let id = request.session;
    if MessageType(request.header.type_).changes_the_switch()
        && switch.session_ref(id).is_some_and(|session| session.role == Role::Slave)
    {
        return Err(code::BAD_REQUEST_IS_SLAVE);
    }
    let answer = |switch: &mut State, message: Message<'_>| {
        switch.reply(id, |out| message.write(request.header.xid, out));
    };
    match message {
        // These messages need no action of the switch.
        Message::Hello(_) | Message::Error(_) | Message::EchoReply(_) => {}
        Message::EchoRequest(data) => answer(switch, Message::EchoReply(data)),
        Message::Experimenter(_) => return Err(code::BAD_REQUEST_BAD_EXPERIMENTER),
        Message::FeaturesRequest => {
            let body = describe(switch);
            answer(switch, Message::FeaturesReply(body));
        }
        Message::GetConfigRequest => {
            let config = SwitchConfig {
                flags: ConfigFlags(switch.datapath.fragments),
                miss_send_len: switch.session_ref(id).map_or(0, |session| session.miss_send_len),
            };
            answer(switch, Message::GetConfigReply(config));
        }
        Message::SetConfig(config) => set_config(switch, id, config)?,
        Message::PacketOut(packet) => packet_out(switch, request.now, &packet, effects)?,
        Message::FlowMod(body) => {
            let flow = flow::request(switch, &body)?;
            switch.flow_mod(request, flow, effects)?;
        }
        Message::GroupMod(body) => group::change(switch, request.now, &body, effects)?,
        Message::MeterMod(body) => group::change_meter(switch, request.now, &body, effects)?,
        Message::PortMod(body) => port_mod(switch, &body, effects)?,
        Message::TableMod(body) => table_mod(switch, &body)?,
        Message::MultipartRequest(body) => stats::answer(switch, request, &body)?,
        Message::BarrierRequest => answer(switch, Message::BarrierReply),
        Message::QueueGetConfigRequest(body) => {
            queues(switch, id, request.header.xid, body.port)?;
        }
        Message::RoleRequest(body) => {
            let body = role::change(switch, id, body)?;
            answer(switch, Message::RoleReply(body));
        }
        Message::GetAsyncRequest => {
            let body = role::async_config(switch, id);
            answer(switch, Message::GetAsyncReply(body));
        }
        Message::SetAsync(body) => role::set_async_config(switch, id, body),
        Message::FeaturesReply(_)
        | Message::GetConfigReply(_)
        | Message::PacketIn(_)
        | Message::FlowRemoved(_)
        | Message::PortStatus(_)
        | Message::MultipartReply(_)
        | Message::BarrierReply
        | Message::QueueGetConfigReply(_)
        | Message::RoleReply(_)
        | Message::GetAsyncReply(_)
        | Message::Unknown { .. } => return Err(code::BAD_REQUEST_BAD_TYPE),
    }
    Ok(())
}

/// Sends an event to a session, if the session wants the event. Returns whether the event was sent.
pub(crate) fn announce(session: &mut Session, event: &Event, buffer: Option<u32>) -> bool {
    match event {
        Event::PacketIn(packet) => {
            !packet.implicit_miss
                && session.wants(session.masks.packet_in, packet.reason.code())
                && packet_in(session, packet, buffer)
        }
        Event::FlowRemoved { table, flow, reason, at } => {
            session.wants(session.masks.flow_removed, reason.code())
                && flow_removed(session, *table, flow, reason.code(), *at)
        }
        Event::PortStatus { reason, port } => {
            let body = PortStatus { reason: PortReason(reason.code()), desc: wire::port(port) };
            session.wants(session.masks.port_status, reason.code())
                && Message::PortStatus(body).write(0, &mut session.out).is_ok()
        }
    }
}

fn packet_in(session: &mut Session, packet: &ToController, buffer: Option<u32>) -> bool {
    let limit = packet.max_len.unwrap_or(session.miss_send_len);
    let kept = buffer.map_or(packet.frame.len(), |_| packet.frame.len().min(limit.into()));
    let mut match_ = MatchBuf::new();
    match_.exact(OxmField::IN_PORT, packet.in_port.into());
    if packet.metadata != 0 {
        match_.exact(OxmField::METADATA, packet.metadata.into());
    }
    if packet.tunnel != 0 {
        match_.exact(OxmField::TUNNEL_ID, packet.tunnel.into());
    }
    let body = PacketIn {
        buffer_id: buffer.unwrap_or(NO_BUFFER),
        total_len: packet.frame.len() as u16,
        reason: PacketInReason(packet.reason.code()),
        table_id: packet.table,
        cookie: packet.cookie,
        match_: match_.as_match(),
        data: packet.frame.get(..kept).unwrap_or(&packet.frame),
    };
    Message::PacketIn(body).write(0, &mut session.out).is_ok()
}

fn flow_removed(session: &mut Session, table: u8, flow: &Flow, reason: u8, at: u64) -> bool {
    let (duration_sec, duration_nsec) = seconds(at.saturating_sub(flow.created));
    let Some(match_) = wire::match_(&flow.match_) else { return false };
    let body = FlowRemoved {
        cookie: flow.cookie,
        priority: flow.priority,
        reason: FlowRemovedReason(reason),
        table_id: table,
        duration_sec,
        duration_nsec,
        idle_timeout: flow.idle_timeout,
        hard_timeout: flow.hard_timeout,
        packet_count: flow.packets,
        byte_count: flow.bytes,
        match_: match_.as_match(),
    };
    Message::FlowRemoved(body).write(0, &mut session.out).is_ok()
}

fn describe(switch: &State) -> FeaturesReply {
    FeaturesReply {
        datapath_id: switch.config.dpid,
        n_buffers: switch.datapath.buffers.capacity(),
        n_tables: switch.config.n_tables,
        auxiliary_id: 0,
        capabilities: Capabilities::FLOW_STATS
            | Capabilities::TABLE_STATS
            | Capabilities::PORT_STATS
            | Capabilities::GROUP_STATS
            | Capabilities::QUEUE_STATS,
        reserved: 0,
    }
}

fn set_config(switch: &mut State, id: SessionId, config: SwitchConfig) -> Result<(), ErrorCode> {
    if !ConfigFlags::FRAG_MASK.contains(config.flags) || config.flags == ConfigFlags::FRAG_MASK {
        return Err(code::SWITCH_CONFIG_FAILED_BAD_FLAGS);
    }
    if let Some(session) = switch.session(id) {
        session.miss_send_len = config.miss_send_len;
    }
    switch.datapath.fragments = config.flags.0;
    Ok(())
}

fn packet_out(
    switch: &mut State,
    now: u64,
    packet: &PacketOut<'_>,
    effects: &mut Effects,
) -> Result<(), ErrorCode> {
    let actions = actions::read(packet.actions)?;
    switch.datapath.check_groups(actions.iter())?;
    let (buffered_at, frame) = match packet.buffer_id {
        NO_BUFFER => (None, packet.data.to_vec()),
        id => {
            let (in_port, frame) = switch.datapath.take_buffer(id)?;
            (Some(in_port), frame)
        }
    };
    let in_port = match packet.in_port.0 {
        port::ANY | port::CONTROLLER => buffered_at.unwrap_or(packet.in_port.0),
        number => number,
    };
    switch.datapath.packet_out(now, in_port, frame, &actions, effects);
    Ok(())
}

fn port_mod(switch: &mut State, body: &PortMod, effects: &mut Effects) -> Result<(), ErrorCode> {
    let known =
        PortConfig::PORT_DOWN | PortConfig::NO_RECV | PortConfig::NO_FWD | PortConfig::NO_PACKET_IN;
    if !known.contains(body.mask) {
        return Err(code::PORT_MOD_FAILED_BAD_CONFIG);
    }
    let PortMod { port_no, hw_addr, config, mask, .. } = *body;
    switch.datapath.configure_port(port_no.0, hw_addr, config.0, mask.0, effects)
}

/// Checks a TABLE_MOD. In 1.3 the configuration of a table has no meaning (section 7.3.3).
fn table_mod(switch: &State, body: &TableMod) -> Result<(), ErrorCode> {
    if body.table_id != TABLE_ALL && body.table_id >= switch.config.n_tables {
        return Err(code::TABLE_MOD_FAILED_BAD_TABLE);
    }
    if body.config & !0x3 != 0 {
        return Err(code::TABLE_MOD_FAILED_BAD_CONFIG);
    }
    Ok(())
}

fn queues(switch: &mut State, id: SessionId, xid: u32, port: PortNo) -> Result<(), ErrorCode> {
    if port != PortNo::ANY && switch.port(port.0).is_none() {
        return Err(code::QUEUE_OP_FAILED_BAD_PORT);
    }
    let queues: ListBuf<PacketQueue<'_>> = switch
        .ports()
        .filter(|found| port == PortNo::ANY || found.made.number == port.0)
        .flat_map(|found| found.queues.keys().map(|queue| (found.made.number, *queue)))
        .map(|(port, queue_id)| PacketQueue {
            queue_id,
            port: PortNo(port),
            properties: List::EMPTY,
        })
        .collect();
    let body = QueueGetConfigReply { port, queues: queues.as_list() };
    switch.reply(id, |out| Message::QueueGetConfigReply(body).write(xid, out));
    Ok(())
}
