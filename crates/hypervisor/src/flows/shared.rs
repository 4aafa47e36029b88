//! Entries of one tenant that lead to the same rule on the switch: their matches become equal when the compiler
//! intersects them with a slice, or writes them once per ingress port or for frames without a VLAN tag.
//!
//! Such entries overlap and have one priority, so a switch may choose which of them a packet matches (specification of
//! 1.0, section 3.4; of 1.3, section 5.3). Weir chooses the first entry: it owns the rule, so the rule has its cookie,
//! time-outs and counters. The equal rules of the other entries are *shadowed*. When the owner gives up the rule, the
//! entry with the lowest number that has this shadowed rule takes the rule over. An entry that has only shadowed rules
//! looks to the tenant like an entry that no packet matches.
//!
//! After a restart the owner is the entry whose cookie the switch holds.

use super::shadowed::RuleRef;
use super::{Flow, FlowTable, Rule};
use alloc::vec::Vec;
use compile::RuleKey;
use hashbrown::HashMap;

fn is_at(rule: &Rule, key: &RuleKey) -> bool {
    (rule.priority, &rule.match_wire) == (key.priority, &key.match_wire)
}

impl FlowTable {
    /// The entry as the table will have it under this number: rules that other entries own become shadowed rules.
    pub(crate) fn placed(&self, id: u32, mut flow: Flow) -> Flow {
        let table = flow.table;
        let is_anothers = |rule: &mut Rule| self.other_owner(id, table, rule).is_some();
        flow.shadowed.extend(flow.rules.extract_if(.., is_anothers));
        flow
    }

    /// The other entry that owns the same rule on the switch.
    pub(crate) fn other_owner(&self, id: u32, table: u8, rule: &Rule) -> Option<u32> {
        let rule = RuleRef(table, rule.priority, &rule.match_wire);
        self.owners.get(&rule).copied().filter(|owner| *owner != id)
    }

    /// The entry that owns a rule on the switch.
    pub(crate) fn owner(&self, key: &RuleKey) -> Option<u32> {
        self.owners.get(key).copied()
    }

    /// Whether any rule of an entry is the same on the switch as a rule of an entry with another priority. Then Weir
    /// may not choose the owner: the tenant's priorities decide. On 1.0 a rule without wildcards always has the highest
    /// priority.
    pub fn collides(&self, id: u32, flow: &Flow) -> bool {
        flow.rules.iter().chain(flow.shadowed.iter()).any(|rule| {
            let owner = self.other_owner(id, flow.table, rule).and_then(|owner| self.get(owner));
            owner.is_some_and(|it| it.priority != flow.priority)
        })
    }

    /// Whether any of these changed entries [collides](Self::collides) with another entry, changed or not.
    pub fn any_collides(&self, changed: &[(u32, Flow)]) -> bool {
        let mut owners = Owners::default();
        // An entry whose rules keep their keys collides with no entry. An entry that takes such a key is examined
        // itself.
        let moves =
            |(id, flow): &&(u32, Flow)| !self.get(*id).is_some_and(|it| it.has_same_keys(flow));
        changed.iter().filter(moves).any(|(id, flow)| {
            self.collides(*id, flow)
                || changed.len() > 1 && owners.take_over(*id, flow, &flow.rules)
        })
    }

    /// Whether some rules have no owner, and an entry with such a shadowed rule.
    pub(crate) fn has_freed(&self) -> bool {
        !self.shared.freed.is_empty()
    }

    /// Gives rules without an owner to the next entries: at most `most` rules. Returns each entry's number, the entry,
    /// and the rule.
    pub(crate) fn heirs(&mut self, most: usize) -> Vec<(u32, Flow, Rule)> {
        let mut heirs = Vec::new();
        let freed = &mut self.shared.freed;
        let first: Vec<RuleKey> = core::iter::from_fn(|| freed.pop_first()).take(most).collect();
        for key in first {
            let heir = self.shared.waiting.get(&key).and_then(|it| it.first().copied());
            if let Some(heir) = heir.filter(|_| !self.owners.contains_key(&key))
                && let Some(rule) = self.take_over(heir, &key)
                && let Some(flow) = self.get(heir)
            {
                heirs.push((heir, flow.clone(), rule));
            }
        }
        heirs
    }

    /// Makes an entry the owner of one of its shadowed rules. Returns the number of the owner before.
    pub(crate) fn own(&mut self, id: u32, table: u8, rule: &Rule) -> Option<u32> {
        let key = rule.key(table);
        let owner = self.other_owner(id, table, rule);
        if let Some(owner) = owner
            && let Some(mut other) = self.get(owner).cloned()
        {
            let lost = other.rules.extract_if(.., |rule| is_at(rule, &key));
            other.shadowed.extend(lost);
            self.put(owner, other);
        }
        self.take_over(id, &key);
        owner
    }

    /// Turns a shadowed rule of an entry into a rule that the entry owns.
    fn take_over(&mut self, id: u32, key: &RuleKey) -> Option<Rule> {
        let mut flow = self.get(id)?.clone();
        let rule = flow.shadowed.take(|rule| is_at(rule, key))?;
        flow.rules.push(rule.clone());
        self.put(id, flow);
        Some(rule)
    }

    pub(super) fn wait(&mut self, id: u32, flow: &Flow) {
        for rule in flow.shadowed.iter() {
            let key = rule.key(flow.table);
            self.shared.rules +=
                usize::from(self.shared.waiting.entry(key.clone()).or_default().insert(id));
            if !self.owners.contains_key(&key) {
                self.shared.freed.insert(key);
            }
        }
    }
}

/// Whether two entries would have the same rule on the switch, and must not: see [`FlowTable::collides`].
pub(crate) fn collide<'a>(flows: &'a FlowTable, planned: &'a HashMap<u32, Vec<Rule>>) -> bool {
    let mut owners = Owners::default();
    let mut collides = |(at, flow): (u32, &'a Flow)| {
        owners.take_over(at, flow, planned.get(&at).unwrap_or(&flow.rules))
    };
    !planned.is_empty() && flows.iter().any(&mut collides)
}

/// The owners of rules, with their priorities, while entries are examined one after the other.
#[derive(Default)]
struct Owners<'a>(HashMap<(u8, u16, &'a [u8]), (u32, u16)>);

impl<'a> Owners<'a> {
    /// Notes that an entry owns these rules. Returns whether an entry with another priority owned one of them before.
    fn take_over(&mut self, id: u32, flow: &Flow, rules: &'a [Rule]) -> bool {
        rules.iter().any(|rule| {
            let key = (flow.table, rule.priority, &*rule.match_wire);
            let before = self.0.insert(key, (id, flow.priority));
            before.is_some_and(|(other, priority)| other != id && priority != flow.priority)
        })
    }
}
