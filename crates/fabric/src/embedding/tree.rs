//! The links by which a network's switches repeat what they get, so that nothing goes round.

use super::spec::VirtualPortId;
use crate::units::Dpid;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

/// The ends of those of a network's links that span each of its parts as a tree: breadth first from the part's lowest
/// datapath id, at each switch in the order of the neighbours' ids and then of its own ports' numbers. A big switch is one.
pub fn spanning_tree(
    links: impl IntoIterator<Item = [VirtualPortId; 2]>,
) -> BTreeSet<VirtualPortId> {
    let mut beside: BTreeMap<Dpid, BTreeSet<(Dpid, [VirtualPortId; 2])>> = BTreeMap::new();
    for [a, b] in links {
        beside.entry(a.switch).or_default().insert((b.switch, [a, b]));
        beside.entry(b.switch).or_default().insert((a.switch, [b, a]));
    }
    let (mut tree, mut reached) = (BTreeSet::new(), BTreeSet::new());
    for &root in beside.keys() {
        let mut next = VecDeque::new();
        if reached.insert(root) {
            next.push_back(root);
        }
        while let Some(at) = next.pop_front() {
            for &(neighbour, ends) in beside.get(&at).into_iter().flatten() {
                if reached.insert(neighbour) {
                    tree.extend(ends);
                    next.push_back(neighbour);
                }
            }
        }
    }
    tree
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// The tree's ends of links that are written as `switch.port-switch.port`.
    #[track_caller]
    fn check(links: &[&str], expected: &[&str]) {
        let end = |text: &str| {
            let (switch, number) = text.split_once('.').unwrap();
            let switch = Dpid(switch.parse().unwrap());
            VirtualPortId { switch, number: number.parse().unwrap() }
        };
        let both = |text: &&str| {
            let (a, b) = text.split_once('-').unwrap();
            [end(a), end(b)]
        };
        let expected: BTreeSet<VirtualPortId> = expected.iter().flat_map(both).collect();
        let mut links: Vec<[VirtualPortId; 2]> = links.iter().map(both).collect();
        assert_eq!(spanning_tree(links.clone()), expected);
        // In whichever order they are declared.
        links.reverse();
        links.iter_mut().for_each(|ends| ends.reverse());
        assert_eq!(spanning_tree(links), expected);
    }

    #[test]
    fn breadth_first_from_the_lowest() {
        check(&[], &[]);
        check(&["1.1-2.1"], &["1.1-2.1"]);
        // A ring of three, and of four: the farthest switch is reached by the lower neighbour.
        check(&["1.1-2.1", "2.2-3.1", "3.2-1.2"], &["1.1-2.1", "3.2-1.2"]);
        check(&["3.1-4.1", "4.2-1.1", "1.2-2.1", "2.2-3.2"], &["1.2-2.1", "4.2-1.1", "2.2-3.2"]);
        // Of several links between two switches the one at the lower port of that nearer to the root.
        check(&["1.5-2.1", "1.4-2.9"], &["1.4-2.9"]);
        // Two parts.
        check(&["1.1-2.1", "7.1-9.1", "9.2-8.1", "8.2-7.2"], &["1.1-2.1", "7.1-9.1", "8.2-7.2"]);
    }
}
