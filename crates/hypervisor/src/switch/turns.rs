//! The work inside Weir for a tenant's requests: the charge for the work, and the turns of tenants.
//!
//! [`crate::work`] has the unit of work and the line of tenants. Two things are bounded: the work of one turn of the
//! event loop, and the work that the switch has not confirmed. Requests beyond these bounds stay unread in the tenant's
//! connection, or wait with the [postponed](super::postponed) requests.

use super::{Request, Settings, Switch};
use crate::ids::TenantIndex;
use crate::messages;
use crate::time::Instant;
use crate::work::{CHANGE, Examines, LARGE, MESSAGE, PLAN};
use alloc::vec;
use openflow::v13::MessageType;

impl Switch {
    /// Step 4: one turn of the event loop. The first of the tenants that have used up their credit, or that wait with a
    /// large request, gets its share: a batch of a change or of a replay, or the next requests. If the policy has
    /// changed, a batch of entries follows. Returns whether further turns are needed; then the driver must not sleep
    /// before the next turn.
    pub fn next_turn(&mut self, now: Instant) -> bool {
        if self.datapath.is_reconciling() {
            self.continue_to_reconcile(now);
            self.run(now);
        }
        if let Some(tenant) = self.inbox.turns_mut().next().map(TenantIndex) {
            self.continue_replay(tenant, now);
            self.continue_bulk(tenant, now);
            self.answer_in_turn(tenant);
            if self.tenants[tenant].backlog.is_decided() && !self.is_between(tenant) {
                self.take_up_line(tenant, now);
            }
            self.inbox.turns_mut().end();
            self.await_answers(tenant);
            self.resume(tenant);
            self.run(now);
            self.drain(now);
        }
        if self.map.is_changing() {
            self.continue_following(now);
            self.take_over(now);
            self.take_up_postponed(now);
            self.run(now);
            self.drain(now);
        }
        self.is_turn_awaited()
    }

    /// Steps 4 and 5: whether a tenant waits for its turn, or entries have to follow a changed policy, or the
    /// reconciliation goes on.
    pub fn is_turn_awaited(&self) -> bool {
        self.inbox.turns().is_awaited() || self.map.is_stale() || self.datapath.is_reconciling()
    }

    /// Calls `act` for as many items as this turn has room for. Returns whether no item is left.
    pub(super) fn each<T>(
        &mut self,
        all: &mut vec::IntoIter<T>,
        left: &mut usize,
        mut act: impl FnMut(&mut Switch, T),
    ) -> bool {
        for one in all.by_ref().take(*left) {
            act(self, one);
            *left -= 1;
        }
        all.len() == 0
    }

    /// Charges a tenant for the work since the last charge.
    #[inline]
    pub(super) fn charge_work(&mut self, tenant: TenantIndex) {
        let state = &mut self.tenants[tenant];
        let total = state.flows.meter().total();
        let examined = total.wrapping_sub(state.counters.examined);
        state.counters.examined = total;
        self.inbox.turns_mut().charge(tenant.0, examined);
    }

    /// Whether a request has to wait for its tenant's turn, since it may be a lot of work.
    pub(super) fn waits_for_turn(&self, request: &Request<'_>) -> bool {
        !self.inbox.turns().is_on_turn(request.tenant.0) && self.estimate(request) >= LARGE
    }

    /// The greatest work of a request, roughly; 0 for a request that does not concern a whole table.
    fn estimate(&self, request: &Request<'_>) -> u64 {
        let state = &self.tenants[request.tenant];
        let all = state.flows.len() as u64;
        let every = PLAN + 3 * CHANGE + MESSAGE;
        if all * every < LARGE {
            return 0;
        }
        let enough = (LARGE / every) as usize + 1;
        let per_entry = match self.examines(request) {
            Examines::Every => every,
            Examines::WithCookie(cookie) => {
                return state.flows.with_cookie(cookie).take(enough).count() as u64 * every;
            }
            Examines::WithOutput(port) => {
                return state.flows.with_output(port).take(enough).count() as u64 * every;
            }
            Examines::Glance => 1,
            Examines::Nothing => 0,
        };
        all * per_entry
    }

    /// What Weir examines to carry out a request.
    fn examines(&self, request: &Request<'_>) -> Examines {
        let (wire, body) = (self.wire, request.body());
        match messages::type_in_v13(wire, request.header.type_) {
            MessageType::FLOW_MOD if messages::examines_others(wire, body) => {
                let kept = self.metadata_kept(request.tenant);
                // Weir will refuse a FLOW_MOD that it cannot read.
                let flow_mod = messages::read_flow_mod(wire, body, kept);
                flow_mod.map_or(Examines::Nothing, |it| it.examines())
            }
            // Weir examines all entries for those that name the group or the meter.
            MessageType::GROUP_MOD | MessageType::METER_MOD => Examines::Every,
            _ => Examines::Nothing,
        }
    }

    /// Counts more work for a change in flight; with `holds_more`, also the bytes that the change holds now.
    pub(super) fn count_ahead(
        &mut self,
        tenant: TenantIndex,
        change: u32,
        examined: u64,
        holds_more: bool,
    ) {
        if let Some(operation) = self.operations.get_mut(&change) {
            let before = operation.held;
            if holds_more {
                operation.held = operation.size();
            }
            operation.work += examined;
            let backlog = &mut self.tenants[tenant].backlog;
            backlog.grow_change(examined, before, operation.held);
        }
    }
}

/// The most waiting messages of a tenant's changes. Beyond this limit Weir does not read from the tenant. If the switch
/// refuses a message, the work for later messages that were not sent was useless.
const UNSENT_CHANGES: usize = 32;

impl Switch {
    /// Whether a tenant has so many accepted requests that Weir reads no more.
    pub(super) fn has_too_much(&self, tenant: TenantIndex) -> bool {
        let Settings { tenant_backlog, tenant_work, tenant_bytes, .. } = self.settings;
        self.operations.has_bulk(tenant)
            || self.backlog(tenant) >= tenant_backlog
            || self.session.queues().of(tenant).changes() >= UNSENT_CHANGES
            || self.tenants[tenant].backlog.ahead() >= tenant_work
            || self.bytes_held(tenant) >= tenant_bytes
            || !self.tenants[tenant].backlog.held().leaves_room(self.settings.tenant_bytes_in_all)
    }

    /// Whether half of these requests are done, so that Weir reads again.
    pub(super) fn is_half_empty(&self, tenant: TenantIndex) -> bool {
        let Settings { tenant_backlog, tenant_work, tenant_bytes, .. } = self.settings;
        !self.operations.has_bulk(tenant)
            && self.backlog(tenant) <= tenant_backlog / 2
            && self.session.queues().of(tenant).changes() <= UNSENT_CHANGES / 2
            && self.tenants[tenant].backlog.ahead() <= tenant_work / 2
            && self.bytes_held(tenant) <= tenant_bytes / 2
            && self.tenants[tenant].backlog.held().leaves_room(self.settings.tenant_bytes_in_all)
    }

    /// Bytes held for a tenant's requests that are not finished.
    pub(super) fn bytes_held(&self, tenant: TenantIndex) -> usize {
        self.tenants[tenant].backlog.held().bytes() + self.session.queues().of(tenant).bytes()
    }

    /// Accepted requests and messages that are not done.
    fn backlog(&self, tenant: TenantIndex) -> usize {
        self.session.queues().of(tenant).len() + self.tenants[tenant].backlog.unanswered()
    }
}
