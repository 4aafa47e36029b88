//! [`MatchIndex`]: finds the matches that may lie within another match, or share packets with it.
//!
//! Matches with the same mask form a group, ordered by a hash of their values. The index compares a region with each
//! group's mask. If one value is possible, the index examines only matches with the hash of this value; otherwise it
//! examines all matches of the group, or none. The index does not store the matches. It returns candidates, and the
//! caller compares them, so the index needs only a few bytes for each match.

use alloc::collections::BTreeSet;
use core::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashMap, hash_map};

use crate::{Key, Match};

/// Numbers of matches, in several tables.
#[derive(Debug, Default)]
pub struct MatchIndex {
    groups: HashMap<(u8, Key), Group>,
    /// The numbers, by group and hash.
    members: BTreeSet<(u32, u32, u32)>,
    next: u32,
    hasher: DefaultHashBuilder,
}

#[derive(Clone, Copy, Debug)]
struct Group {
    number: u32,
    members: u32,
}

/// The kind of search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// Matches that lie within the region (non-strict commands).
    Within,
    /// Matches that share packets with the region (CHECK_OVERLAP).
    Overlapping,
}

impl MatchIndex {
    /// Adds the number of a match in a table.
    pub fn insert(&mut self, table: u8, match_: &Match, number: u32) {
        let hash = self.hash(&match_.value);
        let next = &mut self.next;
        let group = self.groups.entry((table, match_.mask)).or_insert_with(|| {
            *next = next.wrapping_add(1);
            Group { number: *next, members: 0 }
        });
        if self.members.insert((group.number, hash, number)) {
            group.members += 1;
        }
    }

    /// Removes the number of a match.
    pub fn remove(&mut self, table: u8, match_: &Match, number: u32) {
        let hash = self.hash(&match_.value);
        let hash_map::Entry::Occupied(mut group) = self.groups.entry((table, match_.mask)) else {
            return;
        };
        if self.members.remove(&(group.get().number, hash, number)) {
            group.get_mut().members -= 1;
        }
        if group.get().members == 0 {
            group.remove();
        }
    }

    /// Calls `visit` with the number of each candidate until `visit` ends the search, and returns how many groups and
    /// numbers were examined. `table`: `None` for all tables.
    pub fn candidates(
        &self,
        table: Option<u8>,
        region: &Match,
        relation: Relation,
        mut visit: impl FnMut(u32) -> bool,
    ) -> u64 {
        let mut examined = 0;
        for ((of, mask), group) in &self.groups {
            examined += 1;
            if table.is_some_and(|table| table != *of) {
                continue;
            }
            let is_within = || is_part(&region.mask, mask);
            if relation == Relation::Within && !is_within() {
                continue;
            }
            let (first, last) = match is_part(mask, &region.mask) {
                // All bits of the group's mask are known.
                true => {
                    let hash = self.hash(&cut(&region.value, mask));
                    (hash, hash)
                }
                false => (0, u32::MAX),
            };
            let first = (group.number, first, 0);
            let last = (group.number, last, u32::MAX);
            for (_, _, number) in self.members.range(first..=last) {
                examined += 1;
                if visit(*number) {
                    return examined;
                }
            }
        }
        examined
    }

    fn hash(&self, value: &Key) -> u32 {
        self.hasher.hash_one(value) as u32
    }
}

/// Whether all bits of one mask are in the other.
fn is_part(mask: &Key, of: &Key) -> bool {
    mask.words.iter().zip(&of.words).all(|(mask, of)| mask & !of == 0)
}

fn cut(value: &Key, mask: &Key) -> Key {
    let mut cut = *value;
    cut.words.iter_mut().zip(&mask.words).for_each(|(word, mask)| *word &= mask);
    cut
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Field;
    use alloc::vec::Vec;

    fn matches() -> Vec<Match> {
        let mut matches = Vec::from([Match::ANY]);
        for n in 0..200u128 {
            let port = Match::exact(Field::InPort, n % 5);
            matches.push(port.with_masked(Field::NwSrc, n << 8, 0xffff_ff00));
            matches.push(port.with(Field::NwSrc, n << 8 | 1));
            matches.push(Match::exact(Field::NwDst, n));
            matches.push(port.with(Field::DlType, n % 7));
        }
        matches
    }

    #[test]
    fn index_candidates_include_all_matches_of_a_linear_scan() {
        let all = matches();
        let mut index = MatchIndex::default();
        for (number, match_) in all.iter().enumerate() {
            index.insert((number % 2) as u8, match_, number as u32);
        }
        for gone in (0..all.len()).step_by(3) {
            index.remove((gone % 2) as u8, &all[gone], gone as u32);
        }
        for region in &all {
            for table in [None, Some(0), Some(1)] {
                for relation in [Relation::Within, Relation::Overlapping] {
                    let is_meant = |number: &usize| {
                        !number.is_multiple_of(3)
                            && table.is_none_or(|table| usize::from(table) == number % 2)
                            && match relation {
                                Relation::Within => region.contains(&all[*number]),
                                Relation::Overlapping => region.overlaps(&all[*number]),
                            }
                    };
                    let expected: Vec<usize> = (0..all.len()).filter(is_meant).collect();
                    let mut found = Vec::new();
                    index.candidates(table, region, relation, |number| {
                        found.push(number as usize);
                        false
                    });
                    found.retain(is_meant);
                    found.sort_unstable();
                    assert_eq!(found, expected, "{region} {table:?} {relation:?}");
                }
            }
        }
    }

    #[test]
    fn a_lookup_with_an_exact_field_examines_few_matches() {
        let mut index = MatchIndex::default();
        for n in 0..10_000 {
            index.insert(0, &Match::exact(Field::NwSrc, u128::from(n)), n);
        }
        for relation in [Relation::Within, Relation::Overlapping] {
            let of = |n| Match::exact(Field::NwSrc, n);
            let examined = [of(7), of(20_000)]
                .map(|region| index.candidates(Some(0), &region, relation, |_| false));
            assert_eq!(examined, [2, 1]);
        }
        // No match of the group lies within a region that is narrower than all matches of the group.
        let narrow = Match::exact(Field::NwSrc, 7).with(Field::InPort, 1);
        assert_eq!(index.candidates(Some(0), &narrow, Relation::Within, |_| false), 1);
        for n in 0..10_000 {
            index.remove(0, &Match::exact(Field::NwSrc, u128::from(n)), n);
        }
        assert_eq!(index.candidates(None, &Match::ANY, Relation::Within, |_| false), 0);
    }
}
