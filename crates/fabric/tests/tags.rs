//! Tests of links without free tags.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::megabits;
use common::spec::*;
use common::walk::{port, ports};
use fabric::embedding::{
    Embedding, Part, Reason, Refusal, Route, Spec, Step, Trouble, TrunkStatus,
};
use fabric::paths::Disjoint;
use fabric::{Dpid, Network, TenantId};
use std::collections::BTreeMap;

/// A tenant's link between switches 1 and 3, by a given route or by any path.
fn bare(route: &[u64]) -> Spec {
    let mut spec = two();
    spec.ports.clear();
    spec.hosts.clear();
    if !route.is_empty() {
        let steps = route.iter().map(|&dpid| Step::Switch(Dpid(dpid)));
        spec.links[0].route = Route::Given(steps.collect());
    }
    spec
}

fn status(embedding: &Embedding, tenant: TenantId) -> TrunkStatus<'_> {
    embedding.trunks(tenant).next().unwrap().1
}

/// Whether the two ports at the ends of a tenant's link are up. Both ports must have the same state.
fn is_up(embedding: &Embedding, tenant: TenantId) -> bool {
    let of = ports(embedding).filter(|(_, whose, _, id, _)| *whose == tenant && id.number == 2);
    let up: Vec<bool> = of.map(|(.., port)| port.up).collect();
    assert!(up.len() == 2 && up[0] == up[1], "{up:?}");
    up[0]
}

/// Only one tag exists. Red's path by switch 4 fails, and blue has the tag on the other path.
fn without_tags() -> (Network, Embedding, [Spec; 2]) {
    let (mut network, mut embedding) = (ring(), tags(5, 5));
    let specs = [bare(&[1, 4, 3]), bare(&[1, 2, 3])];
    embedding.apply(&network, &wanted(&[(RED, &specs[0]), (BLUE, &specs[1])])).unwrap();
    network.set_port_up(port(4, 2), false).unwrap();
    embedding.handle_changes(&network);
    assert!(matches!(status(&embedding, RED).trouble, Some(Trouble::Tags(_))));
    assert!(!is_up(&embedding, RED) && is_up(&embedding, BLUE));
    (network, embedding, specs)
}

#[test]
fn a_link_that_lost_its_tags_does_not_block_other_requests() {
    let (network, embedding, [red, blue]) = without_tags();
    let stopped = |spec: &Spec| Spec { started: false, ..spec.clone() };
    let (no_red, no_blue) = (stopped(&red), stopped(&blue));
    let nothing = Spec::default();
    let cases: [(&str, &[(TenantId, &Spec)]); 6] = [
        ("the same again", &[(RED, &red), (BLUE, &blue)]),
        ("another network", &[(RED, &red), (BLUE, &blue), (TenantId(3), &nothing)]),
        ("red stops", &[(RED, &no_red), (BLUE, &blue)]),
        ("blue stops", &[(RED, &red), (BLUE, &no_blue)]),
        ("red goes", &[(BLUE, &blue)]),
        ("blue goes", &[(RED, &red)]),
    ];
    for (what, specs) in cases {
        let done = embedding.clone().apply(&network, &wanted(specs));
        assert!(done.is_ok(), "{what}: {done:?}");
        assert_eq!(embedding.dry_run(&network, &wanted(specs)), done, "{what}");
    }
}

#[test]
fn a_link_that_needs_more_tags_than_are_free_is_refused() {
    let (network, mut embedding, [red, blue]) = without_tags();
    let refusal = |tenant, at| {
        let why = Reason::Unroutable(Trouble::Tags(at));
        Refusal { tenant, part: Part::Link(red.links[0].ends), why }
    };
    // The tenant requests one more link.
    let third = TenantId(3);
    let all = wanted(&[(RED, &red), (BLUE, &blue), (third, &bare(&[1, 2, 3]))]);
    let refusals = embedding.apply(&network, &all).unwrap_err();
    assert_eq!(refusals, [refusal(third, port(1, 2))]);
    assert!(is_up(&embedding, BLUE));
}

#[test]
fn after_a_restart_a_link_without_tags_does_not_block_other_links() {
    let (mut network, before, [red, blue]) = without_tags();
    let mut after = tags(5, 5);
    after.restore(&before.export()).unwrap();
    let both = wanted(&[(RED, &red), (BLUE, &blue)]);
    after.apply(&Network::default(), &both).unwrap();
    after.handle_changes(&network);
    after.stop_waiting(&network);
    assert!(!is_up(&after, RED) && is_up(&after, BLUE));
    assert_eq!(status(&after, BLUE).active, status(&before, BLUE).active);
    network.set_port_up(port(4, 2), true).unwrap();
    after.handle_changes(&network);
    assert!(is_up(&after, RED), "{:?}", status(&after, RED));
}

/// No tag is free from switch 1 to switch 2, but tags are free from switch 2 to switch 1.
#[test]
fn a_link_with_tags_in_only_one_direction_is_down_at_both_ends() {
    let (mut network, mut embedding) = (ring(), tags(5, 6));
    let hosts = [1, 9];
    network.add_port(port(2, 9)).unwrap();
    network.add_edge(port(2, 9), megabits(10), fabric::Duration::ZERO).unwrap();
    // Packets to each port of member 2 have their own tag.
    let green = Spec {
        switches: vec![switch(0xb0, &[1, 2])],
        ports: hosts.map(|number| edge(0xb0, number, port(2, number))).to_vec(),
        ..Spec::default()
    };
    let red = bare(&[1, 4, 3]);
    embedding.apply(&network, &wanted(&[(RED, &red), (BLUE, &green)])).unwrap();
    network.set_port_up(port(4, 2), false).unwrap();
    let changes = embedding.handle_changes(&network);
    assert_eq!(changes.ports.len(), 2, "both ports of the tenant are reported");
    assert!(!is_up(&embedding, RED));
    assert!(matches!(status(&embedding, RED).trouble, Some(Trouble::Tags(_))));
    // The link keeps no tag of the direction that has free tags.
    assert_eq!(embedding.tags_in_use(), 2);
    assert!(!embedding.switch_maps().contains_key(&Dpid(4)));
    network.set_port_up(port(4, 2), true).unwrap();
    embedding.handle_changes(&network);
    assert!(is_up(&embedding, RED));
}

/// The shortest path has no free tag. Another path has a free tag.
#[test]
fn a_link_is_placed_and_moved_only_to_paths_with_free_tags() {
    let (mut network, mut embedding) = (ring(), tags(5, 5));
    let (red, blue) = (bare(&[]), bare(&[1, 2, 3]));
    let ways = |embedding: &Embedding, tenant| {
        let status = status(embedding, tenant);
        [status.active, status.backup].map(|it| it.map(|it| it.wires[0].to.dpid.0))
    };
    embedding.apply(&network, &wanted(&[(BLUE, &blue)])).unwrap();
    embedding.apply(&network, &wanted(&[(BLUE, &blue), (RED, &red)])).unwrap();
    assert_eq!((ways(&embedding, RED)[0], is_up(&embedding, RED)), (Some(4), true));
    // A moving link also needs free tags. The link moves to the new wire from switch 1 to switch 3, and not to blue's
    // path.
    network.add_port(port(1, 7)).unwrap();
    network.add_port(port(3, 7)).unwrap();
    network.connect(port(1, 7), port(3, 7), megabits(1), fabric::Duration::ZERO).unwrap();
    embedding.stop_growing();
    network.set_port_up(port(4, 2), false).unwrap();
    assert_eq!(embedding.handle_changes(&network).ports, []);
    assert_eq!(ways(&embedding, RED)[0], Some(3));
    // A returning link also needs free tags. Without a free tag the link stays on its present path.
    let home = Spec {
        links: vec![fabric::embedding::LinkSpec { reverts: true, ..blue.links[0].clone() }],
        ..bare(&[])
    };
    let mut embedding = tags(5, 5);
    network.set_port_up(port(4, 2), true).unwrap();
    embedding.apply(&network, &wanted(&[(RED, &home)])).unwrap();
    network.set_port_up(port(2, 2), false).unwrap();
    embedding.handle_changes(&network);
    assert_eq!(ways(&embedding, RED)[0], Some(3));
    let near = Spec { switches: vec![switch(0xa1, &[1]), switch(0xa3, &[2])], ..bare(&[]) };
    embedding.apply(&network, &wanted(&[(RED, &home), (BLUE, &near)])).unwrap();
    network.set_port_up(port(2, 2), true).unwrap();
    assert_eq!(embedding.handle_changes(&network).moves, []);
    embedding.apply(&network, &wanted(&[(RED, &home)])).unwrap();
    assert_eq!(ways(&embedding, RED)[0], Some(2), "when that is given up");
}

/// A backup has tags of its own from the beginning.
#[test]
fn a_path_without_free_tags_is_not_used_as_backup() {
    let (mut network, mut embedding) = (ring(), tags(5, 5));
    let mut red = bare(&[]);
    red.links[0].protection = Some(Disjoint::Switches);
    let blue = bare(&[1, 4, 3]);
    embedding.apply(&network, &wanted(&[(BLUE, &blue)])).unwrap();
    let both = wanted(&[(RED, &red), (BLUE, &blue)]);
    let refusals = embedding.apply(&network, &both).unwrap_err();
    assert!(matches!(refusals[0].why, Reason::Unroutable(Trouble::Tags(_))), "{refusals:?}");
    // A link that waits for its switches has no tags until it can be placed.
    let mut embedding = tags(5, 5);
    let both = wanted(&[(BLUE, &red), (RED, &blue)]);
    embedding.apply(&Network::default(), &both).unwrap();
    embedding.handle_changes(&network);
    assert!(is_up(&embedding, BLUE) && status(&embedding, BLUE).backup.is_none());
    assert_eq!(status(&embedding, BLUE).trouble, None);
    embedding.apply(&network, &wanted(&[(BLUE, &red)])).unwrap();
    let backup = status(&embedding, BLUE).backup.unwrap();
    assert!(backup.tags.len() == 2 && backup.wires[0].to.dpid == Dpid(4));
    network.set_port_up(port(2, 2), false).unwrap();
    assert_eq!(embedding.handle_changes(&network).ports, []);
}

/// While Weir is stopped, the wire of red's link is removed, and a port of the wire becomes an edge port of blue.
#[test]
fn a_held_link_is_not_restored_over_an_edge_port_of_another_tenant() {
    let (network, mut before) = (ring(), embedding());
    let red = bare(&[]);
    before.apply(&network, &wanted(&[(RED, &red)])).unwrap();
    let wires = status(&before, RED).active.unwrap().wires.clone();
    for at in [wires[0].from, wires[1].to] {
        let blue = Spec {
            switches: vec![switch(0xb0, &[at.dpid.0])],
            ports: vec![edge(0xb0, 1, at)],
            ..Spec::default()
        };
        let both = wanted(&[(RED, &red), (BLUE, &blue)]);
        // The change is known when Weir starts, or is discovered while Weir waits for the old links.
        for at_start in [true, false] {
            let mut after = embedding();
            after.restore(&before.export()).unwrap();
            if !at_start {
                after.apply(&Network::default(), &wanted(&[(RED, &red)])).unwrap();
            }
            after.apply(&Network::default(), &both).unwrap();
            assert!(status(&after, RED).active.is_none(), "{at}");
            assert_eq!(after.tags_in_use(), 0);
            let mut now = ring();
            now.unplug(at).unwrap();
            now.add_edge(at, megabits(10), fabric::Duration::ZERO).unwrap();
            after.handle_changes(&now);
            let wires = &status(&after, RED).active.unwrap().wires;
            assert!(wires.iter().all(|wire| ![wire.from, wire.to].contains(&at)));
            assert!(is_up(&after, RED));
        }
    }
}

/// While Weir is stopped, the wire of a link is removed, and its port is declared as an edge port. No tenant has a port
/// there yet.
#[test]
fn a_held_link_is_not_restored_over_a_port_declared_as_edge_port() {
    let (mut network, mut before) = (ring(), embedding());
    let red = bare(&[]);
    before.apply(&network, &wanted(&[(RED, &red)])).unwrap();
    let at = status(&before, RED).active.unwrap().wires[0].from;
    let mut after = embedding();
    after.restore(&before.export()).unwrap();
    after.apply(&Network::default(), &wanted(&[(RED, &red)])).unwrap();
    network.unplug(at).unwrap();
    network.add_edge(at, megabits(10), fabric::Duration::ZERO).unwrap();
    after.handle_changes(&network);
    let active = status(&after, RED).active.unwrap();
    assert!(active.wires.iter().all(|wire| wire.from != at) && is_up(&after, RED));
}

/// Switches with old maps still send by the old path. Other links take the tags of the old path last, whether Weir
/// restarts during the move or after the move.
#[test]
fn after_a_restart_released_tags_are_taken_last() {
    let network = ring();
    let [old, new, blue] = [bare(&[1, 2, 3]), bare(&[1, 4, 3]), bare(&[1, 2, 3])];
    let tags_of = |embedding: &Embedding, tenant| {
        let tags = &status(embedding, tenant).active.unwrap().tags;
        tags.iter().map(|(lane, tags)| (lane.forth, tags.clone())).collect::<BTreeMap<_, _>>()
    };
    for steps in 0..3 {
        let mut before = tags(5, 6);
        before.apply(&network, &wanted(&[(RED, &old)])).unwrap();
        let left = tags_of(&before, RED);
        before.apply(&network, &wanted(&[(RED, &new)])).unwrap();
        (0..steps).for_each(|_| drop(before.rejoin(&network)));
        let mut after = tags(5, 6);
        after.restore(&before.export()).unwrap();
        after.apply(&network, &wanted(&[(RED, &new)])).unwrap();
        after.stop_waiting(&network);
        after.apply(&network, &wanted(&[(RED, &new), (BLUE, &blue)])).unwrap();
        for (forth, taken) in tags_of(&after, BLUE) {
            assert!(taken.iter().zip(&left[&forth]).all(|(new, old)| new != old), "{steps}");
        }
    }
}

/// The request changes while Weir is stopped, so the old path is not restored. Other links take the tags of the old
/// path last, wherever the next search begins.
#[test]
fn after_a_restart_tags_of_paths_not_restored_are_taken_last() {
    let network = ring();
    let [old, new, blue] = [bare(&[1, 2, 3]), bare(&[1, 4, 3]), bare(&[1, 2, 3])];
    for turns in 0..12 {
        let mut before = tags(5, 12);
        before.apply(&network, &wanted(&[(RED, &old)])).unwrap();
        let left = status(&before, RED).active.unwrap().tags.clone();
        for _ in 0..turns {
            before.apply(&network, &wanted(&[(RED, &old), (BLUE, &new)])).unwrap();
            before.apply(&network, &wanted(&[(RED, &old)])).unwrap();
        }
        for changed in [wanted(&[(RED, &new), (BLUE, &blue)]), wanted(&[(BLUE, &blue)])] {
            let mut after = tags(5, 12);
            after.restore(&before.export()).unwrap();
            after.apply(&network, &changed).unwrap();
            let taken = &status(&after, BLUE).active.unwrap().tags;
            let mut both = taken.values().zip(left.values());
            assert!(both.all(|(taken, left)| taken != left), "{turns}");
        }
    }
}
