//! A virtual link's request, and the paths that are reserved for it.

use crate::index::{LinkId, SwitchIndex};
use crate::network::Network;
use crate::paths::{Disjoint, Path};
use crate::units::{Bandwidth, Dpid};
use alloc::collections::BTreeSet;

/// The request of a virtual link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The first switch.
    pub from: SwitchIndex,
    /// The last switch. The reverse direction uses the same path, with its own bandwidth.
    pub to: SwitchIndex,
    /// The bandwidth in each direction; 0 for a link without reserved bandwidth.
    pub bandwidth: Bandwidth,
    /// The choice of the path.
    pub choice: Choice,
    /// Whether the request needs a backup, and how disjoint the backup has to be.
    pub protection: Option<Disjoint>,
    /// Whether the link returns to its first path when that path works again.
    pub reverts: bool,
}

/// The choice of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The path with the fewest links among paths with enough bandwidth.
    Shortest,
    /// The path with the most free bandwidth on its narrowest link.
    Widest,
    /// The given path. If the given path fails, the shortest path replaces it until the given path
    /// works again.
    Given(Path),
}

/// The number of a reservation, chosen by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReservationId(pub u64);

/// A virtual link and its paths.
#[derive(Clone, Debug)]
pub struct Reservation {
    pub(super) request: Request,
    /// The preferred path: the path of the first placement.
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

    /// The preferred path: the path of the first placement.
    pub const fn home(&self) -> &Path {
        &self.home
    }

    /// The active path; `None` while there is no path.
    pub const fn active(&self) -> Option<&Path> {
        self.active.as_ref()
    }

    /// The backup path.
    pub const fn backup(&self) -> Option<&Path> {
        self.backup.as_ref()
    }

    /// The request.
    pub const fn request(&self) -> &Request {
        &self.request
    }

    /// The switches that no path of it may pass through now.
    pub fn avoided(&self) -> impl Iterator<Item = Dpid> + '_ {
        self.avoided.iter().copied()
    }

    /// Whether a path of the reservation is usable without change.
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

    /// Whether the reservation has a path and fulfils its request.
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
