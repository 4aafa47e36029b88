//! What the switch is asked of an entry that is several there, to learn whether it is idle, and what the answer means.

use super::flow_mod::physical_table;
use crate::flows::Flow;
use crate::switch::{Question, flow_question};
use alloc::vec::Vec;
use flowspace::Match;
use hashbrown::HashSet;
use openflow::List;
use openflow::v13::{FlowStats, FlowStatsRequest};

/// One question, by the cookie.
pub(crate) fn questions(cookie: u64, flow: &Flow, first_table: u8) -> Vec<Question> {
    let table_id = physical_table(flow.table, first_table);
    let filter = FlowStatsRequest { table_id, cookie, cookie_mask: u64::MAX, ..Default::default() };
    Vec::from([flow_question(filter)])
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
