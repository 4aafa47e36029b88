//! Entries for which nothing stands on the switch: their link has no way, or no packet that they match can come. Nobody but the
//! hypervisor keeps their time.
//!
//! Such an entry has no packets. Its hard timeout goes on as it did; it is idle from the moment from which nothing stands for it,
//! and after a restart from then on.

pub(super) mod entries;

use super::Switch;
use crate::ids::TenantIndex;
use crate::south::session::QUIET;
use crate::time::Instant;
use hashbrown::HashSet;

impl Switch {
    /// Entries of which a change is on its way.
    fn changing(&self) -> HashSet<(TenantIndex, u32)> {
        let tenants = (0..self.tenants.len()).map(|at| TenantIndex(at as u32));
        let changes =
            tenants.flat_map(|tenant| self.changes_of(tenant).map(move |it| (tenant, it)));
        let changed =
            changes.flat_map(|(tenant, it)| it.before.iter().map(move |it| (tenant, it.0)));
        changed.collect()
    }

    /// Ends those whose time is over.
    pub(super) fn end_uninstalled(&mut self, now: Instant) {
        if self.tenants.next_over().is_none_or(|at| at > now) {
            return;
        }
        // There can be thousands whose time is over, and a change can be of thousands.
        let changing = self.changing();
        while let Some((tenant, number, timeout)) = self.tenants.first_over(now) {
            match timeout {
                // Should the change go back, the entry would come back with it.
                Some(_) if changing.contains(&(tenant, number)) => {
                    self.tenants.look_again(tenant, number, now + QUIET);
                }
                Some(timeout) => self.end_timed_out(tenant, number, timeout, now),
                None => self.tenants.forget_time(tenant, number),
            }
        }
    }
}
