//! What a tenant's rules on the switch differ in from the tables.

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

/// What a tenant's rules on the switch differ in from the tables.
#[derive(Default)]
pub(crate) struct Difference {
    pub(in crate::switch) deletions: Vec<Deletion>,
    /// By the entry.
    pub(in crate::switch) additions: BTreeMap<u32, Vec<Addition>>,
}

impl Difference {
    /// How many rules go.
    pub(in crate::switch) fn deleted(&self) -> usize {
        self.deletions.len()
    }

    /// How many rules come or change.
    pub(in crate::switch) fn added(&self) -> usize {
        self.additions.values().map(Vec::len).sum()
    }
}
