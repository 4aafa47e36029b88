//! Questions of Weir for statistics, and the contents of answers.

use super::flow_mod::wanted;
use super::unreadable;
use crate::flows::{Asked, Counted, Flow, Rule, Wanted};
use crate::parts::written;
use crate::south::pending::{Awaits, Purpose};
use crate::south::queue::Question;
use crate::south::reports::{Age, ReportedRule, TimeoutsAndFlags};
use crate::tally::Count;
use alloc::vec;
use alloc::vec::Vec;
use compile::{Network, Refused};
use flowspace::{Match, port_from_v10, port_to_v10};
use hashbrown::HashSet;
use openflow::text::Name;
use openflow::v10::{
    self, ConfigFlags, FlowStats, FlowStatsRequest, Message, PortNo, PortStats, QueueStats,
    StatsFlags, StatsReply, StatsRequest, StatsRequestBody, SwitchConfig, TABLE_ALL, TableStats,
    Wildcards,
};
use openflow::v13::{self, MultipartRequestBody as Body};
use openflow::{ErrorCode, List};

/// The configuration and the questions that a switch gets when it connects.
pub(crate) fn questions(miss_send_len: u16) -> Vec<(Awaits, Vec<u8>)> {
    let mut config = Vec::new();
    let written =
        Message::SetConfig(SwitchConfig { flags: ConfigFlags::FRAG_NORMAL, miss_send_len })
            .write(0, &mut config);
    debug_assert!(written.is_ok());
    let flows = question(StatsRequestBody::Flow(FlowStatsRequest::default()));
    vec![(Awaits::Nothing, config), (Awaits::Own(Purpose::Flows), flows)]
}

/// The rules in the switch's answer to a question for its flows.
pub(crate) fn reported_rules(entries: &[u8]) -> Vec<ReportedRule> {
    List::<FlowStats<'_>>::parse(entries)
        .unwrap_or_default()
        .iter()
        .map(|entry| {
            ReportedRule {
                // The switch chooses one of its tables for a rule; no FLOW_MOD names a table.
                table: 0,
                match_: Match::from_v10(&entry.match_),
                match_wire: written(&entry.match_),
                priority: entry.priority,
                cookie: entry.cookie,
                actions: entry.actions.as_bytes().to_vec(),
                packets: entry.packet_count,
                stood: Age { duration_sec: entry.duration_sec, duration_nsec: entry.duration_nsec },
                // Statistics have no flags. All rules have this flag.
                terms: TimeoutsAndFlags {
                    idle_timeout: entry.idle_timeout,
                    hard_timeout: entry.hard_timeout,
                    flags: v10::FlowModFlags::SEND_FLOW_REM.0,
                },
            }
        })
        .collect()
}

/// The cost of a question with a long answer: as many messages for the switch.
const FLOWS_COST: u32 = 4;

/// The message of a question.
fn question(body: StatsRequestBody<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    let written = StatsRequest::from(body).write_message(0, &mut out);
    debug_assert!(written.is_ok());
    out
}

/// The question for the switch's description.
pub(crate) fn description() -> Vec<u8> {
    question(StatsRequestBody::Desc)
}

/// The question for the counters of all ports.
pub(crate) fn port_counters() -> Vec<u8> {
    question(StatsRequestBody::Port { port_no: PortNo::NONE })
}

/// The questions for the sizes of the tables.
pub(crate) fn room() -> Vec<Vec<u8>> {
    Vec::from([rules_in_tables()])
}

/// The question for the numbers of rules in the tables.
pub(crate) fn rules_in_tables() -> Vec<u8> {
    question(StatsRequestBody::Table)
}

/// The questions for the entries of a network: all packets at its ingress ports.
pub(crate) fn port_questions(network: &Network) -> Vec<v10::Match> {
    let mut asked = Vec::new();
    let arrivals = network.ingress_ports().flat_map(|port| network.incoming(port));
    for wire in arrivals.filter_map(|incoming| incoming.match_.to_v10().ok()) {
        if !asked.contains(&wire) {
            asked.push(wire);
        }
    }
    asked
}

/// A tenant's request for statistics. Where 1.0 names all ports by `ALL`, 1.3 names them by `ANY`.
pub(crate) fn asked(body: &[u8], _metadata_kept: u64) -> Result<Asked<'_>, Refused> {
    let of = |filter: FlowStatsRequest| Wanted {
        table: Some(filter.table_id).filter(|table| ![TABLE_ALL, 0].contains(table)),
        ..wanted(&filter.match_, filter.out_port)
    };
    Ok(Asked::Other(match StatsRequest::parse(body).map_err(unreadable)?.body {
        StatsRequestBody::Flow(filter) => return Ok(Asked::Flows(of(filter))),
        StatsRequestBody::Aggregate(filter) => return Ok(Asked::Aggregate(of(filter))),
        StatsRequestBody::Desc => Body::Desc,
        StatsRequestBody::Table => Body::Table,
        StatsRequestBody::Port { port_no } => Body::PortStats { port_no: port_of(port_no) },
        StatsRequestBody::Queue { port_no, queue_id } => {
            let port_no = if port_no == PortNo::ALL { PortNo::NONE } else { port_no };
            Body::Queue { port_no: port_of(port_no), queue_id }
        }
        StatsRequestBody::Vendor { vendor, body } => {
            Body::Experimenter { experimenter: vendor, exp_type: 0, body }
        }
        StatsRequestBody::Unknown { type_, body } => Body::Unknown { type_, body },
    }))
}

/// A port in the numbering of 1.3.
fn port_of(port: PortNo) -> v13::PortNo {
    v13::PortNo(port_from_v10(port.0))
}

/// The question for a tenant's request, as Weir's own message.
pub(crate) fn ask_again(body: &[u8]) -> Vec<u8> {
    StatsRequest::parse(body).map(|it| question(it.body)).unwrap_or_default()
}

/// The question for the counters of the entries that this match contains.
pub(crate) fn flow_question(match_: v10::Match) -> Vec<u8> {
    question(StatsRequestBody::Flow(FlowStatsRequest { match_, ..FlowStatsRequest::default() }))
}

/// Whether more parts of the switch's answer follow.
pub(crate) fn has_more(body: &[u8]) -> Result<bool, ErrorCode> {
    let reply = StatsReply::parse(body).map_err(unreadable)?;
    Ok(reply.flags.contains(StatsFlags::REPLY_MORE))
}

/// Rules that a switch has reported, by cookie and match.
pub(crate) type Reported = HashSet<(u64, v10::Match)>;

/// The counters of rules on the switch. A rule that overlaps two of the tenant's flowspace entries is reported for each
/// of them, and counted once.
pub(crate) fn counted<'a>(entries: &'a [u8], before: &mut Reported) -> Vec<Counted<'a>> {
    let entries = List::<FlowStats<'_>>::parse(entries).unwrap_or_default();
    let entries = entries.iter().filter(|it| before.insert((it.cookie, it.match_)));
    let counted = entries.map(|it| Counted {
        cookie: it.cookie,
        table: it.table_id,
        count: Count { packets: it.packet_count, bytes: it.byte_count },
        stood: Age { duration_sec: it.duration_sec, duration_nsec: it.duration_nsec },
        actions: it.actions.as_bytes(),
    });
    counted.collect()
}

/// Appends flow statistics of a tenant's entry.
pub(crate) fn write_flow_statistics(flow: &Flow, count: Count, stood: Age, out: &mut Vec<u8>) {
    FlowStats {
        table_id: 0,
        match_: v10::Match::parse(&flow.match_wire).unwrap_or_default(),
        duration_sec: stood.duration_sec,
        duration_nsec: stood.duration_nsec,
        priority: flow.priority,
        idle_timeout: flow.idle_timeout,
        hard_timeout: flow.hard_timeout,
        cookie: flow.cookie,
        packet_count: count.packets,
        byte_count: count.bytes,
        actions: List::parse(&flow.actions).unwrap_or_default(),
    }
    .write(out);
}

/// Table statistics of one table.
pub(crate) fn written_table(
    table_id: u8,
    max_entries: u32,
    active_count: u32,
    lookup_count: u64,
    matched_count: u64,
) -> Vec<u8> {
    let (name, wildcards) = (Name::new("slice"), Wildcards::ALL);
    written(&TableStats {
        table_id,
        name,
        wildcards,
        max_entries,
        active_count,
        lookup_count,
        matched_count,
    })
}

/// Port statistics, in the form of 1.3.
pub(crate) fn ports(entries: &[u8]) -> Vec<v13::PortStats> {
    let ports = List::<PortStats>::parse(entries).unwrap_or_default();
    let ports = ports.iter().map(|it| v13::PortStats {
        port_no: port_of(it.port_no),
        rx_packets: it.rx_packets,
        tx_packets: it.tx_packets,
        rx_bytes: it.rx_bytes,
        tx_bytes: it.tx_bytes,
        rx_dropped: it.rx_dropped,
        tx_dropped: it.tx_dropped,
        rx_errors: it.rx_errors,
        tx_errors: it.tx_errors,
        rx_frame_err: it.rx_frame_err,
        rx_over_err: it.rx_over_err,
        rx_crc_err: it.rx_crc_err,
        collisions: it.collisions,
        duration_sec: 0,
        duration_nsec: 0,
    });
    ports.collect()
}

/// Port statistics of one port; `None` for a port that 1.0 cannot name.
pub(crate) fn written_port(it: &v13::PortStats) -> Option<Vec<u8>> {
    Some(written(&PortStats {
        port_no: PortNo(port_to_v10(it.port_no.0)?),
        rx_packets: it.rx_packets,
        tx_packets: it.tx_packets,
        rx_bytes: it.rx_bytes,
        tx_bytes: it.tx_bytes,
        rx_dropped: it.rx_dropped,
        tx_dropped: it.tx_dropped,
        rx_errors: it.rx_errors,
        tx_errors: it.tx_errors,
        rx_frame_err: it.rx_frame_err,
        rx_over_err: it.rx_over_err,
        rx_crc_err: it.rx_crc_err,
        collisions: it.collisions,
    }))
}

/// Queue statistics of the tenant's own queues.
pub(crate) fn own_queues(entries: &[u8], is_own: impl Fn(u32, u32) -> bool) -> Vec<Vec<u8>> {
    let queues = List::<QueueStats>::parse(entries).unwrap_or_default();
    let own = queues.iter().filter(|it| is_own(port_from_v10(it.port_no.0), it.queue_id));
    own.map(|it| written(&it)).collect()
}

/// One question for each rule except one, by its match: the answer has narrower rules as well.
pub(crate) fn questions_of(
    flow: &Flow,
    except: &Rule,
    _cookie: u64,
    _first_table: u8,
) -> Vec<Question> {
    let asked = flow.rules.iter().filter(|rule| rule.match_wire != except.match_wire);
    let matches = asked.filter_map(|rule| v10::Match::parse(&rule.match_wire).ok());
    let questions = matches.map(flow_question);
    questions.map(|message| Question { message, cost: FLOWS_COST }).collect()
}
