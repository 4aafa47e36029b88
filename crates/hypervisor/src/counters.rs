//! The core's counters, by tenant and by switch. These are plain numbers; the driver publishes them.

use alloc::vec::Vec;
use openflow::{ErrorCode, v10, v13};

/// Counters for message types: one for each type of 1.0 and 1.3. The last counter is for all higher types.
pub const TYPES: usize = 32;

// The build fails if one of the higher types has a name.
const _: () = {
    let mut type_ = u8::MAX;
    while type_ as usize >= TYPES - 1 {
        assert!(
            v10::MessageType(type_).name().is_none() && v13::MessageType(type_).name().is_none()
        );
        type_ -= 1;
    }
};

/// Buckets of a latency histogram: bucket `i` counts times below `1024 << i` nanoseconds; the last takes the rest.
pub const BUCKETS: usize = 24;

/// Counts of one tenant on one switch.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Messages of the switch for the tenant, by message type.
    pub from_switch: [u64; TYPES],
    /// Messages given to the tenant's controllers, by message type.
    pub to_controller: [u64; TYPES],
    /// Messages from the tenant's controllers, by message type.
    pub from_controller: [u64; TYPES],
    /// Messages sent to the switch for the tenant, by message type.
    pub to_switch: [u64; TYPES],
    /// Requests refused, by error.
    pub refusals: Vec<(ErrorCode, u64)>,
    /// PACKET_INs for the tenant while no controller of the tenant was connected.
    pub absent: u64,
    /// Asynchronous messages dropped because a controller did not read.
    pub overflowed: u64,
    /// PACKET_INs dropped by the tenant's rate limit.
    pub limited: u64,
    /// PACKET_INs that the tenant does not want, by the configuration of a port of its network.
    pub unwanted: u64,
    /// Entries that Weir has examined for the tenant's requests. Longer work counts as several entries.
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
    /// Counts one value, in nanoseconds.
    #[inline]
    pub fn record(&mut self, nanos: u64) {
        let above = (64 - (nanos >> 10).leading_zeros()) as usize;
        self.buckets[above.min(BUCKETS - 1)] += 1;
        self.sum = self.sum.saturating_add(nanos);
    }
}

/// Counts of a switch as a whole.
#[derive(Clone, Debug, Default)]
pub struct SwitchCounters {
    /// Messages from the switch, by message type.
    pub from_switch: [u64; TYPES],
    /// Messages to the switch, by message type. Weir's own messages are included.
    pub to_switch: [u64; TYPES],
    /// PACKET_INs without an owner.
    pub unclaimed: u64,
    /// Malformed or unexpected messages from the switch.
    pub unexpected: u64,
    /// Messages to the switch that no tenant has asked for: barriers, questions, changes, probes.
    pub own_messages: u64,
    /// Requests that the switch never answered.
    pub unanswered: u64,
    /// Changes that Weir has made by itself and that the switch has refused: entries that follow a policy or are
    /// restored after a refusal, and rules of table 0 (1.3). A tenant that loses an entry for this reason gets a
    /// FLOW_REMOVED.
    pub own_refused: u64,
    /// Rules of other installations that the switch held when it connected.
    pub others_entries: u64,
}

/// Counts a message of this type. The last counter is for all higher types.
#[inline]
pub(crate) fn count(counts: &mut [u64; TYPES], type_: u8) {
    counts[usize::from(type_).min(TYPES - 1)] += 1;
}
