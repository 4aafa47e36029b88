//! Setting Ethernet, network and transport fields.

use super::bytes::{u16_at, u32_at, write};
pub use super::checksum::internet as internet_checksum;
use super::checksum::{crc32c, update, update_udp};
use super::headers::*;

/// Sets the Ethernet destination.
pub fn set_eth_dst(frame: &mut [u8], address: [u8; 6]) {
    write(frame, 0, &address);
}

/// Sets the Ethernet source.
pub fn set_eth_src(frame: &mut [u8], address: [u8; 6]) {
    write(frame, 6, &address);
}

/// Sets the EtherType of what follows the Ethernet header and its tag.
pub fn set_ether_type(frame: &mut [u8], ether_type: u16) {
    if let Some(headers) = Headers::locate(frame) {
        write(frame, headers.ether_type_at, &ether_type.to_be_bytes());
    }
}

/// Sets the IPv4 source address.
pub fn set_ipv4_src(frame: &mut [u8], address: u32) {
    set_ipv4_address(frame, 12, address);
}

/// Sets the IPv4 destination address.
pub fn set_ipv4_dst(frame: &mut [u8], address: u32) {
    set_ipv4_address(frame, 16, address);
}

fn set_ipv4_address(frame: &mut [u8], offset: usize, address: u32) {
    let Some(headers) = Headers::locate(frame) else { return };
    let Some(Network::Ipv4(at)) = headers.network else { return };
    let Some(old) = u32_at(frame, at + offset) else { return };
    let (old, new) = (old.to_be_bytes(), address.to_be_bytes());
    write(frame, at + offset, &new);
    update(frame, at + 10, &old, &new);
    update_pseudo_header(frame, &headers, &old, &new);
}

/// Sets the IPv6 source address.
pub fn set_ipv6_src(frame: &mut [u8], address: u128) {
    set_ipv6_address(frame, 8, address);
}

/// Sets the IPv6 destination address.
pub fn set_ipv6_dst(frame: &mut [u8], address: u128) {
    set_ipv6_address(frame, 24, address);
}

fn set_ipv6_address(frame: &mut [u8], offset: usize, address: u128) {
    let Some(headers) = Headers::locate(frame) else { return };
    let Some(Network::Ipv6(at)) = headers.network else { return };
    let Some(Ok(old)) = frame.get(at + offset..at + offset + 16).map(<[u8; 16]>::try_from) else {
        return;
    };
    let new = address.to_be_bytes();
    write(frame, at + offset, &new);
    update_pseudo_header(frame, &headers, &old, &new);
}

/// Corrects the transport checksum for a changed address of its pseudo-header.
fn update_pseudo_header(frame: &mut [u8], headers: &Headers, old: &[u8], new: &[u8]) {
    match headers.transport {
        Some((TCP, at)) => update(frame, at + 16, old, new),
        Some((UDP, at)) => update_udp(frame, at + 6, old, new),
        Some((ICMPV6, at)) => update(frame, at + 2, old, new),
        _ => {}
    }
}

/// Sets the differentiated services code point (6 bits) of IPv4 or IPv6.
pub fn set_dscp(frame: &mut [u8], dscp: u8) {
    edit_traffic_class(frame, |class| class & 0x03 | dscp << 2);
}

/// Sets the explicit congestion notification (2 bits) of IPv4 or IPv6.
pub fn set_ecn(frame: &mut [u8], ecn: u8) {
    edit_traffic_class(frame, |class| class & 0xfc | ecn & 0x03);
}

fn edit_traffic_class(frame: &mut [u8], edit: impl Fn(u8) -> u8) {
    match Headers::locate(frame).and_then(|headers| headers.network) {
        Some(Network::Ipv4(at)) => edit_ipv4_word(frame, at, 0, |word| {
            let [version, class] = word.to_be_bytes();
            u16::from_be_bytes([version, edit(class)])
        }),
        Some(Network::Ipv6(at)) => {
            if let Some(word) = u32_at(frame, at) {
                let class = edit((word >> 20) as u8);
                let word = word & 0xf00f_ffff | u32::from(class) << 20;
                write(frame, at, &word.to_be_bytes());
            }
        }
        _ => {}
    }
}

/// Sets the IPv6 flow label (20 bits).
pub fn set_ipv6_flow_label(frame: &mut [u8], label: u32) {
    if let Some(Network::Ipv6(at)) = Headers::locate(frame).and_then(|headers| headers.network)
        && let Some(word) = u32_at(frame, at)
    {
        write(frame, at, &(word & 0xfff0_0000 | label & 0x000f_ffff).to_be_bytes());
    }
}

/// The TTL (IPv4) or hop limit (IPv6).
pub fn ttl(frame: &[u8]) -> Option<u8> {
    match Headers::locate(frame)?.network? {
        Network::Ipv4(at) => frame.get(at + 8).copied(),
        Network::Ipv6(at) => frame.get(at + 7).copied(),
        Network::Arp(_) => None,
    }
}

/// Sets the TTL (IPv4) or hop limit (IPv6).
pub fn set_ttl(frame: &mut [u8], ttl: u8) {
    match Headers::locate(frame).and_then(|headers| headers.network) {
        Some(Network::Ipv4(at)) => {
            edit_ipv4_word(frame, at, 8, |word| word & 0x00ff | u16::from(ttl) << 8);
        }
        Some(Network::Ipv6(at)) => write(frame, at + 7, &[ttl]),
        _ => {}
    }
}

/// Whether the frame is a fragment of an IPv4 packet, the first or a later one.
pub fn is_fragment(frame: &[u8]) -> bool {
    /// "More fragments" and the offset.
    const FRAGMENT: u16 = 0x3fff;
    match Headers::locate(frame).and_then(|headers| headers.network) {
        Some(Network::Ipv4(at)) => u16_at(frame, at + 6).is_some_and(|word| word & FRAGMENT != 0),
        _ => false,
    }
}

/// Sets the IP protocol number of IPv4 (the header of the transport is left as it is).
pub fn set_ip_proto(frame: &mut [u8], protocol: u8) {
    if let Some(Network::Ipv4(at)) = Headers::locate(frame).and_then(|headers| headers.network) {
        edit_ipv4_word(frame, at, 8, |word| word & 0xff00 | u16::from(protocol));
    }
}

fn edit_ipv4_word(frame: &mut [u8], at: usize, offset: usize, edit: impl Fn(u16) -> u16) {
    let Some(old) = u16_at(frame, at + offset) else { return };
    let new = edit(old);
    write(frame, at + offset, &new.to_be_bytes());
    update(frame, at + 10, &old.to_be_bytes(), &new.to_be_bytes());
}

/// Sets the source port of TCP, UDP or SCTP.
pub fn set_tp_src(frame: &mut [u8], port: u16) {
    set_port(frame, 0, port);
}

/// Sets the destination port of TCP, UDP or SCTP.
pub fn set_tp_dst(frame: &mut [u8], port: u16) {
    set_port(frame, 2, port);
}

fn set_port(frame: &mut [u8], offset: usize, port: u16) {
    let Some(headers) = Headers::locate(frame) else { return };
    let Some((protocol @ (TCP | UDP | SCTP), at)) = headers.transport else { return };
    let Some(old) = u16_at(frame, at + offset) else { return };
    let (old, new) = (old.to_be_bytes(), port.to_be_bytes());
    write(frame, at + offset, &new);
    match protocol {
        TCP => update(frame, at + 16, &old, &new),
        UDP => update_udp(frame, at + 6, &old, &new),
        _ => rewrite_sctp_checksum(frame, &headers, at),
    }
}

/// The CRC covers the SCTP packet alone, without the frame's padding.
fn rewrite_sctp_checksum(frame: &mut [u8], headers: &Headers, at: usize) {
    let end = match headers.network {
        Some(Network::Ipv4(ip)) => u16_at(frame, ip + 2).map(|length| ip + usize::from(length)),
        Some(Network::Ipv6(ip)) => {
            u16_at(frame, ip + 4).map(|length| ip + 40 + usize::from(length))
        }
        _ => None,
    };
    let end = end.unwrap_or(frame.len()).min(frame.len());
    write(frame, at + 8, &[0; 4]);
    if let Some(packet) = frame.get(at..end) {
        let crc = crc32c(packet);
        write(frame, at + 8, &crc.to_le_bytes());
    }
}

/// Sets the type of ICMP or ICMPv6.
pub fn set_icmp_type(frame: &mut [u8], kind: u8) {
    edit_icmp(frame, |word| word & 0x00ff | u16::from(kind) << 8);
}

/// Sets the code of ICMP or ICMPv6.
pub fn set_icmp_code(frame: &mut [u8], code: u8) {
    edit_icmp(frame, |word| word & 0xff00 | u16::from(code));
}

fn edit_icmp(frame: &mut [u8], edit: impl Fn(u16) -> u16) {
    let Some(headers) = Headers::locate(frame) else { return };
    let Some((ICMP | ICMPV6, at)) = headers.transport else { return };
    let Some(old) = u16_at(frame, at) else { return };
    let new = edit(old);
    write(frame, at, &new.to_be_bytes());
    update(frame, at + 2, &old.to_be_bytes(), &new.to_be_bytes());
}

/// Sets the target address of an IPv6 neighbour solicitation or advertisement.
pub fn set_nd_target(frame: &mut [u8], address: u128) {
    let Some(at) = neighbour_discovery(frame) else { return };
    replace_in_icmpv6(frame, at, at + 8, &address.to_be_bytes());
}

/// Sets the source link-layer address option of a neighbour solicitation.
pub fn set_nd_sll(frame: &mut [u8], address: [u8; 6]) {
    set_nd_option(frame, 1, address);
}

/// Sets the target link-layer address option of a neighbour advertisement.
pub fn set_nd_tll(frame: &mut [u8], address: [u8; 6]) {
    set_nd_option(frame, 2, address);
}

fn set_nd_option(frame: &mut [u8], kind: u8, address: [u8; 6]) {
    let Some(at) = neighbour_discovery(frame) else { return };
    let mut option = at + 24;
    while let Some(&[found, units]) = frame.get(option..option + 2) {
        if found == kind && units == 1 {
            return replace_in_icmpv6(frame, at, option + 2, &address);
        }
        if units == 0 {
            return;
        }
        option += usize::from(units) * 8;
    }
}

/// Where the ICMPv6 header of a neighbour solicitation or advertisement begins.
fn neighbour_discovery(frame: &[u8]) -> Option<usize> {
    let (ICMPV6, at) = Headers::locate(frame)?.transport? else { return None };
    let is_neighbour = matches!(frame.get(at)?, 135 | 136) && frame.len() >= at + 24;
    is_neighbour.then_some(at)
}

fn replace_in_icmpv6(frame: &mut [u8], icmp: usize, at: usize, new: &[u8]) {
    let Some(old) = frame.get(at..at + new.len()).map(<[u8]>::to_vec) else { return };
    write(frame, at, new);
    update(frame, icmp + 2, &old, new);
}

/// Sets the ARP operation.
pub fn set_arp_op(frame: &mut [u8], operation: u16) {
    write_arp(frame, 6, &operation.to_be_bytes());
}

/// Sets the ARP sender's hardware address.
pub fn set_arp_sha(frame: &mut [u8], address: [u8; 6]) {
    write_arp(frame, 8, &address);
}

/// Sets the ARP sender's protocol address.
pub fn set_arp_spa(frame: &mut [u8], address: u32) {
    write_arp(frame, 14, &address.to_be_bytes());
}

/// Sets the ARP target's hardware address.
pub fn set_arp_tha(frame: &mut [u8], address: [u8; 6]) {
    write_arp(frame, 18, &address);
}

/// Sets the ARP target's protocol address.
pub fn set_arp_tpa(frame: &mut [u8], address: u32) {
    write_arp(frame, 24, &address.to_be_bytes());
}

fn write_arp(frame: &mut [u8], offset: usize, bytes: &[u8]) {
    if let Some(Network::Arp(at)) = Headers::locate(frame).and_then(|headers| headers.network) {
        write(frame, at + offset, bytes);
    }
}
