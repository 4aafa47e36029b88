//! Answers statistics requests of 1.0.

use flowspace::{Match, port_from_v10, port_to_v10};
use openflow::error::v13 as code;
use openflow::text::{Name, Text};
use openflow::v10::{
    AggregateStats, DescStats, FlowStats, FlowStatsRequest, PortNo, PortStats, QUEUE_ALL,
    QueueStats, StatsRequest, StatsRequestBody, TABLE_ALL, TableStats, Wildcards,
};
use openflow::{ErrorCode, Version};

use super::flow;
use crate::action::ANY_GROUP;
use crate::datapath::Filter;
use crate::parts::Parts;
use crate::ports::Port;
use crate::request::Request;
use crate::state::State;
use crate::table::Flow;

pub(super) fn answer(
    switch: &mut State,
    request: &Request<'_>,
    body: &StatsRequest<'_>,
) -> Result<(), ErrorCode> {
    let mut out = Vec::new();
    let max_entries = switch.faults.statistics_pace().map_or(usize::MAX, |(entries, _)| entries);
    let kind = body.type_().0;
    let mut parts = Parts::new(Version::V1_0, kind, request.header.xid, max_entries, &mut out);
    match &body.body {
        StatsRequestBody::Desc => parts.entry(|out| description(switch, out)),
        StatsRequestBody::Flow(wanted) => flows(switch, request.now, wanted, &mut parts),
        StatsRequestBody::Aggregate(wanted) => {
            let sum = aggregate(switch, wanted);
            parts.entry(|out| sum.write(out));
        }
        StatsRequestBody::Table => tables(switch, &mut parts),
        StatsRequestBody::Port { port_no } => ports(switch, *port_no, &mut parts),
        StatsRequestBody::Queue { port_no, queue_id } => {
            queues(switch, *port_no, *queue_id, &mut parts)?;
        }
        StatsRequestBody::Vendor { .. } => return Err(code::BAD_REQUEST_BAD_EXPERIMENTER),
        StatsRequestBody::Unknown { .. } => return Err(code::BAD_REQUEST_BAD_MULTIPART),
    }
    parts.finish();
    if let Some(session) = switch.session(request.session) {
        session.out.append(&mut out);
    }
    Ok(())
}

fn description(switch: &State, out: &mut Vec<u8>) {
    let serial = format!("{:016x}", switch.config.dpid);
    DescStats {
        mfr_desc: Text::new("Weir"),
        hw_desc: Text::new(&switch.config.hardware),
        sw_desc: Text::new(&switch.config.software),
        serial_num: Text::new(&serial),
        dp_desc: Text::new("none"),
    }
    .write(out);
}

/// The entries that a request selects, with their tables.
fn wanted_flows<'s>(
    switch: &'s State,
    wanted: &FlowStatsRequest,
) -> impl Iterator<Item = (u8, &'s Flow)> {
    let filter = Filter {
        match_: Match::from_v10(&wanted.match_),
        strict: None,
        cookie: 0,
        cookie_mask: 0,
        out_port: port_from_v10(wanted.out_port.0),
        out_group: ANY_GROUP,
    };
    let table_id = wanted.table_id;
    switch
        .flows()
        .filter(move |(table, _)| table_id == TABLE_ALL || table_id == *table)
        .filter(move |(_, flow)| filter.accepts(flow))
}

/// Writes flow statistics. Entries that 1.0 cannot describe (added by a 1.3 controller) are left
/// out.
fn flows(switch: &State, now: u64, wanted: &FlowStatsRequest, parts: &mut Parts<'_>) {
    for (table_id, entry) in wanted_flows(switch, wanted) {
        let (Ok(match_), Some(actions)) =
            (entry.match_.to_v10(), flow::to_wire(&entry.instructions))
        else {
            continue;
        };
        let (duration_sec, duration_nsec) =
            crate::table::seconds(now.saturating_sub(entry.created));
        let stats = FlowStats {
            table_id,
            match_,
            duration_sec,
            duration_nsec,
            priority: entry.priority,
            idle_timeout: entry.idle_timeout,
            hard_timeout: entry.hard_timeout,
            cookie: entry.cookie,
            packet_count: entry.packets,
            byte_count: entry.bytes,
            actions: actions.as_list(),
        };
        parts.entry(|out| stats.write(out));
    }
}

fn aggregate(switch: &State, wanted: &FlowStatsRequest) -> AggregateStats {
    wanted_flows(switch, wanted).fold(AggregateStats::default(), |sum, (_, flow)| AggregateStats {
        packet_count: sum.packet_count + flow.packets,
        byte_count: sum.byte_count + flow.bytes,
        flow_count: sum.flow_count + 1,
    })
}

fn tables(switch: &State, parts: &mut Parts<'_>) {
    for (table_id, table) in (0u8..).zip(&switch.datapath.tables) {
        let name = if table_id == 0 { "classifier".to_owned() } else { format!("table{table_id}") };
        let stats = TableStats {
            table_id,
            name: Name::new(&name),
            wildcards: Wildcards::ALL,
            max_entries: switch.faults.reported_size(table.max_flows()),
            active_count: table.len() as u32,
            lookup_count: table.lookups,
            matched_count: table.matched,
        };
        parts.entry(|out| stats.write(out));
    }
}

/// Writes port statistics. A port that does not exist has no statistics, which is no error.
fn ports(switch: &State, wanted: PortNo, parts: &mut Parts<'_>) {
    let is_wanted =
        |port: &&Port| wanted == PortNo::NONE || port.made.number == port_from_v10(wanted.0);
    for port in switch.ports().filter(is_wanted) {
        let Some(number) = port_to_v10(port.made.number) else { continue };
        let counters = &port.counters;
        let stats = PortStats {
            port_no: PortNo(number),
            rx_packets: counters.rx_packets,
            tx_packets: counters.tx_packets,
            rx_bytes: counters.rx_bytes,
            tx_bytes: counters.tx_bytes,
            rx_dropped: counters.rx_dropped,
            tx_dropped: counters.tx_dropped,
            rx_errors: 0,
            tx_errors: 0,
            rx_frame_err: 0,
            rx_over_err: 0,
            rx_crc_err: 0,
            collisions: 0,
        };
        parts.entry(|out| stats.write(out));
    }
}

fn queues(
    switch: &State,
    wanted: PortNo,
    queue: u32,
    parts: &mut Parts<'_>,
) -> Result<(), ErrorCode> {
    let every_port = wanted == PortNo::ALL;
    if !every_port && switch.port(port_from_v10(wanted.0)).is_none() {
        return Err(code::QUEUE_OP_FAILED_BAD_PORT);
    }
    let mut found = false;
    for port in switch.ports() {
        let Some(number) = port_to_v10(port.made.number) else { continue };
        if !every_port && number != wanted.0 {
            continue;
        }
        for (queue_id, counters) in &port.queues {
            if queue != QUEUE_ALL && queue != *queue_id {
                continue;
            }
            found = true;
            let stats = QueueStats {
                port_no: PortNo(number),
                queue_id: *queue_id,
                tx_bytes: counters.tx_bytes,
                tx_packets: counters.tx_packets,
                tx_errors: 0,
            };
            parts.entry(|out| stats.write(out));
        }
    }
    if found || queue == QUEUE_ALL { Ok(()) } else { Err(code::QUEUE_OP_FAILED_BAD_QUEUE) }
}
