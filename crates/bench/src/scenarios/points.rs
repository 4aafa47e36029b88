//! Functions of the measured points, for the criteria of scenarios.

use crate::comparison::Options;
use crate::load::Load;
use crate::measure::Collector;
use crate::observe;
use crate::outcome::Outcome;
use crate::system::Target;
use report::{Better, Point, Scalar};

/// The load of a scenario with the options' times.
pub(super) fn timed(load: Load, options: &Options) -> Load {
    Load { duration_ms: options.duration_ms, cut_ms: options.cut_ms, ..load }
}

/// The median over runs of a metric, at the point of `system` whose parameters include these parameters. For messages
/// without an answer: the mean over runs, so that the loss of one run counts.
pub(crate) fn figure_of(
    points: &[Point],
    system: &str,
    parameters: &[(&str, Scalar)],
    metric: &str,
) -> Option<f64> {
    let point = find(points, system, parameters)?;
    match metric {
        "unanswered_percent" | "health_unanswered" => point.mean(metric),
        _ => report::stats::median(&point.metrics.get(metric)?.samples),
    }
}

pub(super) fn find<'a>(
    points: &'a [Point],
    system: &str,
    parameters: &[(&str, Scalar)],
) -> Option<&'a Point> {
    points.iter().find(|point| {
        point.system == system
            && parameters.iter().all(|(name, value)| point.parameters.get(*name) == Some(value))
    })
}

/// The median over runs of a metric's ratio `of` / `to`; each ratio is of two interleaved runs.
pub(super) fn ratio(of: Option<&Point>, to: Option<&Point>, metric: &str) -> Option<f64> {
    let samples = |point: Option<&Point>| Some(point?.metrics.get(metric)?.samples.clone());
    let ratios: Vec<f64> =
        samples(of)?.iter().zip(samples(to)?).map(|(upper, lower)| upper / lower).collect();
    report::stats::median(&ratios)
}

/// The largest resident memory of the system since its start, if the system has known processes.
pub(crate) fn peak_memory(collector: &mut Collector, _: &Outcome, target: &Target) {
    let peaks = target.pids.iter().filter_map(|&pid| observe::resident_peak(pid));
    if let Some(peak) = peaks.reduce(|sum, peak| sum + peak) {
        collector.sample("resident_peak_bytes", "bytes", Better::Lower, peak as f64);
    }
}
