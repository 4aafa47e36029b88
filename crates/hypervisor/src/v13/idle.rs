//! What the switch is asked of an entry that is several there, to learn whether it is idle, and what the answer means.

use crate::south::queue::Question;
use alloc::vec::Vec;
use flowspace::Match;
use hashbrown::HashSet;
use openflow::List;
use openflow::v13::{FlowStats, FlowStatsRequest, MultipartRequest, MultipartRequestBody};

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
