//! Which physical IPv4 address stands, between switches, for which of a tenant's own.
//!
//! The tenant's block is mapped as a whole onto a physical one of the same length: the bits behind the prefix stay. So
//! what a tenant's match says of its addresses, prefix or none, is said of the physical ones by another prefix. Only
//! hosts' addresses are ever put in the place of others, since who restores them has to know them all.

use super::spec::Block;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

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

    /// Whether packets from the first to the second of these addresses of the tenant's bear physical ones: they are of
    /// two hosts.
    pub fn maps(&self, from: u32, to: u32) -> bool {
        let is_host = |address| self.hosts.binary_search(&address).is_ok();
        from != to && is_host(from) && is_host(to)
    }

    /// All for which [`maps`](AddressMap::maps) holds.
    pub fn pairs(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let to = move |from| self.hosts.iter().map(move |&to| (from, to));
        self.hosts.iter().flat_map(move |&from| to(from)).filter(|(from, to)| from != to)
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
        assert_eq!(map.pairs().collect::<Vec<_>>(), [(one, two), (two, one)]);
        assert!(map.maps(one, two) && !map.maps(one, one) && !map.maps(one, 0x0a00_0003));
        assert_eq!(map.block(), (0x0a00_0000, 0xffff_ff00));
    }

    #[test]
    fn blocks_have_to_be_alike() {
        assert!(map("0.0.0.0/0", "0.0.0.0/0").is_some());
        assert_eq!(map("10.0.0.1/32", "172.16.0.1/32").unwrap().pairs().count(), 0);
        for (own, physical) in [("10.0.0.0/24", "172.16.0.0/23"), ("fd00::/120", "fd01::/120")] {
            assert_eq!(map(own, physical), None);
        }
    }
}
