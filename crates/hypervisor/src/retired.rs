//! Rules of entries that the switch was told to delete, until it says that they are gone.
//!
//! An entry may get such a rule back before that is heard: a change is undone, or made again. What the table says of the
//! entry is what will be when all that was sent is done, so the switch's word is about the deletion and not about the table.

use crate::time::{Duration, Instant};
use alloc::sync::Arc;
use alloc::vec::Vec;
use hashbrown::HashMap;

/// By the entry's number.
#[derive(Default)]
pub(crate) struct Retired(HashMap<u32, Vec<Rule>>);

struct Rule {
    match_wire: Arc<[u8]>,
    /// Whether the entry, as it is now, counts what it has counted.
    is_counted: bool,
    /// When its deletion was written.
    since: Instant,
}

impl Retired {
    /// A rule is about to be deleted.
    pub(crate) fn add(&mut self, number: u32, match_wire: Arc<[u8]>, now: Instant) {
        let rule = Rule { match_wire, is_counted: true, since: now };
        self.0.entry(number).or_default().push(rule);
    }

    /// The entry begins to count again: packets that its deleted rules have counted and not yet reported belong to the entry as it was before.
    pub(crate) fn reset_counters(&mut self, number: u32) {
        let rules = self.0.get_mut(&number).into_iter().flatten();
        rules.for_each(|rule| rule.is_counted = false);
    }

    /// The switch has deleted a rule. If it was told to, says whether the entry counts what that has counted.
    pub(crate) fn take(&mut self, number: u32, is_meant: impl Fn(&[u8]) -> bool) -> Option<bool> {
        let rules = self.0.get_mut(&number)?;
        let found = rules.iter().position(|rule| is_meant(&rule.match_wire));
        let taken = found.map(|at| rules.remove(at).is_counted);
        if rules.is_empty() {
            self.0.remove(&number);
        }
        taken
    }

    /// The switch has refused to delete a rule.
    pub(crate) fn stays(&mut self, number: u32, match_wire: &[u8]) {
        let Some(rules) = self.0.get_mut(&number) else { return };
        if let Some(at) = rules.iter().rposition(|rule| *rule.match_wire == *match_wire) {
            rules.remove(at);
        }
    }

    /// What the switch has not told in this time was not there.
    pub(crate) fn settle(&mut self, patience: Duration, now: Instant) {
        self.0.retain(|_, rules| {
            rules.retain(|rule| now - rule.since < patience);
            !rules.is_empty()
        });
    }
}
