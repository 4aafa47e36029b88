//! Weir's own rules: on 1.3 the rules of table 0 and of the last table, on 1.0 the rules of transit for networks.
//!
//! These rules follow the policy as the tenants' rules do, but belong to no tenant. The store does not have them: Weir
//! compares the rules that the switch holds with those that the policy needs.

use super::map::{OwnChange, OwnChanges, Place, place};
use super::{Cause, Switch, Tried};
use crate::cookie::Cookie;
use crate::ids::TenantIndex;
use crate::messages;
use crate::south::diff::Change;
use crate::south::pending::Awaits;
use crate::south::reports::ReportedRule;
use crate::tally;
use crate::time::Instant;
use alloc::vec::Vec;
use compile::{InfraRule, infra};
use hashbrown::HashMap;

impl Switch {
    /// Compares Weir's own rules on a switch that has connected with the rules that the policy needs. Gives the changes
    /// to send, and the numbers of rules that are kept, added and removed.
    pub(crate) fn reconcile_own(
        &mut self,
        held: Vec<ReportedRule>,
    ) -> (OwnChanges, (usize, usize, usize)) {
        let of_weir = held.into_iter().map(|held| {
            let counted = tally::counted(held.cookie, self.settings.installation);
            let ReportedRule { table, match_, priority, actions, .. } = held;
            InfraRule { table, match_, priority, actions, counted }
        });
        self.map.replace_infra(of_weir.collect());
        let changes = self.own_changes();
        let added = changes.iter().filter(|(_, change)| *change == OwnChange::Add).count();
        let kept = self.map.infra().len() - added;
        let removed = changes.len() - added;
        (changes.into_iter(), (kept, added, removed))
    }

    /// The changes of Weir's own rules that the policy needs. Removed rules come first.
    pub(super) fn own_changes(&mut self) -> Vec<(InfraRule, OwnChange)> {
        let wanted = self.wanted_infra();
        let held = self.map.replace_infra(Vec::new());
        // A switch in the middle of a big network holds thousands. A rule goes unless it is wanted.
        let mut there: HashMap<Place<'_>, (&InfraRule, bool)> =
            held.iter().map(|own| (place(own), (own, true))).collect();
        let mut added = Vec::new();
        for own in &wanted {
            let is_kept = there.get_mut(&place(own)).is_some_and(|(held, goes)| {
                let counts_the_same = held.counted == own.counted;
                // A rule that counts for another port now is removed first, so that the new rule counts from zero.
                *goes = held.counted.is_some() && !counts_the_same;
                counts_the_same && self.same_actions(&held.actions, &own.actions)
            });
            if !is_kept {
                added.push((own.clone(), OwnChange::Add));
            }
        }
        let any_goes = there.values().any(|(_, goes)| *goes);
        let goes = |own: &&InfraRule| any_goes && there.get(&place(own)).is_some_and(|it| it.1);
        let gone = held.iter().filter(goes);
        let mut changes: Vec<_> = gone.map(|own| (own.clone(), OwnChange::Remove)).collect();
        changes.append(&mut added);
        drop(there);
        self.map.replace_infra(wanted);
        changes
    }

    /// Sends the next changes of Weir's own rules, as many as are left for this turn. Returns whether all are sent.
    pub(super) fn own_rules_follow(
        &mut self,
        changes: &mut OwnChanges,
        left: &mut usize,
        now: Instant,
    ) -> bool {
        self.each(changes, left, |switch, (own, change)| switch.send_own_entry(&own, change, now))
    }

    fn send_own_entry(&mut self, own: &InfraRule, change: OwnChange, now: Instant) {
        let Some(message) = self.write_own(own, change) else {
            // The version cannot express this rule, so the rule would match no packet here; `weir check` reports it.
            self.reports.counters_mut().unexpected += 1;
            return;
        };
        if change == OwnChange::Remove || self.tenants.is_empty() {
            self.send_own(Awaits::Nothing, &message, now);
        } else {
            // Any tenant will do for the operation.
            let cause = Cause::own(TenantIndex(0), now);
            self.submit_own(&cause, Tried::new(own), &message);
        }
    }

    /// The message that adds or removes a rule. `None` if the version cannot express the rule.
    pub(super) fn write_own(&self, own: &InfraRule, change: OwnChange) -> Option<Vec<u8>> {
        let cookie = cookie_of(own).to_wire(self.settings.installation);
        let change = match change {
            OwnChange::Add => Change::Add,
            OwnChange::Remove => Change::Delete,
        };
        let mut message = Vec::new();
        messages::write_infra(self.wire, own, cookie, change, &mut message).then_some(message)
    }
}

/// A rule's cookie. A rule of table 0 that counts for no port has the cookie of port 0, which does not exist, for the
/// tenant to whose tables the rule leads.
fn cookie_of(own: &InfraRule) -> Cookie {
    let nobodys = Cookie { tenant: Cookie::OWN, number: 0 };
    let leads_to = || infra::leads_to(own).filter(|_| own.table == 0);
    match (own.counted, leads_to()) {
        (Some(counted), _) => tally::cookie_of(counted),
        (None, Some(tenant)) => Cookie { number: u32::from(tenant.0) << 16, ..nobodys },
        (None, None) => nobodys,
    }
}
