//! Requests that are compared with many entries, in batches: MODIFY, DELETE, and ADD with CHECK_OVERLAP.
//!
//! A request may change a whole table. One turn of the event loop changes a batch of the entries; then come other
//! tenants. The next batch follows in the tenant's next turn, and not before the messages of earlier batches have left
//! the queue. Until the last batch all further requests of the tenant wait, so no request sees a part of the change. A
//! request that adds an entry if it means none adds this entry behind the last batch.
//!
//! If Weir refuses an entry of a later batch, the [replay](super::replay) undoes the whole change, as after a refusal
//! by the switch. A replay applies a change in batches, too, and continues these batches itself. A change that is
//! refused before it has changed an entry needs no replay.

pub(super) mod change;

use super::logged::Outcome;
use super::{Cause, Switch};
use crate::buffers::Buffered;
use crate::flows::{Alike, Flow, Rule};
use crate::ids::TenantIndex;
use crate::messages;
use crate::south::diff::Change;
use crate::tally::Count;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::vec::Vec;
use change::{BulkAction, BulkChange, Meant};
use compile::{Reason, Refused};
use flowspace::MiniWords;
use openflow::Header;

/// In one batch, this many times as many entries are compared with a request as entries are changed.
pub(super) const CANDIDATES: usize = 8;

impl Switch {
    /// Applies an action to those of these entries that the request means, at least in a first batch.
    pub(crate) fn change_entries(
        &mut self,
        cause: &Cause,
        action: BulkAction,
        meant: Meant,
        candidates: Vec<u32>,
        buffered: &mut Option<Buffered>,
    ) -> Result<(), Refused> {
        let mut bulk = BulkChange {
            cause: *cause,
            action,
            meant: Box::new(meant),
            candidates: candidates.into_iter(),
            alike: Alike::default(),
            buffered: *buffered,
        };
        if let Some(change) = self.change_by(cause)
            && !matches!(bulk.action, BulkAction::Refuse)
        {
            change.before.reserve_exact(bulk.candidates.len());
        }
        self.change_batch(&mut bulk)?;
        *buffered = None;
        if bulk.is_done() {
            return Ok(());
        }
        if self.is_replay() {
            if let Some(recovery) = self.tenants[cause.tenant].recovery.as_deref_mut() {
                recovery.set_batches(bulk);
            }
            return Ok(());
        }
        if let Some(operation) = cause.operation.and_then(|at| self.operations.get_mut(&at)) {
            // Counts as a message in flight, so that the operation does not end before the last batch.
            operation.remaining += 1;
        }
        self.operations.set_bulk(cause.tenant, bulk);
        self.inbox.turns_mut().wait(cause.tenant.0);
        Ok(())
    }

    pub(super) fn change_batch(&mut self, bulk: &mut BulkChange) -> Result<(), Refused> {
        let batch = self.next_batch(bulk);
        if !batch.is_empty() {
            bulk.meant.adds = None;
            match &bulk.action {
                BulkAction::Modify { .. } => self.modify_batch(bulk, &batch)?,
                BulkAction::Delete => self.delete_batch(&bulk.cause, &batch),
                BulkAction::Refuse => return Err(self.codes().overlap.into()),
            }
        }
        match bulk.is_done() {
            true => self.end_bulk(bulk),
            false => Ok(()),
        }
    }

    /// The next entries that the request means. A batch of candidates is larger than a batch of changes.
    fn next_batch(&self, bulk: &mut BulkChange) -> Vec<u32> {
        let Meant { wanted, strictly, .. } = &*bulk.meant;
        let (wire, words) = (self.wire, MiniWords::of(&wanted.match_));
        let is_meant = |flow: &Flow| match bulk.action {
            BulkAction::Modify { .. } | BulkAction::Delete => {
                wanted.covers(flow, &words, *strictly)
                    && messages::sends_to(wire, &flow.actions, wanted)
            }
            BulkAction::Refuse => strictly.is_some_and(|priority| {
                flow.overlaps(&wanted.match_, priority) && !flow.is_covered(&words, *strictly)
            }),
        };
        let most = match bulk.action {
            BulkAction::Refuse => 1,
            _ => self.settings.batch,
        };
        let flows = &self.tenants[bulk.cause.tenant].flows;
        let candidates = bulk.candidates.by_ref().take(CANDIDATES * self.settings.batch);
        let candidates = candidates.inspect(|_| flows.meter().add(1));
        let meant = candidates.filter(|number| flows.get(*number).is_some_and(is_meant));
        meant.take(most).collect()
    }

    /// Either all entries of the batch are changed, or none of them.
    fn modify_batch(&mut self, bulk: &mut BulkChange, batch: &[u32]) -> Result<(), Refused> {
        let BulkAction::Modify { actions, cookie, at_once } = &mut bulk.action else {
            return Ok(());
        };
        let cause = bulk.cause;
        let (wire, tenant) = (self.wire, cause.tenant);
        let flows = &self.tenants[tenant].flows;
        let left = self.rules_left(tenant, flows.tables_of(batch));
        let mut room = flows.room_for(batch.iter().copied(), left, *at_once);
        let room_before = room.left();
        let asked = cause.operation.and_then(|at| self.change(at));
        let resets_counts = asked.is_some_and(|it| it.resets_counts);
        let mut changed = Vec::with_capacity(batch.len());
        for &number in batch {
            let Some(before) = self.tenants[tenant].flows.get(number) else { continue };
            let mut flow = before.with_actions(actions);
            flow.cookie = cookie.unwrap_or(flow.cookie);
            if resets_counts {
                flow.past = Count::default();
            }
            flow.rules = self.plan_like(cause.tenant, &flow, Some(before))?;
            flow.share_with_rules();
            bulk.alike.share(&mut flow.rules);
            if !room.take(&flow, &flow.rules) {
                return Err(self.no_room(cause.tenant, flow.table, &room));
            }
            changed.push((number, flow));
        }
        *at_once = at_once.saturating_sub(room_before - room.left());
        if self.tenants[tenant].flows.any_collides(&changed) {
            return Err(Reason::SameRule.with(self.codes().overlap));
        }
        for (number, flow) in changed {
            let flows = &self.tenants[tenant].flows;
            let (before, flow) = (flows.get(number).cloned(), flows.placed(number, flow));
            self.put_flow(&cause, number, flow.clone());
            let buffer_for = |rule: &Rule| messages::buffer_for(wire, rule, &mut bulk.buffered);
            let change = Change::Modify;
            self.submit_rules(&cause, number, before.as_ref(), &flow, change, buffer_for);
            if resets_counts {
                self.reset_counters(&cause, number);
            }
        }
        Ok(())
    }

    fn delete_batch(&mut self, cause: &Cause, batch: &[u32]) {
        for &number in batch {
            let Some(flow) = self.take_flow(cause, number) else { continue };
            self.delete_rules(cause, number, &flow);
            self.await_removal(cause, number, flow);
        }
    }

    /// All entries are changed, or the request means no entry. A packet that no entry has taken goes through the
    /// tables.
    fn end_bulk(&mut self, bulk: &mut BulkChange) -> Result<(), Refused> {
        if let Some(flow) = bulk.meant.adds.take() {
            self.add_entry(&bulk.cause, flow, &mut bulk.buffered)?;
        }
        if let Some(left) = &bulk.buffered {
            self.release_through_table(&bulk.cause, left);
        }
        Ok(())
    }

    /// Changes the next batch, if the messages of earlier batches have left.
    pub(super) fn continue_bulk(&mut self, tenant: TenantIndex, now: Instant) {
        if !self.may_continue_bulk(tenant) {
            return;
        }
        let Some(mut bulk) = self.operations.take_bulk(tenant) else { return };
        let Some(operation) = bulk.cause.operation else { return };
        bulk.cause.now = now;
        let examined = self.tenants[tenant].flows.meter().total();
        let written = self.journal.gate();
        let changed = self.change_batch(&mut bulk);
        let examined = self.tenants[tenant].flows.meter().total().wrapping_sub(examined);
        self.count_ahead(tenant, operation, examined, bulk.is_done());
        self.charge_store(tenant, self.journal.gate() - written, now);
        match changed {
            Ok(()) if !bulk.is_done() => {
                self.operations.set_bulk(tenant, bulk);
                if self.may_continue_bulk(tenant) {
                    self.inbox.turns_mut().wait(tenant.0);
                }
            }
            Err(_) if self.change(operation).is_some_and(|it| !it.before.is_empty()) => {
                self.operations.set_bulk(tenant, bulk);
                self.recover(tenant, now);
            }
            changed => {
                if let (Err(refused), Some(change)) = (changed, self.change_mut(operation)) {
                    change.outcome = Outcome::Refused(refused.into());
                    self.keep_buffered(tenant, operation, bulk.buffered);
                    self.inbox.wait_for_outcome(tenant);
                    self.ask_for_waiting(now);
                }
                self.release_bulk(operation);
                if self.operations.get(&operation).is_some_and(|it| it.remaining == 0) {
                    self.operation_done(operation, now);
                }
                self.tenants[tenant].backlog.note_decided();
                self.take_over(now);
            }
        }
        self.charge_work(tenant);
    }

    /// Whether a tenant has a change whose next batch may follow.
    pub(super) fn may_continue_bulk(&self, tenant: TenantIndex) -> bool {
        self.operations.has_bulk(tenant)
            && self.session.queues().of(tenant).changes() <= self.settings.batch
    }

    /// A change is refused before a message was sent: the tenant may use the buffer id of the packet again.
    fn keep_buffered(&mut self, tenant: TenantIndex, change: u32, buffered: Option<Buffered>) {
        let (wire, kept) = (self.wire, self.metadata_kept(tenant));
        let (Some(buffered), Some(change)) = (buffered, self.change_mut(change)) else { return };
        change.buffered = None;
        let body = change.frame.get(Header::LEN..).unwrap_or_default();
        let number = messages::read_flow_mod(wire, body, kept).map(|it| it.buffer_id);
        number.into_iter().for_each(|it| self.tenants.give_buffered_back(tenant, it, buffered));
    }

    /// No batch of the tenant's change will follow: a replay applies the change again. Says whether there was such a
    /// change.
    pub(super) fn drop_bulk(&mut self, tenant: TenantIndex) -> bool {
        let Some(bulk) = self.operations.take_bulk(tenant) else { return false };
        bulk.cause.operation.into_iter().for_each(|it| self.release_bulk(it));
        true
    }

    fn release_bulk(&mut self, operation: u32) {
        if let Some(operation) = self.operations.get_mut(&operation) {
            operation.remaining = operation.remaining.saturating_sub(1);
        }
    }
}
