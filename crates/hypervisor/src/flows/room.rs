//! What entries take: of the switch's tables, and of memory here.
//!
//! A tenant's `entries` are bounded, so that others have room. A long entry counts for more than one of them.

use super::entry::beside;
use super::{Flow, FlowTable, Rule};

/// Entries on the switch that one message may come to, if it does not mean as many already: everybody waits while they are made.
const AT_ONCE: usize = 16_384;

/// How many entries on the switch a change may come to, and whether it is [`AT_ONCE`] that bounds it.
#[derive(Debug)]
pub(crate) struct Room(usize, bool);

impl Room {
    /// Takes what an entry is to be; `false` if there is no room for it.
    pub(crate) fn take(&mut self, flow: &Flow, rules: &[Rule]) -> bool {
        let left = self.0.checked_sub(rules.len() + beside(flow, rules.iter()));
        self.0 = left.unwrap_or(0);
        left.is_some()
    }

    /// Whether what one message may do bounds the change, and not what the tenant may have.
    pub(crate) fn is_at_once(&self) -> bool {
        self.1
    }
}

impl FlowTable {
    /// The room for these entries, changed, if those of all may be so many. Fewer than there are may always be.
    pub(crate) fn room_for(&self, changed: impl Iterator<Item = u32>, limit: u32) -> Room {
        let counts = |id: u32| {
            let rules = self.get(id).map_or(0, Flow::planned);
            rules + self.long.of.get(&id).copied().unwrap_or(0)
        };
        let before: usize = changed.map(counts).sum();
        let others = (self.entries() + self.long.all).saturating_sub(before);
        let left = (limit as usize).saturating_sub(others);
        Room(left.min(AT_ONCE).max(before), left > AT_ONCE)
    }
}
