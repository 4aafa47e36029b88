//! Builds a frame with the headers of a match, as `ovs-appctl ofproto/trace` does for a flow.

use alloc::vec::Vec;
use core::fmt;

use crate::field::{VLAN_PRESENT, ethertype, ip_proto};
use crate::frame::build::{Path, ethernet};
use crate::frame::{self, ETH_VLAN};
use crate::{Field, Key, Match};

/// The reason why no frame has the headers of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoFrame {
    /// The field has a mask: a frame has one value.
    Masked(Field),
    /// This module can build no frame with this value of the field together with the other fields.
    Impossible(Field),
}

impl fmt::Display for NoFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoFrame::Masked(field) => {
                write!(f, "`{}` has a mask; a packet has one value", field.name())
            }
            NoFrame::Impossible(field) => {
                write!(f, "no packet can be made with this value of `{}`", field.name())
            }
        }
    }
}

impl core::error::Error for NoFrame {}

impl Match {
    /// A whole frame with the headers of the match, right lengths and right checksums. Fields that the match does not
    /// name are zero; the TTL is 64. A frame does not contain the ingress port of the match.
    ///
    /// # Errors
    /// The first field with a mask, or with a value that no frame can have.
    pub fn to_frame(&self) -> Result<Vec<u8>, NoFrame> {
        let given = || Field::ALL.into_iter().filter(|field| *field != Field::InPort);
        let given = || given().filter(|field| self.permits(*field) && !self.is_wild(*field));
        if let Some(masked) = given().find(|field| !self.is_exact(*field)) {
            return Err(NoFrame::Masked(masked));
        }
        let mut frame = self.skeleton();
        if self.is_tagged() {
            let vid = self.get(Field::VlanVid).0 & (VLAN_PRESENT - 1);
            frame::push_vlan(&mut frame, ETH_VLAN);
            frame::set_vlan_vid(&mut frame, vid as u16);
            frame::set_vlan_pcp(&mut frame, self.get(Field::VlanPcp).0 as u8);
        }
        self.set_headers(&mut frame);
        let key = Key::extract(0, &frame);
        match given().find(|field| key.get(*field) != self.get(*field).0) {
            Some(impossible) => Err(NoFrame::Impossible(impossible)),
            None => Ok(frame),
        }
    }

    /// A frame with the right headers, in which most values are still to be set.
    fn skeleton(&self) -> Vec<u8> {
        let value = |field| self.get(field).0;
        let mac = |field| last(value(field));
        let path = Path {
            eth_src: mac(Field::DlSrc),
            eth_dst: mac(Field::DlDst),
            ip_src: value(Field::NwSrc) as u32,
            ip_dst: value(Field::NwDst) as u32,
        };
        let protocol = value(Field::NwProto) as u8;
        let plain = |type_, payload: &[u8]| ethernet(path.eth_dst, path.eth_src, type_, payload);
        match value(Field::DlType) as u16 {
            ethertype::IP => match protocol {
                ip_proto::TCP => path.tcp(0, 0, &[]),
                ip_proto::UDP => path.udp(0, 0, &[]),
                _ => path.ipv4(protocol, &[0; 32]),
            },
            ethertype::IPV6 => {
                let mut packet = Vec::from([0x60, 0, 0, 0, 0, 32, protocol, 64]);
                packet.resize(40 + 32, 0);
                if protocol == ip_proto::TCP {
                    // The length of the header, in words.
                    packet[40 + 12] = 5 << 4;
                }
                if protocol == ip_proto::ICMPV6 {
                    packet[40] = value(Field::ICMP_TYPE) as u8;
                    // Room for the option of a neighbour discovery.
                    let is_solicitation = packet[40] == 135;
                    packet[40 + 24..].copy_from_slice(&[
                        if is_solicitation { 1 } else { 2 },
                        1,
                        0,
                        0,
                        0,
                        0,
                        0,
                        0,
                    ]);
                }
                plain(ethertype::IPV6, &packet)
            }
            type_ @ (ethertype::ARP | ethertype::RARP) => {
                let mut packet = Vec::from([0, 1, 8, 0, 6, 4]);
                packet.resize(28, 0);
                plain(type_, &packet)
            }
            type_ @ (ethertype::MPLS | ethertype::MPLS_MULTICAST) => {
                plain(type_, &[0, 0, 1, 64, 0, 0, 0, 0])
            }
            // A frame without an Ethernet type has a length here.
            ethertype::NONE | 0 => plain(0, &[]),
            type_ => plain(type_, &[]),
        }
    }

    /// Sets the fields that the frame editor can set.
    fn set_headers(&self, frame: &mut [u8]) {
        let value = |field| self.get(field).0;
        let set = |field: Field| !self.is_wild(field) && self.permits(field);
        let number = |field| value(field) as u16;
        match value(Field::DlType) as u16 {
            ethertype::IP => {
                frame::set_ipv4_src(frame, value(Field::NwSrc) as u32);
                frame::set_ipv4_dst(frame, value(Field::NwDst) as u32);
            }
            ethertype::IPV6 => {
                frame::set_ipv6_flow_label(frame, value(Field::Ipv6Label) as u32);
                frame::set_ipv6_src(frame, value(Field::Ipv6Src));
                frame::set_ipv6_dst(frame, value(Field::Ipv6Dst));
                if set(Field::NdTarget) {
                    frame::set_nd_target(frame, value(Field::NdTarget));
                }
                if set(Field::ND_SLL) {
                    frame::set_nd_sll(frame, last(value(Field::ND_SLL)));
                }
                if set(Field::ND_TLL) {
                    frame::set_nd_tll(frame, last(value(Field::ND_TLL)));
                }
            }
            ethertype::ARP | ethertype::RARP => {
                frame::set_arp_op(frame, number(Field::ArpOp).max(number(Field::NwProto)));
                frame::set_arp_spa(frame, value(Field::ARP_SPA) as u32);
                frame::set_arp_tpa(frame, value(Field::ARP_TPA) as u32);
                frame::set_arp_sha(frame, last(value(Field::ArpSha)));
                frame::set_arp_tha(frame, last(value(Field::ArpTha)));
                return;
            }
            ethertype::MPLS | ethertype::MPLS_MULTICAST => {
                frame::set_mpls_label(frame, value(Field::MplsLabel) as u32);
                frame::set_mpls_tc(frame, value(Field::MplsTc) as u8);
                frame::set_mpls_bos(frame, value(Field::MplsBos) != 0);
                return;
            }
            _ => return,
        }
        frame::set_dscp(frame, value(Field::NwDscp) as u8);
        frame::set_ecn(frame, value(Field::NwEcn) as u8);
        let protocol = value(Field::NwProto) as u8;
        match protocol {
            ip_proto::ICMP | ip_proto::ICMPV6 => {
                frame::set_icmp_type(frame, value(Field::ICMP_TYPE) as u8);
                frame::set_icmp_code(frame, value(Field::ICMP_CODE) as u8);
            }
            _ => {
                frame::set_tp_src(frame, number(Field::TpSrc));
                frame::set_tp_dst(frame, number(Field::TpDst));
            }
        }
    }
}

/// The last six bytes of a number: an address.
fn last(number: u128) -> [u8; 6] {
    let [.., a, b, c, d, e, f] = number.to_be_bytes();
    [a, b, c, d, e, f]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn a_frame_built_from_a_match_matches_the_match() {
        for text in [
            "",
            "dl_src=02:00:00:00:00:01,dl_dst=ff:ff:ff:ff:ff:ff",
            "dl_type=0x88cc,dl_dst=01:80:c2:00:00:0e",
            "ip,nw_src=10.1.0.1,nw_dst=10.1.0.2",
            "tcp,nw_src=10.1.0.1,nw_dst=10.1.0.2,tp_src=5,tp_dst=80",
            "udp,nw_tos=184,nw_ecn=2,tp_src=53,tp_dst=65535",
            "sctp,nw_src=10.1.0.1,tp_src=7,tp_dst=9",
            "icmp,nw_dst=10.0.0.1,icmp_type=8,icmp_code=1",
            "ip,nw_proto=47,nw_src=10.0.0.1",
            "arp,arp_op=1,arp_spa=10.0.0.1,arp_tpa=10.0.0.2,arp_sha=02:00:00:00:00:01",
            "arp,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_proto=2",
            "dl_vlan=5,dl_vlan_pcp=3,tcp,tp_dst=80",
            "dl_vlan=0xffff,ip",
            "vlan_tci=0x1007,ip,nw_src=10.0.0.1",
            "ipv6,ipv6_src=fe80::1,ipv6_dst=fe80::2,ipv6_label=0x12345",
            "tcp6,ipv6_src=fe80::1,tp_src=1,tp_dst=2",
            "udp6,nw_tos=32,tp_src=1,tp_dst=2",
            "icmp6,icmp_type=135,nd_target=fe80::9,nd_sll=02:00:00:00:00:07",
            "icmp6,icmp_type=136,nd_target=fe80::9,nd_tll=02:00:00:00:00:07",
            "icmp6,icmp_type=128,icmp_code=0",
            "mpls,mpls_label=77,mpls_tc=3,mpls_bos=1",
        ] {
            let match_: Match = text.parse().unwrap();
            let frame = match_.to_frame().unwrap_or_else(|why| panic!("{text}: {why}"));
            let key = Key::extract(0, &frame);
            assert!(match_.matches(&key), "{text}: {key:?}");
            assert!(frame.len() >= 60, "{text}");
        }
    }

    #[test]
    fn a_match_without_a_possible_packet_is_refused_with_the_field_name() {
        for (text, says) in [
            ("ip,nw_src=10.0.0.0/8", "`nw_src` has a mask; a packet has one value"),
            ("metadata=1", "no packet can be made with this value of `metadata`"),
            ("tun_id=1", "no packet can be made with this value of `tun_id`"),
            ("dl_type=0x88e7,pbb_isid=5", "no packet can be made with this value of `pbb_isid`"),
            ("dl_type=0x8100", "no packet can be made with this value of `dl_type`"),
        ] {
            let match_: Match = text.parse().unwrap();
            assert_eq!(match_.to_frame().unwrap_err().to_string(), says, "{text}");
        }
    }
}
