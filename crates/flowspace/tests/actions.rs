//! Tests of the images of sets of packets under OpenFlow actions: set, action, image. `algebra.rs` compares the
//! rewrites with a brute-force oracle; this file covers the headers that the oracle does not enumerate.

use flowspace::Match;
use openflow::v13::{Oxm, OxmField};
use openflow::{v10, v13};

fn parse(text: &str) -> Match {
    text.parse().unwrap_or_else(|error| unreachable!("`{text}`: {error}"))
}

fn check_v10(set: &str, action: v10::Action<'_>, expected: &str) {
    let image = parse(set).image_v10(&action);
    assert_eq!(image.to_string(), expected, "{action:?} on `{set}`");
}

fn check_v13(set: &str, action: v13::Action<'_>, expected: &str) {
    let image = parse(set).image_v13(&action);
    assert_eq!(image.to_string(), expected, "{action:?} on `{set}`");
}

#[test]
fn each_v10_action_gives_the_expected_match_image() {
    use v10::Action::*;
    let port = v10::PortNo(3);
    check_v10("tcp,tp_dst=80", Output { port, max_len: 0 }, "tcp,tp_dst=80");
    check_v10("tcp,tp_dst=80", Enqueue { port, queue_id: 1 }, "tcp,tp_dst=80");
    check_v10("", SetDlSrc([0, 1, 2, 3, 4, 5]), "dl_src=00:01:02:03:04:05");
    check_v10("ip", SetDlDst([0, 1, 2, 3, 4, 5]), "ip,dl_dst=00:01:02:03:04:05");
    check_v10("ip,nw_src=10.0.0.0/8", SetNwSrc(0x0b00_0001), "ip,nw_src=11.0.0.1");
    check_v10("ip", SetNwDst(0x0b00_0001), "ip,nw_dst=11.0.0.1");
    // Only some packets may have the field.
    check_v10("", SetNwDst(0x0b00_0001), "");
    check_v10("in_port=1", SetTpSrc(80), "in_port=1");
    check_v10("ip", SetTpSrc(80), "ip");
    // No packet has the field.
    check_v10("ipv6", SetNwDst(0x0b00_0001), "ipv6");
    // Switches handle these packets differently.
    check_v10("arp,arp_spa=10.0.0.1,arp_op=1", SetNwSrc(1), "arp,arp_op=1");
    check_v10("icmp,icmp_type=8,icmp_code=0", SetTpSrc(80), "icmp,icmp_code=0");
    check_v10("ip,nw_tos=4", SetNwTos(0xb8), "ip,nw_tos=184");
    check_v10("udp,tp_dst=53", SetTpDst(54), "udp,tp_dst=54");
    check_v10("dl_vlan=5,dl_vlan_pcp=1", SetVlanVid(6), "dl_vlan=6,dl_vlan_pcp=1");
    check_v10("vlan_tci=0", SetVlanVid(6), "dl_vlan=6,dl_vlan_pcp=0");
    check_v10("vlan_tci=0", SetVlanPcp(2), "dl_vlan=0,dl_vlan_pcp=2");
    check_v10("dl_vlan=5,dl_vlan_pcp=1", StripVlan, "");
    check_v10("vlan_tci=0", StripVlan, "vlan_tci=0x0000");
    check_v10("tcp", Vendor { vendor: 0x2320, body: &[0; 8] }, "");
    check_v10("tcp", Unknown { type_: 99, body: &[0; 4] }, "");
}

#[test]
fn each_v13_action_gives_the_expected_match_image() {
    use v13::Action::*;
    let set = |field, value| SetField(Oxm::exact(field, value));
    check_v13("tcp,tp_dst=80", Group(1), "tcp,tp_dst=80");
    check_v13("tcp,tp_dst=80", DecNwTtl, "tcp,tp_dst=80");
    check_v13("", set(OxmField::ETH_DST, &[0, 1, 2, 3, 4, 5]), "dl_dst=00:01:02:03:04:05");
    check_v13("tcp,tp_dst=80", set(OxmField::TCP_DST, &[0, 81]), "tcp,tp_dst=81");
    check_v13(
        "metadata=0x7",
        set(OxmField::TUNNEL_ID, &[0, 0, 0, 0, 0, 0, 0, 9]),
        "tun_id=0x9,metadata=0x7",
    );
    check_v13("ipv6", set(OxmField::IPV6_SRC, &[0; 16]), "ipv6,ipv6_src=::");
    // The field belongs to packets of another kind.
    check_v13("udp,tp_dst=80", set(OxmField::TCP_DST, &[0, 81]), "udp");
    check_v13("ip,nw_src=10.0.0.1", set(OxmField::ARP_SPA, &[10, 0, 0, 2]), "ip");
    // After a prerequisite is overwritten, the dependent fields are unknown.
    check_v13("tcp,tp_dst=80", set(OxmField::IP_PROTO, &[17]), "udp");
    check_v13(
        "icmp6,icmp_type=135,nd_target=::1",
        set(OxmField::ICMPV6_TYPE, &[136]),
        "icmp6,icmp_type=136",
    );
    check_v13("tcp", set(OxmField(99), &[0]), "");
    check_v13("tcp", Experimenter { experimenter: 0x2320, body: &[] }, "");
    // VLAN: for packets that may be untagged, the action may add a tag or not.
    check_v13(
        "dl_vlan=5,dl_vlan_pcp=1",
        set(OxmField::VLAN_VID, &[0x10, 6]),
        "dl_vlan=6,dl_vlan_pcp=1",
    );
    check_v13("dl_vlan=5,dl_vlan_pcp=1", set(OxmField::VLAN_PCP, &[2]), "dl_vlan=5,dl_vlan_pcp=2");
    check_v13("vlan_tci=0,ip", set(OxmField::VLAN_VID, &[0x10, 6]), "ip");
    check_v13("ip", PushVlan(0x8100), "ip,vlan_tci=0x1000/0x1000");
    check_v13("vlan_tci=0,ip", PushVlan(0x8100), "ip,dl_vlan=0,dl_vlan_pcp=0");
    check_v13("dl_vlan=6,ip", PushVlan(0x8100), "ip,vlan_tci=0x1000/0x1ff9");
    check_v13("dl_vlan=6,ip", PopVlan, "ip");
    // MPLS and PBB.
    check_v13("tcp,tp_dst=80,in_port=1", PushMpls(0x8847), "mpls,in_port=1,mpls_bos=1");
    check_v13("mpls,mpls_label=3", PushMpls(0x8847), "mpls,mpls_bos=0");
    check_v13("in_port=1", PushMpls(0x8848), "mplsm,in_port=1");
    check_v13("mpls,mpls_label=3,in_port=1", PopMpls(0x0800), "ip,in_port=1");
    // The bytes after the shim become a tag.
    for tag in [0x8100, 0x88a8] {
        check_v13("mpls,mpls_label=3,in_port=1,dl_vlan=0xffff", PopMpls(tag), "in_port=1");
        check_v13("in_port=1,dl_vlan=0xffff", PopMpls(tag), "in_port=1");
        check_v13("ip,in_port=1,vlan_tci=0", PopMpls(tag), "ip,in_port=1,vlan_tci=0x0000");
    }
    check_v13("tcp,tp_dst=80", PopMpls(0x0800), "tcp,tp_dst=80");
    check_v13("in_port=1", PopMpls(0x0800), "in_port=1");
    check_v13(
        "tcp,dl_vlan=5,dl_src=00:00:00:00:00:01",
        PushPbb(0x88e7),
        "dl_src=00:00:00:00:00:01,dl_type=0x88e7",
    );
    check_v13("dl_type=0x88e7,dl_vlan=5,in_port=1,dl_src=00:00:00:00:00:01", PopPbb, "in_port=1");
    check_v13("tcp,dl_vlan=5", PopPbb, "tcp,dl_vlan=5");
}
