//! The port statistics of networks, where the switch's own counters count all tenants together.
//!
//! ```text
//!   a controller asks A for its ports          A: PORT_STATS and, of table 0, FLOW_STATS ──▶ switch: received
//!        │                                     A: Event::CountersRequest ──▶ driver ──▶ B: FLOW_STATS ──▶ switch
//!        ▼                                     A: handle_counters_reply ◀── driver ◀── B: Event::CountersReply
//!   answered when both are known, or without B after a while: B's received counters are A's sent counters
//! ```
//! Rules of table 0 count for the port that is in their cookies (1.3). So Weir asks for one tenant's rules only,
//! through the tenant's own queue. On 1.0 no rule counts for a port alone, so neither the counters of these ports nor
//! those of links to them are known. Weir asks another switch only while a controller asks here, and B asks its switch
//! at most four times a second, however many switches ask B. If B was silent, A does not wait for B again until B has
//! answered; until then B's last answer counts.
//!
//! Nothing is stored, and nothing is kept of rules that are removed. When a link moves or a switch connects again, its
//! counters begin at 0.

pub(super) mod port_counts;

use super::event::Counts;
use super::traffic::port_traffic::PortTraffic;
use super::{Event, Share, Switch};
use crate::ids::TenantIndex;
use crate::policy::TenantId;
use crate::south::pending::Awaits;
use crate::south::queue::Question;
use crate::tally::{Count, counted};
use crate::time::{Duration, Instant};
use compile::Network;
use fabric::embedding::PortKind;
use flowspace::Match;
use openflow::List;
use openflow::v13::FlowStats;
use port_counts::Due;

/// How long an answer waits for the counters of other switches.
const PATIENCE: Duration = Duration::from_nanos(250_000_000);
/// The greatest age of counters for other switches.
const FRESH: Duration = Duration::from_nanos(250_000_000);

impl Switch {
    /// Another switch asks for the received counters of the ports of a tenant's network here.
    pub fn handle_counters_request(&mut self, tenant: TenantId, by: u64, now: Instant) {
        let Some(at) = self.tenant_of(tenant).filter(|_| self.is_ready()) else { return };
        let state = &mut self.tenants[at];
        if state.network.is_none() {
            return;
        }
        state.counts.asking.askers.insert(by);
        let is_fresh = state.counts.asking.answered_at.is_some_and(|at| now - at < FRESH);
        if is_fresh || !self.ask_received(at, now) {
            self.report_askers(at);
        }
    }

    /// Another switch has answered. An answer without a question is ignored.
    pub fn handle_counters_reply(&mut self, from: u64, counts: Counts, now: Instant) {
        let Some(at) = self.tenant_of(counts.tenant) else { return };
        let Some(known) = self.tenants[at].counts.elsewhere.get_mut(&from) else { return };
        (known.asked, known.answered, known.is_silent) = (None, Some(now), false);
        let is_ours = |(port, _): &(u32, Count)| known.ports.contains(port);
        known.received = counts.received.map(|it| it.into_iter().filter(is_ours).collect());
        self.finish_due(now);
        self.take_up_postponed(now);
    }

    /// The tenants that may share an answer about a tenant's ports. The rules that write the ingress port to the
    /// metadata count received packets.
    pub(crate) fn share_of_ports(&self, tenant: TenantIndex) -> Share {
        let has_shared_ports =
            |network: &Network| network.ports().values().any(|port| shares_port(&port.kind));
        let network = self.tenants[tenant].network.as_deref();
        match self.target().has_metadata() && network.is_some_and(has_shared_ports) {
            true => Share::Ports,
            false => Share::Anybody,
        }
    }

    /// A controller asks for a tenant's port counters: asks this switch and other switches for unknown counters.
    pub(super) fn ask_counts(&mut self, tenant: TenantIndex, now: Instant) -> Due {
        self.ask_received(tenant, now);
        let state = &mut self.tenants[tenant];
        for (&dpid, known) in &mut state.counts.elsewhere {
            match known.asked {
                Some(at) if now - at < PATIENCE => continue,
                Some(_) => known.is_silent = true,
                None if known.answered.is_some_and(|at| now - at < FRESH) => continue,
                None => {}
            }
            known.asked = Some(now);
            self.reports.push(Event::CountersRequest { of: dpid, tenant: state.id });
        }
        Due { answer: state.counts.asking.asked, until: now + PATIENCE }
    }

    /// When an answer is given without the counters that other switches have not reported.
    pub(super) fn patience(&self, tenant: TenantIndex, due: Due) -> Option<Instant> {
        let is_answered = self.tenants[tenant].counts.asking.answered >= due.answer;
        is_answered.then_some(due.until)
    }

    /// The known counters of a port whose physical port is not only the tenant's.
    pub(crate) fn traffic(&self, tenant: TenantIndex, number: u32) -> PortTraffic {
        let state = &self.tenants[tenant];
        let kind =
            state.network.as_deref().and_then(|it| it.ports().get(&number)).map(|it| &it.kind);
        let is_known = kind.is_some_and(shares_port) && state.counts.asking.answered_at.is_some();
        let received = || state.counts.asking.received.get(&number).copied().unwrap_or_default();
        let sent = match kind {
            Some(PortKind::Link { far, .. }) => state.counts.arrived(far),
            _ => None,
        };
        PortTraffic { port: number, received: is_known.then(received), sent }
    }

    /// Asks the switch, unless a question is in flight. False if there is nothing to ask for.
    pub(super) fn ask_received(&mut self, tenant: TenantIndex, now: Instant) -> bool {
        if self.share_of_ports(tenant) == Share::Anybody {
            return false;
        }
        let asking = &mut self.tenants[tenant].counts.asking;
        if asking.answered == asking.asked {
            asking.asked += 1;
            asking.parts.clear();
            let question = Question { message: self.question_of_table_0(tenant), cost: 1 };
            self.ask_in_turn(tenant, question, Awaits::Counts(tenant), now);
        }
        true
    }

    /// A part of the switch's answer has come.
    pub(crate) fn counts_part(
        &mut self,
        tenant: TenantIndex,
        entries: &[u8],
        more: bool,
        now: Instant,
    ) {
        let by = self.settings.installation;
        let state = &mut self.tenants[tenant];
        for entry in List::<FlowStats<'_>>::parse(entries).unwrap_or_default() {
            let counted = counted(entry.cookie, by).filter(|it| it.tenant == state.id);
            if let (Some(counted), Ok(match_)) = (counted, Match::from_v13(&entry.match_)) {
                let count = Count::by_entry(&match_, entry.packet_count, entry.byte_count);
                let sum = state.counts.asking.parts.entry(counted.port).or_default();
                *sum = sum.plus(count);
            }
        }
        if !more {
            state.counts.asking.received = core::mem::take(&mut state.counts.asking.parts);
            state.counts.asking.answered_at = Some(now);
            self.question_over(tenant, now);
            self.report_askers(tenant);
        }
    }

    /// The switch does not answer: requests here get the known counters, and other switches get nothing.
    pub(super) fn counts_failed(&mut self, tenant: TenantIndex, now: Instant) {
        self.tenants[tenant].counts.asking.askers.clear();
        self.question_over(tenant, now);
    }

    fn question_over(&mut self, tenant: TenantIndex, now: Instant) {
        let asking = &mut self.tenants[tenant].counts.asking;
        asking.answered = asking.asked;
        self.finish_due(now);
    }

    fn report_askers(&mut self, tenant: TenantIndex) {
        let askers = core::mem::take(&mut self.tenants[tenant].counts.asking.askers);
        let state = &self.tenants[tenant];
        let Some(network) = state.network.as_deref() else { return };
        let numbers = network.ports().keys().copied();
        let received = |number| self.traffic(tenant, number).received.map(|it| (number, it));
        let has_counters = self.target().has_metadata();
        let received = has_counters.then(|| numbers.filter_map(received).collect());
        let counts = Counts { tenant: state.id, received };
        for to in askers {
            self.reports.push(Event::CountersReply { to, counts: counts.clone() });
        }
    }
}

/// Whether other tenants use the same port of the switch, which counts the packets of all tenants together.
fn shares_port(kind: &PortKind) -> bool {
    match kind {
        PortKind::Edge { hosts, .. } => !hosts.is_empty(),
        PortKind::Link { .. } => true,
        PortKind::Remote { .. } => false,
    }
}
