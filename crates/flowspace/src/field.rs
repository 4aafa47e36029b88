//! The header fields, and the place of each field in the words of a [`Key`](crate::Key).
//!
//! As in Open vSwitch's `struct flow`, fields that can never be in one packet together share bits, and the
//! prerequisites decide which field the bits mean: `nw_src` of an ARP packet is its `arp_spa`, `tp_src` of an ICMP
//! packet is its type. The order of the words, and of the bits within a word from the top down, puts every prerequisite
//! before the fields that depend on it. [`Match::subtract`](crate::Match::subtract) splits in that order, so no part of
//! the difference fixes a field without its prerequisite.

/// Number of 64-bit words of a key.
pub(crate) const WORDS: usize = 16;

/// The first word with fields behind the Ethernet type.
pub(crate) const FIRST_L3_WORD: usize = 5;

/// The word with the VLAN tag, in its low 16 bits: present (1), VID (12), PCP (3).
pub(crate) const VLAN_WORD: usize = 4;
/// All bits of the VLAN tag within [`VLAN_WORD`].
pub(crate) const VLAN_BITS: u64 = 0xffff;
/// The bit of [`VLAN_WORD`] that says that there is a tag.
pub(crate) const VLAN_PRESENT_BIT: u64 = 0x8000;

/// The bit of [`Field::VlanVid`] that says that there is a tag (`OFPVID_PRESENT`).
pub const VLAN_PRESENT: u128 = 0x1000;

/// Ethernet types that fields depend on.
pub mod ethertype {
    /// IPv4.
    pub const IP: u16 = 0x0800;
    /// ARP.
    pub const ARP: u16 = 0x0806;
    /// Reverse ARP; it has ARP's fields.
    pub const RARP: u16 = 0x8035;
    /// IPv6.
    pub const IPV6: u16 = 0x86dd;
    /// MPLS unicast.
    pub const MPLS: u16 = 0x8847;
    /// MPLS multicast.
    pub const MPLS_MULTICAST: u16 = 0x8848;
    /// Provider backbone bridging (802.1ah) I-TAG.
    pub const PBB: u16 = 0x88e7;
    /// 802.1Q VLAN tag.
    pub const VLAN: u16 = 0x8100;
    /// 802.1ad service VLAN tag.
    pub const SERVICE_VLAN: u16 = 0x88a8;
    /// The type of a frame with an 802.3 length and no SNAP header (`OFP_DL_TYPE_NOT_ETH_TYPE`).
    pub const NONE: u16 = 0x05ff;
}

/// IP protocol numbers that fields depend on.
pub mod ip_proto {
    /// ICMP for IPv4.
    pub const ICMP: u8 = 1;
    /// IGMP.
    pub const IGMP: u8 = 2;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// ICMP for IPv6.
    pub const ICMPV6: u8 = 58;
    /// SCTP.
    pub const SCTP: u8 = 132;
}

/// ICMPv6 type of a neighbour solicitation.
pub(crate) const NEIGHBOUR_SOLICITATION: u16 = 135;
/// ICMPv6 type of a neighbour advertisement.
pub(crate) const NEIGHBOUR_ADVERTISEMENT: u16 = 136;

/// One header field. Values are unsigned integers in network order, right-aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Field {
    /// Ingress port in 1.3's 32-bit numbering; see [`port_from_v10`](crate::port_from_v10).
    InPort,
    /// Physical ingress port under a logical one (1.3).
    InPhyPort,
    /// Metadata passed between tables (1.1 and later).
    Metadata,
    /// Metadata of a logical tunnel port.
    TunnelId,
    /// Ethernet source.
    DlSrc,
    /// Ethernet type behind the VLAN tags; [`ethertype::NONE`] for an 802.3 frame without SNAP.
    DlType,
    /// Ethernet destination.
    DlDst,
    /// VLAN id of the outermost tag with bit [`VLAN_PRESENT`]; 0 is "no tag".
    VlanVid,
    /// Priority of the outermost VLAN tag.
    VlanPcp,
    /// Label of the outermost MPLS shim.
    MplsLabel,
    /// Traffic class of the outermost MPLS shim.
    MplsTc,
    /// Bottom-of-stack bit of the outermost MPLS shim.
    MplsBos,
    /// Service instance of a PBB header; shares its bits with the MPLS shim.
    PbbIsid,
    /// ARP operation; its low byte shares its bits with [`Field::NwProto`].
    ArpOp,
    /// IP protocol, IPv4 or IPv6 (behind the extension headers).
    NwProto,
    /// Upper six bits of the IP type of service or traffic class.
    NwDscp,
    /// Lower two bits of the IP type of service or traffic class.
    NwEcn,
    /// IPv4 source, or ARP sender protocol address.
    NwSrc,
    /// IPv4 destination, or ARP target protocol address.
    NwDst,
    /// TCP, UDP or SCTP source port, or ICMP type.
    TpSrc,
    /// TCP, UDP or SCTP destination port, or ICMP code.
    TpDst,
    /// IPv6 flow label.
    Ipv6Label,
    /// IPv6 extension header pseudo-field (`OFPIEH_*`, 1.3 section 7.2.3.8).
    Ipv6Exthdr,
    /// IPv6 source.
    Ipv6Src,
    /// IPv6 destination.
    Ipv6Dst,
    /// ARP source hardware address, or the source link-layer option of a neighbour solicitation.
    ArpSha,
    /// ARP target hardware address, or the target link-layer option of a neighbour advertisement.
    ArpTha,
    /// Target of a neighbour solicitation or advertisement.
    NdTarget,
}

/// The place of a field: in one word at a shift, or (128 bits) in a word and the next word.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) word: usize,
    pub(crate) shift: u32,
    pub(crate) width: u32,
}

impl Field {
    /// Another name of [`Field::NwSrc`].
    pub const ARP_SPA: Field = Field::NwSrc;
    /// Another name of [`Field::NwDst`].
    pub const ARP_TPA: Field = Field::NwDst;
    /// Another name of [`Field::TpSrc`].
    pub const ICMP_TYPE: Field = Field::TpSrc;
    /// Another name of [`Field::TpDst`].
    pub const ICMP_CODE: Field = Field::TpDst;
    /// Another name of [`Field::ArpSha`].
    pub const ND_SLL: Field = Field::ArpSha;
    /// Another name of [`Field::ArpTha`].
    pub const ND_TLL: Field = Field::ArpTha;

    /// Every field; prerequisites come before the fields that depend on them.
    pub const ALL: [Field; 28] = [
        Field::InPort,
        Field::InPhyPort,
        Field::Metadata,
        Field::TunnelId,
        Field::DlSrc,
        Field::DlType,
        Field::DlDst,
        Field::VlanVid,
        Field::VlanPcp,
        Field::MplsLabel,
        Field::MplsTc,
        Field::MplsBos,
        Field::PbbIsid,
        Field::ArpOp,
        Field::NwProto,
        Field::NwDscp,
        Field::NwEcn,
        Field::NwSrc,
        Field::NwDst,
        Field::TpSrc,
        Field::TpDst,
        Field::Ipv6Label,
        Field::Ipv6Exthdr,
        Field::Ipv6Src,
        Field::Ipv6Dst,
        Field::ArpSha,
        Field::ArpTha,
        Field::NdTarget,
    ];

    pub(crate) const fn place(self) -> Place {
        let (word, shift, width) = match self {
            Field::InPort => (0, 32, 32),
            Field::InPhyPort => (0, 0, 32),
            Field::Metadata => (1, 0, 64),
            Field::TunnelId => (2, 0, 64),
            Field::DlSrc => (3, 16, 48),
            Field::DlType => (3, 0, 16),
            Field::DlDst => (4, 16, 48),
            Field::VlanVid => (4, 3, 13),
            Field::VlanPcp => (4, 0, 3),
            Field::MplsLabel => (5, 44, 20),
            Field::MplsTc => (5, 41, 3),
            Field::MplsBos => (5, 40, 1),
            Field::PbbIsid => (5, 40, 24),
            Field::ArpOp => (5, 16, 16),
            Field::NwProto => (5, 16, 8),
            Field::NwDscp => (5, 10, 6),
            Field::NwEcn => (5, 8, 2),
            Field::NwSrc => (6, 32, 32),
            Field::NwDst => (6, 0, 32),
            Field::TpSrc => (7, 48, 16),
            Field::TpDst => (7, 32, 16),
            Field::Ipv6Label => (7, 12, 20),
            Field::Ipv6Exthdr => (7, 0, 9),
            Field::Ipv6Src => (8, 0, 128),
            Field::Ipv6Dst => (10, 0, 128),
            Field::ArpSha => (12, 16, 48),
            Field::ArpTha => (13, 16, 48),
            Field::NdTarget => (14, 0, 128),
        };
        Place { word, shift, width }
    }

    /// The field's name in `ovs-ofctl` syntax. If fields share bits, the name in IP packets.
    pub const fn name(self) -> &'static str {
        match self {
            Field::InPort => "in_port",
            Field::InPhyPort => "in_phy_port",
            Field::Metadata => "metadata",
            Field::TunnelId => "tun_id",
            Field::DlSrc => "dl_src",
            Field::DlType => "dl_type",
            Field::DlDst => "dl_dst",
            Field::VlanVid => "vlan_vid",
            Field::VlanPcp => "vlan_pcp",
            Field::MplsLabel => "mpls_label",
            Field::MplsTc => "mpls_tc",
            Field::MplsBos => "mpls_bos",
            Field::PbbIsid => "pbb_isid",
            Field::ArpOp => "arp_op",
            Field::NwProto => "nw_proto",
            Field::NwDscp => "ip_dscp",
            Field::NwEcn => "nw_ecn",
            Field::NwSrc => "nw_src",
            Field::NwDst => "nw_dst",
            Field::TpSrc => "tp_src",
            Field::TpDst => "tp_dst",
            Field::Ipv6Label => "ipv6_label",
            Field::Ipv6Exthdr => "ipv6_exthdr",
            Field::Ipv6Src => "ipv6_src",
            Field::Ipv6Dst => "ipv6_dst",
            Field::ArpSha => "arp_sha",
            Field::ArpTha => "arp_tha",
            Field::NdTarget => "nd_target",
        }
    }

    /// Number of bits of the field.
    pub const fn width(self) -> u32 {
        self.place().width
    }

    /// The mask that matches every bit of the field.
    pub const fn full_mask(self) -> u128 {
        u128::MAX >> (128 - self.width())
    }

    /// The Ethernet types under which the field exists, the usual one first; empty if any will do.
    pub(crate) const fn ethertypes(self) -> &'static [u16] {
        use ethertype::*;
        match self {
            Field::InPort
            | Field::InPhyPort
            | Field::Metadata
            | Field::TunnelId
            | Field::DlSrc
            | Field::DlType
            | Field::DlDst
            | Field::VlanVid
            | Field::VlanPcp => &[],
            Field::MplsLabel | Field::MplsTc | Field::MplsBos => &[MPLS, MPLS_MULTICAST],
            Field::PbbIsid => &[PBB],
            Field::ArpOp => &[ARP, RARP],
            Field::NwProto | Field::NwDscp | Field::NwEcn | Field::TpSrc | Field::TpDst => {
                &[IP, IPV6]
            }
            Field::NwSrc | Field::NwDst => &[IP, ARP, RARP],
            Field::Ipv6Label
            | Field::Ipv6Exthdr
            | Field::Ipv6Src
            | Field::Ipv6Dst
            | Field::NdTarget => &[IPV6],
            Field::ArpSha | Field::ArpTha => &[ARP, RARP, IPV6],
        }
    }

    /// The IP protocols under which the field exists in packets of `ethertype`; empty if any will do.
    pub(crate) const fn ip_protocols(self, dl_type: u16) -> &'static [u8] {
        use ip_proto::*;
        match (self, dl_type) {
            (Field::TpSrc | Field::TpDst, ethertype::IPV6) => &[TCP, UDP, SCTP, ICMPV6],
            (Field::TpSrc | Field::TpDst, _) => &[TCP, UDP, SCTP, ICMP],
            (Field::ArpSha | Field::ArpTha | Field::NdTarget, ethertype::IPV6) => &[ICMPV6],
            _ => &[],
        }
    }

    /// The ICMPv6 types under which the field exists in packets of `ethertype`; empty if any will do.
    pub(crate) const fn icmpv6_types(self, dl_type: u16) -> &'static [u16] {
        match (self, dl_type) {
            (Field::NdTarget, ethertype::IPV6) => {
                &[NEIGHBOUR_SOLICITATION, NEIGHBOUR_ADVERTISEMENT]
            }
            (Field::ArpSha, ethertype::IPV6) => &[NEIGHBOUR_SOLICITATION],
            (Field::ArpTha, ethertype::IPV6) => &[NEIGHBOUR_ADVERTISEMENT],
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;

    #[test]
    fn every_field_fits_into_the_words_of_the_key() {
        for field in Field::ALL {
            let place = field.place();
            if place.width == 128 {
                assert!(place.word + 1 < WORDS && place.shift == 0, "{field:?}");
            } else {
                assert!(place.word < WORDS && place.shift + place.width <= 64, "{field:?}");
            }
        }
    }

    /// Fields may share bits only where their prerequisites exclude each other, or are one field
    /// under two names.
    #[test]
    fn only_fields_with_exclusive_prerequisites_share_bits() {
        for a in Field::ALL {
            for b in Field::ALL {
                let shared = Key::default().with(a, a.full_mask()).get(b) != 0;
                if a != b && shared {
                    let disjoint = a.ethertypes().iter().all(|t| !b.ethertypes().contains(t));
                    assert!(disjoint && !a.ethertypes().is_empty(), "{a:?} shares bits with {b:?}");
                }
            }
        }
    }
}
