//! The links by which a network's switches repeat what they get, so that nothing goes round.

use super::spec::VirtualPortId;
use crate::units::Dpid;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

/// The ends of a virtual link, the lower first.
pub type Ends = [VirtualPortId; 2];

/// Those of a network's links that span each of its parts as a tree. Those that it was made of `before` stay. Of the others
/// come those that join what is apart without them, breadth first from the part's lowest datapath id, at each switch in the
/// order of the neighbours' ids and then of its own ports' numbers. A big switch is one switch.
pub fn spanning_tree(
    before: &BTreeSet<Ends>,
    links: impl IntoIterator<Item = Ends>,
) -> BTreeSet<Ends> {
    let links: BTreeSet<Ends> = links.into_iter().map(|[a, b]| [a.min(b), a.max(b)]).collect();
    let mut parts = Parts::default();
    let mut tree = BTreeSet::new();
    let kept = links.intersection(before).copied().collect();
    for ends in [kept, breadth_first(&links)].into_iter().flatten() {
        if parts.join(ends.map(|end| end.switch)) {
            tree.insert(ends);
        }
    }
    tree
}

/// The links in the order in which they are met from the lowest switch of each part.
fn breadth_first(links: &BTreeSet<Ends>) -> Vec<Ends> {
    let mut beside: BTreeMap<Dpid, BTreeSet<(Dpid, Ends)>> = BTreeMap::new();
    for &[a, b] in links {
        beside.entry(a.switch).or_default().insert((b.switch, [a, b]));
        beside.entry(b.switch).or_default().insert((a.switch, [b, a]));
    }
    let (mut met, mut reached) = (Vec::new(), BTreeSet::new());
    for &root in beside.keys() {
        let mut next = VecDeque::new();
        if reached.insert(root) {
            next.push_back(root);
        }
        while let Some(at) = next.pop_front() {
            for &(neighbour, [a, b]) in beside.get(&at).into_iter().flatten() {
                met.push([a.min(b), a.max(b)]);
                if reached.insert(neighbour) {
                    next.push_back(neighbour);
                }
            }
        }
    }
    met
}

/// Switches that are joined: each leads to another of its part, but for one.
#[derive(Default)]
struct Parts(BTreeMap<Dpid, Dpid>);

impl Parts {
    /// False if they are joined already.
    fn join(&mut self, switches: [Dpid; 2]) -> bool {
        let [a, b] = switches.map(|switch| self.part(switch));
        a != b && self.0.insert(a, b).is_none()
    }

    /// The one to which all of a switch's part lead; ways are halved as they are gone.
    fn part(&mut self, mut switch: Dpid) -> Dpid {
        while let Some(&next) = self.0.get(&switch) {
            let Some(&second) = self.0.get(&next) else { return next };
            self.0.insert(switch, second);
            switch = second;
        }
        switch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(all: &[&str]) -> Vec<Ends> {
        let end = |text: &str| {
            let (switch, number) = text.split_once('.').unwrap();
            let switch = Dpid(switch.parse().unwrap());
            VirtualPortId { switch, number: number.parse().unwrap() }
        };
        let both = |text: &&str| {
            let (a, b) = text.split_once('-').unwrap();
            [end(a), end(b)]
        };
        all.iter().map(both).collect()
    }

    /// The tree of links that are written as `switch.port-switch.port`, the lower end first.
    #[track_caller]
    fn check(before: &[&str], all: &[&str], expected: &[&str]) {
        let before: BTreeSet<Ends> = links(before).into_iter().collect();
        let expected: BTreeSet<Ends> = links(expected).into_iter().collect();
        let mut all = links(all);
        assert_eq!(spanning_tree(&before, all.clone()), expected);
        // In whichever order they are declared.
        all.reverse();
        all.iter_mut().for_each(|ends| ends.reverse());
        assert_eq!(spanning_tree(&before, all), expected);
    }

    #[test]
    fn breadth_first_from_the_lowest() {
        check(&[], &[], &[]);
        check(&[], &["1.1-2.1"], &["1.1-2.1"]);
        // A ring of three, and of four: the farthest switch is reached by the lower neighbour.
        check(&[], &["1.1-2.1", "2.2-3.1", "3.2-1.2"], &["1.1-2.1", "1.2-3.2"]);
        let ring = ["3.1-4.1", "4.2-1.1", "1.2-2.1", "2.2-3.2"];
        check(&[], &ring, &["1.2-2.1", "1.1-4.2", "2.2-3.2"]);
        // Of several links between two switches the one at the lower port of that nearer to the root.
        check(&[], &["1.5-2.1", "1.4-2.9"], &["1.4-2.9"]);
        // Two parts.
        let two = ["1.1-2.1", "7.1-9.1", "9.2-8.1", "8.2-7.2"];
        check(&[], &two, &["1.1-2.1", "7.1-9.1", "7.2-8.2"]);
    }

    #[test]
    fn what_is_in_it_stays() {
        let ring = ["1.1-2.1", "2.2-3.1", "3.2-4.1", "1.2-4.2"];
        // Whichever three they are.
        for out in 0..4 {
            let mut tree = ring.to_vec();
            tree.remove(out);
            check(&tree, &ring, &tree);
        }
        // One that has no way any more is made up for by one only, though from nothing others would be chosen.
        let tree = ["1.1-2.1", "2.2-3.1", "3.2-4.1"];
        check(&tree, &["1.1-2.1", "3.2-4.1", "1.2-4.2"], &["1.1-2.1", "3.2-4.1", "1.2-4.2"]);
        // Where several would do, the nearest to the lowest switch.
        let all = ["1.1-2.1", "3.2-4.1", "1.3-3.3", "1.2-4.2", "2.3-4.3"];
        check(&tree, &all, &["1.1-2.1", "3.2-4.1", "1.3-3.3"]);
        // Of what cannot have been a tree as much stays as can be one.
        check(&ring, &ring, &["1.1-2.1", "1.2-4.2", "2.2-3.1"]);
    }
}
