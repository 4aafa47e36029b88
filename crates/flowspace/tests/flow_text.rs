//! Tests of entries as text, as `ovs-ofctl --no-stats dump-flows` prints entries.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use flowspace::{FlowText, Match};
use openflow::v13::{Instruction, MatchBuf, Oxm, OxmField};
use openflow::{ListBuf, v10, v13};

fn parsed(text: &str) -> Match {
    text.parse().unwrap_or_else(|error| panic!("`{text}`: {error}"))
}

fn line(frame: &[u8]) -> String {
    FlowText::of_flow_mod(frame).unwrap().to_string()
}

fn v10_frame(match_: &str, actions: &[v10::Action<'_>], flow: v10::FlowMod<'_>) -> Vec<u8> {
    let mut list = ListBuf::<v10::Action<'static>>::new();
    actions.iter().for_each(|action| list.push(*action));
    let match_ = parsed(match_).to_v10().unwrap();
    let mut frame = Vec::new();
    v10::FlowMod { match_, actions: list.as_list(), ..flow }.write_message(1, &mut frame).unwrap();
    frame
}

fn v13_frame(match_: &str, list: &[Instruction<'_>], flow: v13::FlowMod<'_>) -> Vec<u8> {
    let mut instructions = ListBuf::<Instruction<'static>>::new();
    list.iter().for_each(|instruction| instructions.push(*instruction));
    let mut wire = MatchBuf::new();
    parsed(match_).to_v13(&mut wire).unwrap();
    let (match_, instructions) = (wire.as_match(), instructions.as_list());
    let mut frame = Vec::new();
    v13::FlowMod { match_, instructions, ..flow }.write_message(1, &mut frame).unwrap();
    frame
}

fn applied(match_: &str, actions: &[v13::Action<'_>]) -> Vec<u8> {
    let mut list = ListBuf::<v13::Action<'static>>::new();
    actions.iter().for_each(|action| list.push(*action));
    let instructions = [Instruction::ApplyActions(list.as_list())];
    v13_frame(match_, &instructions, v13::FlowMod { priority: 7, ..v13::FlowMod::default() })
}

/// Frames, and their lines.
fn cases() -> Vec<(Vec<u8>, &'static str)> {
    use v10::Action as A10;
    use v13::Action as A13;
    let plain10 = v10::FlowMod::default();
    let plain13 = v13::FlowMod::default();
    let set = |field, value| A13::SetField(Oxm::exact(field, value));
    let to = |port| A13::Output { port: v13::PortNo(port), max_len: 0 };
    let mut written = ListBuf::<A13<'static>>::new();
    written.push(to(3));
    written.push(A13::DecNwTtl);
    let mut applied_first = ListBuf::<A13<'static>>::new();
    applied_first.push(to(2));
    let empty = ListBuf::<A13<'static>>::new();
    vec![
        (v10_frame("", &[], plain10), "actions=drop"),
        (v10_frame("", &[], v10::FlowMod { priority: 0, ..plain10 }), "priority=0 actions=drop"),
        (
            v10_frame(
                "tcp,in_port=3",
                &[
                    A10::SetVlanVid(5),
                    A10::SetVlanPcp(3),
                    A10::StripVlan,
                    A10::SetDlSrc([10, 0, 0, 0, 0, 1]),
                    A10::SetDlDst([10, 0, 0, 0, 0, 2]),
                    A10::SetNwSrc(0x0102_0304),
                    A10::SetNwDst(0x0102_0305),
                    A10::SetNwTos(16),
                    A10::SetTpSrc(4),
                    A10::SetTpDst(6),
                    A10::Enqueue { port: v10::PortNo(4), queue_id: 6 },
                    A10::Output { port: v10::PortNo(5), max_len: 0 },
                    A10::Output { port: v10::PortNo::CONTROLLER, max_len: 128 },
                    A10::Output { port: v10::PortNo::FLOOD, max_len: 0 },
                ],
                v10::FlowMod {
                    cookie: 5,
                    idle_timeout: 3,
                    hard_timeout: 9,
                    priority: 10,
                    ..plain10
                },
            ),
            "cookie=0x5, idle_timeout=3, hard_timeout=9, priority=10,tcp,in_port=3 \
             actions=mod_vlan_vid:5,mod_vlan_pcp:3,strip_vlan,mod_dl_src:0a:00:00:00:00:01,\
             mod_dl_dst:0a:00:00:00:00:02,mod_nw_src:1.2.3.4,mod_nw_dst:1.2.3.5,mod_nw_tos:16,\
             mod_tp_src:4,mod_tp_dst:6,enqueue:4:6,output:5,CONTROLLER:128,FLOOD",
        ),
        (
            v10_frame("ip", &[], v10::FlowMod { flags: v10::FlowModFlags(3), ..plain10 }),
            "send_flow_rem check_overlap ip actions=drop",
        ),
        (
            v13_frame(
                "ip,nw_src=10.0.0.0/8",
                // The instructions are out of order, as a controller may write them.
                &[
                    Instruction::GotoTable(3),
                    Instruction::WriteMetadata { metadata: 5, mask: 0xff },
                    Instruction::WriteActions(written.as_list()),
                    Instruction::ApplyActions(applied_first.as_list()),
                    Instruction::Meter(4),
                ],
                v13::FlowMod {
                    cookie: 0xffff_ffff_ffff_ffff,
                    table_id: 1,
                    flags: v13::FlowModFlags(0x1f),
                    ..plain13
                },
            ),
            "cookie=0xffffffffffffffff, table=1, send_flow_rem check_overlap reset_counts \
             no_packet_counts no_byte_counts ip,nw_src=10.0.0.0/8 \
             actions=meter:4,output:2,write_actions(output:3,dec_ttl),write_metadata:0x5/0xff,goto_table:3",
        ),
        (
            v13_frame(
                "",
                &[Instruction::ClearActions, Instruction::WriteActions(empty.as_list())],
                plain13,
            ),
            "actions=clear_actions,write_actions(drop)",
        ),
        (applied("", &[]), "priority=7 actions=drop"),
        (
            applied(
                "tcp",
                &[
                    set(OxmField::TCP_DST, &[0, 80]),
                    set(OxmField::ETH_SRC, &[10, 0, 0, 0, 0, 1]),
                    set(OxmField::IPV4_DST, &[10, 0, 0, 1]),
                    A13::SetQueue(4),
                    A13::PushVlan(0x8100),
                    set(OxmField::VLAN_VID, &[0x10, 1]),
                    A13::PopVlan,
                    A13::Group(5),
                    A13::SetNwTtl(3),
                    A13::Output { port: v13::PortNo::CONTROLLER, max_len: 0xffff },
                    to(v13::PortNo::IN_PORT.0),
                ],
            ),
            "priority=7,tcp actions=set_field:80->tcp_dst,set_field:0a:00:00:00:00:01->eth_src,\
             set_field:10.0.0.1->ip_dst,set_queue:4,push_vlan:0x8100,set_field:4097->vlan_vid,pop_vlan,\
             group:5,mod_nw_ttl:3,CONTROLLER:65535,IN_PORT",
        ),
        (
            applied(
                "ipv6,dl_vlan=3",
                &[
                    set(
                        OxmField::IPV6_SRC,
                        &[0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
                    ),
                    set(OxmField::IPV6_FLABEL, &[0, 0, 0, 5]),
                    set(OxmField::IP_DSCP, &[4]),
                    set(OxmField::IP_ECN, &[1]),
                    set(OxmField::VLAN_PCP, &[2]),
                    A13::DecNwTtl,
                ],
            ),
            "priority=7,ipv6,dl_vlan=3 actions=set_field:fe80::1->ipv6_src,set_field:0x5->ipv6_label,\
             set_field:4->ip_dscp,set_field:1->nw_ecn,set_field:2->vlan_pcp,dec_ttl",
        ),
        (
            applied(
                "arp",
                &[
                    set(OxmField::ARP_OP, &[0, 1]),
                    set(OxmField::ARP_SPA, &[10, 0, 0, 1]),
                    set(OxmField::ARP_SHA, &[10, 0, 0, 0, 0, 1]),
                    set(OxmField::METADATA, &[0, 0, 0, 0, 0, 0, 0, 6]),
                    set(OxmField::TUNNEL_ID, &[0, 0, 0, 0, 0, 0, 0, 0]),
                ],
            ),
            "priority=7,arp actions=set_field:1->arp_op,set_field:10.0.0.1->arp_spa,\
             set_field:0a:00:00:00:00:01->arp_sha,set_field:0x6->metadata,set_field:0->tun_id",
        ),
    ]
}

#[test]
fn entries_are_printed_in_the_format_of_ovs_ofctl() {
    for (frame, expected) in cases() {
        assert_eq!(line(&frame), expected);
    }
}

#[test]
fn actions_unknown_to_ovs_ofctl_are_printed_with_bytes() {
    let unknown = v13::Action::Unknown { type_: 99, body: &[1, 2, 3, 4] };
    let theirs = v13::Action::Experimenter { experimenter: 0xabc, body: &[0; 8] };
    let mask = [0xf0, 0, 0, 0, 0, 0];
    let masked = v13::Action::SetField(Oxm::masked(OxmField::ETH_DST, &[16; 6], &mask));
    assert_eq!(
        line(&applied("", &[unknown, theirs, v13::Action::CopyTtlIn, masked])),
        "priority=7 actions=action(99,01020304),experimenter(0xabc,0000000000000000),copy_ttl_in,\
         set_field:10:10:10:10:10:10/f0:00:00:00:00:00->eth_dst"
    );
}

#[test]
fn truncated_frames_and_other_message_types_have_no_flow_text() {
    for (frame, _) in cases() {
        for length in 0..frame.len() {
            assert_eq!(FlowText::of_flow_mod(&frame[..length]), None, "{length} bytes");
        }
        let mut other = frame;
        other[1] = 0;
        assert_eq!(FlowText::of_flow_mod(&other), None);
    }
}

/// The oracle: the text that Open vSwitch prints for the same frames.
#[test]
fn ovs_prints_the_same_actions_for_each_flow_mod() {
    let there = std::process::Command::new("ovs-ofctl").arg("--version").output();
    if !there.is_ok_and(|output| output.status.success()) {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "ovs-ofctl is missing");
        let name = "ovs_prints_the_same_actions_for_each_flow_mod";
        std::io::Write::write_all(
            &mut std::io::stderr(),
            format!("SKIPPED {name}: ovs-ofctl is missing (apt-get install openvswitch-switch)\n")
                .as_bytes(),
        )
        .unwrap();
        return;
    }
    for (frame, expected) in cases() {
        let hex: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
        let output = std::process::Command::new("ovs-ofctl").args(["ofp-print", &hex]).output();
        let printed = String::from_utf8(output.unwrap().stdout).unwrap();
        let printed = printed.lines().next().unwrap();
        let actions = |line: &str| line.split_once("actions=").unwrap().1.to_owned();
        assert_eq!(actions(printed), actions(expected), "{printed}");
    }
}
