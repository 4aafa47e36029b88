//! Two disjoint paths with the smallest total number of links.
//!
//! Bhandari's form of Suurballe's algorithm (Suurballe 1974; Bhandari, *Survivable Networks*, 1999): find the shortest
//! path, reverse its links with negative cost, find the shortest path again, and separate the two where they cancel. A
//! search for one path and then a second one fails if the first path cuts the network in two (a "trap"); this algorithm
//! does not.

use super::path::{Disjoint, Path};
use crate::index::{LinkId, SwitchIndex};
use crate::network::Network;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

/// The pair of disjoint paths with the fewest links in total, the shorter path first.
pub fn disjoint_pair(
    network: &Network,
    from: SwitchIndex,
    to: SwitchIndex,
    disjoint: Disjoint,
    usable: impl Fn(LinkId) -> bool,
) -> Option<(Path, Path)> {
    if from == to {
        return None;
    }
    let mut flow = Flow {
        network,
        from,
        to,
        splits: disjoint == Disjoint::Switches,
        enters: vec![Vec::new(); network.switch_slots()],
        used: Vec::new(),
    };
    flow.augment(&usable)?;
    flow.augment(&usable)?;
    let (a, b) = (flow.take_path()?, flow.take_path()?);
    Some(if a.hops() <= b.hops() { (a, b) } else { (b, a) })
}

/// The links of the paths found so far: a flow of one or two units from `from` to `to`.
struct Flow<'a> {
    network: &'a Network,
    from: SwitchIndex,
    to: SwitchIndex,
    /// Whether a switch can be passed through only once.
    splits: bool,
    /// Used links by the switch that they enter.
    enters: Vec<Vec<LinkId>>,
    used: Vec<LinkId>,
}

/// Each switch is two places: where links arrive, and where they leave.
type Place = usize;

fn arrival(switch: SwitchIndex) -> Place {
    switch.index() * 2
}

fn departure(switch: SwitchIndex) -> Place {
    switch.index() * 2 + 1
}

/// A step from a place to a place.
#[derive(Clone, Copy)]
enum Step {
    /// Within a switch.
    Through,
    /// Along a link that was free.
    Take(LinkId),
    /// Back along a link that was used, which frees it.
    Free(LinkId),
}

impl Flow<'_> {
    /// Adds one unit by the shortest path over free links, and backwards over used links. Costs may be negative, but no
    /// cycle has a negative cost: this is Bellman and Ford's algorithm with a queue.
    fn augment(&mut self, usable: &impl Fn(LinkId) -> bool) -> Option<()> {
        let (start, goal) = (departure(self.from), arrival(self.to));
        let mut best: Vec<Option<(i64, Place, Step)>> = vec![None; self.enters.len() * 2];
        let mut waiting = vec![false; best.len()];
        let mut queue = VecDeque::from([start]);
        best[start] = Some((0, start, Step::Through));
        while let Some(at) = queue.pop_front() {
            waiting[at] = false;
            let Some((cost, ..)) = best[at] else { continue };
            self.steps(at, usable, |next, weight, step| {
                let cost = cost + weight;
                if next != start && best[next].is_none_or(|(known, ..)| cost < known) {
                    best[next] = Some((cost, at, step));
                    if !core::mem::replace(&mut waiting[next], true) {
                        queue.push_back(next);
                    }
                }
            });
        }
        let mut at = goal;
        while at != start {
            let (_, before, step) = best[at]?;
            match step {
                Step::Through => {}
                Step::Take(link) => self.take(link),
                Step::Free(link) => self.free(link),
            }
            at = before;
        }
        Some(())
    }

    fn steps(
        &self,
        at: Place,
        usable: &impl Fn(LinkId) -> bool,
        mut step: impl FnMut(Place, i64, Step),
    ) {
        let switch = SwitchIndex((at / 2) as u32);
        let passed = self.splits && !self.enters[switch.index()].is_empty();
        if at == departure(switch) {
            for (link, next) in self.network.leaving(switch) {
                if usable(link) && !self.used.contains(&link) {
                    step(arrival(next), 1, Step::Take(link));
                }
            }
            if !self.splits || passed {
                step(arrival(switch), 0, Step::Through);
            }
        } else {
            if !passed {
                step(departure(switch), 0, Step::Through);
            }
            for &link in &self.enters[switch.index()] {
                if let Some((before, _)) = self.network.link(link).switches() {
                    step(departure(before), -1, Step::Free(link));
                }
            }
        }
    }

    fn take(&mut self, link: LinkId) {
        self.used.push(link);
        if let Some((_, to)) = self.network.link(link).switches() {
            self.enters[to.index()].push(link);
        }
    }

    fn free(&mut self, link: LinkId) {
        self.used.retain(|other| *other != link);
        if let Some((_, to)) = self.network.link(link).switches() {
            self.enters[to.index()].retain(|other| *other != link);
        }
    }

    /// Removes one unit, as a path.
    fn take_path(&mut self) -> Option<Path> {
        let mut links = Vec::new();
        let mut at = self.from;
        while at != self.to {
            let leaves = |link: &LinkId| {
                self.network.link(*link).switches().is_some_and(|(from, _)| from == at)
            };
            let link = self.used.iter().copied().find(leaves)?;
            self.free(link);
            links.push(link);
            at = self.network.link(link).switches()?.1;
        }
        Some(Path::found(links))
    }
}
