//! Searches the highest rate without loss: doubles the rate until there is loss, then halves the
//! interval.

/// A search in progress.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Search {
    /// The highest rate without loss.
    passed: Option<f64>,
    /// The lowest rate with loss.
    failed: Option<f64>,
    rate: f64,
    most: f64,
}

/// The interval at which the search ends, as a share of the rate.
const FINE: f64 = 0.05;
/// The lowest rate of a search.
const LEAST: f64 = 1.0;

impl Search {
    pub(crate) fn new(first: f64, most: f64) -> Search {
        Search { passed: None, failed: None, rate: first.min(most), most }
    }

    /// The rate to try now.
    pub(crate) fn rate(&self) -> f64 {
        self.rate
    }

    /// Notes the result of the present rate. Returns whether there is another rate to try.
    pub(crate) fn note(&mut self, is_loss_free: bool) -> bool {
        if is_loss_free {
            self.passed = Some(self.rate);
        } else {
            self.failed = Some(self.rate);
        }
        self.rate = match (self.passed, self.failed) {
            (Some(passed), None) if passed >= self.most => return false,
            (Some(passed), None) => (2.0 * passed).min(self.most),
            (None, Some(failed)) => failed / 2.0,
            (Some(passed), Some(failed)) => f64::midpoint(passed, failed),
            (None, None) => return false,
        };
        let gap = self.passed.zip(self.failed).map(|(passed, failed)| (failed - passed) / failed);
        self.rate >= LEAST && gap.is_none_or(|gap| gap > FINE)
    }

    /// The highest rate without loss.
    pub(crate) fn highest(&self) -> Option<f64> {
        self.passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_finds_the_rate_limit_within_ten_percent() {
        for limit in [0.3, 7.0, 1_000.0, 77_777.0, 1e9] {
            let mut search = Search::new(1_000.0, 100_000.0);
            let mut trials = 1;
            while search.note(search.rate() <= limit) {
                trials += 1;
            }
            let found = search.highest().unwrap_or(0.0);
            let expected: f64 = if limit < 1.0 { 0.0 } else { f64::min(limit, 100_000.0) };
            assert!(found <= expected && found >= expected * 0.9, "{limit}: {found}");
            assert!(trials < 30, "{limit}: {trials}");
        }
    }
}
