//! A change of a rule of Weir's own, on its way to the switch.

use compile::InfraRule;
use flowspace::Match;

/// What is done about an entry of the hypervisor's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnChange {
    /// It is there from now on, in the place of what is there.
    Add,
    Remove,
}

/// An entry of the hypervisor's own that is on its way to the switch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tried {
    pub(super) table: u8,
    pub(super) match_: Match,
    pub(super) priority: u16,
    pub(super) change: OwnChange,
    /// Whether the switch has refused it before.
    pub(super) again: bool,
}

impl Tried {
    pub(super) fn new(own: &InfraRule, change: OwnChange) -> Tried {
        let InfraRule { table, match_, priority, .. } = *own;
        Tried { table, match_, priority, change, again: false }
    }
}
