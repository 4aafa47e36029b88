//! What the switch will hold becomes what the tables say: after a refusal, a new map, a new connection.
//!
//! Nobody has to know what has happened before. The tables are set first; then each rule that may differ is compared with what
//! [`Installed`](crate::south::installed::Installed) expects on the switch, and gets the message that it needs, if any.

use super::{Cause, Object, Switch};
use crate::flows::Rule;
use crate::ids::TenantIndex;
use crate::messages;
use crate::south::diff;
use crate::south::diff::Change;
use crate::south::installed::{Effect, Owner, State};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use compile::RuleKey;
use hashbrown::{HashMap, HashSet};
use openflow::NO_BUFFER;

/// Rules of an entry that are searched one by one.
const FEW: usize = 8;

/// What a tenant's rules on the switch differ in from the tables.
#[derive(Default)]
pub(super) struct Difference {
    /// Rules that go, and the entries that the switch holds them for.
    deletions: Vec<(RuleKey, Owner)>,
    /// Rules that come or change, by the entry.
    additions: BTreeMap<u32, Vec<(Rule, Change)>>,
}

impl Difference {
    /// How many rules go.
    pub(super) fn deleted(&self) -> usize {
        self.deletions.len()
    }

    /// How many rules come or change.
    pub(super) fn added(&self) -> usize {
        self.additions.values().map(Vec::len).sum()
    }
}

impl Switch {
    /// Compares these rules. Each may be named more than once.
    pub(super) fn difference(
        &self,
        tenant: TenantIndex,
        keys: impl IntoIterator<Item = RuleKey>,
    ) -> Difference {
        let flows = &self.tenants[tenant.0 as usize].flows;
        let (mut seen, mut rules) = (HashSet::new(), HashMap::new());
        let mut difference = Difference::default();
        for key in keys {
            if seen.contains(&key) {
                continue;
            }
            let wanted = flows.owner(&key).and_then(|number| {
                let flow = flows.get(number)?;
                // An entry can be hundreds of rules.
                let rule = if flow.rules.len() <= FEW {
                    flow.rules.iter().find(|rule| rule.match_wire == key.match_wire)?
                } else {
                    let rules = rules.entry(number).or_insert_with(|| flow.by_match());
                    *rules.get(&*key.match_wire)?
                };
                Some((flow.content(Owner { tenant, number }, rule), rule))
            });
            let projected = self.session.installed().projected(&key);
            // Another tenant has taken the place.
            let is_anothers = |owner: Owner| owner.tenant != tenant;
            if wanted.is_none() && projected.owner().is_some_and(is_anothers) {
                continue;
            }
            let change = diff::change(wanted.as_ref().map(|(content, _)| content), &projected);
            match (change, wanted, projected) {
                (Some(Change::Delete), _, State::Present(held)) => {
                    difference.deletions.push((key.clone(), held.owner));
                }
                (Some(Change::Delete), _, State::Unknown(owner)) => {
                    difference.deletions.push((key.clone(), owner));
                }
                (Some(change), Some((content, rule)), _) => {
                    let additions = difference.additions.entry(content.owner.number).or_default();
                    additions.push((rule.clone(), change));
                }
                _ => {}
            }
            seen.insert(key);
        }
        difference
    }

    /// Makes these rules what the tables say. Says whether they were not.
    pub(crate) fn mend(&mut self, cause: &Cause, keys: impl IntoIterator<Item = RuleKey>) {
        if self.is_replay() {
            self.note_dirty_rules(cause.tenant, keys);
            return;
        }
        let difference = self.difference(cause.tenant, keys);
        self.submit_deletions(cause, &difference);
        self.submit_additions(cause, &difference);
    }

    /// Sends all of a difference; `begin` begins an operation for what is about an entry.
    pub(super) fn submit_difference(
        &mut self,
        difference: &Difference,
        begin: impl Fn(&mut Switch, u32) -> Cause,
    ) {
        for (key, owner) in &difference.deletions {
            let cause = begin(self, owner.number);
            self.submit_deletion(&cause, key.clone(), *owner);
        }
        for (number, rules) in &difference.additions {
            let cause = begin(self, *number);
            self.submit_rules_of(&cause, *number, rules);
        }
    }

    fn submit_rules_of(&mut self, cause: &Cause, number: u32, rules: &[(Rule, Change)]) {
        let flow = self.tenants[cause.tenant.0 as usize].flows.get(number);
        let Some(flow) = flow.map(|flow| flow.without_rules()) else { return };
        for (rule, change) in rules {
            self.submit_rule(cause, number, &flow, rule, *change, NO_BUFFER);
        }
    }

    pub(super) fn submit_deletions(&mut self, cause: &Cause, difference: &Difference) {
        for (key, owner) in &difference.deletions {
            self.submit_deletion(cause, key.clone(), *owner);
        }
    }

    /// As a part of the operation, if there is one. Else each entry is an operation of Weir's own: if the switch refuses one of its
    /// rules, the entry is lost.
    pub(super) fn submit_additions(&mut self, cause: &Cause, difference: &Difference) {
        for (number, rules) in &difference.additions {
            let cause = match cause.operation {
                Some(_) => *cause,
                None => self.begin_repair(cause, Object::Entry(*number)),
            };
            self.submit_rules_of(&cause, *number, rules);
        }
    }

    fn submit_deletion(&mut self, cause: &Cause, key: RuleKey, owner: Owner) {
        let cookie = self.cookie_of(owner.tenant, owner.number);
        let mut message = self.scratch.take_message();
        let place = (key.table.saturating_add(self.target().first_table()), key.priority);
        let written =
            messages::write_removal(self.wire, &key.match_wire, place, cookie, &mut message);
        if written.is_ok() {
            self.submit_effect(cause, key, Effect::Remove(owner), &message);
        }
        self.scratch.put_message(message);
    }
}
