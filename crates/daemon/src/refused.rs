//! Tenants' ports that are down because a switch refuses what would bring packets in by them, as the switches' cores say.
//!
//! The shards tell of each switch all there are at once; so what is known is never more than the ports of its map.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use fabric::{Dpid, TenantId};

/// Those of all switches, by datapath id.
#[derive(Default)]
pub struct Refused(Mutex<HashMap<Dpid, BTreeSet<(TenantId, u32)>>>);

impl Refused {
    /// Those of a switch from now on; none of one that has gone.
    pub fn set(&self, dpid: Dpid, ports: Vec<(TenantId, u32)>) {
        let mut all = self.lock();
        if ports.is_empty() {
            all.remove(&dpid);
        } else {
            all.insert(dpid, ports.into_iter().collect());
        }
    }

    /// Whether a port of a tenant's is one, by its number there.
    pub fn has(&self, dpid: Dpid, tenant: TenantId, port: u32) -> bool {
        self.lock().get(&dpid).is_some_and(|ports| ports.contains(&(tenant, port)))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Dpid, BTreeSet<(TenantId, u32)>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_says_all_of_its_own() {
        let refused = Refused::default();
        let [red, blue] = [TenantId(1), TenantId(2)];
        refused.set(Dpid(1), vec![(red, 1), (blue, 1)]);
        refused.set(Dpid(2), vec![(red, 2)]);
        refused.set(Dpid(1), vec![(red, 3)]);
        let all = [(1, red, 1), (1, blue, 1), (1, red, 3), (2, red, 2), (2, red, 3)];
        let has = all.map(|(dpid, tenant, port)| refused.has(Dpid(dpid), tenant, port));
        assert_eq!(has, [false, false, true, true, false]);
        refused.set(Dpid(1), Vec::new());
        assert!(!refused.has(Dpid(1), red, 3) && refused.has(Dpid(2), red, 2));
    }
}
