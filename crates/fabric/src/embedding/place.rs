//! Places trunks: at first, and after a change of the network.

use super::Embedding;
use super::check::given_ends;
use super::lanes::{Need, link_lanes, pairs};
use super::make_before_break::Before;
use super::map::Transit;
use super::spec::{Part, Reason, Refusal, Route, Spec, Step, VirtualPortId};
use super::switch_maps::{link_trunk, sorted};
use super::trouble::Trouble;
use super::trunk::{Carries, Routed, Trunk, TrunkId, Want, Wire, path, wires};
use crate::error::Error;
use crate::index::{LinkId, SwitchIndex};
use crate::network::{Network, Switch, Tagging};
use crate::paths::{Path, Search};
use crate::reservations::{Choice, Request, ReservationId, nowhere};
use crate::units::{Bandwidth, Dpid, TenantId};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;
use core::mem;

/// The most rounds in which free resources are distributed after one change.
const ROUNDS: usize = 8;

/// The differences of the network since the last look.
#[derive(Default)]
struct Seen {
    /// Links that went up or down.
    changed: Vec<LinkId>,
    /// Links with another capacity.
    resized: Vec<LinkId>,
    /// Whether a link is up for the first time.
    grew: bool,
}

impl Embedding {
    /// Removes trunks that are not requested any more and places new trunks. A new trunk without a possible place is
    /// refused, unless it waits for a switch.
    pub(super) fn place_all(&mut self, network: &Network) -> Result<(), Vec<Refusal>> {
        let wants: BTreeMap<TrunkId, Want> =
            self.wanted.iter().flat_map(|(&tenant, spec)| wants(tenant, spec)).collect();
        let changed = |(id, trunk): (&TrunkId, &Trunk)| wants.get(id) != Some(&trunk.want);
        let gone: Vec<TrunkId> =
            self.trunks.iter().filter(|it| changed(*it)).map(|(&id, _)| id).collect();
        for id in gone {
            self.give_up(id);
            self.trunks.remove(&id);
        }
        let mut refusals = Vec::new();
        let mut remembered = mem::take(&mut self.remembered);
        let (mut new, mut taken_back) = (Vec::new(), BTreeSet::new());
        for (id, want) in wants {
            if !self.trunks.contains_key(&id) {
                let held = remembered.take(id, &want).and_then(|held| self.hold(held));
                match held {
                    Some(_) => _ = taken_back.insert(id),
                    None => new.push(id),
                }
                self.trunks.insert(id, held.unwrap_or_else(|| Trunk::new(want)));
            }
        }
        self.check_held(network);
        for id in new {
            match self.place(network, id, false) {
                Ok(()) | Err(Trouble::Waiting(_)) => {}
                Err(trouble) => refusals.push(refusal(id, trouble)),
            }
        }
        // A trunk without new lanes has lost its tags for another reason, or was stored by a version that needed fewer
        // tags. This is no reason to refuse the present request.
        let lanes = self.lanes();
        let more: BTreeSet<TrunkId> = (self.trunks.iter())
            .filter(|(id, _)| !taken_back.contains(id))
            .filter(|(id, it)| lanes.get(id).is_some_and(|lanes| !lanes.is_subset(&it.lanes)))
            .map(|(&id, _)| id)
            .collect();
        let lacking = self.set_lanes(lanes).into_iter().filter(|(id, _)| more.contains(id));
        refusals.extend(lacking.map(|(id, port)| refusal(id, Trouble::Tags(port))));
        if refusals.is_empty() {
            // New trunks come first: trunks without a path are no reason to refuse new ones.
            self.share_out(network);
            return Ok(());
        }
        Err(refusals)
    }

    /// Handles the changes of the network since the last look.
    pub(super) fn catch_up(&mut self, network: &Network) {
        let Seen { changed, resized, grew } = self.look_at(network);
        self.is_growing |= grew;
        self.has_grown |= grew;
        if !resized.is_empty() {
            self.reservations.note_resized(network, &resized);
            self.reservations.note_freed();
        }
        self.follow_tagging(network);
        self.check_held(network);
        self.leave_broken(network);
        if !changed.is_empty() {
            self.find_homes(network);
            for reservation in self.reservations.concerned(network, &changed) {
                self.settle(network, reservation);
            }
            self.try_other_ends(network, true);
        }
        self.place_waiting(network);
        if grew {
            self.improve(network);
        }
        self.share_out(network);
    }

    /// Assigns tags to each path, and distributes free resources to trunks that have no path, are not on their
    /// preferred path, or lack a backup. A trunk that moves releases its old place for others, so the distribution
    /// takes several rounds. After the last round the remaining trunks wait for the next change.
    pub(super) fn share_out(&mut self, network: &Network) {
        self.set_all_lanes(network);
        for _ in 0..ROUNDS {
            self.leave_lacked();
            if !self.reservations.take_freed() {
                return;
            }
            for link in self.reservations.oversubscribed(network) {
                for reservation in self.reservations.crowding(link) {
                    if self.reservations.is_oversubscribed(network, link) {
                        self.settle(network, reservation);
                    }
                }
            }
            for reservation in self.reservations.unsettled() {
                self.settle(network, reservation);
            }
            self.try_other_ends(network, false);
            self.place_waiting(network);
            self.set_all_lanes(network);
        }
    }

    /// Moves trunks around a physical switch that has refused the rules of these transits.
    pub(super) fn go_around(
        &mut self,
        network: &Network,
        switch: Dpid,
        refused: &BTreeSet<Transit>,
    ) {
        self.leave_refused(switch, refused);
        let concerned: Vec<(TrunkId, Option<ReservationId>)> = (self.trunks.iter())
            .filter(|(_, trunk)| trunk.passes(switch, refused))
            .map(|(&id, trunk)| (id, trunk.reservation))
            .collect();
        for (id, reservation) in concerned {
            match reservation {
                // The reservation exists: the trunk has just named its number.
                Some(reservation) => {
                    let _ = self.reservations.avoid(network, reservation, switch);
                    self.settle(network, reservation);
                }
                // A link from the time before a restart is placed like any other link.
                None => self.give_up(id),
            }
        }
        self.place_waiting(network);
        self.share_out(network);
    }

    /// The differences since the last look at the network.
    fn look_at(&mut self, network: &Network) -> Seen {
        self.seen.resize(network.link_slots(), (false, Bandwidth::ZERO));
        self.known.resize(network.link_slots(), false);
        let mut all = Seen::default();
        for (at, (seen, known)) in self.seen.iter_mut().zip(&mut self.known).enumerate() {
            let id = LinkId(at as u32);
            let link = network.link(id);
            let is_up = link.is_up();
            let (was_up, capacity) = mem::replace(seen, (is_up, link.capacity));
            if was_up != is_up {
                all.changed.push(id);
            }
            if capacity != link.capacity && capacity != Bandwidth::ZERO {
                all.resized.push(id);
            }
            all.grew |= is_up && !mem::replace(known, true);
        }
        all
    }

    /// Updates the set of switches that handle only one tag. A disconnected switch keeps its last state.
    fn follow_tagging(&mut self, network: &Network) {
        self.single.retain(|dpid| network.switch_index(*dpid).is_err());
        let here = network.switches().map(|(_, switch)| switch);
        let single = here.filter(|switch| switch.tagging() == Tagging::Single);
        self.single.extend(single.map(Switch::dpid));
    }

    /// Places one trunk on its best paths with enough tags.
    pub(super) fn settle(&mut self, network: &Network, number: ReservationId) {
        let Some(&id) = self.by_reservation.get(&number) else { return };
        let Some(trunk) = self.trunks.get(&id) else { return };
        let need = Need::of(trunk);
        let lacks = |link| need.is_lacking(network, &self.tags, link).is_some();
        self.reservations.settle(network, number, &lacks);
        self.follow_reservation(network, number);
    }

    /// Updates a trunk after its reservation has moved: in steps if the old path still works. Tags are released before
    /// new tags are taken.
    pub(super) fn follow_reservation(&mut self, network: &Network, number: ReservationId) {
        let Some(&id) = self.by_reservation.get(&number) else { return };
        let Some(reservation) = self.reservations.get(number) else { return };
        let Some(trunk) = self.trunks.get_mut(&id) else { return };
        let stands = |wires: &[Wire]| {
            let path = path(network, wires);
            path.is_some_and(|path| reservation.stands(network, &path, &nowhere))
        };
        let before = Before::of(trunk, self.rounds, stands);
        let leaving = trunk.leaving.take().and_then(|it| it.route);
        let mut had = [trunk.active.take(), trunk.backup.take(), leaving];
        let mut keep = |path: Option<&Path>| {
            let wires = wires(network, path?);
            let same = had.iter_mut().find(|it| it.as_ref().is_some_and(|it| it.wires == wires));
            let fresh = Routed { wires, tags: BTreeMap::new() };
            Some(same.and_then(Option::take).unwrap_or(fresh))
        };
        trunk.active = keep(reservation.active());
        trunk.backup = keep(reservation.backup());
        let to = trunk.active.as_ref();
        trunk.leaving = to.and_then(|to| before.leaving(&to.wires, &mut had));
        for gone in had.iter().flatten() {
            gone.give_up(&mut self.tags);
        }
        let lanes = trunk.lanes.clone();
        if trunk.active.is_none() {
            let avoided = reservation.avoided().next();
            let why = avoided.map(Trouble::Refused);
            let why = why.unwrap_or_else(|| self.why_stranded(network, id, number));
            if let Some(trunk) = self.trunks.get_mut(&id) {
                trunk.trouble = Some(why);
            }
        }
        // A trunk that still lacks tags is marked.
        let _ = self.set_lanes_of(id, lanes);
        self.has_begun |= self.trunks.get(&id).is_some_and(|trunk| before.has_begun(trunk));
    }

    /// The reason why there is no path: no path at all, none with enough bandwidth, or none with enough tags.
    fn why_stranded(&mut self, network: &Network, id: TrunkId, number: ReservationId) -> Trouble {
        let path = match self.reservations.way_for(network, number) {
            Ok(path) => path,
            Err(error) => return Trouble::Route(error),
        };
        let need = self.trunks.get(&id).map(Need::of).unwrap_or_default();
        let lacking = need.first_lacking(network, &self.tags, [&path]);
        lacking.map_or(Trouble::Route(Error::NoPath), Trouble::Tags)
    }

    /// Releases links of big switches that have lost their path, if another member may have a path. `with_refused`:
    /// also links that a switch refuses; the new placement does not know this refusal any more.
    fn try_other_ends(&mut self, network: &Network, with_refused: bool) {
        let is_refused = |id| {
            let reservation = self.reservations.get(id);
            reservation.is_some_and(|it| it.avoided().next().is_some())
        };
        let lost = |trunk: &Trunk| {
            let choice = trunk.want.ends.iter().any(|ends| ends.len() > 1);
            let may = trunk.reservation.is_some_and(|id| with_refused || !is_refused(id));
            choice && may && trunk.active.is_none()
        };
        if !self.trunks.values().any(lost) {
            return;
        }
        let islands = Islands::of(network);
        let lost: Vec<TrunkId> = (self.trunks.iter())
            .filter(|(_, trunk)| lost(trunk) && islands.join(network, &trunk.want))
            .map(|(&id, _)| id)
            .collect();
        for id in lost {
            self.give_up(id);
        }
    }

    /// Places trunks without a place, if the network may have a place now.
    fn place_waiting(&mut self, network: &Network) {
        let waits = |trunk: &Trunk| trunk.reservation.is_none() && trunk.held.is_none();
        if !self.trunks.values().any(waits) {
            return;
        }
        let islands = Islands::of(network);
        let waiting: Vec<TrunkId> =
            self.trunks.iter().filter(|(_, trunk)| waits(trunk)).map(|(&id, _)| id).collect();
        for id in waiting {
            let Some(trunk) = self.trunks.get_mut(&id) else { continue };
            if islands.join(network, &trunk.want) {
                // The trunk keeps the reason itself, and there is no request to refuse.
                let _ = self.place(network, id, true);
            } else if !matches!(trunk.trouble, Some(Trouble::Waiting(dpid)) if network.switch_index(dpid).is_err())
            {
                trunk.trouble =
                    Some(missing(network, &trunk.want).unwrap_or(Trouble::Route(Error::NoPath)));
            }
        }
    }

    /// Finds a path for a trunk, and tags if the trunk is a link. A problem is also noted in the trunk. `anyhow`:
    /// places the trunk without the requested backup if there is no backup.
    fn place(&mut self, network: &Network, id: TrunkId, anyhow: bool) -> Result<(), Trouble> {
        let Some(want) = self.trunks.get(&id).map(|trunk| trunk.want.clone()) else {
            return Ok(());
        };
        let lanes = match id.carries {
            Carries::Link(_) => link_lanes(),
            // The lanes of a tunnel depend on the ends of the links, so the tunnel takes its tags when all links are
            // placed.
            Carries::Inside { .. } => BTreeSet::new(),
        };
        let need = Need::new(&lanes);
        let mut result = match missing(network, &want) {
            Some(trouble) => Err(trouble),
            None => self
                .find_place(network, &want, &need, anyhow)
                .map(|reservation| self.adopt_paths(network, id, reservation)),
        };
        if result.is_ok()
            && let Err(port) = self.set_lanes_of(id, lanes)
        {
            self.give_up(id);
            result = Err(Trouble::Tags(port));
        }
        if let Some(trunk) = self.trunks.get_mut(&id) {
            trunk.trouble = result.err();
        }
        result
    }

    /// Reserves the best place for a trunk with this need of tags.
    pub(super) fn find_place(
        &mut self,
        network: &Network,
        want: &Want,
        need: &Need,
        anyhow: bool,
    ) -> Result<ReservationId, Trouble> {
        let mut failed = Trouble::Route(Error::NoPath);
        for (from, to, choice) in candidates(network, want).map_err(Trouble::Route)? {
            let &Want { bandwidth, protection, reverts, .. } = want;
            let request = Request { from, to, bandwidth, choice, protection, reverts };
            let reservation = ReservationId(self.next_reservation);
            self.next_reservation += 1;
            match self.reserve(network, reservation, &request, need, anyhow) {
                Ok(()) => return Ok(reservation),
                Err(trouble) => failed = trouble,
            }
        }
        Err(failed)
    }

    fn reserve(
        &mut self,
        network: &Network,
        id: ReservationId,
        request: &Request,
        need: &Need,
        anyhow: bool,
    ) -> Result<(), Trouble> {
        let Embedding { reservations, tags, .. } = self;
        let lacks = |link| need.is_lacking(network, tags, link).is_some();
        let found = reservations.reserve_around(network, id, request.clone(), &lacks);
        let Err(error) = found.map(|_| ()) else { return Ok(()) };
        if error == Error::NoBackup && anyhow {
            // The backup is searched later.
            let alone = Request { protection: None, ..request.clone() };
            let made = reservations.reserve_around(network, id, alone, &lacks).map(|_| ());
            let made = made.and_then(|()| reservations.take_out(id)).and_then(|found| {
                let home = found.home().clone();
                let request = request.clone();
                reservations.adopt(network, id, request, home.clone(), home, None)
            });
            if made.is_ok() {
                return Ok(());
            }
        }
        // If there is a path without enough tags, the error says that tags are missing.
        let (active, backup) = match reservations.find(network, request, &nowhere) {
            Ok((active, backup)) => (active, backup),
            Err(error) => return Err(Trouble::Route(error)),
        };
        let paths = core::iter::once(&active).chain(&backup);
        let lacking = need.first_lacking(network, tags, paths);
        Err(lacking.map_or(Trouble::Route(error), Trouble::Tags))
    }

    fn adopt_paths(&mut self, network: &Network, id: TrunkId, reservation: ReservationId) {
        let paths = self.reservations.get(reservation);
        let (Some(paths), Some(trunk)) = (paths, self.trunks.get_mut(&id)) else { return };
        let routed = |path: &Path| Routed { wires: wires(network, path), tags: BTreeMap::new() };
        trunk.home = wires(network, paths.home());
        trunk.active = paths.active().map(routed);
        trunk.backup = paths.backup().map(routed);
        trunk.reservation = Some(reservation);
        trunk.is_provisional = self.is_growing && !matches!(trunk.want.route, Route::Given(_));
        self.by_reservation.insert(reservation, id);
    }

    /// Releases a trunk's paths, bandwidth and tags.
    pub(super) fn give_up(&mut self, id: TrunkId) {
        let Some(trunk) = self.trunks.get_mut(&id) else { return };
        trunk.leave(&mut self.tags);
        for route in trunk.active.take().iter().chain(&trunk.backup.take()) {
            route.give_up(&mut self.tags);
        }
        if let Some(number) = trunk.held.take() {
            self.reservations.claim(number, BTreeSet::new(), Bandwidth::ZERO);
        }
        trunk.home.clear();
        if let Some(reservation) = trunk.reservation.take() {
            self.by_reservation.remove(&reservation);
            // The reservation exists: the trunk has just named its number.
            let _ = self.reservations.release(reservation);
        }
    }
}

/// The trunks that a network needs.
fn wants(tenant: TenantId, spec: &Spec) -> Vec<(TrunkId, Want)> {
    let members = |port: VirtualPortId| {
        let switch = spec.switches.iter().find(|switch| switch.dpid == port.switch);
        switch.map(|switch| switch.members.clone()).unwrap_or_default()
    };
    let mut wants: Vec<(TrunkId, Want)> = Vec::new();
    for link in &spec.links {
        let want = Want {
            ends: sorted(link.ends).map(members),
            bandwidth: link.bandwidth,
            route: link.route.clone(),
            protection: link.protection,
            reverts: link.reverts,
        };
        wants.push((link_trunk(tenant, link), want));
    }
    for switch in &spec.switches {
        for (dpid, [a, b]) in pairs(switch.dpid, &switch.members) {
            let joins = |route: &&Vec<Step>| match given_ends(route) {
                (Some(first), Some(last)) => [a, b] == [first.min(last), first.max(last)],
                (Some(first), None) => first == a || first == b,
                _ => false,
            };
            let route = switch.routes.iter().find(joins);
            let want = Want {
                ends: [vec![a], vec![b]],
                bandwidth: Bandwidth::ZERO,
                route: route.map_or(Route::Shortest, |route| Route::Given(route.clone())),
                protection: None,
                reverts: route.is_some(),
            };
            let carries = Carries::Inside { switch: dpid, members: [a, b] };
            wants.push((TrunkId { tenant, carries }, want));
        }
    }
    wants
}

/// A switch that a trunk needs and that is not connected.
fn missing(network: &Network, want: &Want) -> Option<Trouble> {
    let absent = |dpid: &Dpid| network.switch_index(*dpid).is_err();
    if let Route::Given(steps) = &want.route {
        let switches = steps.iter().map(|step| match step {
            Step::Switch(dpid) => *dpid,
            Step::Port(port) => port.dpid,
        });
        if let Some(dpid) = switches.into_iter().find(absent) {
            return Some(Trouble::Waiting(dpid));
        }
    }
    let alone = |ends: &Vec<Dpid>| ends.iter().all(absent).then(|| ends.first().copied()).flatten();
    want.ends.iter().find_map(alone).map(Trouble::Waiting)
}

type Candidate = (SwitchIndex, SwitchIndex, Choice);

/// The pairs of ends that a trunk can have, the nearest first.
fn candidates(network: &Network, want: &Want) -> Result<Vec<Candidate>, Error> {
    if let Route::Given(steps) = &want.route {
        let (from, to, path) = given(network, steps, &want.ends)?;
        return Ok(vec![(from, to, Choice::Given(path))]);
    }
    let choice = match want.route {
        Route::Widest => Choice::Widest,
        _ => Choice::Shortest,
    };
    let present = |ends: &[Dpid]| -> Vec<SwitchIndex> {
        ends.iter().filter_map(|&dpid| network.switch_index(dpid).ok()).collect()
    };
    let [from, to] = want.ends.each_ref().map(|ends| present(ends));
    let mut found: Vec<(usize, Candidate)> = Vec::new();
    let mut search = Search::default();
    for &from in &from {
        for &to in &to {
            let hops = match (want.ends[0].len(), want.ends[1].len()) {
                (1, 1) => Some(0),
                _ => search.shortest(network, from, to, |_| true).map(|path| path.hops()),
            };
            found.extend(hops.map(|hops| (hops, (from, to, choice.clone()))));
        }
    }
    found.sort_by_key(|&(hops, (from, to, _))| (hops, from, to));
    Ok(found.into_iter().map(|(_, candidate)| candidate).collect())
}

/// A given route as a path from one of the first ends to one of the second ends.
fn given(
    network: &Network,
    steps: &[Step],
    ends: &[Vec<Dpid>; 2],
) -> Result<(SwitchIndex, SwitchIndex, Path), Error> {
    let mut links: Vec<LinkId> = Vec::new();
    let mut at: Option<SwitchIndex> = None;
    let mut first = None;
    for step in steps {
        let link = match *step {
            Step::Switch(dpid) => {
                let to = network.switch_index(dpid)?;
                match at {
                    None => {
                        (at, first) = (Some(to), Some(to));
                        continue;
                    }
                    // A route may name the switch behind a port as well.
                    Some(here) if here == to => continue,
                    Some(here) => {
                        let mut ways = network.leaving(here).filter(|(_, next)| *next == to);
                        ways.next().map(|(link, _)| link).ok_or(Error::NoPath)?
                    }
                }
            }
            Step::Port(port) => {
                let here = network.switch_index(port.dpid)?;
                first = first.or(Some(here));
                network.link_from(port)?
            }
        };
        links.push(link);
        at = Some(network.link(link).switches().ok_or(Error::BrokenPath(link))?.1);
    }
    let (Some(mut from), Some(mut to)) = (first, at) else { return Err(Error::NoPath) };
    let is_end =
        |index: SwitchIndex, which: usize| ends[which].contains(&network.switch(index).dpid());
    if !(is_end(from, 0) && is_end(to, 1)) {
        links = links.into_iter().rev().map(LinkId::reverse).collect();
        (from, to) = (to, from);
    }
    if !(is_end(from, 0) && is_end(to, 1)) {
        return Err(Error::NoPath);
    }
    let path = Path::given(network, from, to, links)?;
    Ok((from, to, path))
}

fn refusal(id: TrunkId, trouble: Trouble) -> Refusal {
    let part = match id.carries {
        Carries::Link(ends) => Part::Link(ends),
        Carries::Inside { switch, .. } => Part::Switch(switch),
    };
    Refusal { tenant: id.tenant, part, why: Reason::Unroutable(trouble) }
}

/// A number for each switch: switches that can reach each other have the same number.
struct Islands(Vec<u32>);

impl Islands {
    fn of(network: &Network) -> Islands {
        let mut islands = vec![0; network.switch_slots()];
        let mut number = 0;
        let mut open = Vec::new();
        for (start, _) in network.switches() {
            if islands[start.index()] != 0 {
                continue;
            }
            number += 1;
            islands[start.index()] = number;
            open.push(start);
            while let Some(at) = open.pop() {
                for (_, next) in network.leaving(at) {
                    if mem::replace(&mut islands[next.index()], number) == 0 {
                        open.push(next);
                    }
                }
            }
        }
        Islands(islands)
    }

    /// Whether a trunk's ends can reach each other.
    fn join(&self, network: &Network, want: &Want) -> bool {
        let on = |dpid: &Dpid| network.switch_index(*dpid).ok().map(|index| self.0[index.index()]);
        let first: Vec<u32> = want.ends[0].iter().filter_map(on).collect();
        want.ends[1].iter().filter_map(on).any(|island| first.contains(&island))
    }
}
