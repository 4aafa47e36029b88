//! Tests of links that leave a working path: no packet is lost, whichever switches already have their new maps.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::megabits;
use common::spec::*;
use common::walk::{Arrived, Walker, port};
use fabric::embedding::{
    Changes, Embedding, Hop, LinkSpec, PortKind, Route, Spec, Step, SwitchMap,
};
use fabric::paths::Disjoint;
use fabric::{Dpid, Duration, Network};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

type Maps = BTreeMap<Dpid, Arc<SwitchMap>>;

/// The egress of one end of the link between switches 1 and 3.
fn sends(maps: &Maps, first: bool) -> Hop {
    let at = if first { 1 } else { 3 };
    match &maps[&Dpid(at)].members[&RED].ports[&2].kind {
        PortKind::Link { sends: Some(hop), .. } => *hop,
        kind => panic!("{kind:?}"),
    }
}

/// The mixes of switches with old maps and switches with new maps, in which packets are lost.
fn lossy(network: &Network, before: &Maps, after: &Maps) -> Vec<u32> {
    let is_lossy = |mix: &u32| {
        let map = |dpid: u64| {
            let maps = if mix >> (dpid - 1) & 1 == 1 { after } else { before };
            maps.get(&Dpid(dpid)).map(|map| (Dpid(dpid), Arc::clone(map)))
        };
        let maps: Maps = (1..=4).filter_map(map).collect();
        let walker = Walker { network, maps: &maps };
        let forth = walker.follow(Dpid(1), sends(&maps, true));
        let back = walker.follow(Dpid(3), sends(&maps, false));
        let arrived = [(forth, 0xa3), (back, 0xa1)];
        arrived.iter().any(|&(it, at)| it != Arrived::In(RED, virtual_port(at, 2)))
    };
    (0..16).filter(is_lossy).collect()
}

/// The behaviour of a link in a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    /// The ends send by the same path.
    Stays,
    /// The ends send by another path.
    Turns,
}
use Does::{Stays, Turns};

struct Case {
    network: Network,
    embedding: Embedding,
}

impl Case {
    fn new(network: Network, spec: &Spec, mut embedding: Embedding) -> Case {
        embedding.apply(&network, &wanted(&[(RED, spec)])).unwrap();
        Case { network, embedding }
    }

    /// Changes the network, and checks the behaviour of the link; no packet is lost unless the link
    /// has failed.
    fn change(&mut self, does: Does, change: impl FnOnce(&mut Network)) -> Changes {
        let before = self.embedding.switch_maps().clone();
        change(&mut self.network);
        let changes = self.embedding.handle_changes(&self.network);
        self.check(&before, does);
        changes
    }

    fn rejoin(&mut self, does: Does) -> Changes {
        let before = self.embedding.switch_maps().clone();
        let changes = self.embedding.rejoin(&self.network);
        self.check(&before, does);
        assert_eq!(changes.moves, [], "a move is reported when it begins");
        changes
    }

    /// The link moves in steps, and at the end no part of its old path is left.
    fn moves(&mut self, change: impl FnOnce(&mut Network)) {
        let changes = self.change(Stays, change);
        assert_eq!((changes.ports.len(), changes.moves.len()), (0, 1));
        assert!(changes.parted);
        // If the old path is the backup now, nothing is released.
        assert_eq!(self.rejoin(Turns).parted, self.leaves());
        assert!(!self.rejoin(Stays).parted);
        self.check_end();
    }

    fn check(&self, before: &Maps, does: Does) {
        let after = self.embedding.switch_maps();
        for first in [true, false] {
            let turns = sends(before, first) != sends(after, first);
            assert_eq!(turns, does == Turns);
        }
        assert_eq!(lossy(&self.network, before, after), [0; 0], "{does:?}");
    }

    fn check_end(&mut self) {
        let (_, status) = self.embedding.trunks(RED).next().unwrap();
        assert!(status.leaving.is_none());
        let routes = status.active.into_iter().chain(status.backup);
        let borne: usize = routes.flat_map(|it| it.tags.values()).map(Vec::len).sum();
        assert_eq!(self.embedding.tags_in_use(), borne);
        assert!(self.embedding.rejoin(&self.network).is_empty());
    }

    fn passes(&self) -> Vec<u64> {
        let (_, status) = self.embedding.trunks(RED).next().unwrap();
        let wires = &status.active.unwrap().wires;
        wires.iter().map(|wire| wire.to.dpid.0).collect()
    }

    /// Whether a part of the old path is left.
    fn leaves(&self) -> bool {
        let (_, status) = self.embedding.trunks(RED).next().unwrap();
        status.leaving.is_some()
    }

    /// The link fails over at once; packets may be lost.
    fn fails(&mut self, change: impl FnOnce(&mut Network)) {
        let before = self.embedding.switch_maps().clone();
        change(&mut self.network);
        self.embedding.handle_changes(&self.network);
        let after = self.embedding.switch_maps();
        assert!([true, false].iter().all(|&end| sends(&before, end) != sends(after, end)));
        assert_eq!(lossy(&self.network, after, after), [0; 0]);
        assert!(!self.leaves());
    }
}

fn set(at: (u64, u32), is_up: bool) -> impl FnOnce(&mut Network) {
    move |network| _ = network.set_port_up(port(at.0, at.1), is_up).unwrap()
}

fn reverting(change: impl FnOnce(&mut LinkSpec)) -> Spec {
    let mut spec = two();
    spec.links[0].reverts = true;
    change(&mut spec.links[0]);
    spec
}

/// A link that has failed over from the path by the switches 1, 2 and 3.
fn away(protection: Option<Disjoint>) -> Case {
    let spec = reverting(|link| link.protection = protection);
    let mut case = Case::new(ring(), &spec, embedding());
    case.fails(set((2, 2), false));
    assert_eq!(case.passes(), [4, 3]);
    let parted = case.embedding.rejoin(&case.network).parted;
    assert!(!parted);
    case
}

#[test]
fn a_reverting_link_returns_without_packet_loss() {
    for protection in [None, Some(Disjoint::Switches)] {
        let mut case = away(protection);
        case.moves(set((2, 2), true));
        assert_eq!(case.passes(), [2, 3]);
        // The link fails and recovers again.
        case.fails(set((2, 2), false));
        case.moves(set((2, 2), true));
    }
}

#[test]
fn a_link_moves_to_a_better_path_without_packet_loss() {
    for protection in [None, Some(Disjoint::Switches)] {
        let mut network = ring();
        // The active path is 1 - 2 - 4 - 3 for now; other links serve the backup.
        network.set_port_up(port(2, 2), false).unwrap();
        network.set_port_up(port(1, 3), false).unwrap();
        for (a, b) in [((2, 5), (4, 5)), ((1, 6), (3, 6)), ((1, 7), (3, 7))] {
            for (dpid, number) in [a, b] {
                network.add_port(port(dpid, number)).unwrap();
            }
            let [a, b] = [a, b].map(|(dpid, number)| port(dpid, number));
            network.connect(a, b, megabits(10), Duration::ZERO).unwrap();
        }
        for number in [6, 7] {
            network.set_port_up(port(1, number), false).unwrap();
        }
        let mut spec = two();
        spec.links[0].protection = protection;
        let mut case = Case { network, embedding: embedding() };
        case.embedding.apply(&Network::default(), &wanted(&[(RED, &spec)])).unwrap();
        case.embedding.handle_changes(&case.network);
        assert_eq!(case.passes(), [2, 4, 3]);
        // This path was never up before.
        case.moves(set((1, 6), true));
        assert_eq!(case.passes(), [3]);
    }
}

#[test]
fn a_link_moves_away_from_a_physical_link_with_too_little_bandwidth() {
    let spec = |protection| {
        let mut spec = two();
        spec.links[0].bandwidth = megabits(6);
        spec.links[0].protection = protection;
        spec
    };
    let narrow = |network: &mut Network| _ = network.set_capacity(port(1, 2), megabits(5)).unwrap();
    let mut case = Case::new(ring(), &spec(None), embedding());
    assert_eq!(case.passes(), [2, 3]);
    case.moves(narrow);
    assert_eq!(case.passes(), [4, 3]);
    // The rules of a backup are installed already.
    let mut case = Case::new(ring(), &spec(Some(Disjoint::Switches)), embedding());
    assert_eq!(case.change(Turns, narrow).parted, case.leaves());
    assert_eq!(case.passes(), [4, 3]);
    case.rejoin(Stays);
    case.check_end();
}

#[test]
fn a_link_leaves_a_failed_path_at_once() {
    let ways: [fn(&mut Network); 3] = [
        |network| _ = network.set_port_up(port(1, 2), false).unwrap(),
        |network| _ = network.unplug(port(1, 2)).unwrap(),
        |network| _ = network.remove_port(port(1, 2)).unwrap(),
    ];
    for way in ways {
        for protection in [None, Some(Disjoint::Switches)] {
            let mut spec = two();
            spec.links[0].protection = protection;
            Case::new(ring(), &spec, embedding()).fails(way);
        }
    }
    // A path with a refused transit does not work either.
    let mut case = Case::new(ring(), &two(), embedding());
    let refused = case.embedding.switch_map(Dpid(2)).unwrap().transit[..1].iter().copied();
    let before = case.embedding.switch_maps().clone();
    let refused: BTreeSet<_> = refused.collect();
    case.embedding.handle_refused(&case.network, Dpid(2), &refused);
    assert_ne!(sends(&before, true), sends(case.embedding.switch_maps(), true));
}

#[test]
fn a_link_uses_the_working_path_after_a_failure_during_a_move() {
    for protection in [None, Some(Disjoint::Switches)] {
        // The old path fails before the ends send by the new path.
        let mut case = away(protection);
        case.change(Stays, set((2, 2), true));
        case.fails(set((1, 3), false));
        assert_eq!(case.passes(), [2, 3]);
        case.check_end();
        // The old path fails after the ends send by the new path.
        let mut case = away(protection);
        case.change(Stays, set((2, 2), true));
        case.rejoin(Turns);
        let before = case.embedding.switch_maps().clone();
        set((1, 3), false)(&mut case.network);
        case.embedding.handle_changes(&case.network);
        assert_eq!(sends(&before, true), sends(case.embedding.switch_maps(), true));
        case.embedding.rejoin(&case.network);
        case.check_end();
        // The new path fails before the ends send by the new path: the link stays on the old path.
        let mut case = away(protection);
        case.change(Stays, set((2, 2), true));
        case.change(Stays, set((1, 2), false));
        assert_eq!(case.passes(), [4, 3]);
        case.rejoin(Stays);
        case.check_end();
        // The new path fails after the ends send by the new path: the link returns at once.
        let mut case = away(protection);
        case.change(Stays, set((2, 2), true));
        case.rejoin(Turns);
        case.fails(set((1, 2), false));
        assert_eq!(case.passes(), [4, 3]);
        case.check_end();
    }
}

/// The old path and the new path share the first wire, which has one tag or two tags.
#[test]
fn a_link_moves_at_once_when_tags_do_not_suffice_for_both_paths() {
    for (most, is_at_once) in [(2000, true), (2001, false)] {
        let mut network = ring();
        let [a, b] = [port(2, 5), port(4, 5)];
        network.add_port(a).unwrap();
        network.add_port(b).unwrap();
        network.connect(a, b, megabits(10), Duration::ZERO).unwrap();
        network.set_port_up(port(1, 3), false).unwrap();
        let mut case = Case::new(network, &reverting(|_| ()), tags(2000, most));
        set((2, 2), false)(&mut case.network);
        case.embedding.handle_changes(&case.network);
        assert_eq!(case.passes(), [2, 4, 3]);
        if is_at_once {
            set((2, 2), true)(&mut case.network);
            case.embedding.handle_changes(&case.network);
            case.embedding.rejoin(&case.network);
            case.check_end();
        } else {
            case.moves(set((2, 2), true));
        }
        assert_eq!(case.passes(), [2, 3]);
        let maps = case.embedding.switch_maps();
        assert_eq!(lossy(&case.network, maps, maps), [0; 0]);
    }
}

#[test]
fn tags_of_a_path_being_left_are_available_to_a_new_request() {
    let blue = |by: u64| {
        let steps = [1, by, 3].map(|dpid| Step::Switch(Dpid(dpid)));
        let mut blue = Spec { ports: Vec::new(), hosts: Vec::new(), ..two() };
        blue.links[0].route = Route::Given(steps.to_vec());
        blue
    };
    let moving = || {
        let mut case = Case::new(ring(), &reverting(|_| ()), tags(5, 5));
        case.fails(set((2, 2), false));
        case.change(Stays, set((2, 2), true));
        case
    };
    // A new request gets the tags of the path that the link leaves.
    let mut case = moving();
    let both = wanted(&[(RED, &reverting(|_| ())), (BLUE, &blue(4))]);
    let predicted = case.embedding.dry_run(&case.network, &both).unwrap();
    assert_eq!(case.embedding.apply(&case.network, &both).unwrap(), predicted);
    for tenant in [RED, BLUE] {
        let far = [Arrived::In(tenant, virtual_port(0xa3, 2))];
        assert_eq!(reach(&case.network, &case.embedding, tenant, virtual_port(0xa1, 2)), far);
    }
    // A request that is still refused changes nothing.
    let mut case = moving();
    let both = wanted(&[(RED, &reverting(|_| ())), (BLUE, &blue(2))]);
    let before = case.embedding.switch_maps().clone();
    case.embedding.apply(&case.network, &both).unwrap_err();
    assert_eq!(case.embedding.switch_maps(), &before);
    case.rejoin(Turns);
}

/// The move ends although another link begins new moves, and each step of the move lasts a full round.
#[test]
fn a_move_is_completed_while_another_link_flaps() {
    let mut network = ring();
    let red = reverting(|link| link.bandwidth = megabits(2));
    let blue = flapping(&mut network);
    let mut case = Case { network, embedding: embedding() };
    case.embedding.apply(&case.network, &wanted(&[(RED, &red), (BLUE, &blue)])).unwrap();
    case.fails(set((2, 2), false));
    flap(&mut case.network, &mut case.embedding);
    case.change(Stays, set((2, 2), true));
    // The move begins during a round, so the first `rejoin` ends no step.
    for does in [Stays, Turns, Stays] {
        let before = case.embedding.switch_maps().clone();
        flap(&mut case.network, &mut case.embedding);
        case.check(&before, Stays);
        assert!(case.leaves());
        assert!(case.rejoin(does).parted);
    }
    assert!(!case.leaves());
    assert_eq!(case.passes(), [2, 3]);
}

#[test]
fn after_a_restart_during_a_move_the_link_is_on_the_new_path() {
    for is_moving in [false, true] {
        let mut case = away(None);
        case.change(Stays, set((2, 2), true));
        if !is_moving {
            case.rejoin(Turns);
            case.rejoin(Stays);
        }
        let mut after = embedding();
        after.restore(&case.embedding.export()).unwrap();
        after.apply(&case.network, case.embedding.wanted()).unwrap();
        after.stop_waiting(&case.network);
        case.embedding = after;
        assert_eq!(case.passes(), [2, 3]);
    }
}
