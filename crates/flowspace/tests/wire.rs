//! Tests of the conversions from and to the wire forms of a match.

mod common;

use flowspace::{Field, Match, MatchError};
use openflow::error::v13 as code;
use openflow::v10::{self, PortNo, Wildcards};
use openflow::v13::{self, MatchBuf, Oxm, OxmClass, OxmField};
use openflow::{ErrorCode, ListBuf};
use proptest::prelude::*;

proptest! {
    #[test]
    fn any_match_survives_v13(match_ in common::any_match()) {
        let mut wire = MatchBuf::new();
        match_.to_v13(&mut wire).unwrap();
        prop_assert_eq!(Match::from_v13(&wire.as_match()), Ok(match_));
    }

    #[test]
    fn matches_expressible_in_v10_convert_to_v10_and_back(match_ in common::any_v10_match()) {
        let wire = match_.to_v10().unwrap();
        prop_assert_eq!(Match::from_v10(&wire), match_);
    }

    /// Any 40 bytes are a match of 1.0, and writing the match again gives the same set.
    #[test]
    fn any_v10_match_is_taken(wire in any_v10_wire()) {
        let match_ = Match::from_v10(&wire);
        prop_assert_eq!(match_.to_v10().map(|wire| Match::from_v10(&wire)), Ok(match_));
    }

    #[test]
    fn any_oxm_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        if let Ok(fields) = openflow::List::parse(&bytes) {
            let _ = Match::from_v13(&v13::Match { fields });
        }
    }

    /// Fields in any order, with any bits: the result is an error, or a match that can be written
    /// again.
    #[test]
    fn any_known_oxms_are_answered(
        fields in prop::collection::vec((0..42u8, any::<[u8; 16]>(), any::<[u8; 16]>(), any::<bool>()), 0..6),
        ip in any::<bool>(),
    ) {
        let mut wire = MatchBuf::new();
        if ip {
            wire.exact(OxmField::ETH_TYPE, 0x800).exact(OxmField::IP_PROTO, 6);
        }
        for (field, value, mask, has_mask) in &fields {
            let field = OxmField(*field);
            let length = field.value_len().unwrap_or(4);
            let oxm = Oxm::exact(field, &value[..length]);
            wire.push(Oxm { mask: has_mask.then_some(&mask[..length]), ..oxm });
        }
        if let Ok(match_) = Match::from_v13(&wire.as_match()) {
            let mut again = MatchBuf::new();
            match_.to_v13(&mut again).unwrap();
            prop_assert_eq!(Match::from_v13(&again.as_match()), Ok(match_));
        }
    }
}

fn any_v10_wire() -> impl Strategy<Value = v10::Match> {
    // Most of these values make other fields valid. All combinations of wildcards occur.
    let dl_type = prop::sample::select(vec![0x800u16, 0x806, 0x8035, 0x86dd, 0x8847, 0x5ff]);
    let proto = prop::sample::select(vec![1u8, 2, 6, 17, 58, 132]);
    let vlan = prop_oneof![Just(0xffff_u16), Just(0), any::<u16>()];
    let rest =
        (any::<u32>(), any::<u16>(), any::<[u8; 6]>(), any::<u8>(), any::<u8>(), any::<u32>());
    // An ICMP type is a byte. A larger value can be on the wire, and matches nothing.
    (dl_type, proto, vlan, rest, 0..256u16).prop_map(
        |(dl_type, nw_proto, dl_vlan, (wildcards, in_port, mac, pcp, nw_tos, address), port)| {
            v10::Match {
                wildcards: Wildcards(wildcards),
                in_port: PortNo(in_port),
                dl_src: mac,
                dl_dst: mac,
                dl_vlan,
                dl_vlan_pcp: pcp,
                dl_type,
                nw_tos,
                nw_proto,
                nw_src: address,
                nw_dst: !address,
                tp_src: port,
                tp_dst: port,
            }
        },
    )
}

#[test]
fn v10_matches_are_normalised_as_in_open_vswitch() {
    let given = |fields: &[Wildcards]| {
        Wildcards(fields.iter().fold(Wildcards::ALL.0, |all, field| all & !field.0))
    };
    let wire = v10::Match {
        nw_proto: 6,
        dl_vlan_pcp: 3,
        nw_src: 0x0a00_0001,
        tp_src: 80,
        nw_tos: 0x23,
        ..v10::Match::ANY
    };
    let ip = v10::Match { dl_type: 0x800, ..wire };
    let arp = v10::Match { dl_type: 0x806, nw_proto: 2, ..wire };
    let ipv6 = v10::Match { dl_type: 0x86dd, ..wire };
    let untagged = v10::Match { dl_vlan: 0xffff, ..wire };
    let tagged = v10::Match { dl_vlan: 0x1005, ..wire };
    use Wildcards as W;
    let all_l3 = [W::DL_TYPE, W::NW_PROTO, W::NW_SRC_MASK, W::NW_TOS, W::TP_SRC];
    for (wire, fields, expected) in [
        // A field of a layer is ignored if the match does not have the layer's type.
        (wire, &[W::NW_PROTO, W::NW_SRC_MASK, W::TP_SRC][..], ""),
        (ip, &[W::DL_TYPE, W::TP_SRC], "ip"),
        (ip, &all_l3, "tcp,nw_src=10.0.0.1,nw_tos=32,tp_src=80"),
        (v10::Match { nw_proto: 2, ..ip }, &all_l3, "ip,nw_src=10.0.0.1,nw_proto=2,nw_tos=32"),
        (arp, &all_l3, "arp,arp_spa=10.0.0.1,arp_op=2"),
        (ipv6, &all_l3, "tcp6,nw_tos=32,tp_src=80"),
        (v10::Match { dl_type: 0x8847, ..wire }, &all_l3, "mpls"),
        // Matches of VLAN tags.
        (untagged, &[W::DL_VLAN], "vlan_tci=0x0000"),
        (untagged, &[W::DL_VLAN, W::DL_VLAN_PCP], "vlan_tci=0x0000"),
        (untagged, &[W::DL_VLAN_PCP], "dl_vlan_pcp=3"),
        (tagged, &[W::DL_VLAN, W::DL_VLAN_PCP], "dl_vlan=5,dl_vlan_pcp=3"),
        (v10::Match { in_port: PortNo::LOCAL, ..wire }, &[W::IN_PORT], "in_port=LOCAL"),
    ] {
        let wire = v10::Match { wildcards: given(fields), ..wire };
        assert_eq!(Match::from_v10(&wire).to_string(), expected, "{wire:?}");
    }
}

#[test]
fn a_match_not_expressible_in_v10_is_refused_with_the_field() {
    for (text, field) in [
        ("ipv6,ipv6_src=::1", Field::Ipv6Src),
        ("metadata=1", Field::Metadata),
        ("tun_id=1", Field::TunnelId),
        ("mpls,mpls_label=1", Field::MplsLabel),
        ("ip,nw_ecn=1", Field::NwEcn),
        ("ip,nw_src=10.0.0.1/255.0.0.255", Field::NwSrc),
        ("dl_dst=01:00:00:00:00:00/01:00:00:00:00:00", Field::DlDst),
        ("vlan_vid=0x1000/0x1000", Field::VlanVid),
        ("vlan_vid=0/0xfff", Field::VlanVid),
        ("tcp,tp_dst=0x10/0xf0", Field::TpDst),
        ("arp,arp_op=256", Field::ArpOp),
        ("arp,arp_sha=00:00:00:00:00:01", Field::ArpSha),
        ("in_port=70000", Field::InPort),
    ] {
        let match_: Match = text.parse().unwrap();
        let refused = match_.to_v10().expect_err(text);
        assert_eq!((refused.field, refused.version), (field, "1.0"), "{text}");
    }
}

#[test]
fn a_match_not_expressible_in_v13_is_refused_with_the_field() {
    let ip: Match = "ip".parse().unwrap();
    // A piece of everything-but-IP fixes one bit of the Ethernet type.
    let piece = Match::ANY.subtract(&ip).next().unwrap();
    let refused = piece.to_v13(&mut MatchBuf::new()).unwrap_err();
    assert_eq!(refused.field, Field::DlType);
    assert_eq!(refused.to_string(), "OpenFlow 1.3 cannot match dl_type like this");
    let priority_zero_or_no_tag: Match = "vlan_tci=0/0xe000".parse().unwrap();
    assert!(priority_zero_or_no_tag.to_v13(&mut MatchBuf::new()).is_err());
}

/// Each case has an invalid OXM list and the error code that the sender must get.
#[test]
fn invalid_v13_oxm_lists_are_refused_with_the_right_error_code() {
    const IP: Oxm<'_> = Oxm::exact(OxmField::ETH_TYPE, &[8, 0]);
    const IPV6: Oxm<'_> = Oxm::exact(OxmField::ETH_TYPE, &[0x86, 0xdd]);
    const TCP: Oxm<'_> = Oxm::exact(OxmField::IP_PROTO, &[6]);
    const ICMPV6: Oxm<'_> = Oxm::exact(OxmField::IP_PROTO, &[58]);
    const NS: Oxm<'_> = Oxm::exact(OxmField::ICMPV6_TYPE, &[135]);
    const IPV4_SRC: Oxm<'_> = Oxm::exact(OxmField::IPV4_SRC, &[10, 0, 0, 1]);
    const PORT: Oxm<'_> = Oxm::exact(OxmField::IN_PORT, &[0, 0, 0, 1]);
    let check = |fields: &[Oxm<'_>], expected: ErrorCode| {
        let list: ListBuf<Oxm<'static>> = fields.iter().fold(ListBuf::new(), |mut list, oxm| {
            list.push(*oxm);
            list
        });
        match Match::from_v13(&v13::Match { fields: list.as_list() }) {
            Ok(match_) => panic!("{fields:?} was read as `{match_}`"),
            Err(error) => assert_eq!(error.error_code(), expected, "{fields:?}: {error}"),
        }
    };
    let experimenter = Oxm {
        class: OxmClass::EXPERIMENTER,
        field: OxmField(0),
        experimenter: Some(0x4f4e_4600),
        value: &[1, 2],
        mask: None,
    };
    let nxm = Oxm { class: OxmClass::NXM_1, ..Oxm::exact(OxmField(0), &[0, 0, 0, 1]) };

    check(&[experimenter], code::BAD_MATCH_BAD_FIELD);
    check(&[nxm], code::BAD_MATCH_BAD_FIELD);
    check(&[Oxm::exact(OxmField(40), &[0])], code::BAD_MATCH_BAD_FIELD);
    check(&[Oxm::exact(OxmField(127), &[0])], code::BAD_MATCH_BAD_FIELD);

    check(&[PORT, PORT], code::BAD_MATCH_DUP_FIELD);
    check(&[IP, IPV6], code::BAD_MATCH_DUP_FIELD);
    check(&[IP, IPV4_SRC, IPV4_SRC], code::BAD_MATCH_DUP_FIELD);
    let whole = Oxm::masked(OxmField::METADATA, &[0; 8], &[0; 8]);
    check(&[whole, whole], code::BAD_MATCH_DUP_FIELD);

    check(&[IPV4_SRC], code::BAD_MATCH_BAD_PREREQ);
    check(&[IPV4_SRC, IP], code::BAD_MATCH_BAD_PREREQ);
    check(&[IPV6, IPV4_SRC], code::BAD_MATCH_BAD_PREREQ);
    check(&[TCP], code::BAD_MATCH_BAD_PREREQ);
    check(&[IP, Oxm::exact(OxmField::TCP_SRC, &[0, 80])], code::BAD_MATCH_BAD_PREREQ);
    check(&[IP, TCP, Oxm::exact(OxmField::UDP_SRC, &[0, 80])], code::BAD_MATCH_BAD_PREREQ);
    check(&[IP, TCP, Oxm::exact(OxmField::ICMPV4_TYPE, &[8])], code::BAD_MATCH_BAD_PREREQ);
    check(&[IP, Oxm::exact(OxmField::ARP_SPA, &[0; 4])], code::BAD_MATCH_BAD_PREREQ);
    check(&[IP, ICMPV6, NS], code::BAD_MATCH_BAD_PREREQ);
    check(
        &[IPV6, ICMPV6, Oxm::exact(OxmField::IPV6_ND_TARGET, &[0; 16])],
        code::BAD_MATCH_BAD_PREREQ,
    );
    check(
        &[IPV6, ICMPV6, NS, Oxm::exact(OxmField::IPV6_ND_TLL, &[0; 6])],
        code::BAD_MATCH_BAD_PREREQ,
    );
    check(&[Oxm::exact(OxmField::IN_PHY_PORT, &[0, 0, 0, 1])], code::BAD_MATCH_BAD_PREREQ);
    check(&[number(OxmField::MPLS_LABEL, &mut [0; 16], 1)], code::BAD_MATCH_BAD_PREREQ);
    check(&[Oxm::exact(OxmField::VLAN_PCP, &[1])], code::BAD_MATCH_BAD_PREREQ);
    check(
        &[Oxm::exact(OxmField::VLAN_VID, &[0, 0]), Oxm::exact(OxmField::VLAN_PCP, &[1])],
        code::BAD_MATCH_BAD_PREREQ,
    );

    check(&[Oxm::masked(OxmField::IN_PORT, &[0; 4], &[0, 0, 0, 1])], code::BAD_MATCH_BAD_MASK);
    check(&[Oxm::masked(OxmField::ETH_TYPE, &[8, 0], &[8, 0])], code::BAD_MATCH_BAD_MASK);
    check(&[IP, Oxm::masked(OxmField::IP_PROTO, &[6], &[6])], code::BAD_MATCH_BAD_MASK);
    check(&[IP, Oxm::masked(OxmField::IP_PROTO, &[0], &[0])], code::BAD_MATCH_BAD_MASK);

    let outside = Oxm::masked(OxmField::IPV4_SRC, &[10, 0, 0, 1], &[255, 0, 0, 0]);
    check(&[IP, outside], code::BAD_MATCH_BAD_WILDCARDS);
    check(&[Oxm::masked(OxmField::METADATA, &[1; 8], &[0; 8])], code::BAD_MATCH_BAD_WILDCARDS);

    check(&[Oxm::exact(OxmField::VLAN_VID, &[0x20, 5])], code::BAD_MATCH_BAD_VALUE);
    check(&[Oxm::exact(OxmField::VLAN_VID, &[0, 5])], code::BAD_MATCH_BAD_VALUE);
    check(&[IP, Oxm::exact(OxmField::IP_DSCP, &[64])], code::BAD_MATCH_BAD_VALUE);
    check(&[IP, Oxm::exact(OxmField::IP_ECN, &[4])], code::BAD_MATCH_BAD_VALUE);
    check(
        &[IPV6, number(OxmField::IPV6_FLABEL, &mut [0; 16], 0x10_0000)],
        code::BAD_MATCH_BAD_VALUE,
    );
    check(
        &[Oxm::exact(OxmField::VLAN_VID, &[0x10, 5]), Oxm::exact(OxmField::VLAN_PCP, &[8])],
        code::BAD_MATCH_BAD_VALUE,
    );
}

/// A field with a number in as many bytes as the field has on the wire.
fn number(field: OxmField, bytes: &mut [u8; 16], value: u128) -> Oxm<'_> {
    *bytes = value.to_be_bytes();
    Oxm::exact(field, &bytes[16 - field.value_len().unwrap_or(16)..])
}

#[test]
fn match_errors_are_explained_in_text() {
    for (error, text) in [
        (MatchError::Repeated(OxmField::IN_PORT), "in_port is there twice"),
        (MatchError::MissingPrerequisite(OxmField::TCP_SRC), "tp_src needs tcp or tcp6 before it"),
        (
            MatchError::UnknownField { class: OxmClass::NXM_1, field: OxmField(3) },
            "match field 3 of class 0x0001 is not known",
        ),
    ] {
        assert_eq!(error.to_string(), text);
    }
}
