//! One entry of a big switch, and its copy on each member.

use super::wire::Terms;
use crate::time::Instant;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// An entry of the big switch.
#[derive(Clone)]
pub(super) struct Entry {
    /// The message that adds it.
    pub(super) add: Vec<u8>,
    pub(super) in_port: Option<u32>,
    pub(super) idle: u16,
    pub(super) hard: u16,
    pub(super) installed: Instant,
    /// Packets and bytes that deleted copies have counted.
    pub(super) past: (u64, u64),
    /// Its copies, by member.
    pub(super) at: BTreeMap<u64, State>,
    /// Members that are asked whether their copy is idle.
    pub(super) checking: BTreeSet<u64>,
    /// The change, or the undoing of a change, that added the entry.
    pub(super) made_by: u64,
    /// The change, or the undoing of a change, that gave the entry its actions.
    pub(super) modified_by: u64,
}

/// A copy of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The member has the copy. The copy had counted so many packets when Weir last asked.
    Here { packets: u64, since: Instant },
    /// Weir has installed the copy again, or the copy has counted no packet for as long as the idle time-out.
    Idle,
    /// The member does not have the copy.
    Gone,
    /// The member has refused the copy, so Weir does not install the copy again.
    Refused,
}

impl State {
    pub(super) fn is_there(self) -> bool {
        !matches!(self, State::Gone | State::Refused)
    }
}

impl Entry {
    pub(super) fn new(
        (add, made_by): (Vec<u8>, u64),
        terms: Terms,
        members: &[u64],
        now: Instant,
    ) -> Entry {
        let here = State::Here { packets: 0, since: now };
        Entry {
            add,
            in_port: terms.in_port,
            idle: terms.idle,
            hard: terms.hard,
            installed: now,
            past: (0, 0),
            at: members.iter().map(|&dpid| (dpid, here)).collect(),
            checking: BTreeSet::new(),
            made_by,
            modified_by: made_by,
        }
    }

    /// Its copies begin to count at nothing.
    pub(super) fn reset_counters(&mut self) {
        self.past = (0, 0);
        for state in self.at.values_mut() {
            if let State::Here { packets, .. } = state {
                *packets = 0;
            }
        }
    }

    /// The same, of which these members are given copies. None of them is asked any more whether it is idle.
    pub(super) fn begun_again(mut self, by: u64, members: &[u64], now: Instant) -> Entry {
        let here = State::Here { packets: 0, since: now };
        (self.made_by, self.modified_by) = (by, by);
        self.checking.clear();
        self.at.extend(members.iter().map(|&dpid| (dpid, here)));
        self
    }

    pub(super) fn is_gone_at(&self, dpid: u64) -> bool {
        self.at.get(&dpid) == Some(&State::Gone)
    }

    pub(super) fn lose_at(&mut self, dpid: u64) {
        self.at.insert(dpid, State::Gone);
    }

    pub(super) fn do_without_at(&mut self, dpid: u64) {
        self.at.insert(dpid, State::Refused);
    }

    pub(super) fn does_without_at(&self, dpid: u64) -> bool {
        self.at.get(&dpid) == Some(&State::Refused)
    }

    pub(super) fn put_at(&mut self, dpid: u64, now: Instant) {
        let fresh =
            if self.idle > 0 { State::Idle } else { State::Here { packets: 0, since: now } };
        self.at.insert(dpid, fresh);
    }

    /// Seconds of its hard timeout that are left, at least one; 0 if it has none.
    pub(super) fn left(&self, now: Instant) -> u16 {
        let passed = (now - self.installed).0 / 1_000_000_000;
        match self.hard {
            0 => 0,
            hard => u16::try_from(u64::from(hard).saturating_sub(passed)).unwrap_or(hard).max(1),
        }
    }
}
