//! Estimates totals from samples.
//!
//! With every packet sampled independently at rate s, c sampled packets stand for c/s packets, with a standard error of
//! √(c·(1 − s))/s (binomial sampling; *Packet Sampling Basics*, P. Phaal and S. Panchen, gives the same as ±196·√(1/c)
//! % for small s).

/// An estimate with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// The estimated total.
    pub total: f64,
    /// Half the width of its 95 % confidence interval.
    pub half95: f64,
}

/// Adds up samples that may come at different rates.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    samples: u64,
    total: f64,
    variance: f64,
}

/// Normal quantile of 97.5 %.
const Z975: f64 = 1.959_963_984_540_054;

impl Tally {
    /// Adds a sample that stands for `one_in` units: it was sampled at the rate 1/`one_in`, with `one_in` at least 1.
    /// For packets `size` is 1, for bytes `size` is the frame's length.
    ///
    /// The Horvitz and Thompson estimator: each sample adds size/s to the total, and size²·(1 − s)/s² to its variance.
    pub fn add(&mut self, size: f64, one_in: f64) {
        let one_in = one_in.max(1.0);
        self.samples += 1;
        self.total += size * one_in;
        self.variance += size * size * one_in * (one_in - 1.0);
    }

    /// Adds another tally.
    pub fn merge(&mut self, other: &Tally) {
        self.samples += other.samples;
        self.total += other.total;
        self.variance += other.variance;
    }

    /// How many samples were added.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The estimate.
    #[must_use]
    pub fn estimate(&self) -> Estimate {
        Estimate { total: self.total, half95: Z975 * self.variance.sqrt() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_from_every_packet_is_exact() {
        let mut tally = Tally::default();
        (0..1000).for_each(|_| tally.add(1.0, 1.0));
        assert_eq!(tally.estimate(), Estimate { total: 1000.0, half95: 0.0 });
    }

    /// The interval covers the true value in about 95 of 100 cases.
    #[test]
    fn the_95_percent_interval_covers_the_true_value_in_95_percent_of_runs() {
        let mut random = fastrand::Rng::with_seed(1);
        let (runs, packets, rate) = (1000, 2000, 0.1);
        let covered = (0..runs)
            .filter(|_| {
                let mut tally = Tally::default();
                (0..packets)
                    .filter(|_| random.f64() < rate)
                    .for_each(|_| tally.add(1.0, 1.0 / rate));
                let estimate = tally.estimate();
                (estimate.total - f64::from(packets)).abs() <= estimate.half95
            })
            .count();
        assert!((920..=980).contains(&covered), "{covered} of {runs}");
    }
}
