//! Ports of virtual switches that are no wire's: LOCAL, and those by which NORMAL sends.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::megabits;
use common::spec::*;
use common::walk::{Arrived, port, ports};
use fabric::embedding::{Embedding, LinkSpec, Part, PortKind, Reason, Refusal, Route, Spec, Step};
use fabric::{Dpid, Network, PortId, PortNumber, TenantId};
use std::collections::BTreeSet;

/// The ends of links by which repeaters send, as far as they lie there.
fn repeating(embedding: &Embedding, tenant: TenantId) -> Vec<String> {
    let links = ports(embedding).filter(|(_, whose, _, _, port)| {
        *whose == tenant && port.repeats && !matches!(port.kind, PortKind::Edge { .. })
    });
    let mut links: Vec<String> = links.map(|(.., id, _)| id.to_string()).collect();
    links.sort();
    links.iter_mut().for_each(|id| *id = id.replace("00:", ""));
    links
}

/// Switches follow as long as something waits for that; which have something else to do.
fn all_follow(network: &Network, embedding: &mut Embedding) -> Vec<Dpid> {
    let mut switches = BTreeSet::new();
    loop {
        let changes = embedding.rejoin(network);
        switches.extend(changes.switches);
        if !changes.parted {
            return switches.into_iter().collect();
        }
    }
}

/// A ring on a ring; each link takes all that there is of one physical one, so that it has no other way.
fn ring_of_links() -> Spec {
    let full = |a, b| LinkSpec { bandwidth: megabits(10), ..link(a, b) };
    Spec {
        switches: (1..=4).map(|n| switch(0xa0 + n, &[n])).collect(),
        ports: (1..=4).map(|n| edge(0xa0 + n, 1, port(n, 1))).collect(),
        links: vec![
            full((0xa1, 2), (0xa2, 3)),
            full((0xa2, 2), (0xa3, 3)),
            full((0xa3, 2), (0xa4, 3)),
            full((0xa4, 2), (0xa1, 3)),
        ],
        ..Spec::default()
    }
}

/// Its tree when all links came at once, and that without the first link.
const FIRST: [&str; 6] =
    ["a1 port 2", "a1 port 3", "a2 port 2", "a2 port 3", "a3 port 3", "a4 port 2"];
const OTHER: [&str; 6] =
    ["a1 port 3", "a2 port 2", "a3 port 2", "a3 port 3", "a4 port 2", "a4 port 3"];

#[test]
fn repeaters_span_the_network_as_its_links_come_and_go() {
    let (mut network, mut embedding) = (ring(), embedding());
    embedding.apply(&network, &wanted(&[(RED, &ring_of_links())])).unwrap();
    assert_eq!(repeating(&embedding, RED), FIRST);
    // One of its links fails: the one outside takes its place, and all whose ports are others get other maps.
    network.set_port_up(port(1, 2), false).unwrap();
    let changes = embedding.handle_changes(&network);
    assert_eq!(repeating(&embedding, RED), OTHER);
    assert!(!changes.parted);
    assert_eq!(changes.switches.into_iter().collect::<Vec<_>>(), [1, 2, 3, 4].map(Dpid));
    // It comes back, and stays out: only its own ends have anything to do.
    network.set_port_up(port(1, 2), true).unwrap();
    let changes = embedding.handle_changes(&network);
    assert_eq!(repeating(&embedding, RED), OTHER);
    assert_eq!(changes.switches.into_iter().collect::<Vec<_>>(), [1, 2].map(Dpid));
    // What had taken its place fails.
    network.set_port_up(port(3, 2), false).unwrap();
    assert!(!embedding.handle_changes(&network).parted);
    assert_eq!(repeating(&embedding, RED), FIRST);
    // So it is if a port has gone, and not with a link of which nobody knows but that no probes come through.
    network.set_port_up(port(3, 2), true).unwrap();
    embedding.handle_changes(&network);
    network.remove_port(port(1, 2)).unwrap();
    assert!(!embedding.handle_changes(&network).parted);
    assert_eq!(repeating(&embedding, RED), OTHER);
    network.unplug(port(3, 2)).unwrap();
    assert!(embedding.handle_changes(&network).parted);
}

#[test]
fn what_is_stopped_leaves_the_tree_before_anything_comes_in_its_place() {
    let (network, mut embedding) = (ring(), embedding());
    let mut spec = ring_of_links();
    let mut apply = |embedding: &mut Embedding, change: fn(&mut Spec)| {
        change(&mut spec);
        embedding.apply(&network, &wanted(&[(RED, &spec)])).unwrap().parted
    };
    apply(&mut embedding, |_| ());
    assert!(apply(&mut embedding, |spec| spec.links[0].started = false));
    let rest = ["a1 port 3", "a2 port 2", "a3 port 3", "a4 port 2"];
    assert_eq!(repeating(&embedding, RED), rest);
    // It may come back at once, since nothing has come in its place.
    assert!(!apply(&mut embedding, |spec| spec.links[0].started = true));
    assert_eq!(repeating(&embedding, RED), FIRST);
    assert!(apply(&mut embedding, |spec| spec.links[0].started = false));
    assert_eq!(embedding.handle_changes(&network).switches.len(), 0);
    assert_eq!(all_follow(&network, &mut embedding), [3, 4].map(Dpid));
    assert_eq!(repeating(&embedding, RED), OTHER);
    // A link outside the tree is nothing to wait for.
    assert!(!apply(&mut embedding, |spec| spec.links[0].started = true));
    assert!(!apply(&mut embedding, |spec| spec.links[0].started = false));
    // A switch with its links, the network with all of them, and what is there no more.
    assert!(apply(&mut embedding, |spec| spec.switches[2].started = false));
    assert_eq!(repeating(&embedding, RED), ["a1 port 3", "a4 port 2"]);
    all_follow(&network, &mut embedding);
    assert!(apply(&mut embedding, |spec| spec.started = false));
    let all = |spec: &mut Spec| {
        spec.started = true;
        spec.switches[2].started = true;
        spec.links[0].started = true;
    };
    // What makes no cycle with the link that may still carry frames comes at once.
    assert!(!apply(&mut embedding, all));
    assert_eq!(repeating(&embedding, RED), FIRST);
    all_follow(&network, &mut embedding);
    assert!(apply(&mut embedding, |spec| drop(spec.links.remove(0))));
    assert_eq!(repeating(&embedding, RED), rest);
    // So it is if the whole network goes and another one comes.
    let mut gone = embedding.clone();
    gone.apply(&network, &wanted(&[])).unwrap();
    gone.apply(&network, &wanted(&[(RED, &ring_of_links())])).unwrap();
    assert_eq!(repeating(&gone, RED), FIRST);
    let other = Spec { links: ring_of_links().links.split_off(2), ..ring_of_links() };
    gone.apply(&network, &wanted(&[])).unwrap();
    gone.apply(&network, &wanted(&[(RED, &other)])).unwrap();
    assert_eq!(repeating(&gone, RED), ["a1 port 3", "a4 port 2"]);
    all_follow(&network, &mut gone);
    assert_eq!(repeating(&gone, RED), ["a1 port 3", "a3 port 2", "a4 port 2", "a4 port 3"]);
    all_follow(&network, &mut embedding);
    assert_eq!(repeating(&embedding, RED), OTHER);
}

/// However often others have to wait anew.
#[test]
fn a_tree_takes_a_link_when_it_has_had_its_time() {
    let (mut network, mut embedding) = (ring(), embedding());
    let (mut red, blue) = (ring_of_links(), flapping(&mut network));
    embedding.apply(&network, &wanted(&[(RED, &red), (BLUE, &blue)])).unwrap();
    flap(&mut network, &mut embedding);
    red.links[0].started = false;
    let changes = embedding.apply(&network, &wanted(&[(RED, &red), (BLUE, &blue)])).unwrap();
    assert!(changes.parted);
    let parting = ["a1 port 3", "a2 port 2", "a3 port 3", "a4 port 2"];
    // It has had a part of the first round only.
    for tree in [&parting[..], &OTHER] {
        flap(&mut network, &mut embedding);
        assert_eq!(repeating(&embedding, RED), parting);
        assert!(embedding.rejoin(&network).parted);
        assert_eq!(repeating(&embedding, RED), tree);
    }
}

/// One of the tree's links is stopped and started again for ever; of another the wire fails.
#[test]
fn a_link_that_leaves_again_and_again_is_in_the_way_of_its_own_place_only() {
    let (mut network, mut embedding) = (ring(), embedding());
    let by = |route: &[u64], bandwidth, a, b| {
        let steps = route.iter().map(|&dpid| Step::Switch(Dpid(dpid)));
        let route = Route::Given(steps.collect());
        LinkSpec { route, bandwidth: megabits(bandwidth), ..link(a, b) }
    };
    let mut spec = Spec {
        switches: (1..=3).map(|n| switch(0xa0 + n, &[n])).collect(),
        links: vec![
            by(&[2, 3], 5, (0xa2, 2), (0xa3, 2)),
            // There is no other way for all of this.
            by(&[1, 2], 10, (0xa1, 3), (0xa2, 3)),
            by(&[1, 4, 3, 2], 5, (0xa1, 4), (0xa2, 4)),
            by(&[2, 1, 4, 3], 0, (0xa2, 5), (0xa3, 5)),
        ],
        ..Spec::default()
    };
    let mut flap = |embedding: &mut Embedding, network: &Network| {
        for started in [true, false] {
            spec.links[0].started = started;
            embedding.apply(network, &wanted(&[(RED, &spec)])).unwrap();
        }
    };
    flap(&mut embedding, &network);
    for _ in 0..3 {
        flap(&mut embedding, &network);
        assert_eq!(repeating(&embedding, RED), ["a1 port 3", "a2 port 3"]);
        assert!(embedding.rejoin(&network).parted);
    }
    network.set_port_up(port(1, 2), false).unwrap();
    embedding.handle_changes(&network);
    assert_eq!(repeating(&embedding, RED), ["a1 port 4", "a2 port 4"]);
    // In its own place another comes when it stays away.
    all_follow(&network, &mut embedding);
    assert_eq!(repeating(&embedding, RED), ["a1 port 4", "a2 port 4", "a2 port 5", "a3 port 5"]);
}

/// A link that has moved from where frames still pass, and then fails, may still be used there by ends that have not followed.
#[test]
fn what_moves_from_a_path_that_stands_has_to_be_followed() {
    for (is_followed, port_down) in [(false, false), (true, false), (false, true)] {
        let (mut network, mut embedding) = (ring(), embedding());
        let spec = Spec {
            switches: vec![switch(0xa1, &[1]), switch(0xa2, &[2])],
            links: vec![link((0xa1, 2), (0xa2, 3))],
            ..Spec::default()
        };
        embedding.apply(&network, &wanted(&[(RED, &spec)])).unwrap();
        if port_down {
            network.set_port_up(port(1, 2), false).unwrap();
        } else {
            network.unplug(port(1, 2)).unwrap();
        }
        let changes = embedding.handle_changes(&network);
        assert_eq!((changes.moves.len(), changes.parted), (1, !port_down));
        assert_eq!(repeating(&embedding, RED), ["a1 port 2", "a2 port 3"]);
        if is_followed {
            all_follow(&network, &mut embedding);
        }
        network.set_port_up(port(3, 2), false).unwrap();
        assert_eq!(embedding.handle_changes(&network).parted, !is_followed && !port_down);
        assert_eq!(repeating(&embedding, RED), [""; 0]);
    }
}

#[test]
fn repeaters_find_their_tree_again() {
    let (mut network, mut before) = (ring(), embedding());
    let spec = ring_of_links();
    before.apply(&network, &wanted(&[(RED, &spec)])).unwrap();
    for is_up in [false, true] {
        network.set_port_up(port(1, 2), is_up).unwrap();
        before.handle_changes(&network);
    }
    let restored = |saved: &[u8], spec: &Spec| {
        let mut after = embedding();
        after.restore(saved).unwrap();
        let parted = after.apply(&Network::default(), &wanted(&[(RED, spec)])).unwrap().parted;
        (after, parted)
    };
    let (mut after, parted) = restored(&before.export(), &spec);
    assert_eq!(repeating(&after, RED), OTHER);
    assert!(!parted);
    after.handle_changes(&network);
    assert_eq!(after.switch_maps(), before.switch_maps());
    // Of a link that is wanted otherwise nobody knows what switches still do by it.
    let mut other = spec.clone();
    other.links[1].bandwidth = megabits(1);
    let (mut after, parted) = restored(&before.export(), &other);
    assert!(parted);
    after.handle_changes(&network);
    assert_eq!(repeating(&after, RED), OTHER);
}

/// What a link has left is left also after a restart: its ends may still send into it.
#[test]
fn a_tree_that_parts_is_parting_after_a_restart() {
    let (mut network, spec) = (ring(), ring_of_links());
    let mut whole = embedding();
    whole.apply(&network, &wanted(&[(RED, &spec)])).unwrap();
    network.unplug(port(1, 2)).unwrap();
    let mut unbelieved = whole.clone();
    assert!(unbelieved.handle_changes(&network).parted);
    let without = |change: fn(&mut Spec)| {
        let (mut embedding, mut spec) = (whole.clone(), spec.clone());
        change(&mut spec);
        assert!(embedding.apply(&ring(), &wanted(&[(RED, &spec)])).unwrap().parted);
        (embedding, ring(), spec)
    };
    let cases = [
        (unbelieved, network, spec.clone()),
        without(|spec| spec.links[0].started = false),
        without(|spec| drop(spec.links.remove(0))),
    ];
    for (before, network, spec) in cases {
        let parting = repeating(&before, RED);
        assert_eq!(parting, ["a1 port 3", "a2 port 2", "a3 port 3", "a4 port 2"]);
        let mut stored = before.export();
        for restarts in 0..2 {
            let mut after = embedding();
            after.restore(&stored).unwrap();
            let changes = after.apply(&Network::default(), &wanted(&[(RED, &spec)])).unwrap();
            assert!(changes.parted);
            assert_eq!(repeating(&after, RED), parting, "{restarts}");
            after.handle_changes(&network);
            assert_eq!(repeating(&after, RED), parting, "{restarts}");
            stored = after.export();
            assert!(after.rejoin(&network).parted);
            assert_eq!(repeating(&after, RED), parting, "{restarts}");
            assert!(!after.rejoin(&network).parted);
            assert_eq!(repeating(&after, RED), OTHER, "{restarts}");
        }
    }
}

/// Its ends have turned to the new path, and may not have followed yet. They do not before they are back.
#[test]
fn a_link_that_has_just_moved_has_so_after_a_restart() {
    let mut network = ring();
    let spec = Spec {
        switches: vec![switch(0xa1, &[1]), switch(0xa2, &[2])],
        links: vec![link((0xa1, 2), (0xa2, 3))],
        ..Spec::default()
    };
    let mut before = embedding();
    before.apply(&network, &wanted(&[(RED, &spec)])).unwrap();
    network.unplug(port(1, 2)).unwrap();
    assert!(before.handle_changes(&network).parted);
    let stored = before.export();
    // It fails then: may frames still pass where it was?
    let may_pass = |after: &Embedding| {
        let (mut network, mut after) = (network.clone(), after.clone());
        network.set_port_up(port(3, 2), false).unwrap();
        after.handle_changes(&network).parted
    };
    let restored = |stored: &[u8]| {
        let mut after = embedding();
        after.restore(stored).unwrap();
        let parted = after.apply(&Network::default(), &wanted(&[(RED, &spec)])).unwrap().parted;
        (after, parted)
    };
    let (mut after, parted) = restored(&stored);
    assert!(parted);
    let mut back = Network::default();
    for dpid in [1, 2, 3] {
        // However long they are away.
        assert!((0..5).all(|_| after.rejoin(&back).parted));
        back.add_switch(Dpid(dpid)).unwrap();
        after.handle_changes(&back);
    }
    // One of those that it passes is still away, and is waited for no longer when nothing is held.
    let mut given_up = after.clone();
    given_up.stop_waiting(&back);
    common::spec::all_follow(&back, &mut given_up, true);
    after.handle_changes(&network);
    // A part of that round had gone by when the last came back.
    assert!(may_pass(&after));
    assert!(after.rejoin(&network).parted);
    assert!(may_pass(&after));
    assert!(!after.rejoin(&network).parted);
    assert!(!may_pass(&after));
    all_follow(&network, &mut before);
    let (after, parted) = restored(&before.export());
    assert!(!parted);
    assert!(!may_pass(&after));
}

#[test]
fn a_switch_has_a_local_port_if_one_is_mapped() {
    let mut network = ring();
    let at = PortId::new(Dpid(1), PortNumber::LOCAL);
    let number = PortNumber::LOCAL.get();
    let mut spec = two();
    spec.ports.push(edge(0xa1, number, at));
    let refused = |network: &Network, spec: &Spec, part, why| {
        let refusal = Refusal { tenant: RED, part, why };
        let result = embedding().apply(network, &wanted(&[(RED, spec)]));
        assert_eq!(result, Err(vec![refusal]));
    };
    let local = virtual_port(0xa1, number);
    // The physical switch has none.
    refused(&network, &spec, Part::Port(local), Reason::NoSuchPhysicalPort(at));
    network.add_port(at).unwrap();
    let mut embedding = embedding();
    embedding.apply(&network, &wanted(&[(RED, &spec)])).unwrap();
    let member = &embedding.switch_map(Dpid(1)).unwrap().members[&RED];
    let it = &member.ports[&number];
    assert_eq!(it.kind, PortKind::Edge { port: PortNumber::LOCAL, hosts: Vec::new() });
    assert!(it.up && it.repeats);
    assert_eq!(it.name, "local");
    let macs: BTreeSet<_> = member.ports.values().map(|port| port.mac).collect();
    assert_eq!(macs.len(), member.ports.len());
    // What was stored is read again.
    let mut after = common::spec::embedding();
    after.restore(&embedding.export()).unwrap();
    after.apply(&network, &wanted(&[(RED, &spec)])).unwrap();
    after.stop_waiting(&network);
    assert_eq!(after.switch_maps(), embedding.switch_maps());
    // It is one, and the other reserved ports are none.
    let mut twice = spec.clone();
    twice.links[0].ends[0] = local;
    let part = Part::Link(twice.links[0].ends);
    refused(&network, &twice, part, Reason::DuplicatePort);
    for number in [0, 0xff01, 0xfffe, 0xffff_fffd, 0xffff_fffa] {
        spec.ports[2].port.number = number;
        let part = Part::Port(virtual_port(0xa1, number));
        refused(&network, &spec, part, Reason::PortNumber);
    }
    // At an ordinary port, and at the end of a link.
    spec.ports.truncate(2);
    spec.ports[0].port.number = number;
    spec.hosts[0].at = local;
    spec.links[0].ends[1] = virtual_port(0xa3, number);
    embedding.apply(&network, &wanted(&[(RED, &spec)])).unwrap();
    assert_eq!(
        reach(&network, &embedding, RED, virtual_port(0xa3, number)),
        [Arrived::In(RED, virtual_port(0xa1, 2))]
    );
}
