//! Tests of path computations, in comparison with a search over all paths of small networks.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

mod common;

use common::{all_paths, builtin, network, small, switch};
use fabric::paths::{Disjoint, Distances, disjoint_pair};
use fabric::{Error, LinkId, Network, Path, Search, SwitchIndex};
use proptest::prelude::*;

fn width(network: &Network, link: LinkId) -> u64 {
    network.link(link).capacity.bits_per_second()
}

fn narrowest(network: &Network, links: &[LinkId]) -> u64 {
    links.iter().map(|&link| width(network, link)).min().unwrap_or(u64::MAX)
}

/// The first switch and the last switch.
fn ends(network: &Network) -> (SwitchIndex, SwitchIndex) {
    (switch(network, 0), switch(network, network.switch_slots() as u64 - 1))
}

/// Whether a path is complete from end to end, by the check for given paths.
fn is_sound(network: &Network, path: &Path) -> bool {
    let (from, to) = ends(network);
    Path::given(network, from, to, path.links().to_vec()).as_ref() == Ok(path)
}

proptest! {
    #[test]
    fn shortest_and_widest_paths_equal_exhaustive_search(network in small()) {
        let (from, to) = ends(&network);
        let all = all_paths(&network, from, to);
        let mut search = Search::default();

        let shortest = search.shortest(&network, from, to, |_| true);
        prop_assert_eq!(shortest.as_ref().map(Path::hops), all.iter().map(Vec::len).min());

        let widest = search.widest(&network, from, to, |link| width(&network, link));
        let best = all.iter().map(|links| (narrowest(&network, links), usize::MAX - links.len())).max();
        let found = widest.as_ref().map(|(path, wide)| (*wide, usize::MAX - path.hops()));
        prop_assert_eq!(found, best);

        for path in shortest.iter().chain(widest.as_ref().map(|(path, _)| path)) {
            prop_assert!(is_sound(&network, path));
        }
    }

    #[test]
    fn a_disjoint_pair_is_found_if_any_exists_and_has_the_fewest_hops(
        network in small(),
        disjoint in prop_oneof![Just(Disjoint::Links), Just(Disjoint::Switches)],
    ) {
        let (from, to) = ends(&network);
        let all: Vec<Path> = all_paths(&network, from, to)
            .into_iter()
            .map(|links| Path::given(&network, from, to, links).unwrap())
            .collect();
        let pairs = all.iter().flat_map(|a| all.iter().map(move |b| (a, b)));
        let best = pairs
            .filter(|(a, b)| a.is_disjoint(b, &network, disjoint))
            .map(|(a, b)| a.hops() + b.hops())
            .min();
        let found = disjoint_pair(&network, from, to, disjoint, |_| true);
        prop_assert_eq!(found.as_ref().map(|(a, b)| a.hops() + b.hops()), best);
        if let Some((a, b)) = found {
            prop_assert!(a.is_disjoint(&b, &network, disjoint) && a.hops() <= b.hops());
            prop_assert!(is_sound(&network, &a) && is_sound(&network, &b));
        }
    }

    #[test]
    fn equal_cost_paths_are_exactly_the_shortest_paths(network in small(), most in 1_usize..20, pick: usize) {
        let (from, to) = ends(&network);
        let all = all_paths(&network, from, to);
        let shortest = all.iter().map(Vec::len).min().unwrap_or(0);
        let mut expected: Vec<_> = all.into_iter().filter(|links| links.len() == shortest).collect();
        expected.sort();

        let distances = Distances::to(&network, to);
        let found = distances.paths(&network, from, most);
        let links: Vec<_> = found.iter().map(|path| path.links().to_vec()).collect();
        prop_assert_eq!(&links[..], &expected[..most.min(expected.len())]);

        let widest = distances.widest(&network, from, |link| width(&network, link));
        prop_assert_eq!(
            widest.as_ref().map(|(path, wide)| (*wide, narrowest(&network, path.links()))),
            expected.iter().map(|links| narrowest(&network, links)).max().map(|best| (best, best))
        );
        let any = distances.path_by(&network, from, |count| pick % count);
        prop_assert_eq!(any.is_some(), !expected.is_empty());
        prop_assert!(any.is_none_or(|path| expected.contains(&path.links().to_vec())));
    }
}

#[test]
fn a_disjoint_pair_is_found_although_the_shortest_path_crosses_both() {
    // The shortest path 0-1-2-3 shares one link with each of the disjoint paths 0-1-5-3 and 0-4-2-3.
    let network =
        network(6, &[(0, 1, 1), (1, 2, 1), (2, 3, 1), (0, 4, 1), (4, 2, 1), (1, 5, 1), (5, 3, 1)]);
    let (from, to) = (switch(&network, 0), switch(&network, 3));
    for disjoint in [Disjoint::Links, Disjoint::Switches] {
        let (a, b) = disjoint_pair(&network, from, to, disjoint, |_| true).unwrap();
        assert_eq!((a.hops(), b.hops()), (3, 3));
        assert!(a.is_disjoint(&b, &network, disjoint));
    }
}

#[test]
fn fat_tree_pods_have_an_equal_cost_path_through_each_core_switch() {
    for (k, paths) in [(4, 4), (8, 16), (16, 64)] {
        let network = builtin(&format!("fattree,{k}"));
        let (from, to) = (switch(&network, 1), switch(&network, k * k / 2));
        let distances = Distances::to(&network, to);
        assert_eq!(distances.paths(&network, from, usize::MAX).len(), paths, "k = {k}");
        assert_eq!(distances.hops(from), Some(4));
    }
}

#[test]
fn a_given_path_with_gaps_or_repeated_links_is_refused() {
    let network = network(4, &[(0, 1, 1), (1, 2, 1), (2, 3, 1), (2, 0, 1)]);
    let place = |dpid| switch(&network, dpid);
    let link = |from: u64, to: u64| {
        let found = network.leaving(place(from)).find(|(_, next)| *next == place(to));
        found.map(|(link, _)| link).unwrap()
    };
    let check = |from, to, links: &[LinkId], expected: Result<usize, Error>| {
        let path = Path::given(&network, place(from), place(to), links.to_vec());
        assert_eq!(path.map(|path| path.hops()), expected, "{from} to {to} by {links:?}");
    };
    let [ab, bc, cd, ca] = [link(0, 1), link(1, 2), link(2, 3), link(2, 0)];
    check(0, 3, &[ab, bc, cd], Ok(3));
    check(1, 1, &[], Ok(0));
    check(0, 3, &[], Err(Error::NoPath));
    check(0, 3, &[ab, cd], Err(Error::BrokenPath(cd)));
    check(0, 3, &[ab, bc], Err(Error::BrokenPath(bc)));
    check(0, 1, &[ab, bc, ca, ab], Err(Error::RepeatedLink(ca)));
    check(1, 3, &[ab], Err(Error::BrokenPath(ab)));
}
