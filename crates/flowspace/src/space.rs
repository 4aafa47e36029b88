//! Questions about unions of matches: is a region covered, and does one owner win all of it.

use alloc::vec;
use alloc::vec::Vec;

use crate::Match;

/// Whether every packet of `region` is in one of `parts`.
///
/// The work is bounded: when what is not yet covered falls into more than `piece_limit` pieces, the
/// answer is false, which is the safe one for "may the tenant have this".
pub fn covered_by<'a>(
    region: &Match,
    parts: impl IntoIterator<Item = &'a Match>,
    piece_limit: usize,
) -> bool {
    let mut residual = vec![*region];
    for part in parts {
        if residual.is_empty() {
            break;
        }
        if !remove(&mut residual, part, piece_limit) {
            return false;
        }
    }
    residual.is_empty()
}

/// Whether `owner` wins every packet of `region`, given all owners' entries in decreasing rank.
///
/// Of the entries that match a packet, the first wins it; a packet that no entry matches is won by
/// nobody. The answer is exact unless more than `piece_limit` pieces of the region would have to be
/// kept, and then it is false.
pub fn wins_everywhere<'a, T: PartialEq + 'a>(
    region: &Match,
    ranked: impl Iterator<Item = (&'a Match, &'a T)>,
    owner: &T,
    piece_limit: usize,
) -> bool {
    let mut residual = vec![*region];
    for (entry, entry_owner) in ranked {
        if residual.is_empty() {
            return true;
        }
        if entry_owner != owner {
            if residual.iter().any(|piece| piece.overlaps(entry)) {
                return false;
            }
        } else if !remove(&mut residual, entry, piece_limit) {
            return false;
        }
    }
    residual.is_empty()
}

/// Subtracts `part` from each piece; false if more than `limit` pieces are left.
fn remove(residual: &mut Vec<Match>, part: &Match, limit: usize) -> bool {
    // Pieces that the part does not touch stay where they are; only the touched ones are split.
    let mut index = 0;
    let mut split = Vec::new();
    while let Some(piece) = residual.get(index) {
        if !piece.overlaps(part) {
            index += 1;
            continue;
        }
        let piece = residual.swap_remove(index);
        for rest in piece.subtract(part) {
            split.push(rest);
            if residual.len() + split.len() > limit {
                return false;
            }
        }
    }
    residual.append(&mut split);
    residual.len() <= limit
}
