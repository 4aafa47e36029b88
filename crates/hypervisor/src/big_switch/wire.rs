//! Messages of both versions, as far as a big switch looks into them.

use super::request::{Object, Request, Spec, To};
use crate::named::groups_of;
use crate::refusals::Verdict;
use crate::time::Duration;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use flowspace::{Field, Match, port_from_v10};
use openflow::error::Error;
use openflow::v10::{self, StatsRequest, StatsRequestBody};
use openflow::v13::{
    self, GroupDesc, GroupMod, GroupModCommand, Instruction, MeterConfig, MeterMod,
    MeterModCommand, MultipartRequest, MultipartRequestBody,
};
use openflow::{ErrorCode, Header, List, NO_BUFFER, Version, frame};

/// OFPPS_LINK_DOWN, in both versions.
const LINK_DOWN: u32 = 1;

/// OFPFC_ADD, OFPFC_MODIFY_STRICT and OFPFC_DELETE_STRICT, in both versions.
const ADD: u8 = 0;
const MODIFY_STRICT: u8 = 2;
const DELETE_STRICT: u8 = 4;

/// An entry as a member counts it.
#[derive(Clone, Copy)]
pub(super) struct Held<'a> {
    entry: &'a [u8],
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

/// What a member can do, and its ports as far as it has told them: on 1.0.
pub(super) fn features(
    version: Version,
    message: &[u8],
) -> Option<(Features, BTreeMap<u32, Vec<u8>>)> {
    let (&n_tables, ports) = message.get(20).zip(message.get(32..))?;
    let is_v10 = version == Version::V1_0;
    let features = Features {
        n_buffers: word(message, 16),
        n_tables,
        capabilities: word(message, 24),
        actions: if is_v10 { word(message, 28) } else { 0 },
    };
    let ports = if is_v10 { ports } else { &[] };
    let ports = ports.chunks_exact(48).map(|port| (port_number(version, port), port.to_vec()));
    Some((features, ports.collect()))
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
        return Vec::from([(Sent::Flows, flows(version, None))]);
    }
    let meters = MultipartRequestBody::MeterConfig { meter_id: v13::METER_ALL };
    Vec::from([
        (Sent::Ports, ask(MultipartRequestBody::PortDesc)),
        (Sent::Groups, ask(MultipartRequestBody::GroupDesc)),
        (Sent::Meters, ask(meters)),
        (Sent::Flows, flows(version, None)),
    ])
}

/// The question for all entries, or for the one that this message adds; on 1.0 the answer may have others as well.
pub(super) fn flows(version: Version, of: Option<&[u8]>) -> Vec<u8> {
    if version != Version::V1_0 {
        let (cookie, cookie_mask) = of.map_or((0, 0), |add| (cookie(version, add), u64::MAX));
        let asked = v13::FlowStatsRequest { cookie, cookie_mask, ..Default::default() };
        return ask(MultipartRequestBody::Flow(asked));
    }
    let one = of.and_then(|add| v10::FlowMod::parse(add.get(Header::LEN..)?).ok());
    let asked = v10::FlowStatsRequest {
        match_: one.map_or(v10::Match::ANY, |it| it.match_),
        table_id: v10::TABLE_ALL,
        out_port: v10::PortNo::NONE,
    };
    let mut out = Vec::new();
    let _ = StatsRequest::from(StatsRequestBody::Flow(asked)).write_message(0, &mut out);
    out
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

/// Where a FLOW_MOD has its fields. The flags are where they are, the time-outs behind the command.
struct Fields {
    command: usize,
    flags: usize,
    /// Its actions or instructions.
    program: usize,
}

fn fields(version: Version, message: &[u8]) -> Fields {
    match version {
        Version::V1_0 => Fields { command: 57, flags: 70, program: 72 },
        _ => {
            let match_len = usize::from(half(message, 50));
            Fields { command: 25, flags: 44, program: 48 + match_len.next_multiple_of(8) }
        }
    }
}

/// The change that a message of the front's asks for.
pub(super) fn request(version: Version, kind: Kind, message: &[u8]) -> Option<Request> {
    let body = message.get(Header::LEN..)?;
    let mut add = Vec::new();
    let (object, deletes) = match kind {
        Kind::GroupMod => {
            let group = GroupMod::parse(body).ok()?;
            GroupMod { command: GroupModCommand::ADD, ..group }.write_message(0, &mut add).ok()?;
            (Object::Group(group.group_id), group.command == GroupModCommand::DELETE)
        }
        Kind::MeterMod => {
            let meter = MeterMod::parse(body).ok()?;
            MeterMod { command: MeterModCommand::ADD, ..meter }.write_message(0, &mut add).ok()?;
            (Object::Meter(meter.meter_id), meter.command == MeterModCommand::DELETE)
        }
        Kind::PortMod => {
            let at = named_at(version);
            body.get(at + 8..)?;
            let to = To::Config { config: word(body, at), mask: word(body, at + 4) };
            return Some(Request { object: Object::Port(port_number(version, body)), to });
        }
        _ => return flow_mod(version, message),
    };
    let to = if deletes { To::Nothing } else { To::Number(add.into()) };
    Some(Request { object, to })
}

/// A FLOW_MOD of one entry, which its cookie names.
fn flow_mod(version: Version, message: &[u8]) -> Option<Request> {
    const RESET_COUNTS: u16 = 4;
    let Fields { command, flags: flags_at, program } = fields(version, message);
    message.get(program..)?;
    let (command, mut add) = (*message.get(command)?, with_command(version, message, ADD));
    frame::set_buffer_id(&mut add, NO_BUFFER);
    frame::set_xid(&mut add, 0);
    // On 1.0 an addition always does, and a modification never.
    let mut resets_counts = command == ADD;
    if version != Version::V1_0 {
        let flags = half(message, flags_at);
        resets_counts = flags & RESET_COUNTS != 0;
        put(&mut add, flags_at, &(flags & !RESET_COUNTS).to_be_bytes());
        put(&mut add, 16, &[0; 8]);
    }
    let to = match command {
        ADD => To::Add { spec: spec(version, add), resets_counts, is_again: false },
        MODIFY_STRICT => To::Modify { by: add, resets_counts },
        DELETE_STRICT => To::Nothing,
        _ => return None,
    };
    Some(Request { object: Object::Entry(cookie(version, message)), to })
}

fn with_command(version: Version, message: &[u8], command: u8) -> Vec<u8> {
    let mut out = message.to_vec();
    put(&mut out, fields(version, message).command, &[command]);
    out
}

fn cookie(version: Version, message: &[u8]) -> u64 {
    long(message, if version == Version::V1_0 { 48 } else { 8 })
}

/// The entry that this message adds.
pub(super) fn spec(version: Version, add: Vec<u8>) -> Arc<Spec> {
    let timeouts = fields(version, &add).command + 1;
    let (idle, hard) = (half(&add, timeouts), half(&add, timeouts + 2));
    let body = add.get(Header::LEN..).unwrap_or_default();
    let (mut in_port, mut uses) = (None, Vec::new());
    if version == Version::V1_0 {
        let match_ = v10::FlowMod::parse(body).map(|it| Match::from_v10(&it.match_));
        let port = match_.ok().and_then(|it| it.exact_value(Field::InPort));
        in_port = port.map(|port| port as u32);
    } else if let Ok(it) = v13::FlowMod::parse(body) {
        in_port = it.match_.in_port().map(|port| port.0);
        uses.extend(groups_of(it.instructions.as_bytes()).into_iter().map(Object::Group));
        uses.extend(it.instructions.iter().filter_map(|instruction| match instruction {
            Instruction::Meter(number) => Some(Object::Meter(number)),
            _ => None,
        }));
    }
    Arc::new(Spec { add, in_port, idle, hard, uses })
}

/// The message that adds an entry, with another hard timeout.
pub(super) fn with_hard(version: Version, add: &[u8], hard: u16) -> Vec<u8> {
    let mut out = add.to_vec();
    put(&mut out, fields(version, add).command + 3, &hard.to_be_bytes());
    out
}

/// The message that gives an entry the program with which this one adds it.
pub(super) fn modify_entry(version: Version, add: &[u8]) -> Vec<u8> {
    with_command(version, add, MODIFY_STRICT)
}

/// The message that deletes the entry that this one adds.
pub(super) fn delete_entry(version: Version, add: &[u8]) -> Vec<u8> {
    let mut out = with_command(version, add, DELETE_STRICT);
    out.truncate(fields(version, add).program);
    if version != Version::V1_0 {
        put(&mut out, 16, &[0xff; 8]);
    }
    with_length(out)
}

/// The message that adds an entry, with what a modification does to it.
pub(super) fn modified(version: Version, add: &[u8], by: &[u8]) -> Vec<u8> {
    let kept = add.get(..fields(version, add).program).unwrap_or(add);
    let program = by.get(fields(version, by).program..).unwrap_or_default();
    with_length([kept, program].concat())
}

fn with_length(mut message: Vec<u8>) -> Vec<u8> {
    let length = u16::try_from(message.len()).unwrap_or(u16::MAX);
    put(&mut message, 2, &length.to_be_bytes());
    message
}

fn half(bytes: &[u8], at: usize) -> u16 {
    let two = bytes.get(at..at + 2).and_then(|two| two.try_into().ok());
    two.map_or(0, u16::from_be_bytes)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
    four.map_or(0, u32::from_be_bytes)
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) << 32 | u64::from(word(bytes, at + 4))
}

fn put(bytes: &mut [u8], at: usize, with: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + with.len()) {
        place.copy_from_slice(with);
    }
}

/// Where an entry of a flow statistics reply has its fields.
struct HeldFields {
    lived: usize,
    /// The priority, and the time-outs behind it.
    priority: usize,
    cookie: usize,
    /// Packets, then bytes.
    counts: usize,
}

fn held_fields(version: Version) -> HeldFields {
    match version {
        Version::V1_0 => HeldFields { lived: 44, priority: 52, cookie: 64, counts: 72 },
        _ => HeldFields { lived: 4, priority: 12, cookie: 24, counts: 32 },
    }
}

/// Entries of a flow statistics reply.
pub(super) fn held(version: Version, entries: &[u8]) -> impl Iterator<Item = Held<'_>> {
    let at = held_fields(version);
    let mut rest = entries;
    core::iter::from_fn(move || {
        let (entry, behind) = rest.split_at_checked(usize::from(half(rest, 0)))?;
        entry.get(at.counts + 16..)?;
        rest = behind;
        Some(Held {
            entry,
            cookie: long(entry, at.cookie),
            packets: long(entry, at.counts),
            bytes: long(entry, at.counts + 8),
            seconds: word(entry, at.lived),
        })
    })
}

impl Held<'_> {
    /// The message that adds the entry.
    pub(super) fn add(&self, version: Version) -> Vec<u8> {
        const SEND_FLOW_REM: [u8; 2] = [0, 1];
        let at = held_fields(version);
        let part = |from, to| self.entry.get(from..to).unwrap_or_default();
        let cookie = part(at.cookie, at.cookie + 8);
        let priority = part(at.priority, at.priority + 2);
        let timeouts = part(at.priority + 2, at.priority + 6);
        let end = self.entry.len();
        let body = match version {
            Version::V1_0 => [
                [part(4, 44), cookie, &[0, 0], timeouts, priority, &[0xff; 6]].concat(),
                [&SEND_FLOW_REM, part(88, end)].concat(),
            ],
            _ => [
                [cookie, &[0; 8], part(2, 3), &[0], timeouts, priority, &[0xff; 12]].concat(),
                [part(18, 20), &[0, 0], part(48, end)].concat(),
            ],
        };
        bare(version, 14, 0, &body.concat())
    }

    /// The entry with other counts, and the hard time-out and the age of the whole.
    pub(super) fn with_counts(
        &self,
        version: Version,
        hard: u16,
        (packets, bytes): (u64, u64),
        (seconds, nanoseconds): (u32, u32),
    ) -> Vec<u8> {
        let (at, mut out) = (held_fields(version), self.entry.to_vec());
        put(&mut out, at.lived, &seconds.to_be_bytes());
        put(&mut out, at.lived + 4, &nanoseconds.to_be_bytes());
        put(&mut out, at.priority + 4, &hard.to_be_bytes());
        put(&mut out, at.counts, &packets.to_be_bytes());
        put(&mut out, at.counts + 8, &bytes.to_be_bytes());
        out
    }
}

/// Reads a FLOW_REMOVED.
pub(super) fn removed(version: Version, message: &[u8]) -> Option<Removed> {
    let (cookie, reason, counts) = match version {
        Version::V1_0 => (48, 58, 72),
        _ => (8, 18, 32),
    };
    message.get(counts + 16..)?;
    let (packets, bytes) = (long(message, counts), long(message, counts + 8));
    let reason = *message.get(reason)?;
    Some(Removed { cookie: long(message, cookie), reason, packets, bytes })
}

/// A FLOW_REMOVED of the entry that this message added.
pub(super) fn write_removed(
    version: Version,
    add: &[u8],
    reason: u8,
    (packets, bytes): (u64, u64),
    (seconds, nanoseconds): (u32, u32),
) -> Vec<u8> {
    let part = |from, to| add.get(from..to).unwrap_or_default();
    let lived = [seconds.to_be_bytes(), nanoseconds.to_be_bytes()].concat();
    let counts = [packets.to_be_bytes(), bytes.to_be_bytes()].concat();
    let body = match version {
        // The match, the cookie; the idle time-out.
        Version::V1_0 => {
            let begin = [part(8, 56), part(62, 64), &[reason, 0], &lived].concat();
            [begin, [part(58, 60), &[0, 0], &counts].concat()].concat()
        }
        // The cookie; the time-outs; the match.
        _ => {
            let begin = [part(8, 16), part(30, 32), &[reason], part(24, 25), &lived].concat();
            let match_ = part(48, fields(version, add).program);
            [begin, [part(26, 30), &counts, match_].concat()].concat()
        }
    };
    bare(version, 11, 0, &body)
}

/// The bytes before the name in a port's description: the number and the address. They begin a PORT_MOD as well.
fn named_at(version: Version) -> usize {
    if version == Version::V1_0 { 8 } else { 16 }
}

/// Where a port's description has the configuration; the state is behind it.
fn config_at(version: Version) -> usize {
    named_at(version) + 16
}

/// A port's number, of a description or a PORT_MOD.
pub(super) fn port_number(version: Version, wire: &[u8]) -> u32 {
    match version {
        Version::V1_0 => port_from_v10(half(wire, 0)),
        _ => word(wire, 0),
    }
}

/// A port's description, with the link down.
pub(super) fn down(version: Version, wire: &[u8]) -> Vec<u8> {
    let mut out = wire.to_vec();
    put(&mut out, config_at(version) + 4, &LINK_DOWN.to_be_bytes());
    out
}

/// Whether a port's description says that its link is down.
pub(super) fn is_down(version: Version, wire: &[u8]) -> bool {
    word(wire, config_at(version) + 4) & LINK_DOWN != 0
}

/// What is configured of a port, by its description.
pub(super) fn port_config(version: Version, wire: &[u8]) -> u32 {
    word(wire, config_at(version))
}

/// The PORT_MOD that configures a port so, by its description.
pub(super) fn configure(version: Version, wire: &[u8], config: u32) -> Vec<u8> {
    let mut body = wire.get(..named_at(version)).unwrap_or_default().to_vec();
    body.extend_from_slice(&config.to_be_bytes());
    body.extend_from_slice(&[0xff; 4]);
    body.extend_from_slice(&[0; 8]);
    bare(version, if version == Version::V1_0 { 15 } else { 16 }, 0, &body)
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

/// The message that deletes the group or meter that this one adds.
pub(super) fn delete_number(add: &[u8]) -> Vec<u8> {
    const DELETE: u16 = 2;
    number_without_list(add, DELETE)
}

/// The message that adds a group which does nothing yet, in place of the one that this message adds.
pub(super) fn add_without_buckets(add: &[u8]) -> Vec<u8> {
    let mut out = number_without_list(add, 0);
    // Its type is OFPGT_ALL.
    put(&mut out, 10, &[0]);
    out
}

/// A GROUP_MOD or METER_MOD up to its buckets or bands: both have the command first.
fn number_without_list(add: &[u8], command: u16) -> Vec<u8> {
    let mut out = add.get(..16).unwrap_or(add).to_vec();
    put(&mut out, 8, &command.to_be_bytes());
    with_length(out)
}

/// The message that makes a group or meter what this one adds.
pub(super) fn modify_number(add: &[u8]) -> Vec<u8> {
    const MODIFY: u16 = 1;
    let mut out = add.to_vec();
    put(&mut out, 8, &MODIFY.to_be_bytes());
    out
}

/// Groups and meters of a report, and the messages that add them (1.3).
pub(super) fn numbers_held(groups: &[u8], meters: &[u8]) -> Vec<(Object, Vec<u8>)> {
    let groups = List::<GroupDesc<'_>>::parse(groups).unwrap_or_default();
    let groups = groups.iter().map(|it| {
        let mut add = Vec::new();
        let command = GroupModCommand::ADD;
        let group =
            GroupMod { command, type_: it.type_, group_id: it.group_id, buckets: it.buckets };
        let _ = group.write_message(0, &mut add);
        (Object::Group(it.group_id), add)
    });
    let meters = List::<MeterConfig<'_>>::parse(meters).unwrap_or_default();
    let meters = meters.iter().map(|it| {
        let mut add = Vec::new();
        let command = MeterModCommand::ADD;
        let meter = MeterMod { command, flags: it.flags, meter_id: it.meter_id, bands: it.bands };
        let _ = meter.write_message(0, &mut add);
        (Object::Meter(it.meter_id), add)
    });
    groups.chain(meters).collect()
}

/// The message that adds an entry if this modification, as an addition, finds none: only on 1.0.
pub(super) fn added_by_modify(version: Version, by: &[u8]) -> Option<Vec<u8>> {
    (version == Version::V1_0).then(|| by.to_vec())
}

/// The port by which a PACKET_OUT says that the packet has come in.
pub(super) fn in_port(version: Version, message: &[u8]) -> u32 {
    let port = frame::in_port(message).unwrap_or(u32::MAX);
    match (version, u16::try_from(port)) {
        (Version::V1_0, Ok(port)) => port_from_v10(port),
        _ => port,
    }
}

/// Codes that differ between the versions.
pub(super) struct Codes {
    pub(super) bad_request: ErrorCode,
    pub(super) not_now: ErrorCode,
    pub(super) unknown_buffer: ErrorCode,
    pub(super) too_much: ErrorCode,
}

pub(super) fn codes(version: Version) -> Codes {
    use openflow::error::{v10, v13};
    match version {
        Version::V1_0 => Codes {
            bad_request: v10::BAD_REQUEST_BAD_TYPE,
            not_now: v10::BAD_REQUEST_EPERM,
            unknown_buffer: v10::BAD_REQUEST_BUFFER_UNKNOWN,
            too_much: v10::BAD_REQUEST_BAD_LEN,
        },
        _ => Codes {
            bad_request: v13::BAD_REQUEST_BAD_TYPE,
            not_now: v13::BAD_REQUEST_EPERM,
            unknown_buffer: v13::BAD_REQUEST_BUFFER_UNKNOWN,
            too_much: v13::BAD_REQUEST_MULTIPART_BUFFER_OVERFLOW,
        },
    }
}

/// What a question of this type is about.
pub(super) fn asked(version: Version, type_: u16) -> Asked {
    match (version, type_) {
        (_, 1) => Asked::Flows,
        (_, 4) => Asked::Ports,
        (Version::V1_3, 6) => Asked::Groups,
        (Version::V1_3, 9) => Asked::Meters,
        (Version::V1_3, 13) => Asked::PortDescriptions,
        _ => Asked::One,
    }
}

/// The ports that a member tells of, by number.
pub(super) fn ports_told(version: Version, answers: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let length = if version == Version::V1_0 { 104 } else { 112 };
    let ports = answers.chunks_exact(length);
    ports.map(|port| (port_number(version, port), port.to_vec())).collect()
}

/// What another message to a member was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// A message that is not answered; if it is refused, this request of the front's is.
    Plain(Option<u32>),
    /// A part of a question of the front's.
    Part(u64),
    Flows,
    Groups,
    Meters,
    Ports,
    /// Whether an entry has counted anything.
    IdleCheck(u64),
}

/// What the answers have to become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Flows,
    Ports,
    Groups,
    Meters,
    /// The big switch itself knows them.
    PortDescriptions,
    /// It is the same on all members: one answers.
    One,
}
