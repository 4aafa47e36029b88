//! One message of OpenFlow 1.0 of every kind, with a value in every field.

use super::samples::{Samples, TCP_PACKET};
use openflow::text::{Name, Text};
use openflow::v10::*;
use openflow::{Hello, ListBuf};

pub fn add(samples: &mut Samples) {
    handshake(samples);
    packets(samples);
    flows(samples);
    ports_and_queues(samples);
    stats_requests(samples);
    stats_replies(samples);
}

fn handshake(samples: &mut Samples) {
    samples.v10("hello", Message::Hello(Hello { body: &[] }));
    let mut failed = Vec::new();
    Message::BarrierRequest.write(7, &mut failed).unwrap();
    samples.v10("error", Message::Error(Error { code: error::BAD_REQUEST_EPERM, data: &failed }));
    samples.v10("echo request", Message::EchoRequest(b"weir"));
    samples.v10("echo reply", Message::EchoReply(b"weir"));
    samples.v10("echo request, empty", Message::EchoRequest(&[]));
    samples.v10(
        "vendor",
        Message::Vendor(Vendor { vendor: 0x2320, body: &[0, 0, 0, 10, 0, 0, 0, 2] }),
    );
    samples.v10("features request", Message::FeaturesRequest);
    let ports = ListBuf::from([port(1), port(2), PhyPort { port_no: PortNo::LOCAL, ..port(3) }]);
    samples.v10(
        "features reply",
        Message::FeaturesReply(FeaturesReply {
            datapath_id: 0x0000_5254_0012_3456,
            n_buffers: 256,
            n_tables: 254,
            capabilities: Capabilities::FLOW_STATS
                | Capabilities::TABLE_STATS
                | Capabilities::ARP_MATCH_IP,
            actions: SupportedActions(0xfff),
            ports: ports.as_list(),
        }),
    );
    samples.v10("get config request", Message::GetConfigRequest);
    let config = SwitchConfig { flags: ConfigFlags::FRAG_DROP, miss_send_len: 128 };
    samples.v10("get config reply", Message::GetConfigReply(config));
    samples.v10("set config", Message::SetConfig(config));
    samples.v10("barrier request", Message::BarrierRequest);
    samples.v10("barrier reply", Message::BarrierReply);
}

fn packets(samples: &mut Samples) {
    samples.v10(
        "packet in, buffered and cut",
        Message::PacketIn(PacketIn {
            buffer_id: 0x111,
            total_len: 1500,
            in_port: PortNo(3),
            reason: PacketInReason::NO_MATCH,
            data: TCP_PACKET,
        }),
    );
    samples.v10(
        "packet in, whole, by an action",
        Message::PacketIn(PacketIn {
            buffer_id: NO_BUFFER,
            total_len: TCP_PACKET.len() as u16,
            in_port: PortNo::LOCAL,
            reason: PacketInReason::ACTION,
            data: TCP_PACKET,
        }),
    );
    let output = ListBuf::from([Action::Output { port: PortNo::FLOOD, max_len: 0 }]);
    samples.v10(
        "packet out, with data",
        Message::PacketOut(PacketOut {
            in_port: PortNo(1),
            actions: output.as_list(),
            data: TCP_PACKET,
            ..PacketOut::default()
        }),
    );
    samples.v10(
        "packet out, of a buffer",
        Message::PacketOut(PacketOut {
            buffer_id: 0x114,
            actions: output.as_list(),
            ..PacketOut::default()
        }),
    );
}

fn flows(samples: &mut Samples) {
    let match_ = Match {
        wildcards: Wildcards::NONE.with_nw_src_prefix(16).with_nw_dst_prefix(24),
        in_port: PortNo(1),
        dl_src: [0x02, 0, 0, 0, 0, 1],
        dl_dst: [0x02, 0, 0, 0, 0, 2],
        dl_vlan: 100,
        dl_vlan_pcp: 3,
        dl_type: 0x0800,
        nw_tos: 0x20,
        nw_proto: 6,
        nw_src: 0x0a01_0000,
        nw_dst: 0x0a02_0300,
        tp_src: 1234,
        tp_dst: 80,
    };
    let actions = all_actions();
    let flow = FlowMod { match_, cookie: 0x0123_4567_89ab_cdef, ..FlowMod::default() };
    samples.v10(
        "flow mod: add, every field and action",
        Message::FlowMod(FlowMod {
            idle_timeout: 5,
            hard_timeout: 10,
            priority: 100,
            buffer_id: 0x123,
            flags: FlowModFlags::SEND_FLOW_REM | FlowModFlags::CHECK_OVERLAP,
            actions: actions.as_list(),
            ..flow
        }),
    );
    for (name, command) in [
        ("flow mod: modify", FlowModCommand::MODIFY),
        ("flow mod: modify strict", FlowModCommand::MODIFY_STRICT),
        ("flow mod: delete, by output port", FlowModCommand::DELETE),
        ("flow mod: delete strict", FlowModCommand::DELETE_STRICT),
    ] {
        let out_port = if command == FlowModCommand::DELETE { PortNo(2) } else { PortNo::NONE };
        samples.v10(name, Message::FlowMod(FlowMod { command, out_port, ..flow }));
    }
    samples.v10("flow mod: everything is dropped", Message::FlowMod(FlowMod::default()));
    samples.v10(
        "flow removed",
        Message::FlowRemoved(FlowRemoved {
            match_: Match {
                wildcards: Wildcards::ALL.without(Wildcards::IN_PORT),
                in_port: PortNo(3),
                ..Match::ANY
            },
            cookie: 0xc0,
            priority: 0x8000,
            reason: FlowRemovedReason::IDLE_TIMEOUT,
            duration_sec: 19,
            duration_nsec: 70_000_000,
            idle_timeout: 5,
            packet_count: 17,
            byte_count: 1070,
        }),
    );
}

fn all_actions() -> ListBuf<Action<'static>> {
    ListBuf::from([
        Action::SetVlanVid(7),
        Action::SetVlanPcp(2),
        Action::StripVlan,
        Action::SetDlSrc([0x02, 0, 0, 0, 0, 3]),
        Action::SetDlDst([0x02, 0, 0, 0, 0, 4]),
        Action::SetNwSrc(0x0a01_0001),
        Action::SetNwDst(0x0a01_0002),
        Action::SetNwTos(0x40),
        Action::SetTpSrc(8080),
        Action::SetTpDst(8081),
        Action::Enqueue { port: PortNo(2), queue_id: 9 },
        // Nicira's note action: subtype 8, and six bytes.
        Action::Vendor { vendor: 0x2320, body: &[0, 8, 1, 2, 3, 4, 5, 6] },
        Action::Output { port: PortNo::CONTROLLER, max_len: 128 },
        Action::Output { port: PortNo::IN_PORT, max_len: 0 },
        Action::Output { port: PortNo(3), max_len: 0 },
    ])
}

fn ports_and_queues(samples: &mut Samples) {
    for (name, reason) in [
        ("port status: added", PortReason::ADD),
        ("port status: deleted", PortReason::DELETE),
        ("port status: modified", PortReason::MODIFY),
    ] {
        samples.v10(name, Message::PortStatus(PortStatus { reason, desc: port(3) }));
    }
    samples.v10(
        "port mod",
        Message::PortMod(PortMod {
            port_no: PortNo(3),
            hw_addr: [0x02, 0, 0, 0, 0, 3],
            config: PortConfig::PORT_DOWN,
            mask: PortConfig::PORT_DOWN | PortConfig::NO_FLOOD,
            advertise: PortFeatures::RATE_1GB_FD | PortFeatures::COPPER,
        }),
    );
    samples.v10(
        "queue get config request",
        Message::QueueGetConfigRequest(QueueGetConfigRequest { port: PortNo(1) }),
    );
    let limited = ListBuf::from([QueueProperty::MinRate(500)]);
    let queues = ListBuf::from([
        PacketQueue { queue_id: 1, properties: limited.as_list() },
        PacketQueue { queue_id: 2, properties: openflow::List::EMPTY },
    ]);
    samples.v10(
        "queue get config reply",
        Message::QueueGetConfigReply(QueueGetConfigReply {
            port: PortNo(1),
            queues: queues.as_list(),
        }),
    );
}

fn stats_requests(samples: &mut Samples) {
    let flows = FlowStatsRequest { out_port: PortNo(2), ..FlowStatsRequest::default() };
    for (name, body) in [
        ("desc", StatsRequestBody::Desc),
        ("flow", StatsRequestBody::Flow(flows)),
        ("aggregate", StatsRequestBody::Aggregate(FlowStatsRequest::default())),
        ("table", StatsRequestBody::Table),
        ("port, all", StatsRequestBody::Port { port_no: PortNo::NONE }),
        ("queue, all", StatsRequestBody::Queue { port_no: PortNo::ALL, queue_id: QUEUE_ALL }),
        // Nicira's flow statistics: subtype 0, any port, an empty match, any table.
        (
            "vendor",
            StatsRequestBody::Vendor {
                vendor: 0x2320,
                body: &[0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0xff, 0, 0, 0],
            },
        ),
    ] {
        samples.v10(&format!("stats request: {name}"), Message::StatsRequest(body.into()));
    }
}

fn stats_replies(samples: &mut Samples) {
    let desc = DescStats {
        mfr_desc: Text::new("Nobody"),
        hw_desc: Text::new("A virtual switch"),
        sw_desc: Text::new("0.1"),
        serial_num: Text::new("None"),
        dp_desc: Text::new("br0"),
    };
    let actions = ListBuf::from([Action::Output { port: PortNo(2), max_len: 0 }]);
    let flow = FlowStats {
        table_id: 0,
        match_: Match {
            wildcards: Wildcards::ALL.without(Wildcards::IN_PORT),
            in_port: PortNo(1),
            ..Match::ANY
        },
        duration_sec: 4,
        duration_nsec: 200_000_000,
        priority: 0x8000,
        idle_timeout: 60,
        hard_timeout: 120,
        cookie: 0xabc,
        packet_count: 5,
        byte_count: 320,
        actions: actions.as_list(),
    };
    let flows =
        ListBuf::from([flow, FlowStats { actions: openflow::List::EMPTY, priority: 1, ..flow }]);
    let tables = ListBuf::from([TableStats {
        table_id: 0,
        name: Name::new("classifier"),
        wildcards: Wildcards::ALL,
        max_entries: 1_000_000,
        active_count: 2,
        lookup_count: 30,
        matched_count: 20,
    }]);
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
    }]);
    let queues = ListBuf::from([QueueStats {
        port_no: PortNo(3),
        queue_id: 1,
        tx_bytes: 302,
        tx_packets: 1,
        tx_errors: 2,
    }]);
    for (name, body) in [
        ("desc", StatsReplyBody::Desc(desc)),
        ("flow", StatsReplyBody::Flow(flows.as_list())),
        ("flow, none", StatsReplyBody::Flow(openflow::List::EMPTY)),
        (
            "aggregate",
            StatsReplyBody::Aggregate(AggregateStats {
                packet_count: 121,
                byte_count: 19279,
                flow_count: 4,
            }),
        ),
        ("table", StatsReplyBody::Table(tables.as_list())),
        ("port", StatsReplyBody::Port(ports.as_list())),
        ("queue", StatsReplyBody::Queue(queues.as_list())),
        ("vendor", StatsReplyBody::Vendor { vendor: 0x2320, body: &[0, 0, 0, 0, 0, 0, 0, 0] }),
    ] {
        samples.v10(&format!("stats reply: {name}"), Message::StatsReply(body.into()));
    }
    samples.v10(
        "stats reply: flow, more follow",
        Message::StatsReply(StatsReply {
            flags: StatsFlags::REPLY_MORE,
            body: StatsReplyBody::Flow(flows.as_list()),
        }),
    );
}

fn port(number: u8) -> PhyPort {
    PhyPort {
        port_no: PortNo(number.into()),
        hw_addr: [0x02, 0, 0, 0, 0, number],
        name: Name::new(&format!("eth{number}")),
        config: PortConfig::NO_FLOOD,
        state: PortState::LINK_DOWN,
        curr: PortFeatures::RATE_10GB_FD | PortFeatures::FIBER,
        advertised: PortFeatures::RATE_1GB_FD,
        supported: PortFeatures::RATE_1GB_FD | PortFeatures::RATE_10GB_FD,
        peer: PortFeatures::AUTONEG,
    }
}
