//! The shadowed rules of a tenant's entries.

use super::Flow;
use alloc::collections::BTreeSet;
use compile::RuleKey;
use hashbrown::{Equivalent, HashMap};

/// What identifies a rule on the switch, to look for.
#[derive(Hash)]
pub(super) struct RuleRef<'a>(pub(super) u8, pub(super) u16, pub(super) &'a [u8]);

impl Equivalent<RuleKey> for RuleRef<'_> {
    fn equivalent(&self, key: &RuleKey) -> bool {
        (self.0, self.1, self.2) == (key.table, key.priority, &*key.match_wire)
    }
}

/// Which entries have shadowed rules.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) waiting: HashMap<RuleKey, BTreeSet<u32>>,
    /// How many rules those are.
    pub(super) rules: usize,
    /// What nobody owns any more.
    pub(super) freed: BTreeSet<RuleKey>,
}

impl Shared {
    pub(super) fn len(&self) -> usize {
        self.rules
    }

    /// An entry is gone.
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

    /// An entry on the switch has an owner.
    pub(super) fn owned(&mut self, key: &RuleKey) {
        if !self.freed.is_empty() {
            self.freed.remove(key);
        }
    }

    /// An entry on the switch has no owner.
    pub(super) fn freed(&mut self, key: RuleKey) {
        if self.waiting.contains_key(&key) {
            self.freed.insert(key);
        }
    }
}
