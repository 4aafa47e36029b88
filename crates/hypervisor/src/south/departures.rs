//! Messages that Weir has sent to the switch: counts by type, and the tenants' messages that the caller has not seen.

use super::pending::{Awaits, Origin};
use crate::counters::{TYPES, count};
use crate::ids::TenantIndex;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::VecDeque;

/// See the module.
#[derive(Default)]
pub(super) struct Departures {
    /// Messages that have left their queues and that the caller has not seen.
    sent: VecDeque<Sent>,
    /// All messages, by type.
    by_type: [u64; TYPES],
    /// Messages that no tenant asked for.
    own: u64,
}

/// A tenant's message that has left its queue.
pub(crate) struct Sent {
    pub tenant: TenantIndex,
    pub type_: Option<u8>,
    pub awaits: Awaits,
    pub operation: Option<u32>,
    pub arrived: Instant,
    /// Whom Weir sends an error because the buffered packet of the message is another packet by now.
    pub refuses: Option<Box<Origin>>,
}

impl Departures {
    /// A tenant's message has left its queue.
    pub(super) fn push(&mut self, sent: Sent) {
        self.sent.push_back(sent);
    }

    /// The next message that has left its queue and that the caller has not seen.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Sent> {
        self.sent.pop_front()
    }

    /// A message of this type has left.
    #[inline]
    pub(super) fn count(&mut self, type_: Option<u8>) {
        if let Some(type_) = type_ {
            count(&mut self.by_type, type_);
        }
    }

    /// A message of this type has left that no tenant asked for.
    pub(super) fn count_own(&mut self, type_: Option<u8>) {
        self.count(type_);
        self.own += 1;
    }

    /// How many messages have left, by type.
    pub(super) fn by_type(&self) -> &[u64; TYPES] {
        &self.by_type
    }

    /// How many messages have left that no tenant asked for.
    pub(super) fn own(&self) -> u64 {
        self.own
    }
}
