//! The purpose of each message to a member that may be answered.

/// What a message to a member was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// A part of a change that all members get.
    Change(u64),
    /// A message of the front's that one member gets, or all, and that is not answered.
    Plain(u32),
    /// A part of a question or barrier of the front's.
    Part(u64),
    /// What makes up for something; if it fails, this entry is not there.
    Own(Option<Rule>),
    /// What it had to do without when it was filled, once more; if it fails, it does so still.
    Again(Rule),
    /// The message that undoes a change of this entry; if it fails, the entry is given up.
    Undo(Rule),
    Flows,
    Groups,
    Meters,
    Ports,
    /// The barrier behind the undone changes, for all barriers of the front's up to this one.
    TakenBack(u64),
    /// The barrier behind what a member was filled with.
    Filled,
    /// The barrier behind the changes that were undone meanwhile: then it is known what it lacks.
    Settled,
    /// A barrier that only shows that what was sent before needs not be remembered.
    Sweep,
    /// Whether an entry has counted anything.
    IdleCheck(u64),
}

/// What a member was sent of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) cookie: u64,
    /// The last number that had been given by then.
    pub(super) by: u64,
    /// All of it, or only what it does.
    pub(super) is_whole: bool,
}

impl Sent {
    pub(super) fn is_answered(self) -> bool {
        !matches!(self, Sent::Change(_) | Sent::Plain(_) | Sent::Own(_) | Sent::Undo(_))
    }
}
