//! Containers that grow a little at a time.
//!
//! A vector or a hash table in one piece is copied as a whole when it grows. With 200,000 rules on a switch one ADD took 8 or
//! 26 ms for this reason, and all tenants of the event loop waited.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::{Index, IndexMut};
use hashbrown::HashTable;

/// Items of one piece of a vector.
const PIECE: usize = 1 << 10;
/// Parts of a hash table.
const PARTS: usize = 64;

/// A vector that only grows, in pieces that stay where they are.
#[derive(Debug)]
pub(super) struct Pieces<T>(Vec<Vec<T>>);

impl<T> Pieces<T> {
    pub(super) fn new() -> Pieces<T> {
        Pieces(Vec::new())
    }

    /// Adds an item, and gives its place.
    pub(super) fn push(&mut self, item: T) -> u32 {
        if self.0.last().is_none_or(|last| last.len() == PIECE) {
            self.0.push(Vec::new());
        }
        let full = (self.0.len() - 1) * PIECE;
        let last = &mut self.0[full / PIECE];
        if last.len() == last.capacity() {
            // Many switches have few rules.
            last.reserve_exact(last.len().clamp(16, PIECE - last.len()));
        }
        last.push(item);
        (full + last.len() - 1) as u32
    }

    #[inline]
    pub(super) fn get(&self, at: u32) -> Option<&T> {
        self.0.get(at as usize / PIECE)?.get(at as usize % PIECE)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, at: u32) -> Option<&mut T> {
        self.0.get_mut(at as usize / PIECE)?.get_mut(at as usize % PIECE)
    }

    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flatten()
    }
}

impl<T> Index<u32> for Pieces<T> {
    type Output = T;

    #[inline]
    fn index(&self, at: u32) -> &T {
        &self.0[at as usize / PIECE][at as usize % PIECE]
    }
}

impl<T> IndexMut<u32> for Pieces<T> {
    #[inline]
    fn index_mut(&mut self, at: u32) -> &mut T {
        &mut self.0[at as usize / PIECE][at as usize % PIECE]
    }
}

/// A hash table of numbers in parts. Each part grows by itself.
#[derive(Debug)]
pub(super) struct Parts(Box<[HashTable<u32>]>);

impl Parts {
    pub(super) fn new() -> Parts {
        Parts((0..PARTS).map(|_| HashTable::new()).collect())
    }

    /// The part that may have a number with this hash.
    #[inline]
    pub(super) fn of(&self, hash: u64) -> &HashTable<u32> {
        &self.0[part(hash)]
    }

    /// The same, to change the part.
    #[inline]
    pub(super) fn of_mut(&mut self, hash: u64) -> &mut HashTable<u32> {
        &mut self.0[part(hash)]
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.iter().map(HashTable::len).sum()
    }
}

/// From bits that a table itself does not use: it looks at the lowest and at the highest.
#[inline]
fn part(hash: u64) -> usize {
    (hash >> 40) as usize % PARTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_stay_and_items_are_found() {
        let mut pieces = Pieces::new();
        let count = 3 * PIECE as u32 + 5;
        for item in 0..count {
            assert_eq!(pieces.push(item), item);
        }
        assert!((0..count).all(|at| pieces[at] == at && pieces.get_mut(at) == Some(&mut { at })));
        assert_eq!(pieces.get(count), None);
        assert!(pieces.iter().copied().eq(0..count));
        assert!(pieces.0.iter().all(|piece| piece.capacity() <= PIECE));
    }

    #[test]
    fn all_parts_are_used() {
        let mut parts = Parts::new();
        for number in 0..10_000_u32 {
            let hash = |number: &u32| u64::from(*number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            parts.of_mut(hash(&number)).insert_unique(hash(&number), number, hash);
        }
        assert!(parts.0.iter().all(|part| (50..=300).contains(&part.len())));
    }
}
