//! A virtual link's request, and the paths that are reserved for it.

use crate::network::{LinkId, Network, SwitchIndex};
use crate::paths::{Disjoint, Path};
use crate::units::{Bandwidth, Dpid};
use alloc::collections::BTreeSet;

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
    pub(super) request: Request,
    /// Where it was put at first.
    pub(super) home: Path,
    pub(super) active: Option<Path>,
    pub(super) backup: Option<Path>,
    /// The switches that no path of it may pass through now.
    pub(super) avoided: BTreeSet<Dpid>,
}

impl Reservation {
    pub(super) const fn new(
        request: Request,
        home: Path,
        active: Path,
        backup: Option<Path>,
    ) -> Reservation {
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
    pub(crate) fn stands(
        &self,
        network: &Network,
        path: &Path,
        closed: &dyn Fn(LinkId) -> bool,
    ) -> bool {
        let is_avoided = |index| self.avoided.contains(&network.switch(index).dpid());
        let is_open = |&link: &LinkId| !closed(link);
        path.is_up(network)
            && !path.interior(network).any(is_avoided)
            && path.links().iter().all(is_open)
    }

    /// Whether it is there, and as it was asked for.
    pub(super) fn is_settled(&self) -> bool {
        let is_away = self.request.reverts && self.active.as_ref() != Some(&self.home);
        let Request { from, to, protection, .. } = self.request;
        let lacks_backup = protection.is_some() && self.backup.is_none() && from != to;
        self.active.is_some() && !is_away && !lacks_backup
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.active.iter().chain(&self.backup)
    }
}
