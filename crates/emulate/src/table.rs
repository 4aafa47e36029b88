//! One flow table: entries, their counters and time-outs, and the index that finds the best.

use std::sync::Arc;

use flowspace::{Classifier, EntryId, Key, Match};

use crate::action::Instructions;

/// Flags of a flow entry (1.3's `OFPFF_*`; the first two are also 1.0's).
pub mod flags {
    /// Tell the controller when the entry goes.
    pub const SEND_FLOW_REM: u16 = 1 << 0;
    /// Refuse an entry that overlaps one of the same priority.
    pub const CHECK_OVERLAP: u16 = 1 << 1;
    /// Start the counters again at zero.
    pub const RESET_COUNTS: u16 = 1 << 2;
    /// Do not count packets.
    pub const NO_PKT_COUNTS: u16 = 1 << 3;
    /// Do not count bytes.
    pub const NO_BYT_COUNTS: u16 = 1 << 4;
}

const SECOND: u64 = 1_000_000_000;

/// A flow entry.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Packets that it is for.
    pub match_: Match,
    /// Rank among the entries of its table.
    pub priority: u16,
    /// The controller's mark.
    pub cookie: u64,
    /// Seconds without a packet after which it goes; 0 is never.
    pub idle_timeout: u16,
    /// Seconds after which it goes; 0 is never.
    pub hard_timeout: u16,
    /// [`flags`].
    pub flags: u16,
    /// What is done with its packets.
    pub instructions: Arc<Instructions>,
    /// When it was added, ns.
    pub created: u64,
    /// When the last packet came (or it was added or modified), ns.
    pub used: u64,
    /// When it was added or last modified, ns: the hard time-out runs from here.
    pub modified: u64,
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Flow {
    /// When it will go if no packet comes, ns.
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

/// Why an entry went, as FLOW_REMOVED says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removed {
    /// No packet for its idle time-out.
    IdleTimeout,
    /// Its hard time-out passed.
    HardTimeout,
    /// A controller deleted it.
    Delete,
    /// Its group was deleted.
    GroupDelete,
}

impl Removed {
    /// `OFPRR_*`.
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
    /// No entry expires before this.
    next_expiry: Option<u64>,
    /// Packets looked up.
    pub lookups: u64,
    /// Packets that an entry was found for.
    pub matched: u64,
}

impl FlowTable {
    /// An empty table with room for `max_flows`.
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

    /// How many entries fit.
    pub(crate) fn max_flows(&self) -> usize {
        self.max_flows
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether no entry fits any more.
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

    /// Adds an entry, in place of one with the same match and priority.
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

    /// Calls `edit` for every entry that `wanted` accepts; says how many.
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

    /// Removes the entries whose time is over.
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

/// Nanoseconds as the wire has them: whole seconds, and nanoseconds beyond.
pub(crate) fn seconds(nanoseconds: u64) -> (u32, u32) {
    ((nanoseconds / SECOND) as u32, (nanoseconds % SECOND) as u32)
}

fn earlier(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    a.into_iter().chain(b).min()
}
