//! α and β from measured throughput: the law T(s) = T(0) / (1 + α·s) fitted by least squares (section III-C).
//!
//! For mirroring the same law holds with β in the place of α; [`Fit::cost`] is the measured cost of the two.

use crate::error::{Error, Result};
use serde::Serialize;

/// One measurement: throughput at a sampling rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// s: the share of packets that were sampled, 0 to 1.
    pub rate: f64,
    /// T(s), in any unit; above 0.
    pub throughput: f64,
}

/// A fitted law.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// T(0), in the samples' unit.
    pub baseline: f64,
    /// α or β.
    pub cost: f64,
    /// The standard error of [`Fit::cost`].
    pub cost_error: f64,
    /// Degrees of freedom behind the standard error: samples − 2. A confidence interval is the estimate ± Student's t of
    /// that many times its standard error.
    pub freedom: usize,
    /// R² over the mean throughput at each rate, as in the paper (figure 2b).
    pub r_squared: f64,
    /// R² over all samples: lower, because repetitions differ, and no law of s explains that.
    pub r_squared_of_samples: f64,
}

/// Fits the law by Gauss and Newton's method, starting from the line 1/T = 1/T(0) + (α/T(0))·s.
///
/// # Errors
/// [`Error::Fit`] with fewer than three samples or two different rates, or with samples that are not measurements.
pub fn fit(samples: &[Sample]) -> Result<Fit> {
    check(samples)?;
    let (mut baseline, mut cost) = by_line(samples);
    for _ in 0..100 {
        let step = step(samples, baseline, cost)?;
        // Halves the step until the fit improves; near the optimum the whole step improves the fit.
        let before = residual(samples, baseline, cost);
        let mut share = 1.0;
        while share > 1e-6 {
            let (next_baseline, next_cost) = (baseline + share * step.0, cost + share * step.1);
            let possible = next_baseline > 0.0 && next_cost > -1.0;
            if possible && residual(samples, next_baseline, next_cost) <= before {
                (baseline, cost) = (next_baseline, next_cost);
                break;
            }
            share /= 2.0;
        }
        let settled =
            step.0.abs() <= 1e-13 * baseline && step.1.abs() <= 1e-13 * (1.0 + cost.abs());
        if share <= 1e-6 || settled {
            break;
        }
    }
    judge(samples, baseline, cost)
}

fn check(samples: &[Sample]) -> Result<()> {
    for (index, sample) in samples.iter().enumerate() {
        if !(0.0..=1.0).contains(&sample.rate) {
            return Err(Error::Fit(format!(
                "sample {}: rate {} is not within 0 to 1",
                index + 1,
                sample.rate
            )));
        }
        if !(sample.throughput > 0.0 && sample.throughput.is_finite()) {
            return Err(Error::Fit(format!(
                "sample {}: throughput {} is not above 0",
                index + 1,
                sample.throughput
            )));
        }
    }
    let rates = distinct(samples);
    if samples.len() < 3 || rates.len() < 2 {
        return Err(Error::Fit(format!(
            "{} samples at {} rates; at least 3 at 2 are needed",
            samples.len(),
            rates.len()
        )));
    }
    Ok(())
}

fn distinct(samples: &[Sample]) -> Vec<f64> {
    let mut rates: Vec<f64> = samples.iter().map(|sample| sample.rate).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    rates
}

/// T(0) and α from a straight line through 1/T.
fn by_line(samples: &[Sample]) -> (f64, f64) {
    let count = samples.len() as f64;
    let x = samples.iter().map(|sample| sample.rate).sum::<f64>() / count;
    let y = samples.iter().map(|sample| 1.0 / sample.throughput).sum::<f64>() / count;
    let xx: f64 = samples.iter().map(|sample| (sample.rate - x).powi(2)).sum();
    let xy: f64 =
        samples.iter().map(|sample| (sample.rate - x) * (1.0 / sample.throughput - y)).sum();
    let slope = xy / xx;
    let start = y - slope * x;
    if start > 0.0 {
        (1.0 / start, (slope / start).max(-0.99))
    } else {
        (samples.iter().map(|sample| sample.throughput).fold(0.0, f64::max), 0.0)
    }
}

/// dT/dT(0) and dT/dα at a rate.
fn slopes(rate: f64, baseline: f64, cost: f64) -> (f64, f64) {
    let divisor = 1.0 + cost * rate;
    (1.0 / divisor, -baseline * rate / (divisor * divisor))
}

/// The normal equations: JᵀJ as (aa, ab, bb), and its determinant.
fn normal(samples: &[Sample], baseline: f64, cost: f64) -> Result<((f64, f64, f64), f64)> {
    let sums = samples.iter().fold((0.0, 0.0, 0.0), |(aa, ab, bb), sample| {
        let (a, b) = slopes(sample.rate, baseline, cost);
        (aa + a * a, ab + a * b, bb + b * b)
    });
    let (aa, ab, bb) = sums;
    let determinant = aa * bb - ab * ab;
    if determinant > 0.0 {
        Ok((sums, determinant))
    } else {
        Err(Error::Fit("the rates are too close to each other".to_owned()))
    }
}

fn step(samples: &[Sample], baseline: f64, cost: f64) -> Result<(f64, f64)> {
    let ((aa, ab, bb), determinant) = normal(samples, baseline, cost)?;
    let (mut ar, mut br) = (0.0, 0.0);
    for sample in samples {
        let (a, b) = slopes(sample.rate, baseline, cost);
        let residual = sample.throughput - baseline / (1.0 + cost * sample.rate);
        ar += a * residual;
        br += b * residual;
    }
    Ok(((bb * ar - ab * br) / determinant, (aa * br - ab * ar) / determinant))
}

fn residual(samples: &[Sample], baseline: f64, cost: f64) -> f64 {
    samples
        .iter()
        .map(|sample| (sample.throughput - baseline / (1.0 + cost * sample.rate)).powi(2))
        .sum()
}

fn judge(samples: &[Sample], baseline: f64, cost: f64) -> Result<Fit> {
    let freedom = samples.len() - 2;
    let variance = residual(samples, baseline, cost) / freedom as f64;
    let ((aa, ..), determinant) = normal(samples, baseline, cost)?;
    Ok(Fit {
        baseline,
        cost,
        cost_error: (variance * aa / determinant).sqrt(),
        freedom,
        r_squared: r_squared(&means(samples), baseline, cost),
        r_squared_of_samples: r_squared(samples, baseline, cost),
    })
}

/// The mean throughput at each rate.
fn means(samples: &[Sample]) -> Vec<Sample> {
    let mean = |rate: f64| {
        let at: Vec<f64> =
            samples.iter().filter(|one| one.rate == rate).map(|one| one.throughput).collect();
        Sample { rate, throughput: at.iter().sum::<f64>() / at.len() as f64 }
    };
    distinct(samples).into_iter().map(mean).collect()
}

fn r_squared(samples: &[Sample], baseline: f64, cost: f64) -> f64 {
    let mean = samples.iter().map(|one| one.throughput).sum::<f64>() / samples.len() as f64;
    let spread: f64 = samples.iter().map(|one| (one.throughput - mean).powi(2)).sum();
    let missed = residual(samples, baseline, cost);
    if spread > 0.0 {
        1.0 - missed / spread
    } else if missed > 0.0 {
        0.0
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law(baseline: f64, cost: f64, noise: &[f64]) -> Vec<Sample> {
        let rates = (0..=10).map(|step| f64::from(step) / 10.0);
        let sample = |(rate, noise): (f64, &f64)| Sample {
            rate,
            throughput: baseline / (1.0 + cost * rate) + noise,
        };
        rates.zip(noise.iter().cycle()).map(sample).collect()
    }

    #[test]
    fn a_fit_to_exact_data_finds_the_exact_parameters() {
        for (baseline, cost) in [(20.4, 1.54), (20.4, 0.46), (3e9, 0.0), (1.0, 25.0), (5.0, -0.2)] {
            let fit = fit(&law(baseline, cost, &[0.0])).unwrap();
            assert!((fit.baseline / baseline - 1.0).abs() < 1e-9, "{fit:?}");
            assert!((fit.cost - cost).abs() < 1e-9 * (1.0 + cost), "{fit:?}");
            assert!(cost == 0.0 || fit.r_squared > 1.0 - 1e-12, "{fit:?}");
        }
    }

    #[test]
    fn a_fit_to_noisy_data_reports_its_error() {
        let fit = fit(&law(20.0, 1.5, &[0.3, -0.3, 0.1])).unwrap();
        assert!((fit.cost - 1.5).abs() < 3.0 * fit.cost_error, "{fit:?}");
        assert!(fit.cost_error > 0.01 && fit.r_squared > 0.98 && fit.r_squared < 0.9999, "{fit:?}");
        assert_eq!(fit.freedom, 9);
    }

    /// No other law nearby fits better: the fit has the least squares in T, not in 1/T.
    #[test]
    fn the_fit_has_the_least_squares_of_throughput() {
        let samples = law(20.0, 1.5, &[0.9, -1.1, 0.4, 0.0]);
        let fit = fit(&samples).unwrap();
        let least = residual(&samples, fit.baseline, fit.cost);
        for (a, b) in [(1e-4, 0.0), (-1e-4, 0.0), (0.0, 1e-4), (0.0, -1e-4), (1e-4, 1e-4)] {
            assert!(residual(&samples, fit.baseline + a, fit.cost + b) > least);
        }
    }

    #[test]
    fn invalid_measurements_are_refused_and_named() {
        let sample = |rate, throughput| Sample { rate, throughput };
        for (samples, expected) in [
            (vec![], "0 samples at 0 rates"),
            (vec![sample(0.0, 1.0); 5], "5 samples at 1 rates"),
            (vec![sample(0.0, 1.0), sample(1.1, 1.0)], "sample 2: rate 1.1"),
            (vec![sample(0.0, 1.0), sample(1.0, 0.0)], "sample 2: throughput 0"),
            (vec![sample(f64::NAN, 1.0)], "sample 1: rate NaN"),
        ] {
            let error = fit(&samples).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
