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
mod path;

use crate::index::{LinkId, SwitchIndex};
use crate::network::Network;
use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

pub use disjoint::disjoint_pair;
pub use equal::Distances;
pub use path::{Disjoint, Path};

/// Searches single paths. A search keeps its tables for the next search, so a thousand searches allocate once.
#[derive(Clone, Debug, Default)]
pub struct Search {
    best: Vec<Reached>,
    heap: BinaryHeap<Reverse<(Cost, u32)>>,
}

/// The cost of a path.
type Cost = u64;

/// The best way to reach a switch: the cost and the last link.
type Reached = Option<(Cost, Option<LinkId>)>;

impl Search {
    /// The path with the fewest links, over usable links only.
    pub fn shortest(
        &mut self,
        network: &Network,
        from: SwitchIndex,
        to: SwitchIndex,
        usable: impl Fn(LinkId) -> bool,
    ) -> Option<Path> {
        let step = |cost: Cost, link| usable(link).then_some(cost + 1);
        self.explore(network, from, to, step)?;
        self.trace(network, to)
    }

    /// The path whose narrowest link is the widest; among paths of the same width, the path with the fewest links. The
    /// result includes the width: `u64::MAX` for a path without links. Links of width 0 are not used.
    pub fn widest(
        &mut self,
        network: &Network,
        from: SwitchIndex,
        to: SwitchIndex,
        width: impl Fn(LinkId) -> u64,
    ) -> Option<(Path, u64)> {
        // The cost is the greatest number minus the width of the narrowest link, so the smallest cost is the widest
        // path. This search does not minimize the hops (a wider detour may end in a narrow link). A second search over
        // all links that are wide enough does.
        let step = |short: Cost, link| match width(link) {
            0 => None,
            wide => Some(short.max(u64::MAX - wide)),
        };
        let short = self.explore(network, from, to, step)?;
        let widest = u64::MAX - short;
        let path = self.shortest(network, from, to, |link| width(link) >= widest)?;
        Some((path, widest))
    }

    /// Reaches switches in order of cost until `to`, and returns the cost of `to`. This is Dijkstra's algorithm.
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
        self.best[from.index()] = Some((0, None));
        self.heap.push(Reverse((0, from.0)));
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
        Some(Path::found(links))
    }
}
