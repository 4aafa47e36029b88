//! Tests with Open vSwitch as oracle: the same rules and packets give the same frames on the same ports, and the same
//! wrong messages give the same errors.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]
#![allow(clippy::print_stderr, reason = "what is skipped is said loudly")]

mod common;
mod ovs;

use std::process::Command;

use common::{Peer, path};
use emulate::controller::malformed_messages;
use emulate::frame::{self, build::Path};
use emulate::{Config, Fault, Network, Runner, Running, SwitchIndex};
use openflow::Version;
use ovs::Ovs;

const SWITCH: SwitchIndex = SwitchIndex(0);

/// An emulated switch that ovs-ofctl can configure.
struct Emulated(Running);

impl Emulated {
    fn start() -> Emulated {
        let mut network = Network::new();
        let faults = vec![Fault::RunSetOnMiss];
        network.add_switch(emulate::Switch::new(Config { faults, ..Config::new(1, ovs::PORTS) }));
        let address = "tcp:127.0.0.1:0".parse().unwrap();
        Emulated(Runner::new(network).listen(SWITCH, address).start().unwrap())
    }

    fn ofctl(&self, version: Version, command: &str, argument: &str) {
        let address = self.0.listening_on(SWITCH).unwrap().to_string();
        let output = Command::new("ovs-ofctl")
            .args(["-O", ovs::name(version), command, &address, argument])
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{command} {argument}: {error}");
    }

    fn forward(&self, port: u32, frame: &[u8]) -> Vec<(u32, Vec<u8>)> {
        let frame = frame.to_vec();
        let work = move |network: &mut Network, now: u64| {
            let switch = network.switch_mut(SWITCH).unwrap();
            switch.receive(now, port, &frame).sent
        };
        let mut sent: Vec<(u32, Vec<u8>)> =
            self.0.call(work).unwrap().into_iter().map(|t| (t.port, t.frame)).collect();
        sent.sort_by_key(|(port, _)| *port);
        sent
    }
}

fn packets() -> Vec<(&'static str, Vec<u8>)> {
    let tagged = |vid: u16, mut frame: Vec<u8>| {
        frame::push_vlan(&mut frame, frame::ETH_VLAN);
        frame::set_vlan_vid(&mut frame, vid);
        frame
    };
    let elsewhere = Path { ip_src: 0xc0a8_0101, ..path(3, 2) };
    vec![
        ("UDP", path(1, 2).udp(1000, 53, b"question")),
        ("TCP", path(1, 2).tcp(1000, 80, b"GET / HTTP/1.1, which is longer than the least frame")),
        ("ICMP", path(1, 2).icmp_echo(false, 1, 2, b"ping")),
        ("ARP", path(1, 2).arp_request()),
        ("UDP from elsewhere", elsewhere.udp(5, 6, b"")),
        ("tagged UDP", tagged(5, path(1, 2).udp(1000, 53, b"question"))),
        ("tagged ARP", tagged(6, path(2, 1).arp_request())),
        ("twice tagged", tagged(5, tagged(6, path(1, 2).udp(1000, 53, b"question")))),
    ]
}

/// Rule sets: each set has a version and rules; groups begin with `group_id`.
///
/// The rules always set the id of a second tag: by the specification (1.3, section 5.12.1) the second tag copies the id
/// of the first tag, but in Open vSwitch the id is 0. Only untagged frames get two tags, because Open vSwitch forgets
/// one of three tags.
const CASES: &[(Version, &[&str])] = &[
    (Version::V1_0, &["actions=output:2,output:3"]),
    (Version::V1_0, &["actions=output:1,in_port"]),
    (
        Version::V1_0,
        &[
            "priority=5,ip,nw_src=10.0.0.0/8,actions=2",
            "priority=4,ip,actions=3",
            "priority=6,tcp,actions=4",
        ],
    ),
    (
        Version::V1_0,
        &["dl_vlan=5,actions=strip_vlan,output:2", "priority=1,dl_vlan=0xffff,actions=output:3"],
    ),
    (
        Version::V1_0,
        &["actions=mod_vlan_vid:77,output:2,mod_vlan_pcp:3,output:3,strip_vlan,output:4"],
    ),
    (
        Version::V1_0,
        &["actions=mod_dl_src:02:00:00:00:00:99,mod_dl_dst:02:00:00:00:00:98,output:2"],
    ),
    (Version::V1_0, &["actions=mod_nw_src:1.2.3.4,output:2,mod_nw_dst:5.6.7.8,output:3"]),
    (Version::V1_0, &["actions=mod_nw_tos:40,output:2"]),
    (
        Version::V1_0,
        &["tcp,actions=mod_tp_src:99,mod_tp_dst:98,output:2", "udp,actions=mod_tp_dst:97,output:3"],
    ),
    (
        Version::V1_0,
        &[
            "arp,nw_proto=1,nw_dst=10.0.0.2,actions=2",
            "icmp,icmp_type=8,actions=3",
            "udp,tp_dst=53,actions=4",
        ],
    ),
    (Version::V1_0, &["priority=9,dl_vlan_pcp=0,dl_vlan=5,actions=2", "priority=1,actions=ALL"]),
    (
        Version::V1_0,
        &[
            "priority=9,dl_src=02:00:00:00:00:01,dl_type=0x0800,nw_tos=0,actions=2",
            "priority=1,actions=FLOOD",
        ],
    ),
    (
        Version::V1_3,
        &[
            "table=0,udp,actions=write_metadata:0x12/0xff,goto_table:1",
            "table=1,metadata=0x12/0xff,actions=2",
        ],
    ),
    (
        Version::V1_3,
        &[
            "table=0,actions=write_actions(output:2),goto_table:1",
            "table=1,ip,actions=write_actions(output:3)",
            "table=1,priority=1,actions=4",
        ],
    ),
    (
        Version::V1_3,
        &[
            "table=0,actions=write_actions(output:2),goto_table:1",
            "table=1,ip,actions=clear_actions",
            "table=1,priority=1,arp,actions=4",
        ],
    ),
    (
        Version::V1_3,
        &[
            "table=0,actions=write_actions(output:2),goto_table:1",
            "table=1,ip,actions=write_actions(pop_vlan)",
        ],
    ),
    (
        Version::V1_3,
        &["ip,actions=dec_ttl,output:2,set_field:9->ip_dscp,output:3,set_field:3->nw_ecn,output:4"],
    ),
    (
        Version::V1_3,
        &[
            "ip,actions=push_mpls:0x8847,set_field:77->mpls_label,set_field:5->mpls_tc,output:2,dec_mpls_ttl,output:3,pop_mpls:0x0800,output:4",
        ],
    ),
    (
        Version::V1_3,
        &[
            "vlan_vid=0,actions=push_vlan:0x8100,set_field:4103->vlan_vid,output:2,push_vlan:0x88a8,set_field:4104->vlan_vid,set_field:2->vlan_pcp,output:3,pop_vlan,pop_vlan,output:4",
        ],
    ),
    (
        Version::V1_3,
        &["vlan_vid=0x1000/0x1000,actions=pop_vlan,output:2", "priority=1,vlan_vid=0,actions=3"],
    ),
    (
        Version::V1_3,
        &[
            "tcp,actions=set_field:7->tcp_src,set_field:8->tcp_dst,output:2",
            "udp,actions=set_field:1.2.3.4->ip_src,set_field:9->udp_src,output:3",
        ],
    ),
    (
        Version::V1_3,
        &[
            "arp,actions=set_field:2->arp_op,set_field:10.0.0.9->arp_spa,set_field:02:00:00:00:00:09->arp_sha,output:2",
            "icmp,actions=set_field:0->icmp_type,output:3",
        ],
    ),
    (
        Version::V1_3,
        &[
            "group_id=1,type=all,bucket=output:2,bucket=set_field:02:00:00:00:00:09->eth_src,output:3",
            "actions=group:1,output:4",
        ],
    ),
    (
        Version::V1_3,
        &[
            "group_id=1,type=ff,bucket=watch_port:4,output:4,bucket=watch_port:3,output:3",
            "group_id=2,type=indirect,bucket=group:1",
            "ip,actions=group:2",
        ],
    ),
    (
        Version::V1_3,
        &[
            "group_id=1,type=all,bucket=set_field:4102->vlan_vid,output:2,bucket=set_field:3->vlan_pcp,output:3",
            "actions=group:1",
        ],
    ),
    (
        Version::V1_3,
        &[
            "table=0,priority=0,actions=goto_table:5",
            "table=5,ip,nw_src=192.168.0.0/16,actions=2",
            "table=5,ip,nw_dst=10.0.0.2/255.0.0.255,actions=3",
        ],
    ),
    (
        Version::V1_3,
        &["eth_dst=01:00:00:00:00:00/01:00:00:00:00:00,actions=2", "priority=1,actions=NORMAL"],
    ),
];

#[test]
fn packets_leave_the_same_ports_as_in_open_vswitch_with_equal_bytes() {
    let Some(mut ovs) = Ovs::start("forward") else { return };
    let packets = packets();
    let mut differences = Vec::new();
    for (version, rules) in CASES {
        ovs.reset();
        // Each set gets a new switch, which does not remember where NORMAL saw stations.
        let emulated = Emulated::start();
        for rule in *rules {
            let command = if rule.starts_with("group_id") { "add-group" } else { "add-flow" };
            ovs.ofctl(*version, command, rule);
            emulated.ofctl(*version, command, rule);
        }
        ovs.settle();
        for (name, packet) in &packets {
            let theirs = ovs.forward(1, packet);
            let ours = emulated.forward(1, packet);
            if ours != theirs {
                differences
                    .push(format!("{name} under {rules:?}: ours {ours:x?}, theirs {theirs:x?}"));
            }
        }
    }
    assert!(differences.is_empty(), "{differences:#?}");
}

/// The type and code of the emulated switch's ERROR.
fn refusal(version: Version, message: &[u8]) -> Option<(u16, u16)> {
    let mut peer = Peer::connected(
        version,
        Config { n_tables: 254, n_buffers: 0, ..Config::new(1, ovs::PORTS) },
    );
    peer.send(message);
    let answers = peer.frames();
    let error = answers.iter().find(|answer| answer[1] == 1)?;
    let word = |at: usize| u16::from_be_bytes([error[at], error[at + 1]]);
    Some((word(8), word(10)))
}

#[test]
fn wrong_messages_get_the_same_error_codes_as_from_open_vswitch() {
    let Some(ovs) = Ovs::start("refuse") else { return };
    let mut differences = Vec::new();
    for version in [Version::V1_0, Version::V1_3] {
        let mut messages: Vec<(String, Vec<u8>)> = malformed_messages(version)
            .into_iter()
            .map(|(what, message)| (what.to_owned(), message))
            .collect();
        messages.extend(wrong_messages(version));
        for (what, message) in messages {
            if DELIBERATE.contains(&what.as_str()) {
                continue;
            }
            ovs.reset();
            let (theirs, ours) = (ovs.refusal(version, &message), refusal(version, &message));
            if theirs != ours {
                differences.push(format!("{version:?}, {what}: ours {ours:?}, theirs {theirs:?}"));
            }
        }
    }
    assert!(differences.is_empty(), "{differences:#?}");
}

/// The emulated switch follows the specification in these cases, and Open vSwitch does not: Open vSwitch answers an
/// ECHO of any version that it can frame, and answers an ERROR with an ERROR.
const DELIBERATE: [&str; 2] = ["an unknown version", "an ERROR without a code"];

/// Messages that can be read, but cannot be carried out.
fn wrong_messages(version: Version) -> Vec<(String, Vec<u8>)> {
    match version {
        Version::V1_0 => wrong_messages_v10(),
        _ => wrong_messages_v13(),
    }
}

fn wrong_messages_v10() -> Vec<(String, Vec<u8>)> {
    use openflow::ListBuf;
    use openflow::v10::*;
    let mut messages: Vec<(String, Vec<u8>)> = Vec::new();
    let mut push = |message: Message<'_>| {
        let mut frame = Vec::new();
        message.write(7, &mut frame).unwrap();
        messages.push((format!("{message:?}"), frame));
    };
    let output = |port| Action::Output { port: PortNo(port), max_len: 0 };
    for action in [
        output(0),
        output(0xff00),
        output(PortNo::NONE.0),
        output(77),
        output(PortNo::TABLE.0),
        Action::Enqueue { port: PortNo::ALL, queue_id: 0 },
        Action::Enqueue { port: PortNo(1), queue_id: 9 },
        Action::SetVlanVid(0x1000),
        Action::SetVlanPcp(8),
        Action::SetNwTos(1),
        Action::Vendor { vendor: 1, body: &[] },
        Action::Unknown { type_: 77, body: &[0; 4] },
    ] {
        let actions = ListBuf::from([action]);
        push(Message::FlowMod(FlowMod { actions: actions.as_list(), ..FlowMod::default() }));
        let body = PacketOut { actions: actions.as_list(), data: &[0; 60], ..PacketOut::default() };
        push(Message::PacketOut(body));
    }
    push(Message::FlowMod(FlowMod { command: FlowModCommand(9), ..FlowMod::default() }));
    push(Message::FlowMod(FlowMod { flags: FlowModFlags::EMERG, ..FlowMod::default() }));
    let port = PortMod {
        port_no: PortNo(77),
        hw_addr: [0; 6],
        config: PortConfig::NONE,
        mask: PortConfig::NONE,
        advertise: PortFeatures::NONE,
    };
    push(Message::PortMod(port));
    push(Message::PortMod(PortMod { port_no: PortNo(1), hw_addr: [2; 6], ..port }));
    push(Message::QueueGetConfigRequest(QueueGetConfigRequest { port: PortNo(77) }));
    push(Message::Vendor(Vendor { vendor: 1, body: &[0; 4] }));
    push(Message::BarrierReply);
    for body in [
        StatsRequestBody::Queue { port_no: PortNo(77), queue_id: QUEUE_ALL },
        StatsRequestBody::Queue { port_no: PortNo(1), queue_id: 9 },
        StatsRequestBody::Vendor { vendor: 1, body: &[] },
        StatsRequestBody::Port { port_no: PortNo(77) },
    ] {
        push(Message::StatsRequest(StatsRequest::from(body)));
    }
    messages
}

fn wrong_messages_v13() -> Vec<(String, Vec<u8>)> {
    use openflow::v13::*;
    use openflow::{List, ListBuf};
    let mut messages: Vec<(String, Vec<u8>)> = Vec::new();
    let mut push = |message: Message<'_>| {
        let mut frame = Vec::new();
        message.write(7, &mut frame).unwrap();
        messages.push((format!("{message:?}"), frame));
    };
    let output = |port| Action::Output { port: PortNo(port), max_len: 0 };
    let mut udp = MatchBuf::new();
    udp.exact(OxmField::ETH_TYPE, 0x0800).exact(OxmField::IP_PROTO, 17);
    let set = |field, value: &'static [u8]| Action::SetField(Oxm::exact(field, value));
    for action in [
        output(0),
        output(0xff00),
        output(PortNo::ANY.0),
        output(77),
        Action::Group(77),
        Action::PushVlan(0x0800),
        Action::PushMpls(0x0800),
        Action::PopVlan,
        Action::PopMpls(0x0800),
        Action::DecMplsTtl,
        Action::PushPbb(0x88e7),
        Action::Experimenter { experimenter: 1, body: &[] },
        Action::Unknown { type_: 77, body: &[0; 4] },
        set(OxmField::TCP_DST, &[0, 1]),
        set(OxmField::UDP_DST, &[0, 1]),
        set(OxmField::VLAN_VID, &[0x10, 1]),
        set(OxmField::ARP_OP, &[0, 1]),
        set(OxmField::IPV6_SRC, &[0; 16]),
        set(OxmField::IN_PORT, &[0, 0, 0, 1]),
        set(OxmField::ETH_TYPE, &[8, 0]),
        set(OxmField::IP_PROTO, &[6]),
        set(OxmField::IP_DSCP, &[0xff]),
        set(OxmField::METADATA, &[0; 8]),
    ] {
        let actions = ListBuf::from([action]);
        let list = ListBuf::from([Instruction::ApplyActions(actions.as_list())]);
        let body =
            FlowMod { match_: udp.as_match(), instructions: list.as_list(), ..FlowMod::default() };
        push(Message::FlowMod(body));
    }
    for instruction in [
        Instruction::GotoTable(0),
        Instruction::Meter(77),
        Instruction::Experimenter { experimenter: 1, body: &[0; 8] },
        Instruction::Unknown { type_: 50, body: &[0; 4] },
    ] {
        let list = ListBuf::from([instruction]);
        push(Message::FlowMod(FlowMod { instructions: list.as_list(), ..FlowMod::default() }));
    }
    for fields in [
        &[(OxmField::IP_PROTO, 6)][..],
        &[(OxmField::IN_PORT, 1), (OxmField::IN_PORT, 1)],
        &[(OxmField::VLAN_PCP, 1)],
        &[(OxmField::ETH_TYPE, 0x0800), (OxmField::ARP_OP, 1)],
        &[(OxmField::ETH_TYPE, 0x0800), (OxmField::IP_DSCP, 0xff)],
    ] {
        let mut match_ = MatchBuf::new();
        for (field, value) in fields {
            match_.exact(*field, *value);
        }
        push(Message::FlowMod(FlowMod { match_: match_.as_match(), ..FlowMod::default() }));
    }
    push(Message::FlowMod(FlowMod { command: FlowModCommand(9), ..FlowMod::default() }));
    push(Message::FlowMod(FlowMod { table_id: 255, ..FlowMod::default() }));
    let group =
        |command, type_, group_id| GroupMod { command, type_, group_id, buckets: List::EMPTY };
    let (add, modify) = (GroupModCommand::ADD, GroupModCommand::MODIFY);
    push(Message::GroupMod(group(modify, GroupType::ALL, 1)));
    push(Message::GroupMod(group(add, GroupType::ALL, GROUP_ALL)));
    push(Message::GroupMod(group(add, GroupType::INDIRECT, 1)));
    push(Message::GroupMod(group(add, GroupType(9), 1)));
    push(Message::GroupMod(group(GroupModCommand(9), GroupType::ALL, 1)));
    push(Message::GroupMod(group(GroupModCommand::DELETE, GroupType::ALL, 5)));
    let buckets = ListBuf::from([Bucket::default()]);
    let unwatched = GroupMod { buckets: buckets.as_list(), ..group(add, GroupType::FF, 1) };
    push(Message::GroupMod(unwatched));
    let meter =
        |command, flags, meter_id| MeterMod { command, flags, meter_id, bands: List::EMPTY };
    push(Message::MeterMod(meter(MeterModCommand::ADD, MeterFlags::KBPS, 0)));
    push(Message::MeterMod(meter(MeterModCommand::MODIFY, MeterFlags::KBPS, 1)));
    push(Message::MeterMod(meter(MeterModCommand(9), MeterFlags::KBPS, 1)));
    push(Message::MeterMod(meter(MeterModCommand::ADD, MeterFlags::KBPS | MeterFlags::PKTPS, 1)));
    let port = PortMod {
        port_no: PortNo(77),
        hw_addr: [0; 6],
        config: PortConfig::NONE,
        mask: PortConfig::NONE,
        advertise: PortFeatures::NONE,
    };
    push(Message::PortMod(port));
    push(Message::RoleRequest(RoleBody { role: Role(9), generation_id: 0 }));
    push(Message::QueueGetConfigRequest(QueueGetConfigRequest { port: PortNo(77) }));
    push(Message::BarrierReply);
    for body in [
        MultipartRequestBody::Queue { port_no: PortNo(77), queue_id: QUEUE_ALL },
        MultipartRequestBody::PortStats { port_no: PortNo(77) },
        MultipartRequestBody::Meter { meter_id: 77 },
        MultipartRequestBody::MeterConfig { meter_id: 77 },
        MultipartRequestBody::Group { group_id: 77 },
        MultipartRequestBody::Experimenter { experimenter: 1, exp_type: 1, body: &[] },
        MultipartRequestBody::Unknown { type_: 99, body: &[] },
    ] {
        push(Message::MultipartRequest(MultipartRequest::from(body)));
    }
    messages
}
