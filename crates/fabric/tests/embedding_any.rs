//! Tests of any virtual networks on any physical network, with any failures: every packet arrives at the port that its
//! tenant expects, or is dropped.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

mod common;

use common::spec::all_follow;
use common::walk::{Arrived, Walker, port, ports};
use common::{megabits, small};
use fabric::embedding::{
    Carries, Embedding, Hop, Lane, LinkSpec, PortKind, PortSpec, Route, Routed, Spec, Step,
    SwitchMap, SwitchSpec, Tag, Trouble, TrunkId, TrunkStatus, VirtualPortId, Wire,
};
use fabric::paths::{Disjoint, Search};
use fabric::{Bandwidth, Dpid, End, LinkId, Network, PortId, TenantId};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The number of the edge port that is added to every switch: higher than all port numbers of wires.
const EDGE: u32 = 100;

/// A random network of a tenant: the virtual switch on each physical switch, and the links.
#[derive(Clone, Debug)]
struct Drawn {
    /// The virtual switch on each physical switch; 0: none.
    on: Vec<u64>,
    links: Vec<DrawnLink>,
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
    let links = proptest::collection::vec(link, 0..9);
    let on = proptest::collection::vec(0_u64..4, 8);
    (on, links).prop_map(|(on, links)| Drawn { on, links })
}

/// A tenant's network on the existing switches, with or without edge ports.
fn spec(network: &Network, drawn: &Drawn, edges: bool) -> Spec {
    let mut spec = Spec::default();
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

/// A port of a switch in `from` with a wire to a switch in `to`.
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
        network.add_edge(port(dpid, EDGE), megabits(10), fabric::Duration::ZERO).unwrap();
    }
    network
}

/// Checks the invariants that hold at every instant.
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
            PortKind::Link { sends: Some(hop), .. } => {
                prop_assert!(port.up);
                prop_assert_eq!(walker.follow(here, *hop), expected);
            }
            PortKind::Link { sends: None, .. } => prop_assert!(!port.up),
            PortKind::Remote { sends: Some(hop), .. } => {
                let expected = if port.up { expected } else { Arrived::Lost };
                prop_assert_eq!(walker.follow(here, *hop), expected);
            }
            PortKind::Remote { sends: None, .. } => {}
        }
    }
    // At each switch a tag has one meaning per ingress port. Two trunks with the same tag on one wire would collide.
    for map in embedding.switch_maps().values() {
        let mut seen = BTreeSet::new();
        for transit in &map.transit {
            prop_assert!(seen.insert(transit.from), "{:?} twice", transit.from);
        }
        let kinds = map.members.values().flat_map(|it| it.ports.values()).map(|port| &port.kind);
        for kind in kinds {
            if let PortKind::Link { receives, .. } = kind {
                for hop in receives {
                    prop_assert!(seen.insert(*hop), "{hop:?} twice");
                }
            }
        }
    }
    check_ways(network, embedding)
}

/// A trunk with a working path between the same two switches before and after a change loses no packets, whichever
/// switches already have their new maps. The check tries some mixes of old and new maps.
fn check_mixed(
    network: &Network,
    before: &BTreeMap<Dpid, Arc<SwitchMap>>,
    embedding: &Embedding,
    first: u8,
    stands: &dyn Fn((TenantId, VirtualPortId)) -> bool,
) -> Result<(), TestCaseError> {
    let after = embedding.switch_maps();
    let links = embedding.wanted().iter().flat_map(|(&tenant, spec)| {
        let ends = spec.links.iter().map(|link| link.ends);
        ends.flat_map(move |[a, b]| [(tenant, a, b), (tenant, b, a)])
    });
    for (tenant, from, to) in links {
        let sends = |maps| sends_at(maps, tenant, from).zip(sends_at(maps, tenant, to));
        let Some((((here, _), (there, _)), ((now_here, _), (now_there, _)))) =
            sends(before).zip(sends(after))
        else {
            continue;
        };
        if (here, there) != (now_here, now_there) || !stands((tenant, from)) {
            continue;
        }
        for mix in (0..8).map(|turn| first.rotate_left(turn)) {
            let dpids: BTreeSet<Dpid> = before.keys().chain(after.keys()).copied().collect();
            let map = |dpid: Dpid| {
                let maps = if mix >> dpid.0 & 1 == 1 { after } else { before };
                maps.get(&dpid).map(|map| (dpid, Arc::clone(map)))
            };
            let maps = dpids.into_iter().filter_map(map).collect();
            let Some((_, hop)) = sends_at(&maps, tenant, from) else { continue };
            let arrived = Walker { network, maps: &maps }.arrive(here, hop);
            prop_assert_eq!(arrived, (there, Arrived::In(tenant, to)), "{:08b}", mix);
        }
    }
    Ok(())
}

/// The switch of a link's end, and its egress.
fn sends_at(
    maps: &BTreeMap<Dpid, Arc<SwitchMap>>,
    tenant: TenantId,
    port: VirtualPortId,
) -> Option<(Dpid, Hop)> {
    maps.iter().find_map(|(&dpid, map)| {
        let member = map.members.get(&tenant).filter(|it| it.datapath == port.switch)?;
        match &member.ports.get(&port.number)?.kind {
            PortKind::Link { sends, .. } => sends.map(|hop| (dpid, hop)),
            _ => None,
        }
    })
}

/// Every path has all its tags, and for a trunk without a path there is no path with bandwidth and tags.
fn check_ways(network: &Network, embedding: &Embedding) -> Result<(), TestCaseError> {
    let mut borne: BTreeMap<PortId, usize> = BTreeMap::new();
    for (id, status) in embedding.wanted().keys().flat_map(|&tenant| embedding.trunks(tenant)) {
        for route in status.active.into_iter().chain(status.backup).chain(status.leaving) {
            let is_link = matches!(id.carries, Carries::Link(_));
            prop_assert!(!is_link || route.tags.len() == 2, "{:?}", id);
            for (lane, tags) in &route.tags {
                prop_assert_eq!(tags.len(), route.wires.len());
                let from = |wire: &Wire| if lane.forth { wire.from } else { wire.to };
                route.wires.iter().for_each(|wire| *borne.entry(from(wire)).or_default() += 1);
            }
        }
        // A tunnel of a big switch may lack tags for some ports.
        let lacks_tags = matches!(status.trouble, Some(Trouble::Tags(_)));
        prop_assert!(status.active.is_none() == status.trouble.is_some() || lacks_tags);
    }
    prop_assert_eq!(borne.values().sum::<usize>(), embedding.tags_in_use());
    let [least, most] = embedding.tag_range().map(Tag::get);
    let free = |port: PortId| usize::from(most - least) + 1 - borne.get(&port).unwrap_or(&0);
    for (&tenant, spec) in embedding.wanted() {
        for (id, status) in embedding.trunks(tenant) {
            let Carries::Link(ends) = id.carries else { continue };
            let link = spec.links.iter().find(|link| link.ends.contains(&ends[0])).unwrap();
            let is_refused = matches!(status.trouble, Some(Trouble::Refused(_)));
            // A given route allows no other path.
            let is_given = matches!(link.route, Route::Given(_));
            if status.active.is_some() || is_refused || is_given {
                continue;
            }
            let usable = |id: LinkId| {
                let has_tags = |end| matches!(end, End::Switch { port, .. } if free(port) > 0);
                let has_room = |id| embedding.reservations().free(network, id) >= link.bandwidth;
                let it = network.link(id);
                it.is_up()
                    && has_tags(it.from)
                    && has_tags(it.to)
                    && has_room(id)
                    && has_room(id.reverse())
            };
            let members = ends
                .map(|end| &spec.switches.iter().find(|it| it.dpid == end.switch).unwrap().members);
            for (from, to) in
                members[0].iter().flat_map(|from| members[1].iter().map(move |to| (from, to)))
            {
                let ends = [from, to].map(|dpid| network.switch_index(*dpid).unwrap());
                let found = Search::default().shortest(network, ends[0], ends[1], usable);
                prop_assert!(found.is_none(), "{:?} {:?}: {:?}", id, status.trouble, found);
            }
        }
    }
    let reservations = embedding.reservations();
    let crowded = reservations.oversubscribed(network);
    for (id, link) in network.links() {
        let reserved = reservations.reserved(id);
        prop_assert!(reserved <= link.capacity || crowded.contains(&id), "{}: {}", id, reserved);
    }
    // Reservations on a link that became too narrow have no room elsewhere.
    let most = usize::from(!embedding.wanted().is_empty());
    for (_, it) in reservations.iter() {
        let is_on = |path: &fabric::Path| path.links().iter().any(|link| crowded.contains(link));
        let bandwidth = it.request().bandwidth;
        if !it.active().is_some_and(is_on)
            || bandwidth == Bandwidth::ZERO
            || it.avoided().next().is_some()
        {
            continue;
        }
        let own = |id: LinkId| {
            let paths = it.active().into_iter().chain(it.backup());
            let on = paths.flat_map(fabric::Path::links).filter(|link| link.wire() == id.wire());
            bandwidth.bits_per_second() * on.count() as u64
        };
        let usable = |id: LinkId| {
            let has_tags = |end| matches!(end, End::Switch { port, .. } if free(port) >= most);
            let link = network.link(id);
            let left = (link.capacity.bits_per_second() + own(id))
                .saturating_sub(reservations.reserved(id).bits_per_second());
            link.is_up()
                && has_tags(link.from)
                && has_tags(link.to)
                && left >= bandwidth.bits_per_second()
        };
        let found = Search::default().shortest(network, it.request().from, it.request().to, usable);
        prop_assert!(found.is_none(), "{:?}: {:?}", it, found);
    }
    Ok(())
}

/// The ingresses of packets at the switches between the ends of a path.
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

/// A switch refuses one of its transit rules: the trunk of this rule uses another path.
fn refuse(
    network: &Network,
    embedding: &mut Embedding,
    which: prop::sample::Index,
) -> Result<(), TestCaseError> {
    let all = |embedding: &Embedding| -> Vec<(TrunkId, Dpid, Hop)> {
        let trunks = embedding.wanted().keys().flat_map(|&tenant| embedding.trunks(tenant));
        let of = |(id, status): (TrunkId, TrunkStatus<'_>)| {
            let routes = status.active.into_iter().chain(status.backup);
            routes.flat_map(entrances).map(move |(dpid, hop)| (id, dpid, hop)).collect::<Vec<_>>()
        };
        trunks.flat_map(of).collect()
    };
    let before = all(embedding);
    if before.is_empty() {
        return Ok(());
    }
    let &(id, dpid, hop) = which.get(&before);
    let transits = &embedding.switch_map(dpid).unwrap().transit;
    let refused = transits.iter().filter(|it| it.from == hop).copied().collect();
    let parted = embedding.handle_refused(network, dpid, &refused).parted;
    all_follow(network, embedding, parted);
    let passes = |&(other, at, _): &(TrunkId, Dpid, Hop)| (other, at) == (id, dpid);
    prop_assert!(!all(embedding).iter().any(passes), "{:?} {} {:?}", id, dpid, hop);
    Ok(())
}

/// Whether the trunk carries a link that reverts.
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
    /// Wires are discovered one by one, and links leave their detours.
    #[test]
    fn packets_reach_only_the_expected_port_while_the_network_grows(
        network in small().prop_map(with_edges),
        drawn in proptest::collection::vec(any_network(), 1..4),
        order in any::<prop::sample::Index>(),
        // How often switches have followed before the next wire is discovered, and which switches follow first.
        follow in proptest::collection::vec((0_usize..4, any::<u8>()), 13),
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
        for (wire, (times, first)) in wires.into_iter().zip(follow) {
            network.set_port_up(wire, true).unwrap();
            let before = embedding.switch_maps().clone();
            embedding.handle_changes(&network);
            check_mixed(&network, &before, &embedding, first, &|_| true)?;
            check(&network, &embedding)?;
            for _ in 0..times {
                let before = embedding.switch_maps().clone();
                embedding.rejoin(&network);
                check_mixed(&network, &before, &embedding, first, &|_| true)?;
                check(&network, &embedding)?;
            }
        }
        embedding.apply(&network, &BTreeMap::new()).unwrap();
        prop_assert_eq!((embedding.tags_in_use(), embedding.switch_maps().len()), (0, 0));
    }

    #[test]
    fn packets_reach_only_the_expected_port_after_any_changes(
        network in small().prop_map(with_edges),
        drawn in proptest::collection::vec(any_network(), 1..4),
        happenings in proptest::collection::vec(happening(), 0..16),
        first in 3_u16..3800,
        // With few tags, switches have to swap tags on the path, or no tag is left.
        tags in prop_oneof![1_u16..20, 20_u16..271, 1200_u16..1300],
        follow_first in any::<u8>(),
    ) {
        let mut network = network;
        let whole = network.clone();
        let range = [first, (first + tags - 1).min(4068)].map(|tag| Tag::new(tag).unwrap());
        let mut embedding = Embedding::new(range[0], range[1]);
        let specs: Vec<Spec> =
            drawn.iter().zip(0..).map(|(drawn, number)| spec(&whole, drawn, number == 0)).collect();
        for (spec, number) in specs.iter().zip(1..) {
            let mut more = embedding.wanted().clone();
            more.insert(TenantId(number), spec.clone());
            apply(&network, &mut embedding, &more)?;
        }
        let wires = wires(&network);
        let mut some_refused = false;
        for happening in happenings {
            match happening {
                Happening::Wire(..) | Happening::Capacity(..) if wires.is_empty() => break,
                Happening::Wire(wire, up) => {
                    network.set_port_up(*wire.get(&wires), up).unwrap();
                    follow(&network, &mut embedding, follow_first)?;
                }
                Happening::Capacity(wire, capacity) => {
                    network.set_capacity(*wire.get(&wires), megabits(capacity)).unwrap();
                    follow(&network, &mut embedding, follow_first)?;
                }
                Happening::Refused(which) => {
                    some_refused = true;
                    refuse(&network, &mut embedding, which)?;
                }
                Happening::Wanted(which, bandwidth) => {
                    let mut other = embedding.wanted().clone();
                    let at = which.index(specs.len());
                    let mut spec = specs[at].clone();
                    spec.links.iter_mut().for_each(|link| link.bandwidth = megabits(bandwidth));
                    other.insert(TenantId(at as u16 + 1), spec);
                    apply(&network, &mut embedding, &other)?;
                }
                Happening::Gone(which) => {
                    let mut fewer = embedding.wanted().clone();
                    fewer.remove(&TenantId(which.index(specs.len()) as u16 + 1));
                    prop_assert!(apply(&network, &mut embedding, &fewer)?);
                }
                Happening::Restart => embedding = restart(&network, &embedding, some_refused)?,
            }
            check(&network, &embedding)?;
        }
        prop_assert!(apply(&network, &mut embedding, &BTreeMap::new())?);
        prop_assert_eq!((embedding.tags_in_use(), embedding.switch_maps().len()), (0, 0));
        let mut reserved = network.links().map(|(link, _)| embedding.reservations().reserved(link));
        prop_assert!(reserved.all(|reserved| reserved == Bandwidth::ZERO));
    }
}

#[derive(Clone, Debug)]
enum Happening {
    /// A wire goes up or down.
    Wire(prop::sample::Index, bool),
    /// A wire has this capacity in Mbit/s from now on.
    Capacity(prop::sample::Index, u64),
    /// A switch refuses a transit rule.
    Refused(prop::sample::Index),
    /// A tenant requests its network, with this bandwidth for all links.
    Wanted(prop::sample::Index, u64),
    /// A tenant requests no network.
    Gone(prop::sample::Index),
    Restart,
}

fn happening() -> impl Strategy<Value = Happening> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        5 => (index(), any::<bool>()).prop_map(|(wire, up)| Happening::Wire(wire, up)),
        2 => (index(), 1_u64..6).prop_map(|(wire, capacity)| Happening::Capacity(wire, capacity)),
        1 => index().prop_map(Happening::Refused),
        1 => (index(), 0_u64..3).prop_map(|(tenant, bandwidth)| Happening::Wanted(tenant, bandwidth)),
        1 => index().prop_map(Happening::Gone),
        1 => Just(Happening::Restart),
    ]
}

/// Applies a request, and returns whether it was accepted. A refused request changes nothing; an accepted request has
/// the result of the dry run.
fn apply(
    network: &Network,
    embedding: &mut Embedding,
    wanted: &BTreeMap<TenantId, Spec>,
) -> Result<bool, TestCaseError> {
    let before = (embedding.export(), embedding.switch_maps().clone());
    let dry = embedding.dry_run(network, wanted);
    prop_assert_eq!(&before, &(embedding.export(), embedding.switch_maps().clone()));
    let result = embedding.apply(network, wanted);
    prop_assert_eq!(&dry, &result);
    if let Err(refusals) = &result {
        prop_assert!(!refusals.is_empty());
        prop_assert_eq!(before, (embedding.export(), embedding.switch_maps().clone()));
    }
    let parted = result.as_ref().is_ok_and(|changes| changes.parted);
    all_follow(network, embedding, parted);
    check(network, embedding)?;
    Ok(result.is_ok())
}

/// Exactly the switches with another map are reported.
fn follow(network: &Network, embedding: &mut Embedding, first: u8) -> Result<(), TestCaseError> {
    let maps = embedding.switch_maps().clone();
    let standing = standing(network, embedding);
    let changes = embedding.handle_changes(network);
    // A small tag range has no room for an old path and a new path at the same time.
    let [least, most] = embedding.tag_range().map(Tag::get);
    let has_tags = most - least > 500;
    check_mixed(network, &maps, embedding, first, &|end| has_tags && standing.contains(&end))?;
    for (dpid, map) in embedding.switch_maps() {
        let same = maps.get(dpid).is_some_and(|before| before == map);
        prop_assert_eq!(changes.switches.contains(dpid), !same);
    }
    let mut parted = changes.parted;
    while parted {
        let maps = embedding.switch_maps().clone();
        parted = embedding.rejoin(network).parted;
        check_mixed(network, &maps, embedding, first, &|_| has_tags)?;
    }
    Ok(())
}

/// The ends of links whose paths are still up.
fn standing(network: &Network, embedding: &Embedding) -> BTreeSet<(TenantId, VirtualPortId)> {
    let is_up = |wire: &Wire| {
        let link = network.link_from(wire.from);
        link.is_ok_and(|link| network.link(link).is_up())
    };
    let all = embedding.wanted().keys().flat_map(|&tenant| embedding.trunks(tenant));
    let is_whole = |it: &TrunkStatus<'_>| {
        it.active.into_iter().chain(it.leaving).all(|route| route.wires.iter().all(is_up))
    };
    let standing = all.filter(|(_, it)| is_whole(it));
    let ends = standing.filter_map(|(id, _)| match id.carries {
        Carries::Link(ends) => Some(ends.map(|end| (id.tenant, end))),
        Carries::Inside { .. } => None,
    });
    ends.flatten().collect()
}

/// After a restart each trunk with a path has the same path and the same tags.
fn restart(
    network: &Network,
    before: &Embedding,
    some_refused: bool,
) -> Result<Embedding, TestCaseError> {
    let [least, most] = before.tag_range();
    let mut after = Embedding::new(least, most);
    after.restore(&before.export()).unwrap();
    after.apply(&Network::default(), before.wanted()).unwrap();
    let parted = after.handle_changes(network).parted;
    let parted = after.stop_waiting(network).parted || parted;
    all_follow(network, &mut after, parted);
    let is_crowded = !before.reservations().oversubscribed(network).is_empty();
    for (&tenant, spec) in before.wanted() {
        for ((id, was), (_, is)) in before.trunks(tenant).zip(after.trunks(tenant)) {
            // After the restart refused transits are tried again: a trunk without a path may have a path, a reverting
            // trunk may be on its preferred path, and a trunk on an oversubscribed link may be on another path.
            let wires = |route: Option<&Routed>| route.map(|it| it.wires.clone());
            if some_refused && was.active.is_some() {
                let same = wires(is.active) == wires(was.active);
                prop_assert!(same || reverts(spec, id) || is_crowded, "{:?}", id);
            } else if was.active.is_some() {
                prop_assert_eq!(is.active, was.active, "{:?}", id);
            }
        }
    }
    Ok(after)
}
