//! The difference between what the switch will hold of a rule and what is wanted.

use super::installed::{Content, State};

/// What a message does to one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Add,
    /// Strictly: counters and time-outs go on.
    Modify,
    /// Strictly.
    Delete,
}

/// The message that makes a rule what is wanted; `None` if the switch will hold just that.
pub(crate) fn change(wanted: Option<&Content>, projected: &State) -> Option<Change> {
    match (wanted, projected) {
        (None, State::Absent) => None,
        (None, _) => Some(Change::Delete),
        (Some(wanted), State::Present(held))
            if (wanted.owner, wanted.terms) == (held.owner, held.terms) =>
        {
            (wanted.program != held.program).then_some(Change::Modify)
        }
        (Some(_), _) => Some(Change::Add),
    }
}

/// How a rule of an entry is written to the switch.
pub(crate) struct Writing {
    pub cookie: u64,
    pub change: Change,
    pub buffer_id: u32,
    /// Seconds: what is left of the entry's.
    pub hard_timeout: u16,
    /// Whether it begins to count at nothing (1.3).
    pub resets_counts: bool,
}
