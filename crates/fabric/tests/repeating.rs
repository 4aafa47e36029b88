//! Ports of virtual switches that are no wire's: LOCAL, and those by which NORMAL sends.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::megabits;
use common::spec::*;
use common::walk::{Arrived, port, ports};
use fabric::embedding::{Embedding, LinkSpec, Part, PortKind, Reason, Refusal, Spec};
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

#[test]
fn repeaters_span_the_network_as_its_links_come_and_go() {
    let mut network = ring();
    let mut embedding = embedding();
    // A ring on a ring; each takes all that there is of one physical link.
    let full = |a, b| LinkSpec { bandwidth: megabits(10), ..link(a, b) };
    let mut spec = Spec {
        switches: (1..=4).map(|n| switch(0xa0 + n, &[n])).collect(),
        ports: (1..=4).map(|n| edge(0xa0 + n, 1, port(n, 1))).collect(),
        links: vec![
            full((0xa1, 2), (0xa2, 3)),
            full((0xa2, 2), (0xa3, 3)),
            full((0xa3, 2), (0xa4, 3)),
            full((0xa4, 2), (0xa1, 3)),
        ],
        ..Spec::default()
    };
    embedding.apply(&network, &wanted(&[(RED, &spec)])).unwrap();
    let tree = ["a1 port 2", "a1 port 3", "a2 port 2", "a2 port 3", "a3 port 3", "a4 port 2"];
    assert_eq!(repeating(&embedding, RED), tree);
    // One of its links fails: the one outside takes its place, and all whose ports are others get other maps.
    network.set_port_up(port(1, 2), false).unwrap();
    let changes = embedding.handle_changes(&network);
    let other = ["a1 port 3", "a2 port 2", "a3 port 2", "a3 port 3", "a4 port 2", "a4 port 3"];
    assert_eq!(repeating(&embedding, RED), other);
    assert_eq!(changes.switches.into_iter().collect::<Vec<_>>(), [1, 2, 3, 4].map(Dpid));
    network.set_port_up(port(1, 2), true).unwrap();
    embedding.handle_changes(&network);
    assert_eq!(repeating(&embedding, RED), tree);
    // The same of what is stopped, and of what is there no more.
    spec.links[0].started = false;
    embedding.apply(&network, &wanted(&[(RED, &spec)])).unwrap();
    assert_eq!(repeating(&embedding, RED), other);
    spec.links[0].started = true;
    spec.switches[0].started = false;
    embedding.apply(&network, &wanted(&[(RED, &spec)])).unwrap();
    assert_eq!(repeating(&embedding, RED), ["a2 port 2", "a3 port 2", "a3 port 3", "a4 port 3"]);
    spec.switches[0].started = true;
    spec.links.remove(3);
    embedding.apply(&network, &wanted(&[(RED, &spec)])).unwrap();
    assert_eq!(
        repeating(&embedding, RED),
        ["a1 port 2", "a2 port 2", "a2 port 3", "a3 port 2", "a3 port 3", "a4 port 3"]
    );
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
