//! The results of a measuring command, in the form of `result.json` (schema in
//! `schema/result.schema.json`).

use crate::environment::{Environment, started};
use crate::figure::Figure;
use crate::histogram::LatencySummary;
use crate::stats;
use crate::table::Table;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The version of the schema that this code writes and reads.
pub const SCHEMA: u32 = 1;

/// The name of a setting, and the code of a finding.
const PARTIAL: &str = "partial";

/// All results of one measuring command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Always [`SCHEMA`].
    pub schema: u32,
    /// The command's name, such as `bench relay`.
    pub tool: String,
    /// The start time, as RFC 3339 in UTC.
    pub started: String,
    /// The machine and the software versions.
    pub environment: Environment,
    /// The seed of the random choices.
    pub seed: u64,
    /// Every setting of the measurement, by name.
    pub settings: BTreeMap<String, Scalar>,
    /// The measured points: one point for each system and combination of parameters.
    pub points: Vec<Point>,
    /// The findings that a reader must know before using the figures.
    pub findings: Vec<Finding>,
}

/// The value of a setting or parameter.
#[derive(Clone, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Scalar {
    /// Yes or no.
    Flag(bool),
    /// A number.
    Number(f64),
    /// Text.
    Text(String),
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Number(number) => f.write_str(&crate::table::number(*number)),
            Self::Text(text) => f.write_str(text),
        }
    }
}

macro_rules! scalar_from {
    ($($from:ty => $variant:ident($convert:expr)),* $(,)?) => {
        $(impl From<$from> for Scalar {
            fn from(value: $from) -> Self {
                Self::$variant($convert(value))
            }
        })*
    };
}
scalar_from! {
    bool => Flag(|value| value),
    f64 => Number(|value| value),
    u64 => Number(|value| value as f64),
    u32 => Number(f64::from),
    usize => Number(|value| value as f64),
    String => Text(|value| value),
    &str => Text(str::to_owned),
}

/// One system under one combination of parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The measured system: `direct`, `weir`, `haproxy`, …
    pub system: String,
    /// The varied parameters: `rate`, `tenants`, `message`, …
    pub parameters: BTreeMap<String, Scalar>,
    /// The metrics by name, such as `p50_us`, with one sample for each run.
    pub metrics: BTreeMap<String, Metric>,
    /// The distributions, merged over the runs, by measured quantity: `latency`, `lag`, `latency
    /// PACKET_IN`.
    pub latency: BTreeMap<String, LatencySummary>,
    /// One row for each tenant, if the measurement distinguishes tenants.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tenants: Vec<TenantRow>,
    /// The seconds of the first run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<Interval>,
}

/// A metric with one sample for each run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// The unit: `µs`, `1/s`, `%`, `bytes`, or empty for a plain count or ratio.
    pub unit: String,
    /// The direction in which the metric is better.
    pub better: Better,
    /// One value for each run.
    pub samples: Vec<f64>,
    /// The mean of the samples; absent without samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// Half the width of the mean's 95 % confidence interval; absent with fewer than two samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci95: Option<f64>,
    /// The sample variance; absent with fewer than two samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variance: Option<f64>,
}

impl Metric {
    /// Makes a metric from these samples. A value that is not finite (a ratio to zero) is left out.
    #[must_use]
    pub fn new(unit: &str, better: Better, mut samples: Vec<f64>) -> Self {
        samples.retain(|sample| sample.is_finite());
        Self {
            unit: unit.to_owned(),
            better,
            mean: stats::mean(&samples),
            ci95: stats::confidence95(&samples),
            variance: stats::sample_variance(&samples),
            samples,
        }
    }
}

/// The direction in which the metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// A lower value is better: latency, loss, CPU.
    Lower,
    /// A higher value is better: throughput, fairness.
    Higher,
    /// Neither is better: the metric only describes.
    Neither,
}

/// One tenant's share of a point, over all runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TenantRow {
    /// The tenant's name.
    pub tenant: String,
    /// The number of messages sent in the measured window.
    pub sent: u64,
    /// The number of these messages that arrived or were answered.
    pub received: u64,
    /// The latency of these messages.
    pub latency: LatencySummary,
}

/// One second of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The start of the interval, in seconds since the start of the schedule.
    pub start_s: f64,
    /// The number of messages that arrived or were answered, and that had their intended time in
    /// the interval.
    pub received: u64,
    /// The mean latency of these messages.
    pub mean_us: f64,
    /// The largest latency of these messages.
    pub max_us: f64,
}

/// A fact about the measurement that a reader must know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The stable name of the kind of finding, such as `generator-bottleneck` or `leak`.
    pub code: String,
    /// The finding in one sentence.
    pub text: String,
}

/// The figures and tables of one result, in addition to those that can be drawn of any result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Extras {
    /// The figures, in the order of the report.
    pub figures: Vec<Figure>,
    /// The tables, each with its heading.
    pub tables: Vec<(String, Table)>,
}

impl Results {
    /// Makes empty results of `tool` on this machine. The start time is that of the program.
    #[must_use]
    pub fn new(tool: &str, seed: u64, environment: Environment) -> Self {
        Self {
            schema: SCHEMA,
            tool: tool.to_owned(),
            started: started(),
            environment,
            seed,
            settings: BTreeMap::new(),
            points: Vec::new(),
            findings: Vec::new(),
        }
    }

    /// Marks the measurement as ended early. `text` states the measured part.
    pub fn mark_partial(&mut self, text: &str) {
        self.settings.insert(PARTIAL.to_owned(), true.into());
        self.findings.insert(0, Finding { code: PARTIAL.to_owned(), text: text.to_owned() });
    }

    /// Whether the measurement was ended early.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.settings.get(PARTIAL) == Some(&Scalar::Flag(true))
    }

    /// The text of `result.json`.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Only a map with keys that are not strings can fail, and the results have no such map.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }
}

impl Point {
    /// Makes a point of `system` with these parameters.
    pub fn new<N: Into<String>, V: Into<Scalar>>(
        system: &str,
        parameters: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let parameters = parameters.into_iter().map(|(n, v)| (n.into(), v.into())).collect();
        Self { system: system.to_owned(), parameters, ..Self::default() }
    }

    /// The parameters in one line: `rate=40,000 tenants=20`.
    #[must_use]
    pub fn label(&self) -> String {
        let parts: Vec<String> =
            self.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
        parts.join(" ")
    }

    /// The mean of a metric over the runs.
    #[must_use]
    pub fn mean(&self, metric: &str) -> Option<f64> {
        self.metrics.get(metric)?.mean
    }
}
