//! The choice of paths.

use super::Reservations;
use super::reservation::{Choice, Request, Reservation, ReservationId};
use super::shut::{Shut, nowhere};
use crate::error::Error;
use crate::index::{LinkId, SwitchIndex};
use crate::network::Network;
use crate::paths::{Disjoint, Path, disjoint_pair};
use crate::units::Bandwidth;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

impl Reservations {
    /// A path for a request, and the requested backup.
    pub(crate) fn find(
        &mut self,
        network: &Network,
        request: &Request,
        closed: &dyn Fn(LinkId) -> bool,
    ) -> Result<(Path, Option<Path>), Error> {
        let shut = Shut { switches: &BTreeSet::new(), closed };
        let &Request { from, to, bandwidth, ref choice, protection, .. } = request;
        let active = match choice {
            Choice::Given(path) => {
                let path = Path::given(network, from, to, path.links().to_vec())?;
                if !path.is_up(network) || path.links().iter().any(|&link| closed(link)) {
                    return Err(Error::NoPath);
                }
                if !self.ledger.fits(network, &path, bandwidth) {
                    return Err(Error::NoBandwidth(self.ledger.narrowest(network, &path)));
                }
                path
            }
            Choice::Shortest | Choice::Widest => {
                match self.pick_protected(network, request, shut) {
                    Some(path) => path,
                    None => return Err(self.why_not(network, from, to)),
                }
            }
        };
        let Some(disjoint) = protection.filter(|_| from != to) else { return Ok((active, None)) };
        let backup = self.beside(network, request, &active, disjoint, shut);
        backup.map(|backup| (active, Some(backup))).ok_or(Error::NoBackup)
    }

    /// The best path by free bandwidth, or another path if only that one leaves room for the requested backup: the best
    /// single path may cut the network in two although two other disjoint paths exist.
    pub(super) fn pick_protected(
        &mut self,
        network: &Network,
        request: &Request,
        shut: Shut<'_>,
    ) -> Option<Path> {
        let active = self.pick(network, request, shut)?;
        let &Request { from, to, bandwidth, protection, .. } = request;
        let Some(disjoint) = protection else { return Some(active) };
        if self.beside(network, request, &active, disjoint, shut).is_some() {
            return Some(active);
        }
        let needed = bandwidth.bits_per_second();
        let usable = |link| self.ledger.has_room(network, link, needed) && !shut.has(network, link);
        let pair = disjoint_pair(network, from, to, disjoint, usable);
        Some(pair.map_or(active, |(first, _)| first))
    }

    /// The present path of a reservation that was removed for a new placement, with the best backup for this path, if
    /// there is room for both.
    pub(crate) fn staying(
        &mut self,
        network: &Network,
        it: &Reservation,
        closed: &dyn Fn(LinkId) -> bool,
    ) -> Option<Reservation> {
        let request = &it.request;
        let is_free = |path: &Path| {
            it.stands(network, path, closed) && self.ledger.fits(network, path, request.bandwidth)
        };
        let active = it.active.clone().filter(is_free)?;
        let shut = Shut { switches: &it.avoided, closed };
        let backup = request
            .protection
            .and_then(|disjoint| self.beside(network, request, &active, disjoint, shut));
        Some(Reservation::new(request.clone(), active.clone(), active, backup))
    }

    /// The shortest path with room that is disjoint from `active`.
    pub(super) fn beside(
        &mut self,
        network: &Network,
        request: &Request,
        active: &Path,
        disjoint: Disjoint,
        shut: Shut<'_>,
    ) -> Option<Path> {
        let needed = request.bandwidth.bits_per_second();
        let taken: Vec<SwitchIndex> = match disjoint {
            Disjoint::Links => Vec::new(),
            Disjoint::Switches => active.interior(network).collect(),
        };
        let ledger = &self.ledger;
        let found = self.search.shortest(network, request.from, request.to, |link| {
            let ends = network.link(link).switches();
            ledger.has_room(network, link, needed)
                && active.links().iter().all(|used| used.wire() != link.wire())
                && ends.is_some_and(|(a, b)| !taken.contains(&a) && !taken.contains(&b))
                && !shut.has(network, link)
        });
        found.filter(|_| request.from != request.to)
    }

    /// The best path of a request by free bandwidth.
    pub(super) fn pick(
        &mut self,
        network: &Network,
        request: &Request,
        shut: Shut<'_>,
    ) -> Option<Path> {
        let &Request { from, to, bandwidth, ref choice, .. } = request;
        let needed = bandwidth.bits_per_second();
        let Reservations { ledger, search, .. } = self;
        let widest = match choice {
            Choice::Shortest | Choice::Given(_) => None,
            Choice::Widest => {
                let found = search.widest(network, from, to, |link| {
                    if shut.has(network, link) { 0 } else { ledger.both_ways(network, link) }
                });
                found.filter(|(_, wide)| *wide >= needed).map(|(path, _)| path)
            }
        };
        let has_room =
            |link: LinkId| ledger.has_room(network, link, needed) && !shut.has(network, link);
        // A request without bandwidth gets a path even if no bandwidth is free.
        widest.or_else(|| search.shortest(network, from, to, has_room))
    }

    /// The path that a reservation without a path would have if no link were closed; otherwise the error.
    pub(crate) fn way_for(&mut self, network: &Network, id: ReservationId) -> Result<Path, Error> {
        let reservation = self.all.get(&id).ok_or(Error::UnknownId(id.0))?;
        let request = reservation.request.clone();
        let nothing = BTreeSet::new();
        let found = self.pick(network, &request, Shut { switches: &nothing, closed: &nowhere });
        found.ok_or_else(|| self.why_not(network, request.from, request.to))
    }

    fn why_not(&mut self, network: &Network, from: SwitchIndex, to: SwitchIndex) -> Error {
        let any = self.search.shortest(network, from, to, |_| true);
        let free = |link| self.ledger.both_ways(network, link);
        let widest = self.search.widest(network, from, to, free);
        match (any, widest) {
            (None, _) => Error::NoPath,
            (Some(_), widest) => {
                let bits = widest.map_or(0, |(_, bits)| bits);
                Error::NoBandwidth(Bandwidth::from_bits_per_second(bits))
            }
        }
    }
}
