//! What is known while a tenant's tables and the switch are brought together.

use super::findings::{Findings, Object};
use super::step::Round;
use crate::store::Kind;
use crate::switch::bulk::change::BulkChange;
use crate::switch::timeouts::states::{Ended, Leaving};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use compile::{RuleKey, Variant};
use hashbrown::{HashMap, HashSet};

/// A tenant's tables and the switch are being brought together.
#[derive(Default)]
pub(crate) struct Recovery {
    /// The barrier that shows that nothing is in flight.
    pub(super) barrier: Option<u32>,
    /// Whether the tables show a part of a change, before which the round restores the tables.
    pub(super) is_partial: bool,
    /// The findings for the next round.
    pub(super) findings: Findings,
    pub(super) rounds: u32,
    /// The round that is going on. No message of the tenant is in flight when the round begins.
    pub(super) round: Option<Box<Round>>,
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
    pub(super) ended: Ends,
    /// The ids that groups and meters had on the switch before the round.
    pub(super) ids: BTreeMap<(Kind, u32, Variant), u32>,
    /// The batches that remain of the change that is being applied again.
    pub(super) batches: Option<BulkChange>,
}

impl Recovery {
    /// The change that is being applied again goes on with these batches.
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

    /// The entry has not ended.
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
    /// Its last counts were awaited.
    Leaving(Leaving),
    /// Its end was to be told.
    Ended(Ended),
}
