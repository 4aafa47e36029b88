//! Infrastructure rules that switches refuse, as the cores report: tenants' ports that are down because their ingress
//! rule is refused, and refused transit rules.
//!
//! For each switch the shards report all refused ports together, so there are never more ports than in the switch's
//! map. Refused transits are reported once, and kept until the networks' thread takes them to find another path.

use std::collections::{BTreeSet, HashMap};
use std::mem;
use std::sync::Mutex;

use fabric::embedding::Transit;
use fabric::{Dpid, TenantId};

use crate::lock::lock;

/// The refused rules of all switches, by datapath id.
#[derive(Default)]
pub struct Refused(Mutex<RefusedRules>);

#[derive(Default)]
struct RefusedRules {
    ports: HashMap<Dpid, BTreeSet<(TenantId, u32)>>,
    transits: HashMap<Dpid, BTreeSet<Transit>>,
}

impl Refused {
    /// Sets the refused ports of a switch; none for a disconnected switch.
    pub fn set_ports(&self, dpid: Dpid, ports: Vec<(TenantId, u32)>) {
        let mut all = lock(&self.0);
        if ports.is_empty() {
            all.ports.remove(&dpid);
        } else {
            all.ports.insert(dpid, ports.into_iter().collect());
        }
    }

    /// Adds refused transits of a switch.
    pub fn add_transits(&self, dpid: Dpid, transits: BTreeSet<Transit>) {
        lock(&self.0).transits.entry(dpid).or_default().extend(transits);
    }

    /// Takes the refused transits that were added since the last call.
    pub fn take_transits(&self) -> HashMap<Dpid, BTreeSet<Transit>> {
        mem::take(&mut lock(&self.0).transits)
    }

    /// Whether a tenant's port, by its number on the virtual switch, is refused.
    pub fn has_port(&self, dpid: Dpid, tenant: TenantId, port: u32) -> bool {
        lock(&self.0).ports.get(&dpid).is_some_and(|ports| ports.contains(&(tenant, port)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newly_reported_refused_ports_replace_the_earlier_ports_of_the_switch() {
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
