//! Tests with Open vSwitch as the oracle: `ovs-ofctl` reads the text that Weir prints, prints the messages that Weir
//! writes, and parses frames in the same way. The tests need `ovs-ofctl` (Debian package `openvswitch-switch` or
//! `openvswitch-common`), no root and no running switch.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "test code outside of #[test]"
)]

mod common;

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use flowspace::{Field, Key, Match};
use openflow::v10::{self, PortNo, Wildcards};
use openflow::v13::{self, MatchBuf};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// Prints a message if `ovs-ofctl` is missing; with CI=true a missing program is a failure.
fn ovs_is_there(test: &str) -> bool {
    let version = Command::new("ovs-ofctl").arg("--version").output();
    let there = version.is_ok_and(|output| output.status.success());
    if !there {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{test}: ovs-ofctl is missing");
        eprintln!("SKIPPED {test}: ovs-ofctl is missing (apt-get install openvswitch-switch)");
    }
    there
}

/// Returns the same samples in every run, so that a failure can be repeated.
fn samples<T: std::fmt::Debug>(count: usize, strategy: impl Strategy<Value = T>) -> Vec<T> {
    let mut runner = TestRunner::deterministic();
    (0..count).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

/// Whether Open vSwitch knows the match. Open vSwitch does not know some fields of 1.3 and ARP operations above a byte.
fn known_to_ovs(match_: &Match) -> bool {
    let unknown = match match_.exact_value(Field::DlType) {
        Some(0x88e7) => !match_.is_wild(Field::PbbIsid),
        Some(0x86dd) => !match_.is_wild(Field::Ipv6Exthdr),
        Some(0x806 | 0x8035) => match_.get(Field::ArpOp).0 > 0xff,
        _ => false,
    };
    !unknown && match_.is_wild(Field::InPhyPort)
}

/// Whether the match has an IPv6 mask that is no prefix. `ovs-ofctl` reads an IPv6 mask that begins with decimal digits
/// as a prefix length, and refuses its own output.
fn has_ipv6_mask(match_: &Match) -> bool {
    [Field::Ipv6Src, Field::Ipv6Dst, Field::NdTarget].iter().any(|field| {
        let (_, mask) = match_.get(*field);
        mask.leading_ones() != mask.count_ones()
    })
}

/// The match in a line such as `OFPT_FLOW_MOD (OF1.3) (xid=0x1): ADD tcp,tp_dst=80 actions=drop`.
fn match_in(line: &str) -> &str {
    let flow = line.split_once(": ADD ").expect(line).1;
    let (match_, _) = flow.rsplit_once("actions=drop").expect(line);
    match_.trim()
}

/// In 1.3 "no tag" has no priority, and `ovs-ofctl` shows this; Weir prints the same text as
/// `ovs-ofctl` for 1.0.
fn as_in_v10(text: &str) -> String {
    text.replace("vlan_tci=0x0000/0x1fff", "vlan_tci=0x0000")
}

#[test]
fn ovs_parses_printed_matches_to_the_same_match() {
    if !ovs_is_there("ovs_parses_printed_matches_to_the_same_match") {
        return;
    }
    let cases = common::cases(include_str!("cases/matches.txt"));
    let mut matches: Vec<Match> = cases.iter().map(|(text, _)| text.parse().unwrap()).collect();
    matches.extend(samples(800, common::any_match()));
    matches.retain(known_to_ovs);
    matches.retain(|match_| !has_ipv6_mask(match_));
    // `ovs-ofctl` cannot express in 1.3 a set without an exact OXM form.
    matches.retain(|match_| match_.to_v13(&mut MatchBuf::new()).is_ok());
    let flows: String = matches.iter().fold(String::new(), |mut all, match_| {
        writeln!(all, "{match_} actions=drop").unwrap();
        all
    });
    let output = run(&["-O", "OpenFlow13", "parse-flows", "-"], &flows);
    let lines: Vec<&str> = output.lines().filter(|line| line.starts_with("OFPT_")).collect();
    assert_eq!(lines.len(), matches.len());
    for (match_, line) in matches.iter().zip(lines) {
        assert_eq!(as_in_v10(match_in(line)), match_.to_string());
    }
}

#[test]
fn ovs_prints_v13_matches_in_the_same_text() {
    if !ovs_is_there("ovs_prints_v13_matches_in_the_same_text") {
        return;
    }
    for match_ in samples(300, common::any_match()).iter().filter(|match_| known_to_ovs(match_)) {
        let mut wire = MatchBuf::new();
        match_.to_v13(&mut wire).unwrap();
        let flow_mod = v13::FlowMod { match_: wire.as_match(), ..v13::FlowMod::default() };
        let mut frame = Vec::new();
        flow_mod.write_message(1, &mut frame).unwrap();
        let line = print(&frame);
        assert_eq!(as_in_v10(match_in(&line)), match_.to_string());
    }
}

#[test]
fn ovs_prints_v10_matches_in_the_same_text() {
    if !ovs_is_there("ovs_prints_v10_matches_in_the_same_text") {
        return;
    }
    for match_ in samples(300, common::any_v10_match()) {
        let line = print(&v10_frame(match_.to_v10().unwrap()));
        assert_eq!(match_in(&line), match_.to_string());
    }
}

/// The matches have random wildcards and values. Both programs must ignore the same fields.
#[test]
fn ovs_normalises_random_v10_matches_to_the_same_match() {
    if !ovs_is_there("ovs_normalises_random_v10_matches_to_the_same_match") {
        return;
    }
    for wire in samples(300, v10_at_random()) {
        let line = print(&v10_frame(wire));
        assert_eq!(match_in(&line), Match::from_v10(&wire).to_string(), "{wire:?}");
    }
}

fn v10_at_random() -> impl Strategy<Value = v10::Match> {
    let dl_type =
        prop::sample::select(vec![0x800u16, 0x806, 0x8035, 0x86dd, 0x8847, 0x5ff, 0x88cc]);
    let proto = prop::sample::select(vec![1u8, 2, 6, 17, 58, 132]);
    let vlan = prop_oneof![Just(0xffff_u16), Just(0), 0..4096u16];
    let rest = (any::<u32>(), 0..0xff00u16, any::<[u8; 6]>(), 0..8u8, any::<u8>(), any::<u32>());
    (dl_type, proto, vlan, rest, 0..256u16).prop_map(
        |(dl_type, nw_proto, dl_vlan, (wildcards, port, mac, pcp, nw_tos, address), tp)| {
            let seldom = |field: Wildcards, bit: u32| field.0 * ((wildcards >> bit) & 1);
            let often_given = seldom(Wildcards::DL_TYPE, 31) | seldom(Wildcards::NW_PROTO, 30);
            let wildcards =
                Wildcards::ALL.0 & wildcards & !(Wildcards::DL_TYPE.0 | Wildcards::NW_PROTO.0)
                    | often_given;
            v10::Match {
                wildcards: Wildcards(wildcards),
                in_port: PortNo(port),
                dl_src: mac,
                dl_dst: mac,
                dl_vlan,
                dl_vlan_pcp: pcp,
                dl_type,
                nw_tos,
                nw_proto,
                nw_src: address,
                nw_dst: !address,
                tp_src: tp,
                tp_dst: tp,
            }
        },
    )
}

fn v10_frame(match_: v10::Match) -> Vec<u8> {
    let mut frame = Vec::new();
    v10::FlowMod { match_, ..v10::FlowMod::default() }.write_message(1, &mut frame).unwrap();
    frame
}

/// Open vSwitch and Weir parse the same well-formed frames of every protocol.
#[test]
fn ovs_extracts_the_same_fields_from_frames() {
    if !ovs_is_there("ovs_extracts_the_same_fields_from_frames") {
        return;
    }
    let frames = samples(600, frame());
    // The name of the file is different in each run.
    let path = std::env::temp_dir().join(format!("flowspace-{}.pcap", std::process::id()));
    std::fs::write(&path, pcap(&frames)).unwrap();
    let output = Command::new("ovs-ofctl").arg("parse-pcap").arg(&path).output().unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.lines().count(), frames.len());
    for (frame, line) in frames.iter().zip(output.lines()) {
        let expected: Match = without_foreign_fields(line).parse().unwrap_or_else(|e| {
            panic!("{line}: {e}");
        });
        let key = Key::extract(0xffff_ffff, frame);
        assert!(expected.matches(&key), "{line}\n{key:?}\n{frame:02x?}");
        // The key has no field that Open vSwitch did not find, except fields that Open vSwitch does
        // not extract.
        for field in Field::ALL {
            let beyond = matches!(field, Field::Ipv6Exthdr);
            assert!(
                beyond || key.get(field) == expected.get(field).0,
                "{field:?}: {line}\n{key:?}"
            );
        }
    }
}

/// Open vSwitch shows the inner VLAN tag, and fields that OpenFlow 1.0 and 1.3 cannot match. These parts are removed.
fn without_foreign_fields(line: &str) -> String {
    let foreign =
        ["nw_ttl", "nw_frag", "tcp_flags", "mpls_ttl", "vlan_tci1", "dl_vlan1", "dl_vlan_pcp1"];
    let items = line.split(',').filter(|item| {
        let name = item.split_once('=').map_or(*item, |(name, _)| name);
        // The second and third MPLS shims are `mpls_label1` and so on. Open vSwitch shows both
        // link-layer options for either message.
        let absent = matches!(*item, "nd_sll=00:00:00:00:00:00" | "nd_tll=00:00:00:00:00:00");
        let deeper_shim = name.starts_with("mpls_") && name.ends_with(['1', '2']);
        !(absent || deeper_shim || foreign.contains(&name))
    });
    items.collect::<Vec<_>>().join(",")
}

fn frame() -> impl Strategy<Value = Vec<u8>> {
    let tags = prop::collection::vec((any::<bool>(), any::<u16>()), 0..3);
    (any::<[u8; 12]>(), tags, payload(), any::<bool>()).prop_map(
        |(addresses, tags, (dl_type, payload), snap)| {
            let mut frame = addresses.to_vec();
            for (service, control) in tags {
                frame.extend(if service { [0x88, 0xa8] } else { [0x81, 0] });
                frame.extend(control.to_be_bytes());
            }
            if snap {
                frame.extend([0, 38, 0xaa, 0xaa, 3, 0, 0, 0]);
            }
            frame.extend(dl_type.to_be_bytes());
            frame.extend(payload);
            frame
        },
    )
}

fn payload() -> impl Strategy<Value = (u16, Vec<u8>)> {
    prop_oneof![
        4 => ipv4().prop_map(|packet| (0x800, packet)),
        4 => ipv6().prop_map(|packet| (0x86dd, packet)),
        1 => (any::<bool>(), 1..3u8, any::<[u8; 20]>()).prop_map(|(rarp, op, addresses)| {
            let mut packet = vec![0, 1, 8, 0, 6, 4, 0, op];
            packet.extend(addresses);
            (if rarp { 0x8035 } else { 0x806 }, packet)
        }),
        // The shim has label, class, bottom of stack and time to live; the packet under the shim follows.
        1 => (any::<[u8; 4]>(), any::<bool>(), any::<[u8; 40]>()).prop_map(|(mut shim, multicast, rest)| {
            shim[2] |= 1;
            let mut packet = shim.to_vec();
            packet.extend(rest);
            (if multicast { 0x8848 } else { 0x8847 }, packet)
        }),
        1 => any::<[u8; 30]>().prop_map(|packet| (0x88cc, packet.to_vec())),
    ]
}

fn segment() -> impl Strategy<Value = (u8, Vec<u8>)> {
    let body = any::<[u8; 12]>();
    prop_oneof![
        (any::<u32>(), body).prop_map(|(ports, body)| {
            let mut segment = ports.to_be_bytes().to_vec();
            segment.extend([0; 8]);
            segment.extend([0x50, 0x10, 0, 0, 0, 0, 0, 0]);
            segment.extend(body);
            (6, segment)
        }),
        (prop::sample::select(vec![17u8, 132]), any::<u32>(), body).prop_map(
            |(proto, ports, body)| {
                let mut segment = ports.to_be_bytes().to_vec();
                segment.extend(body);
                (proto, segment)
            }
        ),
        (prop::sample::select(vec![47u8, 89]), body)
            .prop_map(|(proto, body)| (proto, body.to_vec())),
    ]
}

fn ipv4() -> impl Strategy<Value = Vec<u8>> {
    let icmp = any::<[u8; 8]>().prop_map(|message| (1, message.to_vec()));
    let segment = prop_oneof![4 => segment(), 1 => icmp];
    (any::<u8>(), any::<[u8; 8]>(), 0..3u8, segment).prop_map(
        |(tos, addresses, options, (proto, segment))| {
            let header = 20 + 4 * usize::from(options);
            let length = (header + segment.len()) as u16;
            let mut packet = vec![0x45 + options, tos];
            packet.extend(length.to_be_bytes());
            packet.extend([0, 0, 0x40, 0, 64, proto, 0, 0]);
            packet.extend(addresses);
            packet.extend(vec![1; header - 20]);
            packet.extend(segment);
            packet
        },
    )
}

fn ipv6() -> impl Strategy<Value = Vec<u8>> {
    let neighbour = (any::<[u8; 16]>(), any::<[u8; 6]>(), any::<bool>(), any::<bool>()).prop_map(
        |(target, address, advertisement, option)| {
            let mut message = vec![if advertisement { 136 } else { 135 }, 0, 0, 0, 0, 0, 0, 0];
            message.extend(target);
            if option {
                message.extend([if advertisement { 2 } else { 1 }, 1]);
                message.extend(address);
            }
            (58, message)
        },
    );
    let echo = any::<[u8; 8]>().prop_map(|mut message| {
        message[0] |= 0xf0;
        (58, message.to_vec())
    });
    let segment = prop_oneof![3 => segment(), 1 => neighbour, 1 => echo];
    let extensions = prop::collection::vec(prop::sample::select(vec![0u8, 43, 60]), 0..3);
    (0..0x1000_0000u32, any::<[u8; 32]>(), extensions, segment).prop_map(
        |(first, addresses, extensions, (proto, segment))| {
            let mut chain = extensions.clone();
            chain.push(proto);
            let length = (extensions.len() * 8 + segment.len()) as u16;
            let mut packet = (first | 0x6000_0000).to_be_bytes().to_vec();
            packet.extend(length.to_be_bytes());
            packet.extend([chain[0], 64]);
            packet.extend(addresses);
            for next in &chain[1..] {
                packet.extend([*next, 0, 1, 4, 0, 0, 0, 0]);
            }
            packet.extend(segment);
            packet
        },
    )
}

fn pcap(frames: &[Vec<u8>]) -> Vec<u8> {
    let words =
        |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    let mut file = words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 65535, 1]);
    for frame in frames {
        let length = frame.len() as u32;
        file.extend(words(&[0, 0, length, length]));
        file.extend(frame);
    }
    file
}

fn print(frame: &[u8]) -> String {
    let hex = frame.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    });
    let output = Command::new("ovs-ofctl").args(["ofp-print", &hex]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn run(arguments: &[&str], input: &str) -> String {
    let mut child = Command::new("ovs-ofctl")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    // A separate thread writes, because both pipes can fill up.
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    let written = writer.join().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    written.unwrap();
    String::from_utf8(output.stdout).unwrap()
}
