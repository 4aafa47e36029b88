//! A tenant's request for statistics, and the counters of rules on the switch, in one form for all versions.

use super::flow_mod::Wanted;
use crate::south::reports::Age;
use crate::tally::Count;
use openflow::v13::MultipartRequestBody;

/// A tenant's request for statistics.
pub(crate) enum Asked<'a> {
    Flows(Wanted),
    /// The number of entries, and the sum of their packets and bytes.
    Aggregate(Wanted),
    /// Any other request, in the form of 1.3.
    Other(MultipartRequestBody<'a>),
}

/// The counters of a rule on the switch.
pub(crate) struct Counted<'a> {
    pub cookie: u64,
    pub table: u8,
    pub count: Count,
    pub stood: Age,
    /// Actions (1.0) or instructions (1.3).
    pub actions: &'a [u8],
}
