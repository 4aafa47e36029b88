//! What Weir asks a switch for statistics, and what answers say.

use crate::south::held::Held;
use crate::south::queue::Question;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use flowspace::Match;
use hashbrown::HashSet;
use openflow::v13::{
    BucketCounter, FlowStats, FlowStatsRequest, GroupStats, MultipartRequest, MultipartRequestBody,
};
use openflow::{Encode, List, ListBuf};

/// The entries in the switch's answer about its flows.
pub(crate) fn held(entries: &[u8]) -> Vec<Held> {
    List::<FlowStats<'_>>::parse(entries)
        .unwrap_or_default()
        .iter()
        .filter_map(|entry| {
            let mut match_wire = Vec::new();
            Encode::write(&entry.match_, &mut match_wire);
            Some(Held {
                table: entry.table_id,
                // A match that cannot be read is not one of ours.
                match_: Match::from_v13(&entry.match_).ok()?,
                match_wire,
                priority: entry.priority,
                cookie: entry.cookie,
                actions: entry.instructions.as_bytes().to_vec(),
                stood: (entry.duration_sec, entry.duration_nsec),
                terms: (entry.idle_timeout, entry.hard_timeout, entry.flags.0),
            })
        })
        .collect()
}

/// One question, by the cookie; the table is the switch's.
pub(crate) fn questions(cookie: u64, table_id: u8) -> Vec<Question> {
    let filter = FlowStatsRequest { table_id, cookie, cookie_mask: u64::MAX, ..Default::default() };
    Vec::from([question(filter)])
}

/// What entries have counted (1.3).
pub(crate) fn question(filter: FlowStatsRequest<'_>) -> Question {
    let mut message = Vec::new();
    let body = MultipartRequestBody::Flow(filter);
    // It fits: it is a few words.
    let _ = MultipartRequest::from(body).write_message(0, &mut message);
    Question { message, cost: 1 }
}

/// The rules of the entry with this cookie that have counted packets.
pub(crate) fn used(entries: &[u8], cookie: u64) -> HashSet<Match> {
    /// What a switch says that does not count.
    const NOT_COUNTED: u64 = u64::MAX;
    let entries = List::<FlowStats<'_>>::parse(entries).unwrap_or_default();
    let own = entries.iter().filter(|entry| entry.cookie == cookie);
    let used = own.filter(|entry| !matches!(entry.packet_count, 0 | NOT_COUNTED));
    used.filter_map(|entry| Match::from_v13(&entry.match_).ok()).collect()
}

/// What groups have counted, added up by their numbers.
#[derive(Default)]
pub(crate) struct GroupSums<'a>(BTreeMap<u32, (GroupStats<'a>, Vec<BucketCounter>)>);

impl<'a> GroupSums<'a> {
    /// Adds what one has counted, to what is known of the same number; of two durations the longer counts.
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

    /// Each as it stands in an answer.
    pub(crate) fn written(self) -> Vec<Vec<u8>> {
        let written = self.0.into_values().map(|(sum, buckets)| {
            let mut list = ListBuf::<BucketCounter>::new();
            buckets.into_iter().for_each(|bucket| list.push(bucket));
            let mut out = Vec::new();
            Encode::write(&GroupStats { bucket_stats: list.as_list(), ..sum }, &mut out);
            out
        });
        written.collect()
    }
}
