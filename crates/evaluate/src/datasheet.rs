//! The data sheet of a switch: measured facts that the vendor's data sheet lacks, in one file for other tools.
//!
//! A *safe rate* is a rate without loss, at which every change takes effect. For packets and requests, the safe rate is
//! the highest rate without loss and without a growing queue, and the lowest of all repetitions. For FLOW_MODs, the
//! safe rate is the number of entries that take effect in the data plane per second, at the largest number of entries,
//! in the slowest repetition. For statistics, the safe rate is the highest polling rate at which 99 % of the replies
//! arrive before the next request.

mod page;

use std::collections::BTreeMap;

use report::{Finding, Point, Results, Scalar};
use serde::{Deserialize, Serialize};

use crate::evaluation::DESCRIPTION;

/// The version of the format.
pub(crate) const SCHEMA: u32 = 2;

/// The words and numbers of a data sheet for a limit or a reader.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DataSheet {
    /// Always 2. In version 1, the safe rates of packets and requests included messages that the switch had only
    /// queued.
    pub schema: u32,
    /// The time of the measurement, RFC 3339 in UTC.
    pub measured: String,
    /// The description of the switch and of the connection to the switch.
    pub switch: BTreeMap<String, Scalar>,
    /// Whether the measurement was interrupted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Experiments that did not finish. Their figures, if there are any, cover only the measurement before the stop.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unfinished: Vec<String>,
    /// Whether every BARRIER_REPLY came after its changes took effect; absent if the measurement cannot show this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub barrier_honest: Option<bool>,
    /// The longest minimum delay of a change after its BARRIER_REPLY, µs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub barrier_lie_us: Option<f64>,
    /// The number of entries that fit, by kind of match.
    pub capacity: BTreeMap<String, Capacity>,
    /// The safe rates per second, by message: `flow-mod-add`, `packet-in`, `stats-flow`, …
    pub safe_rates: BTreeMap<String, f64>,
    /// Median latencies at the lowest rate of the measurement, µs, by kind: `packet-in`, `echo`, `forward`, …
    pub latency_us: BTreeMap<String, f64>,
    /// The loss of each modification in percent.
    pub modification_loss: BTreeMap<String, f64>,
    /// Findings for the reader.
    pub findings: Vec<Finding>,
}

/// The number of entries that fit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// The number of accepted entries.
    pub entries: f64,
    /// Whether the table was full; otherwise the experiment reached its limit.
    pub is_full: bool,
}

impl DataSheet {
    /// The data sheet of the results of several experiments.
    pub fn of(results: &Results) -> DataSheet {
        let mut sheet = DataSheet {
            schema: SCHEMA,
            measured: results.started.clone(),
            interrupted: results.is_partial(),
            unfinished: unfinished(results),
            findings: results.findings.clone(),
            ..DataSheet::default()
        };
        let named = ["switch", "dpid", "openflow", "channels"];
        for name in named.into_iter().chain(DESCRIPTION) {
            if let Some(value) = results.settings.get(name) {
                sheet.switch.insert(name.to_owned(), value.clone());
            }
        }
        // Points are in ascending order of the varied parameter, so the first point has the lowest load.
        for point in &results.points {
            match text(point, "module") {
                "insert" => sheet.update("flow-mod-add", point),
                "change" => sheet.update("flow-mod-modify", point),
                "delete" => sheet.update("flow-mod-delete", point),
                "capacity" => sheet.capacity(point),
                "statistics" => sheet.statistics(point),
                "modify" => sheet.modification(point),
                name @ ("packet-in" | "packet-out" | "echo" | "barrier") => {
                    sheet.rate(name, point);
                }
                "port-status" => {
                    let name = format!("port-status-{}", text(point, "link"));
                    sheet.latency(&name, point.mean("port_status_us"));
                }
                _ => {}
            }
        }
        sheet
    }

    /// The text of `datasheet.json`.
    pub fn to_json(&self) -> String {
        // Serialization fails only for maps with keys that are not strings, and the data sheet has no such map.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// The content of the data sheet as tables, each table with its heading.
    pub fn tables(&self) -> Vec<(String, report::Table)> {
        let number = report::table::number;
        let mut switch = report::Table::new(["", "value"]);
        for (name, value) in &self.switch {
            switch.row([name.clone(), value.to_string()]);
        }
        if let Some(honest) = self.barrier_honest {
            let verdict = if honest { "honest" } else { "not honest" };
            switch.row(["barrier", verdict]);
        }
        if let Some(lie) = self.barrier_lie_us {
            switch.row(["longest lie of a barrier, at least, µs".to_owned(), number(lie)]);
        }
        for (name, capacity) in &self.capacity {
            let more = if capacity.is_full { "" } else { " or more" };
            let entries = format!("{}{more}", number(capacity.entries));
            switch.row([format!("entries that fit, {name}"), entries]);
        }
        let table = |heading: &str, unit: &str, values: &BTreeMap<String, f64>| {
            let mut table = report::Table::new(["", unit]);
            for (name, value) in values {
                table.row([name.clone(), number(*value)]);
            }
            (heading.to_owned(), table)
        };
        vec![
            ("The switch".to_owned(), switch),
            table("Safe rates", "per second", &self.safe_rates),
            table("Latency, unloaded", "median, µs", &self.latency_us),
            table("Modifications", "loss, %", &self.modification_loss),
        ]
    }

    fn update(&mut self, name: &str, point: &Point) {
        if let Some(honest) = smallest(point, "barrier_honest") {
            let so_far = self.barrier_honest.unwrap_or(true);
            self.barrier_honest = Some(so_far && honest > 0.0);
        }
        if let Some(lie) = largest(point, "lie_at_least_us") {
            self.barrier_lie_us = Some(self.barrier_lie_us.unwrap_or(0.0).max(lie));
        }
        let slowest =
            largest(point, "all_rules_us").into_iter().chain(largest(point, "barrier_us"));
        let slowest = slowest.fold(0.0, f64::max);
        if let (Some(Scalar::Number(rules)), true) = (point.parameters.get("rules"), slowest > 0.0)
        {
            self.safe_rates.insert(name.to_owned(), rules / slowest * 1e6);
        }
    }

    fn capacity(&mut self, point: &Point) {
        if let Some(entries) = smallest(point, "capacity_rules") {
            let is_full = smallest(point, "full_seen") == Some(1.0);
            self.capacity.insert(text(point, "match").to_owned(), Capacity { entries, is_full });
        }
    }

    fn rate(&mut self, name: &str, point: &Point) {
        if let Some(rate) = smallest(point, "highest_loss_free_per_s") {
            self.safe_rates.insert(name.to_owned(), rate);
        }
        self.latency(name, point.mean("median_us"));
    }

    fn statistics(&mut self, point: &Point) {
        let name = format!("stats-{}", text(point, "kind"));
        let Some(reply) = point.latency.get("reply") else { return };
        self.latency(&name, Some(reply.p50_us));
        if let Some(Scalar::Number(polls)) = point.parameters.get("polls_per_s")
            && reply.p99_us * polls < 1e6
        {
            let safe = self.safe_rates.entry(name).or_default();
            *safe = safe.max(*polls);
        }
    }

    fn modification(&mut self, point: &Point) {
        let name = text(point, "set");
        if let Some(loss) = point.mean("loss_percent") {
            self.modification_loss.insert(name.to_owned(), loss);
        }
        self.latency(name, point.mean("median_us"));
    }

    fn latency(&mut self, name: &str, us: Option<f64>) {
        if let Some(us) = us {
            self.latency_us.entry(name.to_owned()).or_insert(us);
        }
    }
}

/// The experiments that did not finish, from the findings of [`Evaluation::add`](crate::Evaluation::add).
fn unfinished(results: &Results) -> Vec<String> {
    let partial = results.findings.iter().filter(|finding| finding.code == "partial");
    let names = partial.filter_map(|finding| Some(finding.text.split_once(": ")?.0.to_owned()));
    names.collect()
}

fn text<'a>(point: &'a Point, parameter: &str) -> &'a str {
    match point.parameters.get(parameter) {
        Some(Scalar::Text(text)) => text,
        _ => "",
    }
}

fn smallest(point: &Point, metric: &str) -> Option<f64> {
    point.metrics.get(metric)?.samples.iter().copied().reduce(f64::min)
}

fn largest(point: &Point, metric: &str) -> Option<f64> {
    point.metrics.get(metric)?.samples.iter().copied().reduce(f64::max)
}
