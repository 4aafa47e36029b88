//! Bandwidth set aside on paths for virtual links, with backups, and what becomes of them when links fail.
//!
//! A virtual link ([`Request`]) gets a path, and a second one disjoint from it if it asks for protection; its bandwidth
//! is set aside on both, so that moving to the backup cannot fail for want of room. What does not fit is refused.
//! After a change of the network, [`Reservations::handle_changes`] moves what has to move and says so: to the backup if
//! that still stands, else to whatever path can be found; what finds none is stranded and tried again when something
//! comes up. The new path is given together with the old one, so that whoever enacts it can make before breaking.
//! A switch that a virtual link cannot pass through, although its links are up, it can be told to
//! [avoid](Reservations::avoid), until a link of that switch comes up.

mod ledger;

use crate::error::Error;
use crate::network::{LinkId, Network, SwitchIndex};
use crate::paths::{Disjoint, Path, Search, disjoint_pair};
use crate::units::{Bandwidth, Dpid};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use ledger::{Ledger, both_directions};

/// What a virtual link asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Where it begins.
    pub from: SwitchIndex,
    /// Where it ends; the path back is the same one backwards, with bandwidth of its own.
    pub to: SwitchIndex,
    /// In each direction; may be nothing, for a link that takes what is left.
    pub bandwidth: Bandwidth,
    /// How its path is chosen.
    pub choice: Choice,
    /// Whether, and how far, its backup has to be disjoint.
    pub protection: Option<Disjoint>,
    /// Whether it goes back to its first path when that is whole again.
    pub reverts: bool,
}

/// How a path is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The fewest links that have room.
    Shortest,
    /// The most room on its narrowest link.
    Widest,
    /// This one. When it fails, the shortest takes its place until it is whole again.
    Given(Path),
}

/// A reservation's number, given by whoever reserves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReservationId(pub u64);

/// A virtual link and the paths that it has.
#[derive(Clone, Debug)]
pub struct Reservation {
    request: Request,
    /// Where it was put at first.
    home: Path,
    active: Option<Path>,
    backup: Option<Path>,
    /// The switches that no path of it may pass through now.
    avoided: BTreeSet<Dpid>,
}

impl Reservation {
    const fn new(request: Request, home: Path, active: Path, backup: Option<Path>) -> Reservation {
        Reservation { request, home, active: Some(active), backup, avoided: BTreeSet::new() }
    }

    /// The path where it was put at first.
    pub const fn home(&self) -> &Path {
        &self.home
    }

    /// The path in use; `None` while there is no way.
    pub const fn active(&self) -> Option<&Path> {
        self.active.as_ref()
    }

    /// The path that stands by.
    pub const fn backup(&self) -> Option<&Path> {
        self.backup.as_ref()
    }

    /// What was asked for.
    pub const fn request(&self) -> &Request {
        &self.request
    }

    /// The switches that no path of it may pass through now.
    pub fn avoided(&self) -> impl Iterator<Item = Dpid> + '_ {
        self.avoided.iter().copied()
    }

    /// Whether a path of it can be used as it is.
    fn stands(&self, network: &Network, path: &Path) -> bool {
        let is_avoided = |index| self.avoided.contains(&network.switch(index).dpid());
        path.is_up(network) && !path.interior(network).any(is_avoided)
    }
}

/// A virtual link that has to be put elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// Which.
    pub id: ReservationId,
    /// Where it was; `None` if it was stranded.
    pub from: Option<Path>,
    /// Where it goes; `None` if there is no way now.
    pub to: Option<Path>,
}

/// All reservations on a network.
#[derive(Clone, Debug, Default)]
pub struct Reservations {
    all: BTreeMap<ReservationId, Reservation>,
    ledger: Ledger,
    stranded: BTreeSet<ReservationId>,
    /// Those that are not where they were put at first.
    displaced: BTreeSet<ReservationId>,
    /// What is set aside for those that are not known yet as paths.
    claims: BTreeMap<ReservationId, Claim>,
    search: Search,
}

/// Bandwidth on links that will be a reservation's.
#[derive(Clone, Debug, Default)]
struct Claim {
    links: BTreeSet<LinkId>,
    bandwidth: Bandwidth,
}

impl Reservations {
    /// Finds paths for a virtual link and sets its bandwidth aside.
    pub fn reserve(
        &mut self,
        network: &Network,
        id: ReservationId,
        request: Request,
    ) -> Result<&Reservation, Error> {
        if self.all.contains_key(&id) {
            return Err(Error::DuplicateId(id.0));
        }
        let (active, backup) = self.find(network, &request)?;
        self.ledger.hold(id, both_directions(&active), request.bandwidth);
        if let Some(backup) = &backup {
            self.ledger.hold(id, both_directions(backup), request.bandwidth);
        }
        let home = active.clone();
        let reservation = Reservation::new(request, home, active, backup);
        Ok(self.all.entry(id).or_insert(reservation))
    }

    /// Sets bandwidth aside on paths that were found at another time, as they are; also without the backup that is asked
    /// for, which is then looked for whenever something comes up. `home` is where it was put at first.
    pub fn adopt(
        &mut self,
        network: &Network,
        id: ReservationId,
        request: Request,
        home: Path,
        active: Path,
        backup: Option<Path>,
    ) -> Result<&Reservation, Error> {
        if self.all.contains_key(&id) {
            return Err(Error::DuplicateId(id.0));
        }
        for path in [Some(&active), backup.as_ref()].into_iter().flatten() {
            Path::given(network, request.from, request.to, path.links().to_vec())?;
            if !path.is_up(network) {
                return Err(Error::NoPath);
            }
            if !self.ledger.fits(network, path, request.bandwidth) {
                return Err(Error::NoBandwidth(self.ledger.narrowest(network, path)));
            }
        }
        let apart = |path: &Path| match request.protection {
            Some(disjoint) => path.is_disjoint(&active, network, disjoint),
            None => false,
        };
        if backup.as_ref().is_some_and(|path| !apart(path)) {
            return Err(Error::NoBackup);
        }
        for path in [Some(&active), backup.as_ref()].into_iter().flatten() {
            self.ledger.hold(id, both_directions(path), request.bandwidth);
        }
        set(&mut self.displaced, id, request.reverts && home != active);
        let reservation = Reservation::new(request, home, active, backup);
        Ok(self.all.entry(id).or_insert(reservation))
    }

    /// Sets bandwidth aside in both directions of these links, for what will be [adopted](Reservations::adopt) when all of its
    /// paths is known. What was set aside before for that number is given back; nothing is for no links.
    pub fn claim(&mut self, id: ReservationId, links: BTreeSet<LinkId>, bandwidth: Bandwidth) {
        let claim = Claim { links, bandwidth };
        let before = match claim.links.is_empty() {
            true => self.claims.remove(&id),
            false => self.claims.insert(id, claim.clone()),
        };
        let before = before.unwrap_or_default();
        self.ledger.release(id, before.links, before.bandwidth);
        self.ledger.hold(id, claim.links, claim.bandwidth);
    }

    /// Says where a reservation was put at first, once the links of that path are known.
    pub fn set_home(&mut self, id: ReservationId, home: Path) -> Result<(), Error> {
        let reservation = self.all.get_mut(&id).ok_or(Error::UnknownId(id.0))?;
        let away = reservation.request.reverts && reservation.active.as_ref() != Some(&home);
        reservation.home = home;
        set(&mut self.displaced, id, away);
        Ok(())
    }

    /// Gives up a virtual link and the bandwidth that was set aside for it.
    pub fn release(&mut self, id: ReservationId) -> Result<Reservation, Error> {
        let reservation = self.all.remove(&id).ok_or(Error::UnknownId(id.0))?;
        let bandwidth = reservation.request.bandwidth;
        for path in reservation.active.iter().chain(&reservation.backup) {
            self.ledger.release(id, both_directions(path), bandwidth);
        }
        self.stranded.remove(&id);
        self.displaced.remove(&id);
        Ok(reservation)
    }

    /// The reservation of that number.
    pub fn get(&self, id: ReservationId) -> Option<&Reservation> {
        self.all.get(&id)
    }

    /// All of them, by number.
    pub fn iter(&self) -> impl Iterator<Item = (ReservationId, &Reservation)> {
        self.all.iter().map(|(&id, reservation)| (id, reservation))
    }

    /// What is set aside on a link, for paths in use and for backups.
    pub fn reserved(&self, link: LinkId) -> Bandwidth {
        self.ledger.reserved(link)
    }

    /// What could still be set aside on a link; nothing if it is down.
    pub fn free(&self, network: &Network, link: LinkId) -> Bandwidth {
        self.ledger.free(network, link)
    }

    /// What could still be set aside on all of a path, in both directions.
    pub fn room(&self, network: &Network, path: &Path) -> Bandwidth {
        self.ledger.narrowest(network, path)
    }

    /// Moves what a change of the network makes necessary or possible; `changed` are the links that went up or down.
    pub fn handle_changes(&mut self, network: &Network, changed: &[LinkId]) -> Vec<Move> {
        let mut concerned = BTreeSet::new();
        for &link in changed {
            if network.link(link).is_up() {
                concerned.extend(self.admit(network, link));
                concerned.extend(&self.stranded);
                concerned.extend(&self.displaced);
                concerned.extend(self.unprotected());
            } else {
                concerned.extend(self.ledger.holders(link));
            }
        }
        let mut moves = Vec::new();
        // First whoever only has to change over, so that what they leave behind is free for those who have to search.
        let (ready, searching): (Vec<_>, Vec<_>) =
            concerned.into_iter().partition(|id| self.has_standing_backup(network, *id));
        for id in ready.into_iter().chain(searching) {
            moves.extend(self.settle(network, id));
        }
        moves
    }

    /// No path of a virtual link may pass through that switch, until a link of the switch comes up: what does is moved. Its own
    /// ends cannot be avoided.
    pub fn avoid(
        &mut self,
        network: &Network,
        id: ReservationId,
        switch: Dpid,
    ) -> Result<Option<Move>, Error> {
        let reservation = self.all.get_mut(&id).ok_or(Error::UnknownId(id.0))?;
        let Request { from, to, .. } = reservation.request;
        let is_new = [from, to].iter().all(|&end| network.switch(end).dpid() != switch)
            && reservation.avoided.insert(switch);
        Ok(if is_new { self.settle(network, id) } else { None })
    }

    /// A link has come up: its switches are avoided no longer. Gives who had avoided one.
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

    /// Puts one virtual link where it is best off now.
    fn settle(&mut self, network: &Network, id: ReservationId) -> Option<Move> {
        let mut reservation = self.all.remove(&id)?;
        let bandwidth = reservation.request.bandwidth;
        let before = reservation.active.clone();
        // All that it holds is given up first: its new paths may use the same links.
        for path in reservation.active.iter().chain(&reservation.backup) {
            self.ledger.release(id, both_directions(path), bandwidth);
        }
        let stands =
            |path: &Option<Path>| path.clone().filter(|path| reservation.stands(network, path));
        let home = Some(&reservation.home).filter(|home| {
            reservation.request.reverts
                && reservation.stands(network, home)
                && self.ledger.fits(network, home, bandwidth)
        });
        let active = home.cloned().or_else(|| stands(&reservation.active));
        let active = active.or_else(|| stands(&reservation.backup)).or_else(|| {
            let Reservation { request, avoided, .. } = &reservation;
            pick(&mut self.search, network, &self.ledger, request, avoided)
        });
        let backup = active.as_ref().and_then(|active| {
            let disjoint = reservation.request.protection?;
            let kept = [&reservation.active, &reservation.backup].into_iter().find_map(|path| {
                stands(path).filter(|path| path.is_disjoint(active, network, disjoint))
            });
            kept.or_else(|| {
                self.beside(network, &reservation.request, active, disjoint, &reservation.avoided)
            })
        });
        for path in active.iter().chain(&backup) {
            self.ledger.hold(id, both_directions(path), bandwidth);
        }
        set(&mut self.stranded, id, active.is_none());
        let away = reservation.request.reverts && active.as_ref() != Some(&reservation.home);
        set(&mut self.displaced, id, away);
        (reservation.active, reservation.backup) = (active.clone(), backup);
        self.all.insert(id, reservation);
        (before != active).then_some(Move { id, from: before, to: active })
    }

    /// A path for a request, and the backup that it asks for.
    fn find(
        &mut self,
        network: &Network,
        request: &Request,
    ) -> Result<(Path, Option<Path>), Error> {
        let &Request { from, to, bandwidth, ref choice, protection, .. } = request;
        let needed = bandwidth.bits_per_second();
        let active = match choice {
            Choice::Given(path) => {
                let path = Path::given(network, from, to, path.links().to_vec())?;
                if !path.is_up(network) {
                    return Err(Error::NoPath);
                }
                if !self.ledger.fits(network, &path, bandwidth) {
                    return Err(Error::NoBandwidth(self.ledger.narrowest(network, &path)));
                }
                path
            }
            Choice::Shortest | Choice::Widest => {
                match pick(&mut self.search, network, &self.ledger, request, &BTreeSet::new()) {
                    Some(path) => path,
                    None => return Err(self.why_not(network, from, to)),
                }
            }
        };
        let Some(disjoint) = protection.filter(|_| from != to) else { return Ok((active, None)) };
        if let Some(backup) = self.beside(network, request, &active, disjoint, &BTreeSet::new()) {
            return Ok((active, Some(backup)));
        }
        if let Choice::Given(_) = choice {
            return Err(Error::NoBackup);
        }
        // The best single path may cut the network in two where a pair of others does not.
        let usable = |link: LinkId| self.ledger.has_room(network, link, needed);
        let pair = disjoint_pair(network, from, to, disjoint, usable).ok_or(Error::NoBackup)?;
        Ok((pair.0, Some(pair.1)))
    }

    /// The shortest path with room that is disjoint from `active`.
    fn beside(
        &mut self,
        network: &Network,
        request: &Request,
        active: &Path,
        disjoint: Disjoint,
        avoided: &BTreeSet<Dpid>,
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
                && !is_avoided(network, avoided, link)
        });
        found.filter(|_| request.from != request.to)
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

    fn has_standing_backup(&self, network: &Network, id: ReservationId) -> bool {
        let backup = self.all.get(&id).and_then(Reservation::backup);
        backup.is_some_and(|backup| backup.is_up(network))
    }

    /// Those who should have a backup and have none.
    fn unprotected(&self) -> impl Iterator<Item = ReservationId> + '_ {
        let lacks = |it: &Reservation| it.request.protection.is_some() && it.backup.is_none();
        self.all.iter().filter(move |(_, it)| lacks(it)).map(|(&id, _)| id)
    }
}

/// Whether a link begins or ends at one of these switches.
fn is_avoided(network: &Network, avoided: &BTreeSet<Dpid>, link: LinkId) -> bool {
    let ends = network.link(link).switches();
    let mut ends = ends.into_iter().flat_map(|(one, other)| [one, other]);
    !avoided.is_empty() && ends.any(|end| avoided.contains(&network.switch(end).dpid()))
}

/// The path that a request would choose by what is free, through none of these switches.
fn pick(
    search: &mut Search,
    network: &Network,
    ledger: &Ledger,
    request: &Request,
    avoided: &BTreeSet<Dpid>,
) -> Option<Path> {
    let &Request { from, to, bandwidth, ref choice, .. } = request;
    let needed = bandwidth.bits_per_second();
    let has_room = |link: LinkId| {
        ledger.has_room(network, link, needed) && !is_avoided(network, avoided, link)
    };
    let widest = match choice {
        Choice::Shortest | Choice::Given(_) => None,
        Choice::Widest => {
            let found = search.widest(network, from, to, |link| {
                if is_avoided(network, avoided, link) { 0 } else { ledger.both_ways(network, link) }
            });
            found.filter(|(_, wide)| *wide >= needed).map(|(path, _)| path)
        }
    };
    // Who asks for no bandwidth gets a path also where none is free.
    widest.or_else(|| search.shortest(network, from, to, has_room))
}

fn set(among: &mut BTreeSet<ReservationId>, id: ReservationId, is_in: bool) {
    if is_in {
        among.insert(id);
    } else {
        among.remove(&id);
    }
}
