//! Questions about unions of matches: whether a region is covered, and whether one owner wins the
//! whole region.

use alloc::vec;
use alloc::vec::Vec;

use crate::Match;

/// Whether every packet of `region` is in one of `parts`.
///
/// The work is bounded: if the uncovered rest has more than `piece_limit` parts, the answer is
/// false, which is the safe answer for "may the tenant have these packets".
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
/// nobody. The answer is exact unless the region splits into more than `piece_limit` parts; then
/// the answer is false.
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

/// Subtracts `part` from each element of `residual`; false if more than `limit` elements are left.
fn remove(residual: &mut Vec<Match>, part: &Match, limit: usize) -> bool {
    // Elements that `part` does not overlap stay in place; only the overlapped elements are split.
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
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Field;

    /// Taking one address out of everything leaves a piece per bit.
    #[test]
    fn cover_checks_fail_when_the_pieces_exceed_the_limit() {
        let address = Match::exact(Field::DlDst, 0x0102_0304_0506);
        let parts = [address, Match::ANY];
        assert!(covered_by(&Match::ANY, &parts, 48));
        assert!(!covered_by(&Match::ANY, &parts, 47));
        let ranked = || parts.iter().map(|part| (part, &'a'));
        assert!(wins_everywhere(&Match::ANY, ranked(), &'a', 48));
        assert!(!wins_everywhere(&Match::ANY, ranked(), &'a', 47));
    }

    #[test]
    fn an_owner_does_not_win_a_region_that_the_entries_do_not_cover() {
        let region = Match::exact(Field::DlType, 0x800);
        let tcp = region.with(Field::NwProto, 6);
        assert!(!wins_everywhere(&region, [(&tcp, &1)].into_iter(), &1, 100));
        assert!(!wins_everywhere(&region, core::iter::empty(), &1, 100));
        assert!(wins_everywhere(&tcp, [(&region, &1)].into_iter(), &1, 100));
        // A lower-ranking entry of another owner has no effect; a higher-ranking entry has.
        let theirs = tcp.with(Field::TpDst, 80);
        assert!(wins_everywhere(&tcp, [(&tcp, &1), (&theirs, &2)].into_iter(), &1, 100));
        assert!(!wins_everywhere(&tcp, [(&theirs, &2), (&tcp, &1)].into_iter(), &1, 100));
    }
}
