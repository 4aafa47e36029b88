//! Questions for statistics to the switch (1.0).

use alloc::vec::Vec;
use openflow::v10::{StatsRequest, StatsRequestBody};

/// "Not counted" (specification section 5.3.5: unsupported counters are set to -1).
pub(super) const UNSUPPORTED: u64 = u64::MAX;

/// A long answer: each counts as several messages for the switch.
pub(super) const FLOWS_COST: u32 = 4;

/// The message.
pub(super) fn question(body: StatsRequestBody<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    let written = StatsRequest::from(body).write_message(0, &mut out);
    debug_assert!(written.is_ok());
    out
}
