//! [`Classifier`]: which of many prioritised matches is the best for a packet.
//!
//! Tuple-space search: entries whose matches have the same mask form a tuple, a hash table over the
//! masked header. A look-up probes the tuples in the order of their best entries and stops when no
//! tuple that is left can hold anything better (Srinivasan, Suri and Varghese, *Packet
//! Classification Using Tuple Space Search*, 1999; priority pruning as in Open vSwitch).
//!
//! A look-up costs one probe per tuple at worst, so it degrades with the number of different masks,
//! not with the number of entries. It allocates nothing. There is no deletion of ranges and no
//! iteration in priority order.

mod rank;
mod slots;
mod tuple;

use alloc::vec::Vec;

use hashbrown::{HashMap, hash_map};

use self::rank::Rank;
pub use self::slots::EntryId;
use self::slots::{Slots, Stored};
use self::tuple::{PREFIX, Tuple};
use crate::{Key, Match};

/// An entry as the classifier shows it.
#[derive(Debug)]
pub struct Entry<'a, T> {
    /// The identity of the entry.
    pub id: EntryId,
    /// The packets that the entry matches.
    pub match_: &'a Match,
    /// The priority; the entry with the highest priority applies.
    pub priority: u32,
    /// The inserted value.
    pub value: &'a T,
}

impl<T> Clone for Entry<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Entry<'_, T> {}

/// A set of prioritised matches with a value each.
///
/// Of the entries that match a packet the one with the highest priority wins, among equals the one
/// inserted first. Equal matches, also with equal priorities, may be in the set several times.
#[derive(Clone, Debug)]
pub struct Classifier<T> {
    slots: Slots<T>,
    tuples: Vec<Tuple>,
    free_tuples: Vec<u32>,
    by_mask: HashMap<Key, u32>,
    /// A number for the first words of each mask, and how many tuples have this number.
    prefixes: HashMap<[u64; PREFIX], (u64, u32)>,
    next_prefix: u64,
    /// Tuples in use, in the order of their best entries. The ranks are bounds: no entry of the
    /// tuple is better.
    order: Vec<(Rank, u32)>,
    /// The number of entries that were ever inserted.
    inserted: u64,
}

impl<T> Classifier<T> {
    /// An empty classifier.
    pub fn new() -> Classifier<T> {
        Classifier {
            slots: Slots::new(),
            tuples: Vec::new(),
            free_tuples: Vec::new(),
            by_mask: HashMap::new(),
            prefixes: HashMap::new(),
            next_prefix: 0,
            order: Vec::new(),
            inserted: 0,
        }
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.slots.occupied()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of different masks among the entries: the cost of a look-up at worst.
    pub fn tuple_count(&self) -> usize {
        self.order.len()
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.by_mask.clear();
        self.prefixes.clear();
        self.order.clear();
        self.tuples.clear();
        self.free_tuples.clear();
        for slot in self.slots.indices() {
            self.slots.vacate(slot);
        }
    }

    /// Adds an entry.
    pub fn insert(&mut self, match_: Match, priority: u32, value: T) -> EntryId {
        let rank = Rank { inverse_priority: !priority, sequence: self.inserted };
        self.inserted += 1;
        let id = self.slots.occupy(Stored { match_, rank, rest: Vec::new(), value });
        let tuple = self.tuple_for(&match_.mask);
        let old = self.tuples[tuple as usize].note_inserted(rank);
        self.reorder(tuple, old);
        self.tuples[tuple as usize].link(id.slot(), &mut self.slots);
        id
    }

    /// Removes an entry; `None` if the entry does not exist any more.
    pub fn remove(&mut self, id: EntryId) -> Option<T> {
        let (mask, rank) = self.stored(id).map(|stored| (stored.match_.mask, stored.rank))?;
        let tuple = *self.by_mask.get(&mask)?;
        let used = self.tuples.get_mut(tuple as usize)?;
        used.unlink(id.slot(), &mut self.slots);
        let old = used.note_removed(rank);
        self.reorder(tuple, old);
        self.slots.vacate(id.slot()).map(|stored| stored.value)
    }

    /// The entry that wins the packet.
    #[inline]
    pub fn lookup(&self, key: &Key) -> Option<Entry<'_, T>> {
        let mut best: Option<(Rank, u32)> = None;
        let mut hashed: Option<(u64, u64)> = None;
        for &(bound, tuple) in &self.order {
            if best.is_some_and(|(rank, _)| rank < bound) {
                break;
            }
            let tuple = self.tuples.get(tuple as usize)?;
            let prefix = match hashed {
                Some((prefix, hash)) if prefix == tuple.prefix() => hash,
                _ => tuple.hash_prefix(key),
            };
            hashed = Some((tuple.prefix(), prefix));
            if let Some(slot) = tuple.find_behind(prefix, key, &self.slots)
                && let Some(rank) = self.slots.rank(slot)
                && best.is_none_or(|(best, _)| rank < best)
            {
                best = Some((rank, slot));
            }
        }
        self.entry(best?.1)
    }

    /// Calls `visit` with every entry that matches the packet, in no particular order.
    pub fn for_each_match<'a>(&'a self, key: &Key, mut visit: impl FnMut(Entry<'a, T>)) {
        for tuple in self.tuples_in_use() {
            let head = tuple.find(key, &self.slots);
            self.chain(head).for_each(&mut visit);
        }
    }

    /// The entry with this id.
    pub fn get(&self, id: EntryId) -> Option<Entry<'_, T>> {
        self.stored(id)?;
        self.entry(id.slot())
    }

    /// The value of the entry with this id.
    pub fn get_mut(&mut self, id: EntryId) -> Option<&mut T> {
        if !self.slots.holds(id) {
            return None;
        }
        self.slots.get_mut(id.slot()).map(|stored| &mut stored.value)
    }

    /// All entries, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = Entry<'_, T>> {
        self.slots.indices().filter_map(|slot| self.entry(slot))
    }

    /// The entries that share packets with `region`, in no particular order.
    ///
    /// The cost is one probe for each tuple whose mask `region` matches exactly, and a scan of each
    /// other tuple.
    pub fn overlapping(&self, region: &Match) -> impl Iterator<Item = Entry<'_, T>> {
        let region = *region;
        self.tuples_in_use()
            .flat_map(move |tuple| tuple.heads_overlapping(&region, &self.slots))
            .filter(move |&head| {
                self.entry(head).is_some_and(|entry| entry.match_.overlaps(&region))
            })
            .flat_map(|head| self.chain(Some(head)))
    }

    /// The entries whose packets are all in `region` (a non-strict delete), in no particular order.
    ///
    /// Looks only into tuples with masks at least as narrow as that of `region`.
    pub fn contained_in(&self, region: &Match) -> impl Iterator<Item = Entry<'_, T>> {
        let region = *region;
        self.tuples_in_use()
            .filter(move |tuple| tuple.is_within(&region.mask))
            .flat_map(move |tuple| tuple.heads_overlapping(&region, &self.slots))
            .filter(move |&head| {
                self.entry(head).is_some_and(|entry| region.contains(entry.match_))
            })
            .flat_map(|head| self.chain(Some(head)))
    }

    /// The entry with exactly this match and priority; of several the one inserted first.
    pub fn find_strict(&self, match_: &Match, priority: u32) -> Option<EntryId> {
        let tuple = self.tuples.get(*self.by_mask.get(&match_.mask)? as usize)?;
        let head = tuple.find(&match_.value, &self.slots)?;
        let head_stored = self.slots.get(head)?;
        let wanted = Rank { inverse_priority: !priority, sequence: 0 };
        let found = if head_stored.rank >= wanted {
            head
        } else {
            // The list has the worst entry first: the search takes the last entry that is not
            // better than the wanted one.
            let rest = &head_stored.rest;
            let worse = rest
                .partition_point(|&slot| self.slots.rank(slot).is_some_and(|rank| rank >= wanted));
            *rest.get(worse.checked_sub(1)?)?
        };
        self.entry(found).filter(|entry| entry.priority == priority).map(|entry| entry.id)
    }

    fn tuples_in_use(&self) -> impl Iterator<Item = &Tuple> {
        self.order.iter().filter_map(|&(_, tuple)| self.tuples.get(tuple as usize))
    }

    /// An entry and the following entries with an equal match.
    fn chain(&self, head: Option<u32>) -> impl Iterator<Item = Entry<'_, T>> {
        let rest =
            head.and_then(|head| self.slots.get(head)).map_or(&[][..], |stored| &stored.rest);
        head.into_iter().chain(rest.iter().copied()).filter_map(|slot| self.entry(slot))
    }

    fn stored(&self, id: EntryId) -> Option<&Stored<T>> {
        if self.slots.holds(id) { self.slots.get(id.slot()) } else { None }
    }

    fn entry(&self, slot: u32) -> Option<Entry<'_, T>> {
        let Stored { match_, rank, value, .. } = self.slots.get(slot)?;
        let id = self.slots.id(slot)?;
        Some(Entry { id, match_, priority: !rank.inverse_priority, value })
    }

    fn tuple_for(&mut self, mask: &Key) -> u32 {
        if let Some(&tuple) = self.by_mask.get(mask) {
            return tuple;
        }
        let (prefix, tuples) = self.prefixes.entry(prefix_of(mask)).or_insert_with(|| {
            self.next_prefix += 1;
            (self.next_prefix, 0)
        });
        *tuples += 1;
        let new = Tuple::new(*mask, *prefix);
        let tuple = if let Some(free) = self.free_tuples.pop() {
            self.tuples[free as usize] = new;
            free
        } else {
            self.tuples.push(new);
            self.tuples.len() as u32 - 1
        };
        self.by_mask.insert(*mask, tuple);
        tuple
    }

    /// Moves a tuple to the place of its best entry; `old` is the bound of the old place. A tuple
    /// without entries is removed.
    fn reorder(&mut self, tuple: u32, old: Option<Rank>) {
        let new = self.tuples[tuple as usize].best();
        if old == new {
            return;
        }
        if let Some(old) = old
            && let Ok(position) = self.order.binary_search(&(old, tuple))
        {
            self.order.remove(position);
        }
        match new {
            Some(new) => {
                let position = self.order.partition_point(|other| *other < (new, tuple));
                self.order.insert(position, (new, tuple));
            }
            None => {
                let mask = self.tuples[tuple as usize].mask();
                self.by_mask.remove(mask);
                if let hash_map::Entry::Occupied(mut prefix) = self.prefixes.entry(prefix_of(mask))
                {
                    prefix.get_mut().1 -= 1;
                    if prefix.get().1 == 0 {
                        prefix.remove();
                    }
                }
                self.free_tuples.push(tuple);
            }
        }
    }
}

impl<T> Default for Classifier<T> {
    fn default() -> Self {
        Classifier::new()
    }
}

fn prefix_of(mask: &Key) -> [u64; PREFIX] {
    core::array::from_fn(|word| mask.words[word])
}
