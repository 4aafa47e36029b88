use super::build::*;
use super::bytes::{u16_at, write};
use super::*;
use alloc::vec;
use alloc::vec::Vec;

const PATH: Path = Path {
    eth_src: [2, 0, 0, 0, 0, 1],
    eth_dst: [2, 0, 0, 0, 0, 2],
    ip_src: 0x0a00_0001,
    ip_dst: 0x0a00_0002,
};

/// Checks that an edit of a frame gives the expected frame, with the right checksums.
fn check(name: &str, mut frame: Vec<u8>, edit: impl Fn(&mut Vec<u8>), expected: Vec<u8>) {
    edit(&mut frame);
    assert_eq!(frame, expected, "{name}");
    assert_checksums(name, &frame);
}

fn assert_checksums(name: &str, frame: &[u8]) {
    let headers = Headers::locate(frame).unwrap();
    let Some(Network::Ipv4(ip)) = headers.network else { return };
    assert_eq!(internet_checksum(&[&frame[ip..ip + 20]]), 0, "{name}: IPv4 checksum");
    let end = ip + usize::from(u16_at(frame, ip + 2).unwrap());
    let Some((protocol, at)) = headers.transport else { return };
    if protocol == UDP && u16_at(frame, at + 6) == Some(0) {
        return;
    }
    let length = ((end - at) as u16).to_be_bytes();
    let sum = match protocol {
        TCP | UDP => {
            internet_checksum(&[&frame[ip + 12..ip + 20], &[0, protocol], &length, &frame[at..end]])
        }
        ICMP => internet_checksum(&[&frame[at..end]]),
        _ => 0,
    };
    assert_eq!(sum, 0, "{name}: transport checksum");
}

#[test]
fn an_edited_frame_equals_a_frame_built_with_the_new_values() {
    let data = b"weir data, odd length";
    let elsewhere = Path { ip_src: 0xc0a8_fffe, ip_dst: 0x0102_0304, ..PATH };
    check(
        "UDP addresses and ports",
        PATH.udp(1000, 2000, data),
        |frame| {
            set_ipv4_src(frame, 0xc0a8_fffe);
            set_ipv4_dst(frame, 0x0102_0304);
            set_tp_src(frame, 53);
            set_tp_dst(frame, 0xffff);
        },
        elsewhere.udp(53, 0xffff, data),
    );
    check(
        "TCP addresses and ports",
        PATH.tcp(1000, 2000, data),
        |frame| {
            set_ipv4_src(frame, 0xc0a8_fffe);
            set_ipv4_dst(frame, 0x0102_0304);
            set_tp_src(frame, 53);
            set_tp_dst(frame, 0xffff);
        },
        elsewhere.tcp(53, 0xffff, data),
    );
    check(
        "Ethernet addresses",
        PATH.tcp(1, 2, data),
        |frame| {
            set_eth_src(frame, [9; 6]);
            set_eth_dst(frame, [8; 6]);
        },
        Path { eth_src: [9; 6], eth_dst: [8; 6], ..PATH }.tcp(1, 2, data),
    );
    check(
        "ICMP type",
        PATH.icmp_echo(false, 7, 1, data),
        |frame| set_icmp_type(frame, 0),
        PATH.icmp_echo(true, 7, 1, data),
    );
    check(
        "ARP request into reply",
        PATH.arp_request(),
        |frame| {
            set_arp_op(frame, 2);
            set_arp_tha(frame, PATH.eth_dst);
            set_eth_dst(frame, PATH.eth_dst);
        },
        PATH.arp_reply(),
    );
    check(
        "VLAN pushed, set and popped",
        PATH.udp(1, 2, data),
        |frame| {
            push_vlan(frame, ETH_VLAN);
            set_vlan_vid(frame, 77);
            pop_vlan(frame);
        },
        PATH.udp(1, 2, data),
    );
    check(
        "MPLS pushed, set and popped",
        PATH.udp(1, 2, data),
        |frame| {
            push_mpls(frame, ETH_MPLS);
            set_mpls_label(frame, 77);
            push_mpls(frame, ETH_MPLS);
            pop_mpls(frame, ETH_MPLS);
            pop_mpls(frame, ETH_IPV4);
        },
        PATH.udp(1, 2, data),
    );
}

#[test]
fn checksums_stay_right_after_every_edit() {
    type Edit = (&'static str, fn(&mut Vec<u8>));
    let edits: [Edit; 9] = [
        ("dscp", |frame| set_dscp(frame, 46)),
        ("ecn", |frame| set_ecn(frame, 3)),
        ("ttl", |frame| set_ttl(frame, 1)),
        ("ttl 255", |frame| set_ttl(frame, 255)),
        ("same address", |frame| set_ipv4_src(frame, PATH.ip_src)),
        ("address 0", |frame| set_ipv4_src(frame, 0)),
        ("address all ones", |frame| set_ipv4_dst(frame, u32::MAX)),
        ("port 0", |frame| set_tp_src(frame, 0)),
        ("icmp code", |frame| set_icmp_code(frame, 200)),
    ];
    for length in [0, 1, 2, 33] {
        let data = vec![0xab; length];
        for (name, edit) in edits {
            for mut frame in
                [PATH.udp(1, 2, &data), PATH.tcp(1, 2, &data), PATH.icmp_echo(false, 3, 4, &data)]
            {
                edit(&mut frame);
                assert_checksums(name, &frame);
            }
        }
    }
}

#[test]
fn a_udp_checksum_of_zero_stays_zero() {
    let mut frame = PATH.udp(1, 2, b"x");
    write(&mut frame, 14 + 20 + 6, &[0, 0]);
    set_ipv4_src(&mut frame, 5);
    set_tp_dst(&mut frame, 9);
    assert_eq!(u16_at(&frame, 40), Some(0));
}

#[test]
fn vlan_tags_have_the_values_that_were_set() {
    let mut frame = PATH.udp(1, 2, b"x");
    set_vlan_vid_or_push(&mut frame, 0x123);
    set_vlan_pcp_or_push(&mut frame, 5);
    assert_eq!(frame[12..18], [0x81, 0x00, 0xa1, 0x23, 0x08, 0x00]);
    push_vlan(&mut frame, ETH_QINQ);
    assert_eq!(frame[12..20], [0x88, 0xa8, 0xa1, 0x23, 0x81, 0x00, 0xa1, 0x23]);
    assert!(Headers::locate(&frame).unwrap().network.is_some(), "behind a second tag");
    push_vlan(&mut frame, ETH_VLAN);
    assert_eq!(Headers::locate(&frame).unwrap().network, None, "behind a third tag is nothing");
}

#[test]
fn push_mpls_takes_the_ip_ttl_and_copy_ttl_in_sets_the_ip_ttl() {
    let mut frame = PATH.udp(1, 2, b"x");
    set_ttl(&mut frame, 9);
    push_mpls(&mut frame, ETH_MPLS);
    assert_eq!(frame[12..18], [0x88, 0x47, 0, 0, 1, 9]);
    set_mpls_ttl(&mut frame, 5);
    copy_ttl_in(&mut frame);
    pop_mpls(&mut frame, ETH_IPV4);
    assert_eq!(ttl(&frame), Some(5));
    assert_checksums("after MPLS", &frame);
}

#[test]
fn ipv6_and_sctp_checksums_are_rewritten() {
    // The frame is a neighbour solicitation with a source link-layer option. The test computes the checksum itself.
    let (source, target) = ([0xfe; 16], [0xfd; 16]);
    let mut icmp = vec![135, 0, 0, 0, 0, 0, 0, 0];
    icmp.extend_from_slice(&target);
    icmp.extend_from_slice(&[1, 1, 2, 0, 0, 0, 0, 1]);
    let sum = |icmp: &[u8], source: &[u8], destination: &[u8]| {
        internet_checksum(&[
            source,
            destination,
            &(icmp.len() as u32).to_be_bytes(),
            &[0, 0, 0, 58],
            icmp,
        ])
    };
    let checksum = sum(&icmp, &source, &target);
    icmp[2..4].copy_from_slice(&checksum.to_be_bytes());
    let mut packet = vec![0x60, 0, 0, 0, 0, icmp.len() as u8, 58, 255];
    packet.extend_from_slice(&source);
    packet.extend_from_slice(&target);
    packet.extend_from_slice(&icmp);
    let mut frame = ethernet([1; 6], [2; 6], ETH_IPV6, &packet);
    set_ipv6_src(&mut frame, 7);
    set_nd_target(&mut frame, u128::MAX - 3);
    set_nd_sll(&mut frame, [9, 8, 7, 6, 5, 4]);
    set_ipv6_flow_label(&mut frame, 0xabcde);
    set_dscp(&mut frame, 10);
    assert_eq!(frame[14..18], [0x62, 0x8a, 0xbc, 0xde]);
    assert_eq!(sum(&frame[54..86], &7u128.to_be_bytes(), &target), 0);
    assert_eq!(frame[62..78], (u128::MAX - 3).to_be_bytes());
    assert_eq!(frame[80..86], [9, 8, 7, 6, 5, 4]);

    let mut frame = PATH.ipv4(SCTP, &[0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0]);
    set_tp_src(&mut frame, 0x1234);
    assert_eq!(frame[34..36], [0x12, 0x34]);
    let mut covered = frame[34..46].to_vec();
    covered[8..12].fill(0);
    assert_eq!(frame[42..46], checksum::crc32c(&covered).to_le_bytes());
    assert_eq!(checksum::crc32c(b"123456789"), 0xe306_9283, "the CRC's published check value");
}

#[test]
fn edits_keep_later_fragments_unchanged_and_short_frames_the_same_length() {
    let mut fragment = PATH.udp(1, 2, b"data");
    fragment[20] = 0x00;
    fragment[21] = 0x10;
    let before = fragment.clone();
    set_tp_src(&mut fragment, 99);
    assert_eq!(fragment, before);

    let whole = PATH.tcp(1, 2, b"data");
    for length in 0..whole.len() {
        let mut frame = whole[..length].to_vec();
        set_eth_src(&mut frame, [1; 6]);
        set_ipv4_src(&mut frame, 1);
        set_tp_dst(&mut frame, 1);
        set_dscp(&mut frame, 1);
        set_vlan_vid_or_push(&mut frame, 1);
        push_mpls(&mut frame, ETH_MPLS);
        copy_ttl_in(&mut frame);
        copy_ttl_out(&mut frame);
        pop_mpls(&mut frame, ETH_IPV4);
        pop_vlan(&mut frame);
        assert_eq!(frame.len(), length, "{length}");
    }
}
