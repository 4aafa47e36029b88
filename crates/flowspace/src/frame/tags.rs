//! VLAN tags and MPLS label stack entries: pushing, popping, setting.

use super::bytes::{u16_at, u32_at, write};
use super::checksum;
use super::edit::ttl;
use super::headers::*;
use alloc::vec::Vec;

/// Sets the VLAN id (12 bits) the OpenFlow 1.0 way: an untagged frame gets a tag of priority 0.
pub fn set_vlan_vid_or_push(frame: &mut Vec<u8>, vid: u16) {
    push_if_untagged(frame);
    set_vlan_vid(frame, vid);
}

/// Sets the VLAN priority (3 bits) the OpenFlow 1.0 way: an untagged frame gets a tag of VLAN 0.
pub fn set_vlan_pcp_or_push(frame: &mut Vec<u8>, pcp: u8) {
    push_if_untagged(frame);
    set_vlan_pcp(frame, pcp);
}

fn push_if_untagged(frame: &mut Vec<u8>) {
    if Headers::locate(frame).is_some_and(|headers| headers.vlan.is_none()) {
        push_vlan(frame, ETH_VLAN);
    }
}

/// Pushes an outermost VLAN tag. Its id and priority are copied from the tag below, or zero without
/// a tag.
pub fn push_vlan(frame: &mut Vec<u8>, tpid: u16) {
    let Some(headers) = Headers::locate(frame) else { return };
    let tci = headers.vlan.and_then(|at| u16_at(frame, at + 2)).unwrap_or(0);
    let [t0, t1] = tpid.to_be_bytes();
    let [c0, c1] = tci.to_be_bytes();
    frame.splice(12..12, [t0, t1, c0, c1]);
}

/// Removes the outermost VLAN tag.
pub fn pop_vlan(frame: &mut Vec<u8>) {
    if Headers::locate(frame).is_some_and(|headers| headers.vlan.is_some()) {
        frame.drain(12..16);
    }
}

/// Sets the id (12 bits) of the outermost VLAN tag.
pub fn set_vlan_vid(frame: &mut [u8], vid: u16) {
    edit_tci(frame, |tci| tci & 0xf000 | vid & 0x0fff);
}

/// Sets the priority (3 bits) of the outermost VLAN tag.
pub fn set_vlan_pcp(frame: &mut [u8], pcp: u8) {
    edit_tci(frame, |tci| tci & 0x1fff | u16::from(pcp & 7) << 13);
}

fn edit_tci(frame: &mut [u8], edit: impl Fn(u16) -> u16) {
    let Some(at) = Headers::locate(frame).and_then(|headers| headers.vlan) else { return };
    if let Some(tci) = u16_at(frame, at + 2) {
        write(frame, at + 2, &edit(tci).to_be_bytes());
    }
}

/// Pushes an MPLS label stack entry behind the VLAN tags.
///
/// Label, traffic class and TTL are copied from the entry below. Without such an entry, the TTL is
/// the TTL of the IP header (64 without one), and the bottom-of-stack bit is set.
pub fn push_mpls(frame: &mut Vec<u8>, ether_type: u16) {
    let Some(headers) = Headers::locate(frame) else { return };
    let entry = match headers.mpls.and_then(|at| u32_at(frame, at)) {
        Some(covered) => covered & !0x100,
        None => 0x100 | u32::from(ttl(frame).unwrap_or(64)),
    };
    let at = headers.ether_type_at + 2;
    write(frame, headers.ether_type_at, &ether_type.to_be_bytes());
    frame.splice(at..at, entry.to_be_bytes());
}

/// Removes the outermost MPLS entry; the Ethernet type becomes `ether_type`.
pub fn pop_mpls(frame: &mut Vec<u8>, ether_type: u16) {
    let Some(headers) = Headers::locate(frame) else { return };
    let Some(at) = headers.mpls else { return };
    frame.drain(at..at + 4);
    write(frame, headers.ether_type_at, &ether_type.to_be_bytes());
}

/// Sets the label (20 bits) of the outermost MPLS entry.
pub fn set_mpls_label(frame: &mut [u8], label: u32) {
    edit_mpls(frame, |entry| entry & 0xfff | label << 12);
}

/// Sets the traffic class (3 bits) of the outermost MPLS entry.
pub fn set_mpls_tc(frame: &mut [u8], class: u8) {
    edit_mpls(frame, |entry| entry & !0xe00 | u32::from(class & 7) << 9);
}

/// Sets the bottom-of-stack bit of the outermost MPLS entry.
pub fn set_mpls_bos(frame: &mut [u8], bottom: bool) {
    edit_mpls(frame, |entry| entry & !0x100 | u32::from(bottom) << 8);
}

/// Sets the TTL of the outermost MPLS entry.
pub fn set_mpls_ttl(frame: &mut [u8], ttl: u8) {
    edit_mpls(frame, |entry| entry & !0xff | u32::from(ttl));
}

/// The TTL of the outermost MPLS entry.
pub fn mpls_ttl(frame: &[u8]) -> Option<u8> {
    let at = Headers::locate(frame)?.mpls?;
    frame.get(at + 3).copied()
}

/// Copies the TTL from the IP header or inner entry to the outermost MPLS entry.
pub fn copy_ttl_out(frame: &mut [u8]) {
    if let Some((outer, inner)) = ttl_places(frame)
        && let Some(&ttl) = frame.get(inner)
    {
        write(frame, outer, &[ttl]);
    }
}

/// Copies the TTL from the outermost MPLS entry to the inner entry or IP header.
pub fn copy_ttl_in(frame: &mut [u8]) {
    let Some((outer, inner)) = ttl_places(frame) else { return };
    let (Some(&ttl), Some(&old)) = (frame.get(outer), frame.get(inner)) else { return };
    let inner_is_ipv4 =
        is_bottom(frame, outer) && frame.get(outer + 1).is_some_and(|b| b >> 4 == 4);
    write(frame, inner, &[ttl]);
    if inner_is_ipv4 {
        checksum::update(frame, inner + 2, &[old, 0], &[ttl, 0]);
    }
}

/// The bytes that hold the outermost MPLS entry's TTL and the TTL right behind it.
fn ttl_places(frame: &[u8]) -> Option<(usize, usize)> {
    let outer = Headers::locate(frame)?.mpls? + 3;
    let next = outer + 1;
    let inner = if !is_bottom(frame, outer) {
        next + 3
    } else {
        match frame.get(next)? >> 4 {
            4 => next + 8,
            6 => next + 7,
            _ => return None,
        }
    };
    (inner < frame.len()).then_some((outer, inner))
}

fn is_bottom(frame: &[u8], ttl_at: usize) -> bool {
    frame.get(ttl_at.wrapping_sub(1)).is_some_and(|byte| byte & 1 == 1)
}

fn edit_mpls(frame: &mut [u8], edit: impl Fn(u32) -> u32) {
    let Some(at) = Headers::locate(frame).and_then(|headers| headers.mpls) else { return };
    if let Some(entry) = u32_at(frame, at) {
        write(frame, at, &edit(entry).to_be_bytes());
    }
}
