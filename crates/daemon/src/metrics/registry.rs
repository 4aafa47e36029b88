//! All present metrics.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, Weak};

use hypervisor::{Account, TenantId};

use super::series::{EventLoopMetrics, ProcessMetrics, SwitchMetrics};
use super::totals::{Sums, TenantTotals, Totals};

use crate::lock::lock;

/// By tenant: the totals, and the counts on disconnected switches.
pub(super) type Past = BTreeMap<String, (Arc<TenantTotals>, Sums)>;

/// All present metrics.
#[derive(Debug, Default)]
pub struct Registry {
    /// Metrics that belong to no switch.
    pub process: ProcessMetrics,
    /// Metrics of tenants over all switches.
    pub totals: Arc<Totals>,
    switches: Mutex<BTreeMap<u64, Weak<SwitchMetrics>>>,
    event_loops: Mutex<BTreeMap<usize, Arc<EventLoopMetrics>>>,
    accounts: Mutex<Accounts>,
}

/// The resources that tenants use over all switches, and whether there is room for their state.
#[derive(Debug, Default)]
struct Accounts {
    of: BTreeMap<TenantId, Arc<Account>>,
    /// The reason why no state can be stored, if so.
    full: Option<String>,
    /// The tenants that have used their part of the store.
    over: BTreeSet<TenantId>,
}

impl Accounts {
    fn is_full(&self, tenant: TenantId) -> bool {
        self.full.is_some() || self.over.contains(&tenant)
    }

    fn publish_full(&self) {
        self.of.iter().for_each(|(tenant, account)| account.set_store_full(self.is_full(*tenant)));
    }
}

impl Registry {
    /// A registry with no switches.
    pub fn new() -> Arc<Registry> {
        Arc::new(Registry::default())
    }

    /// Instruments for a switch that has just connected; `version` is the negotiated OpenFlow version (0x01, 0x04).
    ///
    /// A second registration of the same dpid replaces the first in the output: a switch that reconnects before Weir
    /// notices the end of its old connection counts from zero, which Prometheus reads as a counter reset.
    pub fn switch(&self, dpid: u64, version: u8) -> Arc<SwitchMetrics> {
        let metrics = Arc::new(SwitchMetrics::new(dpid, version, Arc::clone(&self.totals)));
        let mut switches = lock(&self.switches);
        switches.retain(|_, switch| switch.strong_count() > 0);
        switches.insert(dpid, Arc::downgrade(&metrics));
        metrics
    }

    /// Instruments for the event loop with this number.
    pub fn event_loop(&self, number: usize) -> Arc<EventLoopMetrics> {
        let mut event_loops = lock(&self.event_loops);
        Arc::clone(event_loops.entry(number).or_default())
    }

    /// The instruments of all event loops, by ascending number.
    pub(super) fn event_loops(&self) -> Vec<(usize, Arc<EventLoopMetrics>)> {
        let event_loops = lock(&self.event_loops);
        event_loops.iter().map(|(number, metrics)| (*number, Arc::clone(metrics))).collect()
    }

    /// The resources that a tenant uses on all switches together.
    pub fn account(&self, tenant: TenantId) -> Arc<Account> {
        let mut accounts = lock(&self.accounts);
        let account = Arc::clone(accounts.of.entry(tenant).or_default());
        account.set_store_full(accounts.is_full(tenant));
        account
    }

    /// Sets the reason why no state can be stored, or `None` if state can be stored. While there is a reason, additions
    /// of tenants are refused.
    pub fn set_store_full(&self, why: Option<String>) {
        let mut accounts = lock(&self.accounts);
        self.process.store_full.set(u64::from(why.is_some()));
        accounts.full = why;
        accounts.publish_full();
    }

    /// Why no state can be stored, if so.
    pub fn store_full(&self) -> Option<String> {
        lock(&self.accounts).full.clone()
    }

    /// Sets the tenants whose part of the store is full.
    pub fn set_store_over(&self, over: BTreeSet<TenantId>) {
        let mut accounts = lock(&self.accounts);
        accounts.over = over;
        accounts.publish_full();
    }

    /// The instruments of all connected switches, by ascending dpid.
    pub fn switches(&self) -> Vec<Arc<SwitchMetrics>> {
        let switches = lock(&self.switches);
        switches.values().filter_map(Weak::upgrade).collect()
    }

    /// The instruments of all connected switches, and the counts of each tenant on disconnected switches, at one
    /// moment.
    pub(super) fn moment(&self) -> (Vec<Arc<SwitchMetrics>>, Past) {
        let switches = lock(&self.switches);
        let past = self.totals.all().into_iter().map(|(name, totals)| {
            let past = totals.past();
            (name, (totals, past))
        });
        (switches.values().filter_map(Weak::upgrade).collect(), past.collect())
    }

    /// The instruments of all connected switches, and the counts of each tenant over all switches, including
    /// disconnected ones.
    pub fn sums(&self) -> (Vec<Arc<SwitchMetrics>>, BTreeMap<String, Sums>) {
        let (switches, past) = self.moment();
        let mut sums: BTreeMap<String, Sums> =
            past.into_iter().map(|(name, (_, past))| (name, past)).collect();
        for switch in &switches {
            for tenant in switch.tenants() {
                match sums.get_mut(&tenant.name) {
                    Some(sum) => tenant.add_to(sum, switch.version),
                    None => {
                        let sum = sums.entry(tenant.name.clone()).or_default();
                        tenant.add_to(sum, switch.version);
                    }
                }
            }
        }
        (switches, sums)
    }

    /// Ends the session of a switch: the counts of its tenants stay in their totals.
    pub fn retire(&self, switch: &Arc<SwitchMetrics>) {
        let mut switches = lock(&self.switches);
        if switches.get(&switch.dpid).is_some_and(|it| it.as_ptr() == Arc::as_ptr(switch)) {
            switches.remove(&switch.dpid);
            switch.tenants().iter().for_each(|tenant| tenant.retire(switch.version));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_switch_is_removed_from_the_registry() {
        let registry = Registry::new();
        let first = registry.switch(1, 1);
        let second = registry.switch(2, 4);
        assert_eq!(dpids(&registry), [1, 2]);
        drop(first);
        assert_eq!(dpids(&registry), [2]);
        drop(second);
        registry.switch(3, 1);
        assert_eq!(
            registry.switches.lock().unwrap().len(),
            1,
            "dead entries are swept at the next registration"
        );
    }

    #[test]
    fn the_newest_registration_of_a_dpid_is_shown() {
        let registry = Registry::new();
        let old = registry.switch(1, 1);
        let new = registry.switch(1, 4);
        assert!(Arc::ptr_eq(&registry.switches()[0], &new));
        drop(old);
        assert_eq!(dpids(&registry), [1], "the old one's end does not remove the new one");
    }

    fn dpids(registry: &Registry) -> Vec<u64> {
        registry.switches().iter().map(|switch| switch.dpid).collect()
    }
}
