//! The hypervisor's own entries: on 1.3 all of table 0 and those of the last table, on 1.0 what passes through for networks.
//!
//! They are kept in step with the policy like the tenants', but belong to nobody: nothing is stored of them, and what
//! the switch holds is compared with what it should hold.

use super::{Cause, OwnChange, Switch, Tried};
use crate::cookie::Cookie;
use crate::ids::TenantIndex;
use crate::messages;
use crate::south::diff::Change;
use crate::south::held::Held;
use crate::south::pending::Awaits;
use crate::tally;
use crate::time::Instant;
use alloc::vec::Vec;
use compile::{CountedPort, InfraRule, infra};
use flowspace::Match;
use hashbrown::HashMap;

impl Switch {
    /// After a new connection: what is held is kept, what is missing is installed, what is no longer wanted goes.
    /// Gives the numbers of each.
    pub(crate) fn reconcile_own(&mut self, held: &[&Held], now: Instant) -> (usize, usize, usize) {
        let mut own = Vec::new();
        for held in held {
            let counted = tally::counted(held.cookie, self.settings.installation);
            let (table, match_, actions) = (held.table, held.match_, held.actions.clone());
            own.push(InfraRule { table, match_, priority: held.priority, actions, counted });
        }
        self.map.replace_infra(own);
        self.bring_own(now)
    }

    /// After a new policy.
    pub(crate) fn resync_own(&mut self, now: Instant) {
        self.bring_own(now);
    }

    fn bring_own(&mut self, now: Instant) -> (usize, usize, usize) {
        let wanted = self.wanted_infra();
        let held = self.map.replace_infra(Vec::new());
        // A switch in the middle of a big network holds thousands.
        let stays: HashMap<Key<'_>, Option<CountedPort>> =
            wanted.iter().map(|own| (key(own), own.counted)).collect();
        let there: HashMap<Key<'_>, &InfraRule> = held.iter().map(|own| (key(own), own)).collect();
        let (mut kept, mut installed, mut removed) = (0, 0, 0);
        for own in &held {
            // What one has counted is not another's, also where the same packets are another's now.
            let stays = stays.get(&key(own));
            if stays.is_none_or(|counted| own.counted.is_some() && own.counted != *counted) {
                self.send_own_entry(own, OwnChange::Remove, now);
                removed += 1;
            }
        }
        for own in &wanted {
            let there = there.get(&key(own)).filter(|held| held.counted == own.counted);
            match there {
                Some(held) if self.same_actions(&held.actions, &own.actions) => kept += 1,
                _ => {
                    self.send_own_entry(own, OwnChange::Add, now);
                    installed += 1;
                }
            }
        }
        drop(stays);
        self.map.replace_infra(wanted);
        (kept, installed, removed)
    }

    fn send_own_entry(&mut self, own: &InfraRule, change: OwnChange, now: Instant) {
        let mut message = Vec::new();
        if !self.write_own(own, change, &mut message) {
            // An entry that the version cannot say selects nothing here; `weir check` tells.
            self.reports.counters_mut().unexpected += 1;
        } else if change == OwnChange::Remove || self.tenants.is_empty() {
            self.send_own(Awaits::Nothing, &message, now);
        } else {
            // Whose operation it is matters to nobody.
            let cause = Cause::own(TenantIndex(0), now);
            self.submit_own(&cause, Tried::new(own, change), &message);
        }
    }

    /// Appends the message that does this to a rule. False if the version cannot say it.
    pub(super) fn write_own(&self, own: &InfraRule, change: OwnChange, out: &mut Vec<u8>) -> bool {
        let cookie = cookie_of(own).to_wire(self.settings.installation);
        let change = match change {
            OwnChange::Add => Change::Add,
            OwnChange::Remove => Change::Delete,
        };
        messages::write_infra(self.wire, own, cookie, change, out)
    }
}

/// The table, the match and the priority of a rule: a match is long.
type Key<'a> = (u8, &'a Match, u16);

fn key(own: &InfraRule) -> Key<'_> {
    (own.table, &own.match_, own.priority)
}

/// A rule's cookie. Where a rule of table 0 counts for no port, the cookie still says to whose tables it leads, as for a port 0,
/// which does not exist.
fn cookie_of(own: &InfraRule) -> Cookie {
    let nobodys = Cookie { tenant: Cookie::OWN, number: 0 };
    let leads_to = || infra::leads_to(own).filter(|_| own.table == 0);
    match (own.counted, leads_to()) {
        (Some(counted), _) => tally::cookie_of(counted),
        (None, Some(tenant)) => Cookie { number: u32::from(tenant.0) << 16, ..nobodys },
        (None, None) => nobodys,
    }
}
