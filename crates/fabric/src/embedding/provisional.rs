//! Trunks that were placed while the physical network was still being discovered.
//!
//! Switches connect one after another, and links are discovered one by one. A trunk is placed as soon as there is a
//! path, which may be a detour. So a trunk is *provisional* if the network has grown shortly before its path was
//! computed. When new links come up, the path of a provisional trunk is computed again: the trunk moves to a better
//! path, which becomes its preferred path. If the present path is one of the best, the trunk stays, so that no trunk
//! moves for a backup alone. [`Embedding::stop_growing`] ends this; after that no working trunk moves. A trunk from
//! before a restart is never provisional.

use super::Embedding;
use super::lanes::Need;
use super::spec::Route;
use super::trunk::{TrunkId, Want, wires};
use crate::network::Network;
use crate::paths::Path;
use crate::reservations::{Reservation, ReservationId};
use alloc::vec::Vec;
use core::cmp::Reverse;

impl Embedding {
    /// Ends the discovery phase: working trunks stay on their paths from now on.
    pub fn stop_growing(&mut self) {
        self.is_growing = false;
        self.trunks.values_mut().for_each(|trunk| trunk.is_provisional = false);
    }

    /// Moves provisional trunks to better paths, if there are any now.
    pub(super) fn improve(&mut self, network: &Network) {
        let provisional = self.trunks.iter().filter(|(_, it)| it.is_provisional);
        let placed = provisional.filter_map(|(&id, it)| Some((id, it.reservation?)));
        for (id, reservation) in placed.collect::<Vec<_>>() {
            if self.improve_one(network, id, reservation) {
                self.reservations.note_freed();
                self.follow_reservation(network, reservation);
            }
        }
    }

    /// Reserves the best place for a trunk now, and returns whether the place has changed.
    fn improve_one(&mut self, network: &Network, id: TrunkId, number: ReservationId) -> bool {
        let Some(trunk) = self.trunks.get(&id) else { return false };
        let (want, need) = (trunk.want.clone(), Need::of(trunk));
        // A reservation that avoids a switch does not move.
        let may_move = |it: &Reservation| it.active().is_some() && it.avoided().next().is_none();
        if !self.reservations.get(number).is_some_and(may_move) {
            return false;
        }
        let Ok(before) = self.reservations.take_out(number) else { return false };
        let found = self.find_place(network, &want, &need, true);
        let found = found.ok().and_then(|found| self.reservations.take_out(found).ok());
        let better = found
            .filter(|found| self.rank(network, &want, found) < self.rank(network, &want, &before))
            .map(|found| self.best_of(network, &want, &need, &before, found));
        let is_better = better.is_some();
        let place = better.unwrap_or(before);
        if let (Some(trunk), true) = (self.trunks.get_mut(&id), is_better) {
            trunk.home = wires(network, place.home());
        }
        let (request, home) = (place.request().clone(), place.home().clone());
        let backup = place.backup().cloned();
        let adopted = place.active().cloned().map(|active| {
            self.reservations.adopt(network, number, request, home, active, backup).is_ok()
        });
        if adopted != Some(true) {
            // Both places had room a moment ago. The trunk is placed like any waiting trunk.
            self.give_up(id);
        }
        is_better
    }

    /// The found place, or an equally good place with the present path. If only the backup is new or better, the trunk
    /// does not move.
    fn best_of(
        &mut self,
        network: &Network,
        want: &Want,
        need: &Need,
        before: &Reservation,
        found: Reservation,
    ) -> Reservation {
        let Embedding { reservations, tags, .. } = self;
        let lacks = |link| need.is_lacking(network, tags, link).is_some();
        let staying = reservations.staying(network, before, &lacks);
        let is_as_good = |staying: &Reservation| {
            self.rank(network, want, staying) <= self.rank(network, want, &found)
        };
        staying.filter(is_as_good).unwrap_or(found)
    }

    /// The rank of a place, the best first: with the requested backup, wide if requested, short, with a short backup.
    fn rank(
        &self,
        network: &Network,
        want: &Want,
        place: &Reservation,
    ) -> (bool, Reverse<u64>, usize, usize) {
        let room = |path: &Path| self.reservations.room(network, path).bits_per_second();
        let width = match (&want.route, place.active()) {
            (Route::Widest, Some(active)) => room(active),
            _ => 0,
        };
        let hops = |path: Option<&Path>| path.map_or(0, Path::hops);
        let lacks_backup = want.protection.is_some() && place.backup().is_none();
        (lacks_backup, Reverse(width), hops(place.active()), hops(place.backup()))
    }
}
