//! What the core counts, per tenant and switch. Plain numbers: the driver publishes them.

use crate::time::Duration;
use alloc::vec::Vec;
use openflow::ErrorCode;

/// Message types that are counted apart (all that 1.0 and 1.3 know).
pub const TYPES: usize = 32;

/// Buckets of a latency histogram: bucket `i` counts times below `1024 << i` nanoseconds; the last takes the rest.
pub const BUCKETS: usize = 24;

/// Counts of one tenant on one switch.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Messages of the switch that were the tenant's, by message type.
    pub from_switch: [u64; TYPES],
    /// Messages given to the tenant's controllers, by message type.
    pub to_controller: [u64; TYPES],
    /// Messages from the tenant's controllers, by message type.
    pub from_controller: [u64; TYPES],
    /// Messages sent to the switch for the tenant, by message type.
    pub to_switch: [u64; TYPES],
    /// Requests refused, by error.
    pub refusals: Vec<(ErrorCode, u64)>,
    /// PACKET_INs that none of the tenant's controllers could be given, because none was connected.
    pub absent: u64,
    /// Asynchronous messages dropped because a controller did not read.
    pub overflowed: u64,
    /// PACKET_INs dropped by the tenant's rate limit.
    pub limited: u64,
    /// PACKET_INs that the tenant does not want, by the configuration of its own network's port.
    pub unwanted: u64,
    /// Entries of the tenant's tables that its requests had Weir examine; what takes longer counts for more of them.
    pub examined: u64,
    /// Time that messages waited for their turn to be sent to the switch.
    pub waited: Histogram,
}

impl Counters {
    /// Counts a refusal.
    pub(crate) fn refuse(&mut self, code: ErrorCode) {
        match self.refusals.iter_mut().find(|(known, _)| *known == code) {
            Some((_, count)) => *count += 1,
            None => self.refusals.push((code, 1)),
        }
    }
}

/// Counts by powers of two.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    /// See [`BUCKETS`].
    pub buckets: [u64; BUCKETS],
    /// Sum of all values, in nanoseconds.
    pub sum: u64,
}

impl Histogram {
    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value: Duration) {
        let above = (64 - (value.0 >> 10).leading_zeros()) as usize;
        self.buckets[above.min(BUCKETS - 1)] += 1;
        self.sum = self.sum.saturating_add(value.0);
    }
}

/// Counts of a switch as a whole.
#[derive(Clone, Debug, Default)]
pub struct SwitchCounters {
    /// Messages from the switch, by message type.
    pub from_switch: [u64; TYPES],
    /// Messages to the switch, the hypervisor's own included, by message type.
    pub to_switch: [u64; TYPES],
    /// PACKET_INs that belong to no tenant.
    pub nobody: u64,
    /// Malformed or unexpected messages from the switch.
    pub unexpected: u64,
    /// Messages to the switch that no tenant asked for: barriers, questions, changes, probes.
    pub own_messages: u64,
    /// Requests that the switch never answered.
    pub unanswered: u64,
    /// Changes that the hypervisor made itself and the switch refused: entries that follow a policy or come back after a
    /// refusal, and what table 0 holds (1.3). A tenant whose entry is lost by it gets FLOW_REMOVED.
    pub own_refused: u64,
    /// Entries that other installations of Weir have left on it, as it said when it connected.
    pub others_entries: u64,
}

/// Counts a message type, whatever its number.
#[inline]
pub(crate) fn count(counts: &mut [u64; TYPES], type_: u8) {
    counts[usize::from(type_).min(TYPES - 1)] += 1;
}
