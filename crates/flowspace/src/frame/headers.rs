//! The places of the headers in a frame.

use super::bytes::u16_at;

/// EtherType of 802.1Q customer tags.
pub const ETH_VLAN: u16 = 0x8100;
/// EtherType of 802.1ad service tags.
pub const ETH_QINQ: u16 = 0x88a8;
/// EtherType of IPv4.
pub const ETH_IPV4: u16 = 0x0800;
/// EtherType of IPv6.
pub const ETH_IPV6: u16 = 0x86dd;
/// EtherType of ARP.
pub const ETH_ARP: u16 = 0x0806;
/// EtherType of MPLS unicast.
pub const ETH_MPLS: u16 = 0x8847;
/// EtherType of MPLS multicast.
pub const ETH_MPLS_MULTICAST: u16 = 0x8848;

/// The number of VLAN tags that are skipped.
const MAX_VLAN_TAGS: usize = 2;

pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const ICMP: u8 = 1;
pub(super) const ICMPV6: u8 = 58;
pub(super) const SCTP: u8 = 132;

/// Where the headers of a frame begin, in bytes from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// The outermost VLAN tag's TPID (always 12), if the frame is tagged.
    pub vlan: Option<usize>,
    /// The EtherType field that names what follows the Ethernet header and its tags.
    pub ether_type_at: usize,
    /// That EtherType.
    pub ether_type: u16,
    /// The outermost MPLS label stack entry.
    pub mpls: Option<usize>,
    /// The network header: IPv4, IPv6 or ARP.
    pub network: Option<Network>,
    /// The transport header with its protocol number; absent in later fragments.
    pub transport: Option<(u8, usize)>,
}

/// A network header and where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// IPv4 header.
    Ipv4(usize),
    /// IPv6 header.
    Ipv6(usize),
    /// ARP for IPv4 over Ethernet.
    Arp(usize),
}

impl Headers {
    /// Walks the frame's headers. `None` if it is shorter than an Ethernet header.
    ///
    /// At most two VLAN tags are skipped, as in [`Key::extract`](crate::Key::extract) (and in Open vSwitch with
    /// `vlan-limit=2`): behind a third tag, and behind MPLS, there is no network header to edit.
    pub fn locate(frame: &[u8]) -> Option<Headers> {
        let mut ether_type_at = 12;
        let mut ether_type = u16_at(frame, ether_type_at)?;
        let mut vlan = None;
        for _ in 0..MAX_VLAN_TAGS {
            if !is_vlan(ether_type) {
                break;
            }
            let Some(inner) = u16_at(frame, ether_type_at + 4) else { break };
            vlan = vlan.or(Some(ether_type_at));
            ether_type_at += 4;
            ether_type = inner;
        }
        let payload = ether_type_at + 2;
        let mut headers =
            Headers { vlan, ether_type_at, ether_type, mpls: None, network: None, transport: None };
        match ether_type {
            ETH_MPLS | ETH_MPLS_MULTICAST if frame.len() >= payload + 4 => {
                headers.mpls = Some(payload);
            }
            ETH_IPV4 => headers.locate_ipv4(frame, payload),
            ETH_IPV6 => headers.locate_ipv6(frame, payload),
            ETH_ARP if frame.len() >= payload + 28 => headers.network = Some(Network::Arp(payload)),
            _ => {}
        }
        Some(headers)
    }

    fn locate_ipv4(&mut self, frame: &[u8], at: usize) {
        let Some(header) = frame.get(at..at + 20) else { return };
        let length = usize::from(header[0] & 0x0f) * 4;
        if header[0] >> 4 != 4 || length < 20 || frame.len() < at + length {
            return;
        }
        self.network = Some(Network::Ipv4(at));
        let fragment_offset = u16::from_be_bytes([header[6], header[7]]) & 0x1fff;
        if fragment_offset == 0 {
            self.set_transport(frame, header[9], at + length);
        }
    }

    fn locate_ipv6(&mut self, frame: &[u8], at: usize) {
        let Some(header) = frame.get(at..at + 40) else { return };
        if header[0] >> 4 != 6 {
            return;
        }
        self.network = Some(Network::Ipv6(at));
        let (mut protocol, mut next) = (header[6], at + 40);
        // Hop-by-hop, routing, destination options and authentication headers contain their length; a fragment header
        // has a fixed length. The frame's length bounds the loop, because each step moves forward.
        while let Some(extension) = frame.get(next..next + 8) {
            match protocol {
                0 | 43 | 60 => next += (usize::from(extension[1]) + 1) * 8,
                51 => next += (usize::from(extension[1]) + 2) * 4,
                44 => {
                    if u16::from_be_bytes([extension[2], extension[3]]) & 0xfff8 != 0 {
                        return;
                    }
                    next += 8;
                }
                _ => break,
            }
            protocol = extension[0];
        }
        self.set_transport(frame, protocol, next);
    }

    fn set_transport(&mut self, frame: &[u8], protocol: u8, at: usize) {
        let needed = match protocol {
            TCP => 20,
            UDP => 8,
            SCTP => 12,
            ICMP | ICMPV6 => 4,
            _ => return,
        };
        if frame.len() >= at + needed {
            self.transport = Some((protocol, at));
        }
    }
}

/// Whether an EtherType begins a VLAN tag.
pub fn is_vlan(ether_type: u16) -> bool {
    matches!(ether_type, ETH_VLAN | ETH_QINQ)
}
