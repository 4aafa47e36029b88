//! Statistics of a tenant's entries, in batches: the entries, their sums, and the tables.
//!
//! Weir first reads the switch's answers. Then the answer to the tenant follows from a list of the tenant's entries. A
//! long answer is put together in turns of its tenant. In one turn Weir reads or writes at most one part of a reply,
//! and looks at as many entries as one batch of a [change of many entries](super::bulk) compares. Until the end, all
//! changes of tables that the tenant asks for wait, and a replay waits, too. An entry that ends meanwhile is left out
//! if the answer has not reached it.

pub(super) mod entry_answer;

use super::Switch;
use super::bulk::CANDIDATES;
use super::collect::waiter::Waiter;
use crate::cookie::Cookie;
use crate::flows::{Asked, Counted, Flow, Wanted};
use crate::ids::TenantIndex;
use crate::messages;
use crate::parts::{Parts, first_entries, write_parts};
use crate::south::reports::Age;
use crate::tally::Count;
use crate::work::LARGE;
use alloc::vec;
use alloc::vec::Vec;
use compile::{Reason, Wire};
use entry_answer::{EntryAnswer, Form};
use flowspace::MiniWords;
use openflow::v13::{AggregateStats, MultipartRequestBody as Body, MultipartType};
use openflow::{Encode, TooLong};

/// Writing this many bytes of an answer takes as long as examining one entry.
pub(super) const BYTES_EXAMINED: u64 = 16;

/// A tenant's entry, and the counters of the entry's rules.
struct EntryStatistics<'a> {
    wire: Wire,
    flow: &'a Flow,
    count: Count,
    stood: Age,
}

impl Encode for EntryStatistics<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        messages::write_flow_statistics(self.wire, self.flow, self.count, self.stood, out);
    }
}

impl Switch {
    /// Begins the answer to a request about entries. Returns the waiter if the request is about anything else.
    pub(super) fn begin_entry_answer(
        &self,
        collection: u32,
        type_: u16,
        waiter: Waiter,
    ) -> Result<EntryAnswer, Waiter> {
        let (tenant, xid) = (waiter.origin.tenant, waiter.origin.xid);
        if type_ != MultipartType::FLOW.0 {
            return Err(waiter);
        }
        let asked = messages::asked(self.wire, &waiter.request, self.metadata_kept(tenant));
        let (form, wanted) = match asked {
            Ok(Asked::Flows(wanted)) => {
                (Form::Flows(Parts::new(self.version(), type_, xid)), wanted)
            }
            Ok(Asked::Aggregate(wanted)) => {
                (Form::Aggregate { flows: 0, sum: Count::default() }, wanted)
            }
            Ok(Asked::Other(Body::Table)) => {
                let active = vec![0; self.tenant_tables(tenant).into()];
                let form = Form::Tables { active, looked_up: 0, standing: Default::default() };
                (form, Wanted::EVERYTHING)
            }
            // Since the request, the tenant's slice has become a network, or its network a slice.
            Ok(Asked::Other(_)) | Err(_) => return Err(waiter),
        };
        let is_table = matches!(form, Form::Tables { .. });
        let is_selected = !is_table && self.selects_entries(tenant);
        Ok(EntryAnswer {
            waiter,
            collection,
            form,
            wanted,
            is_selected,
            read: 0,
            rules: Default::default(),
            reported: Vec::new(),
            sums: Default::default(),
            entries: None,
        })
    }

    /// Whether Weir has to look at many entries for an answer, or to read many rules of the switch's answers, which
    /// have this many bytes.
    pub(super) fn is_long_answer(&self, type_: u16, waiter: &Waiter, bytes: usize) -> bool {
        let is_of_entries = type_ == MultipartType::FLOW.0;
        let many = if is_of_entries { LARGE.min(self.examined_at_once() as u64) } else { LARGE };
        if bytes as u64 / BYTES_EXAMINED >= many {
            return true;
        }
        let tenant = waiter.origin.tenant;
        let flows = &self.tenants[tenant].flows;
        if !is_of_entries || (flows.len() as u64) < many {
            return false;
        }
        match messages::asked(self.wire, &waiter.request, self.metadata_kept(tenant)) {
            Ok(Asked::Flows(wanted) | Asked::Aggregate(wanted)) => {
                !self.selects_entries(tenant)
                    && flows.has_candidates(many, wanted.table, &wanted.match_)
            }
            Ok(Asked::Other(_)) => true,
            Err(_) => false,
        }
    }

    /// Whether the switch selects the entries of flow statistics: in a slice of 1.3. The tenant gets exactly these
    /// entries, with the switch's counters.
    fn selects_entries(&self, tenant: TenantIndex) -> bool {
        self.target().has_metadata() && self.tenants[tenant].network.is_none()
    }

    /// Entries that one batch looks at.
    fn examined_at_once(&self) -> usize {
        CANDIDATES * self.settings.batch
    }

    /// Puts the next batch of an answer together. Returns whether the answer has ended: complete, or with an error.
    pub(super) fn answer_batch(&mut self, it: &mut EntryAnswer, answers: &[u8]) -> bool {
        let mut out = Vec::new();
        let is_whole = match it.entries.take() {
            None => {
                self.read_counts(it, answers);
                Ok(false)
            }
            Some(entries) => self.report_entries(it, entries, &mut out),
        };
        if !out.is_empty() {
            self.answer(it.waiter.origin.controller, &out);
        }
        is_whole.unwrap_or_else(|TooLong { .. }| {
            // One entry alone is too long for any part.
            let refused = Reason::AnswerTooLarge.with(self.codes().too_much);
            self.refuse(&it.waiter.origin, refused);
            true
        })
    }

    /// Reads the next rules in the switch's answers. Behind the last rule the entries are listed.
    fn read_counts(&self, it: &mut EntryAnswer, answers: &[u8]) {
        let (wire, by, first) =
            (self.wire, self.settings.installation, self.target().first_table());
        let tenant = it.waiter.origin.tenant;
        let state = &self.tenants[tenant];
        let rest = answers.get(it.read..).unwrap_or_default();
        let next = first_entries(rest, self.examined_at_once());
        it.read += next.len();
        state.flows.meter().add(next.len() as u64 / BYTES_EXAMINED);
        for counted in messages::counted_part(wire, next, &mut it.rules) {
            let Counted { cookie, table, count, stood, actions } = counted;
            let own = Cookie::of_entry(cookie, by).filter(|cookie| cookie.tenant == state.id);
            match (own, &mut it.form) {
                (Some(cookie), _) => it.add(cookie.number, count, stood),
                (None, Form::Tables { looked_up, .. })
                    if table < first && messages::next_table(wire, actions).is_some() =>
                {
                    *looked_up = looked_up.saturating_add(count.packets);
                }
                (None, _) => {}
            }
        }
        if next.len() < rest.len() {
            return;
        }
        if let Form::Tables { active, looked_up, standing } = &mut it.form {
            *standing = state.packets.lookups().gone(active.len() as u8);
            standing.looked_up(*looked_up);
        }
        let entries = match it.is_selected {
            true => core::mem::take(&mut it.reported),
            false => state.flows.candidates(&it.wanted),
        };
        it.entries = Some(entries.into_iter());
    }

    /// Reports the next entries, as far as one part of the reply has room. Returns whether no entry is left.
    fn report_entries(
        &mut self,
        it: &mut EntryAnswer,
        mut entries: vec::IntoIter<u32>,
        out: &mut Vec<u8>,
    ) -> Result<bool, TooLong> {
        let words = MiniWords::of(&it.wanted.match_);
        for number in entries.by_ref().take(self.examined_at_once()) {
            self.report_entry(it, number, &words, out)?;
            if !out.is_empty() {
                break;
            }
        }
        let is_whole = entries.len() == 0;
        it.entries = Some(entries);
        if is_whole {
            self.end_entry_answer(it, out)?;
        }
        Ok(is_whole)
    }

    /// Reports an entry with the counts of all rules of the entry, if the request asks for the entry.
    fn report_entry(
        &self,
        it: &mut EntryAnswer,
        number: u32,
        words: &MiniWords,
        out: &mut Vec<u8>,
    ) -> Result<(), TooLong> {
        let (wire, flows) = (self.wire, &self.tenants[it.waiter.origin.tenant].flows);
        flows.meter().add(1);
        let is_wanted = |flow: &&Flow| {
            it.wanted.covers(flow, words, None)
                && messages::sends_to(wire, &flow.actions, &it.wanted)
        };
        let Some(flow) = flows.get(number).filter(is_wanted) else { return Ok(()) };
        let (count, stood) = it.sums.get(&number).copied().unwrap_or_default();
        let count = if it.is_selected { count } else { count.plus(flow.past) };
        match &mut it.form {
            Form::Flows(parts) => {
                return parts.add(&EntryStatistics { wire, flow, count, stood }, out);
            }
            Form::Aggregate { flows, sum } => {
                *flows += 1;
                *sum = sum.plus(count);
            }
            Form::Tables { active, standing, .. } => {
                if let Some(active) = active.get_mut(usize::from(flow.table)) {
                    *active += 1;
                }
                let next = messages::next_table(wire, &flow.actions);
                standing.matched(flow.table, next, count.packets);
            }
        }
        Ok(())
    }

    /// Appends the last part of the reply: the last entries, the sum of all entries, or the tables.
    fn end_entry_answer(&mut self, it: &mut EntryAnswer, out: &mut Vec<u8>) -> Result<(), TooLong> {
        let (version, xid) = (self.version(), it.waiter.origin.xid);
        match &mut it.form {
            Form::Flows(parts) => parts.end(out),
            Form::Aggregate { flows, sum } => {
                let (packet_count, byte_count) = (sum.packets, sum.bytes);
                let sum = AggregateStats { packet_count, byte_count, flow_count: *flows };
                write_parts(version, MultipartType::AGGREGATE.0, xid, [sum], out)
            }
            Form::Tables { active, standing, .. } => {
                let tenant = it.waiter.origin.tenant;
                let standing = core::mem::take(standing);
                let counts = self.tenants[tenant].packets.lookups_mut().reported(standing);
                let tables = active.iter().zip(counts).zip(0..).map(|((active, counts), table)| {
                    let (looked_up, matched) = (counts.looked_up, counts.matched);
                    let most = self.advertised_entries(tenant, table);
                    messages::written_table(self.wire, table, most, *active, looked_up, matched)
                });
                write_parts(version, MultipartType::TABLE.0, xid, tables, out)
            }
        }
    }
}
