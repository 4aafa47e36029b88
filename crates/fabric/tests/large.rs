//! Tests of the limits of the size of a network.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use common::spec::*;
use common::walk::port;
use fabric::embedding::{HostSpec, PortSpec, Spec};
use fabric::{MacAddress, Network};

/// Switches in a row, with `ports` edge ports on the first two switches, and one host at each edge port.
fn large(switches: u64, ports: u32) -> Spec {
    let edge = |at: u32| {
        let (switch, number) = (1 + u64::from(at / 50_000), at % 50_000 + 3);
        edge(switch, number, port(switch, number))
    };
    let ports: Vec<PortSpec> = (0..ports).map(edge).collect();
    let host = |(port, number): (&PortSpec, u32)| {
        let [a, b, c, d] = number.to_be_bytes();
        let mac = MacAddress::new([2, 0, a, b, c, d]).unwrap();
        HostSpec { mac, addresses: Vec::new(), at: port.port }
    };
    Spec {
        block: "10.0.0.0/8".parse().ok(),
        hosts: ports.iter().zip(0..).map(host).collect(),
        links: (1..switches).map(|dpid| link((dpid, 1), (dpid + 1, 2))).collect(),
        switches: (1..=switches).map(|dpid| switch(dpid, &[dpid])).collect(),
        ports,
        ..Spec::default()
    }
}

#[test]
fn a_network_at_the_size_limits_is_accepted() {
    let mut spec = large(4_096, 65_536);
    spec.links.extend((10..).take(16_384 - 4_095).map(|number| link((7, number), (8, number))));
    let mut embedding = embedding();
    let changes = embedding.apply(&Network::default(), &wanted(&[(RED, &spec)])).unwrap();
    assert_eq!((changes.switches.len(), changes.ports.len()), (4_096, 65_536 + 2 * 16_384));
    assert_eq!(embedding.assigned(RED).count(), 65_536);
}

#[test]
fn a_network_above_a_size_limit_is_refused_with_the_first_excess_part() {
    const SWITCHES: &str = "a network has at most 4096 switches, on as many physical ones";
    const LINKS: &str = "a network has at most 16384 links, of which each two members of a big switch count for one";
    let big = |dpid: u64, members: u64| {
        switch(dpid, &(0..members).map(|it| dpid * 10_000 + it).collect::<Vec<_>>())
    };
    let members = |all: &[(u64, u64)]| Spec {
        switches: all.iter().map(|&(dpid, members)| big(dpid, members)).collect(),
        ..Spec::default()
    };
    let mut hosts = large(2, 65_536);
    hosts.hosts.push(HostSpec { mac: mac(7), ..hosts.hosts[0].clone() });
    let mut links = large(2, 0);
    links.links = (3..=16_387).map(|number| link((1, number), (2, number))).collect();
    for (spec, part, why) in [
        (large(4_097, 0), "switch 00:00:00:00:00:00:10:01", SWITCHES),
        (members(&[(1, 4_097)]), "switch 00:00:00:00:00:00:00:01", SWITCHES),
        (
            large(2, 65_537),
            "00:00:00:00:00:00:00:02 port 15539",
            "a network has at most 65536 ports at the edge",
        ),
        (hosts, "host 02:00:00:00:00:07", "a network has at most 65536 hosts"),
        (
            links,
            "link 00:00:00:00:00:00:00:01 port 16387 - 00:00:00:00:00:00:00:02 port 16387",
            LINKS,
        ),
        (members(&[(1, 100), (2, 200)]), "switch 00:00:00:00:00:00:00:02", LINKS),
    ] {
        let wanted = wanted(&[(RED, &spec)]);
        let refused = embedding().apply(&Network::default(), &wanted).unwrap_err();
        let said: Vec<_> = refused.iter().map(|it| format!("{}: {}", it.part, it.why)).collect();
        assert_eq!(said, [format!("{part}: {why}")]);
    }
}
