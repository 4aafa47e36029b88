//! The virtual flow table of one tenant on one switch: the entries that are installed from the tenant's point of view.
//!
//! Statistics, FLOW_REMOVED, strict and non-strict changes, CHECK_OVERLAP, limits and the reconciliation of a switch
//! use this table. An entry is found by (table, match, priority), which is unique in OpenFlow, or by a number that is
//! never used again. The number is a part of the cookie on the switch.

mod asked;
mod by_output;
pub(super) mod entry;
mod flow_mod;
mod head;
pub(crate) mod room;
mod shadowed;
pub(super) mod shared;

use crate::work::{CHANGE, Meter};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
pub(crate) use asked::{Asked, Counted};
use by_output::ByOutput;
pub(crate) use by_output::Outputs;
pub use compile::Rule;
use compile::RuleKey;
use core::hash::BuildHasher;
use entry::Long;
pub use entry::{Flow, Shadowed};
pub(crate) use flow_mod::{FlowMod, SentFlowMod, Wanted, examines_others};
use flowspace::{Match, MatchIndex, MiniWords, Relation};
use hashbrown::{DefaultHashBuilder, HashMap, HashSet, HashTable};
pub(crate) use head::Head;
use openflow::v13::PortNo;
use shadowed::Shared;

/// The action lists of the last entry and of the entry's first rules. Entries that follow each other often have the
/// same actions, and then share one copy.
#[derive(Debug, Default)]
pub(crate) struct Alike(Vec<Arc<[u8]>>);

impl Alike {
    /// The number of lists of actions that are kept.
    const MOST: usize = 64;

    /// The rules of the next entry share the actions of the last entry's rules, as far as these are the same.
    pub(crate) fn share(&mut self, rules: &mut [Rule]) {
        self.share_all(rules.iter_mut().map(|rule| &mut rule.actions));
    }

    /// The same for the actions of the entry and of its rules.
    fn share_actions(&mut self, flow: &mut Flow) {
        let rules = flow.rules.iter_mut().map(|rule| &mut rule.actions);
        self.share_all(core::iter::once(&mut flow.actions).chain(rules));
    }

    fn share_all<'a>(&mut self, actions: impl Iterator<Item = &'a mut Arc<[u8]>>) {
        for (at, actions) in actions.take(Alike::MOST).enumerate() {
            match self.0.get_mut(at) {
                Some(last) if *last == *actions => *actions = Arc::clone(last),
                Some(last) => *last = Arc::clone(actions),
                None => self.0.push(Arc::clone(actions)),
            }
        }
    }
}

/// The table.
#[derive(Debug)]
pub struct FlowTable {
    flows: HashMap<u32, Box<Flow>>,
    /// The actions of the last new entries.
    alike: Alike,
    index: HashTable<u32>,
    by_match: MatchIndex,
    by_cookie: BTreeSet<(u64, u32)>,
    by_output: ByOutput,
    hasher: DefaultHashBuilder,
    next: u32,
    /// The number of the entry that owns each rule on the switch.
    owners: HashMap<RuleKey, u32>,
    /// Shadowed rules: see `flows::shared`.
    shared: Shared,
    /// The number of rules by the tenant's table, with shadowed rules.
    by_table: BTreeMap<u8, usize>,
    /// What long entries count for, beside their rules.
    long: Long,
    /// Entries that were added, changed or removed, while changes are tracked.
    touched: Option<HashSet<u32>>,
    /// Work that is done in this table, and elsewhere for the tenant.
    meter: Meter,
    /// Counts changes. So Weir knows whether a statistics answer is older than the last change.
    changes: u64,
}

impl FlowTable {
    /// A table without entries. `outputs` reads the actions of the switch's version.
    pub(crate) fn new(outputs: Outputs) -> FlowTable {
        FlowTable {
            flows: HashMap::default(),
            alike: Alike::default(),
            index: HashTable::default(),
            by_match: MatchIndex::default(),
            by_cookie: BTreeSet::default(),
            by_output: ByOutput::new(outputs),
            hasher: DefaultHashBuilder::default(),
            next: 0,
            owners: HashMap::default(),
            shared: Shared::default(),
            by_table: BTreeMap::default(),
            long: Long::default(),
            touched: None,
            meter: Meter::default(),
            changes: 0,
        }
    }

    /// Counts changes.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// An entry was added or removed, or has other rules.
    pub(crate) fn count_change(&mut self) {
        self.changes += 1;
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Number of rules of these entries. A rule that several entries share counts for each of them.
    pub fn entries(&self) -> usize {
        self.owners.len() + self.shared.len()
    }

    /// Number of rules of the entries in one of the tenant's tables.
    pub(crate) fn entries_of(&self, table: u8) -> usize {
        self.by_table.get(&table).copied().unwrap_or(0)
    }

    /// The tenant's tables that have these entries.
    pub(crate) fn tables_of(&self, numbers: &[u32]) -> BTreeSet<u8> {
        numbers.iter().filter_map(|number| Some(self.flows.get(number)?.table)).collect()
    }

    /// Whether the table has no entry.
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// An entry by number.
    pub fn get(&self, id: u32) -> Option<&Flow> {
        self.flows.get(&id).map(|flow| &**flow)
    }

    /// An entry by number, to change fields by which no index finds the entry: not match, priority, cookie or actions.
    pub fn get_mut(&mut self, id: u32) -> Option<&mut Flow> {
        self.flows.get_mut(&id).map(|flow| &mut **flow)
    }

    /// Counts the work that is done for the tenant.
    pub(crate) fn meter(&self) -> &Meter {
        &self.meter
    }

    /// All entries, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Flow)> {
        self.meter.add(self.flows.len() as u64);
        self.flows.iter().map(|(id, flow)| (*id, &**flow))
    }

    /// Lets a new entry share its match and actions with its rules, and its actions with the entry that was added
    /// before.
    pub(crate) fn share(&mut self, flow: &mut Flow) {
        flow.share_with_rules();
        self.alike.share_actions(flow);
    }

    /// Takes a number for a new entry.
    pub fn number(&mut self) -> u32 {
        loop {
            self.next = self.next.wrapping_add(1);
            if self.next != 0 && !self.flows.contains_key(&self.next) {
                return self.next;
            }
        }
    }

    /// From now on no new entry gets this number.
    pub(crate) fn reserve(&mut self, id: u32) {
        self.next = self.next.max(id);
    }

    /// Puts an entry under a number. An entry with the same table, match and priority under another number must have
    /// been removed before.
    pub fn put(&mut self, id: u32, flow: Flow) {
        self.remove(id);
        let flow = self.placed(id, flow);
        self.insert(id, flow);
    }

    /// Adds an entry. The caller has marked as shadowed those rules of the entry that other entries own.
    fn insert(&mut self, id: u32, flow: Flow) {
        self.meter.add(CHANGE * (1 + flow.planned() as u64));
        let hash = self.hash(flow.table, flow.match_.as_slice(), flow.priority);
        self.next = self.next.max(id);
        self.touch(id);
        for rule in &flow.rules {
            let key = rule.key(flow.table);
            self.shared.owned(&key);
            if self.owners.insert(key, id).is_none() {
                *self.by_table.entry(flow.table).or_default() += 1;
            }
        }
        self.wait(id, &flow);
        self.long.insert(id, &flow);
        self.by_match.insert(flow.table, &flow.match_.to_match(), id);
        self.by_cookie.insert((flow.cookie, id));
        self.by_output.insert(id, &flow);
        self.flows.insert(id, Box::new(flow));
        let FlowTable { flows, index, hasher, .. } = self;
        index.insert_unique(hash, id, |id| match flows.get(id) {
            Some(flow) => hasher.hash_one((flow.table, flow.match_.as_slice(), flow.priority)),
            None => 0,
        });
    }

    /// Replaces the entry of this number, and returns the old entry. If only actions or cookie differ, the indexes do
    /// not change.
    pub fn replace(&mut self, id: u32, flow: Flow) -> Option<Flow> {
        let flow = self.placed(id, flow);
        let known = self.flows.get_mut(&id);
        let Some(known) = known.filter(|known| known.has_same_keys(&flow)) else {
            let before = self.remove(id);
            self.insert(id, flow);
            return before;
        };
        let before = core::mem::replace(&mut **known, flow);
        self.meter.add(CHANGE * (1 + before.rules.len() as u64));
        self.touch(id);
        let FlowTable { flows, long, by_cookie, by_output, .. } = self;
        let flow = flows.get(&id)?;
        long.remove(id);
        long.insert(id, flow);
        if flow.cookie != before.cookie {
            by_cookie.remove(&(before.cookie, id));
            by_cookie.insert((flow.cookie, id));
        }
        if flow.actions != before.actions {
            by_output.remove(id, &before);
            by_output.insert(id, flow);
        }
        Some(before)
    }

    /// Removes an entry.
    pub fn remove(&mut self, id: u32) -> Option<Flow> {
        let flow = *self.flows.remove(&id)?;
        self.meter.add(CHANGE);
        self.touch(id);
        self.long.remove(id);
        self.by_match.remove(flow.table, &flow.match_.to_match(), id);
        self.by_cookie.remove(&(flow.cookie, id));
        self.by_output.remove(id, &flow);
        let hash = self.hash(flow.table, flow.match_.as_slice(), flow.priority);
        if let Ok(entry) = self.index.find_entry(hash, |other| *other == id) {
            entry.remove();
        }
        self.shared.remove(id, &flow);
        for rule in &flow.rules {
            self.forget_rule(flow.table, rule);
        }
        Some(flow)
    }

    /// Turns the tracking of changes on or off. When tracking begins, all entries count as changed.
    pub fn track(&mut self, on: bool) {
        match (on, &self.touched) {
            (true, None) => self.touched = Some(self.flows.keys().copied().collect()),
            (false, Some(_)) => self.touched = None,
            _ => {}
        }
    }

    /// All entries count as changed, because groups that they refer to have changed.
    pub fn touch_all(&mut self) {
        if let Some(touched) = &mut self.touched {
            touched.extend(self.flows.keys());
        }
    }

    /// Entries that were added, changed or removed since the last call.
    pub fn take_touched(&mut self) -> HashSet<u32> {
        self.touched.as_mut().map(core::mem::take).unwrap_or_default()
    }

    fn touch(&mut self, id: u32) {
        if let Some(touched) = &mut self.touched {
            touched.insert(id);
        }
    }

    /// A rule is removed from its entry, so the rule can have another owner.
    pub fn forget_rule(&mut self, table: u8, rule: &Rule) {
        let key = rule.key(table);
        let was = self.owners.remove(&key);
        if let Some(count) = self.by_table.get_mut(&table).filter(|_| was.is_some()) {
            *count -= 1;
        }
        self.shared.freed(key);
    }

    /// The entry with exactly this table, match and priority.
    pub fn find(&self, table: u8, match_: &Match, priority: u16) -> Option<u32> {
        self.find_words(table, MiniWords::of(match_).as_slice(), priority)
    }

    /// The entry that has the table, the match and the priority of this one.
    pub fn find_same(&self, flow: &Flow) -> Option<u32> {
        self.find_words(flow.table, flow.match_.as_slice(), flow.priority)
    }

    fn find_words(&self, table: u8, words: &[u64], priority: u16) -> Option<u32> {
        let hash = self.hash(table, words, priority);
        self.index
            .find(hash, |id| {
                self.flows.get(id).is_some_and(|flow| {
                    flow.table == table
                        && flow.priority == priority
                        && flow.match_.as_slice() == words
                })
            })
            .copied()
    }

    /// The entries that a non-strict request may mean (OpenFlow 1.0 section 4.6, 1.3 section 6.4), by ascending
    /// numbers. Some of these entries may have been removed. The caller that looks at these entries charges the tenant
    /// for them.
    pub(crate) fn candidates(&self, wanted: &Wanted) -> Vec<u32> {
        match wanted {
            Wanted { cookie, cookie_mask: u64::MAX, .. } => self.with_cookie(*cookie).collect(),
            Wanted { out_port: PortNo::ANY, .. } => {
                let (found, groups) = self.related(wanted.table, &wanted.match_, Relation::Within);
                self.meter.add(groups);
                found
            }
            Wanted { out_port, .. } => {
                let mut found: Vec<u32> = self.with_output(*out_port).collect();
                found.sort_unstable();
                found.dedup();
                found
            }
        }
    }

    /// Whether the table has at least `many` entries that may have a match within this match.
    pub(crate) fn has_candidates(&self, many: u64, table: Option<u8>, match_: &Match) -> bool {
        let mut found = 0;
        self.by_match.candidates(table, match_, Relation::Within, |_| {
            found += 1;
            found >= many
        });
        found >= many
    }

    /// The entries that may have this relation to a match, by ascending numbers, and how many groups of entries were
    /// examined.
    fn related(&self, table: Option<u8>, match_: &Match, relation: Relation) -> (Vec<u32>, u64) {
        let mut found = Vec::new();
        let examined = self.by_match.candidates(table, match_, relation, |id| {
            found.push(id);
            false
        });
        let groups = examined.saturating_sub(found.len() as u64);
        // Neighbours by number are neighbours in memory: entries are read several times as fast in this order.
        found.sort_unstable();
        (found, groups)
    }

    /// The entries of a table that a packet may match. The tenant is not charged for these entries.
    pub(crate) fn meeting<'a>(&'a self, table: u8, packet: &Match) -> Vec<(u32, &'a Flow)> {
        let (found, _) = self.related(Some(table), packet, Relation::Overlapping);
        let found = found.into_iter().filter_map(|id| Some((id, self.get(id)?)));
        found.filter(|(_, flow)| flow.match_.overlaps(packet)).collect()
    }

    /// Cookies and numbers of all entries from this cookie and number on, in order. The tenant is not charged for these
    /// entries.
    pub(crate) fn in_order(
        &self,
        cookie: u64,
        number: u32,
    ) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.by_cookie.range((cookie, number)..).copied()
    }

    /// The entries with a cookie, by ascending numbers.
    pub fn with_cookie(&self, cookie: u64) -> impl Iterator<Item = u32> {
        let found = self.by_cookie.range((cookie, 0)..=(cookie, u32::MAX));
        found.map(|(_, id)| *id).inspect(|_| self.meter.add(1))
    }

    /// The entries that send packets to a port, in no particular order. Some of these entries may have been removed, or
    /// may send packets to other ports now, and an entry may be named twice.
    pub(crate) fn with_output(&self, port: PortNo) -> impl Iterator<Item = u32> {
        self.by_output.of(port).inspect(|_| self.meter.add(1))
    }

    /// The entries of a table that may overlap a match, by ascending numbers. The caller that looks at these entries
    /// charges the tenant for them.
    pub(crate) fn may_overlap(&self, table: u8, match_: &Match) -> Vec<u32> {
        let (found, groups) = self.related(Some(table), match_, Relation::Overlapping);
        self.meter.add(groups);
        found
    }

    fn hash(&self, table: u8, match_: &[u64], priority: u16) -> u64 {
        self.hasher.hash_one((table, match_, priority))
    }
}

#[cfg(test)]
mod tests {
    use super::entry::FORMAT;
    use super::*;
    use crate::tally::Count;
    use crate::time::Instant;
    use flowspace::{Field, MiniMatch};

    fn flow(match_: Match, priority: u16) -> Flow {
        Flow {
            table: 0,
            match_: MiniMatch::new(&match_),
            priority,
            cookie: 0x1234_5678_9abc_def0,
            flags: 1,
            idle_timeout: 5,
            hard_timeout: 6,
            installed: Instant::default(),
            match_wire: [1, 2, 3].into(),
            actions: [4, 5].into(),
            rules: Vec::new(),
            shadowed: Shadowed::default(),
            past: Count::default(),
            counts_since: 0,
        }
    }

    fn port(n: u128) -> Match {
        Match::exact(Field::InPort, n)
    }

    #[test]
    fn entries_are_found_by_table_match_and_priority() {
        let mut table = FlowTable::new(|_, _| {});
        for priority in 0..100 {
            let id = table.number();
            table.put(id, flow(port(u128::from(priority % 7)), priority));
        }
        let id = table.find(0, &port(3), 10).unwrap();
        assert_eq!(table.get(id).unwrap().priority, 10);
        assert_eq!(table.find(0, &port(4), 10), None);
        assert_eq!(table.find(1, &port(3), 10), None);
        assert!(table.remove(id).is_some());
        assert_eq!(table.find(0, &port(3), 10), None);
        assert_eq!(table.len(), 99);
    }

    #[test]
    fn a_wide_match_selects_entries_with_equal_or_narrower_matches() {
        let mut table = FlowTable::new(|_, _| {});
        for (i, m) in [Match::ANY, port(1), port(2)].into_iter().enumerate() {
            let id = table.number();
            table.put(id, flow(m, i as u16));
        }
        let meant = |of, match_: &Match| {
            let wanted = Wanted { table: of, match_: *match_, ..Wanted::EVERYTHING };
            let words = MiniWords::of(match_);
            let mut found = table.candidates(&wanted);
            found.retain(|id| table.get(*id).unwrap().is_covered(&words, None));
            found.len()
        };
        assert_eq!(meant(None, &Match::ANY), 3);
        assert_eq!(meant(None, &port(1)), 1);
        assert_eq!(meant(Some(1), &Match::ANY), 0);
    }

    #[test]
    fn entries_are_found_by_output_port_and_removed_ones_are_forgotten() {
        // Each byte of the actions is an output port.
        let mut table = FlowTable::new(|actions, call| {
            actions.iter().for_each(|port| call(PortNo(u32::from(*port))));
        });
        let mut random = fastrand::Rng::with_seed(1);
        for round in 0..3_000 {
            let match_ = port(random.u128(0..200));
            let id = table.find(0, &match_, 1).unwrap_or_else(|| table.number());
            // The table grows first, and shrinks from the middle of the test on.
            if random.u32(0..3_000) < round {
                table.remove(id);
            } else {
                let actions = core::iter::repeat_with(|| random.u8(1..5)).take(2).collect();
                let _ = table.replace(id, Flow { actions, ..flow(match_, 1) });
            }
            for port in 1..5_u8 {
                let sends = |id: &u32| table.get(*id).is_some_and(|it| it.actions.contains(&port));
                let wanted = Wanted { out_port: PortNo(port.into()), ..Wanted::EVERYTHING };
                let mut found = table.candidates(&wanted);
                assert!(found.is_sorted_by(|a, b| a < b));
                found.retain(sends);
                let mut right: Vec<u32> = table.iter().map(|(id, _)| id).filter(sends).collect();
                right.sort_unstable();
                assert_eq!(found, right);
                let kept = table.with_output(wanted.out_port).count();
                assert!(kept <= right.len() + right.len() / 2 + 33, "{kept} for {}", right.len());
            }
        }
    }

    #[test]
    fn entries_overlap_only_with_the_same_priority_and_a_common_match() {
        let mut table = FlowTable::new(|_, _| {});
        let id = table.number();
        table.put(id, flow(port(1), 5));
        let overlaps = |match_: &Match, priority| {
            let found = table.may_overlap(0, match_);
            found.iter().any(|id| table.get(*id).unwrap().overlaps(match_, priority))
        };
        assert!(overlaps(&Match::ANY, 5));
        assert!(!overlaps(&Match::ANY, 6));
        assert!(!overlaps(&port(2), 5));
    }

    #[test]
    fn a_stored_entry_is_read_back_unchanged() {
        let before = flow(port(1), 9);
        for (format, other) in [(2, 3), (3, 2)] {
            let mut bytes = before.to_bytes(format);
            let parse = |wire: &[u8]| (wire == [1, 2, 3]).then(|| port(1));
            assert_eq!(Flow::from_bytes(&bytes, format, parse).as_ref(), Some(&before));
            assert_eq!(Flow::from_bytes(&bytes, other, parse), None);
            for n in 0..20 {
                assert_eq!(Flow::from_bytes(&bytes[..n], format, |_| Some(Match::ANY)), None);
            }
            // Older entries in the store have `FORMAT` in the first byte instead of the version.
            bytes[0] = FORMAT;
            assert_eq!(Flow::from_bytes(&bytes, format, parse).as_ref(), Some(&before));
        }
    }
}
