//! Step 10 of a round: the tenant gets the FLOW_REMOVEDs of its entries, and then the results of its requests.

use super::recovery::Back;
use crate::ids::TenantIndex;
use crate::south::reports::Removed;
use crate::switch::timeouts::states::{Ended, Leaving};
use crate::switch::{Switch, in_turn};
use crate::time::Instant;
use alloc::vec::Vec;

impl Switch {
    /// Reports the end of an entry. If its tenant is recovering, the tenant gets the report at the end of the replay.
    pub(crate) fn report_after(&mut self, tenant: TenantIndex, ended: Ended) {
        match self.tenants[tenant].recovery.as_deref_mut() {
            Some(recovery) => recovery.ended.add(ended),
            None => self.report_removed(tenant, &ended.flow, ended.reason, ended.stood),
        }
    }

    /// A replay removes an entry again that it has restored before: Weir waits for the entry's last counters as before.
    /// Returns whether this is so.
    pub(crate) fn leaves_again(&mut self, tenant: TenantIndex, number: u32) -> bool {
        let state = &mut self.tenants[tenant];
        let Some(recovery) = state.recovery.as_deref_mut() else { return false };
        match recovery.back.remove(&number) {
            Some(Back::Leaving(leaving)) => {
                state.timeouts.await_counts(number, leaving);
            }
            Some(Back::Ended(ended)) => recovery.ended.add(ended),
            None => return false,
        }
        true
    }

    /// The switch reports a rule that Weir has deleted. If the replay has restored the rule's entry meanwhile, the
    /// counters are kept for the case that the entry is removed again.
    pub(crate) fn rule_left_before(&mut self, tenant: TenantIndex, number: u32, removed: &Removed) {
        let Some(recovery) = self.tenants[tenant].recovery.as_deref_mut() else { return };
        let Some(Back::Leaving(leaving)) = recovery.back.get_mut(&number) else { return };
        if let Some(ended) = leaving.rule_left(number, removed) {
            recovery.back.insert(number, Back::Ended(ended));
        }
    }

    /// Reports ends of entries. Returns whether all ends are reported.
    pub(super) fn report_ends(&mut self, tenant: TenantIndex, left: &mut usize) -> bool {
        while *left > 0 {
            *left -= 1;
            let state = &mut self.tenants[tenant];
            let Some(recovery) = state.recovery.as_deref_mut() else { return true };
            if let Some((number, back)) = recovery.back.pop_first() {
                // The counters of its removed rules.
                let (Back::Leaving(Leaving { flow: gone, .. })
                | Back::Ended(Ended { flow: gone, .. })) = back;
                if let Some(flow) = state.flows.get_mut(number) {
                    flow.past.packets = flow.past.packets.max(gone.past.packets);
                    flow.past.bytes = flow.past.bytes.max(gone.past.bytes);
                }
            } else if let Some(Ended { flow, reason, stood, .. }) = recovery.ended.pop_first() {
                self.report_removed(tenant, &flow, reason, stood);
            } else {
                return true;
            }
        }
        false
    }

    /// Tables and switch agree, and the tenant has got the ends of its entries.
    pub(super) fn recovered(&mut self, tenant: TenantIndex, now: Instant) {
        let Some(recovery) = self.tenants.recovered(tenant) else { return };
        self.tenants[tenant].backlog.note_decided();
        self.release_cut(tenant, now);
        self.session.queues_mut().unpause(tenant);
        self.retire(tenant, now);
        if recovery.findings.is_due {
            // The finding came while the ends were reported.
            let next = self.recover(tenant, now);
            (next.findings, next.keys) = (recovery.findings, recovery.keys);
        }
        self.resume(tenant);
        self.follow(now);
    }

    /// Releases buffered packets of messages that were removed from the queue: the packets go through the present
    /// tables.
    fn release_cut(&mut self, tenant: TenantIndex, now: Instant) {
        let changes: Vec<u32> = self.changes_in_flight(tenant).collect();
        for at in changes {
            let cut = self.change_mut(at).filter(|it| it.is_cut && it.is_applied());
            let Some(buffered) = cut.and_then(|it| it.buffered.take()) else { continue };
            let cause = in_turn(tenant, now);
            self.release_through_table(&cause, &buffered);
        }
    }
}
