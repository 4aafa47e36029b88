//! Physical addresses in the place of the tenant's own, where the network has them: put there at the edge, taken away at
//! the far edge.
//!
//! An action writes one address, so it has to be known which: packets are mapped by entries that name both, and bear then
//! a tag that says so. On their way they are passed on as they are. Who delivers them, and does not name both addresses,
//! is written once for each pair of hosts; everybody's matches are said of physical addresses by their prefixes.
//!
//! ```text
//!   nw_src=10.0.0.1,nw_dst=10.0.0.2            nw_dst=10.0.0.0/24         any
//!   ───────────────────────────────▶ tag, 172.16.5.1 ▶ 172.16.5.2 ──────▶ ────────────────▶ 10.0.0.1 ▶ 10.0.0.2
//!                  s1                                 s2                   s3, for each pair
//! ```
//! What knows no IPv4 addresses (ARP, IPv6), or bears a VLAN tag of the tenant's, or goes to or comes from others than
//! the network's hosts, is not mapped; its tags keep it apart as they do everywhere.

use super::{Unsaid, Writer};
use fabric::embedding::AddressMap;
use flowspace::{Field, Key, Match};
use openflow::v10::Action;

const IPV4: u128 = 0x0800;

/// The IPv4 addresses of packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Addresses {
    /// The tenant's, source and destination, where they are the same for all.
    own: [Option<u32>; 2],
    /// Whether they are known to be packets of IPv4.
    is_ip: bool,
    /// Whether physical ones stand in their place now.
    pub(super) mapped: bool,
}

impl Addresses {
    /// Those of a region; by `mapped` if they are physical there.
    pub(super) fn of_region(region: &Match, mapped: Option<&AddressMap>) -> Addresses {
        let is_ip = region.exact_value(Field::DlType) == Some(IPV4);
        let one = |field| region.exact_value(field).filter(|_| is_ip).map(|it| own(it, mapped));
        let own = [one(Field::NwSrc), one(Field::NwDst)];
        Addresses { own, is_ip, mapped: mapped.is_some() }
    }

    /// Those of a packet.
    pub(super) fn of_packet(key: &Key, mapped: Option<&AddressMap>) -> Addresses {
        let is_ip = key.get(Field::DlType) == IPV4;
        let one = |field| is_ip.then(|| own(key.get(field), mapped));
        let own = [one(Field::NwSrc), one(Field::NwDst)];
        Addresses { own, is_ip, mapped: mapped.is_some() }
    }
}

fn own(address: u128, mapped: Option<&AddressMap>) -> u32 {
    mapped.map_or(address as u32, |map| map.own(address as u32))
}

impl Writer<'_> {
    /// Whether the packets bear physical addresses now, or can be made to.
    pub(super) fn can_map(&self) -> bool {
        let Addresses { own, mapped, .. } = self.packets.addresses;
        let map = self.network.addresses.as_ref();
        mapped || matches!((map, own), (Some(map), [Some(from), Some(to)]) if map.maps(from, to))
    }

    /// Puts physical addresses in the place of the tenant's, where [`can_map`](Writer::can_map) says that it is possible.
    pub(super) fn map(&mut self) {
        let Addresses { own, mapped, .. } = self.packets.addresses;
        if let (Some(map), [Some(from), Some(to)], false) = (&self.network.addresses, own, mapped) {
            Action::SetNwSrc(map.physical(from)).write(self.out);
            Action::SetNwDst(map.physical(to)).write(self.out);
            self.packets.addresses.mapped = true;
        }
    }

    /// Gives the packets the tenant's addresses back.
    pub(super) fn restore(&mut self) -> Result<(), Unsaid> {
        let Addresses { own, mapped, .. } = self.packets.addresses;
        if mapped {
            let [Some(from), Some(to)] = own else { return Err(Unsaid::NeedsAddresses) };
            Action::SetNwSrc(from).write(self.out);
            Action::SetNwDst(to).write(self.out);
            self.packets.addresses.mapped = false;
        }
        Ok(())
    }

    /// Notes what an action of the tenant's makes of the addresses, which have to be the tenant's for that.
    pub(super) fn settle_addresses(&mut self, action: &Action<'_>) -> Result<(), Unsaid> {
        match *action {
            Action::SetNwSrc(address) => {
                self.restore()?;
                let addresses = &mut self.packets.addresses;
                addresses.own[0] = addresses.is_ip.then_some(address);
            }
            Action::SetNwDst(address) => {
                self.restore()?;
                let addresses = &mut self.packets.addresses;
                addresses.own[1] = addresses.is_ip.then_some(address);
            }
            // Whatever that does.
            Action::Vendor { .. } => {
                self.restore()?;
                self.packets.addresses = Addresses::default();
            }
            _ => {}
        }
        Ok(())
    }
}

/// Which packets with physical addresses a tenant's match means; `None` if there are none.
pub(super) fn physical(match_: &Match, map: &AddressMap) -> Option<Match> {
    let (first, mask) = map.block();
    let mut match_ = match_.intersect(&Match::exact(Field::DlType, IPV4))?;
    for field in [Field::NwSrc, Field::NwDst] {
        if match_.is_wild(field) {
            continue;
        }
        let block = Match::exact(Field::DlType, IPV4).with_masked(field, first.into(), mask.into());
        let (address, prefix) = match_.intersect(&block)?.get(field);
        let address = map.physical(address as u32);
        match_ = match_.without(field).with_masked(field, address.into(), prefix);
    }
    Some(match_)
}

/// A region of packets with physical addresses by the pairs of hosts between which they are.
pub(super) fn pairs<'a>(
    region: &'a Match,
    map: &'a AddressMap,
) -> impl Iterator<Item = Match> + 'a {
    map.pairs().filter_map(move |(from, to)| {
        let pair = Match::exact(Field::DlType, IPV4)
            .with(Field::NwSrc, map.physical(from).into())
            .with(Field::NwDst, map.physical(to).into());
        region.intersect(&pair)
    })
}

/// Bytes of a frame before its packet, and where in that of IPv4 is what (RFC 791 section 3.1).
const ETHERNET: usize = 14;
const FRAGMENT: usize = 6;
const PROTOCOL: usize = 9;
const CHECKSUM: usize = 10;
const SOURCE: usize = 12;
const DESTINATION: usize = 16;
/// Where TCP and UDP have their checksums, in which the addresses are (RFC 9293 section 3.1, RFC 768).
const TCP: (u8, usize) = (6, 16);
const UDP: (u8, usize) = (17, 6);

/// Gives an untagged frame, or as much of it as there is, the tenant's addresses back.
pub(super) fn restore(frame: &mut [u8], map: &AddressMap) {
    if frame.get(12..ETHERNET) != Some(&[0x08, 0x00]) {
        return;
    }
    let Some(packet) = frame.get_mut(ETHERNET..) else { return };
    for at in [SOURCE, DESTINATION] {
        let Some(address) = packet.get(at..).and_then(|it| it.first_chunk::<4>()).copied() else {
            return;
        };
        let own = map.own(u32::from_be_bytes(address)).to_be_bytes();
        let header = usize::from(packet[0] & 0x0f) * 4;
        let is_first = u16::from_be_bytes([packet[FRAGMENT], packet[FRAGMENT + 1]]) & 0x1fff == 0;
        adjust(packet, CHECKSUM, address, own);
        match packet[PROTOCOL] {
            protocol if protocol == TCP.0 && is_first => {
                adjust(packet, header + TCP.1, address, own);
            }
            protocol if protocol == UDP.0 && is_first => {
                let at = header + UDP.1;
                // None was computed (RFC 768).
                if packet.get(at..at + 2).is_some_and(|sum| sum != [0, 0]) {
                    adjust(packet, at, address, own);
                    if packet.get(at..at + 2) == Some(&[0, 0]) {
                        packet[at..at + 2].fill(0xff);
                    }
                }
            }
            _ => {}
        }
        packet[at..at + 4].copy_from_slice(&own);
    }
}

/// A checksum, if it is there, for an address in another's place (RFC 1624, equation 3).
fn adjust(packet: &mut [u8], at: usize, before: [u8; 4], after: [u8; 4]) {
    let Some(field) = packet.get_mut(at..at + 2) else { return };
    let words =
        |[a, b, c, d]: [u8; 4]| [[a, b], [c, d]].map(|it| u32::from(u16::from_be_bytes(it)));
    let mut sum = u32::from(!u16::from_be_bytes([field[0], field[1]]));
    for (old, new) in words(before).into_iter().zip(words(after)) {
        sum += (!old & 0xffff) + new;
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    field.copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;
    use emulate::frame::build::Path;

    fn path(block: u32) -> Path {
        let (eth_src, eth_dst) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        Path { eth_src, eth_dst, ip_src: block | 1, ip_dst: block | 2 }
    }

    fn map() -> AddressMap {
        let hosts = [1, 2].map(|last| Ipv4Addr::new(10, 0, 0, last));
        let (own, physical) = ("10.0.0.0/24".parse().unwrap(), "172.16.255.0/24".parse().unwrap());
        AddressMap::new(own, physical, hosts).unwrap()
    }

    #[test]
    fn what_a_controller_is_told_is_the_frame_that_was_sent() {
        let (own, physical) = (path(0x0a00_0000), path(0xac10_ff00));
        let map = map();
        for data in [&b""[..], b"a", b"ab", &[0xff; 60], &[0; 33]] {
            let frames = |path: &Path| [path.udp(1000, 2000, data), path.tcp(1000, 2000, data)];
            let sums = [UDP, TCP].map(|(_, at)| ETHERNET + 20 + at);
            for ((sent, whole), sum) in frames(&own).iter().zip(frames(&physical)).zip(sums) {
                // Of half a checksum nothing can be made.
                for kept in (0..=whole.len()).filter(|kept| *kept != sum + 1) {
                    let mut frame = whole[..kept].to_vec();
                    restore(&mut frame, &map);
                    // Up to where the addresses are, nothing can be told from it.
                    if kept >= ETHERNET + DESTINATION + 4 {
                        assert_eq!(frame, sent[..kept], "{kept} of {}", whole.len());
                    }
                }
            }
        }
    }

    #[test]
    fn sums_that_are_not_there_are_not_corrected() {
        let map = map();
        let (sent, mut frame) =
            (path(0x0a00_0000).udp(1, 2, b"x"), path(0xac10_ff00).udp(1, 2, b"x"));
        frame[40..42].fill(0);
        restore(&mut frame, &map);
        assert_eq!(
            (&frame[..40], &frame[40..42], &frame[42..]),
            (&sent[..40], &[0, 0][..], &sent[42..])
        );
        // A later fragment: what stands there is data.
        let mut frame = path(0xac10_ff00).udp(1, 2, b"x");
        frame[ETHERNET + FRAGMENT + 1] = 9;
        let before = frame[34..].to_vec();
        restore(&mut frame, &map);
        assert_eq!(frame[34..], before);
        // And what is no IPv4 stays as it is.
        let arp = path(0xac10_ff00).arp_request();
        let mut frame = arp.clone();
        restore(&mut frame, &map);
        assert_eq!(frame, arp);
    }
}
