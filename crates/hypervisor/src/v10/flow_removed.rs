//! FLOW_REMOVED: once for each of the tenant's entries, with the tenant's own match and cookie.

use super::unreadable;
use crate::cookie::Cookie;
use crate::flows::Flow;
use crate::ids::TenantIndex;
use crate::store::{Kind, StoreKey, StoreOp};
use crate::switch::{Asynchronous, Switch};
use crate::tenant::Leaving;
use crate::time::Instant;
use flowspace::Match;
use openflow::ErrorCode;
use openflow::v10::{self, FlowModFlags, FlowRemoved, FlowRemovedReason};

impl Switch {
    /// The switch has removed an entry.
    pub(crate) fn flow_removed_v10(&mut self, body: &[u8], _now: Instant) -> Result<(), ErrorCode> {
        let removed = FlowRemoved::parse(body).map_err(unreadable)?;
        let Some(cookie) = Cookie::from_wire(removed.cookie) else { return Ok(()) };
        let Some(tenant) = self.tenant_of(cookie.tenant) else { return Ok(()) };
        let state = &mut self.tenants[tenant.0 as usize];
        if let Some(leaving) = state.leaving.get_mut(&cookie.number) {
            leaving.flow.past_packets += removed.packet_count;
            leaving.flow.past_bytes += removed.byte_count;
            leaving.pieces = leaving.pieces.saturating_sub(1);
            if leaving.pieces == 0
                && let Some(Leaving { flow, .. }) = state.leaving.remove(&cookie.number)
            {
                self.tell_removed_v10(tenant, &flow, &removed);
            }
            return Ok(());
        }
        let Some(flow) = state.flows.get_mut(cookie.number) else { return Ok(()) };
        let wanted = Match::from_v10(&removed.match_);
        let Some(piece) = flow
            .pieces
            .iter()
            .position(|piece| super::read_match(&piece.match_wire) == Some(wanted))
        else {
            return Ok(());
        };
        flow.pieces.remove(piece);
        flow.past_packets += removed.packet_count;
        flow.past_bytes += removed.byte_count;
        if flow.pieces.is_empty()
            && let Some(flow) = state.flows.remove(cookie.number)
        {
            state.changes += 1;
            let key = StoreKey::new(state.id, Kind::Flow, cookie.number);
            self.journal.push(StoreOp::Delete(key));
            self.tell_removed_v10(tenant, &flow, &removed);
        }
        Ok(())
    }

    /// Tells the tenant, if it asked to be told, of the end of its entry.
    pub(crate) fn tell_removed_v10(
        &mut self,
        tenant: TenantIndex,
        flow: &Flow,
        last: &FlowRemoved,
    ) {
        if !FlowModFlags(flow.flags).contains(FlowModFlags::SEND_FLOW_REM) {
            return;
        }
        let removed = FlowRemoved {
            match_: v10::Match::parse(&flow.match_wire).unwrap_or_default(),
            cookie: flow.cookie,
            priority: flow.priority,
            idle_timeout: flow.idle_timeout,
            packet_count: flow.past_packets,
            byte_count: flow.past_bytes,
            ..*last
        };
        self.notify(tenant, Asynchronous::FlowRemoved(last.reason.0), |out| {
            removed.write_message(0, out)
        });
    }

    /// The end of an entry whose last counts the switch never told.
    pub(crate) fn tell_lost_v10(&mut self, tenant: TenantIndex, flow: &Flow) {
        let last = FlowRemoved {
            match_: v10::Match::ANY,
            cookie: 0,
            priority: 0,
            reason: FlowRemovedReason::DELETE,
            duration_sec: 0,
            duration_nsec: 0,
            idle_timeout: 0,
            packet_count: 0,
            byte_count: 0,
        };
        self.tell_removed_v10(tenant, flow, &last);
    }
}
