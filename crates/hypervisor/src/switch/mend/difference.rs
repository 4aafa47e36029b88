//! The difference between a tenant's rules on the switch and the tables.

use crate::flows::Rule;
use crate::south::diff::Change;
use crate::south::installed::Owner;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use compile::RuleKey;

/// A rule that goes, and the entry that the switch holds the rule for.
pub(crate) type Deletion = (RuleKey, Owner);
/// A rule that comes or changes.
pub(crate) type Addition = (Rule, Change);

/// The difference between a tenant's rules on the switch and the tables.
#[derive(Default)]
pub(crate) struct Difference {
    deletions: Vec<Deletion>,
    /// By the entry.
    additions: BTreeMap<u32, Vec<Addition>>,
}

impl Difference {
    /// A rule goes.
    pub(crate) fn delete(&mut self, key: RuleKey, owner: Owner) {
        self.deletions.push((key, owner));
    }

    /// A rule of an entry comes or changes.
    pub(crate) fn add(&mut self, number: u32, rule: Rule, change: Change) {
        self.additions.entry(number).or_default().push((rule, change));
    }

    /// The rules that go, in the order in which they were found.
    pub(crate) fn deletions(&self) -> &[Deletion] {
        &self.deletions
    }

    /// The rules that come or change, by the entry.
    pub(crate) fn additions(&self) -> &BTreeMap<u32, Vec<Addition>> {
        &self.additions
    }

    /// Deletions and additions.
    pub(crate) fn into_parts(self) -> (Vec<Deletion>, BTreeMap<u32, Vec<Addition>>) {
        (self.deletions, self.additions)
    }

    /// How many rules go.
    pub(crate) fn deleted(&self) -> usize {
        self.deletions.len()
    }

    /// How many rules come or change.
    pub(crate) fn added(&self) -> usize {
        self.additions.values().map(Vec::len).sum()
    }
}
