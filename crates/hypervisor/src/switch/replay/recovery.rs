//! The state of a recovery: the tenant's tables and the switch are being brought together.

use super::findings::{Findings, Object};
use super::step::Round;
use crate::store::Kind;
use crate::switch::bulk::change::BulkChange;
use crate::switch::timeouts::states::{Ended, Leaving};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use compile::{RuleKey, Variant};
use hashbrown::{HashMap, HashSet};

/// The state of a recovery: the tenant's tables and the switch are being brought together.
#[derive(Default)]
pub(crate) struct Recovery {
    /// The barrier that shows that no message is in flight.
    pub(super) barrier: Option<u32>,
    /// Whether the tables show a part of a change, before which the round restores the tables.
    pub(super) is_partial: bool,
    /// The findings for the next round.
    pub(super) findings: Findings,
    pub(super) rounds: u32,
    /// The present round. No message of the tenant is in flight when a round begins.
    pub(super) round: Option<Box<Round>>,
    /// Groups and meters that the switch has refused once.
    pub(super) tried: BTreeSet<Object>,
    /// Rules that may have to change, and entries that may have to be compiled again.
    pub(super) keys: HashSet<RuleKey>,
    pub(super) entries: BTreeSet<u32>,
    /// Entries that cannot be on the switch.
    pub(super) evicted: BTreeSet<u32>,
    /// Entries that were removed from the tables, and that the replay has restored.
    pub(super) back: BTreeMap<u32, Back>,
    /// Entries that have ended: reported at the end of the replay.
    pub(super) ended: Ends,
    /// The ids that groups and meters had on the switch before the round.
    pub(super) ids: BTreeMap<(Kind, u32, Variant), u32>,
    /// The remaining batches of the change that is being applied again.
    pub(super) batches: Option<BulkChange>,
}

impl Recovery {
    /// Sets the remaining batches of the change that is being applied again.
    pub(crate) fn set_batches(&mut self, batches: BulkChange) {
        self.batches = Some(batches);
    }
}

/// The ends of entries, in the order in which they came.
#[derive(Default)]
pub(super) struct Ends {
    all: BTreeMap<u32, Ended>,
    /// Where the end of each entry is.
    places: HashMap<u32, u32>,
    next: u32,
}

impl Ends {
    /// An entry has ended. An entry ends once.
    pub(super) fn add(&mut self, ended: Ended) {
        if self.places.contains_key(&ended.number) {
            return;
        }
        self.places.insert(ended.number, self.next);
        self.all.insert(self.next, ended);
        self.next += 1;
    }

    /// Takes the end of an entry back: the entry has not ended.
    pub(super) fn take(&mut self, number: u32) -> Option<Ended> {
        self.all.remove(&self.places.remove(&number)?)
    }

    /// Takes the end that came first.
    pub(super) fn pop_first(&mut self) -> Option<Ended> {
        let (_, ended) = self.all.pop_first()?;
        self.places.remove(&ended.number);
        Some(ended)
    }
}

pub(super) enum Back {
    /// Weir waited for its last counters.
    Leaving(Leaving),
    /// Its end was to be reported.
    Ended(Ended),
}
