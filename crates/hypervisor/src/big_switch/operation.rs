//! What members have not confirmed or answered: changes, and how each is undone, and questions.

use super::entry::Entry;
use super::objects::Numbered;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// A change of the front's that not all members have confirmed.
pub(super) struct Operation {
    /// By which the front knows it, unless its connection is closed.
    pub(super) xid: Option<u32>,
    /// How the change is undone, until that is impossible or a later change has taken it over.
    pub(super) undo: Option<Undo>,
    /// Whether other changes of the same have been refused meanwhile: then it is not known which member holds what.
    pub(super) inherits: bool,
    /// The entry that it changes.
    pub(super) entry: Option<u64>,
    /// Members on which it installs that entry again, since the entry had timed out there.
    pub(super) reinstalled: BTreeSet<u64>,
    /// Members that have not confirmed it.
    pub(super) open: BTreeSet<u64>,
}

/// What a change has replaced, to undo the change. `ended`: the entry has timed out since.
pub(super) enum Undo {
    Flow { cookie: u64, before: Option<Box<Entry>>, ended: bool },
    Number { which: Numbered, number: u32, before: Option<Vec<u8>> },
    Port { number: u32, before: u32, asked: PortMod },
}

/// What a PORT_MOD asks for: bits, and which of them.
#[derive(Clone, Copy)]
pub(super) struct PortMod {
    pub(super) config: u32,
    pub(super) mask: u32,
}

impl PortMod {
    pub(super) fn of(self, before: u32) -> u32 {
        before & !self.mask | self.config & self.mask
    }
}

impl Undo {
    /// Whether both are ways back of the same entry, group, meter or port.
    pub(super) fn is_of_the_same(&self, other: &Undo) -> bool {
        match (self, other) {
            (Undo::Flow { cookie, .. }, Undo::Flow { cookie: other, .. }) => cookie == other,
            (
                Undo::Number { which, number, .. },
                Undo::Number { which: other, number: of_other, .. },
            ) => (which, number) == (other, of_other),
            (Undo::Port { number, .. }, Undo::Port { number: other, .. }) => number == other,
            _ => false,
        }
    }
}

/// A question or barrier of the front's, while members answer it.
pub(super) struct Ask {
    pub(super) xid: u32,
    pub(super) asked: Asked,
    /// By member, how many answers are due.
    pub(super) waiting: BTreeMap<u64, usize>,
    pub(super) answers: BTreeMap<u64, Vec<u8>>,
}

/// What the answers have to become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Barrier,
    Flows,
    Ports,
    Groups,
    Meters,
    /// It is the same on all members: one answers.
    One,
}
