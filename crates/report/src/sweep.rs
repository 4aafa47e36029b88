//! A metric against what was varied: latency against rate, or against tenants.

use crate::figure::{Drawing, Line, Lines, Scale};
use crate::results::{Point, Scalar};
use std::collections::BTreeMap;

/// A metric against a parameter that is a number, one line per system and rest of parameters, with
/// 95 % confidence intervals: latency against rate, or against tenants.
fn sweep_figure(points: &[Point], parameter: &str, metric: &str, y_scale: Scale) -> Drawing {
    let mut lines: BTreeMap<String, Line> = BTreeMap::new();
    let mut unit = String::new();
    for point in points {
        let Some(&Scalar::Number(x)) = point.parameters.get(parameter) else { continue };
        let Some(found) = point.metrics.get(metric) else { continue };
        let Some(mean) = found.mean else { continue };
        unit.clone_from(&found.unit);
        let rest = point.parameters.iter().filter(|(name, _)| *name != parameter);
        let rest: Vec<String> = rest.map(|(name, value)| format!("{name}={value}")).collect();
        let name = format!("{} {}", point.system, rest.join(" ")).trim_end().to_owned();
        let line = lines.entry(name.clone()).or_insert_with(|| Line { name, ..Line::default() });
        let at = line.points.partition_point(|point| point.0 < x);
        line.points.insert(at, (x, mean));
        line.errors.insert(at, found.ci95.unwrap_or(0.0));
    }
    Lines {
        title: format!("{metric} against {parameter}"),
        x_label: parameter.to_owned(),
        y_label: unit,
        y_scale,
        lines: lines.into_values().collect(),
        ..Lines::default()
    }
    .draw()
}

/// Latency against every parameter of which several values were measured: p50 and p99.
pub(crate) fn sweep_figures(points: &[Point]) -> Vec<Drawing> {
    let mut figures = Vec::new();
    for parameter in ["rate", "tenants"] {
        let values = points.iter().filter_map(|point| point.parameters.get(parameter));
        let mut numbers: Vec<f64> = values
            .filter_map(
                |value| if let Scalar::Number(number) = value { Some(*number) } else { None },
            )
            .collect();
        numbers.sort_by(f64::total_cmp);
        numbers.dedup();
        if numbers.len() < 2 {
            continue;
        }
        let known = |metric: &&str| points.iter().any(|point| point.metrics.contains_key(*metric));
        for metric in ["p50_us", "p99_us"].into_iter().filter(known) {
            figures.push(sweep_figure(points, parameter, metric, Scale::Logarithmic));
        }
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;
    use crate::results::{Better, Metric, Results};

    #[test]
    fn a_sweep_is_drawn_in_order_with_its_intervals() {
        let mut results = Results::new("bench", 1, Environment::default());
        for rate in [40_000.0, 10_000.0] {
            let mut point = Point::new("weir", [("rate", rate)]);
            let metric = Metric::new("µs", Better::Lower, vec![rate / 1000.0, rate / 500.0]);
            point.metrics.insert("p50_us".into(), metric);
            results.points.push(point);
        }
        let svg = sweep_figure(&results.points, "rate", "p50_us", Scale::Linear).svg();
        assert!(svg.contains("p50_us against rate") && svg.contains(">weir<"));
        assert_eq!(svg.matches("<circle").count(), 2);
        assert_eq!(sweep_figures(&results.points).len(), 1, "only what was measured");
        assert!(sweep_figures(&results.points[..1]).is_empty(), "one value is no curve");
    }
}
