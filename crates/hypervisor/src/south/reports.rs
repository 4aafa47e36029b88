//! Reports of the switch: rules, groups and meters that it holds, and rules that it has removed.

use crate::tally::Count;
use crate::time::Instant;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use compile::RuleKey;
use flowspace::Match;

/// A rule that the switch holds.
pub(crate) struct ReportedRule {
    pub table: u8,
    pub match_: Match,
    pub match_wire: Vec<u8>,
    pub priority: u16,
    pub cookie: u64,
    pub actions: Vec<u8>,
    /// The packets that the rule has counted.
    pub packets: u64,
    pub stood: Age,
    pub terms: TimeoutsAndFlags,
}

/// How long an entry or a rule has been installed, as OpenFlow writes this time. Weir passes on what the switch
/// reports: a switch that does not know the nanoseconds sets all their bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Age {
    pub duration_sec: u32,
    pub duration_nsec: u32,
}

/// What a MODIFY does not change in an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TimeoutsAndFlags {
    /// Seconds.
    pub idle_timeout: u16,
    /// Seconds.
    pub hard_timeout: u16,
    pub flags: u16,
}

impl ReportedRule {
    pub(crate) fn installed(&self, now: Instant) -> Instant {
        let Age { duration_sec, duration_nsec } = self.stood;
        let stood = u64::from(duration_sec) * 1_000_000_000 + u64::from(duration_nsec);
        Instant(now.0.saturating_sub(stood))
    }
}

/// Groups and meters that the switch holds, by their ids: see [`content_of`](super::installed::content_of).
pub(crate) struct ReportedGroupsAndMeters {
    pub groups: BTreeMap<u32, Vec<u8>>,
    pub meters: BTreeMap<u32, Vec<u8>>,
}

/// A rule that the switch has removed.
pub(crate) struct Removed {
    pub cookie: u64,
    pub key: RuleKey,
    /// OFPFlowRemovedReason: the numbers of 1.0 are those of 1.3.
    pub reason: u8,
    pub counted: Count,
    pub stood: Age,
}

/// The time-out of an entry that is over. The numbers are those of OFPFlowRemovedReason, in both versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timeout {
    Idle = 0,
    Hard = 1,
}
