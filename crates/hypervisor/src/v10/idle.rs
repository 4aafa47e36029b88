//! What the switch is asked of an entry that is several there, to learn whether it is idle, and what the answers mean.

use super::statistics::{FLOWS_COST, UNSUPPORTED, question};
use crate::flows::{Flow, Rule};
use crate::south::queue::Question;
use alloc::vec::Vec;
use flowspace::Match;
use hashbrown::HashSet;
use openflow::List;
use openflow::v10::{self, FlowStats, FlowStatsRequest, StatsRequestBody};

/// One question for each rule but one, by its match: the answer has narrower entries as well.
pub(crate) fn questions(flow: &Flow, except: &Rule) -> Vec<Question> {
    let asked = flow.rules.iter().filter(|rule| rule.match_wire != except.match_wire);
    let matches = asked.filter_map(|rule| v10::Match::parse(&rule.match_wire).ok());
    let filters = matches.map(|match_| FlowStatsRequest { match_, ..FlowStatsRequest::default() });
    filters
        .map(|filter| Question {
            message: question(StatsRequestBody::Flow(filter)),
            cost: FLOWS_COST,
        })
        .collect()
}

/// The rules of the entry with this cookie that have counted packets.
pub(crate) fn used(entries: &[u8], cookie: u64) -> HashSet<Match> {
    let entries = List::<FlowStats<'_>>::parse(entries).unwrap_or_default();
    let own = entries.iter().filter(|entry| entry.cookie == cookie);
    let used = own.filter(|entry| !matches!(entry.packet_count, 0 | UNSUPPORTED));
    used.map(|entry| Match::from_v10(&entry.match_)).collect()
}
