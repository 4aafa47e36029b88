//! Actions of OpenFlow 1.0, done to a frame.

use super::*;
use alloc::vec::Vec;
use openflow::v10::Action;

/// Does to a frame what an action does, with its checksums. Outputs, and what is unknown, leave it as it is; and so does what
/// changes a header that it does not have.
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
