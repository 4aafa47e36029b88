//! Tests of the switch in OpenFlow 1.3: pipeline, groups, meters, roles, every multipart, every error.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

mod common;

use common::{Peer, SECOND, path, ports};
use emulate::{Config, Fault, PortConfig, frame};
use openflow::error::v13 as code;
use openflow::v13::{
    Action, AsyncConfig, Bucket, FlowMod, FlowModCommand, FlowModFlags, FlowStatsRequest,
    GROUP_ALL, GroupCapabilities, GroupMod, GroupModCommand, GroupType, Instruction, METER_ALL,
    MatchBuf, Message, MeterBand, MeterFlags, MeterMod, MeterModCommand, MultipartReplyBody,
    MultipartRequest, MultipartRequestBody as Ask, Oxm, OxmField, PacketOut, PortMod, PortNo,
    QUEUE_ALL, QueueGetConfigRequest, Role, RoleBody, TableMod,
};
use openflow::{ErrorCode, List, ListBuf, NO_BUFFER, Version, VersionSet};

fn new() -> Peer {
    Peer::connected(Version::V1_3, Config::new(7, 4))
}

fn send(peer: &mut Peer, message: Message<'_>) -> emulate::Outcome {
    let mut frame = Vec::new();
    message.write(42, &mut frame).unwrap();
    peer.send(&frame)
}

/// Sends a message that has no answer.
fn send_without_reply(peer: &mut Peer, message: Message<'_>) -> emulate::Outcome {
    let outcome = send(peer, message);
    if let Some(answer) = peer.frames().first() {
        panic!("{message:?} was answered by {:?}", Message::parse(answer));
    }
    outcome
}

fn ask<T>(peer: &mut Peer, message: Message<'_>, look: impl FnOnce(Message<'_>) -> T) -> T {
    send(peer, message);
    let frames = peer.frames();
    assert_eq!(frames.len(), 1, "{message:?}");
    let (header, answer) = Message::parse(&frames[0]).unwrap();
    assert_eq!(header.xid, 42);
    look(answer)
}

fn refused(peer: &mut Peer, message: Message<'_>) -> ErrorCode {
    ask(peer, message, |answer| match answer {
        Message::Error(error) => error.code,
        other => panic!("{message:?} was answered by {other:?}"),
    })
}

fn statistics<T>(
    peer: &mut Peer,
    body: Ask<'_>,
    look: impl FnOnce(MultipartReplyBody<'_>) -> T,
) -> T {
    ask(peer, Message::MultipartRequest(MultipartRequest::from(body)), |answer| match answer {
        Message::MultipartReply(reply) => look(reply.body),
        other => panic!("{body:?} was answered by {other:?}"),
    })
}

fn output(port: u32) -> Action<'static> {
    Action::Output { port: PortNo(port), max_len: 0 }
}

fn fields(list: &[(OxmField, u128)]) -> MatchBuf {
    let mut match_ = MatchBuf::new();
    for (field, value) in list {
        match_.exact(*field, *value);
    }
    match_
}

fn udp() -> MatchBuf {
    fields(&[(OxmField::ETH_TYPE, 0x0800), (OxmField::IP_PROTO, 17)])
}

fn set(field: OxmField, value: &[u8]) -> Action<'_> {
    Action::SetField(Oxm::exact(field, value))
}

/// Adds an entry with these instructions. `base` has the other values.
fn flow(peer: &mut Peer, base: FlowMod<'_>, match_: &MatchBuf, instructions: &[Instruction<'_>]) {
    let instructions = ListBuf::from(instructions);
    let match_ = match_.as_match();
    send_without_reply(
        peer,
        Message::FlowMod(FlowMod { match_, instructions: instructions.as_list(), ..base }),
    );
}

/// Adds an entry to table 0 that applies actions.
fn apply(peer: &mut Peer, match_: &MatchBuf, actions: &[Action<'_>]) {
    let actions = ListBuf::from(actions);
    flow(peer, FlowMod::default(), match_, &[Instruction::ApplyActions(actions.as_list())]);
}

fn packet() -> Vec<u8> {
    path(1, 2).udp(1000, 53, b"question")
}

#[test]
fn echo_barrier_features_config_and_queue_requests_are_answered() {
    let mut peer = new();
    ask(&mut peer, Message::EchoRequest(b"hi"), |a| assert_eq!(a, Message::EchoReply(b"hi")));
    ask(&mut peer, Message::BarrierRequest, |a| assert_eq!(a, Message::BarrierReply));
    ask(&mut peer, Message::FeaturesRequest, |answer| {
        let Message::FeaturesReply(features) = answer else { panic!("{answer:?}") };
        assert_eq!((features.datapath_id, features.n_tables), (7, 16));
    });
    ask(&mut peer, Message::GetConfigRequest, |answer| {
        let Message::GetConfigReply(config) = answer else { panic!("{answer:?}") };
        assert_eq!(config.miss_send_len, 128);
    });
    let request = QueueGetConfigRequest { port: PortNo::ANY };
    ask(&mut peer, Message::QueueGetConfigRequest(request), |answer| {
        let Message::QueueGetConfigReply(reply) = answer else { panic!("{answer:?}") };
        let queues: Vec<_> = reply.queues.iter().map(|q| (q.port.0, q.queue_id)).collect();
        assert_eq!(queues, [(1, 0), (2, 0), (3, 0), (4, 0)]);
    });
    send_without_reply(&mut peer, Message::TableMod(TableMod { table_id: 0, config: 0 }));
}

#[test]
fn a_table_miss_is_dropped_without_a_table_miss_entry() {
    let mut peer = new();
    assert_eq!(peer.receive(1, &packet()), emulate::Outcome::default());
    let miss = FlowMod { priority: 0, cookie: 9, table_id: 0, ..FlowMod::default() };
    let to_controller = ListBuf::from([Action::Output { port: PortNo::CONTROLLER, max_len: 40 }]);
    flow(&mut peer, miss, &MatchBuf::new(), &[Instruction::ApplyActions(to_controller.as_list())]);
    assert_eq!(peer.receive(3, &packet()).packet_ins, 1);
    let frames = peer.frames();
    let (_, Message::PacketIn(packet_in)) = Message::parse(&frames[0]).unwrap() else { panic!() };
    assert_eq!((packet_in.reason.0, packet_in.table_id, packet_in.cookie), (0, 0, 9), "no match");
    assert_eq!((packet_in.match_.in_port(), packet_in.data), (Some(PortNo(3)), &packet()[..40]));
    assert_ne!(packet_in.buffer_id, NO_BUFFER);
    let release = ListBuf::from([output(2)]);
    let body = PacketOut {
        buffer_id: packet_in.buffer_id,
        actions: release.as_list(),
        ..PacketOut::default()
    };
    let outcome = send_without_reply(&mut peer, Message::PacketOut(body));
    assert_eq!((ports(&outcome), &outcome.sent[0].frame), (vec![2], &packet()));
    assert_eq!(refused(&mut peer, Message::PacketOut(body)), code::BAD_REQUEST_BUFFER_EMPTY);

    let table = ListBuf::from([output(PortNo::TABLE.0)]);
    let body = PacketOut {
        in_port: PortNo(4),
        actions: table.as_list(),
        data: &packet(),
        ..PacketOut::default()
    };
    assert_eq!(send(&mut peer, Message::PacketOut(body)).packet_ins, 1, "through the tables");
}

#[test]
fn goto_table_metadata_and_action_set_work_together() {
    let mut peer = new();
    let written = ListBuf::from([output(2), set(OxmField::UDP_DST, &[0, 99])]);
    flow(
        &mut peer,
        FlowMod::default(),
        &udp(),
        &[
            Instruction::WriteActions(written.as_list()),
            Instruction::WriteMetadata { metadata: 0xabcd, mask: 0xff00 },
            Instruction::GotoTable(3),
        ],
    );
    let table3 = FlowMod { table_id: 3, ..FlowMod::default() };
    let metadata = fields(&[(OxmField::METADATA, 0xab00)]);
    let replaced = ListBuf::from([output(3)]);
    let applied = ListBuf::from([output(4), Action::PushVlan(0x8100)]);
    flow(
        &mut peer,
        table3,
        &metadata,
        &[
            Instruction::ApplyActions(applied.as_list()),
            Instruction::WriteActions(replaced.as_list()),
        ],
    );
    let outcome = peer.receive(1, &packet());
    assert_eq!(ports(&outcome), [4, 3], "applied at once; the set at the end, its output replaced");
    assert_eq!(outcome.sent[0].frame, packet());
    let mut expected = path(1, 2).udp(1000, 99, b"question");
    frame::push_vlan(&mut expected, 0x8100);
    assert_eq!(outcome.sent[1].frame, expected);

    let clear = FlowMod { table_id: 3, ..FlowMod::default() };
    flow(&mut peer, clear, &metadata, &[Instruction::ClearActions]);
    assert_eq!(ports(&peer.receive(1, &packet())), [0u32; 0]);
    statistics(&mut peer, Ask::Table, |reply| {
        let MultipartReplyBody::Table(list) = reply else { panic!("{reply:?}") };
        let tables: Vec<_> = list.iter().map(|t| (t.active_count, t.matched_count)).collect();
        assert_eq!((tables[0], tables[3], tables.len()), ((1, 2), (1, 2), 16));
    });
}

#[test]
fn every_action_changes_the_expected_packet_bytes() {
    fn check(name: &str, actions: &[Action<'_>], edit: &dyn Fn(&mut Vec<u8>)) {
        let mut peer = new();
        let actions: Vec<_> = actions.iter().copied().chain([output(2)]).collect();
        apply(&mut peer, &udp(), &actions);
        let mut expected = packet();
        edit(&mut expected);
        assert_eq!(peer.receive(1, &packet()).sent[0].frame, expected, "{name}");
    }
    check("eth_src", &[set(OxmField::ETH_SRC, &[9; 6])], &|f| frame::set_eth_src(f, [9; 6]));
    check("ipv4_dst", &[set(OxmField::IPV4_DST, &[1, 2, 3, 4])], &|f| {
        frame::set_ipv4_dst(f, 0x0102_0304);
    });
    check("udp_src", &[set(OxmField::UDP_SRC, &[0, 7])], &|f| frame::set_tp_src(f, 7));
    check("ip_dscp", &[set(OxmField::IP_DSCP, &[46])], &|f| frame::set_dscp(f, 46));
    check("nw_ttl", &[Action::SetNwTtl(9), Action::DecNwTtl], &|f| frame::set_ttl(f, 8));
    let tag = [Action::PushVlan(0x88a8), set(OxmField::VLAN_VID, &[0x10, 5])];
    check("vlan", &tag, &|f| {
        frame::push_vlan(f, 0x88a8);
        frame::set_vlan_vid(f, 5);
    });
    check("vlan and back", &[Action::PushVlan(0x8100), Action::PopVlan], &|_| {});
    let label =
        [Action::PushMpls(0x8847), set(OxmField::MPLS_LABEL, &[0, 0, 1, 2]), Action::DecMplsTtl];
    check("mpls", &label, &|f| {
        frame::push_mpls(f, 0x8847);
        frame::set_mpls_label(f, 0x102);
        frame::set_mpls_ttl(f, 63);
    });
    let back = [
        Action::PushMpls(0x8847),
        Action::SetMplsTtl(3),
        Action::CopyTtlIn,
        Action::PopMpls(0x0800),
    ];
    check("mpls and back", &back, &|f| frame::set_ttl(f, 3));
}

#[test]
fn set_queue_applies_to_all_later_outputs() {
    let mut config = Config::new(1, 2);
    config.ports[1].queues = vec![0, 5];
    let mut peer = Peer::connected(Version::V1_3, config);
    apply(&mut peer, &udp(), &[output(2), Action::SetQueue(5), output(2), output(2)]);
    let outcome = peer.receive(1, &packet());
    let queues: Vec<u32> = outcome.sent.iter().map(|transmit| transmit.queue).collect();
    assert_eq!(queues, [0, 5, 5]);
}

#[test]
fn an_expired_ttl_sends_a_packet_in_only_after_set_async() {
    let mut peer = new();
    apply(&mut peer, &udp(), &[Action::SetNwTtl(1), Action::DecNwTtl, output(2)]);
    assert_eq!(peer.receive(1, &packet()), emulate::Outcome::default(), "nobody asked");
    let body = AsyncConfig {
        packet_in_mask: [0b100, 0],
        port_status_mask: [0, 0],
        flow_removed_mask: [0, 0],
    };
    send_without_reply(&mut peer, Message::SetAsync(body));
    ask(&mut peer, Message::GetAsyncRequest, |a| assert_eq!(a, Message::GetAsyncReply(body)));
    assert_eq!(peer.receive(1, &packet()).packet_ins, 1);
    peer.switch.set_port_up(1, false, &mut peer.out);
    let frames = peer.frames();
    let (_, Message::PacketIn(packet_in)) = Message::parse(&frames[0]).unwrap() else { panic!() };
    assert_eq!(
        (packet_in.reason.0, frames.len()),
        (2, 1),
        "and of the port it did not want to hear"
    );
}

fn group_mod(command: GroupModCommand, type_: GroupType, group_id: u32) -> GroupMod<'static> {
    GroupMod { command, type_, group_id, buckets: List::EMPTY }
}

fn add_group(peer: &mut Peer, type_: GroupType, group_id: u32, buckets: &[(u16, u32, Action<'_>)]) {
    let mut list: ListBuf<Bucket<'_>> = ListBuf::new();
    for (weight, watch_port, action) in buckets {
        let actions = ListBuf::from([*action]);
        list.push(Bucket {
            weight: *weight,
            watch_port: PortNo(*watch_port),
            actions: actions.as_list(),
            ..Bucket::default()
        });
    }
    let body =
        GroupMod { buckets: list.as_list(), ..group_mod(GroupModCommand::ADD, type_, group_id) };
    send_without_reply(peer, Message::GroupMod(body));
}

#[test]
fn a_switch_without_group_chaining_refuses_chained_groups() {
    let mut peer = new();
    let chaining = |peer: &mut Peer| {
        let mut has = false;
        statistics(peer, Ask::GroupFeatures, |reply| {
            let MultipartReplyBody::GroupFeatures(features) = reply else { panic!("{reply:?}") };
            has = features.capabilities.contains(GroupCapabilities::CHAINING);
        });
        has
    };
    add_group(&mut peer, GroupType::INDIRECT, 1, &[(0, PortNo::ANY.0, output(2))]);
    assert!(chaining(&mut peer));
    peer.switch.plant(vec![Fault::RefuseChaining]);
    assert!(!chaining(&mut peer));
    let mut list: ListBuf<Bucket<'_>> = ListBuf::new();
    let actions = ListBuf::from([Action::Group(1)]);
    list.push(Bucket { actions: actions.as_list(), ..Bucket::default() });
    let chained = group_mod(GroupModCommand::ADD, GroupType::INDIRECT, 2);
    let chained = Message::GroupMod(GroupMod { buckets: list.as_list(), ..chained });
    assert_eq!(refused(&mut peer, chained), code::GROUP_MOD_FAILED_CHAINING_UNSUPPORTED);
    add_group(&mut peer, GroupType::INDIRECT, 2, &[(0, PortNo::ANY.0, output(2))]);
}

#[test]
fn groups_of_all_types_forward_packets() {
    let any = PortNo::ANY.0;
    let mut peer = new();
    add_group(&mut peer, GroupType::ALL, 1, &[(0, any, output(2)), (0, any, output(3))]);
    add_group(&mut peer, GroupType::INDIRECT, 2, &[(0, any, output(4))]);
    add_group(&mut peer, GroupType::FF, 3, &[(0, 2, output(2)), (0, 3, output(3))]);
    add_group(&mut peer, GroupType::SELECT, 4, &[(1, any, output(2)), (1, any, output(3))]);
    add_group(
        &mut peer,
        GroupType::ALL,
        5,
        &[(0, any, Action::Group(1)), (0, any, Action::Group(2))],
    );
    let check = |peer: &mut Peer, group: u32, expected: &[u32]| {
        apply(peer, &udp(), &[Action::Group(group)]);
        assert_eq!(ports(&peer.receive(1, &packet())), expected, "group {group}");
    };
    check(&mut peer, 1, &[2, 3]);
    check(&mut peer, 2, &[4]);
    check(&mut peer, 3, &[2]);
    check(&mut peer, 5, &[2, 3, 4]);
    peer.switch.set_port_up(2, false, &mut Vec::new());
    check(&mut peer, 3, &[3]);
    peer.switch.set_port_up(2, true, &mut Vec::new());
    apply(&mut peer, &udp(), &[Action::Group(4)]);
    let mut counts = [0; 5];
    for port in 0..200 {
        for out in ports(&peer.receive(1, &path(1, 2).udp(port, 53, b""))) {
            counts[out as usize] += 1;
        }
    }
    assert_eq!(counts[2] + counts[3], 200);
    assert!(counts[2] > 50 && counts[3] > 50, "select spreads flows: {counts:?}");
    let first = ports(&peer.receive(1, &packet()));
    assert!(
        (0..9).all(|_| ports(&peer.receive(1, &packet())) == first),
        "a flow stays in its bucket"
    );

    statistics(&mut peer, Ask::Group { group_id: 4 }, |reply| {
        let MultipartReplyBody::Group(list) = reply else { panic!("{reply:?}") };
        let group = list.iter().next().unwrap();
        assert_eq!((group.packet_count, group.ref_count, list.count()), (210, 1, 1));
        assert_eq!(group.bucket_stats.iter().map(|b| b.packet_count).sum::<u64>(), 210);
    });
    statistics(&mut peer, Ask::GroupDesc, |reply| {
        let MultipartReplyBody::GroupDesc(list) = reply else { panic!("{reply:?}") };
        let ids: Vec<_> = list.iter().map(|g| (g.group_id, g.type_, g.buckets.count())).collect();
        let expected = [
            (1, GroupType::ALL, 2),
            (2, GroupType::INDIRECT, 1),
            (3, GroupType::FF, 2),
            (4, GroupType::SELECT, 2),
            (5, GroupType::ALL, 2),
        ];
        assert_eq!(ids, expected);
    });
    statistics(&mut peer, Ask::GroupFeatures, |reply| {
        let MultipartReplyBody::GroupFeatures(features) = reply else { panic!("{reply:?}") };
        assert_eq!(features.types, 0xf);
    });
    let chained = Message::GroupMod(group_mod(GroupModCommand::DELETE, GroupType::ALL, 1));
    assert_eq!(refused(&mut peer, chained), code::GROUP_MOD_FAILED_CHAINED_GROUP);
    send_without_reply(
        &mut peer,
        Message::GroupMod(group_mod(GroupModCommand::DELETE, GroupType::ALL, 4)),
    );
    assert_eq!(peer.switch.flow_count(), 0, "its entry went with the group");
    send_without_reply(
        &mut peer,
        Message::GroupMod(group_mod(GroupModCommand::DELETE, GroupType::ALL, GROUP_ALL)),
    );
    statistics(&mut peer, Ask::GroupDesc, |reply| {
        assert_eq!(reply, MultipartReplyBody::GroupDesc(List::EMPTY));
    });
}

#[test]
fn meters_drop_packets_above_the_rate() {
    let mut peer = new();
    let bands = ListBuf::from([MeterBand::Drop { rate: 10, burst_size: 2 }]);
    let meter = MeterMod {
        command: MeterModCommand::ADD,
        flags: MeterFlags::PKTPS | MeterFlags::BURST | MeterFlags::STATS,
        meter_id: 5,
        bands: bands.as_list(),
    };
    send_without_reply(&mut peer, Message::MeterMod(meter));
    let actions = ListBuf::from([output(2)]);
    let list = [Instruction::Meter(5), Instruction::ApplyActions(actions.as_list())];
    flow(&mut peer, FlowMod::default(), &MatchBuf::new(), &list);
    let mut passed = 0;
    for i in 0..100 {
        peer.now = i * SECOND / 100;
        passed += peer.receive(1, &packet()).sent.len();
    }
    assert_eq!(passed, 11, "a burst of 2 and 9.9 in 0.99 s");
    statistics(&mut peer, Ask::Meter { meter_id: METER_ALL }, |reply| {
        let MultipartReplyBody::Meter(list) = reply else { panic!("{reply:?}") };
        let meter = list.iter().next().unwrap();
        let dropped = meter.band_stats.iter().next().unwrap().packet_band_count;
        assert_eq!((meter.flow_count, meter.packet_in_count, dropped), (1, 100, 89));
    });
    statistics(&mut peer, Ask::MeterConfig { meter_id: 5 }, |reply| {
        let MultipartReplyBody::MeterConfig(list) = reply else { panic!("{reply:?}") };
        let config = list.iter().next().unwrap();
        assert_eq!(
            (config.meter_id, config.flags, config.bands),
            (5, meter.flags, bands.as_list())
        );
    });
    statistics(&mut peer, Ask::MeterFeatures, |reply| {
        let MultipartReplyBody::MeterFeatures(features) = reply else { panic!("{reply:?}") };
        assert_eq!(features.max_bands, 8);
    });
    assert_eq!(refused(&mut peer, Message::MeterMod(meter)), code::METER_MOD_FAILED_METER_EXISTS);
    let delete = MeterMod { command: MeterModCommand::DELETE, bands: List::EMPTY, ..meter };
    send_without_reply(&mut peer, Message::MeterMod(delete));
    assert_eq!(peer.switch.flow_count(), 0);
    let missing = MultipartRequest::from(Ask::Meter { meter_id: 5 });
    let refusal = refused(&mut peer, Message::MultipartRequest(missing));
    assert_eq!(refusal, code::METER_MOD_FAILED_UNKNOWN_METER);
}

#[test]
fn deletes_select_entries_by_match_cookie_port_group_and_table() {
    /// Checks which priorities are left after a deletion. The entries are 1: table 0, port 1, cookie 0x10; 2: table 0,
    /// UDP, cookie 0x11; 3: table 1, UDP to port 53, cookie 0x21, group 1.
    fn check(name: &str, body: FlowMod<'_>, match_: &MatchBuf, left: &[u16]) {
        let mut peer = new();
        add_group(&mut peer, GroupType::INDIRECT, 1, &[(0, PortNo::ANY.0, output(9))]);
        let entry = |priority, table_id, cookie| FlowMod {
            priority,
            table_id,
            cookie,
            flags: FlowModFlags::SEND_FLOW_REM,
            ..FlowMod::default()
        };
        let to = |action| ListBuf::from([action]);
        let (first, second, third) = (to(output(2)), to(output(3)), to(Action::Group(1)));
        let in_port = fields(&[(OxmField::IN_PORT, 1)]);
        flow(&mut peer, entry(1, 0, 0x10), &in_port, &[Instruction::ApplyActions(first.as_list())]);
        flow(&mut peer, entry(2, 0, 0x11), &udp(), &[Instruction::WriteActions(second.as_list())]);
        let mut dns = udp();
        dns.exact(OxmField::UDP_DST, 53);
        flow(&mut peer, entry(3, 1, 0x21), &dns, &[Instruction::ApplyActions(third.as_list())]);
        let body = FlowMod { match_: match_.as_match(), ..body };
        send(&mut peer, Message::FlowMod(body));
        let gone = peer.frames();
        for frame in &gone {
            let (_, message) = Message::parse(frame).unwrap();
            assert!(matches!(message, Message::FlowRemoved(r) if r.reason.0 == 2), "{message:?}");
        }
        let mut found: Vec<u16> = peer.switch.flows().map(|(_, flow)| flow.priority).collect();
        found.sort_unstable();
        assert_eq!((found.as_slice(), gone.len()), (left, 3 - left.len()), "{name}");
    }
    let any = MatchBuf::new();
    let delete = FlowMod { command: FlowModCommand::DELETE, table_id: 0xff, ..FlowMod::default() };
    let strict = FlowMod { command: FlowModCommand::DELETE_STRICT, ..delete };
    check("everything", delete, &any, &[]);
    check("table 0", FlowMod { table_id: 0, ..delete }, &any, &[3]);
    check("UDP", delete, &udp(), &[1]);
    check("cookie", FlowMod { cookie: 0x11, cookie_mask: 0xff, ..delete }, &any, &[1, 3]);
    check("cookie bits", FlowMod { cookie: 0x10, cookie_mask: 0xf0, ..delete }, &any, &[3]);
    check("port", FlowMod { out_port: PortNo(3), ..delete }, &any, &[1, 3]);
    check("group", FlowMod { out_group: 1, ..delete }, &any, &[1, 2]);
    check("strict", FlowMod { priority: 2, ..strict }, &udp(), &[1, 3]);
    check("strict, wrong priority", FlowMod { priority: 1, ..strict }, &udp(), &[1, 2, 3]);
}

#[test]
fn modify_adds_no_entry_and_keeps_the_cookie() {
    let mut peer = new();
    let base = FlowMod { cookie: 5, ..FlowMod::default() };
    flow(&mut peer, base, &udp(), &[]);
    peer.receive(1, &packet());
    let modify = FlowMod { command: FlowModCommand::MODIFY, cookie: 6, ..FlowMod::default() };
    let actions = ListBuf::from([output(4)]);
    flow(&mut peer, modify, &MatchBuf::new(), &[Instruction::ApplyActions(actions.as_list())]);
    flow(&mut peer, modify, &fields(&[(OxmField::IN_PORT, 9)]), &[]);
    assert_eq!(ports(&peer.receive(1, &packet())), [4]);
    let of =
        |peer: &Peer| peer.switch.flows().map(|(_, f)| (f.cookie, f.packets)).collect::<Vec<_>>();
    assert_eq!(of(&peer), [(5, 2)]);
    flow(&mut peer, FlowMod { cookie: 7, ..base }, &udp(), &[]);
    assert_eq!(of(&peer), [(7, 2)], "ADD keeps the counters of the entry it replaces");
    let reset = FlowMod { flags: FlowModFlags::RESET_COUNTS, ..base };
    flow(&mut peer, reset, &udp(), &[]);
    assert_eq!(of(&peer), [(5, 0)], "RESET_COUNTS resets the counters");
}

#[test]
fn statistics_show_the_installed_entry_and_counters() {
    let mut peer = new();
    let actions = ListBuf::from([set(OxmField::UDP_DST, &[0, 9]), output(2)]);
    let base = FlowMod {
        cookie: 0xfeed,
        idle_timeout: 10,
        hard_timeout: 20,
        flags: FlowModFlags::SEND_FLOW_REM,
        ..FlowMod::default()
    };
    let instructions = [
        Instruction::ApplyActions(actions.as_list()),
        Instruction::WriteMetadata { metadata: 1, mask: 3 },
        Instruction::GotoTable(2),
    ];
    flow(&mut peer, base, &udp(), &instructions);
    peer.receive(1, &packet());
    peer.now = 3 * SECOND + 5;
    let request =
        FlowStatsRequest { cookie: 0xfe00, cookie_mask: 0xff00, ..FlowStatsRequest::default() };
    statistics(&mut peer, Ask::Flow(request), |reply| {
        let MultipartReplyBody::Flow(list) = reply else { panic!("{reply:?}") };
        let entry = list.iter().next().unwrap();
        assert_eq!((entry.duration_sec, entry.duration_nsec), (3, 5));
        assert_eq!((entry.idle_timeout, entry.hard_timeout), (10, 20));
        assert_eq!((entry.packet_count, entry.byte_count), (1, packet().len() as u64));
        assert_eq!(entry.instructions.iter().collect::<Vec<_>>(), instructions);
        assert_eq!(entry.match_.get(OxmField::IP_PROTO).unwrap().number(), Some(17));
        assert_eq!((entry.flags, entry.cookie), (base.flags, base.cookie));
    });
    let nothing = FlowStatsRequest { out_port: PortNo(3), ..FlowStatsRequest::default() };
    statistics(&mut peer, Ask::Flow(nothing), |reply| {
        assert_eq!(reply, MultipartReplyBody::Flow(List::EMPTY));
    });
    statistics(&mut peer, Ask::Aggregate(FlowStatsRequest::default()), |reply| {
        let MultipartReplyBody::Aggregate(sum) = reply else { panic!("{reply:?}") };
        assert_eq!((sum.flow_count, sum.packet_count), (1, 1));
    });
    statistics(&mut peer, Ask::Desc, |reply| {
        let MultipartReplyBody::Desc(desc) = reply else { panic!("{reply:?}") };
        assert_eq!(desc.hw_desc.as_str(), "emulated switch");
    });
    statistics(&mut peer, Ask::PortDesc, |reply| {
        let MultipartReplyBody::PortDesc(list) = reply else { panic!("{reply:?}") };
        let names: Vec<_> = list.iter().map(|port| port.name.to_string()).collect();
        assert_eq!(names, ["eth1", "eth2", "eth3", "eth4"]);
    });
    statistics(&mut peer, Ask::PortStats { port_no: PortNo(2) }, |reply| {
        let MultipartReplyBody::PortStats(list) = reply else { panic!("{reply:?}") };
        let port = list.iter().next().unwrap();
        assert_eq!((port.tx_packets, port.duration_sec, list.count()), (1, 3, 1));
    });
    let queues = Ask::Queue { port_no: PortNo::ANY, queue_id: QUEUE_ALL };
    statistics(&mut peer, queues, |reply| {
        let MultipartReplyBody::Queue(list) = reply else { panic!("{reply:?}") };
        let sent: Vec<_> = list.iter().map(|q| (q.port_no.0, q.tx_packets)).collect();
        assert_eq!(sent, [(1, 0), (2, 1), (3, 0), (4, 0)]);
    });
    statistics(&mut peer, Ask::TableFeatures(List::EMPTY), |reply| {
        let MultipartReplyBody::TableFeatures(list) = reply else { panic!("{reply:?}") };
        assert_eq!((list.count(), list.iter().next().unwrap().properties.count()), (16, 8));
    });
}

#[test]
fn role_requests_set_master_and_slave_and_refuse_stale_generation_ids() {
    let mut peer = new();
    let role = |role, generation_id| Message::RoleRequest(RoleBody { role, generation_id });
    let answered = |peer: &mut Peer, request: Message<'_>| {
        ask(peer, request, |answer| match answer {
            Message::RoleReply(body) => (body.role, body.generation_id),
            other => panic!("{other:?}"),
        })
    };
    assert_eq!(answered(&mut peer, role(Role::NOCHANGE, 0)), (Role::EQUAL, u64::MAX));
    assert_eq!(answered(&mut peer, role(Role::MASTER, 5)), (Role::MASTER, 5));
    assert_eq!(refused(&mut peer, role(Role::SLAVE, 4)), code::ROLE_REQUEST_FAILED_STALE);
    assert_eq!(refused(&mut peer, role(Role(9), 9)), code::ROLE_REQUEST_FAILED_BAD_ROLE);

    // A second controller takes over, and the first becomes a slave.
    let other = peer.switch.open_session();
    let mut hello = Vec::new();
    openflow::Hello::write_message(VersionSet::only(Version::V1_3), 1, &mut hello).unwrap();
    peer.switch.handle_on(0, other, &hello);
    let mut frame = Vec::new();
    role(Role::MASTER, 6).write(1, &mut frame).unwrap();
    peer.switch.handle_on(0, other, &frame);
    assert_eq!(answered(&mut peer, role(Role::NOCHANGE, 0)), (Role::SLAVE, 6));
    let denied = Message::FlowMod(FlowMod::default());
    assert_eq!(refused(&mut peer, denied), code::BAD_REQUEST_IS_SLAVE);

    // The switch sends a PACKET_IN only to the master, and a PORT_STATUS to both controllers.
    peer.switch.output(other).unwrap().clear();
    let mut frame = Vec::new();
    let actions = ListBuf::from([Action::Output { port: PortNo::CONTROLLER, max_len: 0xffff }]);
    let list = ListBuf::from([Instruction::ApplyActions(actions.as_list())]);
    let body = FlowMod { instructions: list.as_list(), ..FlowMod::default() };
    Message::FlowMod(body).write(1, &mut frame).unwrap();
    peer.switch.handle_on(0, other, &frame);
    assert_eq!(peer.receive(1, &packet()).packet_ins, 1);
    peer.switch.set_port_up(1, false, &mut peer.out);
    let types = |frames: Vec<Vec<u8>>| frames.iter().map(|frame| frame[1]).collect::<Vec<_>>();
    assert_eq!(types(peer.frames()), [12]);
    peer.out = std::mem::take(peer.switch.output(other).unwrap());
    assert_eq!(types(peer.frames()), [10, 12]);
    peer.switch.close_session(other);
    assert!(peer.switch.output(other).is_none());
}

#[test]
fn invalid_requests_are_refused_with_the_exact_error_code() {
    fn check(expected: ErrorCode, message: Message<'_>) {
        let mut peer = Peer::connected(Version::V1_3, Config { max_flows: 1, ..Config::new(1, 4) });
        flow(&mut peer, FlowMod { priority: 1, ..FlowMod::default() }, &udp(), &[]);
        assert_eq!(refused(&mut peer, message), expected, "{message:?}");
        assert_eq!(peer.switch.flow_count(), 1);
    }
    fn with_flow(
        expected: ErrorCode,
        base: FlowMod<'_>,
        match_: &MatchBuf,
        list: &[Instruction<'_>],
    ) {
        let instructions = ListBuf::from(list);
        let body = FlowMod {
            match_: match_.as_match(),
            instructions: instructions.as_list(),
            priority: 1,
            ..base
        };
        check(expected, Message::FlowMod(body));
    }
    fn with_action(expected: ErrorCode, action: Action<'_>) {
        let actions = ListBuf::from([action]);
        let list = [Instruction::ApplyActions(actions.as_list())];
        with_flow(expected, FlowMod::default(), &udp(), &list);
        // The switch does not know which fields a packet has when an action set is executed.
        if expected != code::BAD_ACTION_MATCH_INCONSISTENT {
            let list = [Instruction::WriteActions(actions.as_list())];
            with_flow(expected, FlowMod::default(), &udp(), &list);
        }
    }
    let base = FlowMod::default();
    let any = MatchBuf::new();
    with_flow(code::FLOW_MOD_FAILED_TABLE_FULL, base, &any, &[]);
    with_flow(code::FLOW_MOD_FAILED_BAD_TABLE_ID, FlowMod { table_id: 16, ..base }, &any, &[]);
    with_flow(code::FLOW_MOD_FAILED_BAD_TABLE_ID, FlowMod { table_id: 0xff, ..base }, &any, &[]);
    with_flow(
        code::FLOW_MOD_FAILED_BAD_COMMAND,
        FlowMod { command: FlowModCommand(9), ..base },
        &any,
        &[],
    );
    with_flow(
        code::FLOW_MOD_FAILED_BAD_FLAGS,
        FlowMod { flags: FlowModFlags(0x80), ..base },
        &any,
        &[],
    );
    let overlap = FlowMod { flags: FlowModFlags::CHECK_OVERLAP, ..base };
    with_flow(code::FLOW_MOD_FAILED_OVERLAP, overlap, &any, &[]);
    with_flow(code::BAD_MATCH_BAD_PREREQ, base, &fields(&[(OxmField::IP_PROTO, 6)]), &[]);
    with_flow(code::BAD_MATCH_DUP_FIELD, base, &fields(&[(OxmField::IN_PORT, 6); 2]), &[]);
    with_flow(code::BAD_INSTRUCTION_BAD_TABLE_ID, base, &udp(), &[Instruction::GotoTable(0)]);
    with_flow(code::BAD_INSTRUCTION_BAD_TABLE_ID, base, &udp(), &[Instruction::GotoTable(16)]);
    with_flow(code::METER_MOD_FAILED_INVALID_METER, base, &udp(), &[Instruction::Meter(1)]);
    let foreign = Instruction::Experimenter { experimenter: 1, body: &[] };
    with_flow(code::BAD_INSTRUCTION_BAD_EXPERIMENTER, base, &udp(), &[foreign]);
    let unknown = Instruction::Unknown { type_: 50, body: &[0; 4] };
    with_flow(code::BAD_INSTRUCTION_UNKNOWN_INST, base, &udp(), &[unknown]);
    with_flow(code::BAD_INSTRUCTION_UNSUP_INST, base, &udp(), &[Instruction::ClearActions; 2]);

    with_action(code::BAD_ACTION_BAD_OUT_PORT, output(0xff00));
    with_action(code::BAD_ACTION_BAD_OUT_PORT, output(PortNo::ANY.0));
    with_action(code::BAD_ACTION_BAD_OUT_GROUP, Action::Group(1));
    with_action(code::BAD_ACTION_BAD_ARGUMENT, Action::PushVlan(0x0800));
    with_action(code::BAD_ACTION_BAD_ARGUMENT, Action::PushMpls(0x0800));
    with_action(code::BAD_ACTION_BAD_TYPE, Action::PushPbb(0x88e7));
    with_action(
        code::BAD_ACTION_BAD_EXPERIMENTER,
        Action::Experimenter { experimenter: 1, body: &[] },
    );
    with_action(code::BAD_ACTION_MATCH_INCONSISTENT, Action::PopVlan);
    with_action(code::BAD_ACTION_MATCH_INCONSISTENT, Action::PopMpls(0x0800));
    with_action(code::BAD_ACTION_MATCH_INCONSISTENT, set(OxmField::TCP_DST, &[0, 1]));
    with_action(code::BAD_ACTION_MATCH_INCONSISTENT, set(OxmField::VLAN_VID, &[0x10, 1]));
    with_action(code::BAD_ACTION_BAD_SET_ARGUMENT, set(OxmField::IN_PORT, &[0, 0, 0, 1]));
    with_action(code::BAD_ACTION_BAD_SET_ARGUMENT, set(OxmField::IP_DSCP, &[0xff]));
    with_action(code::BAD_ACTION_BAD_SET_TYPE, set(OxmField::PBB_ISID, &[0, 0, 1]));

    let group = |command, type_, id| Message::GroupMod(group_mod(command, type_, id));
    let (add, modify) = (GroupModCommand::ADD, GroupModCommand::MODIFY);
    check(code::GROUP_MOD_FAILED_UNKNOWN_GROUP, group(modify, GroupType::ALL, 1));
    check(code::GROUP_MOD_FAILED_INVALID_GROUP, group(add, GroupType::ALL, GROUP_ALL));
    check(code::GROUP_MOD_FAILED_INVALID_GROUP, group(add, GroupType::INDIRECT, 1));
    check(code::GROUP_MOD_FAILED_BAD_TYPE, group(add, GroupType(9), 1));
    check(code::GROUP_MOD_FAILED_BAD_COMMAND, group(GroupModCommand(9), GroupType::ALL, 1));
    let own = ListBuf::from([Action::Group(1)]);
    let buckets = ListBuf::from([Bucket { actions: own.as_list(), ..Bucket::default() }]);
    let looping = GroupMod { buckets: buckets.as_list(), ..group_mod(add, GroupType::ALL, 1) };
    check(code::GROUP_MOD_FAILED_LOOP, Message::GroupMod(looping));
    let unwatched = GroupMod { type_: GroupType::FF, ..looping };
    check(code::GROUP_MOD_FAILED_INVALID_GROUP, Message::GroupMod(unwatched));

    let meter =
        |command, flags, meter_id| MeterMod { command, flags, meter_id, bands: List::EMPTY };
    let (kbps, both) = (MeterFlags::KBPS, MeterFlags::KBPS | MeterFlags::PKTPS);
    let check_meter = |expected, body| check(expected, Message::MeterMod(body));
    check_meter(code::METER_MOD_FAILED_INVALID_METER, meter(MeterModCommand::ADD, kbps, 0));
    check_meter(code::METER_MOD_FAILED_BAD_FLAGS, meter(MeterModCommand::ADD, both, 1));
    check_meter(code::METER_MOD_FAILED_UNKNOWN_METER, meter(MeterModCommand::MODIFY, kbps, 1));
    check_meter(code::METER_MOD_FAILED_BAD_COMMAND, meter(MeterModCommand(9), kbps, 1));
    let idle = ListBuf::from([MeterBand::Drop { rate: 0, burst_size: 0 }]);
    let body = MeterMod { bands: idle.as_list(), ..meter(MeterModCommand::ADD, kbps, 1) };
    check_meter(code::METER_MOD_FAILED_BAD_RATE, body);

    let port = PortMod {
        port_no: PortNo(50),
        hw_addr: PortConfig::new(50).hw_addr,
        config: openflow::v13::PortConfig::NONE,
        mask: openflow::v13::PortConfig::NONE,
        advertise: openflow::v13::PortFeatures::NONE,
    };
    check(code::PORT_MOD_FAILED_BAD_PORT, Message::PortMod(port));
    let odd = PortMod { mask: openflow::v13::PortConfig(2), ..port };
    check(code::PORT_MOD_FAILED_BAD_CONFIG, Message::PortMod(odd));
    check(
        code::TABLE_MOD_FAILED_BAD_TABLE,
        Message::TableMod(TableMod { table_id: 99, config: 0 }),
    );
    let request = |body| Message::MultipartRequest(MultipartRequest::from(body));
    check(code::BAD_REQUEST_BAD_MULTIPART, request(Ask::Unknown { type_: 99, body: &[] }));
    let foreign = Ask::Experimenter { experimenter: 1, exp_type: 1, body: &[] };
    check(code::BAD_REQUEST_BAD_EXPERIMENTER, request(foreign));
    let table = FlowStatsRequest { table_id: 99, ..FlowStatsRequest::default() };
    check(code::BAD_REQUEST_BAD_TABLE_ID, request(Ask::Flow(table)));
    let queue = Ask::Queue { port_no: PortNo(50), queue_id: 0 };
    check(code::QUEUE_OP_FAILED_BAD_PORT, request(queue));
    let config =
        openflow::v13::SwitchConfig { flags: openflow::v13::ConfigFlags(8), miss_send_len: 0 };
    check(code::SWITCH_CONFIG_FAILED_BAD_FLAGS, Message::SetConfig(config));
    check(code::BAD_REQUEST_BAD_TYPE, Message::BarrierReply);
}

#[test]
fn versions_are_negotiated_or_refused() {
    /// Checks the agreed version when a switch with the versions `ours` receives a HELLO with the versions `theirs`.
    /// Without an agreed version the switch sends an ERROR.
    fn check(ours: VersionSet, theirs: VersionSet, expected: Option<Version>) {
        let config = Config { versions: ours, ..Config::new(1, 1) };
        let mut switch = emulate::Switch::new(config);
        let mut out = Vec::new();
        switch.connect(&mut out);
        out.clear();
        let mut hello = Vec::new();
        openflow::Hello::write_message(theirs, 1, &mut hello).unwrap();
        let outcome = switch.handle_message(0, &hello, &mut out);
        assert_eq!(switch.version(), expected, "{ours:?} and {theirs:?}");
        assert_eq!(outcome.disconnect, expected.is_none());
        assert_eq!(out.get(1).copied(), expected.is_none().then_some(1), "an ERROR if refused");
    }
    let (v10, v13) = (VersionSet::only(Version::V1_0), VersionSet::only(Version::V1_3));
    check(VersionSet::SUPPORTED, v10, Some(Version::V1_0));
    check(VersionSet::SUPPORTED, v13, Some(Version::V1_3));
    check(VersionSet::SUPPORTED, VersionSet::SUPPORTED, Some(Version::V1_3));
    check(v10, VersionSet::SUPPORTED, Some(Version::V1_0));
    check(v10, v13, None);
    check(v13, v10, None);
    check(v13, VersionSet::only(Version::V1_1), None);
}
