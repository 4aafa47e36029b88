//! "Did you mean …": the nearest word by edit distance.

use alloc::vec::Vec;

/// The candidate nearest to `word`, if it is near enough for a typing error.
pub(super) fn nearest<'a>(
    word: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    // A longer word may have more errors; a word of one or two letters gives no suggestion.
    let limit = (word.len() + 1) / 3;
    candidates
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Edit distance (insert, remove, replace, swap two neighbours) over bytes, without regard to case.
fn distance(a: &str, b: &str) -> usize {
    let fold = |text: &str| -> Vec<u8> { text.bytes().map(|b| b.to_ascii_lowercase()).collect() };
    let (a, b) = (fold(a), fold(b));
    let mut two_above: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(above.len());
        let mut before = i + 1;
        row.push(before);
        for (j, (right, pair)) in b.iter().zip(above.windows(2)).enumerate() {
            let &[diagonal, up] = pair else { break };
            let mut best = (diagonal + usize::from(left != right)).min(up + 1).min(before + 1);
            let swapped =
                i > 0 && j > 0 && a.get(i - 1) == Some(right) && b.get(j - 1) == Some(left);
            if let (true, Some(corner)) = (swapped, two_above.get(j.wrapping_sub(1))) {
                best = best.min(corner + 1);
            }
            before = best;
            row.push(best);
        }
        two_above = core::mem::replace(&mut above, row);
    }
    above.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_distance_counts_changed_and_swapped_letters() {
        for (a, b, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("nw_src", "nw_src", 0),
            ("nw_srx", "nw_src", 1),
            ("nwsrc", "nw_src", 1),
            ("LOCAL", "local", 0),
            ("kitten", "sitting", 3),
            ("nw_scr", "nw_src", 1),
            ("tpc", "tcp", 1),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn words_with_a_large_edit_distance_are_not_suggested() {
        let words = ["nw_src", "nw_dst", "ip"];
        assert_eq!(nearest("nw_scr", words.into_iter()), Some("nw_src"));
        assert_eq!(nearest("metadata", words.into_iter()), None);
        assert_eq!(nearest("x", words.into_iter()), None);
    }
}
