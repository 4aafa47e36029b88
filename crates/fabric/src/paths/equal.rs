//! All paths of the fewest links: the choices of equal-cost multipath (RFC 2992).

use super::path::Path;
use crate::index::{LinkId, SwitchIndex};
use crate::network::Network;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

/// The smallest number of links from each switch to one switch.
#[derive(Clone, Debug)]
pub struct Distances {
    to: SwitchIndex,
    /// The distance by switch; `u32::MAX` if there is no path.
    hops: Vec<u32>,
}

impl Distances {
    /// Computes the distances of all switches to one switch, over links that are up.
    pub fn to(network: &Network, to: SwitchIndex) -> Distances {
        let mut hops = vec![u32::MAX; network.switch_slots()];
        hops[to.index()] = 0;
        let mut queue = VecDeque::from([to]);
        while let Some(at) = queue.pop_front() {
            // Both directions of a wire are up or down together, so each leaving link has a link back.
            for (_, next) in network.leaving(at) {
                if hops[next.index()] == u32::MAX {
                    hops[next.index()] = hops[at.index()] + 1;
                    queue.push_back(next);
                }
            }
        }
        Distances { to, hops }
    }

    /// The distance of a switch.
    pub fn hops(&self, from: SwitchIndex) -> Option<u32> {
        self.hops.get(from.index()).copied().filter(|hops| *hops != u32::MAX)
    }

    /// Links from a switch that lead closer.
    pub fn closer<'a>(
        &'a self,
        network: &'a Network,
        from: SwitchIndex,
    ) -> impl Iterator<Item = (LinkId, SwitchIndex)> + 'a {
        let here = self.hops(from);
        network.leaving(from).filter(move |(_, next)| {
            here.is_some_and(|here| self.hops(*next) == here.checked_sub(1))
        })
    }

    /// The paths with the fewest links, in order of their link ids, at most `most` of them.
    pub fn paths(&self, network: &Network, from: SwitchIndex, most: usize) -> Vec<Path> {
        let mut found = Vec::new();
        if self.hops(from).is_some() {
            self.extend(network, from, &mut Vec::new(), most, &mut found);
        }
        found
    }

    /// One path with the fewest links. At each switch `choose` gets the number of links that lead closer (at least 1)
    /// and returns the index of one; a larger index counts modulo this number.
    pub fn path_by(
        &self,
        network: &Network,
        from: SwitchIndex,
        mut choose: impl FnMut(usize) -> usize,
    ) -> Option<Path> {
        self.hops(from)?;
        let mut links = Vec::new();
        let mut at = from;
        while at != self.to {
            let count = self.closer(network, at).count();
            let place = choose(count).checked_rem(count)?;
            let (link, next) = self.closer(network, at).nth(place)?;
            links.push(link);
            at = next;
        }
        Some(Path::found(links))
    }

    /// The path among the shortest whose narrowest link is the widest, with this width (`u64::MAX` without links).
    pub fn widest(
        &self,
        network: &Network,
        from: SwitchIndex,
        width: impl Fn(LinkId) -> u64,
    ) -> Option<(Path, u64)> {
        let mut hops = self.hops(from)?;
        // The search goes level by level to the destination, and keeps the largest width for each switch of a level.
        let mut level = vec![(from, u64::MAX)];
        let mut arrivals: Vec<Vec<(SwitchIndex, LinkId)>> = Vec::new();
        while hops > 0 {
            hops -= 1;
            let mut next: Vec<(SwitchIndex, u64, LinkId)> = Vec::new();
            for &(at, wide) in &level {
                for (link, to) in self.closer(network, at) {
                    next.push((to, wide.min(width(link)), link));
                }
            }
            next.sort_unstable_by(|a, b| (a.0, b.1, a.2).cmp(&(b.0, a.1, b.2)));
            next.dedup_by_key(|(to, ..)| *to);
            level = next.iter().map(|&(to, wide, _)| (to, wide)).collect();
            arrivals.push(next.iter().map(|&(to, _, link)| (to, link)).collect());
        }
        let (_, widest) = *level.first()?;
        let mut links = Vec::new();
        let mut at = self.to;
        for reached in arrivals.iter().rev() {
            let found = reached.binary_search_by_key(&at, |(to, _)| *to).ok()?;
            let link = reached[found].1;
            links.push(link);
            at = network.link(link).switches()?.0;
        }
        links.reverse();
        Some((Path::found(links), widest))
    }

    fn extend(
        &self,
        network: &Network,
        at: SwitchIndex,
        links: &mut Vec<LinkId>,
        most: usize,
        found: &mut Vec<Path>,
    ) {
        if at == self.to {
            found.push(Path::found(links.clone()));
            return;
        }
        for (link, next) in self.closer(network, at) {
            if found.len() >= most {
                return;
            }
            links.push(link);
            self.extend(network, next, links, most, found);
            links.pop();
        }
    }
}
