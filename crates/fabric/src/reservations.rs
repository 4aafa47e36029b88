//! Bandwidth reserved on paths for virtual links, with backups, and their repair when links fail.
//!
//! A virtual link ([`Request`]) gets a path, and a second disjoint path if the request asks for protection. The
//! bandwidth is reserved on both, so the backup always has room. A request that does not fit is refused. After a change
//! of the network, [`Reservations::handle_changes`] moves reservations and returns the moves: to the backup if the
//! backup works, else to any other path. A reservation without a path is stranded, and is tried again when a link comes
//! up or others give up bandwidth. The same holds for reservations that are not on their preferred path, or lack a
//! backup. A move has the new and the old path, so that the caller can make before break. A virtual link can
//! [avoid](Reservations::avoid) a switch that refuses it although the switch's links are up, until a link of that
//! switch comes up. The owner says which links are *closed* for other reasons.
//!
//! The capacity of a link may shrink. Reservations beyond the capacity move, the last placed first, as long as there is
//! room elsewhere. The others stay, and the link is [oversubscribed](Reservations::oversubscribed) until reservations
//! are given up.

mod choose;
mod ledger;
mod reservation;
mod shut;

use crate::error::Error;
use crate::index::LinkId;
use crate::network::Network;
use crate::paths::{Path, Search};
use crate::units::{Bandwidth, Dpid};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::cmp::Reverse;
use ledger::{Ledger, both_directions};
use shut::Shut;

pub use reservation::{Choice, Request, Reservation, ReservationId};
pub(crate) use shut::nowhere;

/// A virtual link that has to move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// Which.
    pub id: ReservationId,
    /// The old path; `None` if the link was stranded.
    pub from: Option<Path>,
    /// The new path; `None` if there is no path now.
    pub to: Option<Path>,
}

/// All reservations on a network.
#[derive(Clone, Debug, Default)]
pub struct Reservations {
    all: BTreeMap<ReservationId, Reservation>,
    ledger: Ledger,
    /// Reservations that are not on their preferred path, have no path, or lack a backup.
    unsettled: BTreeSet<ReservationId>,
    /// Whether bandwidth was released, a link came up, or a link became too narrow, since the unsettled reservations
    /// were tried.
    has_freed: bool,
    /// Links that were oversubscribed at the last check.
    crowded: BTreeSet<LinkId>,
    /// Bandwidth for reservations whose paths are not completely known yet.
    claims: BTreeMap<ReservationId, Claim>,
    search: Search,
}

/// Bandwidth on links of a future reservation.
#[derive(Clone, Debug, Default)]
struct Claim {
    links: BTreeSet<LinkId>,
    bandwidth: Bandwidth,
}

impl Reservations {
    /// Finds paths for a virtual link and reserves its bandwidth.
    pub fn reserve(
        &mut self,
        network: &Network,
        id: ReservationId,
        request: Request,
    ) -> Result<&Reservation, Error> {
        self.reserve_around(network, id, request, &nowhere)
    }

    /// Reserves paths for a virtual link that use none of the `closed` links.
    pub fn reserve_around(
        &mut self,
        network: &Network,
        id: ReservationId,
        request: Request,
        closed: &dyn Fn(LinkId) -> bool,
    ) -> Result<&Reservation, Error> {
        if self.all.contains_key(&id) {
            return Err(Error::DuplicateId(id.0));
        }
        let (active, backup) = self.find(network, &request, closed)?;
        let home = active.clone();
        Ok(self.put_in(id, Reservation::new(request, home, active, backup)))
    }

    /// Reserves the bandwidth of a reservation on its paths.
    fn put_in(&mut self, id: ReservationId, reservation: Reservation) -> &Reservation {
        for path in reservation.paths() {
            self.ledger.hold(id, both_directions(path), reservation.request.bandwidth);
        }
        set(&mut self.unsettled, id, !reservation.is_settled());
        self.all.entry(id).or_insert(reservation)
    }

    /// Reserves bandwidth on paths that were computed earlier, without changing them. The paths are accepted without
    /// the requested backup (the search for a backup then follows whenever a link comes up), and also if links have
    /// less capacity now. `home` is the preferred path.
    pub fn adopt(
        &mut self,
        network: &Network,
        id: ReservationId,
        request: Request,
        home: Path,
        active: Path,
        backup: Option<Path>,
    ) -> Result<(), Error> {
        if self.all.contains_key(&id) {
            return Err(Error::DuplicateId(id.0));
        }
        for path in [Some(&active), backup.as_ref()].into_iter().flatten() {
            Path::given(network, request.from, request.to, path.links().to_vec())?;
            if !path.is_up(network) {
                return Err(Error::NoPath);
            }
        }
        let apart = |path: &Path| match request.protection {
            Some(disjoint) => path.is_disjoint(&active, network, disjoint),
            None => false,
        };
        if backup.as_ref().is_some_and(|path| !apart(path)) {
            return Err(Error::NoBackup);
        }
        let reservation = self.put_in(id, Reservation::new(request, home, active, backup));
        let links = reservation.paths().flat_map(both_directions).collect::<Vec<_>>();
        self.note_resized(network, &links);
        Ok(())
    }

    /// Reserves bandwidth in both directions of these links, for a reservation that is [adopted](Reservations::adopt)
    /// when its paths are completely known. An earlier claim of the same number ends; an empty set of links only ends
    /// the earlier claim.
    pub fn claim(&mut self, id: ReservationId, links: BTreeSet<LinkId>, bandwidth: Bandwidth) {
        let claim = Claim { links, bandwidth };
        let before = match claim.links.is_empty() {
            true => self.claims.remove(&id),
            false => self.claims.insert(id, claim.clone()),
        };
        let before = before.unwrap_or_default();
        self.has_freed |= before.links.iter().any(|link| !claim.links.contains(link));
        self.ledger.release(id, before.links, before.bandwidth);
        self.ledger.hold(id, claim.links, claim.bandwidth);
    }

    /// Sets the preferred path of a reservation, when the links of that path are known.
    pub fn set_home(&mut self, id: ReservationId, home: Path) -> Result<(), Error> {
        let reservation = self.all.get_mut(&id).ok_or(Error::UnknownId(id.0))?;
        reservation.home = home;
        set(&mut self.unsettled, id, !reservation.is_settled());
        Ok(())
    }

    /// Removes a virtual link and releases its bandwidth.
    pub fn release(&mut self, id: ReservationId) -> Result<Reservation, Error> {
        let reservation = self.take_out(id)?;
        self.has_freed |= reservation.active.is_some();
        Ok(reservation)
    }

    /// Removes a virtual link that will be placed again.
    pub(crate) fn take_out(&mut self, id: ReservationId) -> Result<Reservation, Error> {
        let reservation = self.all.remove(&id).ok_or(Error::UnknownId(id.0))?;
        for path in reservation.paths() {
            self.ledger.release(id, both_directions(path), reservation.request.bandwidth);
        }
        self.unsettled.remove(&id);
        Ok(reservation)
    }

    /// The reservation with this number.
    pub fn get(&self, id: ReservationId) -> Option<&Reservation> {
        self.all.get(&id)
    }

    /// All reservations, by number.
    pub fn iter(&self) -> impl Iterator<Item = (ReservationId, &Reservation)> {
        self.all.iter().map(|(&id, reservation)| (id, reservation))
    }

    /// The reserved bandwidth of a link, for active paths and for backups.
    pub fn reserved(&self, link: LinkId) -> Bandwidth {
        self.ledger.reserved(link)
    }

    /// The free bandwidth of a link; 0 if the link is down.
    pub fn free(&self, network: &Network, link: LinkId) -> Bandwidth {
        self.ledger.free(network, link)
    }

    /// The free bandwidth of a whole path, in both directions.
    pub fn room(&self, network: &Network, path: &Path) -> Bandwidth {
        self.ledger.narrowest(network, path)
    }

    /// Makes the moves that a change of the network makes necessary or possible. `changed`: the links that went up or
    /// down.
    pub fn handle_changes(&mut self, network: &Network, changed: &[LinkId]) -> Vec<Move> {
        let mut moves = Vec::new();
        for id in self.concerned(network, changed) {
            moves.extend(self.settle(network, id, &nowhere));
        }
        // A reservation that returns to its preferred path releases its place for others. Each reservation returns at
        // most once, so the loop ends.
        while self.take_freed() {
            for link in self.oversubscribed(network) {
                for id in self.crowding(link) {
                    if self.is_oversubscribed(network, link) {
                        moves.extend(self.settle(network, id, &nowhere));
                    }
                }
            }
            for id in self.unsettled() {
                moves.extend(self.settle(network, id, &nowhere));
            }
        }
        moves
    }

    /// Reservations whose paths are no longer usable after a change, in the order in which the caller
    /// [settles](Reservations::settle) them. Links that came up count as [freed](Reservations::take_freed).
    pub fn concerned(&mut self, network: &Network, changed: &[LinkId]) -> Vec<ReservationId> {
        let mut concerned = BTreeSet::new();
        for &link in changed {
            if network.link(link).is_up() {
                concerned.extend(self.admit(network, link));
                self.has_freed = true;
            } else {
                concerned.extend(self.ledger.holders(link));
            }
        }
        // Reservations that only change to their backup come first, so that their old paths are free for reservations
        // that need a new path.
        let (mut ready, searching): (Vec<_>, Vec<_>) =
            concerned.into_iter().partition(|id| self.has_standing_backup(network, *id));
        ready.extend(searching);
        ready
    }

    /// Whether bandwidth was released, a link came up, or a link became too narrow, since the last call.
    pub fn take_freed(&mut self) -> bool {
        core::mem::take(&mut self.has_freed)
    }

    /// Notes that other resources, which are not kept here, are free again.
    pub fn note_freed(&mut self) {
        self.has_freed = true;
    }

    /// Notes that the capacity of these links may be smaller: their reservations may have to move.
    pub fn note_resized(&mut self, network: &Network, links: &[LinkId]) {
        for &link in links {
            if self.is_oversubscribed(network, link) {
                self.has_freed |= self.crowded.insert(link);
            }
        }
    }

    /// The links that are still oversubscribed because no reservation could move elsewhere.
    pub fn oversubscribed(&self, network: &Network) -> Vec<LinkId> {
        let crowded = self.crowded.iter().copied();
        crowded.filter(|&link| self.is_oversubscribed(network, link)).collect()
    }

    /// Whether the reserved bandwidth of a link exceeds its capacity.
    pub fn is_oversubscribed(&self, network: &Network, link: LinkId) -> bool {
        self.ledger.reserved(link) > network.link(link).capacity
    }

    /// The reservations on a link, in the order in which the caller [settles](Reservations::settle) them if the link is
    /// oversubscribed: first the reservations with only their backup on the link, because no traffic moves; then the
    /// reservations that were placed last.
    pub fn crowding(&self, link: LinkId) -> Vec<ReservationId> {
        let is_on = |path: &Path| path.links().iter().any(|it| it.wire() == link.wire());
        let with = self.ledger.holders(link).filter_map(|id| {
            let it = self.all.get(&id).filter(|it| it.request.bandwidth > Bandwidth::ZERO)?;
            Some((it.active.as_ref().is_some_and(is_on), Reverse(id)))
        });
        let mut all: Vec<_> = with.collect();
        all.sort_unstable();
        all.into_iter().map(|(_, Reverse(id))| id).collect()
    }

    /// Reservations that differ from their request: first those without a path, then those not on their preferred path,
    /// then those without their backup.
    pub fn unsettled(&self) -> Vec<ReservationId> {
        let with = self.unsettled.iter().filter_map(|&id| {
            let it = self.all.get(&id)?;
            let is_away = it.request.reverts && it.active.as_ref() != Some(&it.home);
            Some((it.active.is_some(), !is_away, id))
        });
        let mut all: Vec<_> = with.collect();
        all.sort_unstable();
        all.into_iter().map(|(.., id)| id).collect()
    }

    /// Forbids a switch for the paths of a virtual link until a link of the switch comes up; the caller
    /// [settles](Reservations::settle) the virtual link then. The ends of the virtual link cannot be avoided.
    pub fn avoid(
        &mut self,
        network: &Network,
        id: ReservationId,
        switch: Dpid,
    ) -> Result<(), Error> {
        let reservation = self.all.get_mut(&id).ok_or(Error::UnknownId(id.0))?;
        let Request { from, to, .. } = reservation.request;
        if [from, to].iter().all(|&end| network.switch(end).dpid() != switch) {
            reservation.avoided.insert(switch);
        }
        Ok(())
    }

    /// Ends the avoiding of the switches of a link that has come up. Returns the reservations that had avoided one of
    /// these switches.
    fn admit(&mut self, network: &Network, link: LinkId) -> Vec<ReservationId> {
        let Some((one, other)) = network.link(link).switches() else { return Vec::new() };
        let ends = [one, other].map(|end| network.switch(end).dpid());
        let avoids = self.all.iter_mut().filter_map(|(&id, it)| {
            let before = it.avoided.len();
            it.avoided.retain(|dpid| !ends.contains(dpid));
            (it.avoided.len() < before).then_some(id)
        });
        avoids.collect()
    }

    /// Places one virtual link on its best paths now, without the `closed` links.
    pub fn settle(
        &mut self,
        network: &Network,
        id: ReservationId,
        closed: &dyn Fn(LinkId) -> bool,
    ) -> Option<Move> {
        // The reservation is released first, because its new paths may use the same links.
        let mut reservation = self.take_out(id).ok()?;
        let bandwidth = reservation.request.bandwidth;
        let shut = Shut { switches: &reservation.avoided, closed };
        let stands = |path: &Option<Path>| {
            path.clone().filter(|path| reservation.stands(network, path, closed))
        };
        let home = Some(&reservation.home).filter(|home| {
            reservation.request.reverts
                && reservation.stands(network, home, closed)
                && self.ledger.fits(network, home, bandwidth)
        });
        // If a link has less capacity now, an existing path may have no room.
        let mine = [&reservation.active, &reservation.backup];
        let fits = |path: &Path| self.ledger.fits(network, path, bandwidth);
        let fitting = || mine.into_iter().find_map(|path| stands(path).filter(fits));
        let active = home.cloned().or_else(fitting);
        let active = active
            .or_else(|| self.pick_protected(network, &reservation.request, shut))
            .or_else(|| mine.into_iter().find_map(stands));
        let backup = active.as_ref().and_then(|active| {
            let disjoint = reservation.request.protection?;
            let apart = |path: &Path| path.is_disjoint(active, network, disjoint);
            let kept = || mine.into_iter().filter_map(stands).filter(apart);
            let fits = |path: &Path| self.ledger.fits(network, path, bandwidth);
            let fitting = kept().find(fits);
            fitting
                .or_else(|| self.beside(network, &reservation.request, active, disjoint, shut))
                .or_else(|| kept().next())
        });
        let is_left = |path: &Path| Some(path) != active.as_ref() && Some(path) != backup.as_ref();
        self.has_freed |= reservation.paths().any(is_left);
        let before = core::mem::replace(&mut reservation.active, active.clone());
        reservation.backup = backup;
        self.put_in(id, reservation);
        (before != active).then_some(Move { id, from: before, to: active })
    }

    fn has_standing_backup(&self, network: &Network, id: ReservationId) -> bool {
        let backup = self.all.get(&id).and_then(Reservation::backup);
        backup.is_some_and(|backup| backup.is_up(network))
    }
}

fn set(among: &mut BTreeSet<ReservationId>, id: ReservationId, is_in: bool) {
    if is_in {
        among.insert(id);
    } else {
        among.remove(&id);
    }
}
