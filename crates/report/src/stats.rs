//! Computes statistics over runs and over tenants.

/// The arithmetic mean; `None` without values.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The sample variance (divided by n − 1); `None` with fewer than two values.
#[must_use]
pub fn sample_variance(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    (values.len() > 1).then(|| {
        values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64
    })
}

/// Half the width of the 95 % confidence interval of the mean, by Student's t; `None` with fewer
/// than two values.
#[must_use]
pub fn confidence95(values: &[f64]) -> Option<f64> {
    let variance = sample_variance(values)?;
    Some(student_t975(values.len() as f64 - 1.0) * (variance / values.len() as f64).sqrt())
}

/// The difference of two means, `b − a`, and half the width of its 95 % confidence interval
/// (Welch). Returns `None` if either side has fewer than two values.
#[must_use]
pub fn difference95(a: &[f64], b: &[f64]) -> Option<(f64, f64)> {
    let (va, vb) = (sample_variance(a)? / a.len() as f64, sample_variance(b)? / b.len() as f64);
    let difference = mean(b)? - mean(a)?;
    if va + vb == 0.0 {
        return Some((difference, 0.0));
    }
    let freedom =
        (va + vb).powi(2) / (va.powi(2) / (a.len() - 1) as f64 + vb.powi(2) / (b.len() - 1) as f64);
    Some((difference, student_t975(freedom) * (va + vb).sqrt()))
}

/// The median; `None` without values.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    sorted.get(sorted.len() / 2 - 1).map(|lower| (lower + upper) / 2.0)
}

/// The value below which a share `q` (0 to 1) of the values lies, interpolated between two values.
/// Returns `None` without values.
#[must_use]
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = q.clamp(0.0, 1.0) * (sorted.len().checked_sub(1)?) as f64;
    let low = *sorted.get(place.floor() as usize)?;
    let high = *sorted.get(place.ceil() as usize)?;
    Some(low + (high - low) * place.fract())
}

/// Jain's fairness index (Jain, Chiu and Hawe, 1984). The index is 1 if all values are equal, and
/// 1/n if all values but one are zero. Returns `None` without values or with zeros only.
#[must_use]
pub fn jain(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|value| value * value).sum();
    (squares > 0.0).then(|| sum * sum / (values.len() as f64 * squares))
}

/// The 97.5 % quantile of Student's t for `freedom` degrees of freedom. A value below one counts as
/// one. Up to 30 the quantile is from a table. Above 30 the quantile is from the Cornish-Fisher
/// expansion, which is exact to four digits there.
#[must_use]
pub fn student_t975(freedom: f64) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    let whole = freedom.max(1.0).floor();
    if let Some(&t) = TABLE.get(whole as usize - 1) {
        // Welch's degrees of freedom are fractional. Rounding down makes the interval wider, never
        // narrower.
        return t;
    }
    let z: f64 = 1.959_963_985;
    z + (z.powi(3) + z) / (4.0 * freedom)
        + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * freedom.powi(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: Option<f64>, want: f64) {
        let got = got.unwrap();
        assert!((got - want).abs() <= 1e-3 * want.abs().max(1.0), "{got} is not {want}");
    }

    #[test]
    fn statistics_of_a_textbook_sample_are_correct() {
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        close(mean(&values), 5.0);
        close(sample_variance(&values), 32.0 / 7.0);
        close(confidence95(&values), 2.365 * (32.0f64 / 7.0 / 8.0).sqrt());
        close(median(&values), 4.5);
        for (q, want) in [(0.0, 2.0), (0.5, 4.5), (1.0, 9.0), (0.9, 7.6)] {
            close(quantile(&values, q), want);
        }
    }

    #[test]
    fn too_few_values_have_no_mean_median_or_confidence_interval() {
        assert_eq!(mean(&[]), None);
        assert_eq!(confidence95(&[3.0]), None);
        assert_eq!(difference95(&[3.0], &[1.0, 2.0]), None);
        assert_eq!(median(&[]), None);
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn the_jain_index_is_computed_for_equal_and_unequal_values() {
        close(jain(&[3.0; 20]), 1.0);
        close(jain(&[1.0, 0.0, 0.0, 0.0]), 0.25);
        assert_eq!(jain(&[0.0, 0.0]), None);
    }

    #[test]
    fn student_t_quantiles_outside_the_table_are_correct() {
        close(Some(student_t975(40.0)), 2.021);
        close(Some(student_t975(120.0)), 1.980);
        close(Some(student_t975(0.2)), 12.706);
    }

    #[test]
    fn the_welch_interval_of_a_difference_of_means_is_correct() {
        // The expected values are computed by hand: means 20 and 25, variances 10 and 10, n = 5
        // each, freedom 8, t 2.306.
        let a = [16.0, 18.0, 20.0, 22.0, 24.0];
        let b = [21.0, 23.0, 25.0, 27.0, 29.0];
        let (difference, half) = difference95(&a, &b).unwrap();
        close(Some(difference), 5.0);
        close(Some(half), 2.306 * 2.0);
    }
}
