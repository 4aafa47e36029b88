//! The hypervisor's own entries: on 1.3 all of table 0, on 1.0 what passes through for networks.
//!
//! They are kept in step with the policy like the tenants', but belong to nobody: nothing is stored of them, and what
//! the switch holds is compared with what it should hold.

use super::{Held, Switch};
use crate::pending::Awaits;
use crate::queue::Class;
use crate::time::Instant;
use alloc::vec::Vec;
use flowspace::Match;
use hashbrown::{HashMap, HashSet};
use openflow::Version;

/// An entry of the hypervisor's own.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Own {
    pub match_: Match,
    pub priority: u16,
    /// Actions (1.0) or instructions (1.3).
    pub actions: Vec<u8>,
}

impl Switch {
    /// After a new connection: what is held is kept, what is missing is installed, what is no longer wanted goes.
    /// Gives the numbers of each.
    pub(crate) fn reconcile_own(&mut self, held: &[&Held], now: Instant) -> (usize, usize, usize) {
        self.own = held
            .iter()
            .filter(|held| held.table == 0)
            .map(|held| Own {
                match_: held.match_,
                priority: held.priority,
                actions: held.actions.clone(),
            })
            .collect();
        self.bring_own(now)
    }

    /// After a new policy.
    pub(crate) fn resync_own(&mut self, now: Instant) {
        self.bring_own(now);
    }

    fn bring_own(&mut self, now: Instant) -> (usize, usize, usize) {
        let wanted = match self.version {
            Version::V1_0 => self.wanted_own_v10(),
            _ => self.wanted_own_v13(),
        };
        let held = core::mem::take(&mut self.own);
        // A switch in the middle of a big network holds thousands.
        let key = |own: &Own| (own.match_, own.priority);
        let stays: HashSet<(Match, u16)> = wanted.iter().map(key).collect();
        let there: HashMap<(Match, u16), &[u8]> =
            held.iter().map(|own| (key(own), own.actions.as_slice())).collect();
        let (mut kept, mut installed, mut removed) = (0, 0, 0);
        for own in &held {
            if !stays.contains(&key(own)) {
                self.send_own_entry(own, false, now);
                removed += 1;
            }
        }
        for own in &wanted {
            let there = there.get(&key(own));
            if there.is_some_and(|actions| self.same_actions(actions, &own.actions)) {
                kept += 1;
            } else {
                self.send_own_entry(own, true, now);
                installed += 1;
            }
        }
        self.own = wanted;
        (kept, installed, removed)
    }

    fn send_own_entry(&mut self, own: &Own, add: bool, now: Instant) {
        let mut message = Vec::new();
        let written = match self.version {
            Version::V1_0 => crate::v10::own::write_entry(own, add, &mut message),
            _ => crate::v13::own::write_entry(own, add, &mut message),
        };
        if written {
            self.send_own(Awaits::Nothing, Class::Modification, &message, now);
        } else {
            // An entry that the version cannot say selects nothing here; `weir check` tells.
            self.counters.unexpected += 1;
        }
    }
}
