//! Containers that grow a little at a time.
//!
//! An ordinary vector or hash table is copied as a whole when it grows. With 200,000 rules on a switch one ADD took 20
//! ms and more for this reason, and all tenants of the event loop waited (example `growing_tables`).

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::{Index, IndexMut};
use hashbrown::HashTable;

/// Items of one chunk of a vector.
const CHUNK: usize = 1 << 10;
/// Parts of a hash table.
const PARTS: usize = 64;

/// A vector that only grows, in chunks that stay where they are.
#[derive(Debug)]
pub(super) struct ChunkedVec<T>(Vec<Vec<T>>);

impl<T> ChunkedVec<T> {
    pub(super) fn new() -> ChunkedVec<T> {
        ChunkedVec(Vec::new())
    }

    /// Adds an item, and gives its place.
    pub(super) fn push(&mut self, item: T) -> u32 {
        if self.0.last().is_none_or(|last| last.len() == CHUNK) {
            self.0.push(Vec::new());
        }
        let full = (self.0.len() - 1) * CHUNK;
        let last = &mut self.0[full / CHUNK];
        if last.len() == last.capacity() {
            // Many switches have few rules.
            last.reserve_exact(last.len().max(16).min(CHUNK - last.len()));
        }
        last.push(item);
        (full + last.len() - 1) as u32
    }

    #[inline]
    pub(super) fn get(&self, at: u32) -> Option<&T> {
        self.0.get(at as usize / CHUNK)?.get(at as usize % CHUNK)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, at: u32) -> Option<&mut T> {
        self.0.get_mut(at as usize / CHUNK)?.get_mut(at as usize % CHUNK)
    }

    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flatten()
    }
}

impl<T> Index<u32> for ChunkedVec<T> {
    type Output = T;

    #[inline]
    fn index(&self, at: u32) -> &T {
        &self.0[at as usize / CHUNK][at as usize % CHUNK]
    }
}

impl<T> IndexMut<u32> for ChunkedVec<T> {
    #[inline]
    fn index_mut(&mut self, at: u32) -> &mut T {
        &mut self.0[at as usize / CHUNK][at as usize % CHUNK]
    }
}

/// A hash table of numbers in parts. Each part grows by itself.
#[derive(Debug)]
pub(super) struct SplitTable(Box<[HashTable<u32>]>);

impl SplitTable {
    pub(super) fn new() -> SplitTable {
        SplitTable((0..PARTS).map(|_| HashTable::new()).collect())
    }

    /// The part for numbers with this hash.
    #[inline]
    pub(super) fn of(&self, hash: u64) -> &HashTable<u32> {
        &self.0[part(hash)]
    }

    /// The part for numbers with this hash, to change the part.
    #[inline]
    pub(super) fn of_mut(&mut self, hash: u64) -> &mut HashTable<u32> {
        &mut self.0[part(hash)]
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.iter().map(HashTable::len).sum()
    }
}

/// Takes bits that a hash table itself does not use: the table uses the lowest and the highest bits.
#[inline]
fn part(hash: u64) -> usize {
    (hash >> 40) as usize % PARTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunked_vector_keeps_the_index_of_each_item() {
        let mut chunks = ChunkedVec::new();
        let count = 3 * CHUNK as u32 + 5;
        for item in 0..count {
            assert_eq!(chunks.push(item), item);
        }
        assert!((0..count).all(|at| chunks[at] == at && chunks.get_mut(at) == Some(&mut { at })));
        assert_eq!(chunks.get(count), None);
        assert!(chunks.iter().copied().eq(0..count));
        assert!(chunks.0.iter().all(|chunk| chunk.capacity() <= CHUNK));
    }

    #[test]
    fn a_split_table_spreads_numbers_over_its_parts() {
        let mut parts = SplitTable::new();
        for number in 0..10_000_u32 {
            let hash = |number: &u32| u64::from(*number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            parts.of_mut(hash(&number)).insert_unique(hash(&number), number, hash);
        }
        assert!(parts.0.iter().all(|part| (50..=300).contains(&part.len())));
    }
}
