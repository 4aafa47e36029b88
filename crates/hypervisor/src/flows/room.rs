//! What entries take: of the switch's tables, and of memory here.
//!
//! A tenant's `entries` are bounded, so that others have room. A long entry counts for more than one of them.

use super::entry::beside;
use super::{Flow, FlowTable, Rule};

/// Rules that one message may come to, if the entries that it means do not have as many already.
pub(crate) const AT_ONCE: usize = 16_384;

/// How many rules a change may come to, and whether the bound is what one message may do.
#[derive(Debug)]
pub(crate) struct Room(usize, bool);

impl Room {
    /// Takes what an entry is to be; `false` if there is no room for it.
    pub(crate) fn take(&mut self, flow: &Flow, rules: &[Rule]) -> bool {
        let left = self.0.checked_sub(rules.len() + beside(flow, rules.iter()));
        self.0 = left.unwrap_or(0);
        left.is_some()
    }

    /// How many rules the change may still come to.
    pub(crate) fn left(&self) -> usize {
        self.0
    }

    /// Whether what one message may do bounds the change, and not what the tenant may have.
    pub(crate) fn is_at_once(&self) -> bool {
        self.1
    }
}

impl FlowTable {
    /// The room for these entries, changed, if the rules of all entries may be so many, and those of the rest of the message
    /// `at_once`. Fewer than there are may always be.
    pub(crate) fn room_for(
        &self,
        changed: impl Iterator<Item = u32>,
        limit: u32,
        at_once: usize,
    ) -> Room {
        let counts = |id: u32| {
            let rules = self.get(id).map_or(0, Flow::planned);
            rules + self.long.of.get(&id).copied().unwrap_or(0)
        };
        let before: usize = changed.map(counts).sum();
        let others = (self.entries() + self.long.all).saturating_sub(before);
        let left = (limit as usize).saturating_sub(others);
        Room(left.min(at_once).max(before), left > at_once)
    }
}
