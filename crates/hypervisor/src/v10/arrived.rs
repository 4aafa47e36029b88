//! How the switch is asked what has come in by the ports of a network, and what else says so: see [`crate::arrived`].

use super::egress;
use super::statistics::{FLOWS_COST, question};
use crate::buffers::Buffered;
use crate::cookie::Cookie;
use crate::flows::Piece;
use crate::ids::TenantIndex;
use crate::pending::Awaits;
use crate::switch::{Question, Switch};
use crate::tally::Count;
use crate::time::Instant;
use flowspace::Match;
use hashbrown::HashSet;
use openflow::List;
use openflow::v10::{
    self, FlowRemoved, FlowStats, FlowStatsRequest, StatsReplyBody, StatsRequestBody,
};

impl Switch {
    /// Asks for all looks with which a tenant's packets come in.
    pub(crate) fn ask_arrived_v10(&mut self, tenant: TenantIndex, now: Instant) {
        let state = &mut self.tenants[tenant.0 as usize];
        let network = state.network.as_deref();
        let asked = |match_| network.and_then(|network| egress::question(network, match_));
        let sent: HashSet<(u8, Match)> = state.tally.matches().filter_map(asked).collect();
        let (round, looks) = state.arrived.ask(sent.len());
        let beside = u32::try_from(looks.len()).unwrap_or(u32::MAX);
        for (table_id, match_) in sent {
            let match_ = match_.to_v10().unwrap_or_default();
            let filter = FlowStatsRequest { match_, table_id, ..FlowStatsRequest::default() };
            let message = question(StatsRequestBody::Flow(filter));
            let awaits = Awaits::Arrived(tenant, round, beside);
            self.ask_in_turn(tenant, Question { message, cost: FLOWS_COST }, awaits, now);
        }
        for (at, looks) in (0..).zip(looks) {
            let match_ = looks.to_v10().unwrap_or_default();
            let filter = FlowStatsRequest { match_, ..FlowStatsRequest::default() };
            let message = question(StatsRequestBody::Aggregate(filter));
            let awaits = Awaits::Arrived(tenant, round, at);
            self.ask_in_turn(tenant, Question { message, cost: FLOWS_COST }, awaits, now);
        }
    }

    /// The switch has answered for one of them.
    pub(super) fn arrived_v10(
        &mut self,
        tenant: TenantIndex,
        (round, at): (u32, u32),
        (answer, more): (&StatsReplyBody<'_>, bool),
        now: Instant,
    ) {
        let is_last = match answer {
            StatsReplyBody::Aggregate(sum) => {
                let count = Count { packets: sum.packet_count, bytes: sum.byte_count };
                self.tenants[tenant.0 as usize].arrived.answered((round, at), count)
            }
            StatsReplyBody::Flow(entries) => {
                for entry in *entries {
                    let match_ = Match::from_v10(&entry.match_);
                    let FlowStats { priority, packet_count, byte_count, .. } = entry;
                    let count = Count::by_entry(&match_, priority, packet_count, byte_count);
                    self.own_counted(entry.cookie, &match_, count);
                }
                !more && self.tenants[tenant.0 as usize].arrived.answered_beside(round)
            }
            _ => return,
        };
        if is_last {
            self.store_arrived(tenant);
            self.counts_answered(tenant, now);
        }
    }

    /// An entry is gone.
    pub(super) fn count_removed_v10(&mut self, removed: &FlowRemoved) {
        let Some(cookie) = Cookie::from_wire(removed.cookie, self.settings.installation) else {
            return;
        };
        let match_ = Match::from_v10(&removed.match_);
        let count = Count { packets: removed.packet_count, bytes: removed.byte_count };
        let own = Count::by_entry(&match_, removed.priority, count.packets, count.bytes);
        self.own_removed(removed.cookie, &match_, own);
        match self.tenant_of(cookie.tenant) {
            Some(tenant) => self.tenants[tenant.0 as usize].arrived.gone(&match_, count),
            // What a port does not let in is dropped by an entry of the hypervisor's own; no two tenants' look alike.
            None => self.tenants.iter_mut().for_each(|it| it.arrived.gone(&match_, count)),
        }
    }

    /// A packet that the switch has kept goes through the table.
    pub(super) fn count_resent_v10(&mut self, tenant: TenantIndex, kept: &Buffered) {
        let state = &mut self.tenants[tenant.0 as usize];
        let came = state.network.as_deref().and_then(|network| network.entry_of(&kept.key));
        if let Some(came) = came {
            state.arrived.resent(came.port, kept.length.into());
        }
    }

    /// A piece is about to be installed in its own place, which makes it count anew without a word: the switch is asked before.
    pub(crate) fn ask_before_replacing_v10(
        &mut self,
        tenant: TenantIndex,
        number: u32,
        piece: &Piece,
        now: Instant,
    ) {
        if !self.tenants[tenant.0 as usize].arrived.is_counting() || !self.has_told_counts(tenant) {
            return;
        }
        let Ok(match_) = v10::Match::parse(&piece.match_wire) else { return };
        let filter = FlowStatsRequest { match_, ..FlowStatsRequest::default() };
        let message = question(StatsRequestBody::Flow(filter));
        let awaits = Awaits::Replaced(tenant, number);
        self.ask_in_turn(tenant, Question { message, cost: FLOWS_COST }, awaits, now);
    }

    /// What it had counted.
    pub(super) fn replaced_v10(&mut self, tenant: TenantIndex, number: u32, entries: &[u8]) {
        let state = &mut self.tenants[tenant.0 as usize];
        let cookie = Cookie { tenant: state.id, number }.to_wire(self.settings.installation);
        for entry in List::<FlowStats<'_>>::parse(entries).unwrap_or_default() {
            if entry.cookie == cookie {
                let count = Count { packets: entry.packet_count, bytes: entry.byte_count };
                state.arrived.gone(&Match::from_v10(&entry.match_), count);
            }
        }
    }
}
