//! An axis of numbers: its range, its ticks, and the names of the ticks.

use serde::{Deserialize, Serialize};

/// The scale of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Values are spaced evenly.
    #[default]
    Linear,
    /// Values are spaced by powers of ten. Values that are not above 0 are left out.
    Logarithmic,
}

/// An axis: its range and its scale.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
}

/// The maximum number of decades of a logarithmic axis. Lower values are drawn at the end of the
/// axis.
const DECADES: f64 = 12.0;

impl Axis {
    /// Makes an axis over all values that the scale can show.
    pub(super) fn over(values: impl Iterator<Item = f64>, scale: Scale, from_zero: bool) -> Self {
        let usable = |value: &f64| {
            value.is_finite() && value.abs() < 1e15 && (scale == Scale::Linear || *value > 0.0)
        };
        let (low, high) = values
            .filter(usable)
            .fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = if low > high { (1.0, 10.0) } else { (low, high) };
        if scale == Scale::Logarithmic {
            return Self::logarithmic(low, high);
        }
        let low = if from_zero { low.min(0.0) } else { low };
        // Values that are almost equal still get an axis with a range.
        let high = if high - low <= low.abs() * 1e-9 { low + low.abs().max(1.0) } else { high };
        Self { scale, low, high: high + (high - low) * 0.04 }
    }

    /// Makes a logarithmic axis. Its ends are 1, 2 or 5 times a power of ten.
    fn logarithmic(low: f64, high: f64) -> Self {
        let low = low.max(high / 10f64.powf(DECADES));
        let power = 10f64.powf(low.log10().floor());
        let low = [5.0, 2.0, 1.0].map(|factor| factor * power).into_iter().find(|it| *it <= low);
        let low = low.unwrap_or(power);
        let power = 10f64.powf(high.log10().floor());
        let high =
            [1.0, 2.0, 5.0].map(|factor| factor * power).into_iter().find(|it| *it >= high * 0.999);
        let high = high.unwrap_or(power * 10.0);
        Self { scale: Scale::Logarithmic, low, high: if high <= low { low * 10.0 } else { high } }
    }

    /// Makes an axis exactly between two ends, for the cells of a heat map.
    pub(super) fn between(low: f64, high: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Self { scale: Scale::Linear, low, high }
    }

    /// The position of a value between two ends; `None` if the scale cannot show the value.
    pub(super) fn place(&self, value: f64, (from, to): (f64, f64)) -> Option<f64> {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Logarithmic if value > 0.0 => {
                (value / self.low).log10() / (self.high / self.low).log10()
            }
            Scale::Logarithmic => return None,
        };
        share.is_finite().then(|| from + share.clamp(-0.02, 1.02) * (to - from))
    }

    /// The value at which a bar begins.
    pub(super) fn ground(&self) -> f64 {
        if self.scale == Scale::Linear { self.low.max(0.0) } else { self.low }
    }

    /// Returns about `wanted` ticks with their names.
    pub(super) fn ticks(&self, wanted: usize) -> Vec<(f64, String)> {
        match self.scale {
            Scale::Linear => self.even_ticks(wanted.max(2)),
            Scale::Logarithmic => self.decades(wanted.max(2)),
        }
    }

    /// Returns ticks in steps of 1, 2 or 5 times a power of ten. All names have the decimals that
    /// the step needs.
    fn even_ticks(&self, wanted: usize) -> Vec<(f64, String)> {
        let rough = (self.high - self.low) / wanted as f64;
        let magnitude = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0].map(|factor| factor * magnitude).into_iter();
        let step = step.clone().find(|step| *step >= rough * 0.999).unwrap_or(magnitude * 10.0);
        let decimals = (-step.log10().floor()).clamp(0.0, 12.0) as usize;
        let first = (self.low / step - 1e-9).ceil();
        (0..=wanted + 1)
            .map(|index| (first + index as f64) * step)
            .take_while(|tick| *tick <= self.high * (1.0 + 1e-9))
            // Zero has no sign.
            .map(|tick| (tick, named(if tick.abs() < step / 2.0 { 0.0 } else { tick }, decimals)))
            .collect()
    }

    fn decades(&self, wanted: usize) -> Vec<(f64, String)> {
        let (low, high) = (self.low.log10(), self.high.log10());
        let first = low.floor() as i32;
        let decades = (high.ceil() as i32 - first).max(1);
        let ticks = |factors: &[f64], every: usize| -> Vec<(f64, String)> {
            (0..=decades)
                .step_by(every)
                .flat_map(|decade| {
                    let power = first + decade;
                    factors.iter().map(move |factor| (power, factor * 10f64.powi(power)))
                })
                .filter(|(_, tick)| *tick >= self.low * 0.999 && *tick <= self.high * 1.001)
                .map(|(power, tick)| (tick, named(tick, usize::try_from(-power).unwrap_or(0))))
                .collect()
        };
        let fine = ticks(&[1.0, 2.0, 5.0], 1);
        if fine.len() <= wanted + 1 {
            return fine;
        }
        ticks(&[1.0], (decades as usize).div_ceil(wanted).max(1))
    }
}

/// Writes a number with grouped thousands. A long number gets a unit prefix, such as M for
/// millions.
fn named(value: f64, decimals: usize) -> String {
    for (unit, letter) in [(1e12, "T"), (1e9, "G"), (1e6, "M")] {
        if value.abs() >= unit {
            let text = format!("{:.3}", value / unit);
            let text = text.trim_end_matches('0').trim_end_matches('.');
            return format!("{text}{letter}");
        }
    }
    let text = format!("{value:.decimals$}");
    let (sign, digits) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("−", rest));
    format!("{sign}{}", crate::table::grouped(digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(axis: &Axis, wanted: usize) -> Vec<String> {
        axis.ticks(wanted).into_iter().map(|(_, name)| name).collect()
    }

    #[test]
    fn axis_ticks_have_round_values_and_the_same_number_format() {
        let axis = |low, high, scale| Axis { scale, low, high };
        let even = |low, high| names(&axis(low, high, Scale::Linear), 5);
        assert_eq!(even(0.0, 100.0), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(even(0.0, 7.8), ["0", "2", "4", "6"]);
        assert_eq!(even(0.0, 0.83), ["0.0", "0.2", "0.4", "0.6", "0.8"]);
        assert_eq!(even(-1.0, 1.0), ["−1.0", "−0.5", "0.0", "0.5", "1.0"]);
        assert_eq!(even(0.0, 5e6), ["0", "1M", "2M", "3M", "4M", "5M"]);
        let decades = |low, high| names(&axis(low, high, Scale::Logarithmic), 5);
        assert_eq!(decades(0.1, 1000.0), ["0.1", "1", "10", "100", "1,000"]);
        assert_eq!(decades(20.0, 500.0), ["20", "50", "100", "200", "500"]);
        assert_eq!(decades(0.2, 1.0), ["0.2", "0.5", "1"]);
        assert_eq!(decades(1.0, 1e9).len(), 5);
    }

    #[test]
    fn empty_and_extreme_value_ranges_have_an_axis_with_ticks() {
        for scale in [Scale::Linear, Scale::Logarithmic] {
            for values in
                [&[][..], &[0.0], &[5.0, 5.0], &[-3.0], &[1e300, f64::NAN], &[1e-300, 1.0]]
            {
                let axis = Axis::over(values.iter().copied(), scale, false);
                assert!(axis.low < axis.high, "{scale:?} {values:?} {axis:?}");
                let ticks = axis.ticks(5);
                assert!((1..=16).contains(&ticks.len()), "{scale:?} {values:?} {ticks:?}");
            }
        }
    }
}
