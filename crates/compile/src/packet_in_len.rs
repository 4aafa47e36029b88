//! PACKET_IN length: how many bytes of a packet a switch has to send to the controller, whatever `max_len` the tenant
//! set.
//!
//! Weir needs the headers of a buffered packet to authorize the tenant's use of the packet, and to know who may read
//! the packet. On OpenFlow 1.0 only the headers identify the owner of the packet and the entry that sent the packet. So
//! Weir asks for all headers that can be matched. A tenant that reads an entry back gets the `max_len` that the tenant
//! wrote. On 1.3 the cookie identifies the entry of a PACKET_IN, and the tenant gets as many bytes as the entry asks
//! for. On 1.0 the tenant may get more bytes, which does no harm.

use flowspace::field::ethertype;

/// The largest length of all headers that can be matched in frames with IPv4 or ARP: Ethernet addresses and type; two
/// VLAN tags, of which one may be a link's label; SNAP; IPv4 with all options (ARP is shorter); and TCP (UDP and ICMP
/// are shorter).
pub const HEADERS: u16 = 14 + 2 * 4 + 8 + 60 + 20;

/// The longest frame that the switch may still buffer (`OFPCML_MAX` of 1.3).
const WHOLE: u16 = 0xffe5;

/// The length to ask the switch for, if a tenant asked for `max_len`. `dl_type`: the Ethernet type of the packets,
/// `None` if the types differ.
///
/// IPv6 frames and link probes need the whole frame: IPv6 may have any number of extension headers before the matched
/// headers, and the last bytes of a link probe identify the probe.
pub fn length(max_len: u16, dl_type: Option<u128>) -> u16 {
    const SHORT: [u128; 3] =
        [ethertype::IP as u128, ethertype::ARP as u128, ethertype::RARP as u128];
    let is_short = dl_type.is_some_and(|it| SHORT.contains(&it));
    max_len.max(if is_short { HEADERS } else { WHOLE })
}
