//! Reports of the switch: rules, groups and meters that it holds, and rules that it has removed.

use crate::time::Instant;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use compile::RuleKey;
use flowspace::Match;

/// A rule that the switch holds.
pub(crate) struct Held {
    pub table: u8,
    pub match_: Match,
    pub match_wire: Vec<u8>,
    pub priority: u16,
    pub cookie: u64,
    pub actions: Vec<u8>,
    /// How long the rule has been installed: seconds and nanoseconds.
    pub stood: (u32, u32),
    /// Idle and hard time-out in seconds, and flags.
    pub terms: (u16, u16, u16),
}

impl Held {
    pub(crate) fn installed(&self, now: Instant) -> Instant {
        let (seconds, rest) = self.stood;
        Instant(now.0.saturating_sub(u64::from(seconds) * 1_000_000_000 + u64::from(rest)))
    }
}

/// Groups and meters that the switch holds, by their ids: see [`content_of`](super::installed::content_of).
pub(crate) struct HeldGroupsAndMeters {
    pub groups: BTreeMap<u32, Vec<u8>>,
    pub meters: BTreeMap<u32, Vec<u8>>,
}

/// A rule that the switch has removed.
pub(crate) struct Removed {
    pub cookie: u64,
    pub key: RuleKey,
    /// OFPFlowRemovedReason: the numbers of 1.0 are those of 1.3.
    pub reason: u8,
    /// Packets and bytes.
    pub counted: (u64, u64),
    /// How long the rule was installed: seconds and nanoseconds.
    pub stood: (u32, u32),
}

/// The time-out of an entry that is over. The numbers are those of OFPFlowRemovedReason, in both versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timeout {
    Idle = 0,
    Hard = 1,
}
