//! Which physical IPv4 address stands, between switches, for which of a tenant's own.
//!
//! The tenant's block is mapped as a whole onto a physical one of the same length: the bits behind the prefix stay. So
//! what a tenant's match says of its addresses, prefix or none, is said of the physical ones by another prefix. Only
//! hosts' addresses are ever put in the place of others, since who restores them has to know them all.
//!
//! A packet's two addresses are mapped each by itself, and it is said beside the packet which of them are ([`Mapped`]):
//! an address that was not mapped may be anybody's, also one that looks like a physical one.

use super::spec::Block;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

/// One of the two addresses of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Where it comes from.
    Source,
    /// Where it is to go.
    Destination,
}

impl Side {
    /// Both.
    pub const ALL: [Side; 2] = [Side::Source, Side::Destination];
}

/// Which of a packet's two addresses are physical ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mapped {
    /// The source only.
    Source,
    /// The destination only.
    Destination,
    /// Both.
    Both,
}

impl Mapped {
    /// All that can be.
    pub const ALL: [Mapped; 3] = [Mapped::Source, Mapped::Destination, Mapped::Both];

    /// By whether the source is, and whether the destination is; `None` if neither is.
    pub const fn new(source: bool, destination: bool) -> Option<Mapped> {
        match (source, destination) {
            (false, false) => None,
            (true, false) => Some(Mapped::Source),
            (false, true) => Some(Mapped::Destination),
            (true, true) => Some(Mapped::Both),
        }
    }

    /// Whether this address is.
    pub const fn has(self, side: Side) -> bool {
        matches!(
            (self, side),
            (Mapped::Both, _)
                | (Mapped::Source, Side::Source)
                | (Mapped::Destination, Side::Destination)
        )
    }
}

/// A tenant's addresses and the physical ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressMap {
    own: u32,
    physical: u32,
    mask: u32,
    /// In order, each once.
    hosts: Vec<u32>,
}

impl AddressMap {
    /// As many entries a switch may have to hold to give one rule's packets of one look their own addresses back. A table is
    /// everybody's, and often one of 2,000.
    pub const ENTRIES: usize = 256;

    /// `None` unless both blocks are of IPv4 and of the same length. Hosts outside of the tenant's block are left out.
    pub fn new(
        own: Block,
        physical: Block,
        hosts: impl IntoIterator<Item = Ipv4Addr>,
    ) -> Option<AddressMap> {
        let ((own, length), (physical, other)) = (own.v4()?, physical.v4()?);
        if length != other {
            return None;
        }
        let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
        let inside = |address: &u32| address & mask == own;
        let mut hosts: Vec<u32> = hosts.into_iter().map(u32::from).filter(inside).collect();
        hosts.sort_unstable();
        hosts.dedup();
        Some(AddressMap { own, physical, mask, hosts })
    }

    /// The tenant's block: its first address, and which bits are those of all.
    pub const fn block(&self) -> (u32, u32) {
        (self.own, self.mask)
    }

    /// What stands for an address of the block.
    pub const fn physical(&self, own: u32) -> u32 {
        self.physical | own & !self.mask
    }

    /// For which of the block's addresses a physical one stands.
    pub const fn own(&self, physical: u32) -> u32 {
        self.own | physical & !self.mask
    }

    /// Whether a physical address is ever put in the place of this one of the tenant's: it is a host's.
    pub fn maps(&self, own: u32) -> bool {
        self.hosts.binary_search(&own).is_ok()
    }

    /// All for which [`maps`](AddressMap::maps) holds, in order.
    pub fn hosts(&self) -> impl Iterator<Item = u32> + Clone + '_ {
        self.hosts.iter().copied()
    }

    /// Whether there may be an entry for each address, or each two, that packets bear then: [`borne`](AddressMap::borne) are no more
    /// than [`ENTRIES`](AddressMap::ENTRIES). Where they are more, the hypervisor does it.
    pub fn is_restored_by_entries(&self, mapped: Mapped) -> bool {
        let count = |side| if mapped.has(side) { self.hosts.len() } else { 1 };
        count(Side::Source).saturating_mul(count(Side::Destination)) <= AddressMap::ENTRIES
    }

    /// The tenant's addresses, source and destination, in whose places packets may bear physical ones; `None` where they
    /// bear what they came with.
    pub fn borne(&self, mapped: Mapped) -> impl Iterator<Item = [Option<u32>; 2]> + '_ {
        let each = move |side| {
            let hosts = self.hosts().filter(move |_| mapped.has(side)).map(Some);
            hosts.chain((!mapped.has(side)).then_some(None))
        };
        each(Side::Source).flat_map(move |from| each(Side::Destination).map(move |to| [from, to]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(own: &str, physical: &str) -> Option<AddressMap> {
        let hosts = ["10.0.0.1", "10.0.0.2", "10.0.0.1", "10.0.1.1"];
        let hosts = hosts.map(|it| it.parse::<Ipv4Addr>().unwrap());
        AddressMap::new(own.parse().unwrap(), physical.parse().unwrap(), hosts)
    }

    #[test]
    fn addresses_go_there_and_back() {
        let map = map("10.0.0.0/24", "172.16.5.0/24").unwrap();
        let (one, two) = (0x0a00_0001, 0x0a00_0002);
        assert_eq!((map.physical(one), map.own(0xac10_0501)), (0xac10_0501, one));
        assert_eq!(map.hosts().collect::<Vec<_>>(), [one, two]);
        assert!(map.maps(one) && map.maps(two) && !map.maps(0x0a00_0003));
        assert_eq!(map.block(), (0x0a00_0000, 0xffff_ff00));
    }

    #[test]
    fn packets_bear_what_is_said_beside_them() {
        let map = map("10.0.0.0/24", "172.16.5.0/24").unwrap();
        let [one, two] = [0x0a00_0001, 0x0a00_0002].map(Some);
        let borne = |mapped| map.borne(mapped).collect::<Vec<_>>();
        assert_eq!(borne(Mapped::Source), [[one, None], [two, None]]);
        assert_eq!(borne(Mapped::Destination), [[None, one], [None, two]]);
        assert_eq!(borne(Mapped::Both), [[one, one], [one, two], [two, one], [two, two]]);
        for mapped in Mapped::ALL {
            let [source, destination] = Side::ALL.map(|side| mapped.has(side));
            assert_eq!(Mapped::new(source, destination), Some(mapped));
        }
        assert_eq!(Mapped::new(false, false), None);
    }

    #[test]
    fn entries_are_bounded() {
        let (own, physical) = ("10.0.0.0/16".parse().unwrap(), "172.16.0.0/16".parse().unwrap());
        for (hosts, one, both) in
            [(1, true, true), (16, true, true), (17, true, false), (257, false, false)]
        {
            let hosts = (1..=hosts).map(|at| Ipv4Addr::from(0x0a00_0000 | at));
            let map = AddressMap::new(own, physical, hosts).unwrap();
            for (mapped, is) in Mapped::ALL.into_iter().zip([one, one, both]) {
                assert_eq!(map.is_restored_by_entries(mapped), is, "{mapped:?}");
                assert_eq!(map.borne(mapped).count() <= AddressMap::ENTRIES, is);
            }
        }
    }

    #[test]
    fn blocks_have_to_be_alike() {
        assert!(map("0.0.0.0/0", "0.0.0.0/0").is_some());
        assert_eq!(map("10.0.0.1/32", "172.16.0.1/32").unwrap().hosts().count(), 1);
        for (own, physical) in [("10.0.0.0/24", "172.16.0.0/23"), ("fd00::/120", "fd01::/120")] {
            assert_eq!(map(own, physical), None);
        }
    }
}
