//! A trunk: a path between two physical switches for one virtual link, or for all traffic between two members of a big
//! switch.
//!
//! A trunk names ports instead of link ids, because link ids belong to one [`Network`] and a trunk outlives a restart.

use super::map::{Exit, Hop, Tag, Transit};
use super::rounds::Round;
use super::spec::{Route, VirtualPortId};
use super::tags::Tags;
use super::trouble::Trouble;
use crate::index::LinkId;
use crate::network::{End, Network};
use crate::paths::{Disjoint, Path};
use crate::reservations::ReservationId;
use crate::units::{Bandwidth, Dpid, PortId, TenantId};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// The identity of a trunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrunkId {
    /// The tenant.
    pub tenant: TenantId,
    /// The traffic of the trunk.
    pub carries: Carries,
}

/// The traffic of a trunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Carries {
    /// The virtual link between these ports, the lower first.
    Link([VirtualPortId; 2]),
    /// The packets between two members of a big switch.
    Inside {
        /// The virtual switch.
        switch: Dpid,
        /// The two physical switches at the ends, the lower first.
        members: [Dpid; 2],
    },
}

/// One direction of a physical link, by its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wire {
    /// The sending port.
    pub from: PortId,
    /// The receiving port.
    pub to: PortId,
}

/// Packets with the same tags: one direction of a virtual link, or the packets for one port of a big switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane {
    /// Whether the lane goes from the trunk's first end to its second end.
    pub forth: bool,
    /// The port of the big switch where the lane ends; 0 on a virtual link.
    pub port: u32,
}

impl Lane {
    pub(super) const FORTH: Lane = Lane { forth: true, port: 0 };
    pub(super) const BACK: Lane = Lane { forth: false, port: 0 };
}

/// A path and the tags on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routed {
    /// The wires from the trunk's first end to its second end; never empty.
    pub wires: Vec<Wire>,
    /// For each lane one tag per wire, in the order of the wires for both directions.
    pub tags: BTreeMap<Lane, Vec<Tag>>,
}

impl Routed {
    /// The sending ports of a lane, in the order of the wires.
    pub(super) fn senders(&self, lane: Lane) -> Vec<PortId> {
        self.wires.iter().map(|wire| if lane.forth { wire.from } else { wire.to }).collect()
    }

    /// The start of a lane, as its first switch sees it.
    pub(super) fn start(&self, lane: Lane) -> Option<Hop> {
        let tags = self.tags.get(&lane)?;
        let (port, tag) = match lane.forth {
            true => (self.wires.first()?.from, tags.first()?),
            false => (self.wires.last()?.to, tags.last()?),
        };
        Some(Hop { port: port.port, tag: *tag })
    }

    /// The end of a lane, as its last switch sees it.
    pub(super) fn arrival(&self, lane: Lane) -> Option<Hop> {
        let tags = self.tags.get(&lane)?;
        let (port, tag) = match lane.forth {
            true => (self.wires.last()?.to, tags.last()?),
            false => (self.wires.first()?.from, tags.first()?),
        };
        Some(Hop { port: port.port, tag: *tag })
    }

    /// The transits of the lanes on the switches between the ends.
    pub(super) fn transits(&self) -> impl Iterator<Item = (Dpid, Transit)> + '_ {
        self.tags.iter().flat_map(move |(lane, tags)| {
            let places = 1..self.wires.len().min(tags.len());
            places.map(move |at| {
                let (before, after) = (self.wires[at - 1].to, self.wires[at].from);
                let (before, after) = ((before, tags[at - 1]), (after, tags[at]));
                let (from, to) = if lane.forth { (before, after) } else { (after, before) };
                let hop = |(port, tag): (PortId, Tag)| Hop { port: port.port, tag };
                let to = Exit::Next(hop(to));
                (from.0.dpid, Transit { from: hop(from), to, leaves_by: None })
            })
        })
    }

    /// Releases the tags of lanes that do not exist any more, and returns whether there were any.
    pub(super) fn drop_lanes(&mut self, tags: &mut Tags, lanes: &BTreeSet<Lane>) -> bool {
        let gone: Vec<Lane> = self.tags.keys().copied().filter(|it| !lanes.contains(it)).collect();
        for &lane in &gone {
            let ports = self.senders(lane);
            tags.give_up(&ports, &self.tags.remove(&lane).unwrap_or_default());
        }
        !gone.is_empty()
    }

    /// Takes tags for the lanes without tags. The error is a port without a free tag. A link has tags in both
    /// directions, or none.
    pub(super) fn take_lanes(
        &mut self,
        tags: &mut Tags,
        lanes: &BTreeSet<Lane>,
    ) -> Result<(), PortId> {
        let mut lacking: BTreeMap<u32, PortId> = BTreeMap::new();
        for &lane in lanes {
            if self.tags.contains_key(&lane) || lacking.contains_key(&lane.port) {
                continue;
            }
            // Both directions get the same tag, which makes the rules on switches easier to read.
            let other = self.tags.get(&Lane { forth: !lane.forth, ..lane });
            let liked = other.and_then(|tags| tags.first()).copied();
            match tags.take(&self.senders(lane), liked) {
                Ok(taken) => _ = self.tags.insert(lane, taken),
                Err(at) => _ = lacking.insert(lane.port, at),
            }
        }
        let whole = lanes.iter().copied().filter(|lane| !lacking.contains_key(&lane.port));
        self.drop_lanes(tags, &whole.collect());
        lacking.into_values().next().map_or(Ok(()), Err)
    }

    /// Whether the path has tags for all of these lanes, and there is at least one lane.
    pub(super) fn carries(&self, lanes: &BTreeSet<Lane>) -> bool {
        !self.tags.is_empty() && lanes.iter().all(|lane| self.tags.contains_key(lane))
    }

    pub(super) fn give_up(&self, tags: &mut Tags) {
        for (&lane, held) in &self.tags {
            tags.give_up(&self.senders(lane), held);
        }
    }

    /// The tags of the path, and their sending ports.
    pub(super) fn held(&self) -> impl Iterator<Item = (PortId, Tag)> {
        self.tags.iter().flat_map(|(&lane, held)| self.senders(lane).into_iter().zip(held.clone()))
    }

    /// Takes again the tags of a saved path; all or none.
    pub(super) fn retake(&self, tags: &mut Tags) -> bool {
        let mut taken: Vec<(Vec<PortId>, &Vec<Tag>)> = Vec::new();
        for (&lane, held) in &self.tags {
            let ports = self.senders(lane);
            if !tags.retake(&ports, held) {
                for (ports, held) in taken {
                    tags.give_up(&ports, held);
                }
                return false;
            }
            taken.push((ports, held));
        }
        true
    }
}

/// A path as ports.
pub(super) fn wires(network: &Network, path: &Path) -> Vec<Wire> {
    path.links().iter().filter_map(|&link| wire(network, link)).collect()
}

/// A link as ports, if it joins two switches.
pub(super) fn wire(network: &Network, link: LinkId) -> Option<Wire> {
    match (network.link(link).from, network.link(link).to) {
        (End::Switch { port: from, .. }, End::Switch { port: to, .. }) => Some(Wire { from, to }),
        _ => None,
    }
}

/// Ports as a path, if the ports are connected in this way now.
pub(super) fn path(network: &Network, wires: &[Wire]) -> Option<Path> {
    let (from, to) = (wires.first()?.from, wires.last()?.to);
    let link = |wire: &Wire| link(network, wire);
    let links: Vec<LinkId> = wires.iter().map(link).collect::<Option<_>>()?;
    let (from, to) = (network.switch_index(from.dpid), network.switch_index(to.dpid));
    Path::given(network, from.ok()?, to.ok()?, links).ok()
}

/// The link of a wire, if its ports are connected in this way now.
pub(super) fn link(network: &Network, wire: &Wire) -> Option<LinkId> {
    let id = network.link_from(wire.from).ok()?;
    let reaches = matches!(network.link(id).to, End::Switch { port, .. } if port == wire.to);
    reaches.then_some(id)
}

/// Whether the network contradicts a path: a port of the path is down, or connected to another port. Unknown ports and
/// links do not contradict a path.
pub(super) fn is_contradicted(network: &Network, wires: &[Wire]) -> bool {
    let contradicts = |wire: &Wire, here: PortId| {
        let Ok(index) = network.switch_index(here.dpid) else { return false };
        let up = network.is_port_up(here).ok();
        match (up, network.link_from(here)) {
            (Some(false), _) => true,
            (_, Ok(_)) => link(network, wire).is_none_or(|link| !network.link(link).is_up()),
            // The ports of a known switch are known.
            (up, Err(_)) => up.is_none() && network.switch(index).ports().next().is_some(),
        }
    };
    wires.iter().any(|wire| contradicts(wire, wire.from) || contradicts(wire, wire.to))
}

/// The request of a trunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Want {
    /// The physical switches that may be its ends.
    pub(super) ends: [Vec<Dpid>; 2],
    pub(super) bandwidth: Bandwidth,
    pub(super) route: Route,
    pub(super) protection: Option<Disjoint>,
    pub(super) reverts: bool,
}

/// A trunk and its place.
#[derive(Clone, Debug)]
pub(super) struct Trunk {
    pub(super) want: Want,
    /// The lanes of the trunk when tags were taken last.
    pub(super) lanes: BTreeSet<Lane>,
    pub(super) reservation: Option<ReservationId>,
    /// The preferred path.
    pub(super) home: Vec<Wire>,
    pub(super) active: Option<Routed>,
    pub(super) backup: Option<Routed>,
    /// The path that the trunk leaves while it [moves](super::make_before_break).
    pub(super) leaving: Option<Leaving>,
    /// The number of the future reservation, for a trunk with its place from before a restart that the network has not
    /// confirmed or contradicted yet.
    pub(super) held: Option<ReservationId>,
    /// Whether the trunk was placed while the network [grew](super::provisional).
    pub(super) is_provisional: bool,
    pub(super) trouble: Option<Trouble>,
}

/// The path that a trunk is about to leave.
#[derive(Clone, Debug)]
pub(super) struct Leaving {
    /// The path; `None` if the path is the trunk's backup now.
    pub(super) route: Option<Routed>,
    pub(super) step: Step,
    /// The round at whose end switches have followed the step.
    pub(super) until: Round,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The ends send by the old path until the new path is on all switches.
    Drawing,
    /// The ends send by the new path, or will as soon as they have followed.
    Moved,
}

impl Trunk {
    pub(super) const fn new(want: Want) -> Trunk {
        Trunk {
            want,
            lanes: BTreeSet::new(),
            reservation: None,
            home: Vec::new(),
            active: None,
            backup: None,
            leaving: None,
            held: None,
            is_provisional: false,
            trouble: None,
        }
    }

    /// The physical switches at the ends, if the trunk has a place.
    pub(super) fn ends(&self) -> Option<[Dpid; 2]> {
        let active = self.active.as_ref().map(|active| active.wires.as_slice());
        let wires = active.unwrap_or(&self.home);
        match self.want.ends.each_ref().map(Vec::as_slice) {
            [&[a], &[b]] => Some([a, b]),
            _ => Some([wires.first()?.from.dpid, wires.last()?.to.dpid]),
        }
    }

    /// Whether the ends still send by the path that the trunk leaves.
    pub(super) fn is_drawing(&self) -> bool {
        self.leaving.as_ref().is_some_and(|it| it.step == Step::Drawing)
    }

    /// The path by which the ends send.
    pub(super) fn sending(&self) -> Option<&Routed> {
        match &self.leaving {
            Some(Leaving { route, step: Step::Drawing, .. }) => {
                route.as_ref().or(self.backup.as_ref())
            }
            _ => self.active.as_ref(),
        }
    }

    /// The path by which the ends send, if this path has all its tags.
    pub(super) fn standing(&self) -> Option<&Routed> {
        self.sending().filter(|it| it.carries(&self.lanes))
    }

    /// The path that carries traffic. A tunnel of a big switch may have tags for some ports and none for others.
    pub(super) fn in_use(&self) -> Option<&Routed> {
        self.active.as_ref().filter(|active| !active.tags.is_empty())
    }

    pub(super) fn routes(&self) -> impl Iterator<Item = &Routed> {
        let leaving = self.leaving.iter().filter_map(|it| it.route.as_ref());
        self.active.iter().chain(&self.backup).chain(leaving)
    }

    pub(super) fn routes_mut(&mut self) -> impl Iterator<Item = &mut Routed> {
        let leaving = self.leaving.iter_mut().filter_map(|it| it.route.as_mut());
        self.active.iter_mut().chain(&mut self.backup).chain(leaving)
    }

    /// Ends a move, and returns whether tags were released.
    pub(super) fn leave(&mut self, tags: &mut Tags) -> bool {
        let route = self.leaving.take().and_then(|it| it.route);
        route.inspect(|it| it.give_up(tags)).is_some()
    }

    /// Whether the trunk uses one of these transits of a physical switch.
    pub(super) fn passes(&self, switch: Dpid, by: &BTreeSet<Transit>) -> bool {
        let mut transits = self.routes().flat_map(Routed::transits);
        transits.any(|(dpid, transit)| dpid == switch && by.contains(&transit))
    }
}

/// The trunks of one tenant.
pub(super) fn trunks_of(
    trunks: &BTreeMap<TrunkId, Trunk>,
    tenant: TenantId,
) -> impl Iterator<Item = (&TrunkId, &Trunk)> {
    let least = Carries::Link([VirtualPortId { switch: Dpid(0), number: 0 }; 2]);
    let from = TrunkId { tenant, carries: least };
    trunks.range(from..).take_while(move |(id, _)| id.tenant == tenant)
}
