//! What a tenant's request for statistics asks, and what entries on the switch have counted, in one form for all versions.

use super::Wanted;
use crate::tally::Count;
use openflow::v13::MultipartRequestBody;

/// A tenant's request for statistics.
pub(crate) enum Asked<'a> {
    Flows(Wanted),
    /// The number of entries, and the sum of their packets and bytes.
    Aggregate(Wanted),
    /// Anything else, as 1.3 says it.
    Other(MultipartRequestBody<'a>),
}

/// What an entry on the switch has counted.
pub(crate) struct Counted<'a> {
    pub cookie: u64,
    pub table: u8,
    pub count: Count,
    /// How long the entry has stood: seconds and nanoseconds.
    pub duration: (u32, u32),
    /// Actions (1.0) or instructions (1.3).
    pub actions: &'a [u8],
}
