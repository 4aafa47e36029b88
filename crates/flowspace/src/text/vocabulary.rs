//! The words of the text form: keywords, names of fields and ports, and the text forms of values.

use crate::Field;
use crate::field::{ethertype as eth, ip_proto as proto};
use crate::needs::Needs;

/// A word that stands for an Ethernet type and perhaps an IP protocol.
pub(super) struct Keyword {
    pub(super) word: &'static str,
    pub(super) ethertype: Option<u16>,
    pub(super) protocol: Option<u8>,
}

const fn keyword(word: &'static str, ethertype: u16, protocol: Option<u8>) -> Keyword {
    Keyword { word, ethertype: Some(ethertype), protocol }
}

pub(super) const KEYWORDS: &[Keyword] = &[
    Keyword { word: "eth", ethertype: None, protocol: None },
    keyword("ip", eth::IP, None),
    keyword("ipv4", eth::IP, None),
    keyword("ip4", eth::IP, None),
    keyword("icmp", eth::IP, Some(proto::ICMP)),
    keyword("icmp4", eth::IP, Some(proto::ICMP)),
    keyword("tcp", eth::IP, Some(proto::TCP)),
    keyword("tcp4", eth::IP, Some(proto::TCP)),
    keyword("udp", eth::IP, Some(proto::UDP)),
    keyword("udp4", eth::IP, Some(proto::UDP)),
    keyword("sctp", eth::IP, Some(proto::SCTP)),
    keyword("sctp4", eth::IP, Some(proto::SCTP)),
    keyword("ipv6", eth::IPV6, None),
    keyword("ip6", eth::IPV6, None),
    keyword("icmp6", eth::IPV6, Some(proto::ICMPV6)),
    keyword("tcp6", eth::IPV6, Some(proto::TCP)),
    keyword("udp6", eth::IPV6, Some(proto::UDP)),
    keyword("sctp6", eth::IPV6, Some(proto::SCTP)),
    keyword("arp", eth::ARP, None),
    keyword("rarp", eth::RARP, None),
    keyword("mpls", eth::MPLS, None),
    keyword("mplsm", eth::MPLS_MULTICAST, None),
];

/// The text form of a field's value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A number, decimal or hexadecimal.
    Number,
    /// A number with an optional mask.
    MaskedNumber,
    /// A port's number or name.
    Port,
    /// `01:02:03:04:05:06` with an optional mask.
    Ethernet,
    /// `10.0.0.1` with an optional prefix length or mask.
    Ipv4,
    /// `fe80::1` with an optional prefix length or mask.
    Ipv6,
    /// A VLAN id, or 0xffff for "no tag".
    Vlan,
    /// A whole VLAN tag (priority, present, id) with an optional mask.
    VlanTag,
    /// A type of service byte, of which the upper six bits are the DSCP.
    TypeOfService,
}

/// A field under one of its names.
pub(super) struct Name {
    pub(super) name: &'static str,
    pub(super) field: Field,
    pub(super) form: Form,
    pub(super) needs: Needs,
}

const fn name(name: &'static str, field: Field, form: Form, needs: Needs) -> Name {
    Name { name, field, form, needs }
}

pub(super) const NAMES: &[Name] = &[
    name("in_port", Field::InPort, Form::Port, Needs::NOTHING),
    name("in_phy_port", Field::InPhyPort, Form::Number, Needs::IN_PORT),
    name("metadata", Field::Metadata, Form::MaskedNumber, Needs::NOTHING),
    name("tun_id", Field::TunnelId, Form::MaskedNumber, Needs::NOTHING),
    name("tunnel_id", Field::TunnelId, Form::MaskedNumber, Needs::NOTHING),
    name("dl_src", Field::DlSrc, Form::Ethernet, Needs::NOTHING),
    name("eth_src", Field::DlSrc, Form::Ethernet, Needs::NOTHING),
    name("dl_dst", Field::DlDst, Form::Ethernet, Needs::NOTHING),
    name("eth_dst", Field::DlDst, Form::Ethernet, Needs::NOTHING),
    name("dl_type", Field::DlType, Form::Number, Needs::NOTHING),
    name("eth_type", Field::DlType, Form::Number, Needs::NOTHING),
    name("dl_vlan", Field::VlanVid, Form::Vlan, Needs::NOTHING),
    name("vlan_vid", Field::VlanVid, Form::MaskedNumber, Needs::NOTHING),
    name("vlan_tci", Field::VlanVid, Form::VlanTag, Needs::NOTHING),
    name("dl_vlan_pcp", Field::VlanPcp, Form::Number, Needs::NOTHING),
    name("vlan_pcp", Field::VlanPcp, Form::Number, Needs::NOTHING),
    name("mpls_label", Field::MplsLabel, Form::Number, Needs::MPLS),
    name("mpls_tc", Field::MplsTc, Form::Number, Needs::MPLS),
    name("mpls_bos", Field::MplsBos, Form::Number, Needs::MPLS),
    name("pbb_isid", Field::PbbIsid, Form::MaskedNumber, Needs::PBB),
    name("arp_op", Field::ArpOp, Form::Number, Needs::ARP),
    name("nw_proto", Field::NwProto, Form::Number, Needs::IP_OR_ARP),
    name("ip_proto", Field::NwProto, Form::Number, Needs::IP_OR_ARP),
    name("nw_tos", Field::NwDscp, Form::TypeOfService, Needs::IP),
    name("ip_dscp", Field::NwDscp, Form::Number, Needs::IP),
    name("nw_ecn", Field::NwEcn, Form::Number, Needs::IP),
    name("ip_ecn", Field::NwEcn, Form::Number, Needs::IP),
    name("nw_src", Field::NwSrc, Form::Ipv4, Needs::IPV4_OR_ARP),
    name("ip_src", Field::NwSrc, Form::Ipv4, Needs::IPV4_OR_ARP),
    name("ipv4_src", Field::NwSrc, Form::Ipv4, Needs::IPV4),
    name("arp_spa", Field::ARP_SPA, Form::Ipv4, Needs::ARP),
    name("nw_dst", Field::NwDst, Form::Ipv4, Needs::IPV4_OR_ARP),
    name("ip_dst", Field::NwDst, Form::Ipv4, Needs::IPV4_OR_ARP),
    name("ipv4_dst", Field::NwDst, Form::Ipv4, Needs::IPV4),
    name("arp_tpa", Field::ARP_TPA, Form::Ipv4, Needs::ARP),
    name("tp_src", Field::TpSrc, Form::MaskedNumber, Needs::TRANSPORT),
    name("tcp_src", Field::TpSrc, Form::MaskedNumber, Needs::TCP),
    name("udp_src", Field::TpSrc, Form::MaskedNumber, Needs::UDP),
    name("sctp_src", Field::TpSrc, Form::MaskedNumber, Needs::SCTP),
    name("icmp_type", Field::ICMP_TYPE, Form::Number, Needs::ICMP),
    name("icmpv4_type", Field::ICMP_TYPE, Form::Number, Needs::ICMPV4),
    name("icmpv6_type", Field::ICMP_TYPE, Form::Number, Needs::ICMPV6),
    name("tp_dst", Field::TpDst, Form::MaskedNumber, Needs::TRANSPORT),
    name("tcp_dst", Field::TpDst, Form::MaskedNumber, Needs::TCP),
    name("udp_dst", Field::TpDst, Form::MaskedNumber, Needs::UDP),
    name("sctp_dst", Field::TpDst, Form::MaskedNumber, Needs::SCTP),
    name("icmp_code", Field::ICMP_CODE, Form::Number, Needs::ICMP),
    name("icmpv4_code", Field::ICMP_CODE, Form::Number, Needs::ICMPV4),
    name("icmpv6_code", Field::ICMP_CODE, Form::Number, Needs::ICMPV6),
    name("ipv6_src", Field::Ipv6Src, Form::Ipv6, Needs::IPV6),
    name("ipv6_dst", Field::Ipv6Dst, Form::Ipv6, Needs::IPV6),
    name("ipv6_label", Field::Ipv6Label, Form::MaskedNumber, Needs::IPV6),
    name("ipv6_flabel", Field::Ipv6Label, Form::MaskedNumber, Needs::IPV6),
    name("ipv6_exthdr", Field::Ipv6Exthdr, Form::MaskedNumber, Needs::IPV6),
    name("arp_sha", Field::ArpSha, Form::Ethernet, Needs::ARP),
    name("arp_tha", Field::ArpTha, Form::Ethernet, Needs::ARP),
    name("nd_sll", Field::ND_SLL, Form::Ethernet, Needs::SOLICITATION),
    name("nd_tll", Field::ND_TLL, Form::Ethernet, Needs::ADVERTISEMENT),
    name("nd_target", Field::NdTarget, Form::Ipv6, Needs::NEIGHBOUR),
];

/// Words that `ovs-ofctl` accepts in a flow but Weir does not accept in a match, with the reason.
pub(super) const FOREIGN: &[(&str, &str)] = &[
    ("actions", "a match has no actions"),
    ("cookie", "a match has no cookie"),
    ("priority", "the priority is not part of the match"),
    ("table", "the table is not part of the match"),
    ("nw_ttl", "OpenFlow 1.0 and 1.3 cannot match it"),
    ("ip_frag", "OpenFlow 1.0 and 1.3 cannot match it"),
    ("nw_frag", "OpenFlow 1.0 and 1.3 cannot match it"),
    ("tcp_flags", "OpenFlow 1.0 and 1.3 cannot match it"),
    ("mpls_ttl", "OpenFlow 1.0 and 1.3 cannot match it"),
    ("pkt_mark", "it is an Open vSwitch extension"),
    ("ct_state", "it is an Open vSwitch extension"),
    ("ct_zone", "it is an Open vSwitch extension"),
    ("ct_mark", "it is an Open vSwitch extension"),
    ("recirc_id", "it is an Open vSwitch extension"),
];

/// Reserved ports by name, 1.3 numbering. `NONE` is 1.0's name of `ANY`.
pub(super) const PORTS: &[(&str, u32)] = &[
    ("IN_PORT", 0xffff_fff8),
    ("TABLE", 0xffff_fff9),
    ("NORMAL", 0xffff_fffa),
    ("FLOOD", 0xffff_fffb),
    ("ALL", 0xffff_fffc),
    ("CONTROLLER", 0xffff_fffd),
    ("LOCAL", 0xffff_fffe),
    ("ANY", 0xffff_ffff),
    ("NONE", 0xffff_ffff),
];

/// The VLAN bits of a key (present, id, priority) from a tag as on the wire (priority, present, id).
pub(super) const fn vlan_bits_from_tci(tci: u16) -> u64 {
    tci.rotate_left(3) as u64
}

/// The inverse of [`vlan_bits_from_tci`].
pub(super) const fn tci_from_vlan_bits(bits: u64) -> u16 {
    (bits as u16).rotate_right(3)
}
