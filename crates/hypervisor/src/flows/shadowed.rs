//! The shadowed rules of a tenant's entries.

use super::entry::Flow;
use alloc::collections::BTreeSet;
use compile::RuleKey;
use hashbrown::{Equivalent, HashMap};

/// A rule's key, borrowed for a look-up.
#[derive(Hash)]
pub(super) struct RuleRef<'a>(pub(super) u8, pub(super) u16, pub(super) &'a [u8]);

impl Equivalent<RuleKey> for RuleRef<'_> {
    fn equivalent(&self, key: &RuleKey) -> bool {
        (self.0, self.1, self.2) == (key.table, key.priority, &*key.match_wire)
    }
}

/// The entries that have shadowed rules.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) waiting: HashMap<RuleKey, BTreeSet<u32>>,
    /// The number of shadowed rules.
    pub(super) rules: usize,
    /// Rules without an owner.
    pub(super) freed: BTreeSet<RuleKey>,
}

impl Shared {
    pub(super) fn len(&self) -> usize {
        self.rules
    }

    /// An entry is removed.
    pub(super) fn remove(&mut self, id: u32, flow: &Flow) {
        for rule in flow.shadowed.iter() {
            let key = rule.key(flow.table);
            if let Some(waiting) = self.waiting.get_mut(&key)
                && waiting.remove(&id)
            {
                self.rules -= 1;
                if waiting.is_empty() {
                    self.waiting.remove(&key);
                }
            }
        }
    }

    /// A rule has an owner.
    pub(super) fn owned(&mut self, key: &RuleKey) {
        if !self.freed.is_empty() {
            self.freed.remove(key);
        }
    }

    /// A rule has no owner any more.
    pub(super) fn freed(&mut self, key: RuleKey) {
        if self.waiting.contains_key(&key) {
            self.freed.insert(key);
        }
    }
}
