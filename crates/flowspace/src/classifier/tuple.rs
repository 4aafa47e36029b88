//! One tuple: the entries whose matches have the same mask.

use alloc::collections::BTreeMap;

use hashbrown::HashTable;
use hashbrown::hash_table;

use super::{Rank, Slot, rank_of};
use crate::field::WORDS;
use crate::{Key, Match};

/// A hash table from masked headers to the best entry with that header.
#[derive(Clone, Debug)]
pub(super) struct Tuple {
    /// The words that the mask touches, `used` of them.
    words: [(u8, u64); WORDS],
    used: u8,
    table: HashTable<Bucket>,
    mask: Key,
    /// Per priority (complemented, so that the best is first) the number of entries, and a sequence
    /// number that none of them is below.
    priorities: BTreeMap<u32, (u32, u64)>,
}

/// `tag` is the upper half of the hash: it settles nearly every comparison without a visit to the
/// slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    tag: u32,
    slot: u32,
}

impl Tuple {
    pub(super) fn new(mask: Key) -> Tuple {
        let mut words = [(0, 0); WORDS];
        let mut used = 0;
        for (word, &bits) in mask.words.iter().enumerate() {
            if bits != 0 {
                words[usize::from(used)] = (word as u8, bits);
                used += 1;
            }
        }
        Tuple { words, used, table: HashTable::new(), mask, priorities: BTreeMap::new() }
    }

    pub(super) fn mask(&self) -> &Key {
        &self.mask
    }

    /// A bound on the entries: none is better. `None` if there are none.
    pub(super) fn best(&self) -> Option<Rank> {
        let (&inverse_priority, &(_, sequence)) = self.priorities.first_key_value()?;
        Some(Rank { inverse_priority, sequence })
    }

    /// Counts an entry in; gives the bound from before.
    pub(super) fn note_inserted(&mut self, rank: Rank) -> Option<Rank> {
        let old = self.best();
        self.priorities.entry(rank.inverse_priority).or_insert((0, rank.sequence)).0 += 1;
        old
    }

    /// Counts an entry out; gives the bound from before.
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
    pub(super) fn find<T>(&self, key: &Key, slots: &[Slot<T>]) -> Option<u32> {
        let hash = self.hash(key);
        let tag = tag(hash);
        let found = self
            .table
            .find(hash, |bucket| bucket.tag == tag && self.same(bucket.slot, key, slots))?;
        Some(found.slot)
    }

    /// The best entries of each match that may overlap `region`; the caller has to check.
    pub(super) fn heads_overlapping<T>(&self, region: &Match, slots: &[Slot<T>]) -> Heads<'_> {
        let region_fixes_all = self
            .mask
            .words
            .iter()
            .zip(&region.mask.words)
            .all(|(ours, theirs)| ours & !theirs == 0);
        if region_fixes_all {
            Heads::One(self.find(&region.value, slots))
        } else {
            Heads::All(self.table.iter())
        }
    }

    /// Puts an occupied slot into the table, before or behind others with the same match.
    pub(super) fn link<T>(&mut self, slot: u32, slots: &mut [Slot<T>]) {
        let Some(stored) = slots.get(slot as usize).and_then(|slot| slot.stored.as_ref()) else {
            return;
        };
        let (key, rank) = (stored.match_.value, stored.rank);
        let hash = self.hash(&key);
        let Some(head) = self.find(&key, slots) else {
            let bucket = Bucket { tag: tag(hash), slot };
            let (words, used) = (&self.words, self.used);
            self.table.insert_unique(hash, bucket, |bucket| match key_of(slots, bucket.slot) {
                Some(key) => hash_words(words, used, key),
                None => 0,
            });
            return;
        };
        if rank_of(slots, head).is_some_and(|head_rank| rank < head_rank) {
            let mut rest = take_rest(slots, head);
            rest.push(head);
            self.replace_head(hash, head, slot);
            put_rest(slots, slot, rest);
        } else {
            let mut rest = take_rest(slots, head);
            let position =
                rest.partition_point(|&other| rank_of(slots, other).is_some_and(|r| r > rank));
            rest.insert(position, slot);
            put_rest(slots, head, rest);
        }
    }

    /// Takes a slot, still occupied, out of the table.
    pub(super) fn unlink<T>(&mut self, slot: u32, slots: &mut [Slot<T>]) {
        let Some(&key) = key_of(slots, slot) else { return };
        let hash = self.hash(&key);
        let Some(head) = self.find(&key, slots) else { return };
        let mut rest = take_rest(slots, head);
        if head != slot {
            rest.retain(|&other| other != slot);
            put_rest(slots, head, rest);
        } else if let Some(next) = rest.pop() {
            self.replace_head(hash, head, next);
            put_rest(slots, next, rest);
        } else if let Ok(bucket) = self.table.find_entry(hash, |bucket| bucket.slot == slot) {
            bucket.remove();
        }
    }

    fn replace_head(&mut self, hash: u64, old: u32, new: u32) {
        if let Some(bucket) = self.table.find_mut(hash, |bucket| bucket.slot == old) {
            bucket.slot = new;
        }
    }

    #[inline]
    fn hash(&self, key: &Key) -> u64 {
        hash_words(&self.words, self.used, key)
    }

    #[inline]
    fn same<T>(&self, slot: u32, key: &Key, slots: &[Slot<T>]) -> bool {
        let Some(value) = key_of(slots, slot) else { return false };
        let mut difference = 0;
        for &(word, mask) in self.words.iter().take(usize::from(self.used)) {
            let word = usize::from(word) % WORDS;
            difference |= (key.words[word] & mask) ^ value.words[word];
        }
        difference == 0
    }
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

/// Multiply and fold, word by word. Fixed constants (this crate has no randomness to seed from): who
/// may insert entries can make them collide, and then pays for it in their own table.
#[inline]
fn hash_words(words: &[(u8, u64); WORDS], used: u8, key: &Key) -> u64 {
    let mut hash: u64 = 0x243f_6a88_85a3_08d3;
    for &(word, mask) in words.iter().take(usize::from(used)) {
        let value = key.words[usize::from(word) % WORDS] & mask;
        let product = u128::from(hash ^ value) * 0x9e37_79b9_7f4a_7c15;
        hash = (product as u64) ^ (product >> 64) as u64;
    }
    hash
}

#[inline]
fn tag(hash: u64) -> u32 {
    (hash >> 25) as u32
}

fn key_of<T>(slots: &[Slot<T>], slot: u32) -> Option<&Key> {
    slots.get(slot as usize)?.stored.as_ref().map(|stored| &stored.match_.value)
}

fn take_rest<T>(slots: &mut [Slot<T>], slot: u32) -> alloc::vec::Vec<u32> {
    slots
        .get_mut(slot as usize)
        .and_then(|slot| slot.stored.as_mut())
        .map(|stored| core::mem::take(&mut stored.rest))
        .unwrap_or_default()
}

fn put_rest<T>(slots: &mut [Slot<T>], slot: u32, rest: alloc::vec::Vec<u32>) {
    if let Some(stored) = slots.get_mut(slot as usize).and_then(|slot| slot.stored.as_mut()) {
        stored.rest = rest;
    }
}
