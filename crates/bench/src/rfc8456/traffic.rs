//! Makes the packets in the emulated network: probes with a tag between stations at the two traffic
//! ports. The module also recognizes discovery messages.

use emulate::frame::build::{Mac, Path};

/// The mark of a probe, at the start of its UDP payload; the tag follows.
const MARK: [u8; 8] = *b"weir8456";
/// The length of the Ethernet, IPv4 and UDP headers.
const MARK_AT: usize = 14 + 20 + 8;
const TAG_AT: usize = MARK_AT + MARK.len();

/// The shortest frame that holds a tag, and the longest, in bytes without the frame check sequence.
pub const FRAME_BYTES: std::ops::RangeInclusive<usize> = 64..=1518;

/// Two stations, by number: a station at the near traffic port and a station at the far traffic
/// port. No two stations of the same side have the same number, and each number is used on one side
/// only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Probe {
    pub(crate) near: u32,
    pub(crate) far: u32,
}

impl Probe {
    /// A packet from the near station to the far station.
    pub(crate) fn there(self, tag: u64, bytes: usize) -> Vec<u8> {
        packet(path(self.near, self.far), tag, bytes)
    }

    /// A packet from the far station to the near station.
    pub(crate) fn back(self, tag: u64, bytes: usize) -> Vec<u8> {
        packet(path(self.far, self.near), tag, bytes)
    }

    /// The Ethernet addresses: near, far.
    pub(crate) fn addresses(self) -> (Mac, Mac) {
        (mac(self.near), mac(self.far))
    }
}

/// The announcement of a station, from which the controller learns the station's port. The
/// announcement is an ARP request for the station's own address.
pub(crate) fn announcement(station: u32) -> Vec<u8> {
    path(station, station).arp_request()
}

fn path(from: u32, to: u32) -> Path {
    Path { eth_src: mac(from), eth_dst: mac(to), ip_src: ip(from), ip_dst: ip(to) }
}

/// The address is locally administered; 0x84 avoids the addresses of the emulated hosts.
fn mac(station: u32) -> Mac {
    let [a, b, c, d] = station.to_be_bytes();
    [2, 0x84, a, b, c, d]
}

/// An address in 10.0.0.0/8. Two stations whose numbers differ by 2²⁴ share an address.
fn ip(station: u32) -> u32 {
    0x0a00_0000 | (station & 0x00ff_ffff)
}

fn packet(path: Path, tag: u64, bytes: usize) -> Vec<u8> {
    let mut data = vec![0; bytes.saturating_sub(MARK_AT).max(16)];
    for (place, byte) in data.iter_mut().zip(MARK.into_iter().chain(tag.to_be_bytes())) {
        *place = byte;
    }
    path.udp(8456, 8456, &data)
}

/// The tag of a probe.
pub(crate) fn tag(packet: &[u8]) -> Option<u64> {
    if packet.get(MARK_AT..TAG_AT)? != MARK {
        return None;
    }
    packet.get(TAG_AT..)?.first_chunk::<8>().map(|tag| u64::from_be_bytes(*tag))
}

/// Whether a packet is a discovery message: LLDP, or the LLDP variant with a broadcast address,
/// which some controllers send because some switches do not forward LLDP.
pub(crate) fn is_discovery(packet: &[u8]) -> bool {
    const LLDP: [u8; 2] = [0x88, 0xcc];
    const BDDP: [u8; 2] = [0x89, 0x42];
    packet.get(12..14).is_some_and(|ether_type| ether_type == LLDP || ether_type == BDDP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probe_packets_of_each_length_carry_the_tag() {
        let probe = Probe { near: 7, far: 0x0102_0304 };
        for bytes in [*FRAME_BYTES.start(), 128, 512, *FRAME_BYTES.end()] {
            let there = probe.there(u64::MAX - 1, bytes);
            assert_eq!((there.len(), tag(&there)), (bytes, Some(u64::MAX - 1)));
            let back = probe.back(5, bytes);
            assert_eq!((&back[..6], &back[6..12]), (&there[6..12], &there[..6]));
        }
        let (near, far) = probe.addresses();
        assert_eq!((near, far), ([2, 0x84, 0, 0, 0, 7], [2, 0x84, 1, 2, 3, 4]));
    }

    #[test]
    fn announcements_have_no_tag_and_only_lldp_and_bddp_are_discovery() {
        let announcement = announcement(3);
        assert_eq!((tag(&announcement), is_discovery(&announcement)), (None, false));
        assert_eq!((tag(&[]), is_discovery(&[])), (None, false));
        for ether_type in [[0x88, 0xcc], [0x89, 0x42]] {
            assert!(is_discovery(&[&[0; 12][..], &ether_type].concat()));
        }
    }
}
