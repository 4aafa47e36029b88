//! Bandwidth that links set aside: who has it, and who gets it when it is given back.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::megabits;
use common::spec::*;
use common::walk::port;
use fabric::embedding::{Embedding, Reason, Refusal, Spec, Trouble, TrunkStatus};
use fabric::paths::Disjoint;
use fabric::{Dpid, Duration, Error, Network, TenantId};

/// A tenant's link between switches 1 and another, of so many Mbit/s.
fn bare(to: u64, bandwidth: u64) -> Spec {
    let mut spec = two();
    spec.ports.clear();
    spec.hosts.clear();
    spec.switches[1].members = vec![Dpid(to)];
    spec.links[0].bandwidth = megabits(bandwidth);
    spec
}

fn status(embedding: &Embedding, tenant: TenantId) -> TrunkStatus<'_> {
    embedding.trunks(tenant).next().unwrap().1
}

/// The switches that a tenant's link passes, from first to last; none if it is nowhere.
fn passes(embedding: &Embedding, tenant: TenantId) -> Vec<u64> {
    let wires = status(embedding, tenant).active.map(|it| it.wires.as_slice()).unwrap_or_default();
    let from = wires.iter().map(|wire| wire.from.dpid.0);
    from.chain(wires.last().map(|wire| wire.to.dpid.0)).collect()
}

/// Switches from 1 on, each with a port 2 that leads on and a port 3 that leads back; 10 Mbit/s between these two and the next.
fn joined(switches: u64, wires: &[u64]) -> Network {
    let mut network = Network::default();
    for dpid in 1..=switches {
        network.add_switch(Dpid(dpid)).unwrap();
        (1..=3).for_each(|number| network.add_port(port(dpid, number)).unwrap());
    }
    for &dpid in wires {
        let (a, b) = (port(dpid, 2), port(dpid % 4 + 1, 3));
        network.connect(a, b, megabits(10), Duration(0)).unwrap();
    }
    network
}

/// After a restart, before any switch has come back.
fn restarted(before: &Embedding) -> Embedding {
    let mut after = embedding();
    after.restore(&before.export()).unwrap();
    after.apply(&Network::default(), before.wanted()).unwrap();
    assert!(after.trunks(RED).all(|(_, status)| status.is_held));
    after
}

fn no_room(refusals: &[Refusal], tenant: TenantId, left: u64) {
    let why = Reason::Unroutable(Trouble::Route(Error::NoBandwidth(megabits(left))));
    assert!(refusals.len() == 1 && refusals[0].tenant == tenant, "{refusals:?}");
    assert_eq!(refusals[0].why, why);
}

/// Its links are found before all of its path is.
#[test]
fn what_is_held_has_its_bandwidth() {
    let (red, blue) = (bare(4, 6), bare(2, 6));
    let mut before = embedding();
    before.apply(&joined(4, &[1, 2, 3]), &wanted(&[(RED, &red)])).unwrap();
    let mut after = restarted(&before);
    // The last switch is late.
    let part = joined(3, &[1, 2]);
    after.handle_changes(&part);
    assert!(status(&after, RED).is_held);
    let both = wanted(&[(RED, &red), (BLUE, &blue)]);
    no_room(&after.apply(&part, &both).unwrap_err(), BLUE, 4);
    assert_eq!(after.handle_changes(&joined(4, &[1, 2, 3])).ports, []);
    assert!(!status(&after, RED).is_held);
    assert_eq!(status(&after, RED).active, status(&before, RED).active);
    // What fits beside it is placed meanwhile, and when it is given up its bandwidth is free.
    let mut after = restarted(&before);
    after.handle_changes(&part);
    after.apply(&part, &wanted(&[(RED, &red), (BLUE, &bare(2, 4))])).unwrap();
    assert_eq!(passes(&after, BLUE), [1, 2]);
    after.apply(&part, &wanted(&[(BLUE, &blue)])).unwrap();
    assert_eq!(passes(&after, BLUE), [1, 2]);
}

/// Nor does a backup lose it, or anything move there.
#[test]
fn what_is_held_keeps_its_backup() {
    let mut red = bare(3, 6);
    red.links[0].protection = Some(Disjoint::Switches);
    let whole = joined(4, &[1, 2, 3, 4]);
    let mut before = embedding();
    before.apply(&whole, &wanted(&[(RED, &red)])).unwrap();
    let mut after = restarted(&before);
    let part = joined(3, &[1, 2]);
    after.handle_changes(&part);
    let both = wanted(&[(RED, &red), (BLUE, &bare(3, 6))]);
    no_room(&after.apply(&part, &both).unwrap_err(), BLUE, 4);
    after.handle_changes(&whole);
    let (was, is) = (status(&before, RED), status(&after, RED));
    assert_eq!((is.active, is.backup, is.is_held), (was.active, was.backup, false));
}

/// The ring 1 - 2 - 3 - 4 - 1 of 10 Mbit/s, each of whose ways red and blue take 6 of; then red's is cut.
fn stranded() -> (Network, Embedding, [Spec; 2]) {
    let (mut network, mut embedding) = (joined(4, &[1, 2, 3, 4]), embedding());
    let specs = [bare(3, 6), bare(3, 6)];
    embedding.apply(&network, &wanted(&[(RED, &specs[0]), (BLUE, &specs[1])])).unwrap();
    assert_eq!((passes(&embedding, RED), passes(&embedding, BLUE)), (vec![1, 2, 3], vec![1, 4, 3]));
    network.set_port_up(port(2, 2), false).unwrap();
    embedding.handle_changes(&network);
    assert!(passes(&embedding, RED).is_empty());
    (network, embedding, specs)
}

#[test]
fn what_lost_its_way_says_whether_there_is_one_without_room() {
    let (mut network, mut embedding, _) = stranded();
    let no_room = Trouble::Route(Error::NoBandwidth(megabits(4)));
    assert_eq!(status(&embedding, RED).trouble, Some(no_room));
    network.set_port_up(port(3, 2), false).unwrap();
    embedding.handle_changes(&network);
    assert_eq!(status(&embedding, BLUE).trouble, Some(Trouble::Route(Error::NoPath)));
}

#[test]
fn what_lost_its_way_gets_the_room_that_another_gives_up() {
    let stop = |spec: &mut Spec| spec.links.clear();
    let shrink = |spec: &mut Spec| spec.links[0].bandwidth = megabits(4);
    let elsewhere = |spec: &mut Spec| spec.switches[1].members = vec![Dpid(2)];
    for change in [stop, shrink, elsewhere] {
        let (network, mut embedding, [red, mut blue]) = stranded();
        change(&mut blue);
        let wanted = wanted(&[(RED, &red), (BLUE, &blue)]);
        let dry = embedding.dry_run(&network, &wanted);
        let done = embedding.apply(&network, &wanted);
        assert_eq!(passes(&embedding, RED), [1, 4, 3]);
        assert_eq!(dry, done);
        let ups = done.unwrap().ports.into_iter().filter(|it| it.tenant == RED);
        assert!(ups.map(|it| it.is).eq([Some(true); 2]));
    }
    let (network, mut embedding, [red, _]) = stranded();
    embedding.apply(&network, &wanted(&[(RED, &red)])).unwrap();
    assert_eq!(passes(&embedding, RED), [1, 4, 3]);
}

/// Those who are new come before those who wait.
#[test]
fn what_lost_its_way_is_no_reason_to_refuse_what_is_new() {
    let (network, mut embedding, [red, blue]) = stranded();
    let green = TenantId(3);
    embedding.apply(&network, &wanted(&[(RED, &red), (green, &blue)])).unwrap();
    assert_eq!((passes(&embedding, RED), passes(&embedding, green)), (vec![], vec![1, 4, 3]));
}

#[test]
fn a_backup_is_found_when_there_is_room() {
    let (mut network, mut embedding) = (joined(4, &[1, 2, 3, 4]), embedding());
    let (mut red, blue) = (bare(3, 6), bare(4, 6));
    red.links[0].protection = Some(Disjoint::Switches);
    embedding.apply(&network, &wanted(&[(RED, &red)])).unwrap();
    network.set_port_up(port(3, 2), false).unwrap();
    embedding.handle_changes(&network);
    embedding.apply(&network, &wanted(&[(RED, &red), (BLUE, &blue)])).unwrap();
    network.set_port_up(port(3, 2), true).unwrap();
    embedding.handle_changes(&network);
    assert!(status(&embedding, RED).backup.is_none());
    let changes = embedding.apply(&network, &wanted(&[(RED, &red)])).unwrap();
    assert_eq!(status(&embedding, RED).backup.unwrap().wires.len(), 2);
    assert!(changes.ports.iter().all(|it| it.tenant == BLUE), "red sees nothing of it");
}

#[test]
fn a_link_reverts_when_there_is_room() {
    let (mut network, mut embedding) = (joined(4, &[1, 2, 3, 4]), embedding());
    let (mut red, blue) = (bare(3, 6), bare(2, 6));
    red.links[0].reverts = true;
    embedding.apply(&network, &wanted(&[(RED, &red)])).unwrap();
    network.set_port_up(port(2, 2), false).unwrap();
    embedding.handle_changes(&network);
    embedding.apply(&network, &wanted(&[(RED, &red), (BLUE, &blue)])).unwrap();
    network.set_port_up(port(2, 2), true).unwrap();
    embedding.handle_changes(&network);
    assert_eq!((passes(&embedding, RED), passes(&embedding, BLUE)), (vec![1, 4, 3], vec![1, 2]));
    let changes = embedding.apply(&network, &wanted(&[(RED, &red)])).unwrap();
    assert_eq!((passes(&embedding, RED), changes.moves.len()), (vec![1, 2, 3], 2));
}
