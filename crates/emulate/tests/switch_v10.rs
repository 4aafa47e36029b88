//! Tests of the switch in OpenFlow 1.0: every command, every kind of statistics, every error.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

mod common;

use common::{Peer, SECOND, path, ports};
use emulate::frame::ETH_VLAN;
use emulate::{Config, PortConfig, flow_flags, frame};
use openflow::error::v10 as code;
use openflow::v10::{
    Action, ConfigFlags, FlowMod, FlowModCommand, FlowModFlags, FlowStatsRequest, Match, Message,
    PacketOut, PortMod, PortNo, QUEUE_ALL, QueueGetConfigRequest, StatsReplyBody, StatsRequest,
    StatsRequestBody, SwitchConfig, Vendor, Wildcards,
};
use openflow::{ErrorCode, List, ListBuf, NO_BUFFER, Version};

fn peer(config: Config) -> Peer {
    Peer::connected(Version::V1_0, config)
}

fn new() -> Peer {
    peer(Config::new(7, 4))
}

fn send(peer: &mut Peer, message: Message<'_>) -> emulate::Outcome {
    let mut frame = Vec::new();
    message.write(42, &mut frame).unwrap();
    peer.send(&frame)
}

/// Sends a message that must be answered by one message, and calls `look` with the answer.
fn ask<T>(peer: &mut Peer, message: Message<'_>, look: impl FnOnce(Message<'_>) -> T) -> T {
    send(peer, message);
    let frames = peer.frames();
    assert_eq!(frames.len(), 1, "{message:?}");
    let (header, answer) = Message::parse(&frames[0]).unwrap();
    assert_eq!(header.xid, 42);
    look(answer)
}

fn refused(peer: &mut Peer, message: Message<'_>) -> ErrorCode {
    let mut request = Vec::new();
    message.write(42, &mut request).unwrap();
    ask(peer, message, |answer| match answer {
        Message::Error(error) => {
            assert_eq!(error.data, &request[..request.len().min(64)], "{message:?}");
            error.code
        }
        other => panic!("{message:?} was answered by {other:?}"),
    })
}

fn flow_mod<'a>(
    command: FlowModCommand,
    match_: Match,
    priority: u16,
    actions: List<'a, Action<'a>>,
) -> FlowMod<'a> {
    FlowMod { match_, command, priority, actions, ..FlowMod::default() }
}

/// Sends a FLOW_MOD that must succeed.
fn change(peer: &mut Peer, body: FlowMod<'_>) -> emulate::Outcome {
    let outcome = send(peer, Message::FlowMod(body));
    let errors: Vec<_> = peer.out.get(1).into_iter().filter(|type_| **type_ == 1).collect();
    assert!(errors.is_empty(), "{body:?} was refused: {:?}", peer.frames());
    outcome
}

fn add(peer: &mut Peer, match_: Match, priority: u16, actions: &[Action<'_>]) {
    let actions = ListBuf::from(actions);
    change(peer, flow_mod(FlowModCommand::ADD, match_, priority, actions.as_list()));
}

fn output(port: u16) -> Action<'static> {
    Action::Output { port: PortNo(port), max_len: 0 }
}

fn in_port(port: u16) -> Match {
    let wildcards = Wildcards::ALL.without(Wildcards::IN_PORT);
    Match { wildcards, in_port: PortNo(port), ..Match::ANY }
}

fn ip(prefix_src: (u32, u8)) -> Match {
    let wildcards = Wildcards::ALL.without(Wildcards::DL_TYPE).with_nw_src_prefix(prefix_src.1);
    Match { wildcards, dl_type: 0x0800, nw_src: prefix_src.0, ..Match::ANY }
}

fn statistics<T>(
    peer: &mut Peer,
    body: StatsRequestBody<'_>,
    look: impl FnOnce(StatsReplyBody<'_>) -> T,
) -> T {
    ask(peer, Message::StatsRequest(StatsRequest::from(body)), |answer| match answer {
        Message::StatsReply(reply) => look(reply.body),
        other => panic!("{body:?} was answered by {other:?}"),
    })
}

/// The sorted priorities of the entries in the reply to a flow statistics request.
fn dump(peer: &mut Peer, wanted: FlowStatsRequest) -> Vec<u16> {
    statistics(peer, StatsRequestBody::Flow(wanted), |reply| match reply {
        StatsReplyBody::Flow(list) => {
            let mut priorities: Vec<u16> = list.iter().map(|flow| flow.priority).collect();
            priorities.sort_unstable();
            priorities
        }
        other => panic!("{other:?}"),
    })
}

fn dump_all(peer: &mut Peer) -> Vec<u16> {
    dump(peer, FlowStatsRequest::default())
}

#[test]
fn echo_barrier_features_config_and_queue_requests_are_answered() {
    let mut peer = new();
    ask(&mut peer, Message::EchoRequest(b"payload"), |answer| {
        assert_eq!(answer, Message::EchoReply(b"payload"));
    });
    ask(&mut peer, Message::BarrierRequest, |answer| assert_eq!(answer, Message::BarrierReply));
    ask(&mut peer, Message::FeaturesRequest, |answer| {
        let Message::FeaturesReply(features) = answer else { panic!("{answer:?}") };
        assert_eq!((features.datapath_id, features.n_buffers, features.n_tables), (7, 256, 16));
        let names: Vec<_> =
            features.ports.iter().map(|p| (p.port_no.0, p.name.to_string())).collect();
        assert_eq!(names[0], (1, "eth1".to_owned()));
        assert_eq!(names.len(), 4);
    });
    let config = SwitchConfig { flags: ConfigFlags::FRAG_DROP, miss_send_len: 99 };
    send(&mut peer, Message::SetConfig(config));
    ask(&mut peer, Message::GetConfigRequest, |answer| {
        assert_eq!(answer, Message::GetConfigReply(config));
    });
    let mut fragment = path(1, 2).udp(1, 2, b"");
    assert_eq!(peer.receive(1, &fragment).packet_ins, 1);
    fragment[20] |= 0x20;
    assert_eq!(peer.receive(1, &fragment).packet_ins, 0, "fragments are dropped as configured");
    peer.frames();
    let port = PortNo(2);
    ask(&mut peer, Message::QueueGetConfigRequest(QueueGetConfigRequest { port }), |answer| {
        let Message::QueueGetConfigReply(reply) = answer else { panic!("{answer:?}") };
        let queues: Vec<u32> = reply.queues.iter().map(|queue| queue.queue_id).collect();
        assert_eq!((reply.port, queues), (port, vec![0]));
    });
}

#[test]
fn a_table_miss_is_a_packet_in_with_buffer_id_and_cut_data() {
    let mut peer = new();
    let frame = path(1, 2).udp(1, 2, &[0; 200]);
    let outcome = peer.receive(3, &frame);
    assert_eq!((outcome.packet_ins, outcome.sent.len()), (1, 0));
    let frames = peer.frames();
    let (header, Message::PacketIn(body)) = Message::parse(&frames[0]).unwrap() else { panic!() };
    assert_eq!((header.xid, body.in_port, body.reason.0), (0, PortNo(3), 0));
    assert_eq!((usize::from(body.total_len), body.data), (frame.len(), &frame[..128]));
    let buffer_id = body.buffer_id;
    assert_ne!(buffer_id, NO_BUFFER);

    // The buffer can be used once: a PACKET_OUT sends the packet out of a port and out of the ingress port.
    let actions =
        ListBuf::from([output(1), output(3), Action::Output { port: PortNo::IN_PORT, max_len: 0 }]);
    let release = PacketOut { buffer_id, actions: actions.as_list(), ..PacketOut::default() };
    let outcome = send(&mut peer, Message::PacketOut(release));
    assert_eq!(ports(&outcome), [1, 3], "3 is the ingress port, so only IN_PORT reaches it");
    assert_eq!(outcome.sent[0].frame, frame);
    let used = refused(&mut peer, Message::PacketOut(release));
    assert_eq!(used, code::BAD_REQUEST_BUFFER_EMPTY);
    let unknown = PacketOut { buffer_id: 12345, ..release };
    assert_eq!(refused(&mut peer, Message::PacketOut(unknown)), code::BAD_REQUEST_BUFFER_UNKNOWN);

    // Without buffers the PACKET_IN has the whole packet.
    let mut peer = self::peer(Config { n_buffers: 0, ..Config::new(1, 2) });
    peer.receive(1, &frame);
    let frames = peer.frames();
    let (_, Message::PacketIn(body)) = Message::parse(&frames[0]).unwrap() else { panic!() };
    assert_eq!((body.buffer_id, body.data), (NO_BUFFER, &frame[..]));
}

#[test]
fn a_flow_mod_with_a_buffer_id_forwards_the_buffered_packet() {
    let mut peer = new();
    let frame = path(1, 2).udp(1, 2, b"x");
    peer.receive(3, &frame);
    let frames = peer.frames();
    let buffer_id = openflow::frame::buffer_id(&frames[0]).unwrap();
    let actions = ListBuf::from([output(2)]);
    let body = flow_mod(FlowModCommand::ADD, in_port(3), 5, actions.as_list());
    let outcome = change(&mut peer, FlowMod { buffer_id, ..body });
    assert_eq!(ports(&outcome), [2]);
    assert_eq!(peer.switch.flows().next().unwrap().1.packets, 1);
}

#[test]
fn the_highest_priority_entry_is_applied_and_packets_are_counted() {
    let mut peer = new();
    add(&mut peer, Match::ANY, 1, &[output(2)]);
    add(&mut peer, ip((0x0a00_0001, 32)), 9, &[output(3), output(4)]);
    add(&mut peer, ip((0x0a00_0000, 8)), 5, &[]);
    let frame = path(1, 2).udp(1, 2, b"");
    assert_eq!(ports(&peer.receive(1, &frame)), [3, 4]);
    assert_eq!(ports(&peer.receive(1, &path(3, 2).udp(1, 2, b""))), [0u32; 0]);
    assert_eq!(ports(&peer.receive(1, &path(3, 2).arp_request())), [2]);
    let request = FlowStatsRequest { out_port: PortNo(4), ..FlowStatsRequest::default() };
    statistics(&mut peer, StatsRequestBody::Flow(request), |reply| {
        let StatsReplyBody::Flow(list) = reply else { panic!("{reply:?}") };
        let flow = list.iter().next().unwrap();
        assert_eq!((flow.priority, flow.packet_count, flow.byte_count), (9, 1, frame.len() as u64));
        assert_eq!(flow.match_.nw_src, 0x0a00_0001);
        assert_eq!(flow.actions.iter().collect::<Vec<_>>(), [output(3), output(4)]);
        assert_eq!(list.count(), 1);
    });
    statistics(&mut peer, StatsRequestBody::Aggregate(FlowStatsRequest::default()), |reply| {
        let StatsReplyBody::Aggregate(sum) = reply else { panic!("{reply:?}") };
        assert_eq!((sum.flow_count, sum.packet_count), (3, 3));
    });
}

#[test]
fn strict_and_non_strict_deletes_remove_the_right_entries() {
    /// Checks which priorities are left after a command on the entries 1: any, 2: 10/8, 3: 10.0.0.1, 4: port 1.
    fn check(name: &str, body: FlowMod<'_>, left: &[u16]) {
        let mut peer = new();
        add(&mut peer, Match::ANY, 1, &[output(1)]);
        add(&mut peer, ip((0x0a00_0000, 8)), 2, &[output(2)]);
        add(&mut peer, ip((0x0a00_0001, 32)), 3, &[output(2), output(3)]);
        add(&mut peer, in_port(1), 4, &[]);
        change(&mut peer, body);
        assert_eq!(dump_all(&mut peer), left, "{name}");
    }
    let delete = |match_| flow_mod(FlowModCommand::DELETE, match_, 0, List::EMPTY);
    let strict =
        |match_, priority| flow_mod(FlowModCommand::DELETE_STRICT, match_, priority, List::EMPTY);
    check("everything", delete(Match::ANY), &[]);
    check("all that is in 10/8", delete(ip((0x0a00_0000, 8))), &[1, 4]);
    check("all that is in 10.0.0.0/30", delete(ip((0x0a00_0000, 30))), &[1, 2, 4]);
    check("nothing", delete(ip((0x0b00_0000, 8))), &[1, 2, 3, 4]);
    check("what outputs to 2", FlowMod { out_port: PortNo(2), ..delete(Match::ANY) }, &[1, 4]);
    check("what outputs to 3", FlowMod { out_port: PortNo(3), ..delete(Match::ANY) }, &[1, 2, 4]);
    check("strictly the first", strict(Match::ANY, 1), &[2, 3, 4]);
    check("strictly another priority", strict(Match::ANY, 2), &[1, 2, 3, 4]);
    check("strictly another match", strict(ip((0x0a00_0000, 9)), 2), &[1, 2, 3, 4]);
}

#[test]
fn modify_changes_actions_or_adds_an_entry() {
    let mut peer = new();
    add(&mut peer, ip((0x0a00_0000, 8)), 2, &[output(2)]);
    add(&mut peer, ip((0x0a00_0001, 32)), 3, &[output(3)]);
    let frame = path(1, 2).udp(1, 2, b"");
    peer.receive(1, &frame);
    let actions = ListBuf::from([output(4)]);
    let modify = flow_mod(FlowModCommand::MODIFY, ip((0x0a00_0000, 8)), 77, actions.as_list());
    change(&mut peer, modify);
    assert_eq!(dump_all(&mut peer), [2, 3], "both were modified, none was added");
    assert_eq!(ports(&peer.receive(1, &frame)), [4]);
    let counts: Vec<u64> = peer.switch.flows().map(|(_, flow)| flow.packets).collect();
    assert_eq!(counts, [0, 2], "modifying keeps the counters");

    let strict = FlowMod { command: FlowModCommand::MODIFY_STRICT, ..modify };
    change(&mut peer, strict);
    assert_eq!(dump_all(&mut peer), [2, 3, 77], "a strict MODIFY that finds nothing adds");
    change(&mut peer, FlowMod { match_: in_port(4), ..modify });
    assert_eq!(dump_all(&mut peer), [2, 3, 77, 77]);
}

#[test]
fn an_add_of_an_existing_entry_replaces_the_entry_and_resets_counters() {
    let mut peer = new();
    add(&mut peer, in_port(1), 2, &[output(2)]);
    let frame = path(1, 2).udp(1, 2, b"");
    peer.receive(1, &frame);
    add(&mut peer, in_port(1), 2, &[output(3)]);
    assert_eq!(dump_all(&mut peer), [2]);
    assert_eq!(peer.switch.flows().next().unwrap().1.packets, 0, "ADD begins the counters anew");
    assert_eq!(ports(&peer.receive(1, &frame)), [3]);
}

#[test]
fn expired_and_deleted_entries_send_flow_removed_if_requested() {
    let mut peer = new();
    let flags = FlowModFlags::SEND_FLOW_REM;
    let base = flow_mod(FlowModCommand::ADD, in_port(1), 1, List::EMPTY);
    change(&mut peer, FlowMod { idle_timeout: 5, hard_timeout: 8, cookie: 0xc0, flags, ..base });
    change(&mut peer, FlowMod { match_: in_port(2), idle_timeout: 5, cookie: 0xc1, flags, ..base });
    change(&mut peer, FlowMod { match_: in_port(3), hard_timeout: 5, cookie: 0xc2, ..base });
    assert_eq!(peer.switch.next_deadline(), Some(5 * SECOND));
    peer.now = 4 * SECOND;
    let frame = path(1, 2).udp(1, 2, b"");
    peer.receive(1, &frame);
    peer.tick(5 * SECOND);
    let removed = |peer: &mut Peer| -> Vec<(u64, u8, u64, u32)> {
        let frames = peer.frames();
        let parsed = frames.iter().map(|frame| Message::parse(frame).unwrap().1);
        parsed
            .map(|message| match message {
                Message::FlowRemoved(r) => (r.cookie, r.reason.0, r.packet_count, r.duration_sec),
                other => panic!("{other:?}"),
            })
            .collect()
    };
    assert_eq!(removed(&mut peer), [(0xc1, 0, 0, 5)], "idle; the silent one just goes");
    assert_eq!(dump_all(&mut peer), [1]);
    peer.tick(8 * SECOND);
    assert_eq!(removed(&mut peer), [(0xc0, 1, 1, 8)], "hard");
    change(&mut peer, FlowMod { cookie: 0xc3, flags, ..base });
    change(&mut peer, FlowMod { command: FlowModCommand::DELETE, match_: Match::ANY, ..base });
    assert_eq!(removed(&mut peer), [(0xc3, 2, 0, 0)], "deleted");
}

#[test]
fn every_action_changes_the_expected_packet_bytes() {
    fn check(name: &str, actions: &[Action<'_>], sent: Vec<u8>, expected: Vec<u8>) {
        let mut peer = new();
        let actions: Vec<_> = actions.iter().copied().chain([output(2)]).collect();
        add(&mut peer, Match::ANY, 1, &actions);
        let outcome = peer.receive(1, &sent);
        assert_eq!(outcome.sent[0].frame, expected, "{name}");
    }
    let tcp = || path(1, 2).tcp(1000, 80, b"data");
    let edited = |edit: &dyn Fn(&mut Vec<u8>)| {
        let mut frame = tcp();
        edit(&mut frame);
        frame
    };
    check("dl_src", &[Action::SetDlSrc([9; 6])], tcp(), edited(&|f| frame::set_eth_src(f, [9; 6])));
    check("dl_dst", &[Action::SetDlDst([9; 6])], tcp(), edited(&|f| frame::set_eth_dst(f, [9; 6])));
    check("nw_src", &[Action::SetNwSrc(9)], tcp(), edited(&|f| frame::set_ipv4_src(f, 9)));
    check("nw_dst", &[Action::SetNwDst(9)], tcp(), edited(&|f| frame::set_ipv4_dst(f, 9)));
    check("nw_tos", &[Action::SetNwTos(0x28)], tcp(), edited(&|f| frame::set_dscp(f, 10)));
    check("tp_src", &[Action::SetTpSrc(9)], tcp(), path(1, 2).tcp(9, 80, b"data"));
    check("tp_dst", &[Action::SetTpDst(9)], tcp(), path(1, 2).tcp(1000, 9, b"data"));
    let tagged = edited(&|f| {
        frame::push_vlan(f, ETH_VLAN);
        frame::set_vlan_vid(f, 5);
        frame::set_vlan_pcp(f, 3);
    });
    check("vlan", &[Action::SetVlanVid(5), Action::SetVlanPcp(3)], tcp(), tagged.clone());
    check("strip", &[Action::StripVlan], tagged, tcp());
    check("nothing to strip", &[Action::StripVlan], tcp(), tcp());
    let arp = || path(1, 2).arp_request();
    check("addresses of ARP stay", &[Action::SetNwSrc(9), Action::SetTpSrc(9)], arp(), arp());
}

#[test]
fn outputs_to_physical_and_reserved_ports_use_the_right_ports() {
    fn check(name: &str, action: Action<'_>, expected: &[u32]) {
        let mut peer = new();
        let port = PortMod {
            port_no: PortNo(4),
            hw_addr: PortConfig::new(4).hw_addr,
            config: openflow::v10::PortConfig::NO_FLOOD,
            mask: openflow::v10::PortConfig::NO_FLOOD,
            advertise: openflow::v10::PortFeatures::NONE,
        };
        send(&mut peer, Message::PortMod(port));
        add(&mut peer, Match::ANY, 1, &[action]);
        let outcome = peer.receive(1, &path(1, 2).udp(1, 2, b""));
        assert_eq!(ports(&outcome), expected, "{name}");
    }
    let to = |port| Action::Output { port, max_len: 0 };
    check("a port", to(PortNo(3)), &[3]);
    check("a port that is not there", to(PortNo(30)), &[]);
    check("the ingress port by number", to(PortNo(1)), &[]);
    check("the ingress port by name", to(PortNo::IN_PORT), &[1]);
    check("all", to(PortNo::ALL), &[2, 3, 4]);
    check("flood leaves NO_FLOOD ports out", to(PortNo::FLOOD), &[2, 3]);
    check("normal floods what it does not know", to(PortNo::NORMAL), &[2, 3]);
    check("the local port is not there", to(PortNo::LOCAL), &[]);
    check("a queue", Action::Enqueue { port: PortNo(2), queue_id: 0 }, &[2]);
}

#[test]
fn enqueue_sets_the_queue_for_a_single_output_and_counts_packets() {
    let mut config = Config::new(1, 2);
    config.ports[1].queues = vec![0, 5];
    let mut peer = peer(config);
    add(&mut peer, Match::ANY, 1, &[Action::Enqueue { port: PortNo(2), queue_id: 5 }, output(2)]);
    let outcome = peer.receive(1, &path(1, 2).udp(1, 2, b""));
    let queues: Vec<u32> = outcome.sent.iter().map(|transmit| transmit.queue).collect();
    assert_eq!(queues, [5, 0], "the queue holds for its own output only");
    let counters = &peer.switch.port(2).unwrap().queues;
    assert_eq!((counters[&5].tx_packets, counters[&0].tx_packets), (1, 1));
}

#[test]
fn output_to_normal_learns_mac_addresses() {
    let mut peer = new();
    add(&mut peer, Match::ANY, 1, &[Action::Output { port: PortNo::NORMAL, max_len: 0 }]);
    assert_eq!(ports(&peer.receive(3, &path(3, 1).udp(1, 2, b""))), [1, 2, 4]);
    assert_eq!(ports(&peer.receive(1, &path(1, 3).udp(1, 2, b""))), [3]);
    assert_eq!(ports(&peer.receive(3, &path(3, 1).udp(1, 2, b""))), [1]);
}

#[test]
fn port_mod_changes_forwarding_and_port_changes_send_port_status() {
    let mut peer = new();
    add(&mut peer, Match::ANY, 1, &[output(2)]);
    let frame = path(1, 2).udp(1, 2, b"");
    let set = |peer: &mut Peer, port: u16, bits: u32| {
        let body = PortMod {
            port_no: PortNo(port),
            hw_addr: PortConfig::new(port.into()).hw_addr,
            config: openflow::v10::PortConfig(bits),
            mask: openflow::v10::PortConfig(0x7f),
            advertise: openflow::v10::PortFeatures::NONE,
        };
        send(peer, Message::PortMod(body));
        assert_eq!(
            peer.frames(),
            [[0u8; 0]; 0],
            "a controller gets no PORT_STATUS for its own PORT_MOD"
        );
    };
    for (port, bits) in [(2, 1 << 0), (2, 1 << 5), (1, 1 << 0), (1, 1 << 2)] {
        set(&mut peer, port, bits);
        assert_eq!(ports(&peer.receive(1, &frame)), [0u32; 0], "port {port}, bits {bits:#x}");
        set(&mut peer, port, 0);
        assert_eq!(ports(&peer.receive(1, &frame)), [2]);
    }
    peer.switch.set_port_up(2, false, &mut peer.out);
    peer.switch.set_port_up(2, false, &mut peer.out);
    peer.switch.add_port(0, PortConfig::new(9), &mut peer.out);
    peer.switch.remove_port(9, &mut peer.out);
    peer.switch.remove_port(9, &mut peer.out);
    let frames = peer.frames();
    let news: Vec<_> = frames
        .iter()
        .map(|frame| match Message::parse(frame).unwrap().1 {
            Message::PortStatus(s) => (s.reason.0, s.desc.port_no.0, s.desc.state.0),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(news, [(2, 2, 1), (0, 9, 0), (1, 9, 0)]);
    assert_eq!(ports(&peer.receive(1, &frame)), [0u32; 0]);
    statistics(&mut peer, StatsRequestBody::Port { port_no: PortNo(2) }, |reply| {
        let StatsReplyBody::Port(list) = reply else { panic!("{reply:?}") };
        let stats = list.iter().next().unwrap();
        assert_eq!((stats.tx_packets, stats.tx_dropped), (4, 3));
    });
    statistics(&mut peer, StatsRequestBody::Port { port_no: PortNo::NONE }, |reply| {
        let StatsReplyBody::Port(list) = reply else { panic!("{reply:?}") };
        let stats: Vec<_> =
            list.iter().map(|p| (p.port_no.0, p.rx_packets, p.rx_dropped)).collect();
        assert_eq!(stats, [(1, 7, 2), (2, 0, 0), (3, 0, 0), (4, 0, 0)]);
    });
    statistics(&mut peer, StatsRequestBody::Port { port_no: PortNo(50) }, |reply| {
        assert_eq!(reply, StatsReplyBody::Port(List::EMPTY));
    });
}

#[test]
fn description_table_and_queue_statistics_are_answered() {
    let mut peer = new();
    add(&mut peer, in_port(1), 1, &[Action::Enqueue { port: PortNo(2), queue_id: 0 }]);
    let frame = path(1, 2).udp(1, 2, b"");
    peer.receive(1, &frame);
    peer.receive(2, &frame);
    peer.frames();
    statistics(&mut peer, StatsRequestBody::Desc, |reply| {
        let StatsReplyBody::Desc(desc) = reply else { panic!("{reply:?}") };
        assert_eq!(
            (desc.mfr_desc.as_str(), desc.serial_num.as_str()),
            ("Weir", "0000000000000007")
        );
    });
    statistics(&mut peer, StatsRequestBody::Table, |reply| {
        let StatsReplyBody::Table(list) = reply else { panic!("{reply:?}") };
        let table = list.iter().next().unwrap();
        assert_eq!((table.active_count, table.lookup_count, table.matched_count), (1, 2, 1));
        assert_eq!(list.count(), 16);
    });
    let queue = |port_no, queue_id| StatsRequestBody::Queue { port_no, queue_id };
    statistics(&mut peer, queue(PortNo::ALL, QUEUE_ALL), |reply| {
        let StatsReplyBody::Queue(list) = reply else { panic!("{reply:?}") };
        let sent: Vec<_> = list.iter().map(|q| (q.port_no.0, q.tx_packets)).collect();
        assert_eq!(sent, [(1, 0), (2, 1), (3, 0), (4, 0)]);
    });
    let ask =
        |peer: &mut Peer, body| refused(peer, Message::StatsRequest(StatsRequest::from(body)));
    assert_eq!(ask(&mut peer, queue(PortNo(9), 0)), code::QUEUE_OP_FAILED_BAD_PORT);
    assert_eq!(ask(&mut peer, queue(PortNo(1), 5)), code::QUEUE_OP_FAILED_BAD_QUEUE);
    let vendor = StatsRequestBody::Vendor { vendor: 1, body: &[] };
    assert_eq!(ask(&mut peer, vendor), code::BAD_REQUEST_BAD_VENDOR);
    let unknown = StatsRequestBody::Unknown { type_: 99, body: &[] };
    assert_eq!(ask(&mut peer, unknown), code::BAD_REQUEST_BAD_STAT);
}

#[test]
fn invalid_requests_are_refused_with_the_exact_error_code() {
    fn check(expected: ErrorCode, message: Message<'_>) {
        let mut peer = peer(Config { max_flows: 1, ..Config::new(1, 4) });
        add(&mut peer, ip((0x0a00_0000, 8)), 5, &[]);
        assert_eq!(refused(&mut peer, message), expected, "{message:?}");
        assert_eq!(peer.switch.flow_count(), 1);
    }
    let actions = |expected, action: Action<'_>| {
        let list = ListBuf::from([action]);
        let body = flow_mod(FlowModCommand::ADD, ip((0x0a00_0000, 8)), 5, list.as_list());
        check(expected, Message::FlowMod(body));
        let body = PacketOut { actions: list.as_list(), data: &[0; 60], ..PacketOut::default() };
        check(expected, Message::PacketOut(body));
    };
    actions(code::BAD_ACTION_BAD_OUT_PORT, output(0xff00));
    actions(code::BAD_ACTION_BAD_OUT_PORT, output(PortNo::NONE.0));
    actions(code::BAD_ACTION_BAD_OUT_PORT, Action::Enqueue { port: PortNo::ALL, queue_id: 0 });
    actions(code::BAD_ACTION_BAD_ARGUMENT, Action::SetVlanVid(0x1000));
    actions(code::BAD_ACTION_BAD_ARGUMENT, Action::SetVlanPcp(8));
    actions(code::BAD_ACTION_BAD_ARGUMENT, Action::SetNwTos(1));
    actions(code::BAD_ACTION_BAD_VENDOR, Action::Vendor { vendor: 1, body: &[] });
    actions(code::BAD_ACTION_BAD_TYPE, Action::Unknown { type_: 77, body: &[0; 4] });

    let flow = |command, match_, flags| {
        let body = flow_mod(command, match_, 5, List::EMPTY);
        Message::FlowMod(FlowMod { flags, ..body })
    };
    let none = FlowModFlags::NONE;
    check(code::FLOW_MOD_FAILED_BAD_COMMAND, flow(FlowModCommand(9), Match::ANY, none));
    check(code::FLOW_MOD_FAILED_ALL_TABLES_FULL, flow(FlowModCommand::ADD, Match::ANY, none));
    check(
        code::FLOW_MOD_FAILED_ALL_TABLES_FULL,
        flow(FlowModCommand::ADD, Match::ANY, FlowModFlags::EMERG),
    );
    let overlap = FlowModFlags::CHECK_OVERLAP;
    check(code::FLOW_MOD_FAILED_OVERLAP, flow(FlowModCommand::ADD, ip((0x0a00_0001, 32)), overlap));

    let port = PortMod {
        port_no: PortNo(1),
        hw_addr: [1; 6],
        config: openflow::v10::PortConfig::NONE,
        mask: openflow::v10::PortConfig::NONE,
        advertise: openflow::v10::PortFeatures::NONE,
    };
    check(code::PORT_MOD_FAILED_BAD_HW_ADDR, Message::PortMod(port));
    let nowhere = PortMod { port_no: PortNo(50), ..port };
    check(code::PORT_MOD_FAILED_BAD_PORT, Message::PortMod(nowhere));
    let queue = QueueGetConfigRequest { port: PortNo(50) };
    check(code::QUEUE_OP_FAILED_BAD_PORT, Message::QueueGetConfigRequest(queue));
    check(code::BAD_REQUEST_BAD_VENDOR, Message::Vendor(Vendor { vendor: 1, body: &[] }));
    check(code::BAD_REQUEST_BAD_TYPE, Message::BarrierReply);
    check(code::BAD_REQUEST_BAD_TYPE, Message::Unknown { type_: 99, body: &[] });
}

#[test]
fn malformed_messages_are_refused_without_disconnect() {
    let mut peer = new();
    let mut frame = Vec::new();
    Message::FlowMod(FlowMod::default()).write(42, &mut frame).unwrap();
    frame.truncate(30);
    frame[3] = 30;
    let outcome = peer.send(&frame);
    assert!(!outcome.disconnect);
    let answers = peer.frames();
    let (_, Message::Error(error)) = Message::parse(&answers[0]).unwrap() else { panic!() };
    assert_eq!((error.code, error.data), (code::BAD_REQUEST_BAD_LEN, &frame[..]));

    let mut echo = Vec::new();
    Message::EchoRequest(b"").write(42, &mut echo).unwrap();
    echo[0] = 4;
    peer.send(&echo);
    let answers = peer.frames();
    let (_, Message::Error(error)) = Message::parse(&answers[0]).unwrap() else { panic!() };
    assert_eq!(error.code, code::BAD_REQUEST_BAD_VERSION);
}

#[test]
fn an_entry_without_wildcards_has_the_highest_priority() {
    let mut peer = new();
    let exact = Match {
        wildcards: Wildcards(0),
        in_port: PortNo(1),
        dl_type: 0x0800,
        dl_vlan: openflow::v10::VLAN_NONE,
        ..Match::ANY
    };
    add(&mut peer, exact, 3, &[]);
    let flow = peer.switch.flows().next().unwrap().1;
    assert_eq!((flow.priority, flow.flags & flow_flags::SEND_FLOW_REM), (u16::MAX, 0));
}
