//! `weir serve --adopt`: after the loss of a store, a new store takes over the old store's installation number, and Weir makes entries of
//! the rules that are still on the switch. Weir sends no message for this: the rules keep their cookies, counters and
//! time-outs.
//!
//! The rules of one cookie become one entry. The entry's match is the match of its only rule, or has the fields that
//! all its rules' matches have in common. Weir adopts the entry only if it compiles to exactly the rules that the
//! switch holds. Weir leaves all other rules on the switch, and puts their cookies into the store: without this, the
//! reconciliation would delete rules that belong to no entry. A rule shows neither the cookie that the tenant gave, nor
//! whether the tenant wants a FLOW_REMOVED.
//!
//! Weir does not adopt rules of networks, since their labels and ports were lost with the store, and rules that name
//! groups or meters, which have no cookies. Start reading at [`Switch::adopt_rules`].

use super::{Cause, Event, Switch};
use crate::cookie::Cookie;
use crate::flows::Flow;
use crate::messages;
use crate::south::reports::{ReportedRule, TimeoutsAndFlags};
use crate::store::{Kind, StoreKey, StoreOp};
use crate::time::Instant;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use compile::metadata::TENANT;
use flowspace::{Field, Match};

/// The most cookies in one item of the store.
const OF_ITEM: usize = 4096;

/// OFPFF_SEND_FLOW_REM, in both versions; OFPFF_NO_PKT_COUNTS and OFPFF_NO_BYT_COUNTS (1.3).
const FLAGS: u16 = 1 | 8 | 16;

impl Switch {
    /// Whether entries are to be made of rules: the operator asks for adoption, and the store has nothing of this
    /// switch.
    pub(super) fn is_to_adopt(&self) -> bool {
        self.settings.adopts && self.journal.restored().is_empty() && !self.datapath.is_joined()
    }

    /// Cookies of rules that did not become entries, by the store.
    pub(super) fn left_cookies(&self) -> BTreeSet<u64> {
        let items = self.journal.restored().iter().filter(|(key, _)| {
            key.tenant == Cookie::OWN && key.parts().is_some_and(|(kind, _)| kind == Kind::Left)
        });
        items
            .flat_map(|(_, bytes)| bytes.as_chunks::<8>().0)
            .map(|cookie| u64::from_be_bytes(*cookie))
            .collect()
    }

    /// No new entry gets the number of a rule that is left: otherwise the rule's counters would count for the entry.
    pub(super) fn reserve_numbers(&mut self, left: &BTreeSet<u64>) {
        for cookie in left.iter().filter_map(|it| Cookie::of_any(*it)) {
            if let Some(tenant) = self.tenant_of(cookie.tenant) {
                self.tenants[tenant].flows.reserve(cookie.number);
            }
        }
    }

    /// Makes entries of the rules. Returns the cookies of the rules that do not become entries.
    pub(super) fn adopt_rules(&mut self, held: &[ReportedRule], now: Instant) -> BTreeSet<u64> {
        let mut by_cookie: BTreeMap<u64, Vec<&ReportedRule>> = BTreeMap::new();
        for rule in held {
            let cookie = Cookie::from_wire(rule.cookie, self.settings.installation);
            if cookie.is_some_and(|cookie| !cookie.is_own()) {
                by_cookie.entry(rule.cookie).or_default().push(rule);
            }
        }
        let (mut entries, mut rules_left, mut left) = (0, 0, BTreeSet::new());
        for (cookie, rules) in by_cookie {
            match self.adopt_entry(cookie, &rules, now) {
                Some(()) => entries += 1,
                None => {
                    rules_left += rules.len();
                    left.insert(cookie);
                }
            }
        }
        // At least one item: it says that the store knows this switch.
        let cookies: Vec<u8> = left.iter().flat_map(|cookie| cookie.to_be_bytes()).collect();
        let mut items = cookies.chunks(8 * OF_ITEM);
        let first = items.next().unwrap_or_default();
        for (number, item) in (0..).zip([first].into_iter().chain(items)) {
            let key = StoreKey::new(Cookie::OWN, Kind::Left, number);
            self.journal.push(StoreOp::Put(key, item.to_vec()));
        }
        if entries + rules_left > 0 {
            self.reports.push(Event::Adopted { entries, left: rules_left });
        }
        left
    }

    /// Makes one entry of the rules of a cookie, if the entry becomes exactly these rules.
    fn adopt_entry(&mut self, cookie: u64, held: &[&ReportedRule], now: Instant) -> Option<()> {
        let cookie = Cookie::of_any(cookie).filter(|cookie| cookie.number != 0)?;
        let tenant = self.tenant_of(cookie.tenant)?;
        if self.tenants[tenant].network.is_some() {
            return None;
        }
        let (first, others) = held.split_first()?;
        let match_ = others.iter().fold(first.match_, |all, it| common(&all, &it.match_));
        let match_wire = self.tenants_match(match_)?;
        let match_ = messages::read_match(self.wire, &match_wire)?;
        let first_table = self.target().first_table();
        let actions = messages::tenants_actions(self.wire, &first.actions, first_table)?;
        let terms = TimeoutsAndFlags { flags: first.terms.flags & FLAGS, ..first.terms };
        let flow = Flow {
            table: first.table.checked_sub(first_table)?,
            priority: first.priority,
            installed: held.iter().map(|it| it.installed(now)).min()?,
            ..Flow::new(&match_, match_wire.into(), actions.into(), terms)
        };
        if flow.names_numbers() {
            return None;
        }
        let rules = self.plan(tenant, &flow).ok()?;
        let flow = Flow { rules, ..flow };
        let is_same = |it: &&&ReportedRule| {
            it.terms == first.terms
                && flow.rules.iter().any(|rule| {
                    self.is_held(&flow, rule, it) && self.same_actions(&rule.actions, &it.actions)
                })
        };
        // The matches on the switch differ from one another, and so do the matches of the compiled rules.
        if flow.rules.len() != held.len() || held.iter().filter(is_same).count() != held.len() {
            return None;
        }
        let flows = &self.tenants[tenant].flows;
        let is_known = flows.find_same(&flow).is_some();
        if is_known || flows.collides(cookie.number, &flow) {
            return None;
        }
        self.put_flow(&Cause::own(tenant, now), cookie.number, flow);
        Some(())
    }

    /// The match of a rule on the wire, without Weir's bits of the metadata.
    fn tenants_match(&self, match_: Match) -> Option<Vec<u8>> {
        let (value, mask) = match_.get(Field::Metadata);
        let (value, mask) = (value & !u128::from(TENANT), mask & !u128::from(TENANT));
        let match_ = match_.with_masked(Field::Metadata, value, mask);
        Some(self.rule_key(0, 0, &match_).match_wire.to_vec()).filter(|wire| !wire.is_empty())
    }
}

/// The fields that two matches have in common.
fn common(one: &Match, other: &Match) -> Match {
    let equal = Field::ALL.iter().filter(|field| one.get(**field) == other.get(**field));
    equal.fold(Match::ANY, |all, field| {
        let (value, mask) = one.get(*field);
        all.with_masked(*field, value, mask)
    })
}
