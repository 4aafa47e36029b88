//! File descriptors: the limit of the process, and its division.
//!
//! At the start Weir raises the soft limit to the hard limit. A reserve is for the store, the configuration, logs, and
//! the REST interface with health checks. The rest is for switches and controllers, and a part of this rest is for
//! switches alone: there may be one controller connection for each tenant and switch, and controllers must not keep
//! switches out. Half of the controllers' descriptors is divided equally among the tenants, each part for one tenant
//! alone; the other half is for the tenants that connect first.
//!
//! A connection owns its [`Permit`], and releases the permit when the connection ends.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use hypervisor::TenantId;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::lock::lock;

/// Descriptors for the store, event loops, and files that are read and written.
const FILES: u64 = 64;
/// The highest requested limit, also if the system has no limit.
const MOST: u64 = 1 << 20;

/// Raises the soft limit to the hard limit, and returns the new limit.
pub fn raise() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let hard = limit.maximum.unwrap_or(MOST).min(MOST);
    let soft = limit.current.unwrap_or(MOST);
    if soft >= hard {
        return soft.min(MOST);
    }
    match setrlimit(Resource::Nofile, Rlimit { current: Some(hard), maximum: limit.maximum }) {
        Ok(()) => hard,
        Err(error) => {
            tracing::warn!(%error, soft, hard, "the limit of file descriptors cannot be raised");
            soft
        }
    }
}

/// The division of the descriptors. Cheap to clone; one for the process.
#[derive(Clone, Debug)]
pub struct Descriptors(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    limit: u64,
    /// The maximum number of HTTP connections.
    api: u64,
    /// Descriptors for switches and controllers together.
    openflow: u64,
    /// The part of `openflow` that controllers may use.
    controllers: u64,
    used: Used,
}

#[derive(Debug, Default)]
struct Used {
    switches: AtomicU64,
    controllers: AtomicU64,
    /// Descriptors in use by controllers, by tenant.
    tenants: Mutex<HashMap<TenantId, u64>>,
}

/// The user of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Switch,
    Controller(TenantId),
}

impl Descriptors {
    /// Divides the descriptors below this limit.
    pub fn new(limit: u64) -> Descriptors {
        let api = (limit / 8).clamp(8, 256);
        let openflow = limit.saturating_sub(FILES.min(limit / 4) + api);
        let controllers = openflow - openflow / 4;
        Descriptors(Arc::new(Inner { limit, api, openflow, controllers, used: Used::default() }))
    }

    /// The process's limit.
    pub fn limit(&self) -> u64 {
        self.0.limit
    }

    /// The maximum number of HTTP connections.
    pub fn api(&self) -> usize {
        self.0.api as usize
    }

    /// Descriptors in use by switches (including switches in the handshake), and by controllers.
    pub fn used(&self) -> (u64, u64) {
        let used = &self.0.used;
        (used.switches.load(Ordering::Relaxed), used.controllers.load(Ordering::Relaxed))
    }

    /// The maximum number of switches in the handshake: a quarter of all descriptors.
    pub fn arriving(&self) -> usize {
        (self.0.openflow / 4).max(1) as usize
    }

    /// A permit for the connection of a switch.
    pub fn switch(&self) -> Option<Permit> {
        self.take(Whose::Switch, 1)
    }

    /// A permit for a connection to a tenant's controller, where `tenants` is the number of tenants; a connection
    /// within the process needs two descriptors.
    pub fn controller(&self, tenant: TenantId, tenants: usize, count: u64) -> Option<Permit> {
        let mut by_tenant = lock(&self.0.used.tenants);
        let part = self.0.controllers / 2 / (tenants.max(1) as u64);
        let own = by_tenant.get(&tenant).copied().unwrap_or(0);
        let others = by_tenant.iter().filter(|(other, _)| **other != tenant);
        let begun: u64 = others.clone().map(|(_, used)| (*used).min(part)).sum();
        let used: u64 = own + others.map(|(_, used)| used).sum::<u64>();
        let kept = (part * (tenants.max(1) as u64 - 1)).saturating_sub(begun);
        if own + count > part && used + count + kept > self.0.controllers {
            return None;
        }
        *by_tenant.entry(tenant).or_default() += count;
        drop(by_tenant);
        self.take(Whose::Controller(tenant), count)
    }

    fn take(&self, whose: Whose, count: u64) -> Option<Permit> {
        // The descriptors are counted before the check, so that shards that ask at the same time do not exceed the
        // limit.
        let permit = Permit { of: Arc::clone(&self.0), whose, count };
        self.0.used.of(whose).fetch_add(count, Ordering::SeqCst);
        let switches = self.0.used.switches.load(Ordering::SeqCst);
        let controllers = self.0.used.controllers.load(Ordering::SeqCst);
        let fits = switches + controllers <= self.0.openflow
            && (whose == Whose::Switch || controllers <= self.0.controllers);
        fits.then_some(permit)
    }
}

impl Used {
    fn of(&self, whose: Whose) -> &AtomicU64 {
        match whose {
            Whose::Switch => &self.switches,
            Whose::Controller(_) => &self.controllers,
        }
    }
}

/// Descriptors in use by one connection.
#[derive(Debug)]
pub struct Permit {
    of: Arc<Inner>,
    whose: Whose,
    count: u64,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.of.used.of(self.whose).fetch_sub(self.count, Ordering::SeqCst);
        if let Whose::Controller(tenant) = self.whose {
            let mut by_tenant = lock(&self.of.used.tenants);
            if let Some(used) = by_tenant.get_mut(&tenant) {
                *used = used.saturating_sub(self.count);
            }
            by_tenant.retain(|_, used| *used > 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All descriptors that one tenant gets, if there are `tenants` tenants.
    fn all_of(descriptors: &Descriptors, tenant: u16, tenants: usize) -> Vec<Permit> {
        let ask = |_| descriptors.controller(TenantId(tenant), tenants, 1);
        (0..2_000).map_while(ask).collect()
    }

    #[test]
    fn a_tenant_with_many_controllers_leaves_descriptors_for_other_tenants() {
        const TENANTS: usize = 10;
        let descriptors = Descriptors::new(1024);
        let part = descriptors.0.controllers / 2 / TENANTS as u64;
        let greedy = all_of(&descriptors, 1, TENANTS);
        assert_eq!(greedy.len() as u64, descriptors.0.controllers - 9 * part);
        for tenant in 2..=10 {
            let parts = all_of(&descriptors, tenant, TENANTS);
            assert!(parts.len() as u64 >= part, "tenant {tenant}: {}", parts.len());
            assert_eq!(descriptors.used().1, (greedy.len() + parts.len()) as u64);
        }
        drop(greedy);
        assert!(lock(&descriptors.0.used.tenants).is_empty(), "nothing is kept of who has none");
        // A single tenant gets all descriptors for controllers.
        assert_eq!(all_of(&descriptors, 1, 1).len() as u64, descriptors.0.controllers);
    }

    #[test]
    fn controllers_leave_descriptors_for_switches_files_and_rest() {
        // The limit is 1,024 descriptors, as usual. 60 switches with 20 tenants each would need 1,200 descriptors for
        // controllers.
        let descriptors = Descriptors::new(1024);
        let switches: Vec<_> = (0..60).map_while(|_| descriptors.switch()).collect();
        let controllers: Vec<_> =
            (0..1200).map_while(|n| descriptors.controller(TenantId(n % 20), 20, 1)).collect();
        assert_eq!(switches.len(), 60);
        assert!((600..1000).contains(&controllers.len()), "{}", controllers.len());
        let more: Vec<_> = (0..100).map_while(|_| descriptors.switch()).collect();
        assert_eq!(more.len(), 100, "there is room for switches that come then");
        let all = (switches.len() + controllers.len() + more.len()) as u64;
        assert!(all + FILES + descriptors.api() as u64 <= 1024, "and for files and REST");
        assert_eq!(descriptors.used(), (160, controllers.len() as u64));
    }

    #[test]
    fn returned_and_refused_descriptors_are_not_counted() {
        let descriptors = Descriptors::new(64);
        let mut all: Vec<_> = (0..1000).map_while(|_| descriptors.switch()).collect();
        assert!(
            descriptors.switch().is_none() && descriptors.controller(TenantId(1), 1, 1).is_none()
        );
        let used = all.len() as u64;
        assert_eq!(descriptors.used(), (used, 0));
        drop(all.pop());
        all.extend(descriptors.switch());
        assert_eq!(descriptors.used(), (used, 0));
        drop(all);
        assert_eq!(descriptors.used(), (0, 0));
    }

    #[test]
    fn the_soft_limit_of_descriptors_is_raised_to_the_hard_limit() {
        let limit = raise();
        let now = getrlimit(Resource::Nofile);
        assert_eq!(now.current.unwrap_or(MOST).min(MOST), limit);
        assert_eq!(limit, now.maximum.unwrap_or(MOST).min(MOST));
    }

    /// REST gets an eighth of the limit, at most 256. Switches in the handshake get a quarter of the descriptors that
    /// REST and the files do not have.
    #[test]
    fn the_descriptors_are_divided_as_the_security_page_says() {
        for (limit, api, arriving) in [(1_024, 128, 208), (2_048, 256, 432), (65_536, 256, 16_304)]
        {
            let descriptors = Descriptors::new(limit);
            assert_eq!((descriptors.api(), descriptors.arriving()), (api, arriving), "{limit}");
        }
    }

    #[test]
    fn a_small_limit_of_descriptors_is_divided_as_well() {
        for limit in [0, 1, 16, 64, 256] {
            let descriptors = Descriptors::new(limit);
            let (openflow, api) = (descriptors.0.openflow, descriptors.0.api);
            assert!(openflow <= limit && descriptors.0.controllers <= openflow, "{limit}");
            assert!(api >= 8 && descriptors.arriving() >= 1);
        }
    }
}
