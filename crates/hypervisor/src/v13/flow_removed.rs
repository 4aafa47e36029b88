//! FLOW_REMOVED: with the tenant's own match, table and cookie.

use super::flow_mod::owner_of;
use super::unreadable;
use crate::flows::Flow;
use crate::ids::TenantIndex;
use crate::switch::{Asynchronous, Switch};
use openflow::ErrorCode;
use openflow::v13::{FlowModFlags, FlowRemoved, FlowRemovedReason, Match};

impl Switch {
    /// The switch has removed an entry.
    pub(crate) fn flow_removed_v13(&mut self, body: &[u8]) -> Result<(), ErrorCode> {
        let removed = FlowRemoved::parse(body).map_err(unreadable)?;
        let Some(cookie) = owner_of(removed.cookie) else { return Ok(()) };
        let Some(tenant) = self.tenant_of(cookie.tenant) else { return Ok(()) };
        let state = &mut self.tenants[tenant.0 as usize];
        if let Some(leaving) = state.leaving.remove(&cookie.number) {
            self.tell_removed_v13(tenant, &leaving.flow, &removed);
            return Ok(());
        }
        let timed_out = matches!(
            removed.reason,
            FlowRemovedReason::IDLE_TIMEOUT | FlowRemovedReason::HARD_TIMEOUT
        );
        let beneath = match timed_out {
            true => self.expire_beneath(tenant, cookie.number, |_| true, (0, 0)),
            false => None,
        };
        if let Some(flow) = beneath.unwrap_or_else(|| self.drop_flow(tenant, cookie.number)) {
            self.tell_removed_v13(tenant, &flow, &removed);
        }
        Ok(())
    }

    fn tell_removed_v13(&mut self, tenant: TenantIndex, flow: &Flow, last: &FlowRemoved<'_>) {
        if !FlowModFlags(flow.flags).contains(FlowModFlags::SEND_FLOW_REM) {
            return;
        }
        let removed = FlowRemoved {
            match_: Match::parse(&flow.match_wire).unwrap_or(Match::ANY),
            cookie: flow.cookie,
            priority: flow.priority,
            table_id: flow.table,
            idle_timeout: flow.idle_timeout,
            hard_timeout: flow.hard_timeout,
            ..*last
        };
        self.notify(tenant, Asynchronous::FlowRemoved(last.reason.0), |out| {
            removed.write_message(0, out)
        });
    }

    /// The end of an entry whose last counts the switch never told.
    pub(crate) fn tell_lost_v13(&mut self, tenant: TenantIndex, flow: &Flow) {
        let last = FlowRemoved {
            cookie: 0,
            priority: 0,
            reason: FlowRemovedReason::DELETE,
            table_id: 0,
            duration_sec: 0,
            duration_nsec: 0,
            idle_timeout: 0,
            hard_timeout: 0,
            packet_count: 0,
            byte_count: 0,
            match_: Match::ANY,
        };
        self.tell_removed_v13(tenant, flow, &last);
    }
}
