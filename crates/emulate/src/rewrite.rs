//! Actions that change a packet, applied to its bytes.

use openflow::v13::OxmField;

use crate::action::Action;
use crate::frame;

const TCP: u8 = 6;
const UDP: u8 = 17;
const SCTP: u8 = 132;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

/// Applies an action that changes bytes. Other actions are not for here and do nothing.
pub(crate) fn apply(action: &Action, frame: &mut Vec<u8>) {
    match *action {
        // A bucket or a set can meet packets without a tag, which get one, as from Open vSwitch; not by their priority.
        Action::SetField { field: OxmField::VLAN_VID, value } => {
            frame::set_vlan_vid_or_push(frame, value as u16 & 0x0fff);
        }
        Action::SetField { field, value } => set_field(frame, field, value),
        Action::SetVlanVid(vid) => frame::set_vlan_vid_or_push(frame, vid),
        Action::SetVlanPcp(pcp) => frame::set_vlan_pcp_or_push(frame, pcp),
        Action::SetNwTos(tos) => frame::set_dscp(frame, tos >> 2),
        Action::SetTpSrc(port) => frame::set_tp_src(frame, port),
        Action::SetTpDst(port) => frame::set_tp_dst(frame, port),
        Action::PushVlan(tpid) => frame::push_vlan(frame, tpid),
        Action::PopVlan => frame::pop_vlan(frame),
        Action::PushMpls(ether_type) => frame::push_mpls(frame, ether_type),
        Action::PopMpls(ether_type) => frame::pop_mpls(frame, ether_type),
        Action::SetNwTtl(ttl) => frame::set_ttl(frame, ttl),
        Action::SetMplsTtl(ttl) => frame::set_mpls_ttl(frame, ttl),
        Action::CopyTtlOut => frame::copy_ttl_out(frame),
        Action::CopyTtlIn => frame::copy_ttl_in(frame),
        Action::Output { .. }
        | Action::Enqueue { .. }
        | Action::SetQueue(_)
        | Action::Resubmit { .. }
        | Action::Group(_)
        | Action::DecNwTtl
        | Action::DecMplsTtl => {}
    }
}

/// Decrements a TTL; `false` if it would have run out, and nothing was changed.
pub(crate) fn decrement_ttl(action: &Action, frame: &mut [u8]) -> bool {
    let is_mpls = matches!(action, Action::DecMplsTtl);
    let ttl = if is_mpls { frame::mpls_ttl(frame) } else { frame::ttl(frame) };
    match ttl {
        None => true,
        Some(0 | 1) => false,
        Some(ttl) if is_mpls => {
            frame::set_mpls_ttl(frame, ttl - 1);
            true
        }
        Some(ttl) => {
            frame::set_ttl(frame, ttl - 1);
            true
        }
    }
}

/// Sets a field. A packet without the header stays as it is.
fn set_field(frame: &mut [u8], field: OxmField, value: u128) {
    let mac = || {
        let [.., a, b, c, d, e, f] = value.to_be_bytes();
        [a, b, c, d, e, f]
    };
    let protocol = frame::Headers::locate(frame)
        .and_then(|headers| headers.transport)
        .map(|(protocol, _)| protocol);
    let carries = |wanted: u8| protocol == Some(wanted);
    match field {
        OxmField::ETH_DST => frame::set_eth_dst(frame, mac()),
        OxmField::ETH_SRC => frame::set_eth_src(frame, mac()),
        OxmField::ETH_TYPE => frame::set_ether_type(frame, value as u16),
        OxmField::VLAN_PCP => frame::set_vlan_pcp(frame, value as u8),
        OxmField::IP_DSCP => frame::set_dscp(frame, value as u8),
        OxmField::IP_ECN => frame::set_ecn(frame, value as u8),
        OxmField::IP_PROTO => frame::set_ip_proto(frame, value as u8),
        OxmField::IPV4_SRC => frame::set_ipv4_src(frame, value as u32),
        OxmField::IPV4_DST => frame::set_ipv4_dst(frame, value as u32),
        OxmField::TCP_SRC if carries(TCP) => frame::set_tp_src(frame, value as u16),
        OxmField::TCP_DST if carries(TCP) => frame::set_tp_dst(frame, value as u16),
        OxmField::UDP_SRC if carries(UDP) => frame::set_tp_src(frame, value as u16),
        OxmField::UDP_DST if carries(UDP) => frame::set_tp_dst(frame, value as u16),
        OxmField::SCTP_SRC if carries(SCTP) => frame::set_tp_src(frame, value as u16),
        OxmField::SCTP_DST if carries(SCTP) => frame::set_tp_dst(frame, value as u16),
        OxmField::ICMPV4_TYPE if carries(ICMP) => frame::set_icmp_type(frame, value as u8),
        OxmField::ICMPV4_CODE if carries(ICMP) => frame::set_icmp_code(frame, value as u8),
        OxmField::ARP_OP => frame::set_arp_op(frame, value as u16),
        OxmField::ARP_SPA => frame::set_arp_spa(frame, value as u32),
        OxmField::ARP_TPA => frame::set_arp_tpa(frame, value as u32),
        OxmField::ARP_SHA => frame::set_arp_sha(frame, mac()),
        OxmField::ARP_THA => frame::set_arp_tha(frame, mac()),
        OxmField::IPV6_SRC => frame::set_ipv6_src(frame, value),
        OxmField::IPV6_DST => frame::set_ipv6_dst(frame, value),
        OxmField::IPV6_FLABEL => frame::set_ipv6_flow_label(frame, value as u32),
        OxmField::ICMPV6_TYPE if carries(ICMPV6) => frame::set_icmp_type(frame, value as u8),
        OxmField::ICMPV6_CODE if carries(ICMPV6) => frame::set_icmp_code(frame, value as u8),
        OxmField::IPV6_ND_TARGET => frame::set_nd_target(frame, value),
        OxmField::IPV6_ND_SLL => frame::set_nd_sll(frame, mac()),
        OxmField::IPV6_ND_TLL => frame::set_nd_tll(frame, mac()),
        OxmField::MPLS_LABEL => frame::set_mpls_label(frame, value as u32 & 0xf_ffff),
        OxmField::MPLS_TC => frame::set_mpls_tc(frame, value as u8),
        OxmField::MPLS_BOS => frame::set_mpls_bos(frame, value != 0),
        _ => {}
    }
}

/// Raises the drop precedence of an assured-forwarding DSCP by `levels` (RFC 2597).
///
/// Precedences are 1 to 3: one that would rise beyond 3 stays at 3. Other code points are left alone.
pub(crate) fn raise_drop_precedence(frame: &mut [u8], levels: u8) {
    let Some(dscp) = dscp(frame) else { return };
    let (class, precedence) = (dscp >> 3, dscp >> 1 & 0x3);
    if !(1..=4).contains(&class) || precedence == 0 || dscp & 1 != 0 {
        return;
    }
    let raised = precedence.saturating_add(levels).min(3);
    frame::set_dscp(frame, class << 3 | raised << 1);
}

fn dscp(frame: &[u8]) -> Option<u8> {
    match frame::Headers::locate(frame)?.network? {
        frame::Network::Ipv4(at) => frame.get(at + 1).map(|class| class >> 2),
        frame::Network::Ipv6(at) => {
            let (high, low) = (frame.get(at)?, frame.get(at + 1)?);
            Some(high << 2 & 0x3c | low >> 6)
        }
        frame::Network::Arp(_) => None,
    }
}
