//! Repeaters on any network, whatever happens to it, and whichever switches have followed: no frame goes round, and none comes
//! twice.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

mod common;

use common::network;
use common::spec::{RED, edge, embedding, link, switch, wanted};
use common::walk::{Arrived, Walker, port, ports};
use fabric::embedding::{
    Carries, Changes, Embedding, LinkSpec, PortKind, Spec, SwitchMap, VirtualPortId,
};
use fabric::{Bandwidth, Dpid, Duration, End, LinkId, Network, PortId, TenantId};
use proptest::prelude::*;
use proptest::sample::Index;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The edge port of each physical switch.
const EDGE: u32 = 100;

/// What happens.
#[derive(Clone, Debug)]
enum Step {
    /// A port goes down, or comes up again.
    Port(Index, bool),
    /// No probes come through a wire, or they do again. Frames do.
    Wire(Index, bool),
    /// Parts of the tenant's network are stopped, or started again.
    Link(Index),
    Switch(Index),
    Network,
    /// A link is wanted no more, or is again.
    Wanted(Index),
    /// Links take the places of those that left.
    Rejoin,
    Restart,
}

fn any_step() -> impl Strategy<Value = Step> {
    let which = any::<Index>;
    prop_oneof![
        4 => (which(), any::<bool>()).prop_map(|(at, up)| Step::Port(at, up)),
        3 => (which(), any::<bool>()).prop_map(|(at, up)| Step::Wire(at, up)),
        4 => which().prop_map(Step::Link),
        1 => which().prop_map(Step::Switch),
        1 => Just(Step::Network),
        2 => which().prop_map(Step::Wanted),
        3 => Just(Step::Rejoin),
        1 => Just(Step::Restart),
    ]
}

/// The virtual switch on each physical one (0 for none), and links between them with the bandwidth that they ask for.
type Drawn = (Vec<u64>, Vec<(u64, u64, u64)>);

/// Most virtual switches are on one physical switch, which has no other; many links are between neighbours.
fn any_drawn() -> impl Strategy<Value = Drawn> {
    let other = proptest::option::weighted(0.15, 0_u64..6);
    let on = proptest::collection::vec(other, 6);
    let on = on.prop_map(|on| (1..).zip(on).map(|(own, other)| other.unwrap_or(own)).collect());
    let near = (1_u64..6, 3_u64..6).prop_map(|(a, megabits)| (a, a + 1, megabits));
    let bandwidth = prop_oneof![Just(0), 3_u64..6];
    let link = prop_oneof![3 => near, 2 => (1_u64..7, 1_u64..7, bandwidth)];
    (on, proptest::collection::vec(link, 4..10))
}

/// A ring, and wires across.
fn any_real() -> impl Strategy<Value = Network> {
    (4_u64..7).prop_flat_map(|switches| {
        let wire = (0..switches, 1..switches, 3_u64..6)
            .prop_map(move |(a, further, megabits)| (a, (a + further) % switches, megabits));
        let wires = proptest::collection::vec(wire, 0..4);
        wires.prop_map(move |wires| {
            let mut all: Vec<_> = (0..switches).map(|a| (a, (a + 1) % switches, 5)).collect();
            all.extend(wires);
            network(switches, &all)
        })
    })
}

fn spec(network: &Network, (on, links): &Drawn) -> Spec {
    let mut spec = Spec::default();
    let mut members: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for (dpid, &on) in (0..network.switch_slots() as u64).zip(on).filter(|(_, on)| **on > 0) {
        members.entry(on).or_default().push(dpid);
    }
    for (&dpid, members) in &members {
        spec.switches.push(switch(dpid, members));
        let edges = (1..).zip(members).map(|(number, &at)| edge(dpid, number, port(at, EDGE)));
        spec.ports.extend(edges);
    }
    for (&(a, b, megabits), number) in links.iter().zip(50..) {
        if a != b && members.contains_key(&a) && members.contains_key(&b) {
            let bandwidth = Bandwidth::from_megabits_per_second(megabits);
            let reverts = number % 2 == 0;
            spec.links.push(LinkSpec { bandwidth, reverts, ..link((a, number), (b, number)) });
        }
    }
    spec
}

/// A tenant's network, what is really there, and the switches, each of which follows when it can.
struct World {
    /// What frames pass.
    real: Network,
    /// What is known of it.
    seen: Network,
    wires: Vec<[PortId; 2]>,
    spec: Spec,
    /// The links that are not wanted at present.
    unwanted: Vec<LinkSpec>,
    embedding: Embedding,
    has_parted: bool,
    /// Since nothing waited: the links that have left the tree, but for those that carry nothing since a port of theirs has gone down;
    /// and those that have gone elsewhere, which may carry frames where they were.
    left: BTreeSet<Ends>,
    moved: BTreeSet<Ends>,
    /// What each switch goes by.
    maps: Maps,
    /// What those go by at the end of a round at the latest that have not followed since it began.
    due: Maps,
    behind: BTreeSet<Dpid>,
}

type Maps = BTreeMap<Dpid, Arc<SwitchMap>>;
type Ends = [VirtualPortId; 2];

impl World {
    fn new(mut real: Network, drawn: &Drawn) -> World {
        for dpid in 0..real.switch_slots() as u64 {
            real.add_port(port(dpid, EDGE)).unwrap();
            let wide = Bandwidth::from_megabits_per_second(10);
            real.add_edge(port(dpid, EDGE), wide, Duration(0)).unwrap();
        }
        let spec = spec(&real, drawn);
        let mut world = World {
            seen: real.clone(),
            wires: wires(&real),
            real,
            spec,
            unwanted: Vec::new(),
            embedding: embedding(),
            has_parted: false,
            left: BTreeSet::new(),
            moved: BTreeSet::new(),
            maps: Maps::new(),
            due: Maps::new(),
            behind: BTreeSet::new(),
        };
        // Links for which there is no room on this network are not wanted.
        while world.embedding.apply(&world.seen, &wanted(&[(RED, &world.spec)])).is_err() {
            let links = &mut world.spec.links;
            match links.iter_mut().find(|link| link.bandwidth > Bandwidth::ZERO) {
                Some(link) => link.bandwidth = Bandwidth::ZERO,
                None => drop(links.pop()),
            }
            if world.spec.links.is_empty() {
                world.spec.switches.clear();
                world.spec.ports.clear();
            }
        }
        world.all_follow();
        world
    }

    fn follow(&mut self, dpid: Dpid) {
        follow(&mut self.maps, dpid, self.embedding.switch_maps());
        self.behind.remove(&dpid);
    }

    fn all_follow(&mut self) {
        self.maps = self.embedding.switch_maps().clone();
        self.behind.clear();
    }

    /// Switches are given time.
    fn begin_round(&mut self) {
        self.due = self.embedding.switch_maps().clone();
        self.behind = (0..8).map(Dpid).collect();
        self.has_parted = true;
    }

    /// They have had it, and so follow what there was when it began; what there has been since only if they like.
    fn end_round(&mut self) {
        if !self.has_parted {
            self.all_follow();
        }
        for dpid in core::mem::take(&mut self.behind) {
            follow(&mut self.maps, dpid, &self.due);
        }
        self.has_parted = false;
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Port(which, up) => {
                let Some(ends) = pick(which, &self.wires) else { return };
                if *up {
                    // What comes back before the switches at its ends have heard that it failed may carry what they
                    // sent into it before.
                    self.all_follow();
                }
                for network in [&mut self.real, &mut self.seen] {
                    network.set_port_up(ends[0], *up).unwrap();
                }
            }
            Step::Wire(which, is_found) => {
                let Some([a, b]) = pick(which, &self.wires) else { return };
                let is_known = self.seen.link_from(a).is_ok();
                let link = *self.real.link(self.real.link_from(a).unwrap());
                match is_found {
                    true if !is_known => {
                        drop(self.seen.connect(a, b, link.capacity, link.latency).unwrap());
                    }
                    false if is_known => drop(self.seen.unplug(a).unwrap()),
                    _ => return,
                }
            }
            Step::Link(which) => {
                let Some(link) = pick_mut(which, &mut self.spec.links) else { return };
                link.started = !link.started;
                return self.apply();
            }
            Step::Switch(which) => {
                let Some(switch) = pick_mut(which, &mut self.spec.switches) else { return };
                switch.started = !switch.started;
                return self.apply();
            }
            Step::Network => {
                self.spec.started = !self.spec.started;
                return self.apply();
            }
            Step::Wanted(which) => {
                let all = self.spec.links.len() + self.unwanted.len();
                match which.get(&(0..all.max(1)).collect::<Vec<_>>()) {
                    &at if at < self.spec.links.len() => {
                        self.unwanted.push(self.spec.links.remove(at));
                    }
                    _ => self.spec.links.extend(self.unwanted.pop()),
                }
                return self.apply();
            }
            Step::Rejoin => {
                self.end_round();
                let changes = self.embedding.rejoin(&self.seen);
                return self.note(&changes);
            }
            Step::Restart => {
                // Switches do what they did meanwhile.
                let saved = self.embedding.export();
                self.embedding = embedding();
                self.embedding.restore(&saved).unwrap();
                self.has_parted = false;
                self.apply();
            }
        }
        let changes = self.embedding.handle_changes(&self.seen);
        self.note(&changes);
    }

    fn apply(&mut self) {
        let mut result = self.embedding.apply(&self.seen, &wanted(&[(RED, &self.spec)]));
        if result.is_err() {
            // A link that was not wanted meanwhile may find no room.
            self.spec.links.pop().into_iter().for_each(|link| self.unwanted.push(link));
            result = self.embedding.apply(&self.seen, &wanted(&[(RED, &self.spec)]));
        }
        if let Ok(changes) = result {
            self.note(&changes);
        }
    }

    fn note(&mut self, changes: &Changes) {
        self.moved.extend(changes.moves.iter().filter_map(|it| match it.trunk.carries {
            Carries::Link(ends) => Some(ends),
            Carries::Inside { .. } => None,
        }));
        if changes.parted && !self.has_parted {
            self.begin_round();
        }
    }

    /// What comes in at each edge comes to each switch of the tenant's once at most.
    fn flood(&self) -> Result<(), TestCaseError> {
        for (&here, map) in &self.maps {
            let Some(member) = map.members.get(&RED) else { continue };
            let mut reached = BTreeSet::from([member.datapath]);
            let mut next = vec![(here, None)];
            while let Some((at, from)) = next.pop() {
                for (there, port) in self.repeat(at, from) {
                    prop_assert!(reached.insert(port.switch), "again at {port}: {reached:?}");
                    next.push((there, Some(port.number)));
                }
            }
        }
        Ok(())
    }

    /// Where a switch's repeating takes what came in by a port.
    fn repeat(&self, here: Dpid, from: Option<u32>) -> Vec<(Dpid, VirtualPortId)> {
        let walker = Walker { network: &self.real, maps: &self.maps };
        let Some(member) = self.maps.get(&here).and_then(|map| map.members.get(&RED)) else {
            return Vec::new();
        };
        let ports =
            member.ports.iter().filter(|(number, port)| port.repeats && Some(**number) != from);
        let sent = ports.filter_map(|(_, port)| match &port.kind {
            PortKind::Link { sends, .. } | PortKind::Remote { sends, .. } => *sends,
            PortKind::Edge { .. } => None,
        });
        let arrived = sent.map(|hop| walker.arrive(here, hop));
        let inside = arrived.filter_map(|(there, arrived)| match arrived {
            Arrived::In(_, port) => Some((there, port)),
            Arrived::Edge(_) | Arrived::Lost => None,
        });
        inside.collect()
    }
}

fn follow(maps: &mut Maps, dpid: Dpid, newer: &Maps) {
    match newer.get(&dpid) {
        Some(map) => maps.insert(dpid, Arc::clone(map)),
        None => maps.remove(&dpid),
    };
}

fn pick<T: Copy>(which: &Index, all: &[T]) -> Option<T> {
    (!all.is_empty()).then(|| *which.get(all))
}

fn pick_mut<'a, T>(which: &Index, all: &'a mut [T]) -> Option<&'a mut T> {
    if all.is_empty() { None } else { Some(which.get_mut(all)) }
}

fn wires(network: &Network) -> Vec<[PortId; 2]> {
    let both = |(id, link): (LinkId, &fabric::Link)| match (link.from, link.to) {
        (End::Switch { port: a, .. }, End::Switch { port: b, .. }) if id < id.reverse() => {
            Some([a, b])
        }
        _ => None,
    };
    network.links().filter_map(both).collect()
}

/// The links that have a way, and those of them by which switches repeat.
fn links(embedding: &Embedding, spec: &Spec) -> [BTreeSet<Ends>; 2] {
    let (mut up, mut repeating) = (BTreeSet::new(), BTreeSet::new());
    let of_red = |tenant: TenantId| tenant == RED;
    for (_, _, _, id, port) in ports(embedding).filter(|it| of_red(it.1)) {
        let Some(link) = spec.links.iter().find(|link| link.ends.contains(&id)) else { continue };
        let [a, b] = link.ends;
        let ends = [a.min(b), a.max(b)];
        if port.up {
            up.insert(ends);
        }
        if port.repeats {
            repeating.insert(ends);
        }
    }
    [up, repeating]
}

/// By which of others each switch can be reached; `None` if there is more than one way.
fn parts(links: &BTreeSet<Ends>) -> (BTreeMap<Dpid, Dpid>, bool) {
    let (mut parts, mut is_forest) = (BTreeMap::new(), true);
    for ends in links {
        let [a, b] = ends.map(|end| *parts.entry(end.switch).or_insert(end.switch));
        is_forest &= a != b;
        parts.values_mut().filter(|part| **part == b).for_each(|part| *part = a);
    }
    (parts, is_forest)
}

proptest! {
    #[test]
    fn nothing_goes_round(
        network in any_real(),
        drawn in any_drawn(),
        steps in proptest::collection::vec((any_step(), any::<u8>()), 0..16),
    ) {
        let mut world = World::new(network, &drawn);
        world.flood()?;
        for (step, follow) in &steps {
            let [_, before] = links(&world.embedding, &world.spec);
            world.take(step);
            world.flood()?;
            for dpid in (0..8).filter(|dpid| follow >> dpid & 1 == 1) {
                world.follow(Dpid(dpid));
                world.flood()?;
            }
            let [up, tree] = links(&world.embedding, &world.spec);
            prop_assert!(tree.is_subset(&up), "{tree:?} of {up:?}");
            // What has a way and was in the tree is still; with it there is no cycle.
            let kept: BTreeSet<_> = before.intersection(&up).copied().collect();
            prop_assert!(kept.is_subset(&tree), "{kept:?} of {tree:?}");
            let (_, is_forest) = parts(&tree);
            prop_assert!(is_forest, "{tree:?}");
            // Whatever has ways is joined, unless by what may still carry frames.
            let fails = matches!(step, Step::Port(_, false));
            world.left.extend(before.difference(&up).filter(|it| !fails || world.moved.contains(*it)));
            if !world.has_parted {
                world.left.clear();
                world.moved.clear();
            }
            let (taken, _) = parts(&tree.union(&world.left).copied().collect());
            for link in &up {
                let [a, b] = link.map(|end| taken.get(&end.switch));
                prop_assert!(a.is_some() && a == b, "{link:?} {:?}", world.left);
            }
        }
        world.take(&Step::Rejoin);
        world.all_follow();
        world.flood()?;
    }
}
