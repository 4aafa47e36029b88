//! Requests of tenants in few words, and the destinations of their packets.

use super::megabits;
use super::walk::{Arrived, Walker, port, ports};
use fabric::embedding::{
    Block, Embedding, HostSpec, LinkSpec, PortKind, PortSpec, Route, Spec, SwitchSpec, Tag,
    VirtualPortId,
};
use fabric::{Bandwidth, Dpid, MacAddress, Network, PortId, TenantId};
use std::collections::BTreeMap;

pub const RED: TenantId = TenantId(1);
pub const BLUE: TenantId = TenantId(2);

pub fn embedding() -> Embedding {
    tags(2000, 2999)
}

pub fn tags(least: u16, most: u16) -> Embedding {
    Embedding::new(Tag::new(least).unwrap(), Tag::new(most).unwrap())
}

pub fn virtual_port(switch: u64, number: u32) -> VirtualPortId {
    VirtualPortId { switch: Dpid(switch), number }
}

pub fn mac(last: u8) -> MacAddress {
    MacAddress::new([2, 0, 0, 0, 0, last]).unwrap()
}

pub fn switch(dpid: u64, members: &[u64]) -> SwitchSpec {
    let members = members.iter().map(|&dpid| Dpid(dpid)).collect();
    SwitchSpec { dpid: Dpid(dpid), name: String::new(), members, routes: Vec::new(), started: true }
}

pub fn edge(switch: u64, number: u32, at: PortId) -> PortSpec {
    let (name, port) = (String::new(), virtual_port(switch, number));
    PortSpec { port, name, at, shared: false, started: true }
}

pub fn link(a: (u64, u32), b: (u64, u32)) -> LinkSpec {
    LinkSpec {
        ends: [virtual_port(a.0, a.1), virtual_port(b.0, b.1)],
        bandwidth: Bandwidth::ZERO,
        route: Route::Shortest,
        protection: None,
        reverts: false,
        started: true,
    }
}

pub fn host(last: u8, at: (u64, u32)) -> HostSpec {
    HostSpec { mac: mac(last), addresses: Vec::new(), at: virtual_port(at.0, at.1) }
}

/// The ring 1 - 2 - 3 - 4 - 1 with hosts at port 1 of each switch; port 2 leads to the next switch, port 3 to the
/// switch before.
pub fn ring() -> Network {
    let mut network = Network::default();
    for dpid in 1..=4 {
        network.add_switch(Dpid(dpid)).unwrap();
        (1..=3).for_each(|number| network.add_port(port(dpid, number)).unwrap());
        network.add_edge(port(dpid, 1), megabits(10), fabric::Duration::ZERO).unwrap();
    }
    for dpid in 1..=4 {
        let (a, b) = (port(dpid, 2), port(dpid % 4 + 1, 3));
        network.connect(a, b, megabits(10), fabric::Duration::ZERO).unwrap();
    }
    network
}

/// Two virtual switches, on 1 and on 3. Port 1 of each is for hosts, and a link connects their ports 2.
pub fn two() -> Spec {
    Spec {
        block: Block::new("10.0.0.0".parse().unwrap(), 24),
        switches: vec![switch(0xa1, &[1]), switch(0xa3, &[3])],
        ports: vec![edge(0xa1, 1, port(1, 1)), edge(0xa3, 1, port(3, 1))],
        links: vec![link((0xa1, 2), (0xa3, 2))],
        hosts: vec![host(1, (0xa1, 1)), host(3, (0xa3, 1))],
        ..Spec::default()
    }
}

pub fn wanted(specs: &[(TenantId, &Spec)]) -> BTreeMap<TenantId, Spec> {
    specs.iter().map(|&(tenant, spec)| (tenant, spec.clone())).collect()
}

/// Switches follow as often as a step waits for them.
///
/// # Panics
/// Panics if the steps have no end.
pub fn all_follow(network: &Network, embedding: &mut Embedding, mut parted: bool) {
    for _ in 0..10 {
        if !parted {
            return;
        }
        parted = embedding.rejoin(network).parted;
    }
    panic!("something waits for ever");
}

/// A link of another tenant between 1 and 3 of a ring, with a narrow wire of its own: the link returns to this wire
/// whenever the wire is up.
pub fn flapping(network: &mut Network) -> Spec {
    let [a, b] = [1, 3].map(|dpid| port(dpid, 5));
    [a, b].iter().for_each(|&at| network.add_port(at).unwrap());
    network.connect(a, b, megabits(1), fabric::Duration::ZERO).unwrap();
    let link = LinkSpec { reverts: true, ..link((0xa1, 2), (0xa3, 2)) };
    Spec { ports: Vec::new(), hosts: Vec::new(), links: vec![link], ..two() }
}

/// The narrow wire fails and comes up again, several times before switches have had their time.
pub fn flap(network: &mut Network, embedding: &mut Embedding) {
    for is_up in [false, true, false, true] {
        network.set_port_up(port(1, 5), is_up).unwrap();
        let changes = embedding.handle_changes(network);
        assert!(changes.parted || !is_up, "it begins to go back");
    }
}

/// The destinations of packets that leave by a virtual port.
pub fn reach(
    network: &Network,
    embedding: &Embedding,
    tenant: TenantId,
    from: VirtualPortId,
) -> Vec<Arrived> {
    let walker = Walker { network, maps: embedding.switch_maps() };
    let mut reached = Vec::new();
    for (here, whose, _, id, port) in ports(embedding) {
        if whose == tenant && id == from {
            reached.push(match &port.kind {
                PortKind::Link { sends: Some(hop), .. }
                | PortKind::Remote { sends: Some(hop), .. } => walker.follow(here, *hop),
                PortKind::Edge { port, .. } => Arrived::Edge(PortId::new(here, *port)),
                _ => Arrived::Lost,
            });
        }
    }
    reached
}
