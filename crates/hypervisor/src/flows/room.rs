//! The room for rules: in the switch's tables, and in Weir's memory.
//!
//! A tenant's `entries` are bounded, so that other tenants have room. A long entry counts for more than one.

use super::entry::beside;
use super::{Flow, FlowTable, Rule};

/// The most rules that one message may lead to, unless the entries that the message means already have as many.
pub(crate) const AT_ONCE: usize = 16_384;

/// How many more rules a change may lead to, and whether the bound of one message limits the change.
#[derive(Debug)]
pub(crate) struct Room(usize, bool);

impl Room {
    /// Takes the rules of a changed entry; `false` if there is no room for them.
    pub(crate) fn take(&mut self, flow: &Flow, rules: &[Rule]) -> bool {
        let left = self.0.checked_sub(rules.len() + beside(flow, rules.iter()));
        self.0 = left.unwrap_or(0);
        left.is_some()
    }

    /// How many more rules the change may lead to.
    pub(crate) fn left(&self) -> usize {
        self.0
    }

    /// Whether the bound of one message limits the change, and not the tenant's limit.
    pub(crate) fn is_at_once(&self) -> bool {
        self.1
    }
}

impl FlowTable {
    /// The room for the changed entries, if all entries may have this many rules, and the rest of the message
    /// `at_once`. A change may always lead to fewer rules than there are.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_adds_at_most_16_384_rules() {
        let table = FlowTable::new(|_, _| {});
        let room = |limit| {
            let room = table.room_for(core::iter::empty(), limit, AT_ONCE);
            (room.left(), room.is_at_once())
        };
        assert_eq!(room(100_000), (16_384, true));
        assert_eq!(room(16_385), (16_384, true));
        assert_eq!(room(16_384), (16_384, false), "the tenant's limit");
    }
}
