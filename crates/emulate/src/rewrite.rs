//! Applies actions that change a packet to the bytes of the packet.

use crate::action::Action;
use crate::frame;

/// Applies an action that changes bytes. Other actions do nothing here.
pub(crate) fn apply(action: &Action, frame: &mut Vec<u8>) {
    match *action {
        Action::SetField { field, value } => frame::set_field(frame, field, value),
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

/// Decrements a TTL. Returns `false`, and changes nothing, if the TTL would become invalid.
pub(crate) fn decrement_ttl(action: &Action, frame: &mut [u8]) -> bool {
    frame::decrement_ttl(frame, matches!(action, Action::DecMplsTtl))
}

/// Raises the drop precedence of an assured-forwarding DSCP by `levels` (RFC 2597).
///
/// The precedence is 1 to 3, and never rises above 3. Other code points do not change.
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
