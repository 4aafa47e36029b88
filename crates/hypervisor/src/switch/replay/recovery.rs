//! What is known while a tenant's tables and the switch are brought together.

use crate::flows::Flow;
use crate::refusals::Verdict;
use crate::store::Kind;
use crate::switch::tenant::Leaving;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use compile::RuleKey;
use hashbrown::HashSet;

/// Something that a tenant has, and for which something stands on the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Object {
    Entry(u32),
    /// A group, also an egress group, or a meter.
    Number(Kind, u32),
}

/// A tenant's tables and the switch are being brought together.
#[derive(Default)]
pub(crate) struct Recovery {
    /// The barrier that shows that nothing is in flight.
    pub(super) barrier: Option<u32>,
    pub(super) round: Round,
    pub(super) rounds: u32,
    /// Groups and meters that the switch has refused once.
    pub(super) tried: BTreeSet<Object>,
    /// Rules that may have to change, and entries that may have to be compiled again.
    pub(super) keys: HashSet<RuleKey>,
    pub(super) entries: BTreeSet<u32>,
    /// Entries that cannot be on the switch.
    pub(super) evicted: BTreeSet<u32>,
    /// Entries that the tables had lost, and have got back.
    pub(super) back: BTreeMap<u32, Back>,
    /// Entries that have ended: told when all is done.
    pub(super) ended: Vec<Ended>,
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

/// A rule of an entry went by itself: before all changes that were in flight.
#[derive(Debug)]
pub(crate) struct Gone {
    pub number: u32,
    pub key: RuleKey,
    pub reason: u8,
    pub counted: (u64, u64),
    pub stood: (u32, u32),
}

/// The end of an entry.
pub(super) struct Ended {
    pub(super) number: u32,
    pub(super) flow: Flow,
    pub(super) reason: u8,
    pub(super) stood: (u32, u32),
}

pub(super) enum Back {
    /// Its last counts were awaited.
    Leaving(Leaving),
    /// Its end was to be told.
    Ended(Ended),
}

impl Round {
    pub(super) fn blame(&mut self, blamed: Result<u32, Object>, verdict: Verdict) {
        match blamed {
            Ok(change) => drop(self.refused.entry(change).or_insert(verdict)),
            Err(object) => drop(self.evicted.insert(object)),
        }
    }
}
