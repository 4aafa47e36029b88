//! The memory of entries: a slab in chunks of fixed size, so that growing never moves an entry and an insertion never
//! copies all earlier entries.

use alloc::vec::Vec;

use super::rank::Rank;
use crate::{Key, Match};

/// Slots per chunk.
const CHUNK: usize = 256;

/// The id that [`Classifier::insert`](super::Classifier::insert) returns to find the entry again. The id of a removed
/// entry finds no entry, also if another entry uses the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntryId {
    slot: u32,
    generation: u32,
}

impl EntryId {
    /// The number of the entry's slot.
    pub(super) fn slot(self) -> u32 {
        self.slot
    }
}

#[derive(Clone, Debug)]
pub(super) struct Slots<T> {
    /// All chunks except the last are full.
    chunks: Vec<Vec<Slot<T>>>,
    free: Vec<u32>,
    count: u32,
}

#[derive(Clone, Debug)]
// The data that a look-up reads (generation, occupancy, rank, the words that are usually matched) is together at the
// front, on two cache lines instead of five.
#[repr(C)]
struct Slot<T> {
    /// The generation grows whenever the slot becomes free.
    generation: u32,
    stored: Option<Stored<T>>,
}

#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Stored<T> {
    /// In the best of several entries with equal matches: the other entries, worst first. The field is in front because
    /// it also distinguishes an occupied slot from a free slot.
    pub(super) rest: Vec<u32>,
    pub(super) rank: Rank,
    pub(super) match_: Match,
    pub(super) value: T,
}

impl<T> Slots<T> {
    pub(super) const fn new() -> Slots<T> {
        Slots { chunks: Vec::new(), free: Vec::new(), count: 0 }
    }

    /// Number of slots that are occupied.
    pub(super) fn occupied(&self) -> usize {
        self.count as usize - self.free.len()
    }

    /// The indices of all slots that ever existed.
    pub(super) fn indices(&self) -> core::ops::Range<u32> {
        0..self.count
    }

    #[inline]
    fn slot(&self, index: u32) -> Option<&Slot<T>> {
        let index = index as usize;
        self.chunks.get(index / CHUNK)?.get(index % CHUNK)
    }

    fn slot_mut(&mut self, index: u32) -> Option<&mut Slot<T>> {
        let index = index as usize;
        self.chunks.get_mut(index / CHUNK)?.get_mut(index % CHUNK)
    }

    #[inline]
    pub(super) fn get(&self, index: u32) -> Option<&Stored<T>> {
        self.slot(index)?.stored.as_ref()
    }

    pub(super) fn get_mut(&mut self, index: u32) -> Option<&mut Stored<T>> {
        self.slot_mut(index)?.stored.as_mut()
    }

    #[inline]
    pub(super) fn key(&self, index: u32) -> Option<&Key> {
        self.get(index).map(|stored| &stored.match_.value)
    }

    #[inline]
    pub(super) fn rank(&self, index: u32) -> Option<Rank> {
        self.get(index).map(|stored| stored.rank)
    }

    /// The id of the slot's present entry.
    pub(super) fn id(&self, index: u32) -> Option<EntryId> {
        self.slot(index).map(|slot| EntryId { slot: index, generation: slot.generation })
    }

    /// Whether the id belongs to an entry in an occupied slot.
    pub(super) fn holds(&self, id: EntryId) -> bool {
        self.slot(id.slot)
            .is_some_and(|slot| slot.generation == id.generation && slot.stored.is_some())
    }

    pub(super) fn occupy(&mut self, stored: Stored<T>) -> EntryId {
        if let Some(index) = self.free.pop()
            && let Some(slot) = self.slot_mut(index)
        {
            slot.stored = Some(stored);
            return EntryId { slot: index, generation: slot.generation };
        }
        let slot = Slot { generation: 0, stored: Some(stored) };
        match self.chunks.last_mut() {
            Some(chunk) if chunk.len() < CHUNK => chunk.push(slot),
            _ => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push(slot);
                self.chunks.push(chunk);
            }
        }
        // The memory is full long before 32 bits are used up.
        self.count += 1;
        EntryId { slot: self.count - 1, generation: 0 }
    }

    pub(super) fn vacate(&mut self, index: u32) -> Option<Stored<T>> {
        let slot = self.slot_mut(index)?;
        let stored = slot.stored.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(index);
        Some(stored)
    }
}
