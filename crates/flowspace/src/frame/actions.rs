//! Applies actions of OpenFlow to a frame.

use super::edit::*;
use super::headers::{Headers, ICMP, ICMPV6, SCTP, TCP, UDP};
use super::tags::*;
use alloc::vec::Vec;
use openflow::v10::Action;
use openflow::v13::{self, OxmField};

/// Applies an action of 1.0 to a frame, with the checksums. Outputs, unknown actions, and actions for a header that the
/// frame lacks do not change the frame.
pub fn apply_v10(frame: &mut Vec<u8>, action: &Action<'_>) {
    match *action {
        Action::SetVlanVid(vid) => set_vlan_vid_or_push(frame, vid),
        Action::SetVlanPcp(pcp) => set_vlan_pcp_or_push(frame, pcp),
        Action::StripVlan => pop_vlan(frame),
        Action::SetDlSrc(address) => set_eth_src(frame, address),
        Action::SetDlDst(address) => set_eth_dst(frame, address),
        Action::SetNwSrc(address) => set_ipv4_src(frame, address),
        Action::SetNwDst(address) => set_ipv4_dst(frame, address),
        Action::SetNwTos(tos) => set_dscp(frame, tos >> 2),
        Action::SetTpSrc(port) => set_tp_src(frame, port),
        Action::SetTpDst(port) => set_tp_dst(frame, port),
        Action::Output { .. }
        | Action::Enqueue { .. }
        | Action::Vendor { .. }
        | Action::Unknown { .. } => {}
    }
}

/// Applies an action of 1.3 to a frame. `false` if a TTL would have become 0; then the frame is unchanged. PBB actions,
/// which Weir and Open vSwitch do not support, do nothing.
pub fn apply_v13(frame: &mut Vec<u8>, action: &v13::Action<'_>) -> bool {
    use v13::Action;
    match *action {
        Action::SetField(oxm) => {
            if let (Some(field), Some(value)) = (oxm.basic(), oxm.number()) {
                set_field(frame, field, value);
            }
        }
        Action::PushVlan(tpid) => push_vlan(frame, tpid),
        Action::PopVlan => pop_vlan(frame),
        Action::PushMpls(ether_type) => push_mpls(frame, ether_type),
        Action::PopMpls(ether_type) => pop_mpls(frame, ether_type),
        Action::SetNwTtl(ttl) => set_ttl(frame, ttl),
        Action::SetMplsTtl(ttl) => set_mpls_ttl(frame, ttl),
        Action::CopyTtlOut => copy_ttl_out(frame),
        Action::CopyTtlIn => copy_ttl_in(frame),
        Action::DecNwTtl => return decrement_ttl(frame, false),
        Action::DecMplsTtl => return decrement_ttl(frame, true),
        Action::Output { .. }
        | Action::SetQueue(_)
        | Action::Group(_)
        | Action::PushPbb(_)
        | Action::PopPbb
        | Action::Experimenter { .. }
        | Action::Unknown { .. } => {}
    }
    true
}

/// Decrements the TTL of IP, or of MPLS; `false` if the TTL would have become 0; then the frame is unchanged.
pub fn decrement_ttl(frame: &mut [u8], is_mpls: bool) -> bool {
    let ttl = if is_mpls { mpls_ttl(frame) } else { ttl(frame) };
    match ttl {
        None => true,
        Some(0 | 1) => false,
        Some(ttl) => {
            if is_mpls {
                set_mpls_ttl(frame, ttl - 1)
            } else {
                set_ttl(frame, ttl - 1)
            }
            true
        }
    }
}

/// Sets a field to a right-aligned value. A packet without the header does not change. Exception, as in Open vSwitch:
/// setting the VLAN id of an untagged packet adds a tag; setting the VLAN priority does not.
pub fn set_field(frame: &mut Vec<u8>, field: OxmField, value: u128) {
    let mac = || {
        let [.., a, b, c, d, e, f] = value.to_be_bytes();
        [a, b, c, d, e, f]
    };
    let protocol =
        Headers::locate(frame).and_then(|headers| headers.transport).map(|(protocol, _)| protocol);
    let carries = |wanted: u8| protocol == Some(wanted);
    match field {
        OxmField::VLAN_VID => set_vlan_vid_or_push(frame, value as u16 & 0x0fff),
        OxmField::ETH_DST => set_eth_dst(frame, mac()),
        OxmField::ETH_SRC => set_eth_src(frame, mac()),
        OxmField::ETH_TYPE => set_ether_type(frame, value as u16),
        OxmField::VLAN_PCP => set_vlan_pcp(frame, value as u8),
        OxmField::IP_DSCP => set_dscp(frame, value as u8),
        OxmField::IP_ECN => set_ecn(frame, value as u8),
        OxmField::IP_PROTO => set_ip_proto(frame, value as u8),
        OxmField::IPV4_SRC => set_ipv4_src(frame, value as u32),
        OxmField::IPV4_DST => set_ipv4_dst(frame, value as u32),
        OxmField::TCP_SRC if carries(TCP) => set_tp_src(frame, value as u16),
        OxmField::TCP_DST if carries(TCP) => set_tp_dst(frame, value as u16),
        OxmField::UDP_SRC if carries(UDP) => set_tp_src(frame, value as u16),
        OxmField::UDP_DST if carries(UDP) => set_tp_dst(frame, value as u16),
        OxmField::SCTP_SRC if carries(SCTP) => set_tp_src(frame, value as u16),
        OxmField::SCTP_DST if carries(SCTP) => set_tp_dst(frame, value as u16),
        OxmField::ICMPV4_TYPE if carries(ICMP) => set_icmp_type(frame, value as u8),
        OxmField::ICMPV4_CODE if carries(ICMP) => set_icmp_code(frame, value as u8),
        OxmField::ARP_OP => set_arp_op(frame, value as u16),
        OxmField::ARP_SPA => set_arp_spa(frame, value as u32),
        OxmField::ARP_TPA => set_arp_tpa(frame, value as u32),
        OxmField::ARP_SHA => set_arp_sha(frame, mac()),
        OxmField::ARP_THA => set_arp_tha(frame, mac()),
        OxmField::IPV6_SRC => set_ipv6_src(frame, value),
        OxmField::IPV6_DST => set_ipv6_dst(frame, value),
        OxmField::IPV6_FLABEL => set_ipv6_flow_label(frame, value as u32),
        OxmField::ICMPV6_TYPE if carries(ICMPV6) => set_icmp_type(frame, value as u8),
        OxmField::ICMPV6_CODE if carries(ICMPV6) => set_icmp_code(frame, value as u8),
        OxmField::IPV6_ND_TARGET => set_nd_target(frame, value),
        OxmField::IPV6_ND_SLL => set_nd_sll(frame, mac()),
        OxmField::IPV6_ND_TLL => set_nd_tll(frame, mac()),
        OxmField::MPLS_LABEL => set_mpls_label(frame, value as u32 & 0xf_ffff),
        OxmField::MPLS_TC => set_mpls_tc(frame, value as u8),
        OxmField::MPLS_BOS => set_mpls_bos(frame, value != 0),
        _ => {}
    }
}
