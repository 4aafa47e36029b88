//! One message of OpenFlow 1.3 of every kind, with a value in every field.

use super::samples::{Samples, TCP_PACKET};
use openflow::text::Name;
use openflow::v13::*;
use openflow::{Hello, List, ListBuf, VersionSet};

pub fn add(samples: &mut Samples) {
    handshake(samples);
    packets(samples);
    flows(samples);
    groups_and_meters(samples);
    ports_tables_and_queues(samples);
    controllers(samples);
    super::samples_v13_multipart::add(samples);
}

fn handshake(samples: &mut Samples) {
    let mut hello = Vec::new();
    Hello::write_message(VersionSet::SUPPORTED, 0, &mut hello).unwrap();
    samples.v13("hello, with versions 1.0 and 1.3", Message::Hello(Hello { body: &hello[8..] }));
    let mut failed = Vec::new();
    Message::BarrierRequest.write(7, &mut failed).unwrap();
    samples
        .v13("error", Message::Error(Error { code: error::BAD_MATCH_BAD_PREREQ, data: &failed }));
    samples.v13("echo request", Message::EchoRequest(b"weir"));
    samples.v13("echo reply", Message::EchoReply(b"weir"));
    // Nicira's set-packet-in-format.
    let format = Experimenter { experimenter: 0x2320, exp_type: 16, body: &[0, 0, 0, 1] };
    samples.v13("experimenter", Message::Experimenter(format));
    samples.v13("features request", Message::FeaturesRequest);
    samples.v13(
        "features reply",
        Message::FeaturesReply(FeaturesReply {
            datapath_id: 0x0000_5254_0012_3456,
            n_buffers: 256,
            n_tables: 254,
            auxiliary_id: 1,
            capabilities: Capabilities::FLOW_STATS
                | Capabilities::GROUP_STATS
                | Capabilities::PORT_BLOCKED,
            reserved: 0,
        }),
    );
    samples.v13("get config request", Message::GetConfigRequest);
    let config =
        SwitchConfig { flags: ConfigFlags::FRAG_REASM, miss_send_len: CONTROLLER_NO_BUFFER };
    samples.v13("get config reply", Message::GetConfigReply(config));
    samples.v13("set config", Message::SetConfig(config));
    samples.v13("barrier request", Message::BarrierRequest);
    samples.v13("barrier reply", Message::BarrierReply);
}

fn packets(samples: &mut Samples) {
    let mut context = MatchBuf::new();
    context.exact(OxmField::IN_PORT, 3).masked(OxmField::METADATA, 0x5a, 0xff);
    samples.v13(
        "packet in",
        Message::PacketIn(PacketIn {
            buffer_id: NO_BUFFER,
            total_len: TCP_PACKET.len() as u16,
            reason: PacketInReason::ACTION,
            table_id: 5,
            cookie: 0xfedc_ba98_7654_3210,
            match_: context.as_match(),
            data: TCP_PACKET,
        }),
    );
    let actions =
        ListBuf::from([Action::Output { port: PortNo::FLOOD, max_len: 0 }, Action::Group(4)]);
    samples.v13(
        "packet out, with data",
        Message::PacketOut(PacketOut {
            in_port: PortNo(1),
            actions: actions.as_list(),
            data: TCP_PACKET,
            ..PacketOut::default()
        }),
    );
    samples.v13(
        "packet out, of a buffer",
        Message::PacketOut(PacketOut {
            buffer_id: 0x114,
            actions: actions.as_list(),
            ..PacketOut::default()
        }),
    );
}

/// Matches that together use every field.
fn matches() -> Vec<(&'static str, MatchBuf)> {
    use OxmField as F;
    let build = |fields: &[(F, u128)], masked: &[(F, u128, u128)]| {
        // In the order of their numbers, as everybody sends them.
        let mut all: Vec<(F, u128, Option<u128>)> = Vec::new();
        all.extend(fields.iter().map(|(field, value)| (*field, *value, None)));
        all.extend(masked.iter().map(|(field, value, mask)| (*field, *value, Some(*mask))));
        all.sort();
        let mut match_ = MatchBuf::new();
        for (field, value, mask) in all {
            match mask {
                None => match_.exact(field, value),
                Some(mask) => match_.masked(field, value, mask),
            };
        }
        match_
    };
    let ip6 = |low: u128| 0x2001_0db8_u128 << 96 | low;
    vec![
        (
            "Ethernet, VLAN, metadata, tunnel",
            build(
                &[(F::IN_PORT, 1), (F::ETH_TYPE, 0x0800), (F::VLAN_VID, 0x1064), (F::VLAN_PCP, 3)],
                &[
                    (F::METADATA, 0x1200, 0xff00),
                    (F::ETH_DST, 0x0100_0000_0000, 0x0100_0000_0000),
                    (F::ETH_SRC, 0x0200_0001_0000, 0xffff_ffff_0000),
                    (F::TUNNEL_ID, 0x77, 0xff),
                ],
            ),
        ),
        (
            "TCP over IPv4",
            build(
                &[
                    (F::ETH_TYPE, 0x0800),
                    (F::IP_DSCP, 8),
                    (F::IP_ECN, 1),
                    (F::IP_PROTO, 6),
                    (F::TCP_SRC, 1234),
                    (F::TCP_DST, 80),
                ],
                &[(F::IPV4_SRC, 0x0a01_0000, 0xffff_0000), (F::IPV4_DST, 0x0a02_0003, 0xffff_ffff)],
            ),
        ),
        (
            "UDP over IPv6",
            build(
                &[
                    (F::ETH_TYPE, 0x86dd),
                    (F::IP_PROTO, 17),
                    (F::UDP_SRC, 53),
                    (F::UDP_DST, 5353),
                    (F::IPV6_FLABEL, 0x12345),
                    (F::IPV6_DST, ip6(2)),
                ],
                &[(F::IPV6_SRC, ip6(0), u128::MAX << 64)],
            ),
        ),
        (
            "SCTP",
            build(
                &[(F::ETH_TYPE, 0x0800), (F::IP_PROTO, 132), (F::SCTP_SRC, 9), (F::SCTP_DST, 10)],
                &[],
            ),
        ),
        (
            "ICMP",
            build(
                &[
                    (F::ETH_TYPE, 0x0800),
                    (F::IP_PROTO, 1),
                    (F::ICMPV4_TYPE, 8),
                    (F::ICMPV4_CODE, 0),
                ],
                &[],
            ),
        ),
        (
            "ARP",
            build(
                &[
                    (F::ETH_TYPE, 0x0806),
                    (F::ARP_OP, 1),
                    (F::ARP_TPA, 0x0a01_0002),
                    (F::ARP_SHA, 0x0200_0000_0001),
                    (F::ARP_THA, 0x0200_0000_0002),
                ],
                &[(F::ARP_SPA, 0x0a01_0000, 0xffff_0000)],
            ),
        ),
        (
            "IPv6 neighbour solicitation",
            build(
                &[
                    (F::ETH_TYPE, 0x86dd),
                    (F::IP_PROTO, 58),
                    (F::ICMPV6_TYPE, 135),
                    (F::ICMPV6_CODE, 0),
                    (F::IPV6_ND_TARGET, ip6(9)),
                    (F::IPV6_ND_SLL, 0x0200_0000_0001),
                ],
                &[],
            ),
        ),
        (
            "IPv6 neighbour advertisement",
            build(
                &[
                    (F::ETH_TYPE, 0x86dd),
                    (F::IP_PROTO, 58),
                    (F::ICMPV6_TYPE, 136),
                    (F::ICMPV6_CODE, 0),
                    (F::IPV6_ND_TARGET, ip6(9)),
                    (F::IPV6_ND_TLL, 0x0200_0000_0001),
                ],
                &[],
            ),
        ),
        (
            "MPLS",
            build(
                &[
                    (F::ETH_TYPE, 0x8847),
                    (F::MPLS_LABEL, 0x12345),
                    (F::MPLS_TC, 5),
                    (F::MPLS_BOS, 1),
                ],
                &[],
            ),
        ),
    ]
}

fn all_actions() -> ListBuf<Action<'static>> {
    ListBuf::from([
        Action::PopVlan,
        Action::PushVlan(0x88a8),
        Action::SetField(Oxm::exact(OxmField::VLAN_VID, &[0x10, 0x07])),
        Action::SetField(Oxm::exact(OxmField::ETH_SRC, &[2, 0, 0, 0, 0, 9])),
        Action::SetField(Oxm::exact(OxmField::IPV4_DST, &[10, 1, 0, 9])),
        Action::SetNwTtl(64),
        Action::DecNwTtl,
        Action::PushMpls(0x8847),
        Action::SetMplsTtl(10),
        Action::DecMplsTtl,
        Action::PopMpls(0x0800),
        Action::SetQueue(9),
        // Nicira's note action: subtype 8, and six bytes.
        Action::Experimenter { experimenter: 0x2320, body: &[0, 8, 1, 2, 3, 4, 5, 6] },
        Action::Group(4),
        Action::Output { port: PortNo::CONTROLLER, max_len: 128 },
        Action::Output { port: PortNo(3), max_len: 0 },
    ])
}

fn flows(samples: &mut Samples) {
    let mut match_ = MatchBuf::new();
    match_.exact(OxmField::ETH_TYPE, 0x0800).exact(OxmField::VLAN_VID, 0x1064);
    let actions = all_actions();
    let write = ListBuf::from([Action::Output { port: PortNo(2), max_len: 0 }]);
    let instructions = ListBuf::from([
        Instruction::Meter(1),
        Instruction::ApplyActions(actions.as_list()),
        Instruction::ClearActions,
        Instruction::WriteActions(write.as_list()),
        Instruction::WriteMetadata { metadata: 0x1200, mask: 0xff00 },
        Instruction::GotoTable(7),
    ]);
    let flow =
        FlowMod { cookie: 0xc0, table_id: 3, match_: match_.as_match(), ..FlowMod::default() };
    samples.v13(
        "flow mod: add, every field, instruction and action",
        Message::FlowMod(FlowMod {
            idle_timeout: 5,
            hard_timeout: 10,
            priority: 100,
            buffer_id: 0x123,
            flags: FlowModFlags::SEND_FLOW_REM
                | FlowModFlags::CHECK_OVERLAP
                | FlowModFlags::RESET_COUNTS,
            instructions: instructions.as_list(),
            ..flow
        }),
    );
    for (name, command) in [
        ("modify", FlowModCommand::MODIFY),
        ("modify strict", FlowModCommand::MODIFY_STRICT),
        ("delete, by cookie, port and group", FlowModCommand::DELETE),
        ("delete strict", FlowModCommand::DELETE_STRICT),
    ] {
        let filter = match command {
            FlowModCommand::DELETE => {
                FlowMod { cookie_mask: 0xff, out_port: PortNo(2), out_group: 4, ..flow }
            }
            _ => flow,
        };
        samples.v13(&format!("flow mod: {name}"), Message::FlowMod(FlowMod { command, ..filter }));
    }
    for (name, match_) in matches() {
        let flow = FlowMod { match_: match_.as_match(), ..FlowMod::default() };
        samples.v13(&format!("flow mod: match {name}"), Message::FlowMod(flow));
    }
    let lacking = ListBuf::from([
        Action::CopyTtlOut,
        Action::CopyTtlIn,
        Action::PushPbb(0x88e7),
        Action::SetField(Oxm::exact(OxmField::PBB_ISID, &[0x12, 0x34, 0x56])),
        Action::PopPbb,
    ]);
    let instructions = ListBuf::from([Instruction::ApplyActions(lacking.as_list())]);
    samples.v13_not_in_ovs(
        "flow mod: actions that Open vSwitch lacks",
        Message::FlowMod(FlowMod { instructions: instructions.as_list(), ..FlowMod::default() }),
    );
    let mut lacking = MatchBuf::new();
    lacking
        .exact(OxmField::IN_PORT, 1)
        .exact(OxmField::IN_PHY_PORT, 2)
        .exact(OxmField::ETH_TYPE, 0x88e7)
        .masked(OxmField::PBB_ISID, 0x123400, 0xffff00);
    samples.v13_not_in_ovs(
        "flow mod: match fields that Open vSwitch lacks, PBB",
        Message::FlowMod(FlowMod { match_: lacking.as_match(), ..FlowMod::default() }),
    );
    lacking.clear();
    lacking.exact(OxmField::ETH_TYPE, 0x86dd).masked(OxmField::IPV6_EXTHDR, 0x08, 0x1f);
    samples.v13_not_in_ovs(
        "flow mod: match fields that Open vSwitch lacks, IPv6 extension headers",
        Message::FlowMod(FlowMod { match_: lacking.as_match(), ..FlowMod::default() }),
    );
    samples.v13("flow mod: everything is dropped", Message::FlowMod(FlowMod::default()));
    samples.v13(
        "flow removed",
        Message::FlowRemoved(FlowRemoved {
            cookie: 0xc0,
            priority: 0x8000,
            reason: FlowRemovedReason::HARD_TIMEOUT,
            table_id: 3,
            duration_sec: 19,
            duration_nsec: 70_000_000,
            idle_timeout: 5,
            hard_timeout: 10,
            packet_count: 17,
            byte_count: 1070,
            match_: match_.as_match(),
        }),
    );
}

fn groups_and_meters(samples: &mut Samples) {
    let output = ListBuf::from([Action::Output { port: PortNo(1), max_len: 0 }]);
    let weighted = ListBuf::from([
        Bucket { weight: 30, actions: output.as_list(), ..Bucket::default() },
        Bucket { weight: 70, ..Bucket::default() },
    ]);
    let watched = ListBuf::from([Bucket {
        watch_port: PortNo(1),
        watch_group: 2,
        actions: output.as_list(),
        weight: 0,
    }]);
    for (name, command, type_, buckets) in [
        ("add select", GroupModCommand::ADD, GroupType::SELECT, weighted.as_list()),
        ("modify fast failover", GroupModCommand::MODIFY, GroupType::FF, watched.as_list()),
        ("delete", GroupModCommand::DELETE, GroupType::ALL, List::EMPTY),
    ] {
        let group_id = if command == GroupModCommand::DELETE { GROUP_ALL } else { 4 };
        let body = GroupMod { command, type_, group_id, buckets };
        samples.v13(&format!("group mod: {name}"), Message::GroupMod(body));
    }
    let bands = bands();
    samples.v13(
        "meter mod: add",
        Message::MeterMod(MeterMod {
            command: MeterModCommand::ADD,
            flags: MeterFlags::KBPS | MeterFlags::BURST | MeterFlags::STATS,
            meter_id: 5,
            bands: bands.as_list(),
        }),
    );
    samples.v13(
        "meter mod: delete all",
        Message::MeterMod(MeterMod {
            command: MeterModCommand::DELETE,
            flags: MeterFlags::KBPS,
            meter_id: METER_ALL,
            bands: List::EMPTY,
        }),
    );
}

pub(super) fn bands() -> ListBuf<MeterBand<'static>> {
    ListBuf::from([
        MeterBand::Drop { rate: 1024, burst_size: 64 },
        MeterBand::DscpRemark { rate: 512, burst_size: 32, prec_level: 1 },
    ])
}

fn ports_tables_and_queues(samples: &mut Samples) {
    for (name, reason) in [
        ("added", PortReason::ADD),
        ("deleted", PortReason::DELETE),
        ("modified", PortReason::MODIFY),
    ] {
        samples.v13(
            &format!("port status: {name}"),
            Message::PortStatus(PortStatus { reason, desc: port(3) }),
        );
    }
    samples.v13(
        "port mod",
        Message::PortMod(PortMod {
            port_no: PortNo(3),
            hw_addr: [0x02, 0, 0, 0, 0, 3],
            config: PortConfig::PORT_DOWN,
            mask: PortConfig::PORT_DOWN | PortConfig::NO_FWD,
            advertise: PortFeatures::RATE_1GB_FD | PortFeatures::COPPER,
        }),
    );
    samples.v13("table mod", Message::TableMod(TableMod { table_id: TABLE_ALL, config: 3 }));
    samples.v13(
        "queue get config request",
        Message::QueueGetConfigRequest(QueueGetConfigRequest { port: PortNo(1) }),
    );
    let limited = ListBuf::from([QueueProperty::MinRate(500), QueueProperty::MaxRate(900)]);
    let queues = ListBuf::from([
        PacketQueue { queue_id: 1, port: PortNo(1), properties: limited.as_list() },
        PacketQueue { queue_id: 2, port: PortNo(1), properties: List::EMPTY },
    ]);
    samples.v13(
        "queue get config reply",
        Message::QueueGetConfigReply(QueueGetConfigReply {
            port: PortNo(1),
            queues: queues.as_list(),
        }),
    );
}

fn controllers(samples: &mut Samples) {
    for (name, role) in [
        ("no change", Role::NOCHANGE),
        ("equal", Role::EQUAL),
        ("master", Role::MASTER),
        ("slave", Role::SLAVE),
    ] {
        let body = RoleBody { role, generation_id: 0x8877_6655_4433_2211 };
        samples.v13(&format!("role request: {name}"), Message::RoleRequest(body));
        samples.v13(&format!("role reply: {name}"), Message::RoleReply(body));
    }
    let config = AsyncConfig {
        packet_in_mask: [5, 2],
        port_status_mask: [7, 1],
        flow_removed_mask: [15, 0],
    };
    samples.v13("get async request", Message::GetAsyncRequest);
    samples.v13("get async reply", Message::GetAsyncReply(config));
    samples.v13("set async", Message::SetAsync(config));
}

pub(super) fn port(number: u8) -> Port {
    Port {
        port_no: PortNo(number.into()),
        hw_addr: [0x02, 0, 0, 0, 0, number],
        name: Name::new(&format!("eth{number}")),
        config: PortConfig::NO_RECV,
        state: PortState::LIVE,
        curr: PortFeatures::RATE_40GB_FD | PortFeatures::FIBER,
        advertised: PortFeatures::RATE_1GB_FD,
        supported: PortFeatures::RATE_1GB_FD | PortFeatures::RATE_10GB_FD,
        peer: PortFeatures::AUTONEG,
        curr_speed: 40_000_000,
        max_speed: 100_000_000,
    }
}
