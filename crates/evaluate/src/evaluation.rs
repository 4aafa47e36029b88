//! Collects the results of several experiments on one switch, as results, tables and files.

use std::path::Path;
use std::time::Duration;

use openflow::{Version, v10, v13};
use report::stats::quantile;
use report::table::number;
use report::{Environment, Extras, Finding, Histogram, Results, Scalar, Table};

use crate::error::Result;
use crate::request::Request;
use crate::runtime::Outcome;
use crate::testbed::{Happening, Testbed};

/// The names in settings for the three parts of a switch's description that depend on its make and not on its place.
pub(crate) const DESCRIPTION: [&str; 3] = ["manufacturer", "hardware", "software"];

/// The transaction id of the description request.
const XID: u32 = 0x0057_4548;

/// Results during collection.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// The results in the form of the results file.
    pub results: Results,
    /// Raw distributions by name.
    pub histograms: Vec<(String, Histogram)>,
}

impl Evaluation {
    /// An evaluation without results. `tool` is the command, such as `evaluate insert`.
    pub fn new(tool: &str, environment: Environment) -> Evaluation {
        // The seed is 0: the experiments use no random numbers; the only permutation is fixed.
        Evaluation { results: Results::new(tool, 0, environment), histograms: Vec::new() }
    }

    /// Adds the description of the testbed to the settings.
    pub fn describe(&mut self, testbed: &dyn Testbed) {
        let bench = testbed.bench();
        let settings = &mut self.results.settings;
        settings.insert("switch".to_owned(), bench.name.as_str().into());
        settings.insert("dpid".to_owned(), format!("{:016x}", bench.dpid).into());
        let version = if bench.version == Version::V1_0 { "1.0" } else { "1.3" };
        settings.insert("openflow".to_owned(), version.into());
        let channels: Vec<String> = bench
            .channels
            .iter()
            .map(|channel| format!("{} at port {}", channel.name, channel.port))
            .collect();
        settings.insert("channels".to_owned(), channels.join(", ").into());
    }

    /// Requests the description of the switch, and adds the reply to the settings.
    ///
    /// # Errors
    /// The switch closes the connection. A missing reply within `patience` ns is no error.
    pub fn ask_description(&mut self, testbed: &mut dyn Testbed, patience: u64) -> Result<()> {
        let mut bytes = Vec::new();
        // The request is short, so writing cannot fail.
        let _ = Request::Description.write(testbed.bench().version, XID, &mut bytes);
        testbed.send(bytes, None)?;
        let until = testbed.now().saturating_add(patience);
        while let Some(arrival) = testbed.next(until)? {
            let Happening::Message(frame) = arrival.what else { continue };
            if openflow::frame::xid(&frame) != Some(XID) {
                continue;
            }
            if let Some(description) = description(&frame) {
                let settings = &mut self.results.settings;
                settings.extend(DESCRIPTION.map(str::to_owned).into_iter().zip(description));
            }
            break;
        }
        Ok(())
    }

    /// Adds the outcome of an experiment. An experiment that did not finish gives a finding.
    pub fn add(&mut self, system: &str, module: &str, outcome: &Outcome) {
        let (points, histograms) = outcome.record.points(system, module);
        self.results.points.extend(points);
        self.histograms.extend(histograms);
        let prefixed = outcome.record.findings().iter().map(|finding| Finding {
            code: finding.code.clone(),
            text: format!("{module}: {}", finding.text),
        });
        self.results.findings.extend(prefixed);
        if let Some(why) = &outcome.partial {
            let text = format!("{module}: {why}; what is shown was measured until then");
            self.results.findings.push(Finding { code: "partial".to_owned(), text });
        }
    }

    /// One row per case and metric: the median, 10th and 90th percentile over repetitions; for distributions over
    /// packets (in µs).
    pub fn table(&self) -> Table {
        let mut table =
            Table::new(["module", "case", "metric", "median", "p10", "p90", "max", "unit", "n"]);
        for point in &self.results.points {
            let mut parameters = point.parameters.clone();
            let module = parameters.remove("module").map(|it| it.to_string()).unwrap_or_default();
            let case: Vec<String> =
                parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let case = case.join(" ");
            let mut row = |metric: &str, values: [Option<f64>; 4], unit: &str, n: u64| {
                let shown = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), number);
                let [median, p10, p90, max] = values.map(shown);
                let (module, case) = (module.clone(), case.clone());
                let (metric, unit) = (metric.to_owned(), unit.to_owned());
                table.row([module, case, metric, median, p10, p90, max, unit, n.to_string()]);
            };
            for (name, metric) in &point.metrics {
                let at = |q| quantile(&metric.samples, q);
                let values = [at(0.5), at(0.1), at(0.9), at(1.0)];
                row(name, values, &metric.unit, metric.samples.len() as u64);
            }
            for (name, delay) in &point.latency {
                let p10 = delay.cdf.iter().find(|(_, share)| *share >= 0.1).map(|(us, _)| *us);
                let values = [Some(delay.p50_us), p10, Some(delay.p90_us), Some(delay.max_us)];
                row(name, values, "µs", delay.count);
            }
        }
        table
    }

    /// Writes the results to a directory.
    ///
    /// # Errors
    /// A file could not be written.
    pub fn write(&self, dir: &Path, mut extras: Extras) -> std::result::Result<(), report::Error> {
        extras.tables.insert(0, ("What was measured".to_owned(), self.table()));
        self.results.write_with(dir, &self.histograms, Duration::ZERO, &extras)
    }
}

/// The manufacturer, hardware and software in a reply.
fn description(frame: &[u8]) -> Option<[Scalar; 3]> {
    let texts = match openflow::frame::version(frame)? {
        Version::V1_0 => {
            let (_, message) = v10::Message::parse(frame).ok()?;
            let v10::Message::StatsReply(reply) = message else { return None };
            let v10::StatsReplyBody::Desc(it) = reply.body else { return None };
            [it.mfr_desc.as_str(), it.hw_desc.as_str(), it.sw_desc.as_str()].map(Scalar::from)
        }
        _ => {
            let (_, message) = v13::Message::parse(frame).ok()?;
            let v13::Message::MultipartReply(reply) = message else { return None };
            let v13::MultipartReplyBody::Desc(it) = reply.body else { return None };
            [it.mfr_desc.as_str(), it.hw_desc.as_str(), it.sw_desc.as_str()].map(Scalar::from)
        }
    };
    Some(texts)
}
