//! A plan as disjoint ranges of a random number. The ranges enforce "each packet at most once" (assumption A3).
//!
//! A server draws one uniform 32-bit number per packet. The number lies in at most one of the plan's ranges, and this
//! range names the one server that processes the packet. Servers need no coordination and no deduplication.

use crate::error::{Error, Result};
use crate::plan::Plan;

/// Packets with a number from `start` to `start` + `width` − 1 go to `processor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The server that processes the packet.
    pub processor: usize,
    /// The first number.
    pub start: u64,
    /// How many numbers; start + width is at most 2³².
    pub width: u64,
}

/// How many numbers there are.
pub const NUMBERS: u64 = 1 << 32;

impl Range {
    /// The share of packets in this range.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.width as f64 / NUMBERS as f64
    }

    /// Whether a number lies in this range.
    #[must_use]
    pub fn contains(&self, number: u32) -> bool {
        u64::from(number).checked_sub(self.start).is_some_and(|offset| offset < self.width)
    }
}

/// The ranges of one server, one after the other from 0: (processor, share) in the given order.
///
/// # Errors
/// [`Error::Input`] when shares are negative, not finite, or sum to more than 1 (beyond rounding).
pub fn ranges(shares: &[(usize, f64)]) -> Result<Vec<Range>> {
    let mut sum = 0.0;
    let mut start = 0;
    let mut ranges = Vec::with_capacity(shares.len());
    for &(processor, share) in shares {
        if !(0.0..=1.0 + 1e-9).contains(&share) {
            return Err(Error::input("sampling rate", format!("{share} is not within 0 to 1")));
        }
        sum += share;
        if sum > 1.0 + 1e-9 {
            return Err(Error::input("sampling rates", format!("they sum to {sum}, more than 1")));
        }
        // The ends of ranges are rounded, not the widths. So rounding errors do not add up, and the last end is exact.
        let end = ((sum.min(1.0) * NUMBERS as f64).round() as u64).min(NUMBERS);
        if end > start {
            ranges.push(Range { processor, start, width: end - start });
        }
        start = start.max(end);
    }
    Ok(ranges)
}

/// The ranges of the server `origin` under a plan without tenants' own rates.
///
/// # Errors
/// As [`ranges`].
pub fn of_server(plan: &Plan, origin: usize) -> Result<Vec<Range>> {
    let own = plan.flows.iter().filter(|flow| flow.origin == origin);
    let shares: Vec<(usize, f64)> = own.map(|flow| (flow.processor, flow.rate)).collect();
    ranges(&shares)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// No number leads to two servers, and every server gets its share.
        #[test]
        fn ranges_are_disjoint_and_have_the_given_shares(weights in prop::collection::vec(0.0..1.0_f64, 1..20), fill in 0.0..=1.0_f64, number: u32) {
            let sum: f64 = weights.iter().sum::<f64>().max(1e-9);
            let shares: Vec<(usize, f64)> =
                weights.iter().map(|weight| weight / sum * fill).enumerate().collect();
            let ranges = ranges(&shares).unwrap();
            prop_assert!(ranges.iter().filter(|range| range.contains(number)).count() <= 1);
            prop_assert!(ranges.windows(2).all(|pair| pair[0].start + pair[0].width == pair[1].start));
            prop_assert!(ranges.last().is_none_or(|last| last.start + last.width <= NUMBERS));
            for range in &ranges {
                let share = shares[range.processor].1;
                prop_assert!((range.share() - share).abs() <= 1.0 / NUMBERS as f64 + 1e-12);
            }
        }
    }

    #[test]
    fn a_full_share_covers_every_number_and_invalid_shares_are_refused() {
        let all = ranges(&[(3, 1.0)]).unwrap();
        assert_eq!(all, [Range { processor: 3, start: 0, width: NUMBERS }]);
        assert!(all[0].contains(0) && all[0].contains(u32::MAX));
        assert!(ranges(&[(0, 0.0)]).unwrap().is_empty());
        assert!(ranges(&[(0, 0.6), (1, 0.6)]).is_err());
        assert!(ranges(&[(0, f64::NAN)]).is_err());
        assert!(ranges(&[(0, -0.1)]).is_err());
    }
}
