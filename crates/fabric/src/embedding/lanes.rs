//! The traffic that each trunk must carry, and the tags for it.
//!
//! Tags may also run out without a new request, because a moving trunk needs as many tags on its new path. Traffic that
//! lacks tags is marked and down, and is tried again after each change. Other requests are not refused because of that.

use super::Embedding;
use super::switch_maps::{link_trunk, sorted};
use super::tags::Tags;
use super::trouble::Trouble;
use super::trunk::{Carries, Lane, Leaving, Routed, Step, Trunk, TrunkId, Wire, wire};
use crate::index::LinkId;
use crate::network::Network;
use crate::paths::Path;
use crate::units::{Dpid, PortId};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

impl Embedding {
    /// Assigns tags to each path for all its traffic. A trunk without enough tags moves to a path with enough tags. If
    /// there is no such path, or if a part of a big switch's tunnel lacks tags, the trunk is marked and tried again
    /// each time.
    pub(super) fn set_all_lanes(&mut self, network: &Network) {
        let lanes = self.lanes();
        for (id, _) in self.set_lanes(lanes) {
            let trunk = self.trunks.get(&id);
            let is_nothing = trunk.is_some_and(|trunk| trunk.in_use().is_none());
            let may_move = matches!(id.carries, Carries::Link(_)) || is_nothing;
            if let Some(number) = trunk.and_then(|it| it.reservation).filter(|_| may_move) {
                self.settle(network, number);
            }
        }
    }

    /// Assigns tags to each path, and returns the ports where tags were missing.
    pub(super) fn set_lanes(
        &mut self,
        all: BTreeMap<TrunkId, BTreeSet<Lane>>,
    ) -> Vec<(TrunkId, PortId)> {
        // Tags are released before new tags are taken.
        for (id, lanes) in &all {
            let routes = self.trunks.get_mut(id).into_iter().flat_map(Trunk::routes_mut);
            for route in routes {
                if route.drop_lanes(&mut self.tags, lanes) {
                    self.reservations.note_freed();
                }
            }
        }
        let mut failed = Vec::new();
        for (id, lanes) in all {
            if let Err(port) = self.set_lanes_of(id, lanes) {
                failed.push((id, port));
            }
        }
        failed
    }

    /// Takes tags for one trunk. A problem of its path is noted; the returned error may concern its backup.
    pub(super) fn set_lanes_of(
        &mut self,
        id: TrunkId,
        lanes: BTreeSet<Lane>,
    ) -> Result<(), PortId> {
        let Some(trunk) = self.trunks.get_mut(&id) else { return Ok(()) };
        trunk.lanes = lanes;
        let tags = &mut self.tags;
        let mut active = take(tags, &trunk.lanes, &mut trunk.active);
        let mut backup = take(tags, &trunk.lanes, &mut trunk.backup);
        let old = match &mut trunk.leaving {
            Some(Leaving { route, step: Step::Drawing, .. }) => take(tags, &trunk.lanes, route),
            _ => Ok(()),
        };
        // If there are not enough tags for the old path and the new one, the trunk leaves the old path at once.
        if trunk.leaving.is_some() && active.and(backup).and(old).is_err() {
            if trunk.leave(tags) {
                self.reservations.note_freed();
            }
            active = take(tags, &trunk.lanes, &mut trunk.active);
            backup = take(tags, &trunk.lanes, &mut trunk.backup);
        }
        match active {
            Err(port) => trunk.trouble = Some(Trouble::Tags(port)),
            // A trunk without a path has its own reason.
            Ok(()) if trunk.active.is_some() => trunk.trouble = None,
            Ok(()) => {}
        }
        active.and(backup)
    }

    /// The lanes of each trunk.
    pub(super) fn lanes(&self) -> BTreeMap<TrunkId, BTreeSet<Lane>> {
        let mut all = BTreeMap::new();
        for (&tenant, spec) in &self.wanted {
            let mut ports: BTreeMap<Dpid, Vec<(u32, Dpid)>> = BTreeMap::new();
            for port in &spec.ports {
                ports.entry(port.port.switch).or_default().push((port.port.number, port.at.dpid));
            }
            for link in &spec.links {
                let id = link_trunk(tenant, link);
                all.insert(id, link_lanes());
                // A link end without a path needs no traffic.
                let trunk = self.trunks.get(&id).filter(|trunk| trunk.active.is_some());
                let Some(ends) = trunk.and_then(Trunk::ends) else { continue };
                for (end, at) in sorted(link.ends).into_iter().zip(ends) {
                    ports.entry(end.switch).or_default().push((end.number, at));
                }
            }
            for (switch, members) in spec.switches.iter().flat_map(|it| pairs(it.dpid, &it.members))
            {
                let ports = ports.get(&switch).into_iter().flatten();
                let lane = |&(port, at): &(u32, Dpid)| {
                    let forth = at == members[1];
                    members.contains(&at).then_some(Lane { forth, port })
                };
                let id = TrunkId { tenant, carries: Carries::Inside { switch, members } };
                all.insert(id, ports.filter_map(lane).collect());
            }
        }
        all
    }
}

fn take(tags: &mut Tags, lanes: &BTreeSet<Lane>, route: &mut Option<Routed>) -> Result<(), PortId> {
    route.as_mut().map_or(Ok(()), |route| route.take_lanes(tags, lanes))
}

/// The number of tags that a trunk needs on each link, and the links where the trunk has tags.
#[derive(Clone, Debug, Default)]
pub(super) struct Need {
    forth: usize,
    back: usize,
    has: Vec<Wire>,
}

impl Need {
    /// The need of a trunk without a place.
    pub(super) fn new(lanes: &BTreeSet<Lane>) -> Need {
        let forth = lanes.iter().filter(|lane| lane.forth).count();
        Need { forth, back: lanes.len() - forth, has: Vec::new() }
    }

    pub(super) fn of(trunk: &Trunk) -> Need {
        let whole = trunk.routes().filter(|route| route.carries(&trunk.lanes));
        let has = whole.flat_map(|route| &route.wires).copied().collect();
        Need { has, ..Need::new(&trunk.lanes) }
    }

    /// The port of the link, if the link has too few free tags.
    pub(super) fn is_lacking(
        &self,
        network: &Network,
        tags: &Tags,
        link: LinkId,
    ) -> Option<PortId> {
        let wire = wire(network, link)?;
        let lacks = |port, needed| tags.free(port) < needed;
        let lacking = match (lacks(wire.from, self.forth), lacks(wire.to, self.back)) {
            (true, _) => wire.from,
            (_, true) => wire.to,
            _ => return None,
        };
        // On these links the trunk has tags, and the new path uses the same tags or as many others.
        (!self.has.contains(&wire)).then_some(lacking)
    }

    pub(super) fn first_lacking<'a>(
        &self,
        network: &Network,
        tags: &Tags,
        paths: impl IntoIterator<Item = &'a Path>,
    ) -> Option<PortId> {
        let mut links = paths.into_iter().flat_map(Path::links);
        links.find_map(|&link| self.is_lacking(network, tags, link))
    }
}

/// The lanes of a virtual link: one in each direction.
pub(super) fn link_lanes() -> BTreeSet<Lane> {
    BTreeSet::from([Lane::FORTH, Lane::BACK])
}

/// Each pair of members of a big switch, the lower first.
pub(super) fn pairs(switch: Dpid, members: &[Dpid]) -> Vec<(Dpid, [Dpid; 2])> {
    let all = members.iter().flat_map(|&a| members.iter().map(move |&b| [a, b]));
    all.filter(|[a, b]| a < b).map(|pair| (switch, pair)).collect()
}
