//! Entries that are gone, while their last counts are collected.

use super::tables::Entry;
use crate::time::{Duration, Instant};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// How long Weir waits for the counters of a removed entry.
const LAST_COUNTS: Duration = Duration::from_secs(5);
/// For how many removed entries Weir waits; others are reported with the known counters.
const CAPACITY: usize = 65_536;

/// A removed entry.
pub(super) struct Leaving {
    pub(super) entry: Entry,
    pub(super) reason: u8,
    /// Members that have not reported the counters of their copy.
    pub(super) awaiting: BTreeSet<u64>,
    /// The change that removes the entry; a member may still refuse this change.
    pub(super) change: Option<u64>,
    pub(super) since: Instant,
}

/// All removed entries, by cookie.
#[derive(Default)]
pub(super) struct AllLeaving {
    by_cookie: BTreeMap<u64, Leaving>,
    by_time: BTreeSet<(Instant, u64)>,
}

impl AllLeaving {
    /// Adds an entry; there is none with this cookie.
    pub(super) fn insert(&mut self, cookie: u64, leaving: Leaving) {
        self.by_time.insert((leaving.since, cookie));
        self.by_cookie.insert(cookie, leaving);
    }

    pub(super) fn has(&self, cookie: u64) -> bool {
        self.by_cookie.contains_key(&cookie)
    }

    /// Starts the time again for the entry with this cookie.
    pub(super) fn wait_again(&mut self, cookie: u64, now: Instant) {
        if let Some(leaving) = self.remove(cookie) {
            self.insert(cookie, Leaving { since: now, ..leaving });
        }
    }

    pub(super) fn get_mut(&mut self, cookie: u64) -> Option<&mut Leaving> {
        self.by_cookie.get_mut(&cookie)
    }

    pub(super) fn remove(&mut self, cookie: u64) -> Option<Leaving> {
        let leaving = self.by_cookie.remove(&cookie)?;
        self.by_time.remove(&(leaving.since, cookie));
        Some(leaving)
    }

    pub(super) fn clear(&mut self) {
        self.by_cookie.clear();
        self.by_time.clear();
    }

    pub(super) fn is_full(&self) -> bool {
        self.by_cookie.len() >= CAPACITY
    }

    pub(super) fn cookies(&self) -> Vec<u64> {
        self.by_cookie.keys().copied().collect()
    }

    /// When Weir stops to wait for the first entry.
    pub(super) fn ends(&self) -> Option<Instant> {
        self.by_time.first().map(|(since, _)| *since + LAST_COUNTS)
    }

    /// An entry for which Weir has waited long enough.
    pub(super) fn late(&self, now: Instant) -> Option<u64> {
        let (since, cookie) = *self.by_time.first()?;
        (now - since >= LAST_COUNTS).then_some(cookie)
    }
}
