//! Any virtual networks on any physical one, whatever fails: every packet ends where its tenant expects, or nowhere.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

mod common;

use common::walk::{Arrived, Walker, port, ports};
use common::{megabits, small};
use fabric::embedding::{
    Carries, Embedding, Frames, Hop, Lane, LinkSpec, Mapped, PortKind, PortSpec, Route, Routed,
    Spec, Step, SwitchSpec, Tag, Trouble, TrunkId, TrunkStatus, VirtualPortId,
};
use fabric::paths::{Disjoint, Distances};
use fabric::{Bandwidth, Dpid, End, LinkId, Network, PortId, TenantId};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// The number of the edge port that is added to every switch: above all that wires have.
const EDGE: u32 = 100;

/// How a tenant's network is drawn: where each physical switch belongs, and the links.
#[derive(Clone, Debug)]
struct Drawn {
    /// The virtual switch on each physical one; 0 for none.
    on: Vec<u64>,
    links: Vec<DrawnLink>,
    vlans: u16,
    /// Whether other addresses stand for the tenant's on links.
    mapped: bool,
}

#[derive(Clone, Debug)]
struct DrawnLink {
    between: (u64, u64),
    route: u8,
    protection: Option<Disjoint>,
    reverts: bool,
    bandwidth: u64,
}

fn any_network() -> impl Strategy<Value = Drawn> {
    let protection =
        prop_oneof![Just(None), Just(Some(Disjoint::Links)), Just(Some(Disjoint::Switches))];
    let link = ((1_u64..4, 1_u64..4), 0_u8..3, protection, any::<bool>(), 0_u64..3).prop_map(
        |(between, route, protection, reverts, bandwidth)| DrawnLink {
            between,
            route,
            protection,
            reverts,
            bandwidth,
        },
    );
    let links = proptest::collection::vec(link, 0..5);
    let on = proptest::collection::vec(0_u64..4, 8);
    (on, links, 0_u16..3, any::<bool>()).prop_map(|(on, links, vlans, mapped)| Drawn {
        on,
        links,
        vlans,
        mapped,
    })
}

/// A tenant's network on the switches that there are; edge ports are its own by `shared`, or not there.
fn spec(network: &Network, drawn: &Drawn, edges: bool) -> Spec {
    let mut spec = Spec { vlans: (1..=drawn.vlans).collect(), ..Spec::default() };
    if drawn.mapped {
        spec.block = Some("10.0.0.0/24".parse().unwrap());
        spec.physical = Some("172.16.0.0/24".parse().unwrap());
    }
    let mut members: BTreeMap<u64, Vec<Dpid>> = BTreeMap::new();
    for (dpid, &on) in (0..network.switch_slots() as u64).zip(&drawn.on) {
        if on > 0 {
            members.entry(on).or_default().push(Dpid(dpid));
        }
    }
    for (&dpid, members) in &members {
        let (dpid, members) = (Dpid(dpid), members.clone());
        for (number, &at) in (1..).zip(&members).filter(|_| edges) {
            let (port, name) = (VirtualPortId { switch: dpid, number }, String::new());
            let at = PortId::new(at, port_number());
            spec.ports.push(PortSpec { port, name, at, shared: false, started: true });
        }
        let (name, routes) = (String::new(), Vec::new());
        spec.switches.push(SwitchSpec { dpid, name, members, routes, started: true });
    }
    for (link, number) in drawn.links.iter().zip(50..) {
        let (a, b) = link.between;
        if a == b || !members.contains_key(&a) || !members.contains_key(&b) {
            continue;
        }
        let route = match link.route {
            0 => Route::Shortest,
            1 => Route::Widest,
            _ => match direct(network, &members[&a], &members[&b]) {
                Some(port) => Route::Given(vec![Step::Port(port)]),
                None => Route::Shortest,
            },
        };
        spec.links.push(LinkSpec {
            ends: [a, b].map(|switch| VirtualPortId { switch: Dpid(switch), number }),
            bandwidth: Bandwidth::from_megabits_per_second(link.bandwidth),
            route,
            protection: link.protection,
            reverts: link.reverts,
            started: true,
        });
    }
    spec
}

fn port_number() -> fabric::PortNumber {
    port(0, EDGE).port
}

/// A port of one of the first switches with a wire to one of the second.
fn direct(network: &Network, from: &[Dpid], to: &[Dpid]) -> Option<PortId> {
    let ends = network.links().filter_map(|(_, link)| match (link.from, link.to) {
        (End::Switch { port: a, .. }, End::Switch { port: b, .. }) => Some((a, b)),
        _ => None,
    });
    ends.into_iter().find(|(a, b)| from.contains(&a.dpid) && to.contains(&b.dpid)).map(|it| it.0)
}

fn with_edges(mut network: Network) -> Network {
    for dpid in 0..network.switch_slots() as u64 {
        network.add_port(port(dpid, EDGE)).unwrap();
        network.add_edge(port(dpid, EDGE), megabits(10), fabric::Duration(0)).unwrap();
    }
    network
}

/// What must hold at every instant.
fn check(network: &Network, embedding: &Embedding) -> Result<(), TestCaseError> {
    let walker = Walker { network, maps: embedding.switch_maps() };
    let far: BTreeMap<(TenantId, VirtualPortId), VirtualPortId> = embedding
        .wanted()
        .iter()
        .flat_map(|(&tenant, spec)| {
            spec.links.iter().flat_map(move |link| {
                let [a, b] = link.ends;
                [((tenant, a), b), ((tenant, b), a)]
            })
        })
        .collect();
    for (here, tenant, _, id, port) in ports(embedding) {
        let at_edge = embedding.wanted()[&tenant].ports.iter().find(|it| it.port == id);
        let expected = match at_edge {
            Some(edge) => Arrived::Edge(edge.at),
            None => Arrived::In(tenant, far[&(tenant, id)]),
        };
        if let PortKind::Link { far: said, .. } = &port.kind {
            let end = far[&(tenant, id)];
            let is_there = |switch: &&SwitchSpec| switch.dpid == end.switch;
            let there = embedding.wanted()[&tenant].switches.iter().find(is_there).unwrap();
            prop_assert_eq!((said.port, &said.on), (end.number, &there.members));
        }
        match &port.kind {
            PortKind::Edge { port, hosts } => {
                prop_assert_eq!(Arrived::Edge(PortId::new(here, *port)), expected);
                prop_assert!(hosts.is_empty());
            }
            PortKind::Link { sends: Some(hop), vlans, mapped, .. } => {
                prop_assert!(port.up);
                prop_assert_eq!(walker.follow(here, *hop), expected);
                for way in vlans {
                    let sends = way.sends.unwrap();
                    prop_assert_eq!(sends.port, hop.port);
                    let arrived = walker.follow_frames(here, sends, Frames::Vlan(way.vlan));
                    prop_assert_eq!(arrived, expected);
                }
                for (&it, way) in mapped {
                    let sends = way.sends.unwrap();
                    prop_assert_eq!(sends.port, hop.port);
                    let arrived = walker.follow_frames(here, sends, Frames::Mapped(it));
                    prop_assert_eq!(arrived, expected);
                }
            }
            PortKind::Link { sends: None, .. } => prop_assert!(!port.up),
            PortKind::Remote { sends: Some(hop), vlans, mapped, .. } => {
                let expected = if port.up { expected } else { Arrived::Lost };
                prop_assert_eq!(walker.follow(here, *hop), expected);
                for way in vlans {
                    let frames = Frames::Vlan(way.vlan);
                    let arrived = walker.follow_frames(here, way.sends.unwrap(), frames);
                    prop_assert_eq!(arrived, expected);
                }
                for (&it, way) in mapped {
                    let frames = Frames::Mapped(it);
                    let arrived = walker.follow_frames(here, way.sends.unwrap(), frames);
                    prop_assert_eq!(arrived, expected);
                }
            }
            PortKind::Remote { sends: None, .. } => {}
        }
        if let PortKind::Link { vlans, .. } | PortKind::Remote { vlans, .. } = &port.kind {
            let named: Vec<u16> = vlans.iter().map(|way| way.vlan).collect();
            prop_assert_eq!(named, embedding.wanted()[&tenant].vlans.clone());
        }
        if let PortKind::Link { mapped, .. } | PortKind::Remote { mapped, .. } = &port.kind {
            let has = embedding.wanted()[&tenant].physical.is_some();
            let all = Mapped::ALL.into_iter().filter(|_| has);
            prop_assert!(all.eq(mapped.keys().copied()), "{:?}", mapped);
        }
    }
    check_repeating(embedding)?;
    // One way for what comes in with a tag, at each switch; two that send the same on a wire would collide there.
    for map in embedding.switch_maps().values() {
        let mut seen = BTreeSet::new();
        for transit in &map.transit {
            prop_assert!(seen.insert(transit.from), "{:?} twice", transit.from);
        }
        let kinds = map.members.values().flat_map(|it| it.ports.values()).map(|port| &port.kind);
        for kind in kinds {
            if let PortKind::Link { receives, vlans, mapped, .. } = kind {
                let tagged = vlans.iter().flat_map(|way| &way.receives);
                let mapped = mapped.values().flat_map(|way| &way.receives);
                for hop in receives.iter().chain(tagged).chain(mapped) {
                    prop_assert!(seen.insert(*hop), "{hop:?} twice");
                }
            }
        }
    }
    // Whoever asks for no bandwidth has a way wherever there is one and tags are left.
    for (&tenant, spec) in embedding.wanted() {
        for (id, status) in embedding.trunks(tenant) {
            let Carries::Link(ends) = id.carries else { continue };
            let link = spec.links.iter().find(|link| link.ends.contains(&ends[0])).unwrap();
            let is_refused = matches!(status.trouble, Some(Trouble::Refused(_)));
            if link.bandwidth == Bandwidth::ZERO && status.trouble.is_some() && !is_refused {
                let members = ends.map(|end| {
                    &spec.switches.iter().find(|it| it.dpid == end.switch).unwrap().members
                });
                for to in members[1] {
                    let distances = Distances::to(network, network.switch_index(*to).unwrap());
                    for from in members[0] {
                        let from = network.switch_index(*from).unwrap();
                        let given = matches!(link.route, Route::Given(_));
                        prop_assert!(
                            distances.hops(from).is_none() || given,
                            "{:?}",
                            status.trouble
                        );
                    }
                }
            }
        }
    }
    Ok(())
}

/// Repeaters send by all edge ports, and by links that join what can be joined, each part in one way only.
fn check_repeating(embedding: &Embedding) -> Result<(), TestCaseError> {
    let (mut repeats, mut up) = (BTreeMap::new(), BTreeSet::new());
    for (_, tenant, _, id, port) in ports(embedding) {
        // To all members of a big switch a port is the same.
        prop_assert_eq!(*repeats.entry((tenant, id)).or_insert(port.repeats), port.repeats);
        if port.up {
            up.insert((tenant, id));
        }
    }
    for (&tenant, spec) in embedding.wanted() {
        for edge in &spec.ports {
            prop_assert_eq!(repeats.get(&(tenant, edge.port)), Some(&true));
        }
        // By the tree alone, and by all links that have a way, the same switches are joined.
        let (mut tree, mut all) = (Parts::default(), Parts::default());
        for link in &spec.links {
            let [a, b] = link.ends.map(|end| repeats[&(tenant, end)]);
            prop_assert_eq!(a, b);
            let is_up = link.ends.iter().all(|end| up.contains(&(tenant, *end)));
            prop_assert!(is_up || !a, "a link without a way is in the tree");
            let [from, to] = link.ends.map(|end| end.switch);
            if is_up {
                all.join(from, to);
            }
            if a {
                prop_assert!(tree.join(from, to), "{from} and {to} are joined twice");
            }
        }
        for switches in spec.switches.iter().zip(spec.switches.iter().skip(1)) {
            let (a, b) = (switches.0.dpid, switches.1.dpid);
            prop_assert_eq!(tree.part(a) == tree.part(b), all.part(a) == all.part(b));
        }
    }
    Ok(())
}

/// Switches, by one of those with which each is joined.
#[derive(Default)]
struct Parts(BTreeMap<Dpid, Dpid>);

impl Parts {
    fn part(&self, switch: Dpid) -> Dpid {
        self.0.get(&switch).map_or(switch, |&next| self.part(next))
    }

    /// False if they are already.
    fn join(&mut self, a: Dpid, b: Dpid) -> bool {
        let (a, b) = (self.part(a), self.part(b));
        a != b && self.0.insert(a, b).is_none()
    }
}

/// Where packets come in that pass through switches between a path's ends.
fn entrances(route: &Routed) -> Vec<(Dpid, Hop)> {
    let wires = &route.wires;
    let of = |(lane, tags): (&Lane, &Vec<Tag>)| -> Vec<(Dpid, Hop)> {
        let inner = 1..wires.len();
        let at = inner.map(|at| match lane.forth {
            true => (wires[at - 1].to, tags[at - 1]),
            false => (wires[at].from, tags[at]),
        });
        at.map(|(here, tag)| (here.dpid, Hop { port: here.port, tag })).collect()
    };
    route.tags.iter().flat_map(of).collect()
}

/// A switch refuses one of the entries by which packets pass through it: whatever came there goes another way.
fn refuse(
    network: &Network,
    embedding: &mut Embedding,
    which: prop::sample::Index,
) -> Result<(), TestCaseError> {
    let all = embedding.wanted().keys().flat_map(|&tenant| embedding.trunks(tenant));
    let routes = all.flat_map(|(_, status)| status.active.into_iter().chain(status.backup));
    let entrances: Vec<(Dpid, Hop)> = routes.flat_map(entrances).collect();
    if entrances.is_empty() {
        return Ok(());
    }
    let (dpid, hop) = *which.get(&entrances);
    let passing = |embedding: &Embedding| {
        let all = embedding.wanted().keys().flat_map(|&tenant| embedding.trunks(tenant));
        let passes = |status: TrunkStatus<'_>| {
            let mut routes = status.active.into_iter().chain(status.backup);
            routes.any(|route| route.wires[1..].iter().any(|wire| wire.from.dpid == dpid))
        };
        let passing = all.filter(|(_, status)| passes(*status)).map(|(id, _)| id);
        passing.collect::<BTreeSet<TrunkId>>()
    };
    let before = passing(embedding);
    let transits = &embedding.switch_map(dpid).unwrap().transit;
    let refused = transits.iter().filter(|it| it.from == hop).copied().collect();
    if embedding.handle_refused(network, dpid, &refused).parted {
        // Its other lanes may still carry frames; when they do not, another link repeats in its place.
        embedding.rejoin(network);
    }
    let after = passing(embedding);
    prop_assert_eq!(before.difference(&after).count(), 1, "{} {:?}", dpid, hop);
    Ok(())
}

/// Whether what a trunk carries is a link that reverts.
fn reverts(spec: &Spec, id: TrunkId) -> bool {
    let Carries::Link(ends) = id.carries else { return false };
    spec.links.iter().any(|link| link.ends.contains(&ends[0]) && link.reverts)
}

/// The ports at the near ends of all wires between switches.
fn wires(network: &Network) -> Vec<PortId> {
    let near = |(id, link): (LinkId, &fabric::Link)| match (link.from, link.to) {
        (End::Switch { port, .. }, End::Switch { .. }) if id < id.reverse() => Some(port),
        _ => None,
    };
    network.links().filter_map(near).collect()
}

proptest! {
    /// Also while the wires are found one by one, and links leave their detours.
    #[test]
    fn they_do_so_while_the_network_grows(
        network in small().prop_map(with_edges),
        drawn in proptest::collection::vec(any_network(), 1..4),
        order in any::<prop::sample::Index>(),
    ) {
        let mut network = network;
        let whole = network.clone();
        let mut wires = wires(&network);
        wires.iter().for_each(|wire| drop(network.set_port_up(*wire, false).unwrap()));
        let specs = drawn.iter().zip(1..);
        let specs = specs.map(|(drawn, number)| (TenantId(number), spec(&whole, drawn, number == 1)));
        let wanted: BTreeMap<TenantId, Spec> = specs.collect();
        let range = [3, 1300].map(|tag| Tag::new(tag).unwrap());
        let mut embedding = Embedding::new(range[0], range[1]);
        prop_assume!(embedding.apply(&Network::default(), &wanted).is_ok());
        embedding.handle_changes(&network);
        let first = order.index(wires.len().max(1)).min(wires.len());
        wires.rotate_left(first);
        for wire in wires {
            network.set_port_up(wire, true).unwrap();
            if embedding.handle_changes(&network).parted {
                embedding.rejoin(&network);
            }
            check(&network, &embedding)?;
        }
        embedding.apply(&network, &BTreeMap::new()).unwrap();
        prop_assert_eq!((embedding.tags_in_use(), embedding.switch_maps().len()), (0, 0));
    }

    #[test]
    fn packets_end_where_they_should(
        network in small().prop_map(with_edges),
        drawn in proptest::collection::vec(any_network(), 1..4),
        flaps in proptest::collection::vec(
            (any::<prop::sample::Index>(), any::<bool>(), any::<bool>(), proptest::option::of(any::<prop::sample::Index>())),
            0..16,
        ),
        first in 3_u16..3800,
    ) {
        let mut network = network;
        // So few tags that they have to be swapped on the way, but not so few that they run out.
        let range = [first, first + 270].map(|tag| Tag::new(tag).unwrap());
        let mut embedding = Embedding::new(range[0], range[1]);
        let mut wanted = BTreeMap::new();
        for (drawn, number) in drawn.iter().zip(1..) {
            let before = (embedding.export(), embedding.switch_maps().clone());
            let mut more = wanted.clone();
            more.insert(TenantId(number), spec(&network, drawn, number == 1));
            let dry = embedding.dry_run(&network, &more);
            let result = embedding.apply(&network, &more);
            prop_assert_eq!(&dry, &result);
            match result {
                Ok(_) => wanted = more,
                // Nothing is half applied.
                Err(refusals) => {
                    prop_assert!(!refusals.is_empty());
                    prop_assert_eq!(before, (embedding.export(), embedding.switch_maps().clone()));
                }
            }
            check(&network, &embedding)?;
        }
        let wires = wires(&network);
        let mut some_refused = false;
        for (wire, up, restart, refused) in flaps {
            if wires.is_empty() { break; }
            if let Some(refused) = refused {
                some_refused = true;
                refuse(&network, &mut embedding, refused)?;
                check(&network, &embedding)?;
            }
            network.set_port_up(*wire.get(&wires), up).unwrap();
            let maps = embedding.switch_maps().clone();
            let changes = embedding.handle_changes(&network);
            for (dpid, map) in embedding.switch_maps() {
                let same = maps.get(dpid).is_some_and(|before| before == map);
                prop_assert_eq!(changes.switches.contains(dpid), !same);
            }
            check(&network, &embedding)?;
            if restart {
                let mut after = Embedding::new(range[0], range[1]);
                after.restore(&embedding.export()).unwrap();
                after.apply(&Network::default(), &wanted).unwrap();
                after.handle_changes(&network);
                after.stop_waiting(&network);
                check(&network, &after)?;
                // What had a way has the same one, and the same tags.
                for &tenant in wanted.keys() {
                    for ((id, was), (_, is)) in embedding.trunks(tenant).zip(after.trunks(tenant)) {
                        // What a switch had refused is tried again: what was nowhere may be somewhere, and what reverts at home.
                        let wires = |route: Option<&Routed>| route.map(|it| it.wires.clone());
                        if some_refused && was.active.is_some() {
                            let same = wires(is.active) == wires(was.active);
                            prop_assert!(same || reverts(&wanted[&tenant], id), "{:?}", id);
                        } else if was.active.is_some() {
                            prop_assert_eq!(is.active, was.active, "{:?}", id);
                        }
                    }
                }
                embedding = after;
            }
        }
        // Other VLANs: the tags of what stays are as they were, and so are the paths.
        let mut other = wanted.clone();
        other.values_mut().for_each(|spec| spec.vlans = vec![2]);
        let before = embedding.clone();
        prop_assert_eq!(embedding.apply(&network, &other).unwrap().moves, []);
        check(&network, &embedding)?;
        for &tenant in other.keys() {
            for ((id, was), (_, is)) in before.trunks(tenant).zip(embedding.trunks(tenant)) {
                for (was, is) in [(was.active, is.active), (was.backup, is.backup)] {
                    let kept = |lane: &&Lane| lane.frames.vlan().is_none_or(|vlan| vlan == 2);
                    for lane in was.iter().flat_map(|it| it.tags.keys()).filter(kept) {
                        prop_assert_eq!(was.unwrap().tags.get(lane), is.unwrap().tags.get(lane), "{:?}", id);
                    }
                }
            }
        }
        embedding.apply(&network, &BTreeMap::new()).unwrap();
        prop_assert_eq!((embedding.tags_in_use(), embedding.switch_maps().len()), (0, 0));
        let mut reserved = network.links().map(|(link, _)| embedding.reservations().reserved(link));
        prop_assert!(reserved.all(|reserved| reserved == Bandwidth::ZERO));
    }
}
