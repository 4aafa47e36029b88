//! How many bytes of a packet a switch has to send to the controller, however few the tenant asked for.
//!
//! To authorize what a tenant does with a packet that the switch keeps, and to know who may read it, Weir needs the packet's
//! headers. On OpenFlow 1.0 only the headers say whose the packet is and which entry sent it. So Weir asks for all headers that
//! can be matched. A tenant that reads an entry back reads what it wrote. In a PACKET_IN it gets as many bytes as it asked
//! for where the entry is known for certain, by its cookie on 1.3; elsewhere it gets more, which does no harm.

use flowspace::field::ethertype;

/// All headers that can be matched of frames with IPv4 or ARP, at their longest: Ethernet addresses and type; two VLAN tags, of
/// which one may be a link's label; SNAP; IPv4 with all options, or ARP, which is shorter; and TCP, or UDP or ICMP, which are
/// shorter.
pub const HEADERS: u16 = 14 + 2 * 4 + 8 + 60 + 20;

/// The longest frame, which the switch may keep all the same (1.3 has the number as `OFPCML_MAX`).
const WHOLE: u16 = 0xffe5;

/// How many bytes to ask the switch for, for packets of this Ethernet type (`None` if they differ), where a tenant asked for
/// `max_len`.
///
/// IPv6 has extension headers before those that are matched, as many as one likes, and a link probe is known by its last bytes.
pub fn length(max_len: u16, dl_type: Option<u128>) -> u16 {
    const SHORT: [u128; 3] =
        [ethertype::IP as u128, ethertype::ARP as u128, ethertype::RARP as u128];
    let is_short = dl_type.is_some_and(|it| SHORT.contains(&it));
    max_len.max(if is_short { HEADERS } else { WHOLE })
}
