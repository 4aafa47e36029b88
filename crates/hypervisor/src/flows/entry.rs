//! One entry, as the tenant sees it, and its rules on the switch.

use crate::named::named_of;
use crate::south::installed::{Content, Owner};
use crate::south::reports::{Age, ReportedRule, TimeoutsAndFlags};
use crate::store::Kind;
use crate::tally::Count;
use crate::time::{Duration, Instant};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use compile::{EntrySpec, Rule, RuleKey};
use core::ops::Deref;
use flowspace::{Match, MiniMatch, MiniWords};
use hashbrown::HashMap;

/// One entry, as the tenant sees it, and the entry's rules on the switch. Copies of an entry share all long parts: Weir
/// keeps the entry from before a change until the switch has confirmed the change, and one request can change thousands
/// of entries.
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
    /// When the entry was added, for the hard time-out. The store does not have this time: the switch says how long it
    /// has held a rule.
    pub installed: Instant,
    /// The match as the tenant wrote it.
    pub match_wire: Arc<[u8]>,
    /// Actions (1.0) or instructions (1.3) as the tenant wrote them.
    pub actions: Arc<[u8]>,
    /// The entry's rules on the switch.
    pub rules: Vec<Rule>,
    /// Rules that are the same on the switch as a rule of another entry: see `flows::shared`.
    pub shadowed: Shadowed,
    /// What rules that are gone have counted.
    pub past: Count,
    /// The number of a message to the switch. Counters of rules that this message or an earlier message has deleted do
    /// not count for the entry.
    pub counts_since: u32,
}

/// The shadowed rules of an entry. Few entries have shadowed rules, so an entry without them has only a pointer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shadowed(Option<Box<Rules>>);

#[derive(Clone, Debug, Default, PartialEq)]
struct Rules(Vec<Rule>);

impl Deref for Shadowed {
    type Target = [Rule];

    fn deref(&self) -> &[Rule] {
        self.0.as_ref().map_or(&[], |rules| &rules.0)
    }
}

impl Extend<Rule> for Shadowed {
    fn extend<T: IntoIterator<Item = Rule>>(&mut self, rules: T) {
        for rule in rules {
            self.0.get_or_insert_default().0.push(rule);
        }
    }
}

impl Shadowed {
    /// Removes the first rule for which `is_meant` says yes.
    pub(super) fn take(&mut self, is_meant: impl Fn(&Rule) -> bool) -> Option<Rule> {
        let rules = &mut self.0.as_mut()?.0;
        let at = rules.iter().position(is_meant)?;
        let rule = rules.remove(at);
        if rules.is_empty() {
            self.0 = None;
        }
        Some(rule)
    }
}

impl Flow {
    /// An entry made of a rule that the switch holds, as if a tenant had written the rule. The entry has no time.
    pub(crate) fn of_held(it: ReportedRule) -> Flow {
        let flow = Flow::new(&it.match_, it.match_wire.into(), it.actions.into(), it.terms);
        Flow { table: it.table, priority: it.priority, cookie: it.cookie, ..flow }
    }

    /// An entry of table 0 without priority, cookie, time and rules.
    pub(crate) fn new(
        match_: &Match,
        match_wire: Arc<[u8]>,
        actions: Arc<[u8]>,
        terms: TimeoutsAndFlags,
    ) -> Flow {
        let TimeoutsAndFlags { idle_timeout, hard_timeout, flags } = terms;
        Flow {
            table: 0,
            match_: MiniMatch::new(match_),
            priority: 0,
            cookie: 0,
            flags,
            idle_timeout,
            hard_timeout,
            installed: Instant::default(),
            match_wire,
            actions,
            rules: Vec::new(),
            shadowed: Default::default(),
            past: Count::default(),
            counts_since: 0,
        }
    }

    /// Whether the actions name groups or meters (1.3).
    pub(crate) fn names_numbers(&self) -> bool {
        [Kind::Group, Kind::Meter].iter().any(|kind| !named_of(*kind, &self.actions).is_empty())
    }

    /// The entry without its rules, its match on the wire and its actions.
    pub(crate) fn without_rules(&self) -> Flow {
        Flow { match_wire: Arc::default(), ..self.with_actions(&Arc::default()) }
    }

    /// The rest of the hard time-out in seconds, rounded up; 0 without a hard time-out. `None` if the time is over.
    pub(crate) fn left(&self, now: Instant) -> Option<u16> {
        if self.hard_timeout == 0 {
            return Some(0);
        }
        let over = self.installed + Duration::from_secs(self.hard_timeout.into());
        let left = over.nanos_since(now).div_ceil(SECOND);
        let left = u16::try_from(left).unwrap_or(self.hard_timeout);
        (left > 0).then_some(left)
    }

    /// Whether the tenant wants a FLOW_REMOVED.
    pub(crate) fn is_end_reported(&self) -> bool {
        /// OFPFF_SEND_FLOW_REM, in both versions.
        const SEND_FLOW_REM: u16 = 1;
        self.flags & SEND_FLOW_REM != 0
    }

    /// How long the entry has been installed.
    pub(crate) fn stood(&self, now: Instant) -> Age {
        let stood = now - self.installed;
        let duration_sec = u32::try_from(stood.as_secs()).unwrap_or(u32::MAX);
        Age { duration_sec, duration_nsec: stood.subsec_nanos() }
    }

    /// Adds what a rule that was removed has counted.
    pub(crate) fn count_past(&mut self, counted: Count) {
        self.past = self.past.plus(counted);
    }

    /// The same entry with other actions, before it is compiled: without rules.
    pub(crate) fn with_actions(&self, actions: &Arc<[u8]>) -> Flow {
        let (match_, match_wire) = (self.match_.clone(), Arc::clone(&self.match_wire));
        let (rules, shadowed) = (Vec::new(), Shadowed::default());
        Flow { rules, shadowed, match_, match_wire, actions: Arc::clone(actions), ..*self }
    }

    /// Whether the other entry has the same table, match and priority, and rules with the same keys.
    pub(super) fn has_same_keys(&self, other: &Flow) -> bool {
        (self.table, self.priority) == (other.table, other.priority)
            && self.match_ == other.match_
            && have_same_keys(&self.rules, &other.rules)
            && have_same_keys(&self.shadowed, &other.shadowed)
    }

    /// Whether the rules of both entries have the same keys, whatever the rules do.
    pub(crate) fn has_same_rule_keys(&self, other: &Flow) -> bool {
        have_same_keys(&self.rules, &other.rules)
    }

    /// The number of the entry's rules, with the shadowed rules.
    pub(crate) fn planned(&self) -> usize {
        self.rules.len() + self.shadowed.len()
    }

    /// Whether both entries have the same rules.
    pub(crate) fn has_same_rules(&self, other: &Flow) -> bool {
        (&self.rules, &self.shadowed) == (&other.rules, &other.shadowed)
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

    /// Bytes that only this entry holds, roughly: without bytes that it shares with other entries or copies.
    pub(crate) fn size(&self) -> usize {
        let rules = self.rules.iter().chain(self.shadowed.iter());
        let rules = rules.map(|it| size_of_val(it) + own(&it.match_wire) + own(&it.actions));
        let matches = own(self.match_.shared()) + own(&self.match_wire);
        size_of::<Flow>() + matches + own(&self.actions) + rules.sum::<usize>()
    }

    /// Whether a request means the entry. A strict request has this match and the priority `strictly`; another request
    /// has a match that contains the entry's match.
    pub(crate) fn is_covered(&self, match_: &MiniWords, strictly: Option<u16>) -> bool {
        match strictly {
            Some(priority) => {
                self.match_.as_slice() == match_.as_slice() && self.priority == priority
            }
            None => self.match_.is_within(match_),
        }
    }

    /// Whether the entry has this priority, and a packet can match both the entry and this match.
    pub(crate) fn overlaps(&self, match_: &Match, priority: u16) -> bool {
        self.priority == priority && self.match_.overlaps(match_)
    }

    /// The entry as the compiler takes it. `match_` is the match of the entry.
    pub(crate) fn spec<'a>(&'a self, match_: &'a Match) -> EntrySpec<'a> {
        let Flow { table, priority, ref actions, .. } = *self;
        EntrySpec { table, priority, match_, actions }
    }

    /// What the switch holds of a rule of the entry.
    pub(crate) fn content(&self, owner: Owner, rule: &Rule) -> Content {
        Content { owner, program: Arc::clone(&rule.actions), terms: self.terms() }
    }

    /// The rule that the switch has under this key.
    pub(crate) fn rule_at(&self, key: &RuleKey) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.match_wire == key.match_wire)
    }

    /// The keys of the entry's rules on the switch.
    pub(crate) fn keys(&self) -> impl Iterator<Item = RuleKey> + '_ {
        self.rules.iter().map(|rule| rule.key(self.table))
    }

    /// The time-outs and flags.
    pub(crate) fn terms(&self) -> TimeoutsAndFlags {
        let Flow { idle_timeout, hard_timeout, flags, .. } = *self;
        TimeoutsAndFlags { idle_timeout, hard_timeout, flags }
    }

    /// The entry's rules by their matches: an entry can have hundreds of rules.
    pub fn by_match(&self) -> HashMap<&[u8], &Rule> {
        self.rules.iter().map(|rule| (&*rule.match_wire, rule)).collect()
    }

    /// The entry for the store, without what can be computed. `format` says the version of match and actions.
    pub fn to_bytes(&self, format: u8) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEAD + self.match_wire.len() + self.actions.len());
        out.push(format);
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

    /// The inverse of [`to_bytes`](Self::to_bytes); `parse` reads a match of the spoken version. `None` for bytes of
    /// another format or version, whose meaning would differ.
    pub fn from_bytes(
        bytes: &[u8],
        format: u8,
        parse: impl FnOnce(&[u8]) -> Option<Match>,
    ) -> Option<Flow> {
        let head: &[u8; HEAD] = bytes.first_chunk()?;
        let u16_at = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
        if ![FORMAT, format].contains(&head[0]) {
            return None;
        }
        let rest = &bytes[HEAD..];
        let (match_wire, actions) = rest.split_at_checked(usize::from(u16_at(10)))?;
        let terms =
            TimeoutsAndFlags { idle_timeout: u16_at(6), hard_timeout: u16_at(8), flags: u16_at(4) };
        let flow = Flow::new(&parse(match_wire)?, match_wire.into(), actions.into(), terms);
        let cookie = u64::from_be_bytes(head[12..20].try_into().ok()?);
        Some(Flow { table: head[1], priority: u16_at(2), cookie, ..flow })
    }
}

/// The size of these bytes if nobody else holds them, else 0.
pub(super) fn own<T: ?Sized>(bytes: &Arc<T>) -> usize {
    if Arc::strong_count(bytes) == 1 { size_of_val(&**bytes) } else { 0 }
}

/// Whether these rules have the same keys, whatever the rules do.
fn have_same_keys(some: &[Rule], others: &[Rule]) -> bool {
    let has_same_key = |(one, other): (&Rule, &Rule)| {
        (one.priority, &one.match_wire) == (other.priority, &other.match_wire)
    };
    some.len() == others.len() && some.iter().zip(others).all(has_same_key)
}

const SECOND: u64 = 1_000_000_000;

/// Bytes of a stored flow before its match.
const HEAD: usize = 20;

/// The first byte of an entry that was stored without its version.
pub(super) const FORMAT: u8 = 1;

/// One unit of an entry's size: a rule of up to this many bytes counts as one.
const UNIT: usize = 1024;

/// What long entries count for, beside their rules.
#[derive(Debug, Default)]
pub(super) struct Long {
    pub(super) of: BTreeMap<u32, usize>,
    pub(super) all: usize,
}

impl Long {
    pub(super) fn insert(&mut self, id: u32, flow: &Flow) {
        let more = beside(flow, flow.rules.iter().chain(flow.shadowed.iter()));
        if more > 0 {
            self.of.insert(id, more);
            self.all += more;
        }
    }

    pub(super) fn remove(&mut self, id: u32) {
        if let Some(more) = self.of.remove(&id) {
            self.all -= more;
        }
    }
}

/// What an entry counts for, beside its rules. Each rule counts for one.
pub(super) fn beside<'a>(flow: &Flow, rules: impl Iterator<Item = &'a Rule>) -> usize {
    let own = flow.match_wire.len() + flow.actions.len();
    let (count, all) = rules.fold((0, own), |(count, all), rule| (count + 1, all + rule.size()));
    (all / UNIT).saturating_sub(count)
}
