//! Messages of both versions, as far as a big switch looks into them.

use super::objects::Numbered;
use crate::named::groups_of;
use crate::refusals::Verdict;
use crate::time::Duration;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use flowspace::{Field, Match, port_from_v10};
use openflow::error::Error;
use openflow::v10::{self, StatsRequest, StatsRequestBody};
use openflow::v13::{
    self, GroupMod, GroupModCommand, GroupType, MeterMod, MeterModCommand, MultipartRequest,
    MultipartRequestBody,
};
use openflow::{Header, List, NO_BUFFER, Version, frame};

/// What is read of a FLOW_MOD.
pub(super) struct FlowMod {
    pub(super) command: Command,
    pub(super) cookie: u64,
    pub(super) buffer_id: u32,
    /// Whether the entry begins to count at nothing.
    pub(super) resets_counters: bool,
    /// The message that adds the entry, without a buffered packet and without that.
    pub(super) add: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Add,
    Modify,
    Delete,
}

/// What an entry is, read from the message that adds it.
#[derive(Clone, Copy, Default)]
pub(super) struct Terms {
    pub(super) in_port: Option<u32>,
    pub(super) idle: u16,
    pub(super) hard: u16,
}

/// An entry as a member counts it.
pub(super) struct Held {
    pub(super) add: Vec<u8>,
    pub(super) cookie: u64,
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) seconds: u32,
}

/// A FLOW_REMOVED.
pub(super) struct Removed {
    pub(super) cookie: u64,
    pub(super) reason: u8,
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

/// The messages of one version that are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Nothing,
    Error,
    Echo,
    Vendor,
    FeaturesRequest,
    /// SET_CONFIG, and SET_ASYNC.
    SetConfig,
    PacketIn,
    FlowRemoved,
    PortStatus,
    PacketOut,
    FlowMod,
    GroupMod,
    MeterMod,
    PortMod,
    Question,
    Answer,
    BarrierRequest,
    BarrierReply,
    QueueRequest,
    QueueReply,
    Other,
}

pub(super) fn kind(version: Version, type_: u8) -> Kind {
    match (type_, version) {
        (0 | 3, _) => Kind::Nothing,
        (1, _) => Kind::Error,
        (2, _) => Kind::Echo,
        (4, _) => Kind::Vendor,
        (5, _) => Kind::FeaturesRequest,
        (9, _) | (28, Version::V1_3) => Kind::SetConfig,
        (10, _) => Kind::PacketIn,
        (11, _) => Kind::FlowRemoved,
        (12, _) => Kind::PortStatus,
        (13, _) => Kind::PacketOut,
        (14, _) => Kind::FlowMod,
        (15, Version::V1_0) | (16, Version::V1_3) => Kind::PortMod,
        (16, Version::V1_0) | (18, Version::V1_3) => Kind::Question,
        (17, Version::V1_0) | (19, Version::V1_3) => Kind::Answer,
        (18, Version::V1_0) | (20, Version::V1_3) => Kind::BarrierRequest,
        (19, Version::V1_0) | (21, Version::V1_3) => Kind::BarrierReply,
        (20, Version::V1_0) | (22, Version::V1_3) => Kind::QueueRequest,
        (21, Version::V1_0) | (23, Version::V1_3) => Kind::QueueReply,
        (15, Version::V1_3) => Kind::GroupMod,
        (29, Version::V1_3) => Kind::MeterMod,
        _ => Kind::Other,
    }
}

/// A BARRIER_REQUEST.
pub(super) fn barrier(version: Version) -> Vec<u8> {
    bare(version, if version == Version::V1_0 { 18 } else { 20 }, 0, &[])
}

/// A BARRIER_REPLY.
pub(super) fn barrier_reply(version: Version, xid: u32) -> Vec<u8> {
    bare(version, if version == Version::V1_0 { 19 } else { 21 }, xid, &[])
}

/// A message of these bytes.
pub(super) fn bare(version: Version, type_: u8, xid: u32, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    // What is too long for a message has not come in one; it stays empty.
    let _ = frame::write(version, type_, xid, &mut out, |out| out.extend_from_slice(body));
    out
}

/// An ERROR for the front, which carries the verdict.
pub(super) fn error(version: Version, xid: u32, verdict: Verdict) -> Vec<u8> {
    let mut out = Vec::new();
    let error = Error { code: verdict.refused.code(), data: &verdict.to_data() };
    // It is short.
    let _ = error.write_message(version, xid, &mut out);
    out
}

/// What a member can do, and its ports as far as it has told them.
pub(super) fn features(
    version: Version,
    message: &[u8],
) -> Option<(Features, BTreeMap<u32, Vec<u8>>)> {
    let body = message.get(Header::LEN..)?;
    if version == Version::V1_0 {
        let reply = v10::FeaturesReply::parse(body).ok()?;
        let features = Features {
            n_buffers: reply.n_buffers,
            n_tables: reply.n_tables,
            capabilities: reply.capabilities.0,
            actions: reply.actions.0,
        };
        let ports = reply.ports.iter().map(|port| {
            let mut wire = Vec::new();
            port.write(&mut wire);
            (port_from_v10(port.port_no.0), wire)
        });
        return Some((features, ports.collect()));
    }
    let reply = v13::FeaturesReply::parse(body).ok()?;
    let features = Features {
        n_buffers: reply.n_buffers,
        n_tables: reply.n_tables,
        capabilities: reply.capabilities.0,
        actions: 0,
    };
    Some((features, BTreeMap::new()))
}

/// The whole FEATURES_REPLY of the big switch; `None` if it has no room for all ports (1.0).
pub(super) fn write_features(
    version: Version,
    key: u64,
    features: &Features,
    ports: &BTreeMap<u32, Vec<u8>>,
) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    body.extend_from_slice(&key.to_be_bytes());
    body.extend_from_slice(&features.n_buffers.to_be_bytes());
    body.extend_from_slice(&[features.n_tables, 0, 0, 0]);
    body.extend_from_slice(&features.capabilities.to_be_bytes());
    body.extend_from_slice(&features.actions.to_be_bytes());
    if version == Version::V1_0 {
        ports.values().for_each(|port| body.extend_from_slice(port));
    }
    Some(bare(version, 6, 0, &body)).filter(|message| !message.is_empty())
}

/// What a new member is asked.
pub(super) fn questions(version: Version) -> Vec<(Sent, Vec<u8>)> {
    if version == Version::V1_0 {
        return Vec::from([(Sent::Flows, all_flows(version))]);
    }
    let meters = MultipartRequestBody::MeterConfig { meter_id: v13::METER_ALL };
    Vec::from([
        (Sent::Ports, ask(MultipartRequestBody::PortDesc)),
        (Sent::Groups, ask(MultipartRequestBody::GroupDesc)),
        (Sent::Meters, ask(meters)),
        (Sent::Flows, all_flows(version)),
    ])
}

/// The question for all entries.
pub(super) fn all_flows(version: Version) -> Vec<u8> {
    let mut out = Vec::new();
    if version == Version::V1_0 {
        let all = v10::FlowStatsRequest {
            match_: v10::Match::ANY,
            table_id: v10::TABLE_ALL,
            out_port: v10::PortNo::NONE,
        };
        let _ = StatsRequest::from(StatsRequestBody::Flow(all)).write_message(0, &mut out);
        return out;
    }
    ask(MultipartRequestBody::Flow(v13::FlowStatsRequest::default()))
}

/// The question for one entry; on 1.0 the answer may have others as well.
pub(super) fn one_flow(version: Version, add: &[u8]) -> Vec<u8> {
    let body = add.get(Header::LEN..).unwrap_or_default();
    if version == Version::V1_0 {
        let Ok(flow_mod) = v10::FlowMod::parse(body) else { return all_flows(version) };
        let mut out = Vec::new();
        let asked = v10::FlowStatsRequest {
            match_: flow_mod.match_,
            table_id: v10::TABLE_ALL,
            out_port: v10::PortNo::NONE,
        };
        let _ = StatsRequest::from(StatsRequestBody::Flow(asked)).write_message(0, &mut out);
        return out;
    }
    let cookie = frame::cookie(add).unwrap_or(0);
    ask(MultipartRequestBody::Flow(v13::FlowStatsRequest {
        cookie,
        cookie_mask: u64::MAX,
        ..v13::FlowStatsRequest::default()
    }))
}

fn ask(body: MultipartRequestBody<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    // None of them is long.
    let _ = MultipartRequest::from(body).write_message(0, &mut out);
    out
}

/// The type, the entries, and whether more parts follow.
pub(super) fn answer(version: Version, message: &[u8]) -> Option<(u16, &[u8], bool)> {
    let body = message.get(Header::LEN..)?;
    let type_ = u16::from_be_bytes([*body.first()?, *body.get(1)?]);
    let more = *body.get(3)? & 1 == 1;
    let start = if version == Version::V1_0 { 4 } else { 8 };
    Some((type_, body.get(start..)?, more))
}

/// Reads a FLOW_MOD.
pub(super) fn flow_mod(version: Version, message: &[u8]) -> Option<FlowMod> {
    let body = message.get(Header::LEN..)?;
    let mut add = Vec::new();
    if version == Version::V1_0 {
        let it = v10::FlowMod::parse(body).ok()?;
        let command = match it.command {
            v10::FlowModCommand::ADD => Command::Add,
            v10::FlowModCommand::MODIFY_STRICT => Command::Modify,
            v10::FlowModCommand::DELETE_STRICT => Command::Delete,
            _ => return None,
        };
        let (cookie, buffer_id) = (it.cookie, it.buffer_id);
        let added = v10::FlowMod { command: v10::FlowModCommand::ADD, buffer_id: NO_BUFFER, ..it };
        added.write_message(0, &mut add).ok()?;
        // There an addition always does, and a modification never.
        let resets_counters = command == Command::Add;
        return Some(FlowMod { command, cookie, buffer_id, resets_counters, add });
    }
    let it = v13::FlowMod::parse(body).ok()?;
    let command = match it.command {
        v13::FlowModCommand::ADD => Command::Add,
        v13::FlowModCommand::MODIFY_STRICT => Command::Modify,
        v13::FlowModCommand::DELETE_STRICT => Command::Delete,
        _ => return None,
    };
    let (cookie, buffer_id) = (it.cookie, it.buffer_id);
    let resets = v13::FlowModFlags::RESET_COUNTS;
    let resets_counters = it.flags.contains(resets);
    let added = v13::FlowMod {
        command: v13::FlowModCommand::ADD,
        cookie_mask: 0,
        buffer_id: NO_BUFFER,
        flags: v13::FlowModFlags(it.flags.0 & !resets.0),
        ..it
    };
    added.write_message(0, &mut add).ok()?;
    Some(FlowMod { command, cookie, buffer_id, resets_counters, add })
}

/// What the message that adds an entry says of it.
pub(super) fn terms(version: Version, add: &[u8]) -> Terms {
    let body = add.get(Header::LEN..).unwrap_or_default();
    if version == Version::V1_0 {
        let Ok(it) = v10::FlowMod::parse(body) else { return Terms::default() };
        let in_port = Match::from_v10(&it.match_).exact_value(Field::InPort);
        let in_port = in_port.map(|port| port as u32);
        return Terms { in_port, idle: it.idle_timeout, hard: it.hard_timeout };
    }
    let Ok(it) = v13::FlowMod::parse(body) else { return Terms::default() };
    let in_port = it.match_.in_port().map(|port| port.0);
    Terms { in_port, idle: it.idle_timeout, hard: it.hard_timeout }
}

/// The groups to which the entry sends that this message adds (1.3).
pub(super) fn groups(add: &[u8]) -> Vec<u32> {
    let flow_mod = v13::FlowMod::parse(add.get(Header::LEN..).unwrap_or_default());
    flow_mod.map(|it| groups_of(it.instructions.as_bytes())).unwrap_or_default()
}

/// The message that adds an entry, with another hard timeout, or as another command.
pub(super) fn as_command(version: Version, add: &[u8], command: Command, hard: u16) -> Vec<u8> {
    let body = add.get(Header::LEN..).unwrap_or_default();
    let mut out = Vec::new();
    if version == Version::V1_0 {
        let Ok(it) = v10::FlowMod::parse(body) else { return out };
        let command = match command {
            Command::Add => v10::FlowModCommand::ADD,
            Command::Modify => v10::FlowModCommand::MODIFY_STRICT,
            Command::Delete => v10::FlowModCommand::DELETE_STRICT,
        };
        let deletes = command == v10::FlowModCommand::DELETE_STRICT;
        let actions = if deletes { List::EMPTY } else { it.actions };
        let _ =
            v10::FlowMod { command, hard_timeout: hard, actions, ..it }.write_message(0, &mut out);
        return out;
    }
    let Ok(it) = v13::FlowMod::parse(body) else { return out };
    let deletes = command == Command::Delete;
    let command = match command {
        Command::Add => v13::FlowModCommand::ADD,
        Command::Modify => v13::FlowModCommand::MODIFY_STRICT,
        Command::Delete => v13::FlowModCommand::DELETE_STRICT,
    };
    let cookie_mask = if deletes { u64::MAX } else { 0 };
    let instructions = if deletes { List::EMPTY } else { it.instructions };
    let _ = v13::FlowMod { command, cookie_mask, hard_timeout: hard, instructions, ..it }
        .write_message(0, &mut out);
    out
}

/// The message that adds an entry, with what a modification does to it.
pub(super) fn modified(version: Version, add: &[u8], by: &[u8]) -> Vec<u8> {
    let (body, by) =
        (add.get(Header::LEN..).unwrap_or_default(), by.get(Header::LEN..).unwrap_or_default());
    let mut out = Vec::new();
    if version == Version::V1_0 {
        let (Ok(it), Ok(by)) = (v10::FlowMod::parse(body), v10::FlowMod::parse(by)) else {
            return out;
        };
        let _ = v10::FlowMod { actions: by.actions, ..it }.write_message(0, &mut out);
        return out;
    }
    let (Ok(it), Ok(by)) = (v13::FlowMod::parse(body), v13::FlowMod::parse(by)) else {
        return out;
    };
    let _ = v13::FlowMod { instructions: by.instructions, ..it }.write_message(0, &mut out);
    out
}

/// Entries of a flow statistics reply.
pub(super) fn held(version: Version, entries: &[u8]) -> Vec<Held> {
    if version == Version::V1_0 {
        let entries = List::<v10::FlowStats<'_>>::parse(entries).unwrap_or_default();
        let held = entries.iter().filter_map(|it| {
            let mut add = Vec::new();
            let added = v10::FlowMod {
                match_: it.match_,
                cookie: it.cookie,
                idle_timeout: it.idle_timeout,
                hard_timeout: it.hard_timeout,
                priority: it.priority,
                flags: v10::FlowModFlags::SEND_FLOW_REM,
                actions: it.actions,
                ..v10::FlowMod::default()
            };
            added.write_message(0, &mut add).ok()?;
            let (packets, bytes) = (it.packet_count, it.byte_count);
            Some(Held { add, cookie: it.cookie, packets, bytes, seconds: it.duration_sec })
        });
        return held.collect();
    }
    let entries = List::<v13::FlowStats<'_>>::parse(entries).unwrap_or_default();
    let held = entries.iter().filter_map(|it| {
        let mut add = Vec::new();
        let added = v13::FlowMod {
            cookie: it.cookie,
            table_id: it.table_id,
            idle_timeout: it.idle_timeout,
            hard_timeout: it.hard_timeout,
            priority: it.priority,
            flags: it.flags,
            match_: it.match_,
            instructions: it.instructions,
            ..v13::FlowMod::default()
        };
        added.write_message(0, &mut add).ok()?;
        let (packets, bytes) = (it.packet_count, it.byte_count);
        Some(Held { add, cookie: it.cookie, packets, bytes, seconds: it.duration_sec })
    });
    held.collect()
}

/// Whether two messages add the same, but for the time that is left.
pub(super) fn same(version: Version, a: &[u8], b: &[u8]) -> bool {
    let plain = |add: &[u8]| {
        let mut out = as_command(version, add, Command::Modify, 0);
        if version == Version::V1_3
            && let Some(flags) = out.get_mut(44..46)
        {
            flags.fill(0);
        }
        out
    };
    plain(a) == plain(b)
}

/// Whether what the first message adds takes the place of what the second does, whatever their cookies are (1.0).
pub(super) fn replaces(version: Version, a: &[u8], b: &[u8]) -> bool {
    let place = |add: &[u8]| {
        let body = add.get(Header::LEN..)?;
        v10::FlowMod::parse(body).ok().map(|it| (it.match_, it.priority))
    };
    version == Version::V1_0 && place(a).is_some_and(|a| place(b) == Some(a))
}

/// Appends an entry as it is told in statistics.
pub(super) fn write_held(
    version: Version,
    add: &[u8],
    (packets, bytes): (u64, u64),
    (seconds, nanoseconds): (u32, u32),
    out: &mut Vec<u8>,
) {
    let body = add.get(Header::LEN..).unwrap_or_default();
    if version == Version::V1_0 {
        let Ok(it) = v10::FlowMod::parse(body) else { return };
        v10::FlowStats {
            table_id: 0,
            match_: it.match_,
            duration_sec: seconds,
            duration_nsec: nanoseconds,
            priority: it.priority,
            idle_timeout: it.idle_timeout,
            hard_timeout: it.hard_timeout,
            cookie: it.cookie,
            packet_count: packets,
            byte_count: bytes,
            actions: it.actions,
        }
        .write(out);
        return;
    }
    let Ok(it) = v13::FlowMod::parse(body) else { return };
    v13::FlowStats {
        table_id: it.table_id,
        duration_sec: seconds,
        duration_nsec: nanoseconds,
        priority: it.priority,
        idle_timeout: it.idle_timeout,
        hard_timeout: it.hard_timeout,
        flags: it.flags,
        cookie: it.cookie,
        packet_count: packets,
        byte_count: bytes,
        match_: it.match_,
        instructions: it.instructions,
    }
    .write(out);
}

/// Reads a FLOW_REMOVED.
pub(super) fn removed(version: Version, message: &[u8]) -> Option<Removed> {
    let body = message.get(Header::LEN..)?;
    if version == Version::V1_0 {
        let it = v10::FlowRemoved::parse(body).ok()?;
        let (packets, bytes) = (it.packet_count, it.byte_count);
        return Some(Removed { cookie: it.cookie, reason: it.reason.0, packets, bytes });
    }
    let it = v13::FlowRemoved::parse(body).ok()?;
    let (packets, bytes) = (it.packet_count, it.byte_count);
    Some(Removed { cookie: it.cookie, reason: it.reason.0, packets, bytes })
}

/// A FLOW_REMOVED of the entry that this message added.
pub(super) fn write_removed(
    version: Version,
    add: &[u8],
    reason: u8,
    (packet_count, byte_count): (u64, u64),
    (duration_sec, duration_nsec): (u32, u32),
) -> Vec<u8> {
    let body = add.get(Header::LEN..).unwrap_or_default();
    let mut out = Vec::new();
    if version == Version::V1_0 {
        let Ok(it) = v10::FlowMod::parse(body) else { return out };
        let removed = v10::FlowRemoved {
            match_: it.match_,
            cookie: it.cookie,
            priority: it.priority,
            reason: v10::FlowRemovedReason(reason),
            duration_sec,
            duration_nsec,
            idle_timeout: it.idle_timeout,
            packet_count,
            byte_count,
        };
        let _ = removed.write_message(0, &mut out);
        return out;
    }
    let Ok(it) = v13::FlowMod::parse(body) else { return out };
    let removed = v13::FlowRemoved {
        cookie: it.cookie,
        priority: it.priority,
        reason: v13::FlowRemovedReason(reason),
        table_id: it.table_id,
        duration_sec,
        duration_nsec,
        idle_timeout: it.idle_timeout,
        hard_timeout: it.hard_timeout,
        packet_count,
        byte_count,
        match_: it.match_,
    };
    let _ = removed.write_message(0, &mut out);
    out
}

/// A port's number, of a PORT_STATUS or of a description.
pub(super) fn port_number(version: Version, wire: &[u8]) -> Option<u32> {
    match version {
        Version::V1_0 => v10::PhyPort::parse(wire).ok().map(|port| port_from_v10(port.port_no.0)),
        _ => v13::Port::parse(wire).ok().map(|port| port.port_no.0),
    }
}

/// A port's description, with the link down.
pub(super) fn down(version: Version, wire: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    if version == Version::V1_0 {
        let Ok(port) = v10::PhyPort::parse(wire) else { return wire.to_vec() };
        v10::PhyPort { state: v10::PortState::LINK_DOWN, ..port }.write(&mut out);
        return out;
    }
    let Ok(port) = v13::Port::parse(wire) else { return wire.to_vec() };
    v13::Port { state: v13::PortState::LINK_DOWN, ..port }.write(&mut out);
    out
}

/// Whether a port's description says that its link is down.
pub(super) fn is_down(version: Version, wire: &[u8]) -> bool {
    match version {
        Version::V1_0 => v10::PhyPort::parse(wire)
            .is_ok_and(|port| port.state.contains(v10::PortState::LINK_DOWN)),
        _ => {
            v13::Port::parse(wire).is_ok_and(|port| port.state.contains(v13::PortState::LINK_DOWN))
        }
    }
}

/// What a PORT_MOD asks for: the port's number, the bits and which of them change.
pub(super) fn port_mod(version: Version, message: &[u8]) -> Option<(u32, u32, u32)> {
    let body = message.get(Header::LEN..)?;
    if version == Version::V1_0 {
        let asked = v10::PortMod::parse(body).ok()?;
        return Some((port_from_v10(asked.port_no.0), asked.config.0, asked.mask.0));
    }
    let asked = v13::PortMod::parse(body).ok()?;
    Some((asked.port_no.0, asked.config.0, asked.mask.0))
}

/// What is configured of a port, by its description.
pub(super) fn port_config(version: Version, wire: &[u8]) -> u32 {
    match version {
        Version::V1_0 => v10::PhyPort::parse(wire).map_or(0, |port| port.config.0),
        _ => v13::Port::parse(wire).map_or(0, |port| port.config.0),
    }
}

/// The PORT_MOD that configures a port so, by its description.
pub(super) fn configure(version: Version, wire: &[u8], config: u32) -> Vec<u8> {
    let mut out = Vec::new();
    if version == Version::V1_0 {
        let Ok(port) = v10::PhyPort::parse(wire) else { return out };
        let asked = v10::PortMod {
            port_no: port.port_no,
            hw_addr: port.hw_addr,
            config: v10::PortConfig(config),
            mask: v10::PortConfig(u32::MAX),
            advertise: v10::PortFeatures(0),
        };
        let _ = v10::Message::PortMod(asked).write(0, &mut out);
        return out;
    }
    let Ok(port) = v13::Port::parse(wire) else { return out };
    let asked = v13::PortMod {
        port_no: port.port_no,
        hw_addr: port.hw_addr,
        config: v13::PortConfig(config),
        mask: v13::PortConfig(u32::MAX),
        advertise: v13::PortFeatures(0),
    };
    let _ = v13::Message::PortMod(asked).write(0, &mut out);
    out
}

/// What all members can do.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Features {
    pub(super) n_buffers: u32,
    pub(super) n_tables: u8,
    pub(super) capabilities: u32,
    pub(super) actions: u32,
}

/// Seconds and nanoseconds.
pub(super) fn seconds(duration: Duration) -> (u32, u32) {
    let (seconds, rest) = (duration.0 / 1_000_000_000, duration.0 % 1_000_000_000);
    (u32::try_from(seconds).unwrap_or(u32::MAX), rest as u32)
}

/// The message that deletes a group or meter.
pub(super) fn delete_numbered(which: Numbered, number: u32) -> Vec<u8> {
    let mut out = Vec::new();
    // Neither is long.
    let _ = match which {
        Numbered::Group => GroupMod {
            command: GroupModCommand::DELETE,
            type_: GroupType::ALL,
            group_id: number,
            buckets: List::EMPTY,
        }
        .write_message(0, &mut out),
        Numbered::Meter => MeterMod {
            command: MeterModCommand::DELETE,
            flags: Default::default(),
            meter_id: number,
            bands: List::EMPTY,
        }
        .write_message(0, &mut out),
    };
    out
}

/// The message that adds a group which does nothing yet.
pub(super) fn add_without_buckets(group_id: u32) -> Vec<u8> {
    let mut out = Vec::new();
    let (command, type_) = (GroupModCommand::ADD, GroupType::ALL);
    // It is short.
    let _ = GroupMod { command, type_, group_id, buckets: List::EMPTY }.write_message(0, &mut out);
    out
}

/// The message that makes a group or meter what this one adds.
pub(super) fn modify_numbered(which: Numbered, add: &[u8]) -> Vec<u8> {
    let body = add.get(Header::LEN..).unwrap_or_default();
    let mut out = Vec::new();
    match which {
        Numbered::Group => {
            if let Ok(group) = GroupMod::parse(body) {
                let group = GroupMod { command: GroupModCommand::MODIFY, ..group };
                let _ = group.write_message(0, &mut out);
            }
        }
        Numbered::Meter => {
            if let Ok(meter) = MeterMod::parse(body) {
                let meter = MeterMod { command: MeterModCommand::MODIFY, ..meter };
                let _ = meter.write_message(0, &mut out);
            }
        }
    }
    out
}

/// What a message to a member was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// A part of a change that all members get.
    Change(u64),
    /// A message of the front's that one member gets, or all, and that is not answered.
    Plain(u32),
    /// A part of a question or barrier of the front's.
    Part(u64),
    /// What makes up for something; if it fails, this entry is not there.
    Own(Option<Rule>),
    /// A message that gives one member its copy of this entry after the change itself. If the member refuses the message, it does without
    /// the copy.
    Again(Rule),
    /// The message that undoes a change of this entry; if it fails, the entry is given up.
    Undo(Rule),
    Flows,
    Groups,
    Meters,
    Ports,
    /// The barrier behind the undone changes, for all barriers of the front's up to this one.
    TakenBack(u64),
    /// The barrier behind what a member was filled with.
    Filled,
    /// The barrier behind the changes that were in flight when a member got its entries, and behind their undoing. After the reply Weir
    /// knows what the member lacks.
    Settled,
    /// A barrier that only shows that what was sent before needs not be remembered.
    Sweep,
    /// Whether an entry has counted anything.
    IdleCheck(u64),
}

/// What a member was sent of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) cookie: u64,
    /// The last number that had been given by then.
    pub(super) by: u64,
    /// All of it, or only what it does.
    pub(super) is_whole: bool,
}

impl Sent {
    pub(super) fn is_answered(self) -> bool {
        !matches!(self, Sent::Change(_) | Sent::Plain(_) | Sent::Own(_) | Sent::Undo(_))
    }
}
