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
    /// When its deletion was written.
    since: Instant,
}

impl Retired {
    /// A piece is about to be deleted.
    pub(crate) fn add(&mut self, number: u32, match_wire: &[u8], now: Instant) {
        self.0.entry(number).or_default().push(Piece { match_wire: match_wire.into(), since: now });
    }

    /// The switch has deleted a piece. Says whether it was told to.
    pub(crate) fn take(&mut self, number: u32, is_meant: impl Fn(&[u8]) -> bool) -> bool {
        let Some(pieces) = self.0.get_mut(&number) else { return false };
        let found = pieces.iter().position(|piece| is_meant(&piece.match_wire));
        found.inspect(|at| drop(pieces.remove(*at)));
        if pieces.is_empty() {
            self.0.remove(&number);
        }
        found.is_some()
    }

    /// What the switch has not told in this time was not there.
    pub(crate) fn settle(&mut self, patience: Duration, now: Instant) {
        self.0.retain(|_, pieces| {
            pieces.retain(|piece| now - piece.since < patience);
            !pieces.is_empty()
        });
    }
}
