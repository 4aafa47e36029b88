//! Paths between switches: shortest, widest, disjoint pairs, and all paths of equal cost.
//!
//! A [`Path`] has the links between switches only; the caller adds links to hosts at both ends. Closures say which
//! links are usable and how wide they are, so the same search serves virtual links (unreserved bandwidth), labels
//! (residual bandwidth of one tenant) and simulations. Every result is deterministic: among equals the lower link ids
//! win.
//!
//! Start at [`Search`]; [`disjoint_pair`] finds two paths, [`Distances`] all paths of equal cost.

mod disjoint;
mod equal;

use crate::error::Error;
use crate::network::{LinkId, Network, SwitchIndex};
use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

pub use disjoint::{Disjoint, disjoint_pair};
pub use equal::Distances;

/// Links that follow one another from a switch to a switch; none, where both are the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(Vec<LinkId>);

impl Path {
    /// A path that was given rather than found: its links exist, follow one another and lead where they should.
    pub fn given(
        network: &Network,
        from: SwitchIndex,
        to: SwitchIndex,
        links: Vec<LinkId>,
    ) -> Result<Path, Error> {
        let mut at = from;
        let mut seen = Vec::from([from]);
        for &id in &links {
            let ends = network.find_link(id)?.switches();
            let (start, end) = ends.ok_or(Error::BrokenPath(id))?;
            if start != at {
                return Err(Error::BrokenPath(id));
            }
            if seen.contains(&end) {
                return Err(Error::RepeatedLink(id));
            }
            seen.push(end);
            at = end;
        }
        match links.last() {
            _ if at == to => Ok(Path(links)),
            Some(&last) => Err(Error::BrokenPath(last)),
            None => Err(Error::NoPath),
        }
    }

    /// Its links, in order.
    pub fn links(&self) -> &[LinkId] {
        &self.0
    }

    /// How many links it has.
    pub fn hops(&self) -> usize {
        self.0.len()
    }

    /// Whether each link of it is up.
    pub fn is_up(&self, network: &Network) -> bool {
        self.0.iter().all(|&link| network.link(link).is_up())
    }

    /// The switches that it passes through, without its two ends.
    pub fn interior<'a>(&'a self, network: &'a Network) -> impl Iterator<Item = SwitchIndex> + 'a {
        let but_last = self.0.split_last().map_or(&[][..], |(_, before)| before);
        but_last.iter().filter_map(|&link| Some(network.link(link).switches()?.1))
    }

    /// Whether the two have no wire in common or, if asked for, no switch but their ends.
    pub fn is_disjoint(&self, other: &Path, network: &Network, disjoint: Disjoint) -> bool {
        let no_wire = self.0.iter().all(|a| other.0.iter().all(|b| a.wire() != b.wire()));
        let no_switch = || self.interior(network).all(|a| other.interior(network).all(|b| a != b));
        no_wire && (disjoint == Disjoint::Links || no_switch())
    }
}

/// Searches of single paths; keeps its tables between them, so that a thousand searches allocate once.
#[derive(Clone, Debug, Default)]
pub struct Search {
    best: Vec<Reached>,
    heap: BinaryHeap<Reverse<(Cost, u32)>>,
}

/// What a path costs first of all, then its hops.
type Cost = (u64, u32);

/// How a switch is best reached: at what cost, and by which link.
type Reached = Option<(Cost, Option<LinkId>)>;

impl Search {
    /// The path of the fewest links among those that may be used.
    pub fn shortest(
        &mut self,
        network: &Network,
        from: SwitchIndex,
        to: SwitchIndex,
        usable: impl Fn(LinkId) -> bool,
    ) -> Option<Path> {
        self.cheapest(network, from, to, |link| usable(link).then_some(0))
    }

    /// The path of the least sum of costs, then of the fewest links; `None` from `cost` is a link not to be used.
    /// Dijkstra's algorithm.
    pub fn cheapest(
        &mut self,
        network: &Network,
        from: SwitchIndex,
        to: SwitchIndex,
        cost: impl Fn(LinkId) -> Option<u64>,
    ) -> Option<Path> {
        let step = |(sum, hops): Cost, link| Some((cost(link)?.saturating_add(sum), hops + 1));
        self.explore(network, from, to, step)?;
        self.trace(network, to)
    }

    /// The path whose narrowest link is the widest; among those of the same width, the one of the fewest links. With
    /// it comes that width: `u64::MAX` for a path without links. Links of width 0 are not used.
    pub fn widest(
        &mut self,
        network: &Network,
        from: SwitchIndex,
        to: SwitchIndex,
        width: impl Fn(LinkId) -> u64,
    ) -> Option<(Path, u64)> {
        // The cost is how far the narrowest link falls short of the greatest number; the least cost is the widest.
        // Hops do not add up to the best there (a wider detour may end in a narrow link), so they are left to a
        // second search, over all links that are wide enough.
        let step = |(short, _): Cost, link| match width(link) {
            0 => None,
            wide => Some((short.max(u64::MAX - wide), 0)),
        };
        let (short, _) = self.explore(network, from, to, step)?;
        let widest = u64::MAX - short;
        let path = self.shortest(network, from, to, |link| width(link) >= widest)?;
        Some((path, widest))
    }

    /// Reaches switches in order of cost until `to`; what that costs.
    fn explore(
        &mut self,
        network: &Network,
        from: SwitchIndex,
        to: SwitchIndex,
        step: impl Fn(Cost, LinkId) -> Option<Cost>,
    ) -> Option<Cost> {
        self.best.clear();
        self.best.resize(network.switch_slots(), None);
        self.heap.clear();
        self.best[from.index()] = Some(((0, 0), None));
        self.heap.push(Reverse(((0, 0), from.0)));
        while let Some(Reverse((cost, at))) = self.heap.pop() {
            if at == to.0 {
                return Some(cost);
            }
            if self.best[at as usize].is_some_and(|(best, _)| best < cost) {
                continue;
            }
            for (link, next) in network.leaving(SwitchIndex(at)) {
                let Some(cost) = step(cost, link) else { continue };
                let best = &mut self.best[next.index()];
                if best.is_none_or(|(known, _)| cost < known) {
                    *best = Some((cost, Some(link)));
                    self.heap.push(Reverse((cost, next.0)));
                }
            }
        }
        None
    }

    /// The path that was found to `to`, read backwards.
    fn trace(&self, network: &Network, to: SwitchIndex) -> Option<Path> {
        let mut links = Vec::new();
        let mut at = to;
        while let (_, Some(link)) = self.best[at.index()]? {
            links.push(link);
            at = network.link(link).switches()?.0;
        }
        links.reverse();
        Some(Path(links))
    }
}
