//! Latency histograms in nanoseconds. Recording needs no lock and no allocation. Histograms can be
//! merged.
//!
//! The type wraps HdrHistogram with fixed bounds, so that any two histograms of the same
//! [`Precision`] can be merged.

use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::time::Duration;

/// The smallest recorded difference: 64 ns, below the resolution of a socket.
const LOWEST_NS: u64 = 64;
/// The longest recorded latency: ten minutes. A longer latency counts as ten minutes.
const HIGHEST_NS: u64 = 600_000_000_000;

/// The resolution of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// Three significant digits, with about 200 KB for each histogram.
    Fine,
    /// Two significant digits, with about 27 KB for each histogram, for thousands of tenants.
    Coarse,
}

/// A latency histogram in nanoseconds.
#[derive(Clone, Debug)]
pub struct Histogram(Hdr<u64>);

impl Histogram {
    /// Makes an empty histogram, and allocates all memory that the histogram will need.
    #[must_use]
    pub fn new(precision: Precision) -> Self {
        let digits = match precision {
            Precision::Fine => 3,
            Precision::Coarse => 2,
        };
        match Hdr::new_with_bounds(LOWEST_NS, HIGHEST_NS, digits) {
            Ok(inner) => Self(inner),
            Err(_) => unreachable!("the bounds are constants that HdrHistogram accepts"),
        }
    }

    /// Counts one value. A value above ten minutes counts as ten minutes.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.0.saturating_record(ns);
    }

    /// Adds the values of another histogram, which may have another precision.
    pub fn merge(&mut self, other: &Self) {
        // Both histograms have the same bounds, so the only possible error (out of range) cannot
        // happen.
        let merged = self.0.add(&other.0);
        debug_assert!(merged.is_ok());
    }

    /// The number of counted values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The value below which `percent` (0 to 100) of all values lie, or `None` if there are no
    /// values.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        (!self.0.is_empty()).then(|| self.0.value_at_percentile(percent))
    }

    /// The arithmetic mean in nanoseconds, or `None` if there are no values.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.mean())
    }

    /// The summary for `result.json`.
    #[must_use]
    pub fn summary(&self) -> LatencySummary {
        let at = |percent| self.percentile(percent).unwrap_or(0) as f64 / 1e3;
        let empty = self.0.is_empty();
        LatencySummary {
            count: self.count(),
            min_us: if empty { 0.0 } else { self.0.min() as f64 / 1e3 },
            mean_us: self.mean().unwrap_or(0.0) / 1e3,
            stdev_us: if empty { 0.0 } else { self.0.stdev() / 1e3 },
            p25_us: at(25.0),
            p50_us: at(50.0),
            p75_us: at(75.0),
            p90_us: at(90.0),
            p99_us: at(99.0),
            p999_us: at(99.9),
            max_us: if empty { 0.0 } else { self.0.max() as f64 / 1e3 },
            cdf: self.cdf(),
        }
    }

    /// The cumulative distribution as (value in µs, share at or below the value). A million values
    /// give about two hundred points, which are denser towards the tail.
    fn cdf(&self) -> Vec<(f64, f64)> {
        if self.0.is_empty() {
            return Vec::new();
        }
        self.0
            .iter_quantiles(10)
            .map(|step| (step.value_iterated_to() as f64 / 1e3, step.quantile()))
            .collect()
    }
}

/// Writes named histograms as one HdrHistogram interval log (V2, compressed), which every
/// HdrHistogram tool reads. The name is the tag of the line, so commas and spaces in the name
/// become `_`.
///
/// # Errors
/// The error of `out`, as [`io::Error`].
pub fn write_log<'a>(
    out: &mut impl Write,
    histograms: impl IntoIterator<Item = (&'a str, &'a Histogram)>,
    window: Duration,
) -> io::Result<()> {
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("weir latency histograms in nanoseconds, one line per tag")
        .with_max_value_divisor(1e3)
        .begin_log_with(out, &mut serializer)?;
    for (name, histogram) in histograms {
        let name: String =
            name.chars().map(|c| if c == ',' || c.is_whitespace() { '_' } else { c }).collect();
        log.write_histogram(&histogram.0, Duration::ZERO, window, Tag::new(&name))
            .map_err(|error| io::Error::other(format!("{error:?}")))?;
    }
    Ok(())
}

/// The figures of a latency distribution, in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// The number of values. Without values all other figures are 0.
    pub count: u64,
    /// The smallest value.
    pub min_us: f64,
    /// The arithmetic mean.
    pub mean_us: f64,
    /// The standard deviation.
    pub stdev_us: f64,
    /// The lower quartile.
    pub p25_us: f64,
    /// The median.
    pub p50_us: f64,
    /// The upper quartile.
    pub p75_us: f64,
    /// The 90th percentile.
    pub p90_us: f64,
    /// The 99th percentile.
    pub p99_us: f64,
    /// The 99.9th percentile.
    pub p999_us: f64,
    /// The largest value.
    pub max_us: f64,
    /// The cumulative distribution as (value in µs, share at or below the value), in rising order.
    pub cdf: Vec<(f64, f64)>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    fn filled(values: impl IntoIterator<Item = u64>, precision: Precision) -> Histogram {
        let mut histogram = Histogram::new(precision);
        values.into_iter().for_each(|value| histogram.record(value));
        histogram
    }

    #[test]
    fn percentiles_of_a_known_distribution() {
        let histogram = filled((1..=1000).map(|us| us * 1000), Precision::Fine);
        let summary = histogram.summary();
        assert_eq!(summary.count, 1000);
        for (got, want) in [
            (summary.p50_us, 500.0),
            (summary.p90_us, 900.0),
            (summary.p99_us, 990.0),
            (summary.p999_us, 999.0),
            (summary.max_us, 1000.0),
        ] {
            assert!((got - want).abs() / want < 0.002, "{got} is not {want}");
        }
        assert!(summary.cdf.windows(2).all(|w| w[0].0 <= w[1].0 && w[0].1 <= w[1].1));
        assert!(summary.cdf.len() < 150, "{} points", summary.cdf.len());
    }

    #[test]
    fn an_empty_histogram_has_no_percentile() {
        let histogram = Histogram::new(Precision::Coarse);
        assert_eq!(histogram.percentile(50.0), None);
        assert_eq!(histogram.summary(), LatencySummary::default());
    }

    #[test]
    fn histograms_of_coarse_and_fine_precision_are_merged() {
        let mut total = filled([1_000_000, 2_000_000], Precision::Fine);
        total.merge(&filled([3_000_000], Precision::Coarse));
        assert_eq!(total.count(), 3);
    }

    #[test]
    fn values_above_ten_minutes_are_recorded_as_ten_minutes() {
        let histogram = filled([u64::MAX], Precision::Fine);
        assert_eq!(histogram.count(), 1);
        assert!(histogram.percentile(100.0).is_some_and(|max| max >= HIGHEST_NS));
    }

    #[test]
    fn a_written_histogram_log_is_read_back_with_tags_and_counts() {
        let (red, blue) =
            (filled([5_000; 7], Precision::Fine), filled([9_000; 3], Precision::Coarse));
        let mut file = Vec::new();
        write_log(&mut file, [("red 1", &red), ("blue", &blue)], Duration::from_secs(20)).unwrap();
        let mut seen = Vec::new();
        for entry in IntervalLogIterator::new(&file) {
            if let LogEntry::Interval(line) = entry.unwrap() {
                let bytes = base64_decode(line.encoded_histogram());
                let read: Hdr<u64> =
                    Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
                seen.push((line.tag().unwrap().as_str().to_owned(), read.len()));
            }
        }
        assert_eq!(seen, [("red_1".to_owned(), 7), ("blue".to_owned(), 3)]);
    }

    fn base64_decode(text: &str) -> Vec<u8> {
        let value = |c: u8| match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            _ => 63,
        };
        let symbols: Vec<u8> = text.bytes().filter(|&c| c != b'=').map(value).collect();
        let mut out = Vec::new();
        for chunk in symbols.chunks(4) {
            let word =
                chunk.iter().enumerate().fold(0u32, |w, (i, &v)| w | u32::from(v) << (18 - 6 * i));
            out.extend_from_slice(&word.to_be_bytes()[1..chunk.len()]);
        }
        out
    }
}
