//! Physical addresses in the place of the tenant's own, where the network has them: put there at the edge, taken away at
//! the far edge.
//!
//! An action writes one address, so it has to be known which: a packet's source is mapped by an entry that names it, and
//! so is its destination, each by itself. The packet bears then a tag that says which of the two are physical. What is not
//! may be anybody's address, also one that looks like a physical one. On their way packets are passed on as they are, and
//! an entry that names the other address maps that too. Who delivers them, and does not name what is mapped, is written
//! once for each host; everybody's matches are said of physical addresses by their prefixes.
//!
//! ```text
//!      nw_dst=10.0.0.2        nw_src=10.0.0.1      nw_dst=10.0.0.0/24     any: one for each two hosts
//!   ──▶ s1 ──────────────────▶ s2 ────────────────▶ s3 ──────────────────▶ s4 ──▶
//!          src 10.0.0.1          src 172.16.5.1       src 172.16.5.1          src 10.0.0.1
//!          dst 172.16.5.2        dst 172.16.5.2       dst 172.16.5.2          dst 10.0.0.2
//! ```
//! Inside a big switch nobody's entries decide where packets come out of a tunnel: there the hypervisor's own restore them.
//!
//! What knows no IPv4 addresses (ARP, IPv6), or bears a VLAN tag of the tenant's, is not mapped, and nobody's address but a
//! host's is; the tags for those keep it apart as they do everywhere.

use super::{Need, Unsaid, Writer};
use crate::network::Network;
use alloc::vec::Vec;
use fabric::embedding::{AddressMap, Frames, Mapped, Side};
use flowspace::{Field, Key, Match};
use openflow::v10::Action;

const IPV4: u128 = 0x0800;

/// The IPv4 addresses of packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Addresses {
    source: Address,
    destination: Address,
    /// Whether they are known to be packets of IPv4.
    is_ip: bool,
}

/// One of the two.
#[derive(Clone, Copy, Debug, Default)]
struct Address {
    /// The tenant's, where it is the same for all packets.
    own: Option<u32>,
    /// Whether a physical one stands in its place now.
    is_mapped: bool,
}

impl Addresses {
    /// Those of a region, and which are physical there.
    pub(super) fn of_region(region: &Match, mapped: Option<(&AddressMap, Mapped)>) -> Addresses {
        let is_ip = region.exact_value(Field::DlType) == Some(IPV4);
        Addresses::new(is_ip, mapped, |field| region.exact_value(field))
    }

    /// Those of a packet.
    pub(super) fn of_packet(key: &Key, mapped: Option<(&AddressMap, Mapped)>) -> Addresses {
        let is_ip = key.get(Field::DlType) == IPV4;
        Addresses::new(is_ip, mapped, |field| Some(key.get(field)))
    }

    fn new(
        is_ip: bool,
        mapped: Option<(&AddressMap, Mapped)>,
        borne: impl Fn(Field) -> Option<u128>,
    ) -> Addresses {
        let one = |side| {
            let borne = borne(field_of(side)).filter(|_| is_ip).map(|it| it as u32);
            let by = mapped.filter(|(_, mapped)| mapped.has(side));
            let own = borne.map(|it| by.map_or(it, |(map, _)| map.own(it)));
            Address { own, is_mapped: by.is_some() }
        };
        Addresses { source: one(Side::Source), destination: one(Side::Destination), is_ip }
    }

    /// Which are physical now.
    pub(super) fn mapped(&self) -> Option<Mapped> {
        Mapped::new(self.source.is_mapped, self.destination.is_mapped)
    }

    /// Which frames they are those of, where these are untagged.
    pub(super) fn frames(&self) -> Frames {
        self.mapped().map_or(Frames::Untagged, Frames::Mapped)
    }

    /// Which are physical, or can be made so.
    pub(super) fn can_be(&self, network: &Network) -> Option<Mapped> {
        let map = network.addresses.as_ref()?;
        let [source, destination] = [self.source, self.destination]
            .map(|it| it.is_mapped || it.own.is_some_and(|own| map.maps(own)));
        Mapped::new(source, destination)
    }

    /// The same where one is known to be this.
    pub(super) fn with(mut self, side: Side, own: u32) -> Addresses {
        self.of_mut(side).own = Some(own);
        self
    }

    /// Notes what an action of the tenant's makes of them: what it writes is the tenant's, whatever was there.
    pub(super) fn settle(&mut self, action: &Action<'_>) {
        let (side, address) = match *action {
            Action::SetNwSrc(address) => (Side::Source, address),
            Action::SetNwDst(address) => (Side::Destination, address),
            _ => return,
        };
        let own = self.is_ip.then_some(address);
        *self.of_mut(side) = Address { own, is_mapped: false };
    }

    fn of_mut(&mut self, side: Side) -> &mut Address {
        match side {
            Side::Source => &mut self.source,
            Side::Destination => &mut self.destination,
        }
    }
}

fn field_of(side: Side) -> Field {
    match side {
        Side::Source => Field::NwSrc,
        Side::Destination => Field::NwDst,
    }
}

/// What writes an address.
fn set(side: Side, address: u32) -> Action<'static> {
    match side {
        Side::Source => Action::SetNwSrc(address),
        Side::Destination => Action::SetNwDst(address),
    }
}

impl Writer<'_> {
    /// Puts physical addresses in the place of those of the tenant's that are known to be hosts'.
    pub(super) fn map(&mut self) {
        let Some(map) = &self.network.addresses else { return };
        for side in Side::ALL {
            let address = self.packets.addresses.of_mut(side);
            if let (Some(own), false) =
                (address.own.filter(|own| map.maps(*own)), address.is_mapped)
            {
                address.is_mapped = true;
                set(side, map.physical(own)).write(self.out);
            }
        }
    }

    /// Gives the packets the tenant's addresses back.
    pub(super) fn restore(&mut self) -> Result<(), Unsaid> {
        for side in Side::ALL {
            let address = self.packets.addresses.of_mut(side);
            if address.is_mapped {
                let own = address.own.ok_or(Unsaid::Needs(Need::Address(side)))?;
                address.is_mapped = false;
                set(side, own).write(self.out);
            }
        }
        Ok(())
    }
}

/// Which packets with these physical addresses a tenant's match means; `None` if there are none.
pub(super) fn physical(match_: &Match, map: &AddressMap, mapped: Mapped) -> Option<Match> {
    let mut match_ = match_.intersect(&Match::exact(Field::DlType, IPV4))?;
    for side in Side::ALL.into_iter().filter(|side| mapped.has(*side)) {
        let field = field_of(side);
        let (address, mask) = match_.get(field);
        let is_meant = |host: u32| u128::from(host) & mask == address;
        if !map.hosts().any(is_meant) {
            return None;
        }
        if mask == 0 {
            continue;
        }
        // A prefix that is shorter than the block's means the whole block, since a host is in both.
        let (_, block) = map.block();
        let address = map.physical(address as u32);
        match_ = match_.without(field).with_masked(field, address.into(), mask | u128::from(block));
    }
    Some(match_)
}

/// Packets that bear the physical address of a host.
pub(super) fn physical_host(map: &AddressMap, side: Side, host: u32) -> Match {
    Match::exact(Field::DlType, IPV4).with(field_of(side), map.physical(host).into())
}

/// For packets that bear physical addresses, these, by what they bear: the actions that give them the tenant's back.
pub(in crate::v10) fn restorations(
    map: &AddressMap,
    mapped: Mapped,
) -> impl Iterator<Item = (Match, Vec<Action<'static>>)> + '_ {
    map.borne(mapped).map(|own| {
        let known = Side::ALL.into_iter().zip(own);
        let known = known.filter_map(|(side, own)| Some((side, own?)));
        let borne = known.clone().fold(Match::exact(Field::DlType, IPV4), |match_, (side, own)| {
            match_.with(field_of(side), map.physical(own).into())
        });
        (borne, known.map(|(side, own)| set(side, own)).collect())
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
pub(super) fn restore(frame: &mut [u8], map: &AddressMap, mapped: Mapped) {
    if frame.get(12..ETHERNET) != Some(&[0x08, 0x00]) {
        return;
    }
    let Some(packet) = frame.get_mut(ETHERNET..) else { return };
    for side in Side::ALL.into_iter().filter(|side| mapped.has(*side)) {
        let at = match side {
            Side::Source => SOURCE,
            Side::Destination => DESTINATION,
        };
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
        let datas = [&b""[..], b"a", b"ab", &[0xff; 60], &[0; 33]];
        for (data, mapped) in datas.into_iter().flat_map(|it| Mapped::ALL.map(|kind| (it, kind))) {
            // What is not mapped may look like it, and stays as it was sent.
            let mut own = Path { ..own };
            if !mapped.has(Side::Source) {
                own.ip_src = physical.ip_src;
            }
            if !mapped.has(Side::Destination) {
                own.ip_dst = physical.ip_dst;
            }
            let frames = |path: &Path| [path.udp(1000, 2000, data), path.tcp(1000, 2000, data)];
            let sums = [UDP, TCP].map(|(_, at)| ETHERNET + 20 + at);
            for ((sent, whole), sum) in frames(&own).iter().zip(frames(&physical)).zip(sums) {
                // Of half a checksum nothing can be made.
                for kept in (0..=whole.len()).filter(|kept| *kept != sum + 1) {
                    let mut frame = whole[..kept].to_vec();
                    restore(&mut frame, &map, mapped);
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
        restore(&mut frame, &map, Mapped::Both);
        assert_eq!(
            (&frame[..40], &frame[40..42], &frame[42..]),
            (&sent[..40], &[0, 0][..], &sent[42..])
        );
        // A later fragment: what stands there is data.
        let mut frame = path(0xac10_ff00).udp(1, 2, b"x");
        frame[ETHERNET + FRAGMENT + 1] = 9;
        let before = frame[34..].to_vec();
        restore(&mut frame, &map, Mapped::Both);
        assert_eq!(frame[34..], before);
        // And what is no IPv4 stays as it is.
        let arp = path(0xac10_ff00).arp_request();
        let mut frame = arp.clone();
        restore(&mut frame, &map, Mapped::Both);
        assert_eq!(frame, arp);
    }
}
