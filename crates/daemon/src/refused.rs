//! What switches refuse of the hypervisor's own entries, as their cores say: tenants' ports that are down because nothing comes in
//! by them, and what cannot pass through.
//!
//! The shards tell of each switch all ports there are at once; so what is known is never more than the ports of its map.
//! What cannot pass through is told once, and kept until the networks' thread takes it, to lead it around.

use std::collections::{BTreeSet, HashMap};
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fabric::embedding::Transit;
use fabric::{Dpid, TenantId};

/// That of all switches, by datapath id.
#[derive(Default)]
pub struct Refused(Mutex<Told>);

#[derive(Default)]
struct Told {
    ports: HashMap<Dpid, BTreeSet<(TenantId, u32)>>,
    transits: HashMap<Dpid, BTreeSet<Transit>>,
}

impl Refused {
    /// The ports of a switch from now on; none of one that has gone.
    pub fn set_ports(&self, dpid: Dpid, ports: Vec<(TenantId, u32)>) {
        let mut all = self.lock();
        if ports.is_empty() {
            all.ports.remove(&dpid);
        } else {
            all.ports.insert(dpid, ports.into_iter().collect());
        }
    }

    /// What a switch does not let pass.
    pub fn add_transits(&self, dpid: Dpid, transits: BTreeSet<Transit>) {
        self.lock().transits.entry(dpid).or_default().extend(transits);
    }

    /// Takes what has been told so since.
    pub fn take_transits(&self) -> HashMap<Dpid, BTreeSet<Transit>> {
        mem::take(&mut self.lock().transits)
    }

    /// Whether a port of a tenant's is one, by its number there.
    pub fn has_port(&self, dpid: Dpid, tenant: TenantId, port: u32) -> bool {
        self.lock().ports.get(&dpid).is_some_and(|ports| ports.contains(&(tenant, port)))
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
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
        refused.set_ports(Dpid(1), vec![(red, 1), (blue, 1)]);
        refused.set_ports(Dpid(2), vec![(red, 2)]);
        refused.set_ports(Dpid(1), vec![(red, 3)]);
        let all = [(1, red, 1), (1, blue, 1), (1, red, 3), (2, red, 2), (2, red, 3)];
        let has = all.map(|(dpid, tenant, port)| refused.has_port(Dpid(dpid), tenant, port));
        assert_eq!(has, [false, false, true, true, false]);
        refused.set_ports(Dpid(1), Vec::new());
        assert!(!refused.has_port(Dpid(1), red, 3) && refused.has_port(Dpid(2), red, 2));
    }
}
