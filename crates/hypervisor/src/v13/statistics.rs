//! Questions of Weir for statistics, and the contents of answers.

use super::flow_mod::tenants_match;
use super::unreadable;
use crate::flows::{Asked, Counted, Flow, Rule, Wanted};
use crate::parts::written;
use crate::south::pending::{Awaits, Purpose};
use crate::south::queue::Question;
use crate::south::reports::{Age, ReportedRule, TimeoutsAndFlags};
use crate::tally::Count;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use compile::Refused;
use flowspace::Match;
use openflow::error::v13 as code;
use openflow::v13::{
    BucketCounter, ConfigFlags, FlowModFlags, FlowStats, FlowStatsRequest, GroupStats, METER_ALL,
    Match as WireMatch, Message, MultipartFlags, MultipartReply, MultipartRequest,
    MultipartRequestBody, PortNo, PortStats, QueueStats, SwitchConfig, TABLE_ALL, TableStats,
};
use openflow::{ErrorCode, List, ListBuf};

/// The configuration and the questions that a switch gets when it connects.
pub(crate) fn questions(miss_send_len: u16) -> Vec<(Awaits, Vec<u8>)> {
    let mut config = Vec::new();
    let written =
        Message::SetConfig(SwitchConfig { flags: ConfigFlags::FRAG_NORMAL, miss_send_len })
            .write(0, &mut config);
    debug_assert!(written.is_ok());
    vec![
        (Awaits::Nothing, config),
        (Awaits::Own(Purpose::Ports), ask(MultipartRequestBody::PortDesc)),
        (Awaits::Own(Purpose::Groups), ask(MultipartRequestBody::GroupDesc)),
        (
            Awaits::Own(Purpose::Meters),
            ask(MultipartRequestBody::MeterConfig { meter_id: METER_ALL }),
        ),
        (Awaits::Own(Purpose::Flows), ask(MultipartRequestBody::Flow(FlowStatsRequest::default()))),
    ]
}

/// The rules in the switch's answer to a question for its flows.
pub(crate) fn reported_rules(entries: &[u8]) -> Vec<ReportedRule> {
    List::<FlowStats<'_>>::parse(entries)
        .unwrap_or_default()
        .iter()
        .filter_map(|entry| {
            Some(ReportedRule {
                table: entry.table_id,
                // Weir has not written a match that it cannot read.
                match_: Match::from_v13(&entry.match_).ok()?,
                match_wire: written(&entry.match_),
                priority: entry.priority,
                cookie: entry.cookie,
                actions: entry.instructions.as_bytes().to_vec(),
                packets: entry.packet_count,
                stood: Age { duration_sec: entry.duration_sec, duration_nsec: entry.duration_nsec },
                terms: TimeoutsAndFlags {
                    idle_timeout: entry.idle_timeout,
                    hard_timeout: entry.hard_timeout,
                    flags: entry.flags.0,
                },
            })
        })
        .collect()
}

/// One question for the counters of the entry, by its cookie.
pub(crate) fn questions_of(
    flow: &Flow,
    _except: &Rule,
    cookie: u64,
    first_table: u8,
) -> Vec<Question> {
    let table_id = flow.table.saturating_add(first_table);
    let filter = FlowStatsRequest { table_id, cookie, cookie_mask: u64::MAX, ..Default::default() };
    Vec::from([question(filter)])
}

/// A question for the counters of rules.
pub(crate) fn question(filter: FlowStatsRequest<'_>) -> Question {
    Question { message: ask(MultipartRequestBody::Flow(filter)), cost: 1 }
}

/// The message of a question.
pub(crate) fn ask(body: MultipartRequestBody<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    let written = MultipartRequest::from(body).write_message(0, &mut out);
    debug_assert!(written.is_ok());
    out
}

/// A tenant's request for statistics.
pub(crate) fn asked(body: &[u8], metadata_kept: u64) -> Result<Asked<'_>, Refused> {
    let of = |filter: FlowStatsRequest<'_>| -> Result<Wanted, Refused> {
        Ok(Wanted {
            match_: tenants_match(&filter.match_, metadata_kept)?,
            table: (filter.table_id != TABLE_ALL).then_some(filter.table_id),
            cookie: filter.cookie,
            cookie_mask: filter.cookie_mask,
            out_port: filter.out_port,
            out_group: filter.out_group,
        })
    };
    let asked = MultipartRequest::parse(body).map_err(unreadable)?;
    if asked.flags.contains(MultipartFlags::MORE) {
        return Err(code::BAD_REQUEST_MULTIPART_BUFFER_OVERFLOW.into());
    }
    Ok(match asked.body {
        MultipartRequestBody::Flow(filter) => Asked::Flows(of(filter)?),
        MultipartRequestBody::Aggregate(filter) => Asked::Aggregate(of(filter)?),
        body => Asked::Other(body),
    })
}

/// The question for a tenant's request, as Weir's own message.
pub(crate) fn ask_again(body: &[u8]) -> Vec<u8> {
    MultipartRequest::parse(body).map(|it| ask(it.body)).unwrap_or_default()
}

/// Whether more parts of the switch's answer follow.
pub(crate) fn has_more(body: &[u8]) -> Result<bool, ErrorCode> {
    let reply = MultipartReply::parse(body).map_err(unreadable)?;
    Ok(reply.flags.contains(MultipartFlags::MORE))
}

/// The counters of rules on the switch.
pub(crate) fn counted(entries: &[u8]) -> Vec<Counted<'_>> {
    let entries = List::<FlowStats<'_>>::parse(entries).unwrap_or_default();
    let counted = entries.iter().map(|it| Counted {
        cookie: it.cookie,
        table: it.table_id,
        count: Count { packets: it.packet_count, bytes: it.byte_count },
        stood: Age { duration_sec: it.duration_sec, duration_nsec: it.duration_nsec },
        actions: it.instructions.as_bytes(),
    });
    counted.collect()
}

/// Appends flow statistics of a tenant's entry.
pub(crate) fn write_flow_statistics(flow: &Flow, count: Count, stood: Age, out: &mut Vec<u8>) {
    FlowStats {
        table_id: flow.table,
        duration_sec: stood.duration_sec,
        duration_nsec: stood.duration_nsec,
        priority: flow.priority,
        idle_timeout: flow.idle_timeout,
        hard_timeout: flow.hard_timeout,
        flags: FlowModFlags(flow.flags),
        cookie: flow.cookie,
        packet_count: count.packets,
        byte_count: count.bytes,
        match_: WireMatch::parse(&flow.match_wire).unwrap_or(WireMatch::ANY),
        instructions: List::parse(&flow.actions).unwrap_or_default(),
    }
    .write(out);
}

/// Table statistics of one table. The table features have the size of the table.
pub(crate) fn written_table(
    table_id: u8,
    _most: u32,
    active_count: u32,
    lookup_count: u64,
    matched_count: u64,
) -> Vec<u8> {
    written(&TableStats { table_id, active_count, lookup_count, matched_count })
}

/// Port statistics.
pub(crate) fn ports(entries: &[u8]) -> Vec<PortStats> {
    List::<PortStats>::parse(entries).unwrap_or_default().iter().collect()
}

/// Port statistics of one port.
pub(crate) fn written_port(port: &PortStats) -> Option<Vec<u8>> {
    Some(written(port))
}

/// Queue statistics of the tenant's own queues.
pub(crate) fn own_queues(entries: &[u8], is_own: impl Fn(u32, u32) -> bool) -> Vec<Vec<u8>> {
    let queues = List::<QueueStats>::parse(entries).unwrap_or_default();
    let own = queues.iter().filter(|it| is_own(it.port_no.0, it.queue_id));
    own.map(|it| written(&it)).collect()
}

/// The question for the switch's description.
pub(crate) fn description() -> Vec<u8> {
    ask(MultipartRequestBody::Desc)
}

/// The question for the counters of all ports.
pub(crate) fn port_counters() -> Vec<u8> {
    ask(MultipartRequestBody::PortStats { port_no: PortNo::ANY })
}

/// The questions for the sizes of the tables, and for the most groups and meters.
pub(crate) fn room() -> Vec<Vec<u8>> {
    use MultipartRequestBody as Body;
    [Body::TableFeatures(List::EMPTY), Body::GroupFeatures, Body::MeterFeatures].map(ask).into()
}

/// The question for the numbers of rules in the tables.
pub(crate) fn rules_in_tables() -> Vec<u8> {
    ask(MultipartRequestBody::Table)
}

/// The counters of groups, added up by their numbers.
#[derive(Default)]
pub(crate) struct GroupSums<'a>(BTreeMap<u32, (GroupStats<'a>, Vec<BucketCounter>)>);

impl<'a> GroupSums<'a> {
    /// Adds the counters of a group to those of the same number; the longer duration counts.
    pub(crate) fn add(
        &mut self,
        it: GroupStats<'a>,
        counters: impl IntoIterator<Item = BucketCounter>,
    ) {
        let Some((sum, buckets)) = self.0.get_mut(&it.group_id) else {
            self.0.insert(it.group_id, (it, counters.into_iter().collect()));
            return;
        };
        sum.ref_count = sum.ref_count.max(it.ref_count);
        sum.packet_count = sum.packet_count.saturating_add(it.packet_count);
        sum.byte_count = sum.byte_count.saturating_add(it.byte_count);
        let (mine, its) =
            ((sum.duration_sec, sum.duration_nsec), (it.duration_sec, it.duration_nsec));
        (sum.duration_sec, sum.duration_nsec) = mine.max(its);
        for (bucket, more) in buckets.iter_mut().zip(counters) {
            bucket.packet_count = bucket.packet_count.saturating_add(more.packet_count);
            bucket.byte_count = bucket.byte_count.saturating_add(more.byte_count);
        }
    }

    /// The sum of each group, on the wire.
    pub(crate) fn written(self) -> Vec<Vec<u8>> {
        let all = self.0.into_values().map(|(sum, buckets)| {
            let buckets: ListBuf<BucketCounter> = buckets.into_iter().collect();
            written(&GroupStats { bucket_stats: buckets.as_list(), ..sum })
        });
        all.collect()
    }
}
