//! What Weir asks a switch for statistics, and what answers say.

use crate::flows::{Flow, Rule};
use crate::south::held::Held;
use crate::south::pending::{Awaits, Purpose};
use crate::south::queue::Question;
use alloc::vec;
use alloc::vec::Vec;
use compile::Network;
use flowspace::{Match, port_from_v10, port_to_v10};
use hashbrown::{HashMap, HashSet};
use openflow::List;
use openflow::v10::{
    self, ConfigFlags, FlowStats, FlowStatsRequest, Message, PortNo, PortStats, StatsRequest,
    StatsRequestBody, SwitchConfig,
};

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

/// The entries in the switch's answer about its flows.
pub(crate) fn held(entries: &[u8]) -> Vec<Held> {
    List::<FlowStats<'_>>::parse(entries)
        .unwrap_or_default()
        .iter()
        .map(|entry| {
            let mut match_wire = Vec::with_capacity(v10::Match::LEN);
            entry.match_.write(&mut match_wire);
            Held {
                // Which of its tables the switch has chosen is the switch's affair: no FLOW_MOD names a table.
                table: 0,
                match_: Match::from_v10(&entry.match_),
                match_wire,
                priority: entry.priority,
                cookie: entry.cookie,
                actions: entry.actions.as_bytes().to_vec(),
                stood: (entry.duration_sec, entry.duration_nsec),
                // Statistics have no flags: the one that all rules have.
                terms: (entry.idle_timeout, entry.hard_timeout, v10::FlowModFlags::SEND_FLOW_REM.0),
            }
        })
        .collect()
}

/// "Not counted" (specification section 5.3.5: unsupported counters are set to -1).
pub(crate) const UNSUPPORTED: u64 = u64::MAX;

/// A long answer: each counts as several messages for the switch.
pub(crate) const FLOWS_COST: u32 = 4;

/// The message.
pub(crate) fn question(body: StatsRequestBody<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    let written = StatsRequest::from(body).write_message(0, &mut out);
    debug_assert!(written.is_ok());
    out
}

/// Asks what kind of switch it is.
pub(crate) fn description() -> Vec<u8> {
    question(StatsRequestBody::Desc)
}

/// Asks what all ports have counted.
pub(crate) fn port_counters() -> Vec<u8> {
    question(StatsRequestBody::Port { port_no: PortNo::NONE })
}

/// Asks how much the tables hold.
pub(crate) fn room() -> Vec<Vec<u8>> {
    Vec::from([rules_in_tables()])
}

/// Asks how many rules are in the tables.
pub(crate) fn rules_in_tables() -> Vec<u8> {
    question(StatsRequestBody::Table)
}

/// What the switch is asked for the entries of a network: everything at the ports where it comes in.
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

/// Counts of virtual ports. Those of a whole edge port are the switch's; on what is shared with others the switch counts
/// everybody's packets, so nothing is told.
pub(crate) fn port_statistics(network: &Network, wanted: PortNo, answers: &[u8]) -> Vec<PortStats> {
    let all: HashMap<u32, PortStats> = List::<PortStats>::parse(answers)
        .unwrap_or_default()
        .iter()
        .map(|port| (port_from_v10(port.port_no.0), port))
        .collect();
    let everything = wanted == PortNo::NONE;
    let numbers = network.ports().keys().filter(|n| everything || port_from_v10(wanted.0) == **n);
    numbers
        .filter_map(|&number| {
            let port_no = PortNo(port_to_v10(number)?);
            Some(match network.whole_edge(number).and_then(|port| all.get(&port)) {
                Some(counted) => PortStats { port_no, ..*counted },
                None => not_counted(port_no),
            })
        })
        .collect()
}

fn not_counted(port_no: PortNo) -> PortStats {
    PortStats {
        port_no,
        rx_packets: UNSUPPORTED,
        tx_packets: UNSUPPORTED,
        rx_bytes: UNSUPPORTED,
        tx_bytes: UNSUPPORTED,
        rx_dropped: UNSUPPORTED,
        tx_dropped: UNSUPPORTED,
        rx_errors: UNSUPPORTED,
        tx_errors: UNSUPPORTED,
        rx_frame_err: UNSUPPORTED,
        rx_over_err: UNSUPPORTED,
        rx_crc_err: UNSUPPORTED,
        collisions: UNSUPPORTED,
    }
}

/// One question for each rule but one, by its match: the answer has narrower entries as well.
pub(crate) fn questions_of(
    flow: &Flow,
    except: &Rule,
    _cookie: u64,
    _first_table: u8,
) -> Vec<Question> {
    let asked = flow.rules.iter().filter(|rule| rule.match_wire != except.match_wire);
    let matches = asked.filter_map(|rule| v10::Match::parse(&rule.match_wire).ok());
    let filters = matches.map(|match_| FlowStatsRequest { match_, ..FlowStatsRequest::default() });
    filters
        .map(|filter| Question {
            message: question(StatsRequestBody::Flow(filter)),
            cost: FLOWS_COST,
        })
        .collect()
}

/// The rules of the entry with this cookie that have counted packets.
pub(crate) fn used(entries: &[u8], cookie: u64) -> HashSet<Match> {
    let entries = List::<FlowStats<'_>>::parse(entries).unwrap_or_default();
    let own = entries.iter().filter(|entry| entry.cookie == cookie);
    let used = own.filter(|entry| !matches!(entry.packet_count, 0 | UNSUPPORTED));
    used.map(|entry| Match::from_v10(&entry.match_)).collect()
}
