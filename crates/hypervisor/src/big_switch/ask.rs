//! A question or barrier that members answer.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

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
