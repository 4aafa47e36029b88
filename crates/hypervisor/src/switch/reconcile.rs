//! Bringing the switch to where the tenants' tables say it should be, without wiping anything.

use super::{Cause, Event, Switch};
use crate::cookie::{Cookie, Installation};
use crate::flows::{Flow, Rule};
use crate::ids::TenantIndex;
use crate::messages;
use crate::south::diff::Change;
use crate::south::held::{Held, HeldNumbers as Numbers};
use crate::south::installed::{Content, Owner};
use crate::store::{Kind, StoreKey, StoreOp};
use crate::time::Instant;
use crate::work::PLAN;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use compile::rule::check_reportable;
use compile::wire::do_the_same;
use compile::{Refused, RuleKey, entry};
use flowspace::Match;
use hashbrown::HashSet;
use openflow::NO_BUFFER;

impl Switch {
    /// Compares what the switch holds with what it should hold, and mends the difference.
    ///
    /// An entry that could have timed out meanwhile and is missing has timed out. A permanent one is installed again.
    /// An entry of ours that is in no tenant's table is removed. An entry without our mark is left alone.
    pub(crate) fn reconcile(&mut self, now: Instant) {
        let learned = self.datapath.take_learned();
        let (is_to_adopt, mut left_cookies) = (self.is_to_adopt(), self.left_cookies());
        let numbers = self.learn_numbers(&learned.groups, &learned.meters);
        self.restore(&numbers, now);
        let mut held: Vec<Held> = Vec::with_capacity(learned.flows.len());
        for rules in learned.flows.rules() {
            held.extend(messages::held(self.wire, rules));
        }
        if is_to_adopt {
            left_cookies = self.adopt_rules(&held, now);
        }
        self.reserve_numbers(&left_cookies);
        let (mut kept, mut installed, mut removed) = (0, 0, 0);
        let (mut left, foreign) = (learned.left, learned.foreign);
        let mut seen: HashSet<(TenantIndex, RuleKey)> = HashSet::new();
        let mut held_keys: BTreeMap<TenantIndex, Vec<RuleKey>> = BTreeMap::new();
        let mut own_seen = Vec::new();
        for entry in &held {
            self.keep_owner(entry, now);
        }
        for entry in &held {
            let cookie = Cookie::from_wire(entry.cookie, self.settings.installation);
            let Some(cookie) = cookie.filter(|_| !left_cookies.contains(&entry.cookie)) else {
                match Installation::of(entry.cookie) {
                    Some(it) if self.settings.takes_over == Some(it) => {
                        self.delete_held(entry, now);
                        removed += 1;
                    }
                    Some(it) => *left.entry(it).or_default() += 1,
                    None => {}
                }
                continue;
            };
            if cookie.is_own() {
                own_seen.push(entry);
                continue;
            }
            let Some(tenant) = self.tenant_of(cookie.tenant) else {
                self.delete_held(entry, now);
                removed += 1;
                continue;
            };
            let number = cookie.number;
            let flow = self.tenants[tenant.0 as usize].flows.get(number);
            let rule = flow.and_then(|flow| {
                let rule = flow.rules.iter().find(|rule| self.is_held(flow, rule, entry))?;
                Some((flow, rule))
            });
            let program = match rule {
                Some((_, rule)) if self.same_actions(&rule.actions, &entry.actions) => {
                    kept += 1;
                    Arc::clone(&rule.actions)
                }
                _ => entry.actions.as_slice().into(),
            };
            let terms = flow.map(Flow::times).unwrap_or_default();
            let key = match rule {
                Some((flow, rule)) => rule.key(flow.table),
                None => self.rule_key(entry.table, entry.priority, &entry.match_),
            };
            if rule.is_some() {
                seen.insert((tenant, key.clone()));
                if let Some(flow) = self.tenants[tenant.0 as usize].flows.get_mut(number) {
                    flow.installed = flow.installed.min(entry.installed(now));
                }
            }
            let content = Content { owner: Owner { tenant, number }, program, terms };
            self.session.installed_mut().learn(key.clone(), content);
            held_keys.entry(tenant).or_default().push(key);
        }
        let mut differences = Vec::new();
        for at in 0..self.tenants.len() {
            let tenant = TenantIndex(at as u32);
            let cause = Cause::own(tenant, now);
            let mut keys = held_keys.remove(&tenant).unwrap_or_default();
            let numbers: Vec<u32> = self.tenants[at].flows.iter().map(|(n, _)| n).collect();
            for number in numbers {
                let Some(flow) = self.tenants[at].flows.get(number) else { continue };
                let is_missing = |rule: &Rule| !seen.contains(&(tenant, rule.key(flow.table)));
                let missing = flow.rules.iter().filter(|rule| is_missing(rule)).count();
                if missing == 0 {
                    continue;
                }
                if flow.idle_timeout == 0 && flow.hard_timeout == 0 {
                    keys.extend(flow.keys());
                } else if missing == flow.rules.len() {
                    self.take_flow(&cause, number);
                } else {
                    let mut left = flow.clone();
                    left.rules.retain(|rule| !is_missing(rule));
                    self.tenants[at].flows.put(number, left);
                    self.tenants.note_freed(tenant);
                }
            }
            let difference = self.difference(tenant, keys);
            self.submit_deletions(&cause, &difference);
            removed += difference.deleted();
            installed += difference.added();
            differences.push((cause, difference));
        }
        let (k, i, r) = self.reconcile_own(&own_seen, now);
        (kept, installed, removed) = (kept + k, installed + i, removed + r);
        for (cause, difference) in differences {
            self.submit_additions(&cause, &difference);
        }
        self.datapath.count_deleted(removed);
        self.take_over(now);
        self.sweep_all_numbers(now);
        self.ids.note_unneeded();
        self.reports.set_others_entries(left.values().sum());
        self.reports.push(Event::Reconciled { kept, installed, removed, foreign });
        if !left.is_empty() {
            self.reports.push(Event::LeftOthers(left));
        }
    }

    /// An entry cannot stand any more.
    pub(crate) fn give_up(&mut self, cause: &Cause, number: u32) {
        let Some(flow) = self.take_flow(cause, number) else { return };
        for rule in &flow.rules {
            self.submit_rule(cause, number, &flow, rule, Change::Delete, NO_BUFFER);
        }
        self.await_removal(cause, number, flow);
    }

    /// What has to stand on the switch for an entry of a tenant. In a network that may be nothing, for now: its packets
    /// come in elsewhere, or its link has no path.
    pub(crate) fn plan(&self, tenant: TenantIndex, flow: &Flow) -> Result<Vec<Rule>, Refused> {
        self.plan_like(tenant, flow, None)
    }

    /// The same of one that has the match of another, which stands.
    pub(crate) fn plan_like(
        &self,
        tenant: TenantIndex,
        flow: &Flow,
        like: Option<&Flow>,
    ) -> Result<Vec<Rule>, Refused> {
        let state = &self.tenants[tenant.0 as usize];
        state.flows.meter().add(PLAN);
        check_reportable(self.wire, &flow.match_wire, &flow.actions)?;
        let match_ = flow.match_.to_match();
        let standing = like.map_or(&[][..], |like| &like.rules);
        entry::compile_like(&self.context(tenant), &flow.spec(&match_), standing)
    }

    /// Fills the tables from the store, and installs the groups and meters.
    fn restore(&mut self, held: &Numbers, now: Instant) {
        let restored = self.journal.take_restored();
        // Ports first, then groups and meters: entries refer to them.
        self.restore_ports(&restored);
        for (key, bytes) in &restored {
            match key.parts() {
                Some((kind @ (Kind::Group | Kind::Meter), number)) => {
                    self.restore_number(kind, key.tenant, number, bytes);
                }
                Some((Kind::GroupToDelete, number)) => {
                    self.restore_deletion(key.tenant, Kind::Group, number);
                }
                Some((Kind::MeterToDelete, number)) => {
                    self.restore_deletion(key.tenant, Kind::Meter, number);
                }
                _ => {}
            }
        }
        self.reconcile_numbers(held, now);
        let (wire, stored_as) = (self.wire, self.semantics().stored_as);
        for (key, bytes) in restored {
            let Some((Kind::Flow, number)) = key.parts() else { continue };
            let read_match = |bytes: &[u8]| messages::read_match(wire, bytes);
            let flow = Flow::from_bytes(&bytes, stored_as, read_match);
            let kept = self.tenant_of(key.tenant).zip(flow).and_then(|(tenant, flow)| {
                let has_network = self.tenants[tenant.0 as usize].network.is_some();
                let metadata_kept = self.target().metadata_kept(has_network);
                let mut flow = messages::restored(wire, flow, metadata_kept)?;
                flow.installed = now;
                flow.rules = self.plan(tenant, &flow).ok()?;
                let flows = &mut self.tenants[tenant.0 as usize].flows;
                let same = flows.find(flow.table, &flow.match_.to_match(), flow.priority);
                if same.is_some() || flows.collides(number, &flow) {
                    return None;
                }
                flows.put(number, flow);
                self.tenants.keep_time(tenant, number, now);
                Some(())
            });
            if kept.is_none() {
                // No longer anybody's, or no longer permitted: the switch is rid of it below.
                self.journal.push(StoreOp::Delete(StoreKey::new(key.tenant, Kind::Flow, number)));
            }
        }
    }

    /// The entry of whose cookie the switch holds one owns it there, whichever others it could be of.
    fn keep_owner(&mut self, entry: &Held, now: Instant) {
        let Some(cookie) = Cookie::from_wire(entry.cookie, self.settings.installation) else {
            return;
        };
        let Some(tenant) = self.tenant_of(cookie.tenant) else { return };
        let flows = &self.tenants[tenant.0 as usize].flows;
        let shadowed = flows.get(cookie.number).and_then(|flow| {
            let shadowed = flow.shadowed.iter().find(|rule| self.is_held(flow, rule, entry));
            Some((flow.table, shadowed?.clone()))
        });
        let Some((table, rule)) = shadowed else { return };
        let flows = &mut self.tenants[tenant.0 as usize].flows;
        let before = flows.own(cookie.number, table, &rule);
        for number in before.into_iter().chain([cookie.number]) {
            self.tenants.keep_time(tenant, number, now);
        }
    }

    pub(super) fn is_held(&self, flow: &Flow, rule: &Rule, entry: &Held) -> bool {
        let match_ = messages::read_match(self.wire, &rule.match_wire);
        let table = flow.table.saturating_add(self.target().first_table());
        match_ == Some(entry.match_) && rule.priority == entry.priority && table == entry.table
    }

    pub(super) fn same_actions(&self, a: &[u8], b: &[u8]) -> bool {
        do_the_same(self.wire, a, b)
    }

    /// What identifies a rule that the switch speaks of.
    pub(crate) fn rule_key(&self, table: u8, priority: u16, match_: &Match) -> RuleKey {
        let table = table.saturating_sub(self.target().first_table());
        RuleKey { table, priority, match_wire: messages::write_match(self.wire, match_).into() }
    }

    fn delete_held(&mut self, entry: &Held, now: Instant) {
        let mut message = Vec::new();
        let Held { table, priority, cookie, ref match_wire, .. } = *entry;
        let place = (table, priority);
        let written = messages::write_removal(self.wire, match_wire, place, cookie, &mut message);
        if written.is_ok() {
            self.send_own(crate::south::pending::Awaits::Nothing, &message, now);
        }
    }
}
