//! Counter, gauge and histogram for one writer and many readers.
//!
//! The instruments deliberately use no atomic read-modify-write: `lock add` costs some 5 ns, a relaxed load and store
//! cost 1 ns, and a message passes several instruments. Each type states the restriction: with a second concurrent
//! writer counts are lost, but never corrupted. [`SharedCounter`] is for the few places with several writers.

use std::array;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A number that only grows. One writer.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds one.
    #[inline]
    pub fn increment(&self) {
        self.add(1);
    }

    /// Adds `amount`.
    #[inline]
    pub fn add(&self, amount: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(amount), Relaxed);
    }

    /// Sets the value, for a writer that keeps the count elsewhere and publishes it regularly.
    pub fn publish(&self, total: u64) {
        self.0.store(total, Relaxed);
    }

    /// The present value.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A counter that several threads may increment.
#[derive(Debug, Default)]
pub struct SharedCounter(AtomicU64);

impl SharedCounter {
    /// Adds one.
    pub fn increment(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    /// Adds `amount`.
    pub fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Relaxed);
    }

    /// The present value.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A number that rises and falls. One writer.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU64);

impl Gauge {
    /// Sets the value.
    #[inline]
    pub fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    /// The present value.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Durations in log-linear buckets: four per octave from 256 ns to 8.6 s, so that a bucket is at most 25 % wide.
/// One writer.
#[derive(Debug)]
pub struct Histogram {
    buckets: [Counter; BUCKETS],
    sum_nanos: Counter,
}

/// Buckets per octave.
const SUB: u64 = 4;
/// The first bucket's width in nanoseconds.
const UNIT: u64 = 256;
/// Octaves above the first four buckets.
const OCTAVES: u32 = 23;
/// The number of buckets: the first four of equal width, the octaves, and one bucket for longer durations.
const BUCKETS: usize = SUB as usize * (1 + OCTAVES as usize) + 1;

impl Default for Histogram {
    fn default() -> Self {
        Histogram { buckets: array::from_fn(|_| Counter::default()), sum_nanos: Counter::default() }
    }
}

impl Histogram {
    /// Counts one duration.
    #[inline]
    pub fn observe(&self, nanos: u64) {
        if let Some(bucket) = self.buckets.get(index(nanos)) {
            bucket.increment();
        }
        self.sum_nanos.add(nanos);
    }

    /// Copies a histogram that is kept elsewhere in octaves: `octaves[i]` durations below `1024 << i` ns, and longer
    /// durations in the last element. Finer quantiles are lost: each octave counts as its upper bound.
    pub fn publish(&self, octaves: &[u64], sum_nanos: u64) {
        let (last, within) = octaves.split_last().unwrap_or((&0, &[]));
        for (octave, &count) in within.iter().enumerate() {
            if let Some(bucket) = self.buckets.get((octave + 1) * SUB as usize - 1) {
                bucket.publish(count);
            }
        }
        if let Some(overflow) = self.buckets.last() {
            overflow.publish(*last);
        }
        self.sum_nanos.publish(sum_nanos);
    }

    /// A consistent copy: the counts of `Snapshot` always add up, also while a writer is active.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            buckets: array::from_fn(|i| self.buckets[i].get()),
            sum_nanos: self.sum_nanos.get(),
        }
    }
}

/// The contents of a [`Histogram`] at one time.
#[derive(Clone, Debug)]
pub struct Snapshot {
    buckets: [u64; BUCKETS],
    /// Sum of all durations, in nanoseconds.
    pub sum_nanos: u64,
}

impl Snapshot {
    /// Adds the counts of another histogram.
    pub fn add(&mut self, other: &Snapshot) {
        self.buckets.iter_mut().zip(other.buckets).for_each(|(sum, count)| *sum += count);
        self.sum_nanos += other.sum_nanos;
    }

    /// The counts since an earlier snapshot. Counts that have become smaller have started again.
    pub fn since(&self, earlier: &Snapshot) -> Snapshot {
        let mut since = self.clone();
        if self.buckets.iter().zip(earlier.buckets).all(|(now, then)| *now >= then) {
            since.buckets.iter_mut().zip(earlier.buckets).for_each(|(now, then)| *now -= then);
            since.sum_nanos = self.sum_nanos.wrapping_sub(earlier.sum_nanos);
        }
        since
    }

    /// The number of counted durations.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Octave bounds in nanoseconds (1,024 ns, 2,048 ns, … 8.6 s) with the number of durations at most as long.
    ///
    /// These bounds are coarser than the buckets: 24 lines per histogram in `/metrics` instead of 97.
    pub fn octaves(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut total = 0;
        (0..=OCTAVES).map(move |octave| {
            let start = octave as usize * SUB as usize;
            total += self.buckets[start..start + SUB as usize].iter().sum::<u64>();
            ((UNIT * SUB) << octave, total)
        })
    }

    /// Upper bound, in nanoseconds, of the bucket in which the quantile `q` (0 to 1) lies; `None` when empty. Longer
    /// durations than the last bound are reported as the last bound.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let count = self.count();
        let rank = ((q.clamp(0.0, 1.0) * count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        self.buckets
            .iter()
            .position(|bucket| {
                seen += bucket;
                seen >= rank
            })
            .map(upper_bound)
    }
}

/// The bucket for a duration. Upper bounds are inclusive, as required by `le` of Prometheus.
#[inline]
fn index(nanos: u64) -> usize {
    let quarters = nanos.saturating_sub(1) / UNIT;
    if quarters < SUB {
        return quarters as usize;
    }
    let octave = quarters.ilog2() - SUB.ilog2();
    if octave >= OCTAVES {
        return BUCKETS - 1;
    }
    (u64::from(octave) * SUB + (quarters >> octave)) as usize
}

/// The longest duration, in nanoseconds, of a bucket.
fn upper_bound(index: usize) -> u64 {
    let index = index.min(BUCKETS - 2) as u64;
    if index < SUB {
        return (index + 1) * UNIT;
    }
    let octave = index / SUB - 1;
    ((SUB + index % SUB + 1) << octave) * UNIT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upper_bound_of_a_histogram_bucket_is_the_last_value_in_the_bucket() {
        for i in 0..BUCKETS - 1 {
            assert_eq!(index(upper_bound(i)), i, "bucket {i}: its own bound");
            assert_eq!(index(upper_bound(i) + 1), i + 1, "bucket {i}: one more");
        }
        assert_eq!(index(0), 0);
        assert_eq!(index(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn histogram_buckets_after_the_fourth_are_at_most_25_percent_wide() {
        for i in SUB as usize..BUCKETS - 1 {
            let (low, high) = (upper_bound(i - 1), upper_bound(i));
            assert!((high - low) * 4 <= low, "bucket {i}: {low}..{high}");
        }
    }

    #[test]
    fn octave_totals_of_a_histogram_snapshot_are_cumulative() {
        let histogram = Histogram::default();
        let values =
            [1, 900, 1_024, 1_025, 2_048, 50_000, 1_024 << 23, (1_024 << 23) + 1, u64::MAX / 2];
        values.iter().for_each(|&nanos| histogram.observe(nanos));
        let snapshot = histogram.snapshot();
        assert_eq!(snapshot.count(), values.len() as u64);
        for (bound, total) in snapshot.octaves() {
            let expected = values.iter().filter(|&&nanos| nanos <= bound).count() as u64;
            assert_eq!(total, expected, "le {bound} ns");
        }
        assert_eq!(snapshot.octaves().last(), Some((1_024 << 23, 7)));
    }

    #[test]
    fn a_difference_of_snapshots_has_only_the_later_observations() {
        let histogram = Histogram::default();
        (0..1000).for_each(|_| histogram.observe(1_000));
        let before = histogram.snapshot();
        assert_eq!(before.since(&before).quantile(0.5), None);
        histogram.observe(1_000_000);
        let since = histogram.snapshot().since(&before);
        assert_eq!((since.count(), since.sum_nanos), (1, 1_000_000));
        // The metrics of a tenant that is configured again begin at zero, so the difference is empty.
        assert_eq!(Histogram::default().snapshot().since(&before).count(), 0);
    }

    #[test]
    fn published_octave_counts_are_kept_in_the_histogram() {
        let histogram = Histogram::default();
        histogram.publish(&[5, 0, 7, 2], 1_000_000);
        let snapshot = histogram.snapshot();
        assert_eq!(
            snapshot.octaves().take(4).map(|(_, total)| total).collect::<Vec<_>>(),
            [5, 5, 12, 12]
        );
        assert_eq!((snapshot.count(), snapshot.sum_nanos), (14, 1_000_000));
        assert_eq!(snapshot.quantile(0.5), Some(4_096));
    }

    #[test]
    fn a_quantile_is_at_most_25_percent_above_the_exact_value() {
        let histogram = Histogram::default();
        assert_eq!(histogram.snapshot().quantile(0.5), None);
        (1..=100).for_each(|micros| histogram.observe(micros * 1_000));
        let snapshot = histogram.snapshot();
        for (q, exact) in [(0.0, 1_000), (0.5, 50_000), (0.9, 90_000), (1.0, 100_000)] {
            let bound = snapshot.quantile(q).unwrap();
            assert!(bound >= exact && bound <= exact * 5 / 4, "q {q}: {bound} for {exact}");
        }
    }
}
