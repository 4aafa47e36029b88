//! What is known of a tenant's rules, groups and meters when a round begins.

use crate::refusals::Verdict;
use crate::store::Kind;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use compile::RuleKey;

/// Something that a tenant has, and for which something stands on the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Object {
    Entry(u32),
    /// A group, also an egress group, or a meter.
    Number(Kind, u32),
}

/// What is to be done once nothing is in flight.
#[derive(Default)]
pub(super) struct Round {
    pub(super) is_due: bool,
    pub(super) refused: BTreeMap<u32, Verdict>,
    pub(super) evicted: BTreeSet<Object>,
    /// Refusals that say that something else is missing, which may be the consequence of another refusal.
    pub(super) missing: Vec<(Result<u32, Object>, Verdict)>,
    pub(super) gone: Vec<Gone>,
}

impl Round {
    pub(super) fn blame(&mut self, blamed: Result<u32, Object>, verdict: Verdict) {
        match blamed {
            Ok(change) => drop(self.refused.entry(change).or_insert(verdict)),
            Err(object) => drop(self.evicted.insert(object)),
        }
    }
}

/// A rule of an entry went by itself: before all changes that were in flight.
#[derive(Debug)]
pub(crate) struct Gone {
    pub number: u32,
    pub key: RuleKey,
    pub reason: u8,
    pub counted: (u64, u64),
    pub stood: (u32, u32),
}
