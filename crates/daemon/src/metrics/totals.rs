//! The counters of a tenant over all switches, including disconnected ones, so that sums over switches only grow.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::contacts::ContactCounts;
use super::instruments::Snapshot;
use super::kinds::{Direction, DropReason};

use crate::lock::lock;

/// The totals of all tenants, by name.
#[derive(Debug, Default)]
pub struct Totals(Mutex<BTreeMap<String, Arc<TenantTotals>>>);

impl Totals {
    /// The totals of a tenant, which begin with zero.
    pub fn tenant(&self, name: &str) -> Arc<TenantTotals> {
        let mut tenants = lock(&self.0);
        Arc::clone(tenants.entry(name.to_owned()).or_default())
    }

    /// Forgets tenants that are not configured any more.
    pub fn keep(&self, is_configured: impl Fn(&str) -> bool) {
        let mut tenants = lock(&self.0);
        tenants.retain(|name, _| is_configured(name));
    }

    /// The totals of all tenants, by name.
    pub(super) fn all(&self) -> BTreeMap<String, Arc<TenantTotals>> {
        lock(&self.0).clone()
    }
}

/// The totals of one tenant.
#[derive(Debug, Default)]
pub struct TenantTotals {
    /// The connections to the tenant's controllers.
    pub contacts: ContactCounts,
    past: Mutex<Sums>,
}

impl TenantTotals {
    /// The tenant's counts on disconnected switches.
    pub(super) fn past(&self) -> Sums {
        lock(&self.past).clone()
    }

    /// Adds counts to those of disconnected switches.
    pub(super) fn add(&self, counts: impl FnOnce(&mut Sums)) {
        counts(&mut lock(&self.past));
    }
}

/// Counts of one tenant on several switches, added up.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    /// Messages by direction and type.
    pub(super) messages: BTreeMap<(usize, &'static str), u64>,
    /// Messages that waited when the connection of a switch ended, by type.
    pub(super) lost: BTreeMap<&'static str, u64>,
    /// Refused requests by error.
    pub(super) refused: BTreeMap<String, u64>,
    /// Dropped PACKET_INs by reason.
    pub(super) dropped: [u64; DropReason::ALL.len()],
    /// Work inside Weir, in examined entries.
    pub(super) examined: u64,
    /// Added latency, south and north.
    pub(super) added: [Option<Snapshot>; 2],
}

impl Sums {
    /// Messages of one direction, by the name of their type.
    pub fn messages(&self, direction: Direction) -> BTreeMap<&'static str, u64> {
        let of = |(&(at, name), &count): (&(usize, &'static str), &u64)| {
            (at == direction as usize).then_some((name, count))
        };
        self.messages.iter().filter_map(of).collect()
    }

    /// Requests that were answered with an ERROR, by its name.
    pub fn refused(&self) -> &BTreeMap<String, u64> {
        &self.refused
    }

    /// PACKET_INs that did not reach the tenant, by reason.
    pub fn dropped(&self) -> BTreeMap<&'static str, u64> {
        let all = DropReason::ALL.into_iter().map(|(_, reason)| reason).zip(self.dropped);
        all.filter(|(_, count)| *count > 0).collect()
    }

    /// The added latency towards switches, and towards controllers; `None` for a tenant that was on no switch.
    pub fn added(&self) -> &[Option<Snapshot>; 2] {
        &self.added
    }
}
