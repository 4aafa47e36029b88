//! Tests of virtual networks that are requested while the physical network is still being discovered.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::megabits;
use common::spec::*;
use common::walk::{Arrived, port};
use fabric::embedding::{Embedding, Route, Spec, TrunkStatus};
use fabric::paths::Disjoint;
use fabric::{Dpid, Duration, Network, PortId};
use proptest::prelude::*;

/// The four switches of [`ring`], each with its ports, and no wires yet.
fn scattered() -> Network {
    let mut network = Network::default();
    for dpid in 1..=4 {
        network.add_switch(Dpid(dpid)).unwrap();
        (1..=5).for_each(|number| network.add_port(port(dpid, number)).unwrap());
        network.add_edge(port(dpid, 1), megabits(10), Duration::ZERO).unwrap();
    }
    network
}

fn plug(network: &mut Network, a: PortId, b: PortId, capacity: u64) {
    network.connect(a, b, megabits(capacity), Duration::ZERO).unwrap();
}

/// The switches on the path of the tenant's link, from first to last.
fn passes(embedding: &Embedding) -> Vec<u64> {
    let (_, status) = embedding.trunks(RED).next().unwrap();
    let wires = &status.active.unwrap().wires;
    let from = wires.iter().map(|wire| wire.from.dpid.0);
    from.chain(wires.last().map(|wire| wire.to.dpid.0)).collect()
}

/// A tenant's link between switches 1 and 4, on a network whose detour is discovered first.
fn around(change: impl Fn(&mut Spec)) -> (Network, Embedding) {
    let mut spec = two();
    spec.switches[1].members = vec![Dpid(4)];
    spec.ports[1].at = port(4, 1);
    change(&mut spec);
    let (mut network, mut embedding) = (scattered(), embedding());
    embedding.apply(&Network::default(), &wanted(&[(RED, &spec)])).unwrap();
    for dpid in 1..=3 {
        plug(&mut network, port(dpid, 2), port(dpid + 1, 3), 10);
        embedding.handle_changes(&network);
    }
    assert_eq!(passes(&embedding), [1, 2, 3, 4]);
    (network, embedding)
}

#[test]
fn a_link_moves_from_a_detour_to_a_shorter_path_found_later() {
    for reverts in [false, true] {
        let (mut network, mut embedding) = around(|spec| spec.links[0].reverts = reverts);
        plug(&mut network, port(4, 2), port(1, 3), 10);
        let changes = embedding.handle_changes(&network);
        assert!(changes.grew);
        assert_eq!((changes.ports.len(), changes.moves.len()), (0, 1), "the tenant sees nothing");
        assert_eq!(passes(&embedding), [1, 4]);
        let far = Arrived::In(RED, virtual_port(0xa3, 2));
        assert_eq!(reach(&network, &embedding, RED, virtual_port(0xa1, 2)), [far]);
        // A reverting link returns to this path.
        for is_up in [false, true] {
            network.set_port_up(port(4, 2), is_up).unwrap();
            assert!(!embedding.handle_changes(&network).grew);
        }
        assert_eq!(passes(&embedding) == [1, 4], reverts);
    }
}

#[test]
fn an_existing_link_keeps_its_path_after_the_discovery_phase() {
    let (mut network, mut embedding) = around(|_| ());
    embedding.stop_growing();
    plug(&mut network, port(4, 2), port(1, 3), 10);
    assert_eq!(embedding.handle_changes(&network).moves, []);
    assert_eq!(passes(&embedding), [1, 2, 3, 4]);
    // A link that is requested again is placed again, on the shorter path.
    let mut anew = embedding.wanted().clone();
    anew.get_mut(&RED).unwrap().links[0].bandwidth = megabits(1);
    embedding.apply(&network, &anew).unwrap();
    assert_eq!(passes(&embedding), [1, 4]);
}

/// The recovered physical link is not new, so a virtual link that left it after the failure keeps its path.
#[test]
fn a_virtual_link_does_not_move_to_a_recovered_physical_link() {
    let (mut network, mut embedding) = around(|_| ());
    plug(&mut network, port(4, 2), port(1, 3), 10);
    embedding.handle_changes(&network);
    network.set_port_up(port(4, 2), false).unwrap();
    embedding.handle_changes(&network);
    network.set_port_up(port(4, 2), true).unwrap();
    assert_eq!(embedding.handle_changes(&network).moves, []);
    assert_eq!(passes(&embedding), [1, 2, 3, 4]);
}

#[test]
fn a_widest_path_link_moves_only_to_a_path_with_more_bandwidth() {
    let (mut network, mut embedding) = around(|spec| {
        spec.links[0].route = Route::Widest;
        spec.links[0].bandwidth = megabits(2);
    });
    plug(&mut network, port(4, 2), port(1, 3), 5);
    assert_eq!(embedding.handle_changes(&network).moves, [], "shorter and narrower");
    plug(&mut network, port(4, 4), port(1, 4), 20);
    embedding.handle_changes(&network);
    assert_eq!(passes(&embedding), [1, 4]);
    assert_eq!(embedding.reservations().iter().count(), 1);
    let held = network.links().map(|(link, _)| embedding.reservations().reserved(link));
    assert_eq!(held.filter(|held| *held != megabits(0)).count(), 2);
}

#[test]
fn a_link_gets_a_backup_and_a_better_backup_when_the_network_grows() {
    let (mut network, mut embedding) =
        around(|spec| spec.links[0].protection = Some(Disjoint::Switches));
    let backup = |embedding: &Embedding| {
        let (_, status) = embedding.trunks(RED).next().unwrap();
        status.backup.map(|backup| backup.wires.len())
    };
    assert_eq!(backup(&embedding), None);
    plug(&mut network, port(4, 2), port(1, 3), 10);
    embedding.handle_changes(&network);
    assert_eq!((passes(&embedding), backup(&embedding)), (vec![1, 4], Some(3)));
    // With one more wire the link gets a shorter backup.
    plug(&mut network, port(4, 4), port(2, 4), 10);
    embedding.handle_changes(&network);
    assert_eq!((passes(&embedding), backup(&embedding)), (vec![1, 4], Some(2)));
}

/// Leaves and spines are discovered in both orders. The link keeps its first path among equal paths.
#[test]
fn a_link_keeps_its_path_when_a_new_path_can_serve_as_backup() {
    for reverts in [false, true] {
        for (first, second) in [(2, 4), (4, 2)] {
            let mut spec = two();
            spec.switches[1].members = vec![Dpid(3)];
            spec.ports[1].at = port(3, 1);
            spec.links[0].protection = Some(Disjoint::Switches);
            spec.links[0].reverts = reverts;
            let (mut network, mut embedding) = (scattered(), embedding());
            embedding.apply(&Network::default(), &wanted(&[(RED, &spec)])).unwrap();
            // The wires of spine 2 have lower numbers than the wires of spine 4. The wire to the spine `second` is up
            // last.
            for spine in [2, 4] {
                plug(&mut network, port(1, spine as u32), port(spine, 2), 10);
                plug(&mut network, port(3, spine as u32), port(spine, 3), 10);
            }
            network.set_port_up(port(second, 2), false).unwrap();
            embedding.handle_changes(&network);
            assert_eq!(passes(&embedding), [1, first, 3]);
            network.set_port_up(port(second, 2), true).unwrap();
            let changes = embedding.handle_changes(&network);
            assert!(changes.grew);
            assert_eq!((changes.moves, passes(&embedding)), (vec![], vec![1, first, 3]));
            let (_, status) = embedding.trunks(RED).next().unwrap();
            let backup = status.backup.map(|it| it.wires[0].to.dpid);
            assert_eq!((backup, status.leaving.is_none()), (Some(Dpid(second)), true));
        }
    }
}

/// The short path has one tag, which another link uses.
#[test]
fn a_link_stays_on_its_detour_when_the_short_path_has_no_free_tag() {
    let mut spec = two();
    spec.switches[1].members = vec![Dpid(4)];
    spec.ports[1].at = port(4, 1);
    let given = |numbers: [u64; 2]| numbers.map(|dpid| fabric::embedding::Step::Switch(Dpid(dpid)));
    let mut other = spec.clone();
    other.ports.clear();
    other.hosts.clear();
    other.links[0].route = Route::Given(given([1, 4]).to_vec());
    let (mut network, mut embedding) = (scattered(), tags(2000, 2000));
    embedding.apply(&Network::default(), &wanted(&[(BLUE, &other), (RED, &spec)])).unwrap();
    for dpid in 1..=3 {
        plug(&mut network, port(dpid, 2), port(dpid + 1, 3), 10);
        embedding.handle_changes(&network);
    }
    plug(&mut network, port(4, 2), port(1, 3), 10);
    embedding.handle_changes(&network);
    let (_, status) = embedding.trunks(BLUE).next().unwrap();
    assert!(status.trouble.is_none() && status.active.is_some(), "{:?}", status.trouble);
    assert_eq!(passes(&embedding), [1, 2, 3, 4]);
}

/// One virtual switch on each physical switch, and links between some of them.
fn spread(switches: u64, links: &[(u64, u64, Option<Disjoint>)]) -> Spec {
    let switches_of = (0..switches).map(|dpid| switch(0xa0 + dpid, &[dpid]));
    let mut spec = Spec { switches: switches_of.collect(), ..Spec::default() };
    for (&(a, b, protection), number) in links.iter().zip(1..) {
        let (a, b) = (a % switches, b % switches);
        if a != b {
            let ends = link((0xa0 + a, number), (0xa0 + b, number));
            spec.links.push(fabric::embedding::LinkSpec { protection, ..ends });
        }
    }
    spec
}

proptest! {
    /// Wires are discovered in any order. In the end each link has the path that it would have on the complete network,
    /// or an equally good path.
    #[test]
    fn links_discovered_in_sequence_give_paths_as_good_as_discovered_at_once(
        switches in 2_u64..8,
        wires in proptest::collection::vec((0_u64..8, 0_u64..8), 1..13),
        links in proptest::collection::vec(
            (0_u64..8, 0_u64..8, proptest::option::of(Just(Disjoint::Links))), 1..5),
    ) {
        let spec = spread(switches, &links);
        let mut network = Network::default();
        (0..switches).for_each(|dpid| { network.add_switch(Dpid(dpid)).unwrap(); });
        let mut grown = embedding();
        prop_assert!(grown.apply(&Network::default(), &wanted(&[(RED, &spec)])).is_ok());
        for (&(a, b), number) in wires.iter().zip(1..) {
            let (a, b) = (port(a % switches, number), port(b % switches, number));
            if a.dpid != b.dpid {
                network.add_port(a).unwrap();
                network.add_port(b).unwrap();
                plug(&mut network, a, b, 10);
            }
            let parted = grown.handle_changes(&network).parted;
            all_follow(&network, &mut grown, parted);
        }
        let mut at_once = embedding();
        at_once.apply(&Network::default(), &wanted(&[(RED, &spec)])).unwrap();
        at_once.handle_changes(&network);
        let place = |status: TrunkStatus<'_>| {
            (status.backup.is_none(), status.active.map(|active| active.wires.len()))
        };
        for ((id, is), (_, best)) in grown.trunks(RED).zip(at_once.trunks(RED)) {
            prop_assert_eq!(place(is), place(best), "{:?}", id);
            if let Some(active) = is.active {
                let tags = active.tags.values().chain(is.backup.iter().flat_map(|it| it.tags.values()));
                prop_assert!(tags.clone().count() > 0 && tags.clone().all(|tags| !tags.is_empty()));
            }
        }
        prop_assert_eq!(grown.tags_in_use(), tags_borne(&grown));
        grown.stop_growing();
        let saved = grown.export();
        prop_assert_eq!(grown.handle_changes(&network).moves, []);
        prop_assert_eq!(grown.export(), saved);
    }
}

/// The number of tags of all paths.
fn tags_borne(embedding: &Embedding) -> usize {
    let routes = embedding.trunks(RED).flat_map(|(_, it)| it.active.into_iter().chain(it.backup));
    routes.flat_map(|route| route.tags.values()).map(Vec::len).sum()
}
