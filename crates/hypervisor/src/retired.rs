//! Pieces of entries that the switch was told to delete, until it says that they are gone.
//!
//! An entry may get such a piece back before that is heard: a change is undone, or made again. What the table says of the
//! entry is what will be when all that was sent is done, so the switch's word is about the deletion and not about the table.

use crate::time::{Duration, Instant};
use alloc::boxed::Box;
use alloc::vec::Vec;
use hashbrown::HashMap;

/// By the entry's number.
#[derive(Default)]
pub(crate) struct Retired(HashMap<u32, Vec<Piece>>);

struct Piece {
    match_wire: Box<[u8]>,
    /// Whether the entry, as it is now, counts what it has counted.
    is_counted: bool,
    /// When its deletion was written.
    since: Instant,
}

impl Retired {
    /// A piece is about to be deleted.
    pub(crate) fn add(&mut self, number: u32, match_wire: &[u8], now: Instant) {
        let piece = Piece { match_wire: match_wire.into(), is_counted: true, since: now };
        self.0.entry(number).or_default().push(piece);
    }

    /// The entry begins to count anew: what those have counted that are still to be told of belongs to what it was before.
    pub(crate) fn count_anew(&mut self, number: u32) {
        let pieces = self.0.get_mut(&number).into_iter().flatten();
        pieces.for_each(|piece| piece.is_counted = false);
    }

    /// The switch has deleted a piece. If it was told to, says whether the entry counts what that has counted.
    pub(crate) fn take(&mut self, number: u32, is_meant: impl Fn(&[u8]) -> bool) -> Option<bool> {
        let pieces = self.0.get_mut(&number)?;
        let found = pieces.iter().position(|piece| is_meant(&piece.match_wire));
        let taken = found.map(|at| pieces.remove(at).is_counted);
        if pieces.is_empty() {
            self.0.remove(&number);
        }
        taken
    }

    /// The switch has refused to delete a piece.
    pub(crate) fn stays(&mut self, number: u32, match_wire: &[u8]) {
        let Some(pieces) = self.0.get_mut(&number) else { return };
        if let Some(at) = pieces.iter().rposition(|piece| *piece.match_wire == *match_wire) {
            pieces.remove(at);
        }
    }

    /// What the switch has not told in this time was not there.
    pub(crate) fn settle(&mut self, patience: Duration, now: Instant) {
        self.0.retain(|_, pieces| {
            pieces.retain(|piece| now - piece.since < patience);
            !pieces.is_empty()
        });
    }
}
