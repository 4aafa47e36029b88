//! The waiting requests of all tenants, the reasons to wait, and the tenant whose turn it is.

use crate::ids::{ControllerIndex, TenantIndex};
use crate::work::Turns;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// The waiting requests of all tenants, the reasons to wait, and the tenant whose turn it is.
#[derive(Default)]
pub(crate) struct Inbox {
    /// The waiting requests, by tenant.
    pub(super) lines: BTreeMap<TenantIndex, Line>,
    /// Tenants with requests that wait for the outcome of changes.
    waiting: BTreeSet<TenantIndex>,
    /// Whether a barrier is in flight that shows the outcome.
    is_barrier_sent: bool,
    /// The tenants whose requests Weir may look at.
    turns: Turns,
}

/// The waiting requests of one tenant, in the order in which they came.
#[derive(Default)]
pub(super) struct Line {
    requests: Vec<Postponed>,
    /// The controllers that have sent these requests.
    pub(super) controllers: BTreeSet<ControllerIndex>,
}

/// A waiting request of a controller.
pub(super) struct Postponed {
    pub(super) controller: ControllerIndex,
    pub(super) frame: Vec<u8>,
}

impl Inbox {
    /// The tenants whose requests Weir may look at.
    #[inline]
    pub(crate) fn turns(&self) -> &Turns {
        &self.turns
    }

    /// See [`turns`](Self::turns).
    #[inline]
    pub(crate) fn turns_mut(&mut self) -> &mut Turns {
        &mut self.turns
    }

    // ---- Outcomes of changes

    /// A request waits for the outcome of the tenant's changes.
    pub(crate) fn wait_for_outcome(&mut self, tenant: TenantIndex) {
        self.waiting.insert(tenant);
    }

    /// Whether a tenant waits for an outcome by this list, but none of its requests waits.
    pub(crate) fn waits_for_nothing(&self, tenant: TenantIndex) -> bool {
        self.waiting.contains(&tenant) && !self.lines.contains_key(&tenant)
    }

    /// The outcome of the tenant's changes is known.
    pub(crate) fn outcome_known(&mut self, tenant: TenantIndex) {
        self.waiting.remove(&tenant);
    }

    /// Whether a barrier has to be sent that shows the outcome of changes.
    pub(crate) fn wants_barrier(&self) -> bool {
        !self.is_barrier_sent && !self.waiting.is_empty()
    }

    /// A barrier is in flight that shows the outcome of changes.
    pub(crate) fn barrier_sent(&mut self) {
        self.is_barrier_sent = true;
    }

    /// The switch has answered the barrier, or will not answer.
    pub(crate) fn barrier_returned(&mut self) {
        self.is_barrier_sent = false;
    }

    // ---- Requests that wait

    pub(super) fn put_off(&mut self, tenant: TenantIndex, it: Postponed) {
        let line = self.lines.entry(tenant).or_default();
        line.controllers.insert(it.controller);
        line.requests.push(it);
    }

    /// The waiting requests of a tenant.
    pub(crate) fn waiting(&self, tenant: TenantIndex) -> impl Iterator<Item = &[u8]> {
        let line = self.lines.get(&tenant);
        line.into_iter().flat_map(|line| &line.requests).map(|it| it.frame.as_slice())
    }

    pub(super) fn take_line(&mut self, tenant: TenantIndex) -> Vec<Postponed> {
        self.lines.remove(&tenant).unwrap_or_default().requests
    }

    /// Tenants with waiting requests at which Weir may look now.
    pub(super) fn served(&self) -> impl Iterator<Item = TenantIndex> {
        self.lines.keys().copied().filter(|tenant| self.turns.may(tenant.0))
    }

    /// Whether so many requests of a controller wait that Weir reads no more.
    pub(super) fn is_full(
        &self,
        tenant: TenantIndex,
        controller: ControllerIndex,
        limit: usize,
    ) -> bool {
        self.lines.get(&tenant).is_some_and(|line| {
            let of_controller = line.requests.iter().filter(|it| it.controller == controller);
            line.requests.len() >= limit && of_controller.count() >= limit
        })
    }
}

impl Postponed {
    pub(super) fn size(&self) -> usize {
        size_of::<Postponed>() + self.frame.len()
    }
}
