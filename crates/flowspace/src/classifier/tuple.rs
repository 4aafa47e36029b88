//! One tuple: the entries whose matches have the same mask.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use hashbrown::HashTable;
use hashbrown::hash_table;

use super::rank::Rank;
use super::slots::Slots;
use crate::field::WORDS;
use crate::{Key, Match};

/// A hash table from masked headers to the best entry with that header.
#[derive(Clone, Debug)]
// A look-up reads many tuples, so the data that it reads is together.
#[repr(C)]
pub(super) struct Tuple {
    table: HashTable<Bucket>,
    /// Tuples with the same number have the same mask in the first [`PREFIX`] words.
    prefix: u64,
    /// The number of `words` in use, and how many of them are in the prefix.
    used: usize,
    used_in_prefix: usize,
    /// The words of the mask that are not zero, with the mask.
    words: [(usize, u64); WORDS],
    mask: Key,
    /// For each priority (complemented, so that the best is first) the number of entries, and a
    /// lower bound of their sequence numbers.
    priorities: BTreeMap<u32, (u32, u64)>,
}

/// Words in which tuples are likely to have the same mask: ports, Ethernet, VLAN, protocol. The
/// hash of these words is computed once for all tuples with the same mask there.
pub(super) const PREFIX: usize = 6;

/// The hash decides nearly every comparison without reading the slot, and the table can grow
/// without reading slots.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    hash: u32,
    slot: u32,
}

impl Tuple {
    pub(super) fn new(mask: Key, prefix: u64) -> Tuple {
        let mut words = [(0, 0); WORDS];
        let touched = mask.words.iter().copied().enumerate().filter(|(_, bits)| *bits != 0);
        let mut used = 0;
        for (slot, word) in words.iter_mut().zip(touched) {
            *slot = word;
            used += 1;
        }
        let used_in_prefix = mask.words.iter().take(PREFIX).filter(|bits| **bits != 0).count();
        let table = HashTable::new();
        Tuple { table, prefix, used, used_in_prefix, words, mask, priorities: BTreeMap::new() }
    }

    pub(super) fn mask(&self) -> &Key {
        &self.mask
    }

    /// A bound: no entry of the tuple is better. `None` if there are no entries.
    pub(super) fn best(&self) -> Option<Rank> {
        let (&inverse_priority, &(_, sequence)) = self.priorities.first_key_value()?;
        Some(Rank { inverse_priority, sequence })
    }

    /// Counts an added entry, and returns the old bound.
    pub(super) fn note_inserted(&mut self, rank: Rank) -> Option<Rank> {
        let old = self.best();
        self.priorities.entry(rank.inverse_priority).or_insert((0, rank.sequence)).0 += 1;
        old
    }

    /// Counts a removed entry, and returns the old bound.
    pub(super) fn note_removed(&mut self, rank: Rank) -> Option<Rank> {
        let old = self.best();
        if let Some((count, _)) = self.priorities.get_mut(&rank.inverse_priority) {
            *count -= 1;
            if *count == 0 {
                self.priorities.remove(&rank.inverse_priority);
            }
        }
        old
    }

    /// Whether all matches in this tuple fix at least the bits of `mask`.
    pub(super) fn is_within(&self, mask: &Key) -> bool {
        self.mask.words.iter().zip(&mask.words).all(|(ours, theirs)| theirs & !ours == 0)
    }

    /// The best entry whose match has the key's masked header.
    #[inline]
    pub(super) fn find<T>(&self, key: &Key, slots: &Slots<T>) -> Option<u32> {
        self.find_behind(self.hash_prefix(key), key, slots)
    }

    /// [`Tuple::find`] with the hash of the prefix known.
    #[inline]
    pub(super) fn find_behind<T>(&self, prefix: u64, key: &Key, slots: &Slots<T>) -> Option<u32> {
        let hash = self.hash_behind(prefix, key);
        let found = self.table.find(spread(hash), |bucket| {
            bucket.hash == hash && self.is_same(bucket.slot, key, slots)
        })?;
        Some(found.slot)
    }

    /// The best entries of each match that may overlap `region`; the caller has to check.
    pub(super) fn heads_overlapping<T>(&self, region: &Match, slots: &Slots<T>) -> Heads<'_> {
        let mut words = self.mask.words.iter().zip(&region.mask.words);
        if words.all(|(ours, theirs)| ours & !theirs == 0) {
            Heads::One(self.find(&region.value, slots))
        } else {
            Heads::All(self.table.iter())
        }
    }

    /// Adds an occupied slot to the table, before or behind other slots with the same match.
    pub(super) fn link<T>(&mut self, slot: u32, slots: &mut Slots<T>) {
        let Some(stored) = slots.get(slot) else { return };
        let (key, rank) = (stored.match_.value, stored.rank);
        let Some(head) = self.find(&key, slots) else {
            let hash = self.hash(&key);
            let bucket = Bucket { hash, slot };
            self.table.insert_unique(spread(hash), bucket, |bucket| spread(bucket.hash));
            return;
        };
        let mut rest = take_rest(slots, head);
        if slots.rank(head).is_some_and(|best| rank < best) {
            rest.push(head);
            self.replace_head(&key, head, slot);
            put_rest(slots, slot, rest);
        } else {
            let position =
                rest.partition_point(|&other| slots.rank(other).is_some_and(|r| r > rank));
            rest.insert(position, slot);
            put_rest(slots, head, rest);
        }
    }

    /// Removes a slot, which is still occupied, from the table.
    pub(super) fn unlink<T>(&mut self, slot: u32, slots: &mut Slots<T>) {
        let Some(&key) = slots.key(slot) else { return };
        let Some(rank) = slots.rank(slot) else { return };
        let Some(head) = self.find(&key, slots) else { return };
        let mut rest = take_rest(slots, head);
        if head != slot {
            let position =
                rest.partition_point(|&other| slots.rank(other).is_some_and(|r| r > rank));
            if rest.get(position) == Some(&slot) {
                rest.remove(position);
            }
            put_rest(slots, head, rest);
        } else if let Some(next) = rest.pop() {
            self.replace_head(&key, head, next);
            put_rest(slots, next, rest);
        } else {
            let hash = spread(self.hash(&key));
            if let Ok(bucket) = self.table.find_entry(hash, |bucket| bucket.slot == slot) {
                bucket.remove();
            }
        }
    }

    fn replace_head(&mut self, key: &Key, old: u32, new: u32) {
        let hash = spread(self.hash(key));
        if let Some(bucket) = self.table.find_mut(hash, |bucket| bucket.slot == old) {
            bucket.slot = new;
        }
    }

    /// See [`PREFIX`].
    #[inline]
    pub(super) fn prefix(&self) -> u64 {
        self.prefix
    }

    /// The hash of the words in the prefix: the same for tuples with the same [`Tuple::prefix`].
    #[inline]
    pub(super) fn hash_prefix(&self, key: &Key) -> u64 {
        hash_words(SEED, self.words.get(..self.used_in_prefix).unwrap_or_default(), key)
    }

    #[inline]
    fn hash_behind(&self, prefix: u64, key: &Key) -> u32 {
        let words = self.words.get(self.used_in_prefix..self.used).unwrap_or_default();
        (hash_words(prefix, words, key) >> 32) as u32
    }

    fn hash(&self, key: &Key) -> u32 {
        self.hash_behind(self.hash_prefix(key), key)
    }

    #[inline]
    fn is_same<T>(&self, slot: u32, key: &Key, slots: &Slots<T>) -> bool {
        let Some(value) = slots.key(slot) else { return false };
        let mut difference = 0;
        for &(word, mask) in self.words.iter().take(self.used) {
            let word = word % WORDS;
            difference |= (key.words[word] & mask) ^ value.words[word];
        }
        difference == 0
    }
}

/// Multiply and fold, word by word.
///
/// The constants are fixed, because this crate has no randomness for a seed. A tenant can choose
/// entries whose hashes collide, and then only slows down the look-ups of its own table.
#[inline]
fn hash_words(seed: u64, words: &[(usize, u64)], key: &Key) -> u64 {
    words.iter().fold(seed, |hash, &(word, mask)| {
        let value = key.words[word % WORDS] & mask;
        let product = u128::from(hash ^ value) * 0x9e37_79b9_7f4a_7c15;
        (product as u64) ^ (product >> 64) as u64
    })
}

const SEED: u64 = 0x243f_6a88_85a3_08d3;

/// The hash is spread over 64 bits: the table takes the position from the lower bits and its tags
/// from the upper bits.
#[inline]
const fn spread(hash: u32) -> u64 {
    hash as u64 | (hash as u64) << 32
}

/// See [`Tuple::heads_overlapping`].
pub(super) enum Heads<'a> {
    One(Option<u32>),
    All(hash_table::Iter<'a, Bucket>),
}

impl Iterator for Heads<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        match self {
            Heads::One(head) => head.take(),
            Heads::All(buckets) => buckets.next().map(|bucket| bucket.slot),
        }
    }
}

fn take_rest<T>(slots: &mut Slots<T>, slot: u32) -> Vec<u32> {
    slots.get_mut(slot).map(|stored| core::mem::take(&mut stored.rest)).unwrap_or_default()
}

fn put_rest<T>(slots: &mut Slots<T>, slot: u32, rest: Vec<u32>) {
    if let Some(stored) = slots.get_mut(slot) {
        stored.rest = rest;
    }
}
