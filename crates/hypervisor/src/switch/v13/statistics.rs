//! MULTIPART: every question answered for the tenant, from its own tables and the switch's counts.

use super::network_statistics::port_statistics;
use crate::flows::Wanted;
use crate::ids::TenantIndex;
use crate::lookups::Standing;
use crate::parts::write_parts;
use crate::south::pending::{Awaits, Purpose};
use crate::store::Kind;
use crate::switch::{Request, Share, Switch, Waiter};
use crate::tally::cookies_of;
use crate::time::Instant;
use crate::v13::flow_mod::{next_table, owner_of, physical_table, sends_to, tenants_match};
use crate::v13::unreadable;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use compile::{Reason, Refused, metadata};
use flowspace::{Field, MiniWords};
use openflow::error::v13 as code;
use openflow::text::Text;
use openflow::v13::{
    AggregateStats, DescStats, FlowStats, FlowStatsRequest, GROUP_ANY, GroupDesc, GroupFeatures,
    GroupMod, METER_ALL, MatchBuf, MessageType, MeterConfig, MeterFeatures, MeterMod, MeterStats,
    MultipartFlags, MultipartReply, MultipartReplyBody, MultipartRequest, MultipartRequestBody,
    MultipartType, PortNo, PortStats, QUEUE_ALL, QueueStats, TABLE_ALL, TableStats,
};
use openflow::{Encode, ErrorCode, List, frame, v13};

/// A long answer: each counts as several messages for the switch.
const LONG: u32 = 4;

/// The header of a multipart message's body.
const MULTIPART_HEADER: usize = 8;

impl Switch {
    /// A tenant asks for statistics.
    pub(crate) fn statistics_v13(&mut self, request: &Request<'_>) -> Result<(), Refused> {
        let asked = MultipartRequest::parse(request.body()).map_err(unreadable)?;
        let tenant = request.tenant;
        if asked.flags.contains(MultipartFlags::MORE) {
            return Err(code::BAD_REQUEST_MULTIPART_BUFFER_OVERFLOW.into());
        }
        match asked.body {
            MultipartRequestBody::Desc => self.describe_v13(request),
            MultipartRequestBody::Table => {
                let everything = FlowStatsRequest::default();
                let mut questions = self.flow_question_v13(tenant, &everything, false)?;
                if !self.datapath.is_joined() {
                    questions.extend_from_slice(&self.question_of_table_0(tenant)?);
                }
                self.collect(request, MultipartType::FLOW.0, Share::Tenant, &questions, LONG);
            }
            MultipartRequestBody::PortDesc if self.configures_ports(tenant) => {
                self.postpone(request);
            }
            MultipartRequestBody::PortDesc => self.port_descriptions(request),
            MultipartRequestBody::GroupDesc => self.group_descriptions(request),
            MultipartRequestBody::MeterConfig { meter_id } => {
                self.meter_configurations(request, meter_id)?;
            }
            MultipartRequestBody::Flow(filter) => {
                let question = self.flow_question_v13(tenant, &filter, false)?;
                self.collect(request, MultipartType::FLOW.0, Share::Tenant, &question, LONG);
            }
            MultipartRequestBody::Aggregate(filter) => {
                // The switch can add up by itself, unless the tenant's cookies are a part of the question.
                let is_slice = self.tenants[tenant.0 as usize].network.is_none();
                let by_switch = filter.cookie_mask == 0 && is_slice && !self.datapath.is_joined();
                let type_ = if by_switch { MultipartType::AGGREGATE } else { MultipartType::FLOW };
                let question = self.flow_question_v13(tenant, &filter, by_switch)?;
                self.collect(request, type_.0, Share::Tenant, &question, LONG);
            }
            MultipartRequestBody::PortStats { port_no } => {
                if port_no != PortNo::ANY && !self.has_port(tenant, port_no.0) {
                    return Err(code::BAD_REQUEST_BAD_PORT.into());
                }
                let is_network = self.tenants[tenant.0 as usize].network.is_some();
                let port_no = if is_network { PortNo::ANY } else { port_no };
                let question = question(MultipartRequestBody::PortStats { port_no })?;
                let share = self.share_of_ports(tenant);
                self.collect(request, MultipartType::PORT_STATS.0, share, &question, 1);
            }
            MultipartRequestBody::Queue { port_no, queue_id } => {
                if port_no != PortNo::ANY && !self.has_port(tenant, port_no.0) {
                    return Err(code::QUEUE_OP_FAILED_BAD_PORT.into());
                }
                let state = &self.tenants[tenant.0 as usize];
                let is_network = state.network.is_some();
                if queue_id != QUEUE_ALL
                    && (is_network || !state.terms.queues().contains(&queue_id))
                {
                    return Err(code::QUEUE_OP_FAILED_BAD_QUEUE.into());
                }
                if is_network {
                    // Virtual ports have no queues.
                    self.collect(request, MultipartType::QUEUE.0, Share::Tenant, &[], 1);
                    return Ok(());
                }
                self.ask_switch(request, MultipartRequestBody::Queue { port_no, queue_id }, 1)?;
            }
            MultipartRequestBody::Group { group_id } => {
                let questions = self.group_questions(tenant, group_id);
                let questions = questions.map_err(|_| code::BAD_REQUEST_BAD_LEN)?;
                self.collect(request, MultipartType::GROUP.0, Share::Tenant, &questions, 1);
            }
            MultipartRequestBody::Meter { meter_id } => {
                let known = self.numbers(tenant, Kind::Meter).get(meter_id);
                let meter_id = match known {
                    // Filtered in the answer.
                    _ if meter_id == METER_ALL => METER_ALL,
                    Some(known) => known.instances.id(),
                    None => return Err(code::METER_MOD_FAILED_UNKNOWN_METER.into()),
                };
                self.ask_switch(request, MultipartRequestBody::Meter { meter_id }, 1)?;
            }
            MultipartRequestBody::GroupFeatures => {
                self.ask_switch(request, MultipartRequestBody::GroupFeatures, 1)?;
            }
            MultipartRequestBody::MeterFeatures => {
                self.ask_switch(request, MultipartRequestBody::MeterFeatures, 1)?;
            }
            MultipartRequestBody::TableFeatures(wanted) => {
                if !wanted.is_empty() {
                    return Err(code::TABLE_FEATURES_FAILED_EPERM.into());
                }
                self.ask_switch(request, MultipartRequestBody::TableFeatures(List::EMPTY), LONG)?;
            }
            MultipartRequestBody::Experimenter { experimenter, .. } => {
                if !self.tenants[tenant.0 as usize].terms.experimenters().contains(&experimenter) {
                    return Err(code::BAD_REQUEST_BAD_EXPERIMENTER.into());
                }
                let mut question = request.frame.to_vec();
                frame::set_xid(&mut question, 0);
                self.collect(request, MultipartType::EXPERIMENTER.0, Share::Tenant, &question, 1);
            }
            MultipartRequestBody::Unknown { .. } => {
                return Err(code::BAD_REQUEST_BAD_MULTIPART.into());
            }
        }
        Ok(())
    }

    /// Asks the switch something that is the same for everybody.
    fn ask_switch(
        &mut self,
        request: &Request<'_>,
        body: MultipartRequestBody<'_>,
        cost: u32,
    ) -> Result<(), ErrorCode> {
        let question = question(body)?;
        let type_ = MultipartRequest::from(body).type_().0;
        self.collect(request, type_, Share::Anybody, &question, cost);
        Ok(())
    }

    /// A part of an answer of the switch.
    pub(crate) fn statistics_reply_v13(
        &mut self,
        xid: u32,
        body: &[u8],
        now: Instant,
    ) -> Result<(), ErrorCode> {
        let reply = MultipartReply::parse(body).map_err(unreadable)?;
        let more = reply.flags.contains(MultipartFlags::MORE);
        let entry = self.acknowledge(xid, now).ok_or(code::BAD_REQUEST_BAD_MULTIPART)?;
        if !more {
            self.session.take(xid);
        }
        let entries = body.get(MULTIPART_HEADER..).unwrap_or_default();
        match entry.awaits {
            Awaits::Collection(collection) => {
                let of_groups = matches!(reply.body, MultipartReplyBody::Group(_));
                let asking = self.asks(collection).filter(|_| of_groups);
                let own = asking.map(|tenant| self.of_own_groups(tenant, entries));
                self.collection_part(collection, own.as_deref().unwrap_or(entries), more, now);
                return Ok(());
            }
            Awaits::Counts(tenant) => {
                self.counts_part(tenant, entries, more, now);
                return Ok(());
            }
            Awaits::Idle(tenant, number, begun) => {
                self.idle_part((tenant, number, begun), entries, more, now);
                return Ok(());
            }
            Awaits::Own(Purpose::Space) => {
                match reply.body {
                    MultipartReplyBody::TableFeatures(tables) => self.space_said_v13(tables),
                    MultipartReplyBody::GroupFeatures(groups) => self.groups_said(&groups),
                    MultipartReplyBody::MeterFeatures(meters) => self.meters_said(&meters),
                    _ => {}
                }
                return Ok(());
            }
            Awaits::Own(Purpose::Full(table)) => {
                if let MultipartReplyBody::Table(tables) = reply.body {
                    self.space_found_v13(table, tables);
                }
                return Ok(());
            }
            Awaits::Own(Purpose::Description) => {
                if let MultipartReplyBody::Desc(it) = reply.body {
                    let words = [it.mfr_desc.as_str(), it.hw_desc.as_str(), it.sw_desc.as_str()];
                    self.is_described(Some(words));
                }
                return Ok(());
            }
            Awaits::Own(Purpose::PortCounters) => {
                if let MultipartReplyBody::PortStats(ports) = reply.body {
                    self.traffic_part_v13(ports, more, now);
                }
                return Ok(());
            }
            Awaits::Own(Purpose::Flows) => {
                if let MultipartReplyBody::Flow(rules) = reply.body {
                    self.learn_rules(rules.iter().map(|it| (it.cookie, it)));
                }
            }
            Awaits::Own(Purpose::Groups) => {
                if let MultipartReplyBody::GroupDesc(groups) = reply.body {
                    self.datapath.learn_groups(entries, groups.iter().count());
                }
            }
            Awaits::Own(Purpose::Meters) => {
                if let MultipartReplyBody::MeterConfig(meters) = reply.body {
                    self.datapath.learn_meters(entries, meters.iter().count());
                }
            }
            Awaits::Own(Purpose::Ports) => {
                if let MultipartReplyBody::PortDesc(ports) = reply.body {
                    for port in ports {
                        let (number, port) = crate::v13::ports::known(&port);
                        self.datapath.set_port(number, Some(port));
                    }
                }
            }
            _ => return Err(code::BAD_REQUEST_BAD_MULTIPART),
        }
        self.datapath.count_told(entries.len());
        if !self.has_told_too_much() && !more {
            self.learned_one(now);
        }
        Ok(())
    }

    /// The answer for one who waited.
    pub(crate) fn answer_statistics_v13(&mut self, type_: u16, waiter: &Waiter, answers: &[u8]) {
        let Ok(asked) = MultipartRequest::parse(&waiter.request) else { return };
        let tenant = waiter.origin.tenant;
        let xid = waiter.origin.xid;
        let mut out = Vec::new();
        let written = match asked.body {
            MultipartRequestBody::Flow(filter) => {
                let entries = self.flow_statistics_v13(tenant, &filter, answers);
                write_parts(
                    self.version(),
                    MultipartType::FLOW.0,
                    xid,
                    entries.into_iter(),
                    &mut out,
                )
            }
            MultipartRequestBody::Table => {
                let tables = self.table_statistics_v13(tenant, answers);
                write_parts(
                    self.version(),
                    MultipartType::TABLE.0,
                    xid,
                    tables.into_iter(),
                    &mut out,
                )
            }
            MultipartRequestBody::Aggregate(filter) if type_ == MultipartType::FLOW.0 => {
                let mut sum = AggregateStats::default();
                for entry in self.flow_statistics_v13(tenant, &filter, answers) {
                    sum.packet_count = sum.packet_count.saturating_add(entry.packet_count);
                    sum.byte_count = sum.byte_count.saturating_add(entry.byte_count);
                    sum.flow_count += 1;
                }
                MultipartReply::from(MultipartReplyBody::Aggregate(sum))
                    .write_message(xid, &mut out)
            }
            MultipartRequestBody::PortStats { port_no }
                if let Some(network) = self.tenants[tenant.0 as usize].network.as_deref() =>
            {
                let traffic = |number| self.traffic(tenant, number);
                let counted = port_statistics(network, port_no, answers, traffic);
                write_parts(self.version(), type_, xid, counted.into_iter(), &mut out)
            }
            MultipartRequestBody::PortStats { .. } => {
                let all = List::<PortStats>::parse(answers).unwrap_or_default();
                let seen = all
                    .iter()
                    .filter(|port| self.map.ownership().sees_port(tenant, port.port_no.0));
                write_parts(self.version(), type_, xid, seen, &mut out)
            }
            MultipartRequestBody::Queue { .. } => {
                let all = List::<QueueStats>::parse(answers).unwrap_or_default();
                let allowed = self.tenants[tenant.0 as usize].terms.queues();
                let seen = all.iter().filter(|queue| {
                    allowed.contains(&queue.queue_id)
                        && self.map.ownership().sees_port(tenant, queue.port_no.0)
                });
                write_parts(self.version(), type_, xid, seen, &mut out)
            }
            MultipartRequestBody::Group { .. } => {
                let own = self.group_statistics(tenant, answers);
                let own = own.iter().map(Vec::as_slice);
                write_parts(self.version(), type_, xid, own, &mut out)
            }
            MultipartRequestBody::Meter { .. } => {
                let all = List::<MeterStats<'_>>::parse(answers).unwrap_or_default();
                let meters = self.numbers(tenant, Kind::Meter);
                let own = all.iter().filter_map(|meter| {
                    let meter_id = meters.of_physical(meter.meter_id)?;
                    Some(MeterStats { meter_id, ..meter })
                });
                write_parts(self.version(), type_, xid, own, &mut out)
            }
            MultipartRequestBody::TableFeatures(_) => {
                let tables = self.own_table_features(tenant, answers);
                write_parts(self.version(), type_, xid, tables.iter().map(Vec::as_slice), &mut out)
            }
            MultipartRequestBody::GroupFeatures => {
                let said = List::<GroupFeatures>::parse(answers).unwrap_or_default();
                let own = said.iter().map(|said| self.own_group_features(tenant, said));
                write_parts(self.version(), type_, xid, own, &mut out)
            }
            MultipartRequestBody::MeterFeatures => {
                let said = List::<MeterFeatures>::parse(answers).unwrap_or_default();
                let own = said.iter().map(|said| self.own_meter_features(tenant, said));
                write_parts(self.version(), type_, xid, own, &mut out)
            }
            // Aggregates and experimenters' answers are one structure each.
            _ => {
                frame::write(self.version(), MessageType::MULTIPART_REPLY.0, xid, &mut out, |out| {
                    Encode::write(&asked.type_(), out);
                    out.extend_from_slice(&[0; 6]);
                    out.extend_from_slice(answers);
                })
            }
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

    fn flow_statistics_v13(
        &self,
        tenant: TenantIndex,
        filter: &FlowStatsRequest<'_>,
        answers: &[u8],
    ) -> Vec<FlowStats<'_>> {
        let state = &self.tenants[tenant.0 as usize];
        if state.network.is_some() {
            return self.network_flow_statistics_v13(tenant, filter, answers);
        }
        let Ok(wanted) = tenants_match(&filter.match_, self.metadata_kept(tenant)) else {
            return Vec::new();
        };
        let (mut found, wanted) = (Vec::new(), MiniWords::of(&wanted));
        for entry in List::<FlowStats<'_>>::parse(answers).unwrap_or_default() {
            let Some(cookie) = owner_of(entry.cookie, self.settings.installation)
                .filter(|cookie| cookie.tenant == state.id)
            else {
                continue;
            };
            let Some(flow) = state.flows.get(cookie.number) else { continue };
            let meant = flow.match_.is_within(&wanted)
                && (filter.table_id == TABLE_ALL || filter.table_id == flow.table)
                && (flow.cookie ^ filter.cookie) & filter.cookie_mask == 0
                && sends_to(
                    &flow.actions,
                    &Wanted {
                        out_port: filter.out_port,
                        out_group: filter.out_group,
                        ..Wanted::EVERYTHING
                    },
                );
            if meant {
                found.push(FlowStats {
                    table_id: flow.table,
                    duration_sec: entry.duration_sec,
                    duration_nsec: entry.duration_nsec,
                    priority: flow.priority,
                    idle_timeout: flow.idle_timeout,
                    hard_timeout: flow.hard_timeout,
                    flags: v13::FlowModFlags(flow.flags),
                    cookie: flow.cookie,
                    packet_count: entry.packet_count,
                    byte_count: entry.byte_count,
                    match_: v13::Match::parse(&flow.match_wire).unwrap_or(v13::Match::ANY),
                    instructions: List::parse(&flow.actions).unwrap_or_default(),
                });
            }
        }
        found
    }

    fn flow_question_v13(
        &self,
        tenant: TenantIndex,
        filter: &FlowStatsRequest<'_>,
        aggregate: bool,
    ) -> Result<Vec<u8>, Refused> {
        if filter.table_id != TABLE_ALL && filter.table_id >= self.tenant_tables(tenant) {
            return Err(code::BAD_REQUEST_BAD_TABLE_ID.into());
        }
        let mut wanted = tenants_match(&filter.match_, self.metadata_kept(tenant))?;
        let mut out_port = filter.out_port;
        let is_network = self.tenants[tenant.0 as usize].network.is_some();
        if is_network {
            // Ports have other numbers on the switch: the answer is filtered.
            wanted = wanted.without(Field::InPort);
            out_port = PortNo::ANY;
        }
        let (value, mask) = wanted.get(Field::Metadata);
        let id = self.tenants[tenant.0 as usize].id;
        let own = if self.datapath.is_joined() {
            (0, 0)
        } else {
            (metadata::of_tenant(id), metadata::TENANT)
        };
        let (value, mask) = (value | u128::from(own.0), mask | u128::from(own.1));
        let mut fields = MatchBuf::new();
        wanted
            .with_masked(Field::Metadata, value, mask)
            .to_v13(&mut fields)
            .map_err(|_| code::BAD_MATCH_BAD_WILDCARDS)?;
        let out_group = match filter.out_group {
            GROUP_ANY => GROUP_ANY,
            number => match self.numbers(tenant, Kind::Group).get(number) {
                // And groups may have several.
                Some(_) if is_network => GROUP_ANY,
                Some(known) => known.instances.id(),
                // No such group, so nothing points to it: no question, and an empty answer.
                None if !aggregate => return Ok(Vec::new()),
                // A number that is never given out.
                None => v13::GROUP_MAX,
            },
        };
        let filter = FlowStatsRequest {
            table_id: physical_table(filter.table_id, self.target().first_table()),
            out_port,
            out_group,
            cookie: 0,
            cookie_mask: 0,
            match_: fields.as_match(),
        };
        Ok(question(if aggregate {
            MultipartRequestBody::Aggregate(filter)
        } else {
            MultipartRequestBody::Flow(filter)
        })?)
    }

    fn describe_v13(&mut self, request: &Request<'_>) {
        let name = self.tenants[request.tenant.0 as usize].terms.name().to_string();
        let serial = alloc::format!("{:016x}", self.datapath_of(request.tenant));
        let is_network = self.tenants[request.tenant.0 as usize].network.is_some();
        let hw_desc = if is_network { "virtual switch" } else { "slice of an OpenFlow switch" };
        self.reply(request, |_, out| {
            MultipartReply::from(MultipartReplyBody::Desc(DescStats {
                mfr_desc: Text::new("Weir"),
                hw_desc: Text::new(hw_desc),
                sw_desc: Text::new(concat!("weir ", env!("CARGO_PKG_VERSION"))),
                serial_num: Text::new(serial.as_str()),
                dp_desc: Text::new(name.as_str()),
            }))
            .write_message(request.header.xid, out)
        });
    }

    /// What the entries of table 0 have counted by which a tenant's packets come to its tables.
    fn question_of_table_0(&self, tenant: TenantIndex) -> Result<Vec<u8>, ErrorCode> {
        let (cookie, cookie_mask) =
            cookies_of(self.tenants[tenant.0 as usize].id, self.settings.installation);
        let filter =
            FlowStatsRequest { table_id: 0, cookie, cookie_mask, ..FlowStatsRequest::default() };
        question(MultipartRequestBody::Flow(filter))
    }

    fn table_statistics_v13(&mut self, tenant: TenantIndex, answers: &[u8]) -> Vec<TableStats> {
        let tables = self.tenant_tables(tenant);
        let first = self.target().first_table();
        let state = &mut self.tenants[tenant.0 as usize];
        let mut active = vec![0u32; tables.into()];
        let mut standing = Standing::new(tables);
        for (_, flow) in state.flows.iter() {
            if let Some(count) = active.get_mut(usize::from(flow.table)) {
                *count += 1;
            }
            standing.matched(flow.table, next_table(&flow.actions), flow.past_packets);
        }
        for entry in List::<FlowStats<'_>>::parse(answers).unwrap_or_default() {
            let packets = entry.packet_count;
            match owner_of(entry.cookie, self.settings.installation)
                .filter(|cookie| cookie.tenant == state.id)
            {
                Some(cookie) => {
                    if let Some(flow) = state.flows.get(cookie.number) {
                        standing.matched(flow.table, next_table(&flow.actions), packets);
                    }
                }
                None if entry.table_id < first
                    && next_table(entry.instructions.as_bytes()).is_some() =>
                {
                    standing.came(packets);
                }
                None => {}
            }
        }
        let counts = state.packets.looked_up(standing);
        let tables = active.into_iter().zip(counts).zip(0..);
        let told = tables.map(|((active_count, counts), table_id)| TableStats {
            table_id,
            active_count,
            lookup_count: counts.came,
            matched_count: counts.matched,
        });
        told.collect()
    }

    fn port_descriptions(&mut self, request: &Request<'_>) {
        let ports = self.described_ports(request.tenant);
        self.reply(request, |switch, out| {
            let seen = ports.values().map(Vec::as_slice);
            write_parts(switch.version(), MultipartType::PORT_DESC.0, request.header.xid, seen, out)
        });
    }

    /// The tenant's groups as it described them: the switch is not needed for that.
    fn group_descriptions(&mut self, request: &Request<'_>) {
        let tenant = request.tenant;
        self.reply(request, |switch, out| {
            let groups = switch.numbers(tenant, Kind::Group);
            let described = groups.all().into_iter().filter_map(|group_id| {
                let GroupMod { type_, buckets, .. } =
                    GroupMod::parse(&groups.get(group_id)?.body).ok()?;
                Some(GroupDesc { type_, group_id, buckets })
            });
            write_parts(
                switch.version(),
                MultipartType::GROUP_DESC.0,
                request.header.xid,
                described,
                out,
            )
        });
    }

    /// The tenant's meters as it described them.
    fn meter_configurations(
        &mut self,
        request: &Request<'_>,
        meter_id: u32,
    ) -> Result<(), ErrorCode> {
        let tenant = request.tenant;
        if meter_id != METER_ALL && self.numbers(tenant, Kind::Meter).get(meter_id).is_none() {
            return Err(code::METER_MOD_FAILED_UNKNOWN_METER);
        }
        self.reply(request, |switch, out| {
            let meters = switch.numbers(tenant, Kind::Meter);
            let described = meters.iter().filter_map(|(number, known)| {
                let MeterMod { flags, bands, .. } = MeterMod::parse(&known.body).ok()?;
                let wanted = meter_id == METER_ALL || meter_id == number;
                wanted.then_some(MeterConfig { flags, meter_id: number, bands })
            });
            write_parts(
                switch.version(),
                MultipartType::METER_CONFIG.0,
                request.header.xid,
                described,
                out,
            )
        });
        Ok(())
    }
}

fn question(body: MultipartRequestBody<'_>) -> Result<Vec<u8>, ErrorCode> {
    let mut out = Vec::new();
    MultipartRequest::from(body)
        .write_message(0, &mut out)
        .map_err(|_| code::BAD_REQUEST_BAD_LEN)?;
    Ok(out)
}
