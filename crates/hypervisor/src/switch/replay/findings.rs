//! Findings that make a round of a replay necessary: refusals of the switch, and rules that the switch has removed.

use crate::refusals::Verdict;
use crate::south::reports::Age;
use crate::store::Kind;
use crate::tally::Count;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use compile::RuleKey;

/// An object of a tenant's tables that has rules, groups or meters on the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Object {
    Entry(u32),
    /// A group, an egress group, or a meter.
    Number(Kind, u32),
}

/// The findings for a round.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) is_due: bool,
    pub(super) refused: BTreeMap<u32, Verdict>,
    pub(super) evicted: BTreeSet<Object>,
    /// Refusals that say that something else is missing, which may be the consequence of another refusal.
    pub(super) missing: Vec<(Result<u32, Object>, Verdict)>,
    pub(super) gone: Vec<Gone>,
}

impl Findings {
    pub(super) fn blame(&mut self, blamed: Result<u32, Object>, verdict: Verdict) {
        match blamed {
            Ok(change) => drop(self.refused.entry(change).or_insert(verdict)),
            Err(object) => drop(self.evicted.insert(object)),
        }
    }
}

/// The switch removed a rule of an entry by itself, before all changes that were in flight.
#[derive(Debug)]
pub(crate) struct Gone {
    pub number: u32,
    pub key: RuleKey,
    pub reason: u8,
    pub counted: Count,
    pub stood: Age,
}
