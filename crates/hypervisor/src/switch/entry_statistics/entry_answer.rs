//! An answer about a tenant's entries, as far as Weir has put it together.

use crate::flows::Wanted;
use crate::lookups::Standing;
use crate::messages::Reported;
use crate::parts::Parts;
use crate::south::reports::Age;
use crate::switch::collect::waiter::Waiter;
use crate::tally::Count;
use alloc::vec;
use alloc::vec::Vec;
use hashbrown::HashMap;

/// See the module.
pub(crate) struct EntryAnswer {
    pub(super) waiter: Waiter,
    pub(super) collection: u32,
    pub(super) form: Form,
    pub(super) wanted: Wanted,
    /// Whether the switch selects the entries.
    pub(super) is_selected: bool,
    /// Bytes of the switch's answers that Weir has read.
    pub(super) read: usize,
    /// The rules that Weir has read.
    pub(super) rules: Reported,
    /// The entries whose rules Weir has read, in the order of the switch's answers; and the counts of each entry's
    /// rules.
    pub(super) reported: Vec<u32>,
    pub(super) sums: HashMap<u32, (Count, Age)>,
    /// The entries that Weir has not reported yet. Weir lists the entries when all bytes are read.
    pub(super) entries: Option<vec::IntoIter<u32>>,
}

/// The kind of an answer about entries.
pub(super) enum Form {
    /// Each entry by itself.
    Flows(Parts),
    /// The number of entries, and the sum of their counts.
    Aggregate { flows: u32, sum: Count },
    /// The number of entries by table, the packets that were looked up in the first table, and the packets that were
    /// looked up in each table and matched an entry there.
    Tables { active: Vec<u32>, looked_up: u64, standing: Standing },
}

impl EntryAnswer {
    /// The tenant's request that waits for the answer.
    pub(crate) fn waiter(&self) -> &Waiter {
        &self.waiter
    }

    /// The collection that has the switch's answers.
    pub(crate) fn collection(&self) -> u32 {
        self.collection
    }

    /// Adds the counts of a rule to its entry. The entry is as old as its oldest rule.
    pub(super) fn add(&mut self, number: u32, count: Count, stood: Age) {
        let EntryAnswer { sums, reported, .. } = self;
        let (sum, oldest) = sums.entry(number).or_insert_with(|| {
            reported.push(number);
            Default::default()
        });
        *sum = sum.plus(count);
        *oldest = stood.max(*oldest);
    }
}
