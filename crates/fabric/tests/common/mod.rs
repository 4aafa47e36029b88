//! Networks for tests: random networks, or built-in topologies of labs.

#![allow(dead_code, unreachable_pub, reason = "each test uses some of it")]
#![allow(clippy::unwrap_used, clippy::panic)]

pub mod spec;
pub mod walk;

use fabric::{Bandwidth, Dpid, Duration, LinkId, Network, PortId, PortNumber, SwitchIndex};
use proptest::prelude::*;

pub fn megabits(megabits: u64) -> Bandwidth {
    Bandwidth::from_megabits_per_second(megabits)
}

/// A lab's built-in topology; links without a rate of their own have 10 Gbit/s.
pub fn builtin(specification: &str) -> Network {
    let rate = "10Gbit".parse().unwrap();
    lab::Topology::builtin(specification).unwrap().network(rate).unwrap()
}

/// Switches 0, 1, ... and wires between them with capacities in Mbit/s; two switches may have several wires.
pub fn network(switches: u64, wires: &[(u64, u64, u64)]) -> Network {
    let mut network = Network::default();
    for dpid in 0..switches {
        network.add_switch(Dpid(dpid)).unwrap();
    }
    for (&(a, b, capacity), number) in wires.iter().zip(1..) {
        let number = PortNumber::new(number).unwrap();
        let [a, b] = [a, b].map(|dpid| PortId::new(Dpid(dpid), number));
        network.add_port(a).unwrap();
        network.add_port(b).unwrap();
        network.connect(a, b, megabits(capacity), Duration::ZERO).unwrap();
    }
    network
}

pub fn switch(network: &Network, dpid: u64) -> SwitchIndex {
    network.switch_index(Dpid(dpid)).unwrap()
}

/// Up to seven switches and a dozen wires of 1 to 5 Mbit/s.
pub fn small() -> impl Strategy<Value = Network> {
    (2_u64..8).prop_flat_map(|switches| {
        let wire = (0..switches, 0..switches, 1_u64..6).prop_filter("a loop", |(a, b, _)| a != b);
        proptest::collection::vec(wire, 0..13).prop_map(move |wires| network(switches, &wires))
    })
}

/// Every path without a repeated switch, by trying all.
pub fn all_paths(network: &Network, from: SwitchIndex, to: SwitchIndex) -> Vec<Vec<LinkId>> {
    let mut found = Vec::new();
    walk(network, to, &mut vec![from], &mut Vec::new(), &mut found);
    found
}

fn walk(
    network: &Network,
    to: SwitchIndex,
    seen: &mut Vec<SwitchIndex>,
    links: &mut Vec<LinkId>,
    found: &mut Vec<Vec<LinkId>>,
) {
    let at = *seen.last().unwrap();
    if at == to {
        found.push(links.clone());
        return;
    }
    for (link, next) in network.leaving(at) {
        if !seen.contains(&next) {
            seen.push(next);
            links.push(link);
            walk(network, to, seen, links, found);
            links.pop();
            seen.pop();
        }
    }
}
