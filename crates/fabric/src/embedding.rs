//! Places virtual networks on the physical network: each gets physical ports, paths and tags.
//!
//! [`Embedding::apply`] places the tenants' requests ([`Spec`]) on a [`Network`] as one transaction: all of them, or
//! none with the reasons. Unchanged parts keep their paths and tags. The result is one [`SwitchMap`] per physical
//! switch. After a change of the network [`Embedding::handle_changes`] returns the new maps, and the tenants' ports
//! that went up or down.
//!
//! **Paths** are reservations ([`crate::reservations`]): one for each virtual link, and one without bandwidth for each
//! two members of a big switch. A big switch's end of a link is on the member with the shortest path.
//!
//! **Tags** belong to one link: the same number has another meaning on the next link. A path has one tag from end to
//! end if one is free on all its links; otherwise switches on the path swap tags. A backup has its own tags from the
//! beginning, so all switches but the first have their rules before a failure.
//!
//! **Giving up.** At the end of each change, free resources are distributed (`Embedding::share_out`) to trunks that
//! have no path, are not on their preferred path, or lack a backup.
//!
//! **Shrinking.** If a physical link can carry less than is reserved on it, reservations that fit elsewhere move. The
//! others stay, and the owner is notified ([`Oversubscribed`]).
//!
//! **Moving.** A trunk leaves a working path step by step, so that no packet is lost whichever switches have followed
//! (`embedding::make_before_break`). A trunk without a working path moves at once.
//!
//! **Waiting.** A tenant may request a network before its switches connect. Parts that need a missing switch wait, with
//! their ports down, and are placed when the switch appears. A part whose switches are all present, but that has no
//! path, is refused. Parts that wait, or have lost their path, are no reason to refuse other requests. During discovery
//! of the topology, links move to a better path as soon as there is one (`embedding::provisional`).
//!
//! **Restarts.** [`Embedding::export`] returns the whole placement, and [`Embedding::restore`] reads it. An unchanged
//! request is *held* in its place, as if the place were up, until the network confirms or contradicts it. The same
//! holds for edge ports. [`Embedding::stop_waiting`] ends this for parts that were neither confirmed nor contradicted.

mod check;
mod lanes;
mod make_before_break;
mod map;
mod place;
mod provisional;
mod restored;
mod rounds;
mod saved;
mod spec;
mod switch_maps;
mod tags;
mod trouble;
mod trunk;

use crate::index::LinkId;
use crate::network::Network;
use crate::reservations::{ReservationId, Reservations};
use crate::units::{Bandwidth, Dpid, MacAddress, PortId, TenantId};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use check::Assigned;
use core::mem;
use core::net::IpAddr;
use rounds::Rounds;
use saved::{Remembered, Restored};
use switch_maps::Placement;
use tags::Tags;
use trunk::{Trunk, trunks_of};

pub use map::{Exit, FarEnd, Hop, Member, PortKind, SwitchMap, Tag, Transit, VirtualPort};
pub use saved::SavedError;
pub use spec::{
    Block, HostSpec, LinkSpec, Part, PortSpec, Reason, Refusal, Route, Spec, Step, SwitchSpec,
    VirtualPortId,
};
pub use trouble::Trouble;
pub use trunk::{Carries, Lane, Routed, TrunkId, Wire};

/// All virtual networks and their places.
#[derive(Clone, Debug)]
pub struct Embedding {
    wanted: BTreeMap<TenantId, Spec>,
    assigned: Assigned,
    trunks: BTreeMap<TrunkId, Trunk>,
    tags: Tags,
    reservations: Reservations,
    by_reservation: BTreeMap<ReservationId, TrunkId>,
    next_reservation: u64,
    /// The state and the capacity of each link when the embedding last read the network.
    seen: Vec<(bool, Bandwidth)>,
    /// Whether each link has ever been up.
    known: Vec<bool>,
    /// Whether discovery may still find existing links.
    is_growing: bool,
    /// Whether links have come up for the first time since the last [`Changes`].
    has_grown: bool,
    /// Whether trunks have begun to move, or taken a step, since the last [`Changes`].
    has_begun: bool,
    /// The rounds that steps wait for, until switches have followed.
    rounds: Rounds,
    /// Oversubscribed links at the last computation of the maps.
    oversubscribed: BTreeSet<LinkId>,
    maps: BTreeMap<Dpid, Arc<SwitchMap>>,
    remembered: Remembered,
    /// Switches that handle only one tag. A disconnected switch keeps this property until it connects with another
    /// version.
    single: BTreeSet<Dpid>,
    /// True between [`Embedding::restore`] and [`Embedding::stop_waiting`].
    is_holding: bool,
}

/// The differences after a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The physical switches whose map has changed.
    pub switches: BTreeSet<Dpid>,
    /// Virtual ports that were added or removed, or went up or down.
    pub ports: Vec<PortChange>,
    /// Trunks with another place.
    pub moves: Vec<TrunkMove>,
    /// Physical links whose capacity is now less than the reserved bandwidth, because the reservations have no room
    /// elsewhere. Each link is reported once.
    pub oversubscribed: Vec<Oversubscribed>,
    /// A trunk moves and waits until switches have followed. The caller gives the switches their time and then calls
    /// [`Embedding::rejoin`], which starts the next step. This time begins with the first change that sets `parted`
    /// since the last call of `rejoin`, or with that call if it sets `parted` itself; later changes do not restart it.
    pub parted: bool,
    /// Links have come up for the first time. Trunks that are placed now may move to a better path when more links come
    /// up, until the caller calls [`Embedding::stop_growing`].
    pub grew: bool,
}

impl Changes {
    /// Whether nothing has changed.
    pub fn is_empty(&self) -> bool {
        self.switches.is_empty() && self.ports.is_empty() && self.moves.is_empty()
    }
}

/// A virtual port that was added or removed, or went up or down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortChange {
    /// The tenant of the port.
    pub tenant: TenantId,
    /// Which.
    pub port: VirtualPortId,
    /// Whether the port was up; `None` if the port did not exist.
    pub was: Option<bool>,
    /// Whether the port is up; `None` if the port does not exist any more.
    pub is: Option<bool>,
}

/// A physical link whose capacity is less than the bandwidth reserved on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oversubscribed {
    /// The lower of the ports at the ends of the link.
    pub at: PortId,
    /// The reserved bandwidth in each direction.
    pub reserved: Bandwidth,
    /// The capacity of the link.
    pub capacity: Bandwidth,
}

/// A trunk with another place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrunkMove {
    /// Which.
    pub trunk: TrunkId,
    /// The old path; empty if there was none.
    pub from: Vec<Wire>,
    /// The new path; empty if there is none.
    pub to: Vec<Wire>,
}

/// The place of a trunk.
#[derive(Clone, Copy, Debug)]
pub struct TrunkStatus<'a> {
    /// The path in use.
    pub active: Option<&'a Routed>,
    /// The backup path.
    pub backup: Option<&'a Routed>,
    /// The path that the trunk is leaving, while this path still has its tags.
    pub leaving: Option<&'a Routed>,
    /// Whether the trunk has its place from before a restart, and the network has not confirmed this place yet.
    pub is_held: bool,
    /// The reason why the trunk has no path.
    pub trouble: Option<Trouble>,
}

impl Embedding {
    /// An embedding without networks. Networks will use these tags.
    pub fn new(least: Tag, most: Tag) -> Embedding {
        Embedding {
            wanted: BTreeMap::new(),
            assigned: Assigned::new(),
            trunks: BTreeMap::new(),
            tags: Tags::new(least, most),
            reservations: Reservations::default(),
            by_reservation: BTreeMap::new(),
            next_reservation: 0,
            seen: Vec::new(),
            known: Vec::new(),
            is_growing: true,
            has_grown: false,
            has_begun: false,
            rounds: Rounds::default(),
            oversubscribed: BTreeSet::new(),
            maps: BTreeMap::new(),
            remembered: Remembered::default(),
            single: BTreeSet::new(),
            is_holding: false,
        }
    }

    /// Changes the networks to the requested ones. If one request is impossible, nothing changes, and the result has
    /// the reasons.
    pub fn apply(
        &mut self,
        network: &Network,
        wanted: &BTreeMap<TenantId, Spec>,
    ) -> Result<Changes, Vec<Refusal>> {
        let mut next = self.clone();
        next.assigned = check::check(&self.wanted, &self.assigned, network, wanted)?;
        next.catch_up(network);
        next.wanted = wanted.clone();
        // A request that lacks tags is not refused if paths that trunks are leaving still have these tags.
        let hurried = next.is_moving().then(|| next.clone());
        if let Err(refusals) = next.place_all(network) {
            next = hurried.ok_or(refusals)?;
            next.leave_all();
            next.place_all(network)?;
        }
        let changes = next.redraw(network, &self.places());
        *self = next;
        Ok(changes)
    }

    /// Returns the changes that [`apply`](Embedding::apply) would make.
    pub fn dry_run(
        &self,
        network: &Network,
        wanted: &BTreeMap<TenantId, Spec>,
    ) -> Result<Changes, Vec<Refusal>> {
        self.clone().apply(network, wanted)
    }

    /// Makes the moves that a change of the network makes necessary or possible. The function finds the changes by
    /// itself, so one call after several changes is enough.
    pub fn handle_changes(&mut self, network: &Network) -> Changes {
        let before = self.places();
        self.catch_up(network);
        self.redraw(network, &before)
    }

    /// Moves trunks away from a physical switch that has refused the rules of these transits, for example because its
    /// table is full. A trunk without another path is down. When a link of the switch comes up, trunks may pass the
    /// switch again.
    pub fn handle_refused(
        &mut self,
        network: &Network,
        switch: Dpid,
        refused: &BTreeSet<Transit>,
    ) -> Changes {
        let before = self.places();
        self.go_around(network, switch, refused);
        self.redraw(network, &before)
    }

    /// Ends the waiting for trunks whose place the network has not confirmed since [`restore`](Embedding::restore).
    pub fn stop_waiting(&mut self, network: &Network) -> Changes {
        let before = self.places();
        self.is_holding = false;
        self.release_held(network);
        self.catch_up(network);
        self.redraw(network, &before)
    }

    /// The map of a physical switch; `None` if the switch has no task.
    pub fn switch_map(&self, dpid: Dpid) -> Option<&Arc<SwitchMap>> {
        self.maps.get(&dpid)
    }

    /// The maps of all physical switches.
    pub fn switch_maps(&self) -> &BTreeMap<Dpid, Arc<SwitchMap>> {
        &self.maps
    }

    /// The present requests.
    pub fn wanted(&self) -> &BTreeMap<TenantId, Spec> {
        &self.wanted
    }

    /// The addresses that a tenant's hosts got because their request names none.
    pub fn assigned(&self, tenant: TenantId) -> impl Iterator<Item = (MacAddress, IpAddr)> + '_ {
        self.assigned.get(&tenant).into_iter().flatten().map(|(&mac, &address)| (mac, address))
    }

    /// The places of a tenant's links and of the tunnels in its big switches.
    pub fn trunks(&self, tenant: TenantId) -> impl Iterator<Item = (TrunkId, TrunkStatus<'_>)> {
        trunks_of(&self.trunks, tenant).map(|(&id, trunk)| {
            let &Trunk { ref active, ref backup, ref leaving, held, trouble, .. } = trunk;
            let leaving = leaving.as_ref().and_then(|it| it.route.as_ref());
            let (active, backup, is_held) = (active.as_ref(), backup.as_ref(), held.is_some());
            (id, TrunkStatus { active, backup, leaving, is_held, trouble })
        })
    }

    /// The lowest and the highest tag that may be used.
    pub fn tag_range(&self) -> [Tag; 2] {
        self.tags.range()
    }

    /// Whether places from before a restart are held although the network has not confirmed them.
    pub fn is_holding(&self) -> bool {
        self.is_holding
    }

    /// The number of tags in use, counted on each link.
    pub fn tags_in_use(&self) -> usize {
        self.tags.count()
    }

    /// The bandwidth reserved on the physical links.
    pub const fn reservations(&self) -> &Reservations {
        &self.reservations
    }

    /// The whole placement as bytes, for [`restore`](Embedding::restore).
    pub fn export(&self) -> Vec<u8> {
        saved::export(&self.wanted, &self.assigned, &self.trunks, &self.tags, &self.single)
    }

    /// Reads a saved placement. The caller calls this function before the first [`apply`](Embedding::apply), which then
    /// holds unchanged requests in their saved places.
    pub fn restore(&mut self, saved: &[u8]) -> Result<(), SavedError> {
        let restored = saved::read(saved)?;
        let Restored { remembered, assigned, next_tag, single, resting, .. } = restored;
        (self.remembered, self.assigned, self.single) = (remembered, assigned, single);
        self.tags.set_next(next_tag);
        // A saved path may stay unused, because its request may have changed since.
        let resting = resting.iter().flat_map(|(port, tags)| tags.iter().map(|tag| (*port, *tag)));
        for (port, tag) in self.remembered.held().chain(resting) {
            self.tags.rest(port, tag);
        }
        self.is_holding = true;
        Ok(())
    }

    fn places(&self) -> Places {
        self.trunks.iter().map(|(&id, trunk)| (id, place_of(trunk))).collect()
    }

    fn moves_from(&self, before: &Places) -> Vec<TrunkMove> {
        let gone = before.keys().filter(|id| !self.trunks.contains_key(id));
        let all = self.trunks.keys().chain(gone);
        let moves = all.map(|id| TrunkMove {
            trunk: *id,
            from: before.get(id).cloned().unwrap_or_default(),
            to: self.trunks.get(id).map(place_of).unwrap_or_default(),
        });
        moves.filter(|it| it.from != it.to).collect()
    }

    /// Computes the maps again, and returns the differences. `before`: the places of the trunks before the change.
    fn redraw(&mut self, network: &Network, before: &Places) -> Changes {
        let parted = mem::take(&mut self.has_begun);
        if parted {
            self.rounds.run();
        }
        let placement = Placement {
            wanted: &self.wanted,
            trunks: &self.trunks,
            single: &self.single,
            is_holding: self.is_holding,
        };
        let drawn = switch_maps::draw(placement, network);
        let ports_before = ports(&self.maps);
        let mut switches = BTreeSet::new();
        let gone = self.maps.keys().filter(|dpid| !drawn.contains_key(dpid));
        switches.extend(gone.copied());
        self.maps.retain(|dpid, _| drawn.contains_key(dpid));
        for (dpid, map) in drawn {
            // An unchanged map stays the same `Arc`.
            if self.maps.get(&dpid).is_none_or(|before| **before != map) {
                self.maps.insert(dpid, Arc::new(map));
                switches.insert(dpid);
            }
        }
        let ports = port_changes(&ports_before, &ports(&self.maps));
        let grew = mem::take(&mut self.has_grown);
        let oversubscribed = self.follow_oversubscribed(network);
        Changes { switches, ports, moves: self.moves_from(before), oversubscribed, parted, grew }
    }

    /// The links that have become oversubscribed.
    fn follow_oversubscribed(&mut self, network: &Network) -> Vec<Oversubscribed> {
        let now: BTreeSet<LinkId> = self.reservations.oversubscribed(network).into_iter().collect();
        let before = mem::replace(&mut self.oversubscribed, now);
        let new = self.oversubscribed.difference(&before).filter(|link| **link < link.reverse());
        let describe = |&link: &LinkId| {
            let at = trunk::wire(network, link)?.from;
            let (reserved, capacity) =
                (self.reservations.reserved(link), network.link(link).capacity);
            Some(Oversubscribed { at, reserved, capacity })
        };
        new.filter_map(describe).collect()
    }
}

type Places = BTreeMap<TrunkId, Vec<Wire>>;

fn place_of(trunk: &Trunk) -> Vec<Wire> {
    trunk.in_use().map(|active| active.wires.clone()).unwrap_or_default()
}

type Ports = BTreeMap<(TenantId, VirtualPortId), bool>;

fn ports(maps: &BTreeMap<Dpid, Arc<SwitchMap>>) -> Ports {
    let members = maps.values().flat_map(|map| &map.members);
    let ports = members.flat_map(|(&tenant, member)| {
        let switch = member.datapath;
        let id = move |number| (tenant, VirtualPortId { switch, number });
        member.ports.iter().map(move |(&number, port)| (id(number), port.up))
    });
    ports.collect()
}

fn port_changes(before: &Ports, after: &Ports) -> Vec<PortChange> {
    let all: BTreeSet<_> = before.keys().chain(after.keys()).copied().collect();
    let change = |id: (TenantId, VirtualPortId)| PortChange {
        tenant: id.0,
        port: id.1,
        was: before.get(&id).copied(),
        is: after.get(&id).copied(),
    };
    all.into_iter().map(change).filter(|change| change.was != change.is).collect()
}
