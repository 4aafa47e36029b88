//! Links that paths must not use, apart from links that are down or have no room.

use crate::index::LinkId;
use crate::network::Network;
use crate::units::Dpid;
use alloc::collections::BTreeSet;

/// The links that a path must not use.
#[derive(Clone, Copy)]
pub(super) struct Shut<'a> {
    /// Links that begin or end at these switches are excluded.
    pub(super) switches: &'a BTreeSet<Dpid>,
    pub(super) closed: &'a dyn Fn(LinkId) -> bool,
}

impl Shut<'_> {
    pub(super) fn has(&self, network: &Network, link: LinkId) -> bool {
        let ends = network.link(link).switches();
        let mut ends = ends.into_iter().flat_map(|(one, other)| [one, other]);
        let is_avoided = !self.switches.is_empty()
            && ends.any(|end| self.switches.contains(&network.switch(end).dpid()));
        is_avoided || (self.closed)(link)
    }
}

/// A test by which no link is closed.
pub(crate) fn nowhere(_: LinkId) -> bool {
    false
}
