//! How much a switch has to tell of a packet that a tenant's rule sends to the controller, however little the tenant asked for.
//!
//! What may be done with a packet while the switch keeps it, and who may read it, its bytes say; on OpenFlow 1.0 nothing but these says
//! whose it is as well, and which rule has told of it. So the switch is asked for as many as may be needed. The tenant reads back
//! what it wrote. It is told as much as it asked for where the rule is known for certain, by its cookie on 1.3; else it is told
//! more, which does no harm.

use flowspace::field::ethertype;

/// All headers that can be matched of frames with IPv4 or ARP, however they are written: Ethernet's addresses and type; two VLAN tags,
/// of which one may be a link's; SNAP; IPv4 with all options that it can have, or ARP, which is shorter; and TCP, or
/// UDP or ICMP, which are shorter.
pub(crate) const HEADERS: u16 = 14 + 2 * 4 + 8 + 60 + 20;

/// A frame as long as there can be, which the switch may keep all the same (1.3 has the number as `OFPCML_MAX`).
const WHOLE: u16 = 0xffe5;

/// What to ask the switch for of packets of this Ethernet type (`None` if it is not the same for all), where a tenant asked for so much.
///
/// IPv6 has extension headers before those that are matched, as many as one likes, and a link probe is known by its last bytes.
pub(crate) fn length(max_len: u16, dl_type: Option<u128>) -> u16 {
    const SHORT: [u128; 3] =
        [ethertype::IP as u128, ethertype::ARP as u128, ethertype::RARP as u128];
    let is_short = dl_type.is_some_and(|it| SHORT.contains(&it));
    max_len.max(if is_short { HEADERS } else { WHOLE })
}
