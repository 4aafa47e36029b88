//! The packets of an entry by their destinations, where it depends on them what becomes of them and the entry does not say for
//! whom they are: it sends by shared edge ports what it cannot [defer](super::deferred), or uses a group that sends there, and so
//! has [forms](crate::v13::groups) for the tenant's hosts.
//!
//! Entries of one priority must not meet, so what is for none of the hosts has to be said without them: by the bits in which
//! an address first differs from all of theirs.
//!
//! ```text
//!   eth_dst                                    for          hosts 02:00:00:00:10:01 and :02
//!   01:00:00:00:00:00/01:00:00:00:00:00        many
//!   02:00:00:00:10:01                          this host
//!   02:00:00:00:10:02                          this host
//!   80:00:00:00:00:00/81:00:00:00:00:00        nobody
//!   40:00:00:00:00:00/c1:00:00:00:00:00        nobody
//!   ...                                        nobody       47 masks in all
//!   02:00:00:00:10:00/ff:ff:ff:ff:ff:ff        nobody
//! ```
//! Hosts whose addresses are near each other have most of these in common; others take up to 47 each.

use crate::flows::Piece;
use crate::network::{MULTICAST, Network, Unsaid, number_of, untagged};
use crate::v13::looks::Destination;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use flowspace::{Field, Match};
use openflow::error::v13 as code;

/// Entries on the switch for one of the tenant's, of those for one port of entry and one VLAN.
const MOST: usize = 1024;
/// Bits of a hardware address.
const BITS: u32 = 48;

/// What is made of the packets of a match: of all, or by for whom they are.
pub(super) fn by_looks(
    network: &Network,
    match_: &Match,
    piece: &impl Fn(&Match, Destination) -> Result<Piece, Unsaid>,
) -> Result<Vec<Piece>, Unsaid> {
    let destination = Destination::of_match(match_);
    match by_tags(match_, &|part: &Match| piece(part, destination)) {
        Err(Unsaid::NeedsDestination) => {
            let parts = by_destination(network, match_).ok_or(code::BAD_ACTION_BAD_OUT_PORT)?;
            let mut pieces = Vec::new();
            for (part, destination) in parts {
                pieces.extend(by_tags(&part, &|part: &Match| piece(part, destination))?);
            }
            Ok(pieces)
        }
        pieces => pieces,
    }
}

/// The same by their tags. Packets with other tags do not meet it then.
fn by_tags(
    match_: &Match,
    piece: &impl Fn(&Match) -> Result<Piece, Unsaid>,
) -> Result<Vec<Piece>, Unsaid> {
    match piece(match_) {
        Err(Unsaid::NeedsVlan) => untagged(match_).map(|part| piece(&part)).into_iter().collect(),
        whole => whole.map(|piece| Vec::from([piece])),
    }
}

/// The packets of a match, by their destinations; `None` if it would take too many entries.
fn by_destination(network: &Network, match_: &Match) -> Option<Vec<(Match, Destination)>> {
    let hosts = network.shared_edges().flat_map(|port| network.hosts_behind(port));
    let hosts = hosts.map(|host| number_of(*host));
    let is_meant = |host: &u128| match_.overlaps(&Match::exact(Field::DlDst, *host));
    let hosts: BTreeSet<u128> = hosts.filter(is_meant).collect();
    let hosts: Vec<u128> = hosts.into_iter().collect();
    let exact = hosts.iter().map(|host| ((*host, EXACT), Destination::Is(*host)));
    let many = ((MULTICAST, MULTICAST), Destination::Many);
    let others = others(&hosts)?;
    let nobody = others.into_iter().map(|masked| (masked, Destination::Nobody));
    let parts = core::iter::once(many).chain(exact).chain(nobody);
    let parts = parts.filter_map(|((address, mask), destination)| {
        let part = Match::ANY.with_masked(Field::DlDst, address, mask);
        Some((match_.intersect(&part)?, destination))
    });
    let parts: Vec<_> = parts.take(MOST + 1).collect();
    (parts.len() <= MOST).then_some(parts)
}

const EXACT: u128 = (1 << BITS) - 1;

/// All addresses but those of hosts, in their order, and those for many: as values and masks, none of which meet. `None` if
/// there are too many.
fn others(hosts: &[u128]) -> Option<Vec<(u128, u128)>> {
    if hosts.is_empty() {
        return Some(Vec::from([(0, MULTICAST)]));
    }
    let mut others = Vec::new();
    // Hosts that are alike in the bits of the mask, and the next bit.
    let mut open = Vec::from([(hosts, MULTICAST, BITS)]);
    while let Some((alike, mask, bits)) = open.pop() {
        let (Some(&first), Some(bit)) = (alike.first(), bits.checked_sub(1)) else { continue };
        let place = 1 << bit;
        if place == MULTICAST {
            open.push((alike, mask, bit));
            continue;
        }
        let (without, with) = alike.split_at(alike.partition_point(|host| host & place == 0));
        for (there, value) in [(without, 0), (with, place)] {
            match there {
                [] => others.push((first & mask | value, mask | place)),
                _ => open.push((there, mask | place, bit)),
            }
        }
        if others.len() > MOST {
            return None;
        }
    }
    Some(others)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(others: &[(u128, u128)], address: u128) -> usize {
        others.iter().filter(|(value, mask)| address & mask == *value).count()
    }

    #[test]
    fn others_are_all_but_the_hosts_and_each_once() {
        let near: Vec<u128> = [0x0200_0000_1001, 0x0200_0000_1002, 0x0200_0000_1003].into();
        let far: Vec<u128> = [0x0000_0000_0001, 0x0200_0000_1001, 0xfe12_3456_789a].into();
        for hosts in [near[..1].to_vec(), near, far, Vec::new()] {
            let others = others(&hosts).unwrap();
            for host in &hosts {
                assert_eq!(meant(&others, *host), 0, "{host:x}");
                // All that differ from it by a bit or two.
                for (a, b) in (0..BITS).flat_map(|a| (0..BITS).map(move |b| (a, b))) {
                    let address = host ^ (1 << a | 1 << b);
                    let is_other = address & MULTICAST == 0 && !hosts.contains(&address);
                    assert_eq!(meant(&others, address), usize::from(is_other), "{address:x}");
                }
            }
            assert!(others.iter().all(|(value, mask)| value & !mask == 0));
        }
    }

    #[test]
    fn near_hosts_share_most() {
        let hosts = |step: u128, count: u128| -> Vec<u128> {
            (0..count).map(|n| 0x0200_0000_0000 + n * step).collect()
        };
        let count = |hosts: Vec<u128>| others(&hosts).map(|others| others.len());
        assert_eq!(count(hosts(1, 1)), Some(47));
        assert_eq!(count(hosts(1, 2)), Some(46));
        assert_eq!(count(hosts(1, 256)), Some(39));
        // Twenty that have nothing in common behind the first bits.
        let far = (0..20).map(|n| n << 42 | n << 3).collect();
        assert!(count(far).is_some_and(|count| count > 500));
        assert_eq!(count((0..64).map(|n| n << 41 | n << 13).collect()), None);
    }
}
