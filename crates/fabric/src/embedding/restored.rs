//! Placements from before a restart, until the network confirms or contradicts them.
//!
//! Switches come back one after another, and links are discovered one by one. A held placement keeps its tags, and its
//! bandwidth on each of its links as soon as the link is known. So no new or moving trunk takes them meanwhile.

use super::Embedding;
use super::spec::Route;
use super::trunk::{Routed, Trunk, TrunkId, Want, Wire, is_contradicted, link, path, wires};
use crate::network::Network;
use crate::reservations::{Choice, Request, ReservationId};
use crate::units::{Bandwidth, PortId};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

impl Embedding {
    /// Holds a trunk in its place from before a restart. `None` if its tags are not available any more.
    pub(super) fn hold(&mut self, mut trunk: Trunk) -> Option<Trunk> {
        trunk.backup = trunk.backup.take().filter(|it| it.retake(&mut self.tags));
        let active = trunk.active.take().filter(|it| it.retake(&mut self.tags));
        let Some(active) = active else {
            if let Some(backup) = &trunk.backup {
                backup.give_up(&mut self.tags);
            }
            return None;
        };
        trunk.active = Some(active);
        trunk.held = Some(ReservationId(self.next_reservation));
        self.next_reservation += 1;
        Some(trunk)
    }

    /// Checks whether the network confirms or contradicts the held trunks, or whether a request needs one of their
    /// ports as an edge port.
    pub(super) fn check_held(&mut self, network: &Network) {
        let held = self.held();
        if held.is_empty() {
            return;
        }
        let edges = self.wanted.values().flat_map(|it| &it.ports).map(|port| port.at);
        let edges: BTreeSet<PortId> = edges.collect();
        let is_edge = |wire: &Wire| edges.contains(&wire.from) || edges.contains(&wire.to);
        for id in held {
            let Some(trunk) = self.trunks.get_mut(&id) else { continue };
            let wrong = |route: &mut Routed| {
                route.wires.iter().any(is_edge) || is_contradicted(network, &route.wires)
            };
            for gone in trunk.active.take_if(wrong).iter().chain(&trunk.backup.take_if(wrong)) {
                gone.give_up(&mut self.tags);
            }
            trunk.active = trunk.active.take().or_else(|| trunk.backup.take());
            let seen =
                |route: &Routed| path(network, &route.wires).is_some_and(|it| it.is_up(network));
            if trunk.active.is_none() {
                self.give_up(id);
                self.reservations.note_freed();
            } else if trunk.routes().all(seen) {
                self.settle_held(network, id);
            }
        }
        self.claim_held(network);
    }

    /// Reserves bandwidth for held trunks on their known links. Nobody else can use the unknown links either.
    fn claim_held(&mut self, network: &Network) {
        for trunk in self.trunks.values() {
            let Some(number) = trunk.held else { continue };
            let wires = trunk.routes().flat_map(|route| &route.wires);
            let known = wires.filter_map(|wire| link(network, wire));
            let links = known.flat_map(|link| [link, link.reverse()]).collect();
            self.reservations.claim(number, links, trunk.want.bandwidth);
        }
    }

    fn held(&self) -> Vec<TrunkId> {
        let held = self.trunks.iter().filter(|(_, trunk)| trunk.held.is_some());
        held.map(|(&id, _)| id).collect()
    }

    /// Ends the holding: confirmed paths are reserved unchanged, all other trunks are placed again.
    pub(super) fn release_held(&mut self, network: &Network) {
        for id in self.held() {
            self.settle_held(network, id);
        }
    }

    /// Reserves the usable paths of a held trunk; releases the trunk if no path is usable.
    fn settle_held(&mut self, network: &Network, id: TrunkId) {
        let Some(trunk) = self.trunks.get_mut(&id) else { return };
        let Some(reservation) = trunk.held else { return };
        let up = |route: &Routed| path(network, &route.wires).filter(|path| path.is_up(network));
        let is_lost = |route: &mut Routed| up(route).is_none();
        for gone in trunk.active.take_if(is_lost).iter().chain(&trunk.backup.take_if(is_lost)) {
            gone.give_up(&mut self.tags);
        }
        // The rules of the backup are installed already.
        trunk.active = trunk.active.take().or_else(|| trunk.backup.take());
        let backup = trunk.backup.as_ref().and_then(up);
        let (want, home) = (trunk.want.clone(), path(network, &trunk.home));
        let adopted = trunk.active.as_ref().and_then(up).and_then(|active| {
            let ends =
                trunk.active.as_ref().map(|it| (&it.wires[0], &it.wires[it.wires.len() - 1]))?;
            let (from, to) = (ends.0.from.dpid, ends.1.to.dpid);
            let (from, to) = (network.switch_index(from).ok()?, network.switch_index(to).ok()?);
            let Want { bandwidth, protection, reverts, ref route, .. } = want;
            let home = home.unwrap_or_else(|| active.clone());
            let choice = match route {
                Route::Shortest => Choice::Shortest,
                Route::Widest => Choice::Widest,
                Route::Given(_) => Choice::Given(home.clone()),
            };
            let request = Request { from, to, bandwidth, choice, protection, reverts };
            // The claim was for this reservation.
            self.reservations.claim(reservation, BTreeSet::new(), Bandwidth::ZERO);
            self.reservations.adopt(network, reservation, request, home, active, backup).ok()
        });
        match adopted {
            Some(()) => {
                trunk.held = None;
                trunk.reservation = Some(reservation);
                self.by_reservation.insert(reservation, id);
            }
            None => self.give_up(id),
        }
    }

    /// Sets the preferred path of reservations whose preferred path was unknown when they were restored.
    pub(super) fn find_homes(&mut self, network: &Network) {
        for (&id, key) in &self.by_reservation {
            let Some(trunk) = self.trunks.get(key).filter(|trunk| trunk.want.reverts) else {
                continue;
            };
            let known = self.reservations.get(id).map(|it| wires(network, it.home()));
            if known.as_ref() != Some(&trunk.home)
                && let Some(home) = path(network, &trunk.home)
            {
                // The reservation exists, because `known` contains it.
                let _ = self.reservations.set_home(id, home);
            }
        }
    }
}
