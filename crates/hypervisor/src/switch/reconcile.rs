//! Reconciliation: a switch that connects gets the rules that the tenants' tables need, and loses no other
//! installation's rules.
//!
//! Weir compares the rules on the switch with the tables, and repairs the difference. An entry with a time-out whose
//! rules are missing has timed out while the switch was not connected. Weir installs a permanent entry again. Weir
//! deletes rules with its own mark that are in no table, and leaves rules without its mark.
//!
//! A switch may hold a hundred thousand rules. One turn of the event loop does a batch of the [steps](state::Step);
//! then come other switches. Until the last batch Weir serves no tenant on this switch, and no entry times out.
//! Messages of the switch wait, except ECHO_REQUEST and PACKET_IN.

mod restore;
pub(super) mod state;

use super::mend::difference::Deletion;
use super::{Cause, Event, Object, Switch};
use crate::cookie::{Cookie, Installation};
use crate::flows::{Flow, Rule};
use crate::ids::TenantIndex;
use crate::messages;
use crate::south::installed::{Content, Owner};
use crate::south::reports::ReportedRule;
use crate::time::Instant;
use crate::work::PLAN;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use compile::rule::check_reportable;
use compile::wire::do_the_same;
use compile::{Refused, RuleKey, entry};
use flowspace::Match;
use hashbrown::{HashMap, HashSet};
use openflow::Header;
use openflow::v13::MessageType;
use state::{Reconciliation, Step};

impl Switch {
    /// The switch has reported all its rules, groups and meters: the reconciliation begins.
    pub(super) fn begin_to_reconcile(&mut self, now: Instant) {
        let learned = self.datapath.take_learned();
        let (is_to_adopt, left_cookies) = (self.is_to_adopt(), self.left_cookies());
        let restored = self.begin_to_restore(&learned.groups, &learned.meters);
        let reconciliation = Reconciliation {
            step: Some(Step::GroupsAndMeters(self.all_groups(), restored)),
            held: Vec::with_capacity(learned.rules),
            seen: HashSet::with_capacity(learned.rules),
            parts: learned.flows.into_iter(),
            is_to_adopt,
            left_cookies,
            foreign: learned.foreign,
            left: learned.left,
            ..Reconciliation::default()
        };
        self.datapath.set_reconciling(Box::new(reconciliation));
        self.continue_to_reconcile(now);
    }

    /// Does the next batch of the reconciliation.
    pub(super) fn continue_to_reconcile(&mut self, now: Instant) {
        let Some(mut it) = self.datapath.take_reconciling() else { return };
        let mut left = self.settings.batch;
        while left > 0
            && let Some(step) = it.step.take()
        {
            it.step = self.reconcile_step(&mut it, step, &mut left, now);
        }
        match it.step {
            Some(_) => self.datapath.set_reconciling(it),
            None => self.reconciled(*it, now),
        }
    }

    /// Whether a message of the switch waits until the tables are reconciled. Weir closes the session if there is no
    /// room for the message.
    pub(super) fn waits_for_reconciliation(&mut self, header: Header, frame: &[u8]) -> bool {
        let Some(reconciliation) = self.datapath.reconciling_mut() else { return false };
        // No tenant is served, so nobody waits for a PACKET_IN.
        if [MessageType::ECHO_REQUEST.0, MessageType::PACKET_IN.0].contains(&header.type_) {
            return false;
        }
        if !reconciliation.wait(frame) {
            self.close("the switch says too much while its tables are reconciled");
        }
        true
    }

    /// Does a step, as far as `left` allows in this turn. Returns the next step, or the rest of this one.
    fn reconcile_step(
        &mut self,
        it: &mut Reconciliation,
        mut step: Step,
        left: &mut usize,
        now: Instant,
    ) -> Option<Step> {
        let is_done = match &mut step {
            Step::GroupsAndMeters(numbers, _) => {
                self.groups_follow(numbers, left, now);
                *left > 0
            }
            Step::Restore(restored) => self.each(restored, left, |switch, (key, bytes)| {
                switch.restore_entry_of_store(key, &bytes, now);
            }),
            Step::Read => {
                let part = it.parts.next();
                if let Some(part) = &part {
                    let held = messages::reported_rules(self.wire, part);
                    *left = left.saturating_sub(held.len());
                    it.held.extend(held);
                }
                part.is_none()
            }
            Step::KeepOwners(at) => {
                let held = it.held.get(*at..).unwrap_or_default();
                for entry in held.iter().take(*left) {
                    self.keep_owner(entry, now);
                }
                let done = held.len().min(*left);
                *left -= done;
                *at += done;
                *at >= it.held.len()
            }
            Step::Learn(held) => {
                self.each(held, left, |switch, entry| switch.learn_held(it, entry, now))
            }
            Step::FindMissing(entries) => {
                self.each(entries, left, |switch, entry| switch.find_missing(it, entry))
            }
            Step::Compare(keys, compared) => {
                let mut rules = HashMap::new();
                while *left > 0
                    && let Some((tenant, key)) = keys.next()
                {
                    *left -= 1;
                    if !compared.insert((tenant, key.clone())) {
                        continue;
                    }
                    let difference = it.differences.entry(tenant).or_default();
                    let cost = self.compare(tenant, &key, &mut rules, difference);
                    *left = left.saturating_sub(cost - 1);
                }
                keys.len() == 0
            }
            Step::Delete(deletions) => {
                self.each(deletions, left, |switch, (tenant, (key, owner))| {
                    switch.submit_deletion(&Cause::own(tenant, now), key, owner);
                })
            }
            Step::Own(changes) => self.own_rules_follow(changes, left, now),
            Step::Add(additions) => {
                while *left > 0
                    && let Some((tenant, number, rules)) = additions.next()
                {
                    let cause = self.begin_repair(&Cause::own(tenant, now), Object::Entry(number));
                    self.submit_rules_of(&cause, number, &rules);
                    *left = left.saturating_sub(rules.len());
                }
                additions.len() == 0
            }
        };
        if !is_done {
            return Some(step);
        }
        Some(match step {
            Step::GroupsAndMeters(_, restored) => Step::Restore(restored),
            Step::Restore(_) => Step::Read,
            Step::Read => {
                if it.is_to_adopt {
                    it.left_cookies = self.adopt_rules(&it.held, now);
                }
                self.reserve_numbers(&it.left_cookies);
                Step::KeepOwners(0)
            }
            Step::KeepOwners(_) => Step::Learn(core::mem::take(&mut it.held).into_iter()),
            Step::Learn(_) => Step::FindMissing(self.all_entries().into_iter()),
            Step::FindMissing(_) => {
                Step::Compare(core::mem::take(&mut it.keys).into_iter(), HashSet::new())
            }
            Step::Compare(..) => Step::Delete(next_to_delete(it).into_iter()),
            Step::Delete(_) => {
                let (changes, (kept, installed, removed)) =
                    self.reconcile_own(core::mem::take(&mut it.own));
                it.count(kept, installed, removed);
                Step::Own(changes)
            }
            Step::Own(_) => Step::Add(core::mem::take(&mut it.additions).into_iter()),
            Step::Add(_) => return None,
        })
    }

    /// Looks up in the tables a rule that the switch holds. A rule of a tenant that does not exist is deleted.
    fn learn_held(&mut self, it: &mut Reconciliation, entry: ReportedRule, now: Instant) {
        let cookie = Cookie::from_wire(entry.cookie, self.settings.installation);
        let Some(cookie) = cookie.filter(|_| !it.left_cookies.contains(&entry.cookie)) else {
            match Installation::of(entry.cookie) {
                Some(one) if self.settings.takes_over == Some(one) => {
                    self.delete_held(&entry, now);
                    it.count(0, 0, 1);
                }
                Some(one) => *it.left.entry(one).or_default() += 1,
                None => {}
            }
            return;
        };
        if cookie.is_own() {
            it.own.push(entry);
            return;
        }
        let Some(tenant) = self.tenant_of(cookie.tenant) else {
            self.delete_held(&entry, now);
            it.count(0, 0, 1);
            return;
        };
        let number = cookie.number;
        let flow = self.tenants[tenant].flows.get(number);
        let rule = flow.and_then(|flow| {
            let rule = flow.rules.iter().find(|rule| self.is_held(flow, rule, &entry))?;
            Some((flow, rule))
        });
        let program = match rule {
            Some((_, rule)) if self.same_actions(&rule.actions, &entry.actions) => {
                it.count(1, 0, 0);
                Arc::clone(&rule.actions)
            }
            _ => entry.actions.as_slice().into(),
        };
        let terms = flow.map(Flow::terms).unwrap_or_default();
        let key = match rule {
            Some((flow, rule)) => rule.key(flow.table),
            None => self.rule_key(entry.table, entry.priority, &entry.match_),
        };
        if rule.is_some() {
            it.seen.insert((tenant, key.clone()));
            if let Some(flow) = self.tenants[tenant].flows.get_mut(number) {
                flow.installed = flow.installed.min(entry.installed(now));
            }
        }
        let content = Content { owner: Owner { tenant, number }, program, terms };
        self.session.installed_mut().learn(key.clone(), content);
        it.keys.push((tenant, key));
    }

    /// All entries of all tenants.
    pub(super) fn all_entries(&self) -> Vec<Owner> {
        let entries = self.tenants.indices().flat_map(|tenant| {
            let flows = self.tenants[tenant].flows.iter();
            flows.map(move |(number, _)| Owner { tenant, number })
        });
        entries.collect()
    }

    /// Finds rules of an entry that the switch does not hold. They are installed again, or have timed out.
    fn find_missing(&mut self, it: &mut Reconciliation, entry: Owner) {
        let Owner { tenant, number } = entry;
        let Some(flow) = self.tenants[tenant].flows.get(number) else { return };
        let is_missing = |rule: &Rule| !it.seen.contains(&(tenant, rule.key(flow.table)));
        let missing = flow.rules.iter().filter(|rule| is_missing(rule)).count();
        if missing == 0 {
            return;
        }
        if flow.idle_timeout == 0 && flow.hard_timeout == 0 {
            it.keys.extend(flow.keys().map(|key| (tenant, key)));
        } else if missing == flow.rules.len() {
            self.drop_flow(tenant, number);
        } else {
            let mut left = flow.clone();
            left.rules.retain(|rule| !is_missing(rule));
            self.tenants[tenant].flows.put(number, left);
            self.tenants.note_freed(tenant);
        }
    }

    /// The last message of the reconciliation is in the queue to the switch: tenants can be served.
    fn reconciled(&mut self, it: Reconciliation, now: Instant) {
        let (kept, installed, removed) = it.counts;
        self.datapath.reconciled(removed);
        self.take_over(now);
        self.sweep_all_numbers(now);
        self.ids.note_unneeded();
        self.reports.counters_mut().others_entries = it.left.values().sum::<usize>() as u64;
        self.reports.push(Event::Reconciled { kept, installed, removed, foreign: it.foreign });
        if !it.left.is_empty() {
            self.reports.push(Event::LeftOthers(it.left));
        }
        self.begin_to_serve(now);
        for frame in it.waiting {
            self.handle_switch_message(&frame, now);
        }
        self.follow(now);
    }

    /// An entry cannot be installed any more: removes the entry and its rules.
    pub(crate) fn give_up(&mut self, cause: &Cause, number: u32) {
        let Some(flow) = self.take_flow(cause, number) else { return };
        self.delete_rules(cause, number, &flow);
        self.await_removal(cause, number, flow);
    }

    /// The rules of an entry of a tenant. In a network an entry may have no rules for now: its packets come in
    /// elsewhere, or its link has no path.
    pub(crate) fn plan(&self, tenant: TenantIndex, flow: &Flow) -> Result<Vec<Rule>, Refused> {
        self.plan_like(tenant, flow, None)
    }

    /// The rules of an entry with the same match as an installed entry.
    pub(crate) fn plan_like(
        &self,
        tenant: TenantIndex,
        flow: &Flow,
        like: Option<&Flow>,
    ) -> Result<Vec<Rule>, Refused> {
        let state = &self.tenants[tenant];
        state.flows.meter().add(PLAN);
        check_reportable(self.wire, &flow.match_wire, &flow.actions)?;
        let match_ = flow.match_.to_match();
        let standing = like.map_or(&[][..], |like| &like.rules);
        entry::compile_like(&self.context(tenant), &flow.spec(&match_), standing)
    }

    pub(super) fn is_held(&self, flow: &Flow, rule: &Rule, entry: &ReportedRule) -> bool {
        let match_ = messages::read_match(self.wire, &rule.match_wire);
        let table = flow.table.saturating_add(self.target().first_table());
        match_ == Some(entry.match_) && rule.priority == entry.priority && table == entry.table
    }

    pub(super) fn same_actions(&self, a: &[u8], b: &[u8]) -> bool {
        a == b || do_the_same(self.wire, a, b)
    }

    /// The key of a rule that the switch names.
    pub(crate) fn rule_key(&self, table: u8, priority: u16, match_: &Match) -> RuleKey {
        let table = table.saturating_sub(self.target().first_table());
        RuleKey { table, priority, match_wire: messages::write_match(self.wire, match_).into() }
    }

    fn delete_held(&mut self, entry: &ReportedRule, now: Instant) {
        let mut message = Vec::new();
        let ReportedRule { table, priority, cookie, ref match_wire, .. } = *entry;
        let written =
            messages::write_removal(self.wire, match_wire, table, priority, cookie, &mut message);
        if written.is_ok() {
            self.send_own(crate::south::pending::Awaits::Nothing, &message, now);
        }
    }
}

/// The rules that are to be deleted, by tenant. The rules that are to be added wait for step 8.
fn next_to_delete(it: &mut Reconciliation) -> Vec<(TenantIndex, Deletion)> {
    let mut all = Vec::new();
    for (tenant, difference) in core::mem::take(&mut it.differences) {
        let (deletions, additions) = difference.into_parts();
        it.count(0, additions.values().map(Vec::len).sum(), deletions.len());
        all.extend(deletions.into_iter().map(|one| (tenant, one)));
        let additions = additions.into_iter().map(|(number, rules)| (tenant, number, rules));
        it.additions.extend(additions);
    }
    all
}
