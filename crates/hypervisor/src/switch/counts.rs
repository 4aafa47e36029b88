//! What is told of the ports of networks in port statistics, where the switch's own counts are everybody's.
//!
//! ```text
//!   a controller asks A for its ports          A: PORT_STATS and, of table 0, FLOW_STATS ──▶ switch: received
//!        │                                     A: Event::AskCounts ──▶ driver ──▶ B: FLOW_STATS ──▶ switch
//!        ▼                                     A: handle_counts_told ◀── driver ◀── Event::TellCounts
//!   answered when both are in, or without B after a while: sent, by what has arrived at the links' other ends
//! ```
//! The entries of table 0 count for the port that is in their cookies (1.3; 1.0 has no table before the tenants' own, see
//! [`crate::arrived`]), so a tenant's are asked for alone, through its own queue. Another switch is asked only while somebody asks here, and asks
//! its switch four times a second at most, however many ask it. One that was silent is not waited for again until it has
//! said something; what it said last counts until then.

use super::{Event, Own, OwnChange, Question, Share, Switch};
use crate::cookie::{Cookie, Installation};
use crate::ids::TenantIndex;
use crate::network::Network;
use crate::pending::Awaits;
use crate::policy::TenantId;
use crate::store::{Kind, StoreKey, StoreOp};
use crate::tally::{Count, Counted, Counter, Direction, Rising};
use crate::time::{Duration, Instant};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use fabric::embedding::{FarEnd, PortKind};
use flowspace::Match;
use openflow::v13::{FlowStats, FlowStatsRequest, MultipartRequest};
use openflow::{List, Version};

/// How long an answer waits for other switches.
const PATIENCE: Duration = Duration(250_000_000);
/// How old counts may be for other switches.
const FRESH: Duration = Duration(250_000_000);

/// What one switch tells another of a tenant's ports there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Whose.
    pub tenant: TenantId,
    /// By port, what has come in; `None` if the switch cannot tell.
    pub received: Option<Vec<(u32, Count)>>,
}

/// Questions to the switch for what a tenant's ports have received.
#[derive(Debug, Default)]
pub(crate) struct Asking {
    /// How many have been asked, and answered.
    asked: u64,
    answered: u64,
    /// Of the one that is open, which entries there were.
    open: Option<u64>,
    answered_at: Option<Instant>,
    /// Other switches that want to know, by datapath id.
    askers: BTreeSet<u64>,
}

/// A switch at the other ends of links, and what it has told.
#[derive(Debug, Default)]
pub(crate) struct Elsewhere {
    /// The ports there.
    ports: BTreeSet<u32>,
    /// By port; `None` until it has said something, or if it cannot tell.
    received: Option<BTreeMap<u32, Rising>>,
    asked: Option<Instant>,
    told: Option<Instant>,
    is_silent: bool,
}

impl Elsewhere {
    fn is_waited_for(&self) -> bool {
        self.asked.is_some() && !self.is_silent
    }
}

/// What an answer about ports waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due {
    answer: u64,
    /// When other switches are no longer waited for.
    until: Instant,
}

/// What is known of one port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub received: Option<Count>,
    pub sent: Option<Count>,
}

impl Switch {
    /// A switch asks what has come in by the ports of a tenant's network here.
    pub fn handle_counts_asked(&mut self, tenant: TenantId, by: u64, now: Instant) {
        let Some(at) = self.tenant_of(tenant).filter(|_| self.is_ready()) else { return };
        let state = &mut self.tenants[at.0 as usize];
        if state.network.is_none() {
            return;
        }
        state.asking.askers.insert(by);
        let is_fresh = state.asking.answered_at.is_some_and(|at| now - at < FRESH);
        if is_fresh || !self.ask_received(at, now) {
            self.tell_askers(at);
        }
    }

    /// Another switch has answered. What was not asked for is not taken.
    pub fn handle_counts_told(&mut self, from: u64, counts: Counts, now: Instant) {
        let Some(at) = self.tenant_of(counts.tenant) else { return };
        let Some(known) = self.tenants[at.0 as usize].elsewhere.get_mut(&from) else { return };
        (known.asked, known.told, known.is_silent) = (None, Some(now), false);
        known.received = counts.received.map(|received| {
            let mut ports = known.received.take().unwrap_or_default();
            let ours = received.into_iter().filter(|(port, _)| known.ports.contains(port));
            ours.for_each(|(port, count)| ports.entry(port).or_default().see(count));
            ports
        });
        self.finish_due(now);
        self.take_up_postponed(now);
    }

    /// Who may share an answer about a tenant's ports.
    pub(crate) fn share_of_ports(&self, tenant: TenantIndex) -> Share {
        let tells_more = |network: &Network| {
            network.ports.values().any(|port| match &port.kind {
                PortKind::Edge { hosts, .. } => !hosts.is_empty(),
                PortKind::Link { .. } => true,
                PortKind::Remote { .. } => false,
            })
        };
        match self.tenants[tenant.0 as usize].network.as_deref().is_some_and(tells_more) {
            true => Share::Ports,
            false => Share::Anybody,
        }
    }

    /// Somebody asks for a tenant's ports: whatever is not known here is asked for.
    pub(super) fn ask_counts(&mut self, tenant: TenantIndex, now: Instant) -> Due {
        self.ask_received(tenant, now);
        let state = &mut self.tenants[tenant.0 as usize];
        for (&dpid, known) in &mut state.elsewhere {
            match known.asked {
                Some(at) if now - at < PATIENCE => continue,
                Some(_) => known.is_silent = true,
                None if known.told.is_some_and(|at| now - at < FRESH) => continue,
                None => {}
            }
            known.asked = Some(now);
            self.events.push_back(Event::AskCounts { of: dpid, tenant: state.id });
        }
        Due { answer: state.asking.asked, until: now + PATIENCE }
    }

    /// Whether all is there that an answer waits for.
    pub(super) fn is_due(&self, tenant: TenantIndex, due: Due, now: Instant) -> bool {
        let state = &self.tenants[tenant.0 as usize];
        let waits = state.elsewhere.values().any(Elsewhere::is_waited_for);
        state.asking.answered >= due.answer && (!waits || now >= due.until)
    }

    /// When an answer is given without what other switches have not told.
    pub(super) fn patience(&self, tenant: TenantIndex, due: Due) -> Option<Instant> {
        let is_answered = self.tenants[tenant.0 as usize].asking.answered >= due.answer;
        is_answered.then_some(due.until)
    }

    /// What is known of a port that is not the tenant's whole.
    pub(crate) fn traffic(&self, tenant: TenantIndex, number: u32) -> Traffic {
        let state = &self.tenants[tenant.0 as usize];
        let kind = state.network.as_deref().and_then(|it| it.ports.get(&number)).map(|it| &it.kind);
        let is_known = state.asking.answered_at.is_some() || !self.is_counting(tenant);
        let is_old = self.version == Version::V1_0;
        let total = || match is_old {
            true => state.arrived.total(number),
            false => state.tally.total(Direction::Received.of(number)),
        };
        let received = match kind {
            // What came in before the link's end moved to another of a big switch's members.
            Some(PortKind::Remote { .. }) => is_known && total() != Count::default(),
            Some(PortKind::Link { .. }) => is_known,
            Some(PortKind::Edge { hosts, .. }) => is_known && !hosts.is_empty(),
            None => false,
        };
        let sent = match kind {
            Some(PortKind::Link { far, .. }) => self.arrived(tenant, far),
            Some(PortKind::Edge { .. }) if is_known && self.counts_sent_by(tenant, number) => {
                Some(state.tally.total(Direction::Sent.of(number)))
            }
            _ => None,
        };
        Traffic { received: received.then(total), sent }
    }

    fn counts_sent_by(&self, tenant: TenantIndex, number: u32) -> bool {
        let network = self.tenants[tenant.0 as usize].network.as_deref();
        network.is_some_and(|network| self.counts_sent(network, number))
    }

    /// What has arrived at the other end of a link, wherever that was.
    fn arrived(&self, tenant: TenantIndex, far: &FarEnd) -> Option<Count> {
        let elsewhere = &self.tenants[tenant.0 as usize].elsewhere;
        far.on.iter().try_fold(Count::default(), |sum, dpid| {
            let ports = elsewhere.get(&dpid.0)?.received.as_ref()?;
            let arrived = ports.get(&far.port).map(Rising::total).unwrap_or_default();
            Some(sum.plus(arrived))
        })
    }

    /// Asks the switch, unless it is being asked. False if there is nothing to be asked.
    fn ask_received(&mut self, tenant: TenantIndex, now: Instant) -> bool {
        if !self.is_counting(tenant) {
            return false;
        }
        let state = &mut self.tenants[tenant.0 as usize];
        if state.asking.open.is_none() {
            state.asking.asked += 1;
            self.send_question(tenant, now);
        }
        true
    }

    /// Whether entries count for a tenant's ports.
    fn is_counting(&self, tenant: TenantIndex) -> bool {
        let state = &self.tenants[tenant.0 as usize];
        match self.version {
            Version::V1_0 => state.arrived.is_counting(),
            _ => state.tally.is_counting(),
        }
    }

    fn send_question(&mut self, tenant: TenantIndex, now: Instant) {
        let state = &mut self.tenants[tenant.0 as usize];
        state.asking.open = Some(state.tally.changes);
        if self.version == Version::V1_0 {
            self.ask_arrived_v10(tenant, now);
            return;
        }
        let (cookie, cookie_mask) = Counted::cookies(state.id, self.settings.installation);
        let sends = state.network.as_deref().is_some_and(|it| it.shared_edges().next().is_some());
        let egress = self.egress_table().filter(|_| sends);
        // By its tables, so that nobody looks through those with the tenants' entries.
        for (table_id, is_last) in egress.map(|table| (table, false)).into_iter().chain([(0, true)])
        {
            let filter =
                FlowStatsRequest { table_id, cookie, cookie_mask, ..FlowStatsRequest::default() };
            let awaits = Awaits::Counts(tenant, is_last);
            self.ask_in_turn(tenant, flow_question(filter), awaits, now);
        }
    }

    /// A part of the switch's answers.
    pub(crate) fn counts_part(
        &mut self,
        tenant: TenantIndex,
        entries: &[u8],
        more: bool,
        now: Instant,
    ) {
        let by = self.settings.installation;
        let state = &mut self.tenants[tenant.0 as usize];
        if state.asking.open.is_none() {
            // Another part of them has failed.
            return;
        }
        let is_current = state.asking.open == Some(state.tally.changes);
        if is_current {
            for entry in List::<FlowStats<'_>>::parse(entries).unwrap_or_default() {
                let counted = counted(entry.cookie, by).filter(|it| it.tenant == state.id);
                let (Some(counted), Ok(match_)) = (counted, Match::from_v13(&entry.match_)) else {
                    continue;
                };
                let FlowStats { priority, packet_count, byte_count, .. } = entry;
                let count = Count::by_entry(&match_, priority, packet_count, byte_count);
                state.tally.see(&match_, counted.of, count);
            }
        }
        if more {
            return;
        }
        if !is_current {
            // It speaks of entries that are others now.
            self.send_question(tenant, now);
            return;
        }
        self.counts_answered(tenant, now);
    }

    /// What was asked for is known.
    pub(crate) fn counts_answered(&mut self, tenant: TenantIndex, now: Instant) {
        let asking = &mut self.tenants[tenant.0 as usize].asking;
        if asking.open.is_some() {
            asking.answered_at = Some(now);
            self.question_over(tenant, now);
            self.tell_askers(tenant);
        }
    }

    /// Whether anybody has been told of a tenant's ports.
    pub(crate) fn has_told_counts(&self, tenant: TenantIndex) -> bool {
        self.tenants[tenant.0 as usize].asking.answered_at.is_some()
    }

    /// The switch does not answer: what is known is told here, and nothing to other switches.
    pub(super) fn counts_failed(&mut self, tenant: TenantIndex, now: Instant) {
        self.tenants[tenant.0 as usize].asking.askers.clear();
        self.question_over(tenant, now);
    }

    fn question_over(&mut self, tenant: TenantIndex, now: Instant) {
        let asking = &mut self.tenants[tenant.0 as usize].asking;
        (asking.open, asking.answered) = (None, asking.asked);
        self.finish_due(now);
    }

    fn tell_askers(&mut self, tenant: TenantIndex) {
        let askers = core::mem::take(&mut self.tenants[tenant.0 as usize].asking.askers);
        let state = &self.tenants[tenant.0 as usize];
        let Some(network) = state.network.as_deref() else { return };
        let numbers = network.ports.keys().copied();
        let received = |number| self.traffic(tenant, number).received.map(|it| (number, it));
        let received = Some(numbers.filter_map(received).collect());
        let counts = Counts { tenant: state.id, received };
        let tell = |to| Event::TellCounts { to, counts: counts.clone() };
        self.events.extend(askers.into_iter().map(tell));
    }

    /// The switch has told the last counts of an entry of the hypervisor's own.
    pub(crate) fn own_removed(&mut self, cookie: u64, match_: &Match, count: Count) {
        let Some(counted) = counted(cookie, self.settings.installation) else { return };
        let Some(at) = self.tenant_of(counted.tenant) else { return };
        let tally = &mut self.tenants[at.0 as usize].tally;
        tally.removed(match_, counted.of, count);
        self.store_counted(at, counted.of);
    }

    /// What an entry of the hypervisor's own has counted so far.
    pub(crate) fn own_counted(&mut self, cookie: u64, match_: &Match, count: Count) {
        let Some(counted) = counted(cookie, self.settings.installation) else { return };
        let Some(at) = self.tenant_of(counted.tenant) else { return };
        self.tenants[at.0 as usize].tally.see(match_, counted.of, count);
    }

    /// What the switch held when it connected has counted this: what was told of it before is told again, whatever
    /// becomes of it now.
    pub(super) fn tally_held(&mut self, match_: &Match, counted: Counted, count: Count) {
        let Some(at) = self.tenant_of(counted.tenant) else { return };
        let tally = &mut self.tenants[at.0 as usize].tally;
        tally.enter(*match_, counted.of);
        tally.see(match_, counted.of, count);
    }

    /// Follows what an entry of the hypervisor's own counts.
    pub(super) fn tally_own(&mut self, own: &Own, change: OwnChange) {
        let Some(Counted { tenant: id, of }) = own.counted else { return };
        let Some(at) = self.tenant_of(id) else { return };
        let state = &mut self.tenants[at.0 as usize];
        let has_port = |network: &Network| network.ports.contains_key(&of.port);
        match change {
            OwnChange::Add | OwnChange::Replace => state.tally.enter(own.match_, of),
            OwnChange::Remove if state.network.as_deref().is_some_and(has_port) => {
                state.tally.leave(own.match_, of);
                self.store_counted(at, of);
            }
            OwnChange::Remove => state.tally.forget(&own.match_),
        }
    }

    /// Follows the tenant's network: with a port goes what had come in by it, and what had arrived at its other end.
    pub(super) fn keep_counts(&mut self, tenant: TenantIndex) {
        let is_old = self.version == Version::V1_0;
        let state = &mut self.tenants[tenant.0 as usize];
        let network = state.network.clone();
        if is_old {
            for port in state.arrived.follow(network.as_deref()) {
                self.journal.push(StoreOp::Delete(StoreKey::new(state.id, Kind::Arrived, port)));
            }
        }
        let is_there = |port| network.as_deref().is_some_and(|it| it.ports.contains_key(&port));
        for of in state.tally.keep(is_there) {
            self.journal.push(StoreOp::Delete(key_of(state.id, of)));
        }
        let ends = network.as_deref().map(far_ends).unwrap_or_default();
        state.elsewhere.retain(|dpid, _| ends.contains_key(dpid));
        for (dpid, ports) in ends {
            let known = state.elsewhere.entry(dpid).or_default();
            if let Some(received) = &mut known.received {
                received.retain(|port, _| ports.contains(port));
            }
            known.ports = ports;
        }
    }

    /// Takes over what the store holds of what had come in.
    pub(super) fn restore_counts(&mut self, restored: &[(StoreKey, Vec<u8>)]) {
        let is_old = self.version == Version::V1_0;
        for (key, bytes) in restored {
            let Some((kind @ (Kind::Counted | Kind::Sent | Kind::Arrived), port)) = key.parts()
            else {
                continue;
            };
            let tenant = self.tenant_of(key.tenant).map(|at| &mut self.tenants[at.0 as usize]);
            let has_port = |network: &Network| network.ports.contains_key(&port);
            let tenant = tenant.filter(|it| it.network.as_deref().is_some_and(has_port));
            let is_restored = tenant.is_some_and(|it| match kind {
                Kind::Arrived => is_old && it.arrived.restore(port, bytes),
                Kind::Sent => it.tally.restore(Direction::Sent.of(port), bytes),
                _ => !is_old && it.tally.restore(Direction::Received.of(port), bytes),
            });
            if !is_restored {
                self.journal.push(StoreOp::Delete(*key));
            }
        }
    }

    /// What the switch held when it connected is known.
    pub(super) fn settle_counts(&mut self) {
        for at in 0..self.tenants.len() {
            for of in self.tenants[at].tally.settle() {
                self.store_counted(TenantIndex(at as u32), of);
            }
        }
    }

    /// What was told on 1.0 is not to be less after the next connection.
    pub(crate) fn store_arrived(&mut self, tenant: TenantIndex) {
        let state = &mut self.tenants[tenant.0 as usize];
        for (port, record) in state.arrived.take_records() {
            let key = StoreKey::new(state.id, Kind::Arrived, port);
            self.journal.push(StoreOp::Put(key, record));
        }
    }

    fn store_counted(&mut self, tenant: TenantIndex, of: Counter) {
        let state = &self.tenants[tenant.0 as usize];
        if let Some(record) = state.tally.record(of) {
            self.journal.push(StoreOp::Put(key_of(state.id, of), record));
        }
    }
}

/// Where it is stored what entries of the hypervisor's own have counted.
fn key_of(tenant: TenantId, of: Counter) -> StoreKey {
    let kind = match of.direction {
        Direction::Received => Kind::Counted,
        Direction::Sent => Kind::Sent,
    };
    StoreKey::new(tenant, kind, of.port)
}

/// What entries have counted (1.3).
pub(crate) fn flow_question(filter: FlowStatsRequest<'_>) -> Question {
    let mut message = Vec::new();
    let body = openflow::v13::MultipartRequestBody::Flow(filter);
    // It fits: it is a few words.
    let _ = MultipartRequest::from(body).write_message(0, &mut message);
    Question { message, cost: 1 }
}

/// For whom the entry with this cookie counts.
pub(super) fn counted(cookie: u64, by: Installation) -> Option<Counted> {
    Counted::from_cookie(Cookie::from_wire(cookie, by)?)
}

/// The switches at the other ends of a network's links, and the ports there.
fn far_ends(network: &Network) -> BTreeMap<u64, BTreeSet<u32>> {
    let mut ends: BTreeMap<u64, BTreeSet<u32>> = BTreeMap::new();
    for port in network.ports.values() {
        if let PortKind::Link { far, .. } = &port.kind {
            for dpid in &far.on {
                ends.entry(dpid.0).or_default().insert(far.port);
            }
        }
    }
    ends
}
