//! Tests of the keys of frames that the tests build byte by byte.

#![allow(clippy::unwrap_used, reason = "test code outside of #[test]")]

use flowspace::{Field, Key, Match};
use proptest::prelude::*;

const ETHERNET: &str = "0a0b0c0d0e0f 020304050607";
const L2: &str = "dl_dst=0a:0b:0c:0d:0e:0f,dl_src=02:03:04:05:06:07";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

/// Checks that the key of the frame has exactly the values of the text, and no other value.
fn check(frame: &str, expected: &str) {
    let frame = bytes(&format!("{ETHERNET} {frame}"));
    let key = Key::extract(7, &frame);
    let expected: Match = format!("in_port=7,{L2},{expected}").parse().unwrap();
    assert!(expected.matches(&key), "{key:?} is not in `{expected}`");
    for field in Field::ALL {
        assert_eq!(key.get(field), expected.get(field).0, "{field:?} of `{expected}` is {key:?}");
    }
    // A frame that is truncated at any byte gets a key, and the key has no value that the whole
    // frame does not have, except the type field of a truncated header.
    for length in 0..frame.len() {
        let cut = Key::extract(7, &frame[..length]);
        for field in [Field::NwSrc, Field::NwDst, Field::Ipv6Src, Field::TpSrc, Field::TpDst] {
            let value = cut.get(field);
            assert!(value == 0 || value == key.get(field), "{field:?} of the first {length} bytes");
        }
    }
}

const IPV4: &str = "0a000001 c0a80102";
const PORTS: &str = "1234 0050 00000000 00000000 5000ffff 00000000";

#[test]
fn ethernet_types_and_snap_headers_are_extracted() {
    check("88cc 0207", "dl_type=0x88cc");
    check("9000", "dl_type=0x9000");
    check("0026 424203 0000", "dl_type=0x05ff");
    check("0026 aaaa03 000000 0806 0000", "arp");
    check("0026 aaaa03 00000c 2000 0000", "dl_type=0x05ff");
    check("0026 aaaa03 000000 0026 0000", "dl_type=0x05ff");
}

#[test]
fn frames_without_a_whole_ethernet_header_have_only_an_in_port() {
    for length in 0..14 {
        assert_eq!(
            Key::extract(0xffff_fffe, &vec![0xff; length]),
            Key::default().with(Field::InPort, 0xffff_fffe)
        );
    }
}

#[test]
fn outer_vlan_tags_and_inner_ethernet_types_are_extracted() {
    check("8100 0005 88cc", "dl_vlan=5,dl_vlan_pcp=0,dl_type=0x88cc");
    check("8100 f005 88cc", "dl_vlan=5,dl_vlan_pcp=7,dl_type=0x88cc");
    check("8100 0000 88cc", "dl_vlan=0,dl_vlan_pcp=0,dl_type=0x88cc");
    // With two tags, the key has the values of the outer tag and the type after both tags.
    check("88a8 2064 8100 0005 88cc", "dl_vlan=100,dl_vlan_pcp=1,dl_type=0x88cc");
    // With three tags, the key has the type after the second tag.
    check("88a8 0001 8100 0002 8100 0003 88cc", "dl_vlan=1,dl_vlan_pcp=0,dl_type=0x8100");
    // The frame ends in the tag, or after the tag.
    check("8100 0005", "dl_type=0x8100");
    check("8100 0005 0800", "dl_vlan=5,dl_vlan_pcp=0,ip");
    let tcp = format!("8100 0005 0800 45000028 00000000 40060000 {IPV4} {PORTS}");
    check(
        &tcp,
        "dl_vlan=5,dl_vlan_pcp=0,tcp,nw_src=10.0.0.1,nw_dst=192.168.1.2,tp_src=4660,tp_dst=80",
    );
    check("8100 0005 0004 aaaa03 000000 88cc", "dl_vlan=5,dl_vlan_pcp=0,dl_type=0x88cc");
}

#[test]
fn ipv4_addresses_dscp_and_transport_ports_are_extracted() {
    let addresses = "nw_src=10.0.0.1,nw_dst=192.168.1.2";
    for (frame, expected) in [
        ("45ba0028 00000000 4006", "tcp,nw_tos=184,nw_ecn=2,tp_src=4660,tp_dst=80"),
        ("45000028 00004000 4006", "tcp,tp_src=4660,tp_dst=80"),
        ("45000028 00000000 4011", "udp,tp_src=4660,tp_dst=80"),
        ("45000028 00000000 4084", "sctp,tp_src=4660,tp_dst=80"),
        ("45000028 00000000 4001", "icmp,icmp_type=18,icmp_code=52"),
        ("45000028 00000000 4032", "ip,nw_proto=50"),
        // A first fragment and a later fragment have no ports.
        ("45000028 00002000 4006", "tcp,tp_src=0,tp_dst=0"),
        ("45000028 000000b9 4006", "tcp,tp_src=0,tp_dst=0"),
    ] {
        check(&format!("0800 {frame} 0000 {IPV4} {PORTS}"), &format!("{expected},{addresses}"));
    }
    // Options move the ports.
    let options = format!("0800 46000028 00000000 40110000 {IPV4} 01010101 {PORTS}");
    check(&options, &format!("udp,tp_src=4660,tp_dst=80,{addresses}"));
    // The packet is not IPv4, or has an impossible header length.
    check(&format!("0800 65000028 00000000 40060000 {IPV4} {PORTS}"), "ip");
    check(&format!("0800 44000028 00000000 40060000 {IPV4} {PORTS}"), "ip");
    // The options are cut off.
    check(&format!("0800 4f000028 00000000 40060000 {IPV4} {PORTS}"), &format!("tcp,{addresses}"));
}

#[test]
fn ipv6() {
    let addresses = "fe800000000000000000000000000001 20010db8000000000000000000000002";
    let text = "ipv6_src=fe80::1,ipv6_dst=2001:db8::2";
    let v6 = |next: &str, rest: &str| format!("86dd 6ab12345 0020 {next} 40 {addresses} {rest}");
    let common = format!("{text},ipv6_label=0x12345,nw_tos=168,nw_ecn=3");
    for (next, rest, expected) in [
        ("06", PORTS.to_owned(), "tcp6,tp_src=4660,tp_dst=80"),
        ("11", PORTS.to_owned(), "udp6,tp_src=4660,tp_dst=80"),
        ("84", PORTS.to_owned(), "sctp6,tp_src=4660,tp_dst=80"),
        ("01", PORTS.to_owned(), "ipv6,nw_proto=1"),
        ("3a", "8001 0000".to_owned(), "icmp6,icmp_type=128,icmp_code=1"),
        ("3b", PORTS.to_owned(), "ipv6,nw_proto=59,ipv6_exthdr=0x1"),
        ("32", PORTS.to_owned(), "ipv6,nw_proto=50,ipv6_exthdr=0x2"),
        // Hop-by-hop, destination, routing, fragment (whole), authentication, destination, then TCP.
        (
            "00",
            format!(
                "3c00000000000000 2b00000000000000 2c00000000000000 3300000000000000 \
                 3c01000000000000 00000000 0600000000000000 {PORTS}"
            ),
            "tcp6,tp_src=4660,tp_dst=80,ipv6_exthdr=0x7c",
        ),
        // The destination header is long.
        (
            "3c",
            format!("1101 {} {PORTS}", "00".repeat(14)),
            "udp6,tp_src=4660,tp_dst=80,ipv6_exthdr=0x8",
        ),
        // A first fragment and a later fragment have no ports.
        ("2c", format!("0600000100000000 {PORTS}"), "tcp6,ipv6_exthdr=0x10"),
        ("2c", format!("0600000800000000 {PORTS}"), "tcp6,ipv6_exthdr=0x10"),
        // A header is repeated, or the headers are out of order.
        (
            "2b",
            format!("2b00000000000000 0600000000000000 {PORTS}"),
            "tcp6,tp_src=4660,tp_dst=80,ipv6_exthdr=0xa0",
        ),
        (
            "2b",
            format!("0000000000000000 0600000000000000 {PORTS}"),
            "tcp6,tp_src=4660,tp_dst=80,ipv6_exthdr=0x160",
        ),
        // The frame ends in an extension header.
        ("00", "06".to_owned(), "ipv6,nw_proto=0,ipv6_exthdr=0x40"),
        ("00", "0605000000000000".to_owned(), "ipv6,nw_proto=0,ipv6_exthdr=0x40"),
    ] {
        check(&v6(next, &rest), &format!("{expected},{common}"));
    }
    check(&format!("86dd 4ab12345 0020 06 40 {addresses} {PORTS}"), "ipv6");
}

#[test]
fn neighbour_discovery_targets_and_options_are_extracted() {
    let addresses = "fe800000000000000000000000000001 20010db8000000000000000000000002";
    let text = "ipv6_src=fe80::1,ipv6_dst=2001:db8::2";
    let target = "20010db8000000000000000000000003";
    let (sll, tll) = ("0101 aabbccddeeff", "0201 aabbccddeeff");
    let nonce = "0e01 010203040506";
    for (message, expected) in [
        (format!("8700 0000 00000000 {target}"), "icmp_type=135,icmp_code=0,nd_target=2001:db8::3"),
        (
            format!("8700 0000 00000000 {target} {sll}"),
            "icmp_type=135,icmp_code=0,nd_target=2001:db8::3,nd_sll=aa:bb:cc:dd:ee:ff",
        ),
        (
            format!("8700 0000 00000000 {target} {nonce} {tll} {sll}"),
            "icmp_type=135,icmp_code=0,nd_target=2001:db8::3,nd_sll=aa:bb:cc:dd:ee:ff",
        ),
        (
            format!("8800 0000 00000000 {target} {tll}"),
            "icmp_type=136,icmp_code=0,nd_target=2001:db8::3,nd_tll=aa:bb:cc:dd:ee:ff",
        ),
        // An option without length ends the search for options. With a code other than 0 or another type, the message
        // has no target.
        (
            format!("8700 0000 00000000 {target} 0e00 000000000000 {sll}"),
            "icmp_type=135,icmp_code=0,nd_target=2001:db8::3",
        ),
        (format!("8701 0000 00000000 {target} {sll}"), "icmp_type=135,icmp_code=1"),
        (format!("8900 0000 00000000 {target} {sll}"), "icmp_type=137,icmp_code=0"),
    ] {
        let frame = format!("86dd 60000000 0020 3a ff {addresses} {message}");
        check(&frame, &format!("icmp6,{text},{expected}"));
    }
}

#[test]
fn arp() {
    let body = "aabbccddeeff 0a000001 010203040506 0a000002";
    let text =
        "arp_sha=aa:bb:cc:dd:ee:ff,arp_spa=10.0.0.1,arp_tha=01:02:03:04:05:06,arp_tpa=10.0.0.2";
    check(&format!("0806 0001 0800 06 04 0001 {body}"), &format!("arp,arp_op=1,{text}"));
    check(&format!("8035 0001 0800 06 04 0003 {body}"), &format!("rarp,arp_op=3,{text}"));
    check(&format!("0806 0001 0800 06 04 0102 {body}"), &format!("arp,arp_op=258,{text}"));
    // The addresses are not Ethernet and IPv4 addresses.
    check(&format!("0806 0006 0800 06 04 0001 {body}"), "arp");
    check(&format!("0806 0001 86dd 06 10 0001 {body}"), "arp");
}

#[test]
fn mpls_labels_and_pbb_service_ids_are_extracted() {
    check("8847 00064 7 40", "mpls,mpls_label=100,mpls_tc=3,mpls_bos=1");
    check("8848 fffff 0 40 00064 7 40", "mplsm,mpls_label=1048575,mpls_tc=0,mpls_bos=0");
    check("8847 0006", "mpls");
    check("88e7 40 123456 0102", "dl_type=0x88e7,pbb_isid=0x123456");
}

proptest! {
    /// Random bytes after each Ethernet type give a key with the fields of that type only.
    #[test]
    fn any_frame_is_answered(
        head in any::<[u8; 12]>(),
        dl_type in prop::sample::select(vec![0x0800u16, 0x0806, 0x86dd, 0x8100, 0x88a8, 0x8847, 0x88e7, 0x0026]),
        body in prop::collection::vec(any::<u8>(), 0..120),
        first in prop::sample::select(vec![0x45u8, 0x46, 0x60, 0x6f, 0x00, 0xff]),
    ) {
        let mut frame = head.to_vec();
        frame.extend(dl_type.to_be_bytes());
        frame.push(first);
        frame.extend(body);
        let key = Key::extract(1, &frame);
        for field in Field::ALL {
            let mut only_types = Match::ANY;
            for prerequisite in [Field::DlType, Field::NwProto, Field::ArpOp, Field::TpSrc] {
                if only_types.permits(prerequisite) {
                    only_types = only_types.with(prerequisite, key.get(prerequisite));
                }
            }
            let shared = matches!(
                field,
                Field::MplsLabel | Field::MplsTc | Field::MplsBos | Field::PbbIsid
                    | Field::ArpOp | Field::NwProto | Field::VlanPcp | Field::InPhyPort
            );
            prop_assert!(
                shared || key.get(field) == 0 || only_types.permits(field),
                "{:?} in {:?}", field, key
            );
        }
    }

    #[test]
    fn any_bytes_are_answered(frame in prop::collection::vec(any::<u8>(), 0..200), port: u32) {
        prop_assert_eq!(Key::extract(port, &frame).get(Field::InPort), u128::from(port));
    }
}
