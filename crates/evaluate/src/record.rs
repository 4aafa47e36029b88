//! Records the measurements of modules: samples by case and metric, delays as histograms, and
//! findings.

use std::collections::{BTreeMap, HashSet};

use report::{Better, Finding, Histogram, Metric, Point, Precision, Scalar};

/// One combination of parameters, such as rules=100 priority=increasing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Case(BTreeMap<String, Scalar>);

impl Case {
    /// The case without parameters.
    pub fn new() -> Case {
        Case::default()
    }

    /// This case with one more parameter.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Scalar>) -> Case {
        self.0.insert(name.to_owned(), value.into());
        self
    }
}

/// A metric's name, unit and direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measure {
    /// The name, such as `barrier_us`.
    pub name: &'static str,
    /// The unit, such as `µs`.
    pub unit: &'static str,
    /// The direction in which the metric is better.
    pub better: Better,
}

impl Measure {
    /// A metric in microseconds; lower is better.
    pub const fn us(name: &'static str) -> Measure {
        Measure { name, unit: "µs", better: Better::Lower }
    }

    /// A count or ratio without a better direction.
    pub const fn plain(name: &'static str) -> Measure {
        Measure { name, unit: "", better: Better::Neither }
    }

    /// A metric per second; higher is better.
    pub const fn rate(name: &'static str) -> Measure {
        Measure { name, unit: "1/s", better: Better::Higher }
    }

    /// A metric in percent; lower is better.
    pub const fn percent(name: &'static str) -> Measure {
        Measure { name, unit: "%", better: Better::Lower }
    }
}

/// The samples of one case.
#[derive(Clone, Debug)]
struct Samples {
    case: Case,
    /// The unit, the direction, and one value per repetition.
    metrics: BTreeMap<String, (String, Better, Vec<f64>)>,
    delays: BTreeMap<String, Histogram>,
}

/// All measurements of a module.
#[derive(Clone, Debug, Default)]
pub struct Record {
    cases: Vec<Samples>,
    findings: Vec<Finding>,
    found: HashSet<(String, String)>,
}

/// The most samples of one metric that are stored. Further samples are discarded, and a finding says so.
const MAX_SAMPLES: usize = 1_000_000;
/// The most findings that are stored.
const MAX_FINDINGS: usize = 1_000;

impl Record {
    /// Adds one sample.
    pub fn sample(&mut self, case: &Case, measure: Measure, value: f64) {
        self.sample_named(case, measure.name, measure.unit, measure.better, value);
    }

    /// Adds one sample of a metric that is named at run time.
    pub fn sample_named(
        &mut self,
        case: &Case,
        name: &str,
        unit: &str,
        better: Better,
        value: f64,
    ) {
        let metrics = &mut self.of(case).metrics;
        if let Some((_, _, samples)) = metrics.get_mut(name) {
            if samples.len() < MAX_SAMPLES {
                samples.push(value);
            } else {
                let text = format!(
                    "{name} has more than {MAX_SAMPLES} samples in one case: the later ones are left out"
                );
                self.finding("samples-discarded", text);
            }
        } else {
            metrics.insert(name.to_owned(), (unit.to_owned(), better, vec![value]));
        }
    }

    /// Adds one delay to a distribution.
    pub fn delay(&mut self, case: &Case, name: &str, ns: u64) {
        let delays = &mut self.of(case).delays;
        match delays.get_mut(name) {
            Some(histogram) => histogram.record(ns),
            None => {
                let mut histogram = Histogram::new(Precision::Fine);
                histogram.record(ns);
                delays.insert(name.to_owned(), histogram);
            }
        }
    }

    /// Adds a finding for the reader; a repeated sentence is added once.
    pub fn finding(&mut self, code: &str, text: impl Into<String>) {
        let text = text.into();
        if self.findings.len() < MAX_FINDINGS && self.found.insert((code.to_owned(), text.clone()))
        {
            self.findings.push(Finding { code: code.to_owned(), text });
        }
    }

    /// The findings so far.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Whether the record has no measurements.
    pub fn is_empty(&self) -> bool {
        self.cases.is_empty()
    }

    /// The samples of a metric in a case.
    pub fn samples(&self, case: &Case, name: &str) -> &[f64] {
        let samples = self.cases.iter().find(|samples| samples.case == *case);
        samples.and_then(|it| it.metrics.get(name)).map_or(&[], |(_, _, values)| values)
    }

    /// A distribution in a case.
    pub fn histogram(&self, case: &Case, name: &str) -> Option<&Histogram> {
        self.cases.iter().find(|samples| samples.case == *case)?.delays.get(name)
    }

    /// The points of a result, with the module's name among the parameters, and the raw
    /// distributions by name.
    pub fn points(&self, system: &str, module: &str) -> (Vec<Point>, Vec<(String, Histogram)>) {
        let mut histograms = Vec::new();
        let mut points = Vec::new();
        for samples in &self.cases {
            let case = samples.case.clone().with("module", module);
            let mut point = Point::new(system, case.0);
            for (name, (unit, better, values)) in &samples.metrics {
                point.metrics.insert(name.clone(), Metric::new(unit, *better, values.clone()));
            }
            for (name, histogram) in &samples.delays {
                point.latency.insert(name.clone(), histogram.summary());
                histograms.push((format!("{} {name}", point.label()), histogram.clone()));
            }
            points.push(point);
        }
        (points, histograms)
    }

    fn of(&mut self, case: &Case) -> &mut Samples {
        let known = self.cases.iter().position(|samples| samples.case == *case);
        let index = known.unwrap_or_else(|| {
            self.cases.push(Samples {
                case: case.clone(),
                metrics: BTreeMap::new(),
                delays: BTreeMap::new(),
            });
            self.cases.len() - 1
        });
        &mut self.cases[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_and_delays_of_a_case_become_points_and_histograms() {
        let mut record = Record::default();
        let case = Case::new().with("rules", 10u32);
        record.sample(&case, Measure::us("barrier_us"), 1.0);
        record.sample(&case, Measure::us("barrier_us"), 3.0);
        record.delay(&case, "path", 5_000);
        record.finding("a", "once");
        record.finding("a", "once");
        let (points, histograms) = record.points("ovs", "insert");
        assert_eq!(points[0].label(), "module=insert rules=10");
        assert_eq!(points[0].mean("barrier_us"), Some(2.0));
        assert_eq!((histograms.len(), record.findings().len()), (1, 1));
        assert_eq!(record.samples(&case, "barrier_us"), [1.0, 3.0]);
    }

    #[test]
    fn samples_above_the_maximum_number_are_dropped_and_give_a_finding() {
        let mut record = Record::default();
        let case = Case::new();
        (0..MAX_SAMPLES).for_each(|_| record.sample(&case, Measure::us("rtt_us"), 1.0));
        assert!(record.findings().is_empty());
        record.sample(&case, Measure::us("rtt_us"), 2.0);
        record.sample(&case, Measure::us("rtt_us"), 2.0);
        assert_eq!(record.samples(&case, "rtt_us").len(), MAX_SAMPLES);
        assert_eq!(record.findings().len(), 1);
        assert!(record.findings()[0].text.starts_with("rtt_us has more than 1000000 samples"));
    }
}
