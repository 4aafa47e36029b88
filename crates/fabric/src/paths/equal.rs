//! All paths of the fewest links: the choices of equal-cost multipath (RFC 2992).

use super::path::Path;
use crate::network::{LinkId, Network, SwitchIndex};
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

/// How many links each switch is away from one of them, by the fewest.
#[derive(Clone, Debug)]
pub struct Distances {
    to: SwitchIndex,
    /// By switch; `u32::MAX` where there is no way.
    hops: Vec<u32>,
}

impl Distances {
    /// Measures all switches' distances to one, over links that are up.
    pub fn to(network: &Network, to: SwitchIndex) -> Distances {
        let mut hops = vec![u32::MAX; network.switch_slots()];
        hops[to.index()] = 0;
        let mut queue = VecDeque::from([to]);
        while let Some(at) = queue.pop_front() {
            // Both directions of a wire are up or down together, so what leaves leads back as well.
            for (_, next) in network.leaving(at) {
                if hops[next.index()] == u32::MAX {
                    hops[next.index()] = hops[at.index()] + 1;
                    queue.push_back(next);
                }
            }
        }
        Distances { to, hops }
    }

    /// How far that switch is.
    pub fn hops(&self, from: SwitchIndex) -> Option<u32> {
        self.hops.get(from.index()).copied().filter(|hops| *hops != u32::MAX)
    }

    /// Links out of a switch that lead closer.
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

    /// The paths of the fewest links, in order of their link ids, `most` at most.
    pub fn paths(&self, network: &Network, from: SwitchIndex, most: usize) -> Vec<Path> {
        let mut found = Vec::new();
        if self.hops(from).is_some() {
            self.extend(network, from, &mut Vec::new(), most, &mut found);
        }
        found
    }

    /// One of them, each link chosen among those that lead closer: `choose` gets their number (at least 1) and says
    /// which; what is too large is taken modulo that number.
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

    /// Among them the one whose narrowest link is the widest, with that width (`u64::MAX` without links).
    pub fn widest(
        &self,
        network: &Network,
        from: SwitchIndex,
        width: impl Fn(LinkId) -> u64,
    ) -> Option<(Path, u64)> {
        let mut hops = self.hops(from)?;
        // Level by level towards the goal: each switch of a level by how widely it can be reached.
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
