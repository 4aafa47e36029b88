//! Repairs the switch, so that it will hold the rules of the tables: after a refusal, a new map, or a new connection.
//!
//! A repair depends only on the tables and the switch's rules, not on the events before the repair. Weir first sets the
//! tables. Then Weir compares each rule of the tables that may differ with the state that
//! [`Installed`](crate::south::installed::Installed) expects on the switch. If the rule differs, Weir sends an ADD,
//! MODIFY or DELETE for the rule.

pub(super) mod difference;

use super::{Cause, Object, Switch};
use crate::flows::{Flow, Rule};
use crate::ids::TenantIndex;
use crate::messages;
use crate::south::diff;
use crate::south::diff::Change;
use crate::south::installed::{Effect, Owner, State};
use compile::RuleKey;
use difference::{Addition, Difference};
use hashbrown::{HashMap, HashSet};
use openflow::NO_BUFFER;

/// Rules of an entry that are searched one by one.
const FEW: usize = 8;

/// The rules of long entries by their matches.
pub(super) type ByMatch<'a> = HashMap<u32, HashMap<&'a [u8], &'a Rule>>;

impl Switch {
    /// Compares a rule. `rules` keeps the rules of long entries, for other rules of the same entries. Returns the
    /// amount of work, in comparisons of one rule.
    pub(super) fn compare<'a>(
        &'a self,
        tenant: TenantIndex,
        key: &RuleKey,
        rules: &mut ByMatch<'a>,
        difference: &mut Difference,
    ) -> usize {
        let flows = &self.tenants[tenant].flows;
        let known = rules.len();
        let mut listed = 0;
        let wanted = flows.owner(key).and_then(|number| {
            let flow = flows.get(number)?;
            // An entry can have hundreds of rules.
            let rule = if flow.rules.len() <= FEW {
                flow.rules.iter().find(|rule| rule.match_wire == key.match_wire)?
            } else {
                listed = flow.rules.len();
                let rules = rules.entry(number).or_insert_with(|| flow.by_match());
                *rules.get(&*key.match_wire)?
            };
            Some((flow.content(Owner { tenant, number }, rule), rule))
        });
        let compared = 1 + if rules.len() > known { listed / FEW } else { 0 };
        let projected = self.session.installed().projected(key);
        // The rule now belongs to another tenant.
        let is_anothers = |owner: Owner| owner.tenant != tenant;
        if wanted.is_none() && projected.owner().is_some_and(is_anothers) {
            return compared;
        }
        let change = diff::change(wanted.as_ref().map(|(content, _)| content), &projected);
        match (change, wanted, projected) {
            (Some(Change::Delete), _, State::Present(held)) => {
                difference.delete(key.clone(), held.owner);
            }
            (Some(Change::Delete), _, State::Unknown(owner)) => {
                difference.delete(key.clone(), owner);
            }
            (Some(change), Some((content, rule)), _) => {
                difference.add(content.owner.number, rule.clone(), change);
            }
            _ => {}
        }
        compared
    }

    /// Repairs these rules on the switch. A rule may be named more than once. The messages belong to the operation of
    /// `cause`, if there is one. Else each entry has an operation of Weir's own: if the switch refuses a rule of the
    /// entry, the entry is lost.
    pub(crate) fn mend(&mut self, cause: &Cause, keys: impl IntoIterator<Item = RuleKey>) {
        if self.is_replay() {
            self.note_dirty_rules(cause.tenant, keys);
            return;
        }
        let (mut seen, mut rules) = (HashSet::new(), HashMap::new());
        let mut difference = Difference::default();
        for key in keys {
            if !seen.contains(&key) {
                self.compare(cause.tenant, &key, &mut rules, &mut difference);
                seen.insert(key);
            }
        }
        drop(rules);
        let (deletions, additions) = difference.into_parts();
        for (key, owner) in deletions {
            self.submit_deletion(cause, key, owner);
        }
        for (number, rules) in additions {
            let cause = match cause.operation {
                Some(_) => *cause,
                None => self.begin_repair(cause, Object::Entry(number)),
            };
            self.submit_rules_of(&cause, number, &rules);
        }
    }

    pub(super) fn submit_rules_of(&mut self, cause: &Cause, number: u32, rules: &[Addition]) {
        let flow = self.tenants[cause.tenant].flows.get(number);
        let Some(flow) = flow.map(|flow| flow.without_rules()) else { return };
        for (rule, change) in rules {
            self.submit_rule(cause, number, &flow, rule, *change, NO_BUFFER);
        }
    }

    /// Deletes all rules of an entry.
    pub(super) fn delete_rules(&mut self, cause: &Cause, number: u32, flow: &Flow) {
        let owner = Owner { tenant: cause.tenant, number };
        flow.keys().for_each(|key| self.submit_deletion(cause, key, owner));
    }

    pub(super) fn submit_deletion(&mut self, cause: &Cause, key: RuleKey, owner: Owner) {
        if self.is_replay() {
            return;
        }
        let cookie = self.cookie_of(owner.tenant, owner.number);
        let mut message = self.scratch.take_message();
        let table = key.table.saturating_add(self.target().first_table());
        let RuleKey { ref match_wire, priority, .. } = key;
        let written =
            messages::write_removal(self.wire, match_wire, table, priority, cookie, &mut message);
        if written.is_ok() {
            self.submit_effect(cause, key, Effect::Remove(owner), &message);
        }
        self.scratch.put_message(message);
    }
}
