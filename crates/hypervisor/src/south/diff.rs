//! The difference between what the switch will hold of a rule and what is wanted.

use super::installed::{Content, State};

/// A message's change of one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Add,
    /// Strict: counters and time-outs continue.
    Modify,
    /// Strict.
    Delete,
}

/// The change that a rule needs; `None` if the switch will hold the wanted content anyway.
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

/// How Weir writes a rule of an entry to the switch.
pub(crate) struct Writing {
    pub cookie: u64,
    pub change: Change,
    pub buffer_id: u32,
    /// Seconds: the rest of the entry's hard time-out.
    pub hard_timeout: u16,
    /// Whether the rule's counters begin at 0 (1.3).
    pub resets_counts: bool,
}
