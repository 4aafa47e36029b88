//! The multipart requests and replies of OpenFlow 1.3, with a value in every field.

use super::samples::Samples;
use super::samples_v13::{bands, port};
use openflow::text::{Name, Text};
use openflow::v13::*;
use openflow::{List, ListBuf};

pub fn add(samples: &mut Samples) {
    multipart_requests(samples);
    multipart_replies(samples);
    table_features(samples);
}

fn multipart_requests(samples: &mut Samples) {
    use MultipartRequestBody as Body;
    let mut match_ = MatchBuf::new();
    match_.exact(OxmField::IN_PORT, 1);
    let flows = FlowStatsRequest {
        table_id: 3,
        out_port: PortNo(2),
        out_group: 4,
        cookie: 0x10,
        cookie_mask: 0xff,
        match_: match_.as_match(),
    };
    for (name, body) in [
        ("desc", Body::Desc),
        ("flow", Body::Flow(flows)),
        ("aggregate", Body::Aggregate(FlowStatsRequest::default())),
        ("table", Body::Table),
        ("port, all", Body::PortStats { port_no: PortNo::ANY }),
        ("queue, all", Body::Queue { port_no: PortNo::ANY, queue_id: QUEUE_ALL }),
        ("group, all", Body::Group { group_id: GROUP_ALL }),
        ("group desc", Body::GroupDesc),
        ("group features", Body::GroupFeatures),
        ("meter, all", Body::Meter { meter_id: METER_ALL }),
        ("meter config", Body::MeterConfig { meter_id: 5 }),
        ("meter features", Body::MeterFeatures),
        ("table features", Body::TableFeatures(List::EMPTY)),
        ("port desc", Body::PortDesc),
        ("experimenter", Body::Experimenter { experimenter: 0x2320, exp_type: 3, body: &[] }),
    ] {
        samples.v13(&format!("multipart request: {name}"), Message::MultipartRequest(body.into()));
    }
}

fn multipart_replies(samples: &mut Samples) {
    use MultipartReplyBody as Body;
    let reply = |samples: &mut Samples, name: &str, body: Body<'_>| {
        samples.v13(&format!("multipart reply: {name}"), Message::MultipartReply(body.into()));
    };
    let desc = DescStats {
        mfr_desc: Text::new("Nobody"),
        hw_desc: Text::new("A virtual switch"),
        sw_desc: Text::new("0.1"),
        serial_num: Text::new("None"),
        dp_desc: Text::new("br0"),
    };
    reply(samples, "desc", Body::Desc(desc));
    let mut match_ = MatchBuf::new();
    match_.exact(OxmField::IN_PORT, 1);
    let actions = ListBuf::from([Action::Output { port: PortNo(2), max_len: 0 }]);
    let instructions =
        ListBuf::from([Instruction::ApplyActions(actions.as_list()), Instruction::GotoTable(4)]);
    let flow = FlowStats {
        table_id: 3,
        duration_sec: 4,
        duration_nsec: 200_000_000,
        priority: 0x8000,
        idle_timeout: 60,
        hard_timeout: 120,
        flags: FlowModFlags::SEND_FLOW_REM,
        cookie: 0xabc,
        packet_count: 5,
        byte_count: 320,
        match_: match_.as_match(),
        instructions: instructions.as_list(),
    };
    let flows =
        ListBuf::from([flow, FlowStats { match_: Match::ANY, instructions: List::EMPTY, ..flow }]);
    reply(samples, "flow", Body::Flow(flows.as_list()));
    reply(samples, "flow, none", Body::Flow(List::EMPTY));
    let more = MultipartReply { flags: MultipartFlags::MORE, body: Body::Flow(flows.as_list()) };
    samples.v13("multipart reply: flow, more follow", Message::MultipartReply(more));
    let aggregate = AggregateStats { packet_count: 121, byte_count: 19279, flow_count: 4 };
    reply(samples, "aggregate", Body::Aggregate(aggregate));
    let tables = ListBuf::from([TableStats {
        table_id: 0,
        active_count: 2,
        lookup_count: 30,
        matched_count: 20,
    }]);
    reply(samples, "table", Body::Table(tables.as_list()));
    let ports = ListBuf::from([PortStats {
        port_no: PortNo(1),
        rx_packets: 1,
        tx_packets: 2,
        rx_bytes: 3,
        tx_bytes: 4,
        rx_dropped: 5,
        tx_dropped: 6,
        rx_errors: 7,
        tx_errors: 8,
        rx_frame_err: 9,
        rx_over_err: 10,
        rx_crc_err: 11,
        collisions: u64::MAX,
        duration_sec: 12,
        duration_nsec: 130_000_000,
    }]);
    reply(samples, "port", Body::PortStats(ports.as_list()));
    let queues = ListBuf::from([QueueStats {
        port_no: PortNo(3),
        queue_id: 1,
        tx_bytes: 302,
        tx_packets: 1,
        tx_errors: 2,
        duration_sec: 100,
        duration_nsec: 500_000_000,
    }]);
    reply(samples, "queue", Body::Queue(queues.as_list()));
    group_replies(samples, actions.as_list());
    meter_replies(samples);
    let ports = ListBuf::from([port(1), Port { port_no: PortNo::LOCAL, ..port(2) }]);
    reply(samples, "port desc", Body::PortDesc(ports.as_list()));
    let experimenter = Body::Experimenter { experimenter: 0x2320, exp_type: 4, body: &[] };
    reply(samples, "experimenter", experimenter);
}

fn group_replies(samples: &mut Samples, actions: List<'_, Action<'_>>) {
    let counters = ListBuf::from([
        BucketCounter { packet_count: 0x1111, byte_count: 0x2222 },
        BucketCounter { packet_count: 0x3333, byte_count: 0x4444 },
    ]);
    let stats = ListBuf::from([GroupStats {
        group_id: 4,
        ref_count: 3,
        packet_count: 0x4444,
        byte_count: 0x6666,
        duration_sec: 16,
        duration_nsec: 300_000_000,
        bucket_stats: counters.as_list(),
    }]);
    samples.v13(
        "multipart reply: group",
        Message::MultipartReply(MultipartReplyBody::Group(stats.as_list()).into()),
    );
    let buckets = ListBuf::from([Bucket { weight: 30, actions, ..Bucket::default() }]);
    let groups = ListBuf::from([GroupDesc {
        type_: GroupType::SELECT,
        group_id: 4,
        buckets: buckets.as_list(),
    }]);
    samples.v13(
        "multipart reply: group desc",
        Message::MultipartReply(MultipartReplyBody::GroupDesc(groups.as_list()).into()),
    );
    let features = GroupFeatures {
        types: 0xf,
        capabilities: GroupCapabilities::SELECT_WEIGHT | GroupCapabilities::CHAINING,
        max_groups: [1, 2, 3, 4],
        actions: [1, 0x0203_9801, 1, 0x0040_0001],
    };
    samples.v13(
        "multipart reply: group features",
        Message::MultipartReply(MultipartReplyBody::GroupFeatures(features).into()),
    );
}

fn meter_replies(samples: &mut Samples) {
    let counters = ListBuf::from([
        MeterBandCounter { packet_band_count: 0x7a, byte_band_count: 0x7b },
        MeterBandCounter { packet_band_count: 0x7c, byte_band_count: 0x7d },
    ]);
    let stats = ListBuf::from([MeterStats {
        meter_id: 5,
        flow_count: 2,
        packet_in_count: 0x1234,
        byte_in_count: 0x56789,
        duration_sec: 16,
        duration_nsec: 300_000_000,
        band_stats: counters.as_list(),
    }]);
    samples.v13(
        "multipart reply: meter",
        Message::MultipartReply(MultipartReplyBody::Meter(stats.as_list()).into()),
    );
    let bands = bands();
    let meters = ListBuf::from([MeterConfig {
        flags: MeterFlags::PKTPS | MeterFlags::BURST,
        meter_id: 5,
        bands: bands.as_list(),
    }]);
    samples.v13(
        "multipart reply: meter config",
        Message::MultipartReply(MultipartReplyBody::MeterConfig(meters.as_list()).into()),
    );
    let features = MeterFeatures {
        max_meter: 0x10000,
        band_types: 6,
        capabilities: 0xf,
        max_bands: 9,
        max_color: 8,
    };
    samples.v13(
        "multipart reply: meter features",
        Message::MultipartReply(MultipartReplyBody::MeterFeatures(features).into()),
    );
}

fn table_features(samples: &mut Samples) {
    use TableFeaturesProperty as Property;
    let instructions =
        ListBuf::from([1, 2, 3, 4, 5, 6].map(|type_| InstructionId { type_, body: &[] }));
    let actions = ListBuf::from([0, 17, 18, 22, 25].map(|type_| ActionId { type_, body: &[] }));
    let ids: Vec<OxmId> = [
        (OxmField::IN_PORT, 4, false),
        (OxmField::ETH_SRC, 12, true),
        (OxmField::VLAN_VID, 4, true),
    ]
    .map(|(field, length, has_mask)| OxmId {
        class: OxmClass::OPENFLOW_BASIC,
        field,
        has_mask,
        length,
        experimenter: None,
    })
    .to_vec();
    let matches = ListBuf::from(&ids[..]);
    let settable = ListBuf::from([OxmId {
        class: OxmClass::OPENFLOW_BASIC,
        field: OxmField::ETH_DST,
        has_mask: false,
        length: 6,
        experimenter: None,
    }]);
    let properties = ListBuf::from([
        Property::Instructions(instructions.as_list()),
        Property::InstructionsMiss(instructions.as_list()),
        Property::NextTables(&[1, 2, 3]),
        Property::NextTablesMiss(&[1, 2]),
        Property::WriteActions(actions.as_list()),
        Property::WriteActionsMiss(actions.as_list()),
        Property::ApplyActions(actions.as_list()),
        Property::ApplyActionsMiss(actions.as_list()),
        Property::Match(matches.as_list()),
        Property::Wildcards(settable.as_list()),
        Property::WriteSetField(settable.as_list()),
        Property::WriteSetFieldMiss(settable.as_list()),
        Property::ApplySetField(settable.as_list()),
        Property::ApplySetFieldMiss(settable.as_list()),
    ]);
    let tables = ListBuf::from([TableFeatures {
        table_id: 0,
        name: Name::new("classifier"),
        metadata_match: u64::MAX,
        metadata_write: 0xffff,
        config: 0,
        max_entries: 1_000_000,
        properties: properties.as_list(),
    }]);
    samples.v13(
        "multipart reply: table features",
        Message::MultipartReply(MultipartReplyBody::TableFeatures(tables.as_list()).into()),
    );
}
