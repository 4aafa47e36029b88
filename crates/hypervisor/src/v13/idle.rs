//! Entries that are several on the switch: such an entry is idle when all its pieces are.
//!
//! A piece that is idle by itself is installed again at once. When each has been, the switch is asked whether any has counted
//! a packet since: if none has, the entry has been idle as long as the last of them, and ends.

use super::flow_mod::physical_table;
use crate::cookie::Cookie;
use crate::flows::{Flow, Piece};
use crate::ids::TenantIndex;
use crate::pending::Awaits;
use crate::switch::{Cause, Change, Switch};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use flowspace::Match;
use openflow::v13::{FlowRemoved, FlowRemovedReason, FlowStats, FlowStatsRequest};
use openflow::{List, NO_BUFFER};

/// What is known of an entry of which pieces have been idle.
#[derive(Debug, Default)]
pub(crate) struct Idle {
    /// Those that have been, by their matches.
    revived: BTreeMap<Box<[u8]>, Revived>,
    is_asked: bool,
    /// How long the last of them had stood: seconds and nanoseconds.
    stood: (u32, u32),
}

/// A piece that was idle and is installed again.
#[derive(Debug)]
struct Revived {
    /// Seconds of the entry's hard timeout that were left then; 0 if it has none.
    left: u16,
    /// Whether it has counted packets since, as far as is known.
    is_used: bool,
}

impl Switch {
    /// A piece has timed out by itself.
    pub(super) fn revive_idle(
        &mut self,
        tenant: TenantIndex,
        number: u32,
        piece: &Piece,
        removed: &FlowRemoved<'_>,
        now: Instant,
    ) {
        let state = &mut self.tenants[tenant.0 as usize];
        let Some(flow) = state.flows.get(number).cloned() else { return };
        let idle = state.idle.entry(number).or_default();
        let stands = |match_: &[u8]| flow.pieces.iter().any(|it| *it.match_wire == *match_);
        idle.revived.retain(|match_, _| stands(match_));
        idle.stood = (removed.duration_sec, removed.duration_nsec);
        let known = idle.revived.get(&piece.match_wire);
        let left = match known.map_or(flow.hard_timeout, |it| it.left) {
            0 => 0,
            left => u32::from(left).saturating_sub(removed.duration_sec).max(1) as u16,
        };
        idle.revived.insert(piece.match_wire.clone(), Revived { left, is_used: false });
        let flow = Flow { hard_timeout: left, ..flow };
        // A change that is on its way finds another there, if it goes back.
        self.overtake(tenant, number);
        self.revive(&Cause::own(tenant, now), number, &flow, piece, NO_BUFFER);
        if self.may_be_idle(tenant, number) {
            self.ask_whether_idle(tenant, number, flow.table, now);
        }
    }

    /// Whether each piece has been idle, and none is known to have been used since.
    fn may_be_idle(&self, tenant: TenantIndex, number: u32) -> bool {
        let state = &self.tenants[tenant.0 as usize];
        let (Some(flow), Some(idle)) = (state.flows.get(number), state.idle.get(&number)) else {
            return false;
        };
        let revived = |piece: &Piece| idle.revived.get(&piece.match_wire);
        !flow.pieces.is_empty()
            && flow.pieces.iter().all(|piece| revived(piece).is_some_and(|it| !it.is_used))
    }

    fn ask_whether_idle(&mut self, tenant: TenantIndex, number: u32, table: u8, now: Instant) {
        let table_id = physical_table(table, self.first_table());
        let state = &mut self.tenants[tenant.0 as usize];
        let Some(idle) = state.idle.get_mut(&number).filter(|idle| !idle.is_asked) else { return };
        idle.is_asked = true;
        let cookie = Cookie { tenant: state.id, number }.to_wire();
        let filter =
            FlowStatsRequest { table_id, cookie, cookie_mask: u64::MAX, ..Default::default() };
        self.ask_for_flows(tenant, filter, Awaits::Idle(tenant, number), now);
    }

    /// A part of the switch's answer.
    pub(super) fn idle_part(
        &mut self,
        (tenant, number): (TenantIndex, u32),
        entries: &[u8],
        more: bool,
        now: Instant,
    ) {
        /// What a switch says that does not count.
        const NOT_COUNTED: u64 = u64::MAX;
        let state = &mut self.tenants[tenant.0 as usize];
        let Some(idle) = state.idle.get_mut(&number) else { return };
        let cookie = Cookie { tenant: state.id, number }.to_wire();
        for entry in List::<FlowStats<'_>>::parse(entries).unwrap_or_default() {
            if entry.cookie == cookie && !matches!(entry.packet_count, 0 | NOT_COUNTED) {
                let used = Match::from_v13(&entry.match_).ok();
                for (match_, revived) in &mut idle.revived {
                    revived.is_used |= super::read_match(match_) == used;
                }
            }
        }
        if !more {
            idle.is_asked = false;
            if self.may_be_idle(tenant, number) {
                self.end_idle(tenant, number, now);
            }
        }
    }

    /// The switch does not answer: it is asked again when a piece has timed out the next time.
    pub(crate) fn idle_failed(&mut self, tenant: TenantIndex, number: u32) {
        if let Some(idle) = self.tenants[tenant.0 as usize].idle.get_mut(&number) {
            idle.is_asked = false;
        }
    }

    fn end_idle(&mut self, tenant: TenantIndex, number: u32, now: Instant) {
        let stood = self.tenants[tenant.0 as usize].idle.get(&number).map(|idle| idle.stood);
        let Some(flow) = self.drop_flow(tenant, number) else { return };
        let cause = Cause::own(tenant, now);
        for piece in &flow.pieces {
            self.submit_piece(&cause, number, &flow, piece, Change::Delete, NO_BUFFER);
        }
        let (duration_sec, duration_nsec) = stood.unwrap_or_default();
        let last = super::flow_removed::without_counts(FlowRemovedReason::IDLE_TIMEOUT);
        self.tell_removed_v13(tenant, &flow, &FlowRemoved { duration_sec, duration_nsec, ..last });
    }
}
