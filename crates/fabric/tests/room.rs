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
