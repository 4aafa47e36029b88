//! What waits for the members: changes of the front's in the log, and questions.

use super::request::{Object, Request};
use super::tables::Before;
use super::wire::Asked;
use crate::refusals::Verdict;
use crate::time::Instant;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A change of the front's, the end of an entry, or a barrier.
pub(super) struct Change {
    pub(super) seq: u64,
    /// By which the front knows it; nothing if nobody waits for the result.
    pub(super) xid: Option<u32>,
    /// Whether the entry ends by itself: nobody can refuse that.
    pub(super) is_end: bool,
    /// Nothing for a barrier.
    pub(super) request: Option<Arc<Request>>,
    pub(super) at: Instant,
    pub(super) before: Before,
    pub(super) refused: Option<Verdict>,
}

/// Changes that not all members have confirmed.
#[derive(Default)]
pub(super) struct Log {
    pub(super) changes: VecDeque<Change>,
    /// The number of the last change.
    pub(super) last: u64,
    /// Whether a member has refused something, or has come: see [`super::log`].
    pub(super) is_settling: bool,
    /// Objects that members may hold otherwise than the big switch is to have them.
    pub(super) dirty: BTreeSet<Object>,
}

impl Log {
    /// No member is left that could confirm anything.
    pub(super) fn forget(&mut self) {
        *self = Log { last: self.last, ..Log::default() };
    }
}

/// A question of the front's, while members answer it.
pub(super) struct Ask {
    pub(super) xid: u32,
    pub(super) asked: Asked,
    /// Members whose answers are due.
    pub(super) waiting: BTreeSet<u64>,
    pub(super) answers: BTreeMap<u64, Vec<u8>>,
}
