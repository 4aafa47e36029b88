//! Which entry on a switch of 1.0 has told of a packet: that switch does not say.
//!
//! It is looked for as the switch did it, by what the packet looks like, among the entries that tell anybody; as soon as one of
//! them tells the hypervisor, and only then. A look costs one probe for each mask among them, so there is a bound for
//! these: whoever shares the thread pays for it.

use super::{Flow, Piece, Tells};
use alloc::boxed::Box;
use flowspace::{Classifier, EntryId, Key, Match};
use hashbrown::{HashMap, HashSet};

/// Masks that a look is made for at most.
pub(crate) const MASKS: usize = 128;

/// Entries that tell anybody of their packets.
#[derive(Debug, Default)]
pub(super) struct Telling {
    /// By whose number, and whom.
    entries: Classifier<(u32, Tells)>,
    /// By priority and match.
    ids: HashMap<(u16, Box<[u8]>), EntryId>,
    /// How many tell the hypervisor.
    asking: usize,
}

impl Telling {
    pub(super) fn insert(&mut self, number: u32, piece: &Piece) {
        self.remove(piece);
        let Some(match_) = told_of(piece) else { return };
        let id = self.entries.insert(match_, piece.priority.into(), (number, piece.tells));
        self.ids.insert((piece.priority, piece.match_wire.clone()), id);
        self.asking += usize::from(piece.tells.asks());
    }

    pub(super) fn remove(&mut self, piece: &Piece) {
        if self.ids.is_empty() {
            return;
        }
        let id = self.ids.remove(&(piece.priority, piece.match_wire.clone()));
        if let Some((_, tells)) = id.and_then(|id| self.entries.remove(id)) {
            self.asking -= usize::from(tells.asks());
        }
    }

    /// Whose entry a packet has met that the switch tells of, and whom that is for; `None` if none of them asks.
    pub(super) fn met_by(&self, key: &Key) -> Option<(u32, Tells)> {
        if self.asking == 0 {
            return None;
        }
        self.entries.lookup(key).map(|entry| *entry.value)
    }

    /// Whether there would be too many masks with these, and a look to be made.
    pub(super) fn is_full_for<'a>(&self, flows: impl Iterator<Item = &'a Flow> + Clone) -> bool {
        let pieces = flows.flat_map(|flow| &flow.pieces);
        if self.asking == 0 && !pieces.clone().any(|piece| piece.tells.asks()) {
            return false;
        }
        let is_new = |match_: &Match| !self.entries.has_mask_of(match_);
        let new = pieces.filter_map(told_of).filter(is_new);
        let new: HashSet<_> = new.map(|match_| match_.mask()).collect();
        !new.is_empty() && self.entries.tuple_count() + new.len() > MASKS
    }
}

fn told_of(piece: &Piece) -> Option<Match> {
    let tells = piece.tells != Tells::Nobody;
    tells.then(|| crate::v10::read_match(&piece.match_wire)).flatten()
}
