//! Refused requests of sessions that have ended. People ask later why a request was refused; by then the switch may
//! have disconnected.
//!
//! The number of refusals is bounded. When there is no room, refusals of the tenant with the most go first, so that a
//! tenant cannot displace the refusals of others.

use hypervisor::TenantId;
use hypervisor::refusals::{KEPT, Refusal};
use openflow::Version;
use std::collections::{BTreeMap, VecDeque};

/// Refusals that are kept of all tenants on all switches of a shard: 2 MB.
const MOST: usize = 16_384;

/// The refusals of ended sessions, each a `T`.
pub(super) struct Past<T = Ended> {
    /// The refusals by tenant and by the switch's datapath id for people.
    rings: BTreeMap<(TenantId, u64), Ring<T>>,
    count: usize,
    /// The number of ended sessions.
    taken: u64,
}

/// The refusals of one tenant on one switch, the oldest first, and at most [`KEPT`].
struct Ring<T> {
    /// The value of [`Past::taken`] when refusals were last added.
    taken: u64,
    kept: VecDeque<T>,
}

/// A refusal of a session that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    /// The OpenFlow version of the session.
    pub(super) version: Version,
    pub(super) refusal: Refusal,
}

impl<T> Default for Past<T> {
    fn default() -> Past<T> {
        Past { rings: BTreeMap::new(), count: 0, taken: 0 }
    }
}

impl<T> Past<T> {
    /// Takes over the refusals of a session of a switch.
    pub(super) fn take(&mut self, dpid: u64, all: impl Iterator<Item = (TenantId, T)>) {
        self.taken += 1;
        for (tenant, ended) in all {
            let new = || Ring { taken: 0, kept: VecDeque::new() };
            let ring = self.rings.entry((tenant, dpid)).or_insert_with(new);
            ring.taken = self.taken;
            if ring.kept.len() >= KEPT {
                ring.kept.pop_front();
                self.count -= 1;
            }
            ring.kept.push_back(ended);
            self.count += 1;
        }
        while self.count > MOST {
            self.forget_one();
        }
    }

    /// The refusals of a tenant, each with its switch.
    pub(super) fn of(&self, tenant: TenantId) -> impl Iterator<Item = (u64, &T)> {
        let all = self.rings.range((tenant, 0)..=(tenant, u64::MAX));
        all.flat_map(|((_, dpid), ring)| ring.kept.iter().map(|ended| (*dpid, ended)))
    }

    /// Forgets the refusals of tenants that were removed: a new tenant may get the same number.
    pub(super) fn retain(&mut self, is_there: impl Fn(TenantId) -> bool) {
        self.rings.retain(|(tenant, _), _| is_there(*tenant));
        self.count = self.rings.values().map(|ring| ring.kept.len()).sum();
    }

    /// Forgets the least recently filled ring of the tenant with the most refusals.
    fn forget_one(&mut self) {
        let mut by_tenant = BTreeMap::<TenantId, usize>::new();
        for ((tenant, _), ring) in &self.rings {
            *by_tenant.entry(*tenant).or_default() += ring.kept.len();
        }
        let largest = by_tenant.into_iter().max_by_key(|(_, count)| *count).map(|(it, _)| it);
        let own = self.rings.iter().filter(|((tenant, _), _)| Some(*tenant) == largest);
        let oldest = own.min_by_key(|(_, ring)| ring.taken).map(|(key, _)| *key);
        match oldest.and_then(|key| self.rings.remove(&key)) {
            Some(ring) => self.count -= ring.kept.len(),
            None => self.count = 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RED: TenantId = TenantId(1);
    const BLUE: TenantId = TenantId(2);

    fn take(past: &mut Past<u64>, tenant: TenantId, dpid: u64, all: std::ops::Range<u64>) {
        past.take(dpid, all.map(|it| (tenant, it)));
    }

    #[test]
    fn the_latest_refusals_of_each_tenant_on_each_switch_are_kept() {
        let mut past = Past::default();
        take(&mut past, RED, 7, 0..KEPT as u64);
        take(&mut past, RED, 7, 100..103);
        take(&mut past, RED, 8, 50..52);
        take(&mut past, BLUE, 7, 60..61);
        let of_red: Vec<(u64, u64)> = past.of(RED).map(|(dpid, it)| (dpid, *it)).collect();
        let expected = (3..KEPT as u64).chain(100..103).map(|it| (7, it)).chain([(8, 50), (8, 51)]);
        assert!(of_red.into_iter().eq(expected));
        assert_eq!(past.of(BLUE).count(), 1);
        past.retain(|tenant| tenant == BLUE);
        assert_eq!((past.of(RED).count(), past.of(BLUE).count(), past.count), (0, 1, 1));
    }

    #[test]
    fn refusals_are_bounded_and_a_tenant_displaces_none_of_another_tenant() {
        let mut past = Past::default();
        take(&mut past, BLUE, 1, 0..KEPT as u64);
        let rings = (MOST / KEPT) as u64;
        for dpid in 0..2 * rings {
            take(&mut past, RED, dpid, dpid..dpid + KEPT as u64);
            assert!(past.count <= MOST);
        }
        assert_eq!((past.of(BLUE).count(), past.count), (KEPT, MOST));
        assert!(past.of(RED).all(|(dpid, _)| dpid > rings), "the oldest go");
    }
}
