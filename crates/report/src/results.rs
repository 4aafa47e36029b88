//! What a measuring command found, as `result.json` has it (schema in `schema/result.schema.json`).

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

/// A setting, and a finding's code.
const PARTIAL: &str = "partial";

/// Everything that one measuring command found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Always [`SCHEMA`].
    pub schema: u32,
    /// The command's name, such as `bench relay`.
    pub tool: String,
    /// When it started, RFC 3339 in UTC.
    pub started: String,
    /// The machine.
    pub environment: Environment,
    /// What random choices were drawn from.
    pub seed: u64,
    /// Every setting that shaped the measurement, by name.
    pub settings: BTreeMap<String, Scalar>,
    /// What was measured: one entry per system and combination of parameters.
    pub points: Vec<Point>,
    /// What a reader has to know before believing or using the figures.
    pub findings: Vec<Finding>,
}

/// A setting's or parameter's value.
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
    /// What was measured: `direct`, `weir`, `haproxy`, …
    pub system: String,
    /// What was varied: `rate`, `tenants`, `message`, …
    pub parameters: BTreeMap<String, Scalar>,
    /// By name, such as `p50_us`; one sample per run.
    pub metrics: BTreeMap<String, Metric>,
    /// Distributions merged over runs, by what they are of: `latency`, `lag`, `latency PACKET_IN`.
    pub latency: BTreeMap<String, LatencySummary>,
    /// One row per tenant, where tenants are told apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tenants: Vec<TenantRow>,
    /// The course of the first run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<Interval>,
}

/// A figure with one sample per run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// `µs`, `1/s`, `%`, `bytes`, or empty for a plain count or ratio.
    pub unit: String,
    /// Which way is good.
    pub better: Better,
    /// One value per run.
    pub samples: Vec<f64>,
    /// Their mean; absent without samples.
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
    /// A metric of these samples; what is not finite (a ratio to nothing) is no sample.
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

/// Which way is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Latency, loss, CPU.
    Lower,
    /// Throughput, fairness.
    Higher,
    /// A description, not a merit.
    Neither,
}

/// One tenant's share of a point, over all runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TenantRow {
    /// Its name.
    pub tenant: String,
    /// Messages sent in the measured window.
    pub sent: u64,
    /// Of those, how many arrived or were answered.
    pub received: u64,
    /// Their latency.
    pub latency: LatencySummary,
}

/// One second of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Seconds since the schedule's start.
    pub start_s: f64,
    /// Messages whose intended time lies in it and that arrived or were answered.
    pub received: u64,
    /// Their mean latency.
    pub mean_us: f64,
    /// Their greatest latency.
    pub max_us: f64,
}

/// Something that a reader has to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// A stable name, such as `generator-bottleneck` or `leak`.
    pub code: String,
    /// A sentence.
    pub text: String,
}

/// What a results directory shows beside what can be drawn of any result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Extras {
    /// In this order.
    pub figures: Vec<Figure>,
    /// Each with its heading.
    pub tables: Vec<(String, Table)>,
}

impl Results {
    /// Empty results of `tool`, which started when the program did, on this machine.
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

    /// Says that the measurement was ended before its time, and what of it was measured.
    pub fn mark_partial(&mut self, text: &str) {
        self.settings.insert(PARTIAL.to_owned(), true.into());
        self.findings.insert(0, Finding { code: PARTIAL.to_owned(), text: text.to_owned() });
    }

    /// Whether the measurement was ended before its time.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.settings.get(PARTIAL) == Some(&Scalar::Flag(true))
    }

    /// `result.json`'s text.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Only maps with keys that are no strings can fail, and there are none.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }
}

impl Point {
    /// A point of `system` with these parameters.
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

    /// A metric's mean over runs.
    #[must_use]
    pub fn mean(&self, metric: &str) -> Option<f64> {
        self.metrics.get(metric)?.mean
    }
}
