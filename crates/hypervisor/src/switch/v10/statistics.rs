//! STATS: every question answered for the tenant, from its own tables and the switch's counts.

use crate::cookie::Cookie;
use crate::ids::TenantIndex;
use crate::lookups::Standing;
use crate::parts::{write_part, write_parts};
use crate::south::pending::{Awaits, Purpose};
use crate::switch::{Request, Share, Switch, Waiter};
use crate::time::Instant;
use crate::v10::flow_mod::{sends_to, wanted as asked_for};
use crate::v10::statistics::{FLOWS_COST, port_questions, port_statistics, question};
use crate::v10::unreadable;
use alloc::string::ToString;
use alloc::vec::Vec;
use compile::{Reason, Refused};
use flowspace::{Match, port_from_v10};
use hashbrown::{HashMap, HashSet};
use openflow::error::v10 as code;
use openflow::text::{Name, Text};
use openflow::v10::{
    AggregateStats, DescStats, FlowStats, FlowStatsRequest, PortNo, PortStats, QUEUE_ALL,
    QueueStats, StatsFlags, StatsReply, StatsReplyBody, StatsRequest, StatsRequestBody, StatsType,
    TABLE_ALL, TableStats, Wildcards,
};
use openflow::{ErrorCode, List, frame, v10};

impl Switch {
    /// A tenant asks for statistics.
    pub(crate) fn statistics_v10(&mut self, request: &Request<'_>) -> Result<(), Refused> {
        let asked = StatsRequest::parse(request.body()).map_err(unreadable)?;
        let tenant = request.tenant;
        match asked.body {
            StatsRequestBody::Desc => {
                self.describe_v10(request);
                Ok(())
            }
            StatsRequestBody::Table => {
                let questions = self.flow_questions_v10(tenant, &EVERYTHING);
                self.collect(request, StatsType::FLOW.0, Share::Tenant, &questions, FLOWS_COST);
                Ok(())
            }
            StatsRequestBody::Flow(filter) | StatsRequestBody::Aggregate(filter) => {
                let questions = self.flow_questions_v10(tenant, &filter);
                self.collect(request, StatsType::FLOW.0, Share::Tenant, &questions, FLOWS_COST);
                Ok(())
            }
            StatsRequestBody::Port { port_no } => {
                self.check_port_v10(tenant, port_no)?;
                let is_network = self.tenants[tenant.0 as usize].network.is_some();
                let port_no = if is_network { PortNo::NONE } else { port_no };
                let question = question(StatsRequestBody::Port { port_no });
                let share = self.share_of_ports(tenant);
                self.collect(request, StatsType::PORT.0, share, &question, 1);
                Ok(())
            }
            StatsRequestBody::Queue { port_no, queue_id } => {
                let port = if port_no == PortNo::ALL { PortNo::NONE } else { port_no };
                self.check_port_v10(tenant, port).map_err(|_| code::QUEUE_OP_FAILED_BAD_PORT)?;
                let state = &self.tenants[tenant.0 as usize];
                let is_network = state.network.is_some();
                if queue_id != QUEUE_ALL
                    && (is_network || !state.terms.queues().contains(&queue_id))
                {
                    return Err(code::QUEUE_OP_FAILED_BAD_QUEUE.into());
                }
                if is_network {
                    // Virtual ports have no queues.
                    self.collect(request, StatsType::QUEUE.0, Share::Tenant, &[], 1);
                    return Ok(());
                }
                let question = question(StatsRequestBody::Queue { port_no, queue_id });
                self.collect(request, StatsType::QUEUE.0, Share::Anybody, &question, 1);
                Ok(())
            }
            StatsRequestBody::Vendor { vendor, .. } => {
                if !self.tenants[tenant.0 as usize].terms.experimenters().contains(&vendor) {
                    return Err(code::BAD_REQUEST_BAD_VENDOR.into());
                }
                let mut question = request.frame.to_vec();
                frame::set_xid(&mut question, 0);
                self.collect(request, StatsType::VENDOR.0, Share::Tenant, &question, 1);
                Ok(())
            }
            StatsRequestBody::Unknown { .. } => Err(code::BAD_REQUEST_BAD_STAT.into()),
        }
    }

    /// A part of an answer of the switch.
    pub(crate) fn statistics_reply_v10(
        &mut self,
        xid: u32,
        body: &[u8],
        now: Instant,
    ) -> Result<(), ErrorCode> {
        let reply = StatsReply::parse(body).map_err(unreadable)?;
        let more = reply.flags.contains(StatsFlags::REPLY_MORE);
        let entry = self.acknowledge(xid, now).ok_or(code::BAD_REQUEST_BAD_STAT)?;
        if !more {
            self.session.take(xid);
        }
        let entries = body.get(4..).unwrap_or_default();
        match entry.awaits {
            Awaits::Collection(collection) => {
                self.collection_part(collection, entries, more, now);
            }
            Awaits::Idle(tenant, number, begun) => {
                self.idle_part((tenant, number, begun), entries, more, now);
            }
            Awaits::Own(purpose @ (Purpose::Space | Purpose::Full(_))) => {
                if let StatsReplyBody::Table(tables) = reply.body {
                    self.space_said_v10(purpose != Purpose::Space, tables);
                }
            }
            Awaits::Own(Purpose::Description) => {
                if let StatsReplyBody::Desc(it) = reply.body {
                    let words = [it.mfr_desc.as_str(), it.hw_desc.as_str(), it.sw_desc.as_str()];
                    self.is_described(Some(words));
                }
            }
            Awaits::Own(Purpose::PortCounters) => {
                if let StatsReplyBody::Port(ports) = reply.body {
                    self.traffic_part_v10(ports, more, now);
                }
            }
            Awaits::Own(Purpose::Flows) => {
                if let StatsReplyBody::Flow(rules) = reply.body {
                    self.learn_rules(rules.iter().map(|it| (it.cookie, it)));
                }
                self.datapath.count_told(entries.len());
                if !self.has_told_too_much() && !more {
                    self.learned_one(now);
                }
            }
            _ => return Err(code::BAD_REQUEST_BAD_STAT),
        }
        Ok(())
    }

    /// The answer for one who waited.
    pub(crate) fn answer_statistics_v10(&mut self, type_: u16, waiter: &Waiter, answers: &[u8]) {
        let Ok(asked) = StatsRequest::parse(&waiter.request) else { return };
        let tenant = waiter.origin.tenant;
        let mut out = Vec::new();
        let written = match asked.body {
            StatsRequestBody::Flow(filter) => {
                let entries = self.flow_statistics_v10(tenant, &filter, answers);
                write_parts(
                    self.version(),
                    StatsType::FLOW.0,
                    waiter.origin.xid,
                    entries.into_iter(),
                    &mut out,
                )
            }
            StatsRequestBody::Table => {
                let table = self.table_statistics_v10(tenant, answers);
                let (type_, xid) = (StatsType::TABLE.0, waiter.origin.xid);
                write_parts(self.version(), type_, xid, core::iter::once(table), &mut out)
            }
            StatsRequestBody::Aggregate(filter) => {
                let mut sum = AggregateStats::default();
                for entry in self.flow_statistics_v10(tenant, &filter, answers) {
                    sum.packet_count = sum.packet_count.saturating_add(entry.packet_count);
                    sum.byte_count = sum.byte_count.saturating_add(entry.byte_count);
                    sum.flow_count += 1;
                }
                StatsReply::from(StatsReplyBody::Aggregate(sum))
                    .write_message(waiter.origin.xid, &mut out)
            }
            StatsRequestBody::Port { port_no }
                if let Some(network) = self.tenants[tenant.0 as usize].network.as_deref() =>
            {
                let counted = port_statistics(network, port_no, answers);
                let (type_, xid) = (StatsType::PORT.0, waiter.origin.xid);
                write_parts(self.version(), type_, xid, counted.into_iter(), &mut out)
            }
            StatsRequestBody::Port { .. } => {
                let all = List::<PortStats>::parse(answers).unwrap_or_default();
                let seen = all.iter().filter(|port| {
                    self.map.ownership().sees_port(tenant, port_from_v10(port.port_no.0))
                });
                write_parts(self.version(), StatsType::PORT.0, waiter.origin.xid, seen, &mut out)
            }
            StatsRequestBody::Queue { .. } => {
                let all = List::<QueueStats>::parse(answers).unwrap_or_default();
                let queues = self.tenants[tenant.0 as usize].terms.queues();
                let seen = all.iter().filter(|queue| {
                    queues.contains(&queue.queue_id)
                        && self.map.ownership().sees_port(tenant, port_from_v10(queue.port_no.0))
                });
                write_parts(self.version(), StatsType::QUEUE.0, waiter.origin.xid, seen, &mut out)
            }
            _ => write_part(self.version(), type_, waiter.origin.xid, answers, false, &mut out),
        };
        match written {
            Ok(()) => self.answer(waiter.origin.controller, &out),
            // One entry alone is too long for any part.
            Err(_) => {
                let refused = Reason::AnswerTooLarge.with(self.codes().too_much);
                self.refuse(&waiter.origin, refused);
            }
        }
    }

    /// The tenant's entries that the filter means, with the counts of all their rules.
    fn flow_statistics_v10(
        &self,
        tenant: TenantIndex,
        filter: &FlowStatsRequest,
        answers: &[u8],
    ) -> Vec<FlowStats<'_>> {
        #[derive(Default)]
        struct Sum {
            packets: u64,
            bytes: u64,
            duration: (u32, u32),
        }
        let state = &self.tenants[tenant.0 as usize];
        let mut sums: HashMap<u32, Sum> = HashMap::new();
        let mut counted: HashSet<(u32, v10::Match)> = HashSet::new();
        for entry in List::<FlowStats<'_>>::parse(answers).unwrap_or_default() {
            let Some(cookie) = Cookie::from_wire(entry.cookie, self.settings.installation) else {
                continue;
            };
            // A rule in two of the tenant's own flowspace entries is reported for each.
            if cookie.tenant != state.id || !counted.insert((cookie.number, entry.match_)) {
                continue;
            }
            let sum = sums.entry(cookie.number).or_default();
            sum.packets = sum.packets.saturating_add(entry.packet_count);
            sum.bytes = sum.bytes.saturating_add(entry.byte_count);
            sum.duration = sum.duration.max((entry.duration_sec, entry.duration_nsec));
        }
        let wanted = Match::from_v10(&filter.match_);
        let any_table = filter.table_id == TABLE_ALL || filter.table_id == 0;
        let numbers = if any_table { state.flows.matching(None, &wanted) } else { Vec::new() };
        numbers
            .into_iter()
            .filter_map(|number| {
                let flow = state.flows.get(number)?;
                if !sends_to(&flow.actions, &asked_for(&filter.match_, filter.out_port)) {
                    return None;
                }
                let sum = sums.remove(&number).unwrap_or_default();
                Some(FlowStats {
                    table_id: 0,
                    match_: v10::Match::parse(&flow.match_wire).unwrap_or_default(),
                    duration_sec: sum.duration.0,
                    duration_nsec: sum.duration.1,
                    priority: flow.priority,
                    idle_timeout: flow.idle_timeout,
                    hard_timeout: flow.hard_timeout,
                    cookie: flow.cookie,
                    packet_count: sum.packets.saturating_add(flow.past_packets),
                    byte_count: sum.bytes.saturating_add(flow.past_bytes),
                    actions: List::parse(&flow.actions).unwrap_or_default(),
                })
            })
            .collect()
    }

    /// One question for each of the tenant's flowspace entries that the filter meets.
    fn flow_questions_v10(&self, tenant: TenantIndex, filter: &FlowStatsRequest) -> Vec<u8> {
        let mut out = Vec::new();
        if let Some(network) = self.tenants[tenant.0 as usize].network.as_deref() {
            for match_ in port_questions(network) {
                let filter = FlowStatsRequest { match_, ..FlowStatsRequest::default() };
                out.extend_from_slice(&question(StatsRequestBody::Flow(filter)));
            }
            return out;
        }
        let wanted = Match::from_v10(&filter.match_);
        let Some(space) = self.map.ownership().space(tenant) else { return out };
        let mut asked: Vec<v10::Match> = Vec::new();
        for own in &space.write {
            let Some(Ok(match_)) = own.match_.intersect(&wanted).map(|m| m.to_v10()) else {
                continue;
            };
            if !asked.contains(&match_) {
                asked.push(match_);
                let filter = FlowStatsRequest { match_, ..FlowStatsRequest::default() };
                out.extend_from_slice(&question(StatsRequestBody::Flow(filter)));
            }
        }
        out
    }

    fn check_port_v10(&self, tenant: TenantIndex, port: PortNo) -> Result<(), ErrorCode> {
        if port == PortNo::NONE || self.has_port(tenant, port_from_v10(port.0)) {
            Ok(())
        } else {
            Err(code::BAD_REQUEST_EPERM)
        }
    }

    fn describe_v10(&mut self, request: &Request<'_>) {
        let name = self.tenants[request.tenant.0 as usize].terms.name().to_string();
        let serial = alloc::format!("{:016x}", self.datapath_of(request.tenant));
        let is_network = self.tenants[request.tenant.0 as usize].network.is_some();
        let hw_desc = if is_network { "virtual switch" } else { "slice of an OpenFlow switch" };
        self.reply(request, |_, out| {
            StatsReply::from(StatsReplyBody::Desc(DescStats {
                mfr_desc: Text::new("Weir"),
                hw_desc: Text::new(hw_desc),
                sw_desc: Text::new(concat!("weir ", env!("CARGO_PKG_VERSION"))),
                serial_num: Text::new(serial.as_str()),
                dp_desc: Text::new(name.as_str()),
            }))
            .write_message(request.header.xid, out)
        });
    }

    fn table_statistics_v10(&mut self, tenant: TenantIndex, answers: &[u8]) -> TableStats {
        let mut standing = Standing::new(1);
        for entry in self.flow_statistics_v10(tenant, &EVERYTHING, answers) {
            standing.matched(0, None, entry.packet_count);
        }
        let max_entries = self.entries_told(tenant, 0);
        let state = &mut self.tenants[tenant.0 as usize];
        let counts = state.packets.looked_up(standing).first().copied().unwrap_or_default();
        TableStats {
            table_id: 0,
            name: Name::new("slice"),
            wildcards: Wildcards::ALL,
            max_entries,
            active_count: state.flows.len() as u32,
            lookup_count: counts.came,
            matched_count: counts.matched,
        }
    }
}

/// Means all entries.
const EVERYTHING: FlowStatsRequest =
    FlowStatsRequest { match_: v10::Match::ANY, table_id: TABLE_ALL, out_port: PortNo::NONE };
