//! What entries take: of the switch's tables, and of memory here.
//!
//! A tenant's `entries` are bounded, so that others have room. A long entry counts for more than one of them, and what a
//! single FLOW_MOD may become is bounded by itself: it is made before anybody can say that there is no room for it.

use super::{Flow, FlowTable, Piece};
use alloc::collections::BTreeMap;
use core::cell::Cell;
use openflow::error::v13 as code;
use openflow::{ErrorCode, Version};

/// Bytes for which an entry counts as one.
const UNIT: usize = 1024;
/// Bytes that all pieces of an entry may take together, and what each takes beside its own.
const MOST: usize = 4 << 20;
const EACH: usize = 256;
/// Bytes in flow statistics of 1.0 before an entry's actions. A FLOW_MOD has fewer.
const BEFORE_ACTIONS_V10: usize = 12 + 88;
/// Bytes in flow statistics of 1.3 before an entry's match. A FLOW_MOD has fewer.
const BEFORE_MATCH_V13: usize = 16 + 48;
/// Entries on the switch that one message may come to, if it does not mean as many already: everybody waits while they are made.
const AT_ONCE: usize = 16_384;
/// Bytes of an OpenFlow message.
const LONGEST: usize = u16::MAX as usize;

/// What the pieces of one entry take while they are made.
#[derive(Debug, Default)]
pub(crate) struct Taken(Cell<usize>);

/// How many entries on the switch a change may come to.
#[derive(Debug)]
pub(crate) struct Room(usize);

/// What long entries count for beside their pieces.
#[derive(Debug, Default)]
pub(super) struct Long {
    of: BTreeMap<u32, usize>,
    all: usize,
}

impl Taken {
    /// Takes one more in, or says why it cannot be.
    pub(crate) fn add(&self, piece: &Piece, version: Version) -> Result<(), ErrorCode> {
        let taken = self.0.get() + size(piece) + EACH;
        self.0.set(taken);
        check_told(version, &piece.match_wire, &piece.actions)?;
        bounded(taken <= MOST)
    }
}

impl Room {
    /// Takes what an entry is to be; `false` if there is no room for it.
    pub(crate) fn take(&mut self, flow: &Flow, pieces: &[Piece]) -> bool {
        let left = self.0.checked_sub(pieces.len() + beside(flow, pieces.iter()));
        self.0 = left.unwrap_or(0);
        left.is_some()
    }
}

impl FlowTable {
    /// The room for these entries, changed, if those of all may be so many. Fewer than there are may always be.
    pub(crate) fn room_for(&self, changed: impl Iterator<Item = u32>, limit: u32) -> Room {
        let counts = |id: u32| {
            let pieces = self.get(id).map_or(0, Flow::planned);
            pieces + self.long.of.get(&id).copied().unwrap_or(0)
        };
        let before: usize = changed.map(counts).sum();
        let others = (self.entries() + self.long.all).saturating_sub(before);
        Room((limit as usize).saturating_sub(others).min(AT_ONCE).max(before))
    }
}

impl Long {
    pub(super) fn insert(&mut self, id: u32, flow: &Flow) {
        let more = beside(flow, flow.pieces.iter().chain(&flow.beneath));
        if more > 0 {
            self.of.insert(id, more);
            self.all += more;
        }
    }

    pub(super) fn remove(&mut self, id: u32) {
        if let Some(more) = self.of.remove(&id) {
            self.all -= more;
        }
    }
}

/// An error if statistics have no room for an entry.
pub(crate) fn check_told(version: Version, match_: &[u8], actions: &[u8]) -> Result<(), ErrorCode> {
    let before = match version {
        Version::V1_0 => BEFORE_ACTIONS_V10,
        _ => BEFORE_MATCH_V13 + match_.len(),
    };
    bounded(before + actions.len() <= LONGEST)
}

/// Whether statistics of 1.3 have room for what is known of a group or a meter: for its description, whose buckets or bands take
/// so many bytes, and for what each of so many has counted.
pub(crate) fn is_tellable(described: usize, parts: usize) -> bool {
    // The header of a reply; then that of the description, or that of the counts and, for each, two counters.
    16 + (8 + described).max(40 + 16 * parts) <= LONGEST
}

/// An error as soon as a list that is being written is too long for any message.
pub(crate) fn check_length(list: &[u8]) -> Result<(), ErrorCode> {
    bounded(list.len() <= LONGEST)
}

fn bounded(is_within: bool) -> Result<(), ErrorCode> {
    // The same in both versions.
    is_within.then_some(()).ok_or(code::BAD_ACTION_TOO_MANY)
}

/// What an entry counts for beside its pieces, of which each counts for one.
fn beside<'a>(flow: &Flow, pieces: impl Iterator<Item = &'a Piece>) -> usize {
    let own = flow.match_wire.len() + flow.actions.len();
    let (count, all) = pieces.fold((0, own), |(count, all), piece| (count + 1, all + size(piece)));
    (all / UNIT).saturating_sub(count)
}

fn size(piece: &Piece) -> usize {
    piece.match_wire.len() + piece.actions.len()
}
