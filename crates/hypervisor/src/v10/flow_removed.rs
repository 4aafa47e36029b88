//! FLOW_REMOVED: once for each of the tenant's entries, with the tenant's own match and cookie.

use super::unreadable;
use crate::cookie::Cookie;
use crate::flows::{Flow, Piece};
use crate::ids::TenantIndex;
use crate::switch::{Asynchronous, Cause, Switch};
use crate::tenant::Leaving;
use crate::time::Instant;
use flowspace::{Key, Match};
use openflow::v10::{
    self, Action, FlowModFlags, FlowRemoved, FlowRemovedReason, PacketIn, PacketOut, PortNo,
};
use openflow::{ErrorCode, ListBuf, NO_BUFFER};

impl Switch {
    /// The switch has removed an entry.
    pub(crate) fn flow_removed_v10(&mut self, body: &[u8], _now: Instant) -> Result<(), ErrorCode> {
        let removed = FlowRemoved::parse(body).map_err(unreadable)?;
        let Some(cookie) = Cookie::from_wire(removed.cookie) else { return Ok(()) };
        let Some(tenant) = self.tenant_of(cookie.tenant) else { return Ok(()) };
        let state = &mut self.tenants[tenant.0 as usize];
        let wanted = Match::from_v10(&removed.match_);
        let is_it = |match_: &[u8]| super::read_match(match_) == Some(wanted);
        let is_deleted = removed.reason == FlowRemovedReason::DELETE;
        let was_told_to = is_deleted && state.retired.take(cookie.number, is_it);
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
        let is_meant = |piece: &Piece| is_it(&piece.match_wire);
        let counted = (removed.packet_count, removed.byte_count);
        if was_told_to {
            if let Some(flow) = state.flows.get_mut(cookie.number) {
                flow.past_packets += counted.0;
                flow.past_bytes += counted.1;
            }
            return Ok(());
        }
        if !is_deleted
            && let Some(gone) = self.expire_beneath(tenant, cookie.number, is_it, counted)
        {
            if let Some(flow) = gone {
                self.tell_removed_v10(tenant, &flow, &removed);
            }
            return Ok(());
        }
        let state = &mut self.tenants[tenant.0 as usize];
        let Some(flow) = state.flows.get_mut(cookie.number) else { return Ok(()) };
        let Some(piece) = flow.pieces.iter().position(is_meant) else { return Ok(()) };
        let gone = flow.pieces.remove(piece);
        flow.past_packets += removed.packet_count;
        flow.past_bytes += removed.byte_count;
        let priority = flow.priority;
        if !flow.pieces.is_empty() {
            // The entry lives as long as any of its pieces; a packet that misses this one brings it back.
            if removed.reason == FlowRemovedReason::IDLE_TIMEOUT {
                state.dormant.push((cookie.number, gone));
            } else {
                state.flows.forget_piece(0, priority, &gone);
            }
            return Ok(());
        }
        state.flows.forget_piece(0, priority, &gone);
        state.forget_dormant(cookie.number, priority);
        if let Some(flow) = self.drop_flow(tenant, cookie.number) {
            self.tell_removed_v10(tenant, &flow, &removed);
        }
        Ok(())
    }

    /// A packet of the tenant has met no entry on the switch. If it belongs to one of the tenant's that has timed out
    /// there in part, that part is installed again and the packet is sent through it; the tenant's entry never ended.
    pub(crate) fn revive_v10(
        &mut self,
        tenant: TenantIndex,
        packet: &PacketIn<'_>,
        key: &Key,
        now: Instant,
    ) -> bool {
        let state = &mut self.tenants[tenant.0 as usize];
        let best = state
            .dormant
            .iter()
            .enumerate()
            .filter(|(_, (_, piece))| {
                super::read_match(&piece.match_wire).is_some_and(|match_| match_.matches(key))
            })
            .filter_map(|(at, (number, _))| Some((state.flows.get(*number)?.priority, at)))
            .max();
        let Some((_, at)) = best else { return false };
        let (number, piece) = state.dormant.swap_remove(at);
        let Some(flow) = state.flows.get_mut(number) else { return false };
        flow.pieces.push(piece.clone());
        let flow = flow.clone();
        let cause = Cause { tenant, origin: None, operation: None, direct: false, now };
        self.revive(&cause, number, &flow, &piece, packet.buffer_id);
        if packet.buffer_id == NO_BUFFER {
            let mut to_table = ListBuf::<Action<'static>>::new();
            to_table.push(Action::Output { port: PortNo::TABLE, max_len: 0 });
            let again = PacketOut {
                buffer_id: NO_BUFFER,
                in_port: packet.in_port,
                actions: to_table.as_list(),
                data: packet.data,
            };
            let mut message = core::mem::take(&mut self.scratch);
            message.clear();
            if again.write_message(0, &mut message).is_ok() {
                self.submit_change(&cause, &message);
            }
            self.scratch = message;
        }
        true
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
