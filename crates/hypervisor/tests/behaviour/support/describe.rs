//! Messages as text, the same text for both versions where both versions have the message.
//!
//! The text has the type of the message, the xid if the message is a reply, and the fields that a test may check. A
//! part of a reply ends in `+` if more parts follow.

use super::actions::{actions_text_v13, text_v10, text_v13};
use super::packets::name_of;
use openflow::error::Error;
use openflow::v10::{Message as M10, StatsFlags, StatsReplyBody};
use openflow::v13::{self, Message as M13, MultipartFlags, MultipartReplyBody, OxmField};
use openflow::{Header, NO_BUFFER, Version, frame};

/// One whole message in words.
pub fn describe(bytes: &[u8]) -> String {
    let header = Header::parse(bytes).unwrap();
    let text = match header.version {
        Version::V1_0 => describe_v10(bytes),
        _ => describe_v13(bytes),
    };
    // Asynchronous messages have xid 0.
    if header.xid == 0 { text } else { format!("{} {text}", header.xid) }
}

fn error(error: &Error<'_>, version: Version) -> String {
    let to = frame::type_(error.data).map_or("?".to_owned(), |type_| type_.to_string());
    let xid = frame::xid(error.data).unwrap_or(0);
    format!("ERROR {} of type {to} xid {xid}", error.code.display(version))
}

fn packet_in(port: u32, reason: &str, buffer_id: u32, data: &[u8], len: u16) -> String {
    let buffer =
        if buffer_id == NO_BUFFER { String::new() } else { format!(" buffer={buffer_id}") };
    let cut =
        if usize::from(len) == data.len() { String::new() } else { format!(" cut={}", data.len()) };
    format!("PACKET_IN {port} {reason} {}{buffer}{cut}", name_of(data))
}

struct Entry {
    match_: flowspace::Match,
    table: u8,
    priority: u16,
    cookie: u64,
    packets: u64,
    actions: String,
}

/// A table with the number of its entries and, if the table has looked up packets, the numbers of matches and lookups:
/// `0:2(1/3)`.
fn table(number: u8, active: u32, [looked_up, matched]: [u64; 2]) -> String {
    let counts = if looked_up == 0 { String::new() } else { format!("({matched}/{looked_up})") };
    format!("{number}:{active}{counts}")
}

/// The entries, sorted, because a switch may report entries in any order.
fn flows(entries: impl Iterator<Item = Entry>) -> String {
    let mut lines: Vec<String> = entries
        .map(|e| {
            let table = if e.table == 0 { String::new() } else { format!("table={} ", e.table) };
            let cookie =
                if e.cookie == 0 { String::new() } else { format!(" cookie={:#x}", e.cookie) };
            let match_ = match_text(&e.match_);
            format!("{table}prio={} {match_}{cookie} n={} {}", e.priority, e.packets, e.actions)
        })
        .collect();
    lines.sort();
    lines.join("; ")
}

fn list<T>(items: impl Iterator<Item = T>, text: impl Fn(T) -> String) -> String {
    items.map(text).collect::<Vec<_>>().join(" ")
}

/// Statistics of this type with these items.
fn statistics<T>(
    type_: &str,
    items: impl Iterator<Item = T>,
    text: impl Fn(T) -> String,
) -> String {
    format!("STATS {type_} {}", list(items, text))
}

fn more(more: bool) -> &'static str {
    if more { "+" } else { "" }
}

fn describe_v10(bytes: &[u8]) -> String {
    let (header, message) = M10::parse(bytes).unwrap_or_else(|e| panic!("{e}: {bytes:02x?}"));
    match message {
        M10::Error(e) => error(&e, header.version),
        M10::EchoReply(data) => format!("ECHO_REPLY {}", String::from_utf8_lossy(data)),
        M10::BarrierReply => "BARRIER_REPLY".to_owned(),
        M10::FeaturesReply(f) => format!(
            "FEATURES {:x} tables={} ports={}",
            f.datapath_id,
            f.n_tables,
            list(f.ports.iter(), |p| port_text(p.port_no.0.into(), p.config.0))
        ),
        M10::GetConfigReply(c) => format!("CONFIG len={}", c.miss_send_len),
        M10::PacketIn(p) => packet_in(
            p.in_port.0.into(),
            &format!("{:?}", p.reason),
            p.buffer_id,
            p.data,
            p.total_len,
        ),
        M10::FlowRemoved(r) => removed(
            &flowspace::Match::from_v10(&r.match_),
            r.priority,
            r.cookie,
            &format!("{:?}", r.reason),
            r.packet_count,
        ),
        M10::PortStatus(s) => {
            let port = port_text(s.desc.port_no.0.into(), s.desc.config.0);
            format!("PORT_STATUS {:?} {port}", s.reason)
        }
        M10::QueueGetConfigReply(q) => {
            format!("QUEUES {} {}", q.port.0, list(q.queues.iter(), |q| q.queue_id.to_string()))
        }
        M10::Vendor(v) => format!("VENDOR {:#x}", v.vendor),
        M10::StatsReply(reply) => {
            let more = more(reply.flags.contains(StatsFlags::REPLY_MORE));
            format!("{}{more}", statistics_v10(&reply.body)).trim_end().to_owned()
        }
        other => format!("{other:?}"),
    }
    .trim_end()
    .to_owned()
}

/// A port with its configuration bits, if any bit is set.
fn port_text(number: u32, config: u32) -> String {
    match config {
        0 => number.to_string(),
        bits => format!("{number}:{bits:#x}"),
    }
}

fn removed(match_: &flowspace::Match, priority: u16, cookie: u64, reason: &str, n: u64) -> String {
    let match_ = match_text(match_);
    format!("FLOW_REMOVED prio={priority} {match_} cookie={cookie:#x} {reason} n={n}")
}

fn match_text(match_: &flowspace::Match) -> String {
    let text = match_.to_string();
    if text.is_empty() { "any".to_owned() } else { text }
}

fn statistics_v10(body: &StatsReplyBody<'_>) -> String {
    match body {
        StatsReplyBody::Desc(d) => format!("STATS desc {:?}", d.dp_desc),
        StatsReplyBody::Flow(entries) => {
            let entries = entries.iter().map(|e| Entry {
                match_: flowspace::Match::from_v10(&e.match_),
                table: e.table_id,
                priority: e.priority,
                cookie: e.cookie,
                packets: e.packet_count,
                actions: text_v10(e.actions),
            });
            format!("STATS flow {}", flows(entries))
        }
        StatsReplyBody::Aggregate(a) => {
            format!("STATS aggregate flows={} n={}", a.flow_count, a.packet_count)
        }
        StatsReplyBody::Table(tables) => statistics("table", tables.iter(), |t| {
            table(t.table_id, t.active_count, [t.lookup_count, t.matched_count])
        }),
        StatsReplyBody::Port(ports) => {
            statistics("port", ports.iter(), |p| p.port_no.0.to_string())
        }
        StatsReplyBody::Queue(queues) => {
            statistics("queue", queues.iter(), |q| format!("{}:{}", q.port_no.0, q.queue_id))
        }
        other => format!("STATS {other:?}"),
    }
}

fn describe_v13(bytes: &[u8]) -> String {
    let (header, message) = M13::parse(bytes).unwrap_or_else(|e| panic!("{e}: {bytes:02x?}"));
    match message {
        M13::Error(e) => error(&e, header.version),
        M13::EchoReply(data) => format!("ECHO_REPLY {}", String::from_utf8_lossy(data)),
        M13::BarrierReply => "BARRIER_REPLY".to_owned(),
        M13::FeaturesReply(f) => format!("FEATURES {:x} tables={}", f.datapath_id, f.n_tables),
        M13::GetConfigReply(c) => format!("CONFIG len={}", c.miss_send_len),
        M13::PacketIn(p) => {
            let port = p.match_.in_port().map_or(0, |port| port.0);
            let metadata = p.match_.get(OxmField::METADATA).and_then(|oxm| oxm.number());
            let metadata = metadata.map(|it| format!(" metadata={it:#x}")).unwrap_or_default();
            let packet_in =
                packet_in(port, &format!("{:?}", p.reason), p.buffer_id, p.data, p.total_len);
            format!("{packet_in}{metadata}")
        }
        M13::FlowRemoved(r) => removed(
            &flowspace::Match::from_v13(&r.match_).unwrap(),
            r.priority,
            r.cookie,
            &format!("{:?}", r.reason),
            r.packet_count,
        ),
        M13::PortStatus(s) => {
            let port = port_text(s.desc.port_no.0, s.desc.config.0);
            format!("PORT_STATUS {:?} {port}", s.reason)
        }
        M13::QueueGetConfigReply(q) => {
            format!("QUEUES {} {}", q.port.0, list(q.queues.iter(), |q| q.queue_id.to_string()))
        }
        M13::RoleReply(r) => format!("ROLE {:?} generation={:#x}", r.role, r.generation_id),
        M13::GetAsyncReply(a) => {
            format!(
                "ASYNC {:?} {:?} {:?}",
                a.packet_in_mask, a.port_status_mask, a.flow_removed_mask
            )
        }
        M13::Experimenter(e) => format!("VENDOR {:#x}", e.experimenter),
        M13::MultipartReply(reply) => {
            let more = more(reply.flags.contains(MultipartFlags::MORE));
            format!("{}{more}", statistics_v13(&reply.body)).trim_end().to_owned()
        }
        other => format!("{other:?}"),
    }
    .trim_end()
    .to_owned()
}

fn statistics_v13(body: &MultipartReplyBody<'_>) -> String {
    match body {
        MultipartReplyBody::Desc(d) => format!("STATS desc {:?}", d.dp_desc),
        MultipartReplyBody::Flow(entries) => {
            let entries = entries.iter().map(|e| Entry {
                match_: flowspace::Match::from_v13(&e.match_).unwrap(),
                table: e.table_id,
                priority: e.priority,
                cookie: e.cookie,
                packets: e.packet_count,
                actions: text_v13(e.instructions),
            });
            format!("STATS flow {}", flows(entries))
        }
        MultipartReplyBody::Aggregate(a) => {
            format!("STATS aggregate flows={} n={}", a.flow_count, a.packet_count)
        }
        MultipartReplyBody::Table(tables) => statistics("table", tables.iter(), |t| {
            table(t.table_id, t.active_count, [t.lookup_count, t.matched_count])
        }),
        MultipartReplyBody::PortStats(ports) => {
            statistics("port", ports.iter(), |p| p.port_no.0.to_string())
        }
        MultipartReplyBody::Queue(queues) => {
            statistics("queue", queues.iter(), |q| format!("{}:{}", q.port_no.0, q.queue_id))
        }
        MultipartReplyBody::PortDesc(ports) => {
            statistics("port_desc", ports.iter(), |p| port_text(p.port_no.0, p.config.0))
        }
        MultipartReplyBody::Group(groups) => statistics("group", groups.iter(), |g| {
            let buckets = list(g.bucket_stats.iter(), |it| it.packet_count.to_string());
            format!("{}:{}({buckets})", g.group_id, g.packet_count)
        }),
        MultipartReplyBody::GroupDesc(groups) => {
            let bucket = |b: v13::Bucket<'_>| match b.watch_group {
                v13::GROUP_ANY => actions_text_v13(b.actions),
                watched => format!("g{watched}@{}", actions_text_v13(b.actions)),
            };
            let buckets = |g: v13::GroupDesc<'_>| list(g.buckets.iter(), bucket);
            let text = |g: v13::GroupDesc<'_>| format!("{}:{}", g.group_id, buckets(g));
            statistics("group_desc", groups.iter(), text)
        }
        MultipartReplyBody::Meter(meters) => statistics("meter", meters.iter(), |m| {
            let bands = list(m.band_stats.iter(), |band| band.packet_band_count.to_string());
            format!("{}:{}({bands})", m.meter_id, m.packet_in_count)
        }),
        MultipartReplyBody::MeterConfig(meters) => {
            statistics("meter_config", meters.iter(), |m| m.meter_id.to_string())
        }
        MultipartReplyBody::GroupFeatures(_) => "STATS group_features".to_owned(),
        MultipartReplyBody::MeterFeatures(_) => "STATS meter_features".to_owned(),
        MultipartReplyBody::TableFeatures(tables) => {
            statistics("table_features", tables.iter(), |t| t.table_id.to_string())
        }
        other => format!("STATS {other:?}"),
    }
}
