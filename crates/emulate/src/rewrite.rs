//! Actions that change a packet, applied to its bytes.

use crate::action::Action;
use crate::frame;

/// OXM field numbers (1.3, table 11) that are set beside the packet, not in it.
pub(crate) const OXM_METADATA: u8 = 2;
pub(crate) const OXM_TUNNEL_ID: u8 = 38;

const TCP: u8 = 6;
const UDP: u8 = 17;
const SCTP: u8 = 132;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

/// Applies an action that changes bytes. Other actions are not for here and do nothing.
pub(crate) fn apply(action: &Action, frame: &mut Vec<u8>) {
    match *action {
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

/// Sets the field with this OXM number. A packet without the header stays as it is.
fn set_field(frame: &mut [u8], field: u8, value: u128) {
    let mac = || {
        let [.., a, b, c, d, e, f] = value.to_be_bytes();
        [a, b, c, d, e, f]
    };
    let protocol = frame::Headers::locate(frame)
        .and_then(|headers| headers.transport)
        .map(|(protocol, _)| protocol);
    let carries = |wanted: u8| protocol == Some(wanted);
    match field {
        3 => frame::set_eth_dst(frame, mac()),
        4 => frame::set_eth_src(frame, mac()),
        5 => frame::set_ether_type(frame, value as u16),
        6 => frame::set_vlan_vid(frame, value as u16 & 0x0fff),
        7 => frame::set_vlan_pcp(frame, value as u8),
        8 => frame::set_dscp(frame, value as u8),
        9 => frame::set_ecn(frame, value as u8),
        10 => frame::set_ip_proto(frame, value as u8),
        11 => frame::set_ipv4_src(frame, value as u32),
        12 => frame::set_ipv4_dst(frame, value as u32),
        13 if carries(TCP) => frame::set_tp_src(frame, value as u16),
        14 if carries(TCP) => frame::set_tp_dst(frame, value as u16),
        15 if carries(UDP) => frame::set_tp_src(frame, value as u16),
        16 if carries(UDP) => frame::set_tp_dst(frame, value as u16),
        17 if carries(SCTP) => frame::set_tp_src(frame, value as u16),
        18 if carries(SCTP) => frame::set_tp_dst(frame, value as u16),
        19 if carries(ICMP) => frame::set_icmp_type(frame, value as u8),
        20 if carries(ICMP) => frame::set_icmp_code(frame, value as u8),
        21 => frame::set_arp_op(frame, value as u16),
        22 => frame::set_arp_spa(frame, value as u32),
        23 => frame::set_arp_tpa(frame, value as u32),
        24 => frame::set_arp_sha(frame, mac()),
        25 => frame::set_arp_tha(frame, mac()),
        26 => frame::set_ipv6_src(frame, value),
        27 => frame::set_ipv6_dst(frame, value),
        28 => frame::set_ipv6_flow_label(frame, value as u32),
        29 if carries(ICMPV6) => frame::set_icmp_type(frame, value as u8),
        30 if carries(ICMPV6) => frame::set_icmp_code(frame, value as u8),
        31 => frame::set_nd_target(frame, value),
        32 => frame::set_nd_sll(frame, mac()),
        33 => frame::set_nd_tll(frame, mac()),
        34 => frame::set_mpls_label(frame, value as u32 & 0xf_ffff),
        35 => frame::set_mpls_tc(frame, value as u8),
        36 => frame::set_mpls_bos(frame, value != 0),
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
