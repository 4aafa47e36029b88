//! The reserved bandwidth on each link, and its owners.

use super::reservation::ReservationId;
use crate::index::LinkId;
use crate::network::Network;
use crate::paths::Path;
use crate::units::Bandwidth;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// The reserved bandwidth by link.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger(Vec<Reserved>);

#[derive(Clone, Debug, Default)]
struct Reserved {
    bits: u64,
    by: BTreeSet<ReservationId>,
}

impl Ledger {
    /// Reserves bandwidth.
    pub(super) fn hold(
        &mut self,
        id: ReservationId,
        links: impl IntoIterator<Item = LinkId>,
        bandwidth: Bandwidth,
    ) {
        for link in links {
            if self.0.len() <= link.index() {
                self.0.resize_with(link.index() + 1, Reserved::default);
            }
            let reserved = &mut self.0[link.index()];
            // The sum fits: no reservation exceeds the free bandwidth of a link.
            reserved.bits = reserved.bits.saturating_add(bandwidth.bits_per_second());
            reserved.by.insert(id);
        }
    }

    /// Releases bandwidth that was reserved by [`hold`](Ledger::hold).
    pub(super) fn release(
        &mut self,
        id: ReservationId,
        links: impl IntoIterator<Item = LinkId>,
        bandwidth: Bandwidth,
    ) {
        for link in links {
            if let Some(reserved) = self.0.get_mut(link.index()) {
                reserved.bits = reserved.bits.saturating_sub(bandwidth.bits_per_second());
                reserved.by.remove(&id);
            }
        }
    }

    pub(super) fn holders(&self, link: LinkId) -> impl Iterator<Item = ReservationId> + '_ {
        self.0.get(link.index()).into_iter().flat_map(|reserved| &reserved.by).copied()
    }

    pub(super) fn reserved(&self, link: LinkId) -> Bandwidth {
        Bandwidth::from_bits_per_second(self.0.get(link.index()).map_or(0, |link| link.bits))
    }

    /// The free bandwidth; 0 on a link that is down.
    pub(super) fn free(&self, network: &Network, link: LinkId) -> Bandwidth {
        let state = network.link(link);
        if !state.is_up() {
            return Bandwidth::ZERO;
        }
        state.capacity.saturating_sub(self.reserved(link))
    }

    /// The bandwidth that is free in both directions of a wire, in bits per second: a virtual link needs its bandwidth
    /// in each direction.
    pub(super) fn both_ways(&self, network: &Network, link: LinkId) -> u64 {
        let [forth, back] = [link, link.reverse()].map(|link| self.free(network, link));
        forth.min(back).bits_per_second()
    }

    /// Whether a link is up and has this free bandwidth.
    pub(super) fn has_room(&self, network: &Network, link: LinkId, bits: u64) -> bool {
        network.link(link).is_up() && self.both_ways(network, link) >= bits
    }

    pub(super) fn fits(&self, network: &Network, path: &Path, bandwidth: Bandwidth) -> bool {
        let bits = bandwidth.bits_per_second();
        path.links().iter().all(|&link| self.has_room(network, link, bits))
    }

    /// The free bandwidth of the narrowest link of a path.
    pub(super) fn narrowest(&self, network: &Network, path: &Path) -> Bandwidth {
        let free = path.links().iter().map(|&link| self.both_ways(network, link));
        Bandwidth::from_bits_per_second(free.min().unwrap_or(u64::MAX))
    }
}

/// The links of a path in both directions.
pub(super) fn both_directions(path: &Path) -> impl Iterator<Item = LinkId> + '_ {
    path.links().iter().flat_map(|&link| [link, link.reverse()])
}
