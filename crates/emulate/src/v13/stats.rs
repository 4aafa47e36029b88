//! Answers multipart requests of 1.3.

use flowspace::Match;
use openflow::error::v13 as code;
use openflow::text::Text;
use openflow::v13::{
    AggregateStats, Bucket as WireBucket, BucketCounter, DescStats, FlowModFlags, FlowStats,
    FlowStatsRequest, GROUP_ALL, GroupCapabilities, GroupDesc, GroupFeatures, GroupStats,
    GroupType, METER_ALL, MeterBand, MeterBandCounter, MeterConfig, MeterFeatures, MeterFlags,
    MeterStats, MultipartFlags, MultipartRequest, MultipartRequestBody as Body, PortNo, PortStats,
    QUEUE_ALL, QueueStats, TABLE_ALL, TableStats,
};
use openflow::{ErrorCode, ListBuf, Version};

use super::{actions, features, flow, wire};
use crate::datapath::{Filter, MAX_BANDS, MAX_GROUPS, MAX_METERS};
use crate::groups::{Group, GroupKind};
use crate::meters::{BandKind, Meter};
use crate::parts::Parts;
use crate::ports::Port;
use crate::request::Request;
use crate::state::State;
use crate::table::{Flow, seconds};

pub(super) fn answer(
    switch: &mut State,
    request: &Request<'_>,
    body: &MultipartRequest<'_>,
) -> Result<(), ErrorCode> {
    if body.flags.contains(MultipartFlags::MORE) {
        // Only a table-features request can have parts, and the switch does not support changes of
        // tables.
        return Err(code::BAD_REQUEST_MULTIPART_BUFFER_OVERFLOW);
    }
    let mut out = Vec::new();
    let max_entries = switch.faults.statistics_pace().map_or(usize::MAX, |(entries, _)| entries);
    let kind = body.type_().0;
    let mut parts = Parts::new(Version::V1_3, kind, request.header.xid, max_entries, &mut out);
    write(switch, request.now, &body.body, &mut parts)?;
    parts.finish();
    if let Some(session) = switch.session(request.session) {
        session.out.append(&mut out);
    }
    Ok(())
}

fn write(
    switch: &State,
    now: u64,
    body: &Body<'_>,
    parts: &mut Parts<'_>,
) -> Result<(), ErrorCode> {
    match body {
        Body::Desc => parts.entry(|out| description(switch, out)),
        Body::Flow(wanted) => flows(switch, now, wanted, parts)?,
        Body::Aggregate(wanted) => {
            let sum = aggregate(switch, wanted)?;
            parts.entry(|out| sum.write(out));
        }
        Body::Table => tables(switch, parts),
        Body::PortStats { port_no } => ports(switch, now, *port_no, parts),
        Body::Queue { port_no, queue_id } => queues(switch, now, *port_no, *queue_id, parts)?,
        Body::Group { group_id } => {
            let wanted = |id| *group_id == GROUP_ALL || *group_id == id;
            for (id, group) in switch.datapath.groups.iter().filter(|(id, _)| wanted(*id)) {
                parts.entry(|out| group_stats(switch, now, id, group, out));
            }
        }
        Body::GroupDesc => {
            for (id, group) in switch.datapath.groups.iter() {
                parts.entry(|out| group_desc(id, group, out));
            }
        }
        Body::GroupFeatures => parts.entry(|out| group_features(switch).write(out)),
        Body::Meter { meter_id } => {
            for (id, meter) in wanted_meters(switch, *meter_id)? {
                parts.entry(|out| meter_stats(switch, now, id, meter, out));
            }
        }
        Body::MeterConfig { meter_id } => {
            for (id, meter) in wanted_meters(switch, *meter_id)? {
                parts.entry(|out| meter_config(id, meter, out));
            }
        }
        Body::MeterFeatures => parts.entry(|out| meter_features().write(out)),
        Body::TableFeatures(wanted) if wanted.is_empty() => {
            features::write(switch, |entry| parts.entry(|out| entry.write(out)));
        }
        Body::TableFeatures(_) => return Err(code::TABLE_FEATURES_FAILED_EPERM),
        Body::PortDesc => {
            for port in switch.ports() {
                parts.entry(|out| wire::port(port).write(out));
            }
        }
        Body::Experimenter { .. } => return Err(code::BAD_REQUEST_BAD_EXPERIMENTER),
        Body::Unknown { .. } => return Err(code::BAD_REQUEST_BAD_MULTIPART),
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
    wanted: &FlowStatsRequest<'_>,
) -> Result<impl Iterator<Item = (u8, &'s Flow)> + use<'s>, ErrorCode> {
    let table_id = wanted.table_id;
    if table_id != TABLE_ALL && table_id >= switch.config.n_tables {
        return Err(code::BAD_REQUEST_BAD_TABLE_ID);
    }
    let filter = Filter {
        match_: Match::from_v13(&wanted.match_).map_err(|fault| fault.error_code())?,
        strict: None,
        cookie: wanted.cookie,
        cookie_mask: wanted.cookie_mask,
        out_port: wanted.out_port.0,
        out_group: wanted.out_group,
    };
    Ok(switch
        .flows()
        .filter(move |(table, _)| table_id == TABLE_ALL || table_id == *table)
        .filter(move |(_, flow)| filter.accepts(flow)))
}

fn flows(
    switch: &State,
    now: u64,
    wanted: &FlowStatsRequest<'_>,
    parts: &mut Parts<'_>,
) -> Result<(), ErrorCode> {
    for (table_id, entry) in wanted_flows(switch, wanted)? {
        let Some(match_) = wire::match_(&entry.match_) else { continue };
        let (duration_sec, duration_nsec) = seconds(now.saturating_sub(entry.created));
        let instructions = flow::write(&entry.instructions);
        let stats = FlowStats {
            table_id,
            duration_sec,
            duration_nsec,
            priority: entry.priority,
            idle_timeout: entry.idle_timeout,
            hard_timeout: entry.hard_timeout,
            flags: FlowModFlags(entry.flags),
            cookie: entry.cookie,
            packet_count: entry.packets,
            byte_count: entry.bytes,
            match_: match_.as_match(),
            instructions: instructions.as_list(),
        };
        parts.entry(|out| stats.write(out));
    }
    Ok(())
}

fn aggregate(switch: &State, wanted: &FlowStatsRequest<'_>) -> Result<AggregateStats, ErrorCode> {
    let add = |sum: AggregateStats, (_, flow): (u8, &Flow)| AggregateStats {
        packet_count: sum.packet_count + flow.packets,
        byte_count: sum.byte_count + flow.bytes,
        flow_count: sum.flow_count + 1,
    };
    Ok(wanted_flows(switch, wanted)?.fold(AggregateStats::default(), add))
}

fn tables(switch: &State, parts: &mut Parts<'_>) {
    for (table_id, table) in (0u8..).zip(&switch.datapath.tables) {
        let stats = TableStats {
            table_id,
            active_count: table.len() as u32,
            lookup_count: table.lookups,
            matched_count: table.matched,
        };
        parts.entry(|out| stats.write(out));
    }
}

/// Writes port statistics. A port that does not exist has no statistics, which is no error.
fn ports(switch: &State, now: u64, wanted: PortNo, parts: &mut Parts<'_>) {
    let is_wanted = |port: &&Port| wanted == PortNo::ANY || port.made.number == wanted.0;
    for port in switch.ports().filter(is_wanted) {
        let (duration_sec, duration_nsec) = seconds(now.saturating_sub(port.created));
        let counters = &port.counters;
        let stats = PortStats {
            port_no: PortNo(port.made.number),
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
            duration_sec,
            duration_nsec,
        };
        parts.entry(|out| stats.write(out));
    }
}

fn queues(
    switch: &State,
    now: u64,
    wanted: PortNo,
    queue: u32,
    parts: &mut Parts<'_>,
) -> Result<(), ErrorCode> {
    let every_port = wanted == PortNo::ANY;
    if !every_port && switch.port(wanted.0).is_none() {
        return Err(code::QUEUE_OP_FAILED_BAD_PORT);
    }
    let mut found = false;
    let is_wanted = |port: &&Port| every_port || port.made.number == wanted.0;
    for port in switch.ports().filter(is_wanted) {
        let (duration_sec, duration_nsec) = seconds(now.saturating_sub(port.created));
        for (queue_id, counters) in &port.queues {
            if queue != QUEUE_ALL && queue != *queue_id {
                continue;
            }
            found = true;
            let stats = QueueStats {
                port_no: PortNo(port.made.number),
                queue_id: *queue_id,
                tx_bytes: counters.tx_bytes,
                tx_packets: counters.tx_packets,
                tx_errors: 0,
                duration_sec,
                duration_nsec,
            };
            parts.entry(|out| stats.write(out));
        }
    }
    if found || queue == QUEUE_ALL { Ok(()) } else { Err(code::QUEUE_OP_FAILED_BAD_QUEUE) }
}

fn group_stats(switch: &State, now: u64, group_id: u32, group: &Group, out: &mut Vec<u8>) {
    let (duration_sec, duration_nsec) = seconds(now.saturating_sub(group.created));
    let buckets: ListBuf<BucketCounter> = group
        .buckets
        .iter()
        .map(|bucket| BucketCounter { packet_count: bucket.packets, byte_count: bucket.bytes })
        .collect();
    GroupStats {
        group_id,
        ref_count: switch.datapath.group_users(group_id) as u32,
        packet_count: group.packets,
        byte_count: group.bytes,
        duration_sec,
        duration_nsec,
        bucket_stats: buckets.as_list(),
    }
    .write(out);
}

fn group_desc(group_id: u32, group: &Group, out: &mut Vec<u8>) {
    let mut buckets: ListBuf<WireBucket<'_>> = ListBuf::new();
    for bucket in &group.buckets {
        let actions = actions::write(&bucket.actions);
        buckets.push(WireBucket {
            weight: bucket.weight,
            watch_port: PortNo(bucket.watch_port),
            watch_group: bucket.watch_group,
            actions: actions.as_list(),
        });
    }
    let type_ = match group.kind {
        GroupKind::All => GroupType::ALL,
        GroupKind::Select => GroupType::SELECT,
        GroupKind::Indirect => GroupType::INDIRECT,
        GroupKind::FastFailover => GroupType::FF,
    };
    GroupDesc { type_, group_id, buckets: buckets.as_list() }.write(out);
}

fn group_features(switch: &State) -> GroupFeatures {
    let actions = features::ACTIONS.iter().fold(0, |set, type_| set | 1u32 << type_);
    let select = GroupCapabilities::SELECT_WEIGHT | GroupCapabilities::SELECT_LIVENESS;
    let chaining = GroupCapabilities::CHAINING | GroupCapabilities::CHAINING_CHECKS;
    GroupFeatures {
        types: 0xf,
        capabilities: match switch.faults.refuses_chaining() {
            true => select,
            false => select | chaining,
        },
        max_groups: [MAX_GROUPS as u32; 4],
        actions: [actions; 4],
    }
}

/// The meters that a request selects. A meter that the request names must exist.
fn wanted_meters(
    switch: &State,
    wanted: u32,
) -> Result<impl Iterator<Item = (u32, &Meter)>, ErrorCode> {
    let meters = &switch.datapath.meters;
    if wanted != METER_ALL && !meters.contains_key(&wanted) {
        return Err(code::METER_MOD_FAILED_UNKNOWN_METER);
    }
    let all = meters.iter().map(|(id, meter)| (*id, meter));
    Ok(all.filter(move |(id, _)| wanted == METER_ALL || *id == wanted))
}

fn meter_stats(switch: &State, now: u64, meter_id: u32, meter: &Meter, out: &mut Vec<u8>) {
    let (duration_sec, duration_nsec) = seconds(now.saturating_sub(meter.created));
    let bands: ListBuf<MeterBandCounter> = meter
        .bands
        .iter()
        .map(|band| MeterBandCounter {
            packet_band_count: band.packets,
            byte_band_count: band.bytes,
        })
        .collect();
    MeterStats {
        meter_id,
        flow_count: switch.datapath.meter_users(meter_id) as u32,
        packet_in_count: meter.packets,
        byte_in_count: meter.bytes,
        duration_sec,
        duration_nsec,
        band_stats: bands.as_list(),
    }
    .write(out);
}

fn meter_config(meter_id: u32, meter: &Meter, out: &mut Vec<u8>) {
    let bands: ListBuf<MeterBand<'_>> = meter
        .bands
        .iter()
        .map(|band| {
            let (rate, burst_size) = (band.rate, band.burst);
            match band.kind {
                BandKind::Drop => MeterBand::Drop { rate, burst_size },
                BandKind::DscpRemark(prec_level) => {
                    MeterBand::DscpRemark { rate, burst_size, prec_level }
                }
            }
        })
        .collect();
    MeterConfig { flags: MeterFlags(meter.flags), meter_id, bands: bands.as_list() }.write(out);
}

fn meter_features() -> MeterFeatures {
    /// The supported band types: drop and DSCP remark.
    const BAND_TYPES: u32 = 1 << 1 | 1 << 2;
    MeterFeatures {
        max_meter: MAX_METERS as u32,
        band_types: BAND_TYPES,
        capabilities: 0xf,
        max_bands: MAX_BANDS as u8,
        max_color: 0,
    }
}
