//! Tests of reserved bandwidth: which links keep bandwidth, and which links get released bandwidth.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::megabits;
use common::spec::*;
use common::walk::port;
use fabric::embedding::{Embedding, Oversubscribed, Reason, Refusal, Spec, Trouble, TrunkStatus};
use fabric::paths::Disjoint;
use fabric::{Bandwidth, Dpid, Duration, Error, Network, TenantId};

/// A tenant's link between switch 1 and another switch, with this bandwidth in Mbit/s.
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

/// The switches on the path of a tenant's link, from first to last; empty without a path.
fn passes(embedding: &Embedding, tenant: TenantId) -> Vec<u64> {
    let wires = status(embedding, tenant).active.map(|it| it.wires.as_slice()).unwrap_or_default();
    let from = wires.iter().map(|wire| wire.from.dpid.0);
    from.chain(wires.last().map(|wire| wire.to.dpid.0)).collect()
}

/// Switches from 1 on. Port 2 of each switch leads to the next switch, and port 3 leads to the previous switch, with 10
/// Mbit/s.
fn joined(switches: u64, wires: &[u64]) -> Network {
    let mut network = Network::default();
    for dpid in 1..=switches {
        network.add_switch(Dpid(dpid)).unwrap();
        (1..=3).for_each(|number| network.add_port(port(dpid, number)).unwrap());
    }
    for &dpid in wires {
        let (a, b) = (port(dpid, 2), port(dpid % 4 + 1, 3));
        network.connect(a, b, megabits(10), Duration::ZERO).unwrap();
    }
    network
}

/// The embedding after a restart, before any switch connects.
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

/// A part of the path is discovered before the whole path.
#[test]
fn a_held_link_keeps_its_bandwidth_after_a_restart() {
    let (red, blue) = (bare(4, 6), bare(2, 6));
    let mut before = embedding();
    before.apply(&joined(4, &[1, 2, 3]), &wanted(&[(RED, &red)])).unwrap();
    let mut after = restarted(&before);
    // Switch 4 is not connected yet.
    let part = joined(3, &[1, 2]);
    after.handle_changes(&part);
    assert!(status(&after, RED).is_held);
    let both = wanted(&[(RED, &red), (BLUE, &blue)]);
    no_room(&after.apply(&part, &both).unwrap_err(), BLUE, 4);
    assert_eq!(after.handle_changes(&joined(4, &[1, 2, 3])).ports, []);
    assert!(!status(&after, RED).is_held);
    assert_eq!(status(&after, RED).active, status(&before, RED).active);
    // Requests that fit are placed while the link is held. When the held link is removed, its bandwidth is free.
    let mut after = restarted(&before);
    after.handle_changes(&part);
    after.apply(&part, &wanted(&[(RED, &red), (BLUE, &bare(2, 4))])).unwrap();
    assert_eq!(passes(&after, BLUE), [1, 2]);
    after.apply(&part, &wanted(&[(BLUE, &blue)])).unwrap();
    assert_eq!(passes(&after, BLUE), [1, 2]);
}

#[test]
fn a_held_link_keeps_the_bandwidth_of_its_backup_after_a_restart() {
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

/// The switch on the active path never connects again.
#[test]
fn a_held_link_uses_its_backup_when_a_switch_does_not_return() {
    let mut red = bare(3, 6);
    red.links[0].protection = Some(Disjoint::Switches);
    let mut before = embedding();
    before.apply(&joined(4, &[1, 2, 3, 4]), &wanted(&[(RED, &red)])).unwrap();
    let mut after = restarted(&before);
    let mut part = joined(4, &[3, 4]);
    part.remove_switch(Dpid(2)).unwrap();
    after.handle_changes(&part);
    assert!(status(&after, RED).is_held);
    assert_eq!(after.stop_waiting(&part).ports, []);
    let is = status(&after, RED);
    assert_eq!((is.active, is.backup), (status(&before, RED).backup, None));
    assert_eq!(after.tags_in_use(), 4);
}

/// The ring 1 - 2 - 3 - 4 - 1 of 10 Mbit/s. Red and blue each use 6 Mbit/s of one direction around the ring; then red's
/// path fails.
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
fn a_link_without_path_reports_no_bandwidth_or_no_path() {
    let (mut network, mut embedding, _) = stranded();
    let no_room = Trouble::Route(Error::NoBandwidth(megabits(4)));
    assert_eq!(status(&embedding, RED).trouble, Some(no_room));
    network.set_port_up(port(3, 2), false).unwrap();
    embedding.handle_changes(&network);
    assert_eq!(status(&embedding, BLUE).trouble, Some(Trouble::Route(Error::NoPath)));
}

#[test]
fn a_link_without_path_gets_the_bandwidth_released_by_another_tenant() {
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

#[test]
fn a_new_link_is_placed_before_a_link_without_path() {
    let (network, mut embedding, [red, blue]) = stranded();
    let green = TenantId(3);
    embedding.apply(&network, &wanted(&[(RED, &red), (green, &blue)])).unwrap();
    assert_eq!((passes(&embedding, RED), passes(&embedding, green)), (vec![], vec![1, 4, 3]));
}

#[test]
fn a_backup_is_found_when_bandwidth_is_released() {
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
fn a_link_reverts_when_bandwidth_on_its_path_is_released() {
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

/// A link that returns to its preferred path leaves room for a link that could not use the released path.
#[test]
fn bandwidth_released_by_a_reverting_link_is_given_to_a_waiting_link() {
    let (mut network, mut embedding) = (joined(4, &[1, 2, 3, 4]), embedding());
    let (mut red, blue, green) = (bare(3, 6), bare(2, 6), bare(4, 6));
    red.links[0].reverts = true;
    embedding.apply(&network, &wanted(&[(RED, &red)])).unwrap();
    network.set_port_up(port(2, 2), false).unwrap();
    embedding.handle_changes(&network);
    // Green has a wire of its own, and this wire fails.
    network.add_port(port(1, 7)).unwrap();
    network.add_port(port(4, 7)).unwrap();
    network.connect(port(1, 7), port(4, 7), megabits(6), Duration::ZERO).unwrap();
    let third = TenantId(3);
    embedding.stop_growing();
    embedding.apply(&network, &wanted(&[(RED, &red), (BLUE, &blue), (third, &green)])).unwrap();
    network.set_port_up(port(1, 7), false).unwrap();
    network.set_port_up(port(2, 2), true).unwrap();
    embedding.handle_changes(&network);
    assert_eq!((passes(&embedding, RED), passes(&embedding, third)), (vec![1, 4, 3], vec![]));
    embedding.apply(&network, &wanted(&[(RED, &red), (third, &green)])).unwrap();
    assert_eq!((passes(&embedding, RED), passes(&embedding, third)), (vec![1, 2, 3], vec![1, 4]));
}

/// The reserved bandwidth and the capacity of the wire at port 2 of a switch.
fn load(network: &Network, embedding: &Embedding, dpid: u64) -> [Bandwidth; 2] {
    let link = network.link_from(port(dpid, 2)).unwrap();
    [embedding.reservations().reserved(link), network.link(link).capacity]
}

#[test]
fn links_that_lose_their_bandwidth_move_to_another_path() {
    let (mut network, mut embedding) = (joined(4, &[1, 2, 3, 4]), embedding());
    let spec = bare(3, 3);
    let third = TenantId(3);
    embedding.apply(&network, &wanted(&[(BLUE, &spec)])).unwrap();
    embedding.apply(&network, &wanted(&[(RED, &spec), (BLUE, &spec)])).unwrap();
    embedding.apply(&network, &wanted(&[(RED, &spec), (BLUE, &spec), (third, &spec)])).unwrap();
    let all = |embedding: &Embedding| [RED, BLUE, third].map(|it| passes(embedding, it)[1]);
    assert_eq!(all(&embedding), [2, 2, 2]);
    // As few links as possible move: the links that were placed last.
    network.set_capacity(port(1, 2), megabits(6)).unwrap();
    let changes = embedding.handle_changes(&network);
    assert_eq!(all(&embedding), [2, 2, 4]);
    assert_eq!((changes.moves.len(), changes.ports, changes.oversubscribed), (1, vec![], vec![]));
    network.set_capacity(port(2, 2), megabits(5)).unwrap();
    embedding.handle_changes(&network);
    assert_eq!(all(&embedding), [4, 2, 4]);
    assert_eq!(load(&network, &embedding, 1), [3, 6].map(megabits));
    // Moved links do not return when bandwidth is free again.
    network.set_capacity(port(2, 2), megabits(20)).unwrap();
    assert!(embedding.handle_changes(&network).is_empty());
}

#[test]
fn an_oversubscribed_link_without_another_path_stays_and_is_reported_once() {
    let (mut network, mut embedding) = (joined(4, &[1, 2, 3, 4]), embedding());
    let (red, blue) = (bare(3, 6), bare(3, 6));
    embedding.apply(&network, &wanted(&[(RED, &red), (BLUE, &blue)])).unwrap();
    network.set_capacity(port(1, 2), megabits(5)).unwrap();
    let changes = embedding.handle_changes(&network);
    let [reserved, capacity] = [6, 5].map(megabits);
    let reported = Oversubscribed { at: port(1, 2), reserved, capacity };
    assert_eq!((changes.oversubscribed.as_slice(), changes.is_empty()), (&[reported][..], true));
    assert_eq!(passes(&embedding, RED), [1, 2, 3]);
    assert_eq!(embedding.handle_changes(&network).oversubscribed, []);
    // No other link is placed on the narrow wire, and after a restart the link is on the same path.
    let green = wanted(&[(RED, &red), (BLUE, &blue), (TenantId(3), &bare(2, 5))]);
    no_room(&embedding.apply(&network, &green).unwrap_err(), TenantId(3), 4);
    let mut after = restarted(&embedding);
    let changes = after.handle_changes(&network);
    assert_eq!((changes.oversubscribed, passes(&after, RED)), (vec![reported], vec![1, 2, 3]));
    // The link moves when bandwidth is free, after a release or on wires with more capacity.
    let (mut wider, mut other) = (network.clone(), embedding.clone());
    embedding.apply(&network, &wanted(&[(RED, &red)])).unwrap();
    assert_eq!(passes(&embedding, RED), [1, 4, 3]);
    for dpid in [3, 4] {
        wider.set_capacity(port(dpid, 2), megabits(20)).unwrap();
    }
    other.handle_changes(&wider);
    assert_eq!((passes(&other, RED), passes(&other, BLUE)), (vec![1, 4, 3], vec![1, 4, 3]));
}

#[test]
fn a_backup_on_a_narrow_link_moves_and_the_active_path_stays() {
    let (mut network, mut embedding) = (joined(4, &[1, 2, 3, 4]), embedding());
    for number in [7, 8] {
        network.add_port(port(1, number)).unwrap();
        network.add_port(port(3, number)).unwrap();
        network.connect(port(1, number), port(3, number), megabits(3), Duration::ZERO).unwrap();
    }
    let mut red = bare(3, 3);
    red.links[0].protection = Some(Disjoint::Links);
    embedding.apply(&network, &wanted(&[(RED, &red)])).unwrap();
    embedding.apply(&network, &wanted(&[(RED, &red), (BLUE, &bare(2, 6))])).unwrap();
    let wires = |embedding: &Embedding| {
        let status = status(embedding, RED);
        [status.active, status.backup].map(|it| it.unwrap().wires[0].from.port.get())
    };
    assert_eq!(wires(&embedding), [7, 8]);
    network.set_capacity(port(1, 8), megabits(2)).unwrap();
    assert_eq!(embedding.handle_changes(&network).moves, []);
    assert_eq!(wires(&embedding), [7, 2]);
    // A link that moves uses its backup, whose rules are already installed.
    network.set_capacity(port(1, 7), megabits(2)).unwrap();
    assert_eq!(embedding.handle_changes(&network).moves.len(), 1);
    assert_eq!(wires(&embedding), [2, 3]);
}

#[test]
fn a_link_without_path_gets_a_path_when_physical_links_gain_bandwidth() {
    let (mut network, mut embedding, _) = stranded();
    network.set_capacity(port(3, 2), megabits(12)).unwrap();
    embedding.handle_changes(&network);
    assert!(passes(&embedding, RED).is_empty());
    network.set_capacity(port(4, 2), megabits(12)).unwrap();
    embedding.handle_changes(&network);
    assert_eq!(passes(&embedding, RED), [1, 4, 3]);
}
