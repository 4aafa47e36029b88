//! The work inside Weir that a tenant's requests make: how it is charged, and when they are looked at.
//!
//! [`crate::work`] has the unit and the line. Two things are bounded: the work of one turn of the event loop, and what is
//! taken ahead of what the switch has confirmed. What is beyond these bounds stays unread in the tenant's connection, or
//! waits with the [postponed](super::postponed).

use super::{Request, Settings, Switch};
use crate::ids::TenantIndex;
use crate::policy::Statistics;
use crate::time::Instant;
use crate::work::{CHANGE, LARGE, MESSAGE, PLAN, TELL};
use openflow::{Version, v10, v13};

impl Switch {
    /// A turn of the event loop: the first of the tenants that have used up their credit, or that wait with a large request,
    /// gets its share. Says whether any still waits; then this is to be called in the next turn, too, which is not to be
    /// put off.
    pub fn next_turn(&mut self, now: Instant) -> bool {
        if let Some(tenant) = self.inbox.next_turn() {
            self.continue_bulk(tenant, now);
            self.answer_in_turn(tenant);
            if self.tenants[tenant.0 as usize].backlog.is_decided() && !self.has_bulk(tenant) {
                self.take_up_line(tenant, now);
            }
            self.inbox.end_turn();
            self.resume(tenant);
            self.run(now);
            self.drain(now);
        }
        self.is_turn_awaited()
    }

    /// Whether a tenant waits for its turn.
    pub fn is_turn_awaited(&self) -> bool {
        self.inbox.is_turn_awaited()
    }

    /// Charges a tenant for what has been done for it.
    #[inline]
    pub(super) fn charge_work(&mut self, tenant: TenantIndex) {
        let state = &mut self.tenants[tenant.0 as usize];
        let total = state.flows.meter().total();
        let examined = total.wrapping_sub(state.counters.examined);
        state.counters.examined = total;
        self.inbox.charge(tenant, examined);
    }

    /// Whether a request has to wait for its tenant's turn, since it may be a lot of work.
    pub(super) fn waits_for_turn(&self, request: &Request<'_>) -> bool {
        !self.inbox.is_on_turn(request.tenant) && self.estimate(request) >= LARGE
    }

    /// What a request may cost at most, roughly; 0 for one that is not about the whole of a table.
    fn estimate(&self, request: &Request<'_>) -> u64 {
        let state = &self.tenants[request.tenant.0 as usize];
        let all = state.flows.len() as u64;
        let is_cached = state.terms.statistics() != Statistics::Passthrough;
        let tells_flows = |body: &[u8]| TELLING_FLOWS.iter().any(|it| body.starts_with(it));
        let from_cache = |body| u64::from(is_cached && tells_flows(body)) * TELL;
        let every = PLAN + 3 * CHANGE + MESSAGE;
        if all * every < LARGE {
            return 0;
        }
        let per_entry = match (self.version, request.header.type_) {
            (Version::V1_0, FLOW_MOD) => match v10::FlowMod::parse(request.body()) {
                Ok(flow_mod) => match flow_mod.command {
                    v10::FlowModCommand::MODIFY | v10::FlowModCommand::DELETE => every,
                    _ => u64::from(flow_mod.flags.contains(v10::FlowModFlags::CHECK_OVERLAP)),
                },
                Err(_) => 0,
            },
            (_, FLOW_MOD) => match v13::FlowMod::parse(request.body()) {
                Ok(flow_mod) => match flow_mod.command {
                    v13::FlowModCommand::MODIFY | v13::FlowModCommand::DELETE
                        if flow_mod.cookie_mask == u64::MAX =>
                    {
                        let enough = (LARGE / every) as usize + 1;
                        return state.flows.with_cookie(flow_mod.cookie).take(enough).count()
                            as u64
                            * every;
                    }
                    v13::FlowModCommand::MODIFY | v13::FlowModCommand::DELETE => every,
                    _ => u64::from(flow_mod.flags.contains(v13::FlowModFlags::CHECK_OVERLAP)),
                },
                Err(_) => 0,
            },
            (Version::V1_0, STATS_REQUEST) => from_cache(request.body()),
            (Version::V1_0, _) => 0,
            (_, GROUP_MOD | METER_MOD) => every,
            (_, MULTIPART_REQUEST) if request.body().starts_with(&TABLE_STATISTICS) => 1,
            (_, MULTIPART_REQUEST) => from_cache(request.body()),
            _ => 0,
        };
        all * per_entry
    }

    /// Counts the change that a request has brought on its way, and what the change holds.
    pub(super) fn count_ahead(&mut self, tenant: TenantIndex, change: u32, examined: u64) {
        if let Some(operation) = self.operations.get_mut(&change) {
            (operation.work, operation.held) = (examined, operation.size());
            let state = &mut self.tenants[tenant.0 as usize];
            state.backlog.begin_change(operation.work, operation.held);
        }
    }

    /// Counts more work for a change on its way; with `holds_more`, also what the change holds by now.
    pub(super) fn count_more_ahead(
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
            let backlog = &mut self.tenants[tenant.0 as usize].backlog;
            backlog.grow_change(examined, before, operation.held);
        }
    }
}

/// Messages of a tenant's changes that may wait for the switch before no more is read. What is applied to the tables and has not
/// been sent is work for nothing if the switch refuses something before it.
const UNSENT_CHANGES: usize = 32;
const FLOW_MOD: u8 = v13::MessageType::FLOW_MOD.0;
const GROUP_MOD: u8 = v13::MessageType::GROUP_MOD.0;
const METER_MOD: u8 = v13::MessageType::METER_MOD.0;
const MULTIPART_REQUEST: u8 = v13::MessageType::MULTIPART_REQUEST.0;
const STATS_REQUEST: u8 = v10::MessageType::STATS_REQUEST.0;
/// The types of requests for flow and aggregate statistics, in both versions.
const TELLING_FLOWS: [[u8; 2]; 2] = [[0, 1], [0, 2]];
const TABLE_STATISTICS: [u8; 2] = v13::MultipartType::TABLE.0.to_be_bytes();

impl Switch {
    /// Whether so much of a tenant's requests is taken and not finished that no more are read.
    pub(super) fn has_too_much(&self, tenant: TenantIndex) -> bool {
        let Settings { tenant_backlog, tenant_work, tenant_bytes, .. } = self.settings;
        self.has_bulk(tenant)
            || self.backlog(tenant) >= tenant_backlog
            || self.session.queue(tenant).changes() >= UNSENT_CHANGES
            || self.tenants[tenant.0 as usize].backlog.ahead() >= tenant_work
            || self.bytes_held(tenant) >= tenant_bytes
            || !self.tenants[tenant.0 as usize]
                .backlog
                .leaves_room(self.settings.tenant_bytes_in_all)
    }

    /// Whether so much of that has been finished that reading goes on.
    pub(super) fn is_half_empty(&self, tenant: TenantIndex) -> bool {
        let Settings { tenant_backlog, tenant_work, tenant_bytes, .. } = self.settings;
        !self.has_bulk(tenant)
            && self.backlog(tenant) <= tenant_backlog / 2
            && self.session.queue(tenant).changes() <= UNSENT_CHANGES / 2
            && self.tenants[tenant.0 as usize].backlog.ahead() <= tenant_work / 2
            && self.bytes_held(tenant) <= tenant_bytes / 2
            && self.tenants[tenant.0 as usize]
                .backlog
                .leaves_room(self.settings.tenant_bytes_in_all)
    }

    /// Bytes held for a tenant's requests that are not finished.
    pub(super) fn bytes_held(&self, tenant: TenantIndex) -> usize {
        self.tenants[tenant.0 as usize].backlog.bytes() + self.session.queue(tenant).bytes()
    }

    /// Messages accepted and not finished.
    fn backlog(&self, tenant: TenantIndex) -> usize {
        self.session.queue(tenant).len() + self.tenants[tenant.0 as usize].backlog.unanswered()
    }
}
