//! Records of requests that wait for members' answers: changes in the log ([`Change`]), and questions of the front
//! ([`Ask`]).

use super::request::{Object, Request};
use super::tables::Before;
use crate::refusals::Verdict;
use crate::time::Instant;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use openflow::v13::MultipartType;

/// A change that the front has asked for, the end of an entry, or a barrier.
pub(super) struct Change {
    pub(super) seq: u64,
    /// The transaction id of the front's message; nothing if nobody waits for the result.
    pub(super) xid: Option<u32>,
    /// Whether an entry ends by itself: a member cannot refuse such an end.
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
    /// Whether a member has refused a message, or has connected: see [`super::log`].
    pub(super) is_settling: bool,
    /// Objects in which a member may differ from the big switch.
    pub(super) dirty: BTreeSet<Object>,
}

impl Log {
    /// No member is left that could confirm anything.
    pub(super) fn forget(&mut self) {
        *self = Log { last: self.last, ..Log::default() };
    }
}

/// A question of the front, while members answer.
pub(super) struct Ask {
    pub(super) xid: u32,
    /// The statistics that Weir adds up; nothing if one member answers for all.
    pub(super) sums: Option<MultipartType>,
    /// Members whose answers are due.
    pub(super) waiting: BTreeSet<u64>,
    pub(super) answers: BTreeMap<u64, Vec<u8>>,
}
