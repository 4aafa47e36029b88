//! The virtual flow table of one tenant on one switch: what the tenant believes to be installed.
//!
//! It is the truth for statistics, FLOW_REMOVED, strict and non-strict changes, CHECK_OVERLAP and limits, and for
//! bringing a switch back to where it should be. Entries are found by (table, match, priority), which is unique in
//! OpenFlow, or by a number that is never reused and is a part of the cookie on the switch.

pub(crate) mod room;
pub(super) mod shared;

use crate::named::named_of;
use crate::south::installed::{Content, Owner};
use crate::store::Kind;
use crate::time::{Duration, Instant};
use crate::work::{CHANGE, Meter};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
pub use compile::Rule;
use compile::{EntrySpec, RuleKey};
use core::hash::BuildHasher;
use flowspace::{Match, MatchIndex, MiniMatch, MiniWords, Relation};
use hashbrown::{DefaultHashBuilder, HashMap, HashSet, HashTable};
use openflow::Version;
use room::Long;
pub use shared::Shadowed;
use shared::Shared;

/// One entry, as the tenant sees it, and what stands for it on the switch. Copies share all that is long: an entry that changes is
/// kept as it was until the switch has confirmed the change, and one request can change thousands.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// The tenant's table; 0 on OpenFlow 1.0.
    pub table: u8,
    /// The tenant's match, normalized.
    pub match_: MiniMatch,
    /// The tenant's priority.
    pub priority: u16,
    /// The tenant's cookie.
    pub cookie: u64,
    /// The tenant's flags.
    pub flags: u16,
    /// Seconds.
    pub idle_timeout: u16,
    /// Seconds.
    pub hard_timeout: u16,
    /// Since when it stands, for its hard timeout. It is not stored: the switch says how long it has held an entry.
    pub installed: Instant,
    /// The match as the tenant wrote it.
    pub match_wire: Arc<[u8]>,
    /// Actions (1.0) or instructions (1.3) as the tenant wrote them.
    pub actions: Arc<[u8]>,
    /// What stands for it on the switch.
    pub rules: Vec<Rule>,
    /// What would stand for it, but is the same entry on the switch as a rule of another one: see `flows::shared`.
    pub shadowed: Shadowed,
    /// Packets counted by rules that are gone.
    pub past_packets: u64,
    /// Bytes counted by rules that are gone.
    pub past_bytes: u64,
    /// What rules have counted that this message to the switch deletes, or one before it, is not counted here.
    pub counts_since: u32,
}

impl Flow {
    /// Whether it names groups or meters (1.3).
    pub(crate) fn names_numbers(&self) -> bool {
        [Kind::Group, Kind::Meter].iter().any(|kind| !named_of(*kind, &self.actions).is_empty())
    }

    /// What it is but for what stands for it on the switch and what it does there.
    pub(crate) fn without_rules(&self) -> Flow {
        let (rules, shadowed) = (Vec::new(), Shadowed::default());
        let (match_wire, actions) = (Arc::default(), Arc::default());
        Flow { rules, shadowed, match_: self.match_.clone(), match_wire, actions, ..*self }
    }

    /// Seconds that are left of its hard timeout, rounded up, and 0 if there is none. `None` if it is over.
    pub(crate) fn left(&self, now: Instant) -> Option<u16> {
        if self.hard_timeout == 0 {
            return Some(0);
        }
        let over = self.installed + Duration::from_secs(self.hard_timeout.into());
        let left = u16::try_from((over - now).0.div_ceil(SECOND)).unwrap_or(self.hard_timeout);
        (left > 0).then_some(left)
    }

    /// How long it has stood: seconds and nanoseconds.
    pub(crate) fn stood(&self, now: Instant) -> (u32, u32) {
        let stood = (now - self.installed).0;
        (u32::try_from(stood / SECOND).unwrap_or(u32::MAX), (stood % SECOND) as u32)
    }

    /// A rule that is gone has counted these packets and bytes.
    pub(crate) fn count_past(&mut self, (packets, bytes): (u64, u64)) {
        self.past_packets = self.past_packets.saturating_add(packets);
        self.past_bytes = self.past_bytes.saturating_add(bytes);
    }

    /// The same entry, about to do this, with nothing that stands for it yet.
    pub(crate) fn with_actions(&self, actions: &Arc<[u8]>) -> Flow {
        let (match_, match_wire) = (self.match_.clone(), Arc::clone(&self.match_wire));
        let (rules, shadowed) = (Vec::new(), Shadowed::default());
        Flow { rules, shadowed, match_, match_wire, actions: Arc::clone(actions), ..*self }
    }

    /// Whether another one is found by the same, here and on the switch.
    fn stands_where(&self, other: &Flow) -> bool {
        (self.table, self.priority) == (other.table, other.priority)
            && self.match_ == other.match_
            && are_where(&self.rules, &other.rules)
            && are_where(&self.shadowed, &other.shadowed)
    }

    /// Whether its rules are the same entries on the switch as those of another one, whatever they do.
    pub(crate) fn has_rules_where(&self, other: &Flow) -> bool {
        are_where(&self.rules, &other.rules)
    }

    /// Lets the rules share the match and the actions of the entry, where the bytes are the same.
    pub(crate) fn share_with_rules(&mut self) {
        for rule in &mut self.rules {
            if rule.match_wire == self.match_wire {
                rule.match_wire = Arc::clone(&self.match_wire);
            }
            if rule.actions == self.actions {
                rule.actions = Arc::clone(&self.actions);
            }
        }
    }

    /// Bytes that it alone holds, roughly: not what it shares with other entries, and with itself as it is now.
    pub(crate) fn size(&self) -> usize {
        let rules = self.rules.iter().chain(self.shadowed.iter());
        let rules = rules.map(|it| size_of_val(it) + own(&it.match_wire) + own(&it.actions));
        let matches = own(self.match_.shared()) + own(&self.match_wire);
        size_of::<Flow>() + matches + own(&self.actions) + rules.sum::<usize>()
    }
}

/// The actions of the last entry and of its first rules: entries that follow each other often have the same actions, of which one
/// copy is enough.
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
#[derive(Debug, Default)]
pub struct FlowTable {
    flows: HashMap<u32, Box<Flow>>,
    /// The actions of the last new entries.
    alike: Alike,
    index: HashTable<u32>,
    by_match: MatchIndex,
    by_cookie: BTreeSet<(u64, u32)>,
    hasher: DefaultHashBuilder,
    next: u32,
    /// Which entry each entry on the switch stands for, by table, priority and match.
    owners: HashMap<RuleKey, u32>,
    /// Entries that are shadowed by those.
    shared: Shared,
    /// How many those are, by the tenant's table.
    by_table: BTreeMap<u8, usize>,
    /// What long entries count for beside that.
    long: Long,
    /// Entries that came, changed or went, while that is kept.
    touched: Option<HashSet<u32>>,
    /// Work done here, and elsewhere for the tenant.
    meter: Meter,
    /// Counts changes, so that an answer that was asked for earlier is not taken for current.
    changes: u64,
}

impl FlowTable {
    /// Counts changes.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// An entry has come, gone or got other rules.
    pub(crate) fn count_change(&mut self) {
        self.changes += 1;
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Number of entries on the switch that stand for them; one that stands for several counts for each.
    pub fn entries(&self) -> usize {
        self.owners.len() + self.shared.len()
    }

    /// Number of entries on the switch that stand for those in one of the tenant's tables.
    pub(crate) fn entries_of(&self, table: u8) -> usize {
        self.by_table.get(&table).copied().unwrap_or(0)
    }

    /// The tenant's tables that these entries are in.
    pub(crate) fn tables_of(&self, numbers: &[u32]) -> BTreeSet<u8> {
        numbers.iter().filter_map(|number| Some(self.flows.get(number)?.table)).collect()
    }

    /// Number of entries in one of the tenant's tables.
    pub fn len_of(&self, table: u8) -> usize {
        self.meter.add(self.flows.len() as u64);
        self.flows.values().filter(|flow| flow.table == table).count()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// An entry by number.
    pub fn get(&self, id: u32) -> Option<&Flow> {
        self.flows.get(&id).map(|flow| &**flow)
    }

    /// An entry by number, to change what it is not found by: neither match, priority nor cookie.
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

    /// Lets a new entry share its match and actions with its rules, and its actions with the entry that was added before.
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

    /// No new entry gets this number.
    pub(crate) fn reserve(&mut self, id: u32) {
        self.next = self.next.max(id);
    }

    /// Puts an entry under a number. An entry with the same table, match and priority under another number must have
    /// been removed before.
    pub fn put(&mut self, id: u32, flow: Flow) {
        self.remove(id);
        let flow = self.placed(id, flow);
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
        self.flows.insert(id, Box::new(flow));
        let FlowTable { flows, index, hasher, .. } = self;
        index.insert_unique(hash, id, |id| match flows.get(id) {
            Some(flow) => hasher.hash_one((flow.table, flow.match_.as_slice(), flow.priority)),
            None => 0,
        });
    }

    /// Puts an entry in the place of the one of that number; gives that. What only does something else, or has another
    /// cookie, is not taken out and put in.
    pub fn replace(&mut self, id: u32, flow: Flow) -> Option<Flow> {
        let flow = self.placed(id, flow);
        let known = self.flows.get_mut(&id);
        let Some(known) = known.filter(|known| known.stands_where(&flow)) else {
            let before = self.remove(id);
            self.put(id, flow);
            return before;
        };
        let before = core::mem::replace(&mut **known, flow);
        self.meter.add(CHANGE * (1 + before.rules.len() as u64));
        self.touch(id);
        let FlowTable { flows, long, by_cookie, .. } = self;
        let flow = flows.get(&id)?;
        long.remove(id);
        long.insert(id, flow);
        if flow.cookie != before.cookie {
            by_cookie.remove(&(before.cookie, id));
            by_cookie.insert((flow.cookie, id));
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

    /// Whether it is kept which entries came, changed or went. Turned on, all count as changed.
    pub fn track(&mut self, on: bool) {
        match (on, &self.touched) {
            (true, None) => self.touched = Some(self.flows.keys().copied().collect()),
            (false, Some(_)) => self.touched = None,
            _ => {}
        }
    }

    /// All entries count as changed: what they refer to has.
    pub fn touch_all(&mut self) {
        if let Some(touched) = &mut self.touched {
            touched.extend(self.flows.keys());
        }
    }

    /// Entries that came, changed or went since this was last called.
    pub fn take_touched(&mut self) -> HashSet<u32> {
        self.touched.as_mut().map(core::mem::take).unwrap_or_default()
    }

    fn touch(&mut self, id: u32) {
        if let Some(touched) = &mut self.touched {
            touched.insert(id);
        }
    }

    /// A rule that is gone from its entry does not stand in another's way any more.
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
        let words = MiniWords::of(match_);
        let words = words.as_slice();
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

    /// The entries that a non-strict request with this match means (OpenFlow 1.0 section 4.6, 1.3 section 6.4): those
    /// whose match is as specific or more. `table` is `None` for all tables.
    pub fn matching(&self, table: Option<u8>, match_: &Match) -> Vec<u32> {
        let (mut found, words) = (Vec::new(), MiniWords::of(match_));
        let examined = self.by_match.candidates(table, match_, Relation::Within, |id| {
            if self.flows.get(&id).is_some_and(|flow| flow.match_.is_within(&words)) {
                found.push(id);
            }
            false
        });
        self.meter.add(examined);
        found.sort_unstable();
        found
    }

    /// The entries of a table that may take a packet. The tenant is not charged for them.
    pub(crate) fn meeting<'a>(&'a self, table: u8, packet: &Match) -> Vec<(u32, &'a Flow)> {
        let mut found = Vec::new();
        self.by_match.candidates(Some(table), packet, Relation::Overlapping, |id| {
            let flow = self.get(id).filter(|flow| flow.match_.to_match().overlaps(packet));
            found.extend(flow.map(|flow| (id, flow)));
            false
        });
        found.sort_unstable_by_key(|(id, _)| *id);
        found
    }

    /// Cookies and numbers of all entries from this on, in order. The tenant is not charged for them.
    pub(crate) fn in_order(&self, from: (u64, u32)) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.by_cookie.range(from..).copied()
    }

    /// The entries with a cookie, by ascending numbers.
    pub fn with_cookie(&self, cookie: u64) -> impl Iterator<Item = u32> {
        let found = self.by_cookie.range((cookie, 0)..=(cookie, u32::MAX));
        found.map(|(_, id)| *id).inspect(|_| self.meter.add(1))
    }

    /// Whether another entry of the same priority overlaps (CHECK_OVERLAP).
    pub fn overlaps(&self, table: u8, match_: &Match, priority: u16) -> bool {
        let overlaps = |flow: &Flow| {
            let own = flow.match_.to_match();
            flow.priority == priority && own != *match_ && own.overlaps(match_)
        };
        let mut any = false;
        let examined = self.by_match.candidates(Some(table), match_, Relation::Overlapping, |id| {
            any = self.get(id).is_some_and(overlaps);
            any
        });
        self.meter.add(examined);
        any
    }

    fn hash(&self, table: u8, match_: &[u64], priority: u16) -> u64 {
        self.hasher.hash_one((table, match_, priority))
    }
}

impl Flow {
    /// Whether a request with this match means it: a strict one, of which this is the priority, or one that is not.
    pub(crate) fn is_covered(&self, match_: &MiniWords, strictly: Option<u16>) -> bool {
        match strictly {
            Some(priority) => {
                self.match_.as_slice() == match_.as_slice() && self.priority == priority
            }
            None => self.match_.is_within(match_),
        }
    }

    /// The entry as the compiler takes it. `match_` is the match of the entry.
    pub(crate) fn spec<'a>(&'a self, match_: &'a Match) -> EntrySpec<'a> {
        let Flow { table, priority, ref actions, .. } = *self;
        EntrySpec { table, priority, match_, actions }
    }

    /// What a rule of it is on the switch.
    pub(crate) fn content(&self, owner: Owner, rule: &Rule) -> Content {
        Content { owner, program: Arc::clone(&rule.actions), terms: self.times() }
    }

    /// The rule that the switch has under this key.
    pub(crate) fn rule_at(&self, key: &RuleKey) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.match_wire == key.match_wire)
    }

    /// What identifies its rules on the switch.
    pub(crate) fn keys(&self) -> impl Iterator<Item = RuleKey> + '_ {
        self.rules.iter().map(|rule| rule.key(self.table))
    }

    /// What it keeps when it is modified, beside since when it stands.
    pub(crate) fn times(&self) -> (u16, u16, u16) {
        (self.idle_timeout, self.hard_timeout, self.flags)
    }

    /// What stands for it on the switch, by the match: an entry can be hundreds there.
    pub fn by_match(&self) -> HashMap<&[u8], &Rule> {
        self.rules.iter().map(|rule| (&*rule.match_wire, rule)).collect()
    }

    /// For the store: everything but what can be computed again. Match and actions are as `version` has them.
    pub fn to_bytes(&self, version: Version) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEAD + self.match_wire.len() + self.actions.len());
        out.push(format_of(version));
        out.push(self.table);
        out.extend_from_slice(&self.priority.to_be_bytes());
        out.extend_from_slice(&self.flags.to_be_bytes());
        out.extend_from_slice(&self.idle_timeout.to_be_bytes());
        out.extend_from_slice(&self.hard_timeout.to_be_bytes());
        out.extend_from_slice(&(self.match_wire.len() as u16).to_be_bytes());
        out.extend_from_slice(&self.cookie.to_be_bytes());
        out.extend_from_slice(&self.match_wire);
        out.extend_from_slice(&self.actions);
        out
    }

    /// The inverse of [`to_bytes`](Self::to_bytes); `parse` reads the match of the version that is spoken. `None` for
    /// bytes that are not of this format, or of another version: what they said would be another thing.
    pub fn from_bytes(
        bytes: &[u8],
        version: Version,
        parse: impl FnOnce(&[u8]) -> Option<Match>,
    ) -> Option<Flow> {
        let head: &[u8; HEAD] = bytes.first_chunk()?;
        let u16_at = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
        if ![FORMAT, format_of(version)].contains(&head[0]) {
            return None;
        }
        let rest = &bytes[HEAD..];
        let (match_wire, actions) = rest.split_at_checked(usize::from(u16_at(10)))?;
        Some(Flow {
            table: head[1],
            match_: MiniMatch::new(&parse(match_wire)?),
            priority: u16_at(2),
            cookie: u64::from_be_bytes(head[12..20].try_into().ok()?),
            flags: u16_at(4),
            idle_timeout: u16_at(6),
            hard_timeout: u16_at(8),
            installed: Instant::default(),
            match_wire: match_wire.into(),
            actions: actions.into(),
            rules: Vec::new(),
            shadowed: Shadowed::default(),
            past_packets: 0,
            past_bytes: 0,
            counts_since: 0,
        })
    }
}

/// Bytes of what nobody else holds.
fn own<T: ?Sized>(bytes: &Arc<T>) -> usize {
    if Arc::strong_count(bytes) == 1 { size_of_val(&**bytes) } else { 0 }
}

/// Whether these are the same entries on the switch, whatever they do.
fn are_where(some: &[Rule], others: &[Rule]) -> bool {
    let is_where = |(one, other): (&Rule, &Rule)| {
        (one.priority, &one.match_wire) == (other.priority, &other.match_wire)
    };
    some.len() == others.len() && some.iter().zip(others).all(is_where)
}

const SECOND: u64 = 1_000_000_000;

/// Bytes of a stored flow before its match.
const HEAD: usize = 20;

/// First byte of a flow that was stored when it did not say of which version it is.
const FORMAT: u8 = 1;

/// First byte of a stored flow.
fn format_of(version: Version) -> u8 {
    match version {
        Version::V1_0 => 2,
        _ => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowspace::Field;

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
            past_packets: 0,
            past_bytes: 0,
            counts_since: 0,
        }
    }

    fn port(n: u128) -> Match {
        Match::exact(Field::InPort, n)
    }

    #[test]
    fn entries_are_found_by_what_identifies_them() {
        let mut table = FlowTable::default();
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
    fn a_wide_request_means_all_that_is_narrower() {
        let mut table = FlowTable::default();
        for (i, m) in [Match::ANY, port(1), port(2)].into_iter().enumerate() {
            let id = table.number();
            table.put(id, flow(m, i as u16));
        }
        assert_eq!(table.matching(None, &Match::ANY).len(), 3);
        assert_eq!(table.matching(None, &port(1)).len(), 1);
        assert_eq!(table.matching(Some(1), &Match::ANY).len(), 0);
    }

    #[test]
    fn overlap_is_between_different_entries_of_one_priority() {
        let mut table = FlowTable::default();
        let id = table.number();
        table.put(id, flow(port(1), 5));
        assert!(table.overlaps(0, &Match::ANY, 5));
        assert!(!table.overlaps(0, &Match::ANY, 6));
        assert!(!table.overlaps(0, &port(1), 5));
        assert!(!table.overlaps(0, &port(2), 5));
    }

    #[test]
    fn a_stored_entry_comes_back() {
        let before = flow(port(1), 9);
        let versions = [Version::V1_0, Version::V1_3];
        for (version, other) in versions.into_iter().zip(versions.into_iter().rev()) {
            let mut bytes = before.to_bytes(version);
            let parse = |wire: &[u8]| (wire == [1, 2, 3]).then(|| port(1));
            assert_eq!(Flow::from_bytes(&bytes, version, parse).as_ref(), Some(&before));
            assert_eq!(Flow::from_bytes(&bytes, other, parse), None);
            for n in 0..20 {
                assert_eq!(Flow::from_bytes(&bytes[..n], version, |_| Some(Match::ANY)), None);
            }
            // What was stored before entries said of which version they are.
            bytes[0] = FORMAT;
            assert_eq!(Flow::from_bytes(&bytes, version, parse).as_ref(), Some(&before));
        }
    }
}
