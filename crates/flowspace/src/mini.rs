//! [`MiniMatch`]: a match in little memory, like Open vSwitch's `struct minimatch`.

use alloc::sync::Arc;
use core::fmt;

use crate::field::WORDS;
use crate::{Key, Match};

/// A match that is kept for a long time: only the words of the key of which the match looks at a bit. Most matches look
/// at a few words, and a [`Match`] has room for all. Copies share the words.
#[derive(Clone, PartialEq, Eq)]
pub struct MiniMatch(Arc<[u64]>);

/// The words of a [`MiniMatch`]: a bit for each word of the key that follows, then for each of these words value and
/// mask.
#[derive(Clone, Copy)]
pub struct MiniWords {
    words: [u64; 1 + 2 * WORDS],
    len: usize,
}

impl MiniWords {
    /// The words of a match.
    pub fn of(match_: &Match) -> MiniWords {
        let mut mini = MiniWords { words: [0; 1 + 2 * WORDS], len: 1 };
        for (at, (value, mask)) in match_.value.words.iter().zip(&match_.mask.words).enumerate() {
            if *mask != 0 {
                mini.words[0] |= 1 << at;
                mini.words[mini.len] = *value;
                mini.words[mini.len + 1] = *mask;
                mini.len += 2;
            }
        }
        mini
    }

    /// All of them.
    pub fn as_slice(&self) -> &[u64] {
        &self.words[..self.len]
    }
}

impl MiniMatch {
    /// Keeps a match.
    pub fn new(match_: &Match) -> MiniMatch {
        MiniMatch(MiniWords::of(match_).as_slice().into())
    }

    /// All words; the same for the same match.
    pub fn as_slice(&self) -> &[u64] {
        &self.0
    }

    /// The words, as copies share them.
    pub fn shared(&self) -> &Arc<[u64]> {
        &self.0
    }

    /// The match.
    pub fn to_match(&self) -> Match {
        let mut match_ = Match::ANY;
        for (at, value, mask) in self.words() {
            (match_.value.words[at], match_.mask.words[at]) = (value, mask);
        }
        match_
    }

    /// Whether it is this match.
    pub fn is(&self, match_: &Match) -> bool {
        *self.0 == *MiniWords::of(match_).as_slice()
    }

    /// Whether a packet matches.
    pub fn matches(&self, packet: &Key) -> bool {
        self.words().all(|(at, value, mask)| (packet.words[at] ^ value) & mask == 0)
    }

    /// Whether a packet can match both.
    pub fn overlaps(&self, other: &Match) -> bool {
        self.words().all(|(at, value, mask)| {
            (other.value.words[at] ^ value) & mask & other.mask.words[at] == 0
        })
    }

    /// Whether all packets that match also match the match of these words.
    #[inline]
    pub fn is_within(&self, region: &MiniWords) -> bool {
        let (Some((&own, words)), Some((&of_region, wanted))) =
            (self.0.split_first(), region.as_slice().split_first())
        else {
            return false;
        };
        if of_region & !own != 0 {
            return false;
        }
        let mut left = of_region;
        wanted.chunks_exact(2).all(|wanted| {
            // The words of the key that come before this word.
            let before = (left & left.wrapping_neg()).wrapping_sub(1);
            left &= left.wrapping_sub(1);
            let at = 2 * (own & before).count_ones() as usize;
            match (wanted, words.get(at..at + 2)) {
                (&[value, mask], Some(&[own_value, own_mask])) => {
                    mask & !own_mask == 0 && (value ^ own_value) & mask == 0
                }
                _ => false,
            }
        })
    }

    /// The places of the words in the key, the values and the masks.
    fn words(&self) -> impl Iterator<Item = (usize, u64, u64)> + '_ {
        let mut left = self.0.first().copied().unwrap_or_default();
        self.0.get(1..).unwrap_or_default().chunks_exact(2).map_while(move |pair| {
            let at = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            let &[value, mask] = pair else { return None };
            (at < WORDS).then_some((at, value, mask))
        })
    }
}

impl fmt::Debug for MiniMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_match().fmt(f)
    }
}
