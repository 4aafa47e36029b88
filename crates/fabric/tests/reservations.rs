//! Tests of reservations for virtual links on networks whose wires fail and recover.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

mod common;

use common::{builtin, megabits, network, small, switch};
use fabric::paths::Disjoint;
use fabric::reservations::{Choice, Move, Request, ReservationId, Reservations};
use fabric::{Bandwidth, End, Error, LinkId, Network, Path, PortId};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A request for a path from the first switch to the last switch.
fn request(network: &Network, bandwidth: u64) -> Request {
    Request {
        from: switch(network, 0),
        to: switch(network, network.switch_slots() as u64 - 1),
        bandwidth: megabits(bandwidth),
        choice: Choice::Shortest,
        protection: None,
        reverts: false,
    }
}

/// The ports at the near ends of all wires between switches.
fn wires(network: &Network) -> Vec<PortId> {
    let near = |(id, link): (LinkId, &fabric::Link)| match (link.from, link.to) {
        (End::Switch { port, .. }, End::Switch { .. }) if id < id.reverse() => Some(port),
        _ => None,
    };
    network.links().filter_map(near).collect()
}

/// Checks the invariants that hold at every instant.
fn check(network: &Network, reservations: &Reservations) -> Result<(), TestCaseError> {
    let mut expected: BTreeMap<LinkId, u64> = BTreeMap::new();
    for (_, reservation) in reservations.iter() {
        let request = reservation.request();
        for path in reservation.active().into_iter().chain(reservation.backup()) {
            prop_assert!(path.is_up(network));
            let links = path.links().to_vec();
            let given = Path::given(network, request.from, request.to, links);
            prop_assert_eq!(given.as_ref(), Ok(path));
            for link in path.links().iter().flat_map(|link| [*link, link.reverse()]) {
                *expected.entry(link).or_default() += request.bandwidth.bits_per_second();
            }
        }
        if let (Some(active), Some(backup)) = (reservation.active(), reservation.backup()) {
            prop_assert!(active.is_disjoint(backup, network, request.protection.unwrap()));
        }
    }
    for (id, link) in network.links() {
        let reserved = reservations.reserved(id);
        prop_assert_eq!(reserved.bits_per_second(), expected.get(&id).copied().unwrap_or(0));
        prop_assert!(reserved <= link.capacity, "{} of {}", reserved, link.capacity);
    }
    Ok(())
}

fn any_request() -> impl Strategy<Value = (u64, u64, u64, bool, Option<Disjoint>, bool)> {
    let protection =
        prop_oneof![Just(None), Just(Some(Disjoint::Links)), Just(Some(Disjoint::Switches))];
    (0_u64..8, 0_u64..8, 0_u64..3, any::<bool>(), protection, any::<bool>())
}

/// The shortest path cuts the network in two, but two longer paths do not.
#[test]
fn a_reservation_without_path_gets_paths_with_a_backup_after_recovery() {
    let between = [[0, 1], [1, 2], [2, 7], [1, 3], [3, 4], [4, 7], [0, 5], [5, 6], [6, 2]];
    let mut network = network(8, &between.map(|[a, b]| (a, b, 10)));
    let mut reservations = Reservations::default();
    let protection = Some(Disjoint::Links);
    let request = Request { protection, ..request(&network, 1) };
    let hops = |reservations: &Reservations| {
        let it = reservations.get(ReservationId(1)).unwrap();
        (it.active().map(Path::hops), it.backup().map(Path::hops))
    };
    reservations.reserve(&network, ReservationId(1), request).unwrap();
    assert_eq!(hops(&reservations), (Some(4), Some(4)));
    let near = [wires(&network)[0], wires(&network)[6]];
    for (is_up, expected) in [(false, (None, None)), (true, (Some(4), Some(4)))] {
        let changed = near.map(|at| network.set_port_up(at, is_up).unwrap()).concat();
        reservations.handle_changes(&network, &changed);
        assert_eq!(hops(&reservations), expected);
    }
}

proptest! {
    #[test]
    fn reserved_bandwidth_is_correct_after_any_failures_and_recoveries(
        mut network in small(),
        requests in proptest::collection::vec(any_request(), 1..12),
        flaps in proptest::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..20),
    ) {
        let switches = network.switch_slots() as u64;
        let mut reservations = Reservations::default();
        let mut active: BTreeMap<ReservationId, Option<Path>> = BTreeMap::new();
        for ((from, to, bandwidth, widest, protection, reverts), id) in requests.into_iter().zip(0..) {
            let request = Request {
                from: switch(&network, from % switches),
                to: switch(&network, to % switches),
                bandwidth: megabits(bandwidth),
                choice: if widest { Choice::Widest } else { Choice::Shortest },
                protection,
                reverts,
            };
            if let Ok(made) = reservations.reserve(&network, ReservationId(id), request) {
                active.insert(ReservationId(id), made.active().cloned());
            }
            check(&network, &reservations)?;
        }
        let wires = wires(&network);
        for (wire, up) in flaps {
            if wires.is_empty() { break; }
            let changed = network.set_port_up(*wire.get(&wires), up).unwrap();
            for Move { id, from, to } in reservations.handle_changes(&network, &changed) {
                // The reported moves are the real moves.
                prop_assert_eq!(active.insert(id, to), Some(from));
            }
            check(&network, &reservations)?;
            for (id, reservation) in reservations.iter() {
                prop_assert_eq!(Some(&reservation.active().cloned()), active.get(&id));
                let request = reservation.request();
                if request.bandwidth == Bandwidth::ZERO {
                    // A request without bandwidth has a path if there is any path.
                    let connected = fabric::paths::Distances::to(&network, request.to)
                        .hops(request.from).is_some();
                    prop_assert_eq!(reservation.active().is_some(), connected);
                }
            }
        }
        for id in active.into_keys() {
            reservations.release(id).unwrap();
        }
        check(&network, &reservations)?;
        prop_assert!(network.links().all(|(link, _)| reservations.reserved(link) == Bandwidth::ZERO));
    }
}

#[test]
fn a_refused_reservation_reports_the_bandwidth_that_is_left() {
    // Two paths: 10 Mbit/s directly, 4 Mbit/s by the detour.
    let network = network(3, &[(0, 2, 10), (0, 1, 4), (1, 2, 4)]);
    let mut reservations = Reservations::default();
    let mut next = 0;
    let mut check = |bandwidth, protection, expected: Result<usize, Error>| {
        let request = Request { protection, ..request(&network, bandwidth) };
        next += 1;
        let found = reservations.reserve(&network, ReservationId(next), request);
        assert_eq!(found.map(|made| made.active().unwrap().hops()), expected, "{bandwidth}");
    };
    check(7, None, Ok(1));
    check(5, None, Err(Error::NoBandwidth(megabits(4))));
    check(4, None, Ok(2));
    check(2, Some(Disjoint::Links), Err(Error::NoBackup));
    check(3, None, Ok(1));
    check(1, None, Err(Error::NoBandwidth(megabits(0))));
    check(0, Some(Disjoint::Switches), Ok(1));

    let again = reservations.reserve(&network, ReservationId(1), request(&network, 0));
    assert_eq!(again.map(|_| ()), Err(Error::DuplicateId(1)));
    assert_eq!(reservations.release(ReservationId(99)).map(drop), Err(Error::UnknownId(99)));
}

#[test]
fn a_failed_path_moves_to_the_backup_and_reverts_only_if_requested() {
    let mut network = network(4, &[(0, 3, 10), (0, 1, 10), (1, 3, 10), (0, 2, 10), (2, 3, 10)]);
    let direct = wires(&network)[0];
    let mut reservations = Reservations::default();
    for (id, reverts) in [(1, true), (2, false)] {
        let request =
            Request { protection: Some(Disjoint::Switches), reverts, ..request(&network, 5) };
        reservations.reserve(&network, ReservationId(id), request).unwrap();
    }
    let hops = |reservations: &Reservations, id| {
        let it = reservations.get(ReservationId(id)).unwrap();
        (it.active().map(Path::hops), it.backup().map(Path::hops))
    };
    assert_eq!([1, 2].map(|id| hops(&reservations, id)), [(Some(1), Some(2)); 2]);

    let changed = network.set_port_up(direct, false).unwrap();
    let moves = reservations.handle_changes(&network, &changed);
    assert_eq!(moves.len(), 2);
    assert!(moves.iter().all(|it| it.from.is_some() && it.to.is_some()));
    // Both reservations also have a new backup.
    assert_eq!([1, 2].map(|id| hops(&reservations, id)), [(Some(2), Some(2)); 2]);

    let changed = network.set_port_up(direct, true).unwrap();
    let moves = reservations.handle_changes(&network, &changed);
    assert_eq!(moves.iter().map(|it| it.id.0).collect::<Vec<_>>(), [1]);
    assert_eq!([1, 2].map(|id| hops(&reservations, id).0), [Some(1), Some(2)]);
}

#[test]
fn a_reservation_without_path_gets_a_path_when_a_link_recovers() {
    let mut network = network(2, &[(0, 1, 10)]);
    let wire = wires(&network)[0];
    let mut reservations = Reservations::default();
    reservations.reserve(&network, ReservationId(1), request(&network, 5)).unwrap();
    let changed = network.set_port_up(wire, false).unwrap();
    let moves = reservations.handle_changes(&network, &changed);
    assert!(moves.iter().all(|it| it.from.is_some() && it.to.is_none()) && moves.len() == 1);
    let changed = network.set_port_up(wire, true).unwrap();
    let moves = reservations.handle_changes(&network, &changed);
    assert!(moves.iter().all(|it| it.from.is_none() && it.to.is_some()) && moves.len() == 1);
}

#[test]
fn a_thousand_virtual_links_survive_the_removal_of_a_core_switch() {
    let mut network = builtin("fattree,8");
    let edge = |number: u64| switch(&network, number % 32 + 1);
    let mut reservations = Reservations::default();
    for id in 0..1_000 {
        let (from, to) = (edge(id), edge(id * 7 + 13));
        let (protection, choice) = (Some(Disjoint::Links), Choice::Widest);
        let bandwidth = megabits(10);
        let request = Request { from, to, bandwidth, choice, protection, reverts: false };
        reservations.reserve(&network, ReservationId(id), request).unwrap();
    }
    // The switches s65 to s80 are the core switches.
    let changed = network.remove_switch(fabric::Dpid(65)).unwrap();
    let moves = reservations.handle_changes(&network, &changed);
    assert!(!moves.is_empty() && moves.iter().all(|it| it.to.is_some()));
    check(&network, &reservations).unwrap();
    assert!(reservations.iter().all(|(_, it)| {
        let within = it.request().from == it.request().to;
        it.active().is_some() && (within || it.backup().is_some())
    }));
}
