//! A tenant rests: Weir does not read from the tenant's controllers for a while. A tenant rests after more changes than
//! `state_changes` allows, and after many refused requests.
//!
//! A refused request costs Weir about as much as an accepted one, but the switch does not bound the rate of refusals: a
//! controller that adds entries to a full table without end would keep an event loop busy.

use super::Switch;
use crate::ids::TenantIndex;
use crate::policy::Rate;
use crate::time::{Duration, Instant};

/// Refused requests of one tenant on all switches together.
const REFUSALS: Rate = Rate { per_second: 2_000, burst: 10_000 };
/// The shortest rest after refusals. Each rest costs a turn of the event loop.
const SHORTEST: Duration = Duration::from_millis(10);

impl Switch {
    /// Charges the tenant for a request that Weir refuses.
    pub(super) fn charge_refusal(&mut self, tenant: TenantIndex, now: Instant) {
        let until = self.tenants[tenant].backlog.held().account().charge_refusal(REFUSALS, now);
        self.rest(tenant, until.map(|until| until.max(now + SHORTEST)));
    }

    /// The tenant rests until this time, if any.
    pub(super) fn rest(&mut self, tenant: TenantIndex, until: Option<Instant>) {
        if let Some(until) = until {
            self.tenants[tenant].backlog.rest(until);
            // One rest at a time: if the rest becomes longer, the end of the shorter rest shows it.
            self.session.queues_mut().rest_until(tenant, until);
        }
    }

    /// Lets the driver read from a tenant again, if the tenant's rest is over.
    pub(super) fn end_rest(&mut self, tenant: TenantIndex, now: Instant) {
        match self.tenants[tenant].backlog.rests() {
            Some(until) if until > now => self.session.queues_mut().rest_until(tenant, until),
            Some(_) => {
                self.tenants[tenant].backlog.end_rest();
                self.resume(tenant);
            }
            None => {}
        }
    }
}
