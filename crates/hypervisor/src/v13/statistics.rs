//! What a switch says that it holds.

use crate::south::held::Held;
use alloc::vec::Vec;
use flowspace::Match;
use openflow::v13::FlowStats;
use openflow::{Encode, List};

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
