//! One flow table: entries with counters and timeouts, and the index that finds the entry of
//! highest priority.

use std::sync::Arc;

use flowspace::{Classifier, EntryId, Key, Match};

use crate::action::Instructions;

/// Flags of a flow entry (`OFPFF_*` of 1.3). 1.0 has the first two flags, too.
pub mod flags {
    /// The switch sends FLOW_REMOVED when the entry is removed.
    pub const SEND_FLOW_REM: u16 = 1 << 0;
    /// The switch refuses the entry if the entry overlaps another entry of the same priority.
    pub const CHECK_OVERLAP: u16 = 1 << 1;
    /// The counters start again at zero.
    pub const RESET_COUNTS: u16 = 1 << 2;
    /// The switch does not count the packets of the entry.
    pub const NO_PKT_COUNTS: u16 = 1 << 3;
    /// The switch does not count the bytes of the entry.
    pub const NO_BYT_COUNTS: u16 = 1 << 4;
}

const SECOND: u64 = 1_000_000_000;

/// A flow entry.
#[derive(Clone, Debug)]
pub struct Flow {
    /// The match of the entry.
    pub match_: Match,
    /// The priority of the entry in its table.
    pub priority: u16,
    /// The cookie that the controller chose.
    pub cookie: u64,
    /// The idle timeout in seconds; 0 means no timeout.
    pub idle_timeout: u16,
    /// The hard timeout in seconds; 0 means no timeout.
    pub hard_timeout: u16,
    /// The [`flags`] of the entry.
    pub flags: u16,
    /// The instructions for packets that match.
    pub instructions: Arc<Instructions>,
    /// The time when the entry was added, ns.
    pub created: u64,
    /// The time of the last packet, or of the addition if no packet came, ns.
    pub used: u64,
    /// The time of the addition or of the last modification, ns. The hard timeout starts at this
    /// time.
    pub modified: u64,
    /// The number of packets that matched.
    pub packets: u64,
    /// The number of bytes of these packets.
    pub bytes: u64,
}

impl Flow {
    /// The time when the entry expires if no packet matches, ns.
    fn deadline(&self) -> Option<u64> {
        let after = |since: u64, seconds: u16| {
            (seconds != 0).then(|| since.saturating_add(u64::from(seconds) * SECOND))
        };
        let idle = after(self.used, self.idle_timeout);
        let hard = after(self.modified, self.hard_timeout);
        idle.into_iter().chain(hard).min()
    }

    fn hard_deadline_passed(&self, now: u64) -> bool {
        self.hard_timeout != 0 && now >= self.modified + u64::from(self.hard_timeout) * SECOND
    }

    /// Whether the entry is the table-miss entry (1.3, section 5.4).
    pub fn is_table_miss(&self) -> bool {
        self.priority == 0 && self.match_ == Match::ANY
    }
}

/// The reason of a FLOW_REMOVED.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removed {
    /// No packet matched the entry during its idle timeout.
    IdleTimeout,
    /// The hard timeout of the entry passed.
    HardTimeout,
    /// A controller deleted the entry.
    Delete,
    /// A controller deleted a group that the entry uses.
    GroupDelete,
}

impl Removed {
    /// The number of the reason (`OFPRR_*`).
    pub fn code(self) -> u8 {
        match self {
            Removed::IdleTimeout => 0,
            Removed::HardTimeout => 1,
            Removed::Delete => 2,
            Removed::GroupDelete => 3,
        }
    }
}

/// A flow table.
pub(crate) struct FlowTable {
    index: Classifier<usize>,
    slots: Vec<Option<(EntryId, Flow)>>,
    free: Vec<usize>,
    max_flows: usize,
    /// No entry expires before this time.
    next_expiry: Option<u64>,
    /// Packets looked up.
    pub lookups: u64,
    /// Packets that matched an entry.
    pub matched: u64,
}

impl FlowTable {
    /// Makes an empty table with room for `max_flows` entries.
    pub(crate) fn new(max_flows: usize) -> FlowTable {
        FlowTable {
            index: Classifier::new(),
            slots: Vec::new(),
            free: Vec::new(),
            max_flows,
            next_expiry: None,
            lookups: 0,
            matched: 0,
        }
    }

    /// The number of entries that fit.
    pub(crate) fn max_flows(&self) -> usize {
        self.max_flows
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether the table is full.
    pub(crate) fn is_full(&self) -> bool {
        self.len() >= self.max_flows
    }

    /// The entries, oldest first as long as none was removed.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Flow> {
        self.slots.iter().flatten().map(|(_, flow)| flow)
    }

    /// Counts a packet and finds its entry.
    pub(crate) fn lookup(&mut self, now: u64, key: &Key, bytes: usize) -> Option<&Flow> {
        self.lookups += 1;
        let slot = *self.index.lookup(key)?.value;
        let (_, flow) = self.slots.get_mut(slot)?.as_mut()?;
        self.matched += 1;
        flow.used = now;
        flow.packets += u64::from(flow.flags & flags::NO_PKT_COUNTS == 0);
        if flow.flags & flags::NO_BYT_COUNTS == 0 {
            flow.bytes += bytes as u64;
        }
        Some(flow)
    }

    /// The entry with exactly this match and priority.
    pub(crate) fn find_strict(&mut self, match_: &Match, priority: u16) -> Option<&mut Flow> {
        let id = self.index.find_strict(match_, u32::from(priority))?;
        let slot = *self.index.get(id)?.value;
        self.slots.get_mut(slot)?.as_mut().map(|(_, flow)| flow)
    }

    /// Whether an entry of the same priority has packets in common with the match.
    pub(crate) fn overlaps(&self, match_: &Match, priority: u16) -> bool {
        self.index.overlapping(match_).any(|entry| entry.priority == u32::from(priority))
    }

    /// Adds an entry, or replaces the entry with the same match and priority.
    pub(crate) fn insert(&mut self, flow: Flow) {
        self.next_expiry = earlier(self.next_expiry, flow.deadline());
        if let Some(old) = self.find_strict(&flow.match_, flow.priority) {
            *old = flow;
            return;
        }
        let slot = self.free.pop().unwrap_or(self.slots.len());
        let id = self.index.insert(flow.match_, u32::from(flow.priority), slot);
        match self.slots.get_mut(slot) {
            Some(place) => *place = Some((id, flow)),
            None => self.slots.push(Some((id, flow))),
        }
    }

    /// Calls `edit` for every entry that `wanted` accepts. Returns the number of these entries.
    pub(crate) fn modify(
        &mut self,
        wanted: impl Fn(&Flow) -> bool,
        mut edit: impl FnMut(&mut Flow),
    ) -> usize {
        let mut modified = 0;
        for (_, flow) in self.slots.iter_mut().flatten() {
            if wanted(flow) {
                edit(flow);
                modified += 1;
            }
        }
        modified
    }

    /// Removes every entry that `wanted` accepts.
    pub(crate) fn remove(&mut self, wanted: impl Fn(&Flow) -> bool, mut removed: impl FnMut(Flow)) {
        for (slot, place) in self.slots.iter_mut().enumerate() {
            if let Some((id, flow)) = place.take_if(|(_, flow)| wanted(flow)) {
                self.index.remove(id);
                self.free.push(slot);
                removed(flow);
            }
        }
    }

    /// Removes the entries that reached a timeout.
    pub(crate) fn expire(&mut self, now: u64, mut removed: impl FnMut(Flow, Removed)) {
        if self.next_expiry.is_none_or(|expiry| expiry > now) {
            return;
        }
        let is_over = |flow: &Flow| flow.deadline().is_some_and(|deadline| deadline <= now);
        self.remove(is_over, |flow| {
            let hard = flow.hard_deadline_passed(now);
            removed(flow, if hard { Removed::HardTimeout } else { Removed::IdleTimeout });
        });
        self.next_expiry = self.iter().filter_map(Flow::deadline).min();
    }

    /// A time before which no entry expires.
    pub(crate) fn next_expiry(&self) -> Option<u64> {
        self.next_expiry
    }
}

/// Converts nanoseconds to the form on the wire: whole seconds, and the remaining nanoseconds.
pub(crate) fn seconds(nanoseconds: u64) -> (u32, u32) {
    ((nanoseconds / SECOND) as u32, (nanoseconds % SECOND) as u32)
}

fn earlier(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    a.into_iter().chain(b).min()
}
