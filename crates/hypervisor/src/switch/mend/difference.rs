//! The difference between a tenant's rules on the switch and the tables.

use crate::flows::Rule;
use crate::south::diff::Change;
use crate::south::installed::Owner;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use compile::RuleKey;

/// A rule that is to be removed, and the entry that the switch holds the rule for.
pub(crate) type Deletion = (RuleKey, Owner);
/// A rule that is to be added or modified.
pub(crate) type Addition = (Rule, Change);

/// The difference between a tenant's rules on the switch and the tables.
#[derive(Default)]
pub(crate) struct Difference {
    deletions: Vec<Deletion>,
    /// By the entry.
    additions: BTreeMap<u32, Vec<Addition>>,
}

impl Difference {
    /// Adds a rule that is to be removed.
    pub(crate) fn delete(&mut self, key: RuleKey, owner: Owner) {
        self.deletions.push((key, owner));
    }

    /// Adds a rule of an entry that is to be added or modified.
    pub(crate) fn add(&mut self, number: u32, rule: Rule, change: Change) {
        self.additions.entry(number).or_default().push((rule, change));
    }

    /// The rules that are to be removed, in the order in which they were found; and the rules that are to be added or
    /// modified, by the entry.
    pub(crate) fn into_parts(self) -> (Vec<Deletion>, BTreeMap<u32, Vec<Addition>>) {
        (self.deletions, self.additions)
    }
}
