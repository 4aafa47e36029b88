//! The inputs and the results of every benchmark.

use super::helpers::Helpers;
use super::traffic::Probe;
use crate::controller::plan::ControllerPlan;
use crate::error::Error;
use crate::measure::Measurement;
use report::{Better, Finding, Metric, Point, Scalar};
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

/// The settings, the helpers, and the receiver of progress messages.
pub(crate) struct Context<'a> {
    pub(crate) plan: &'a ControllerPlan,
    pub(crate) helpers: &'a mut Helpers,
    talk: &'a mut dyn FnMut(&str),
    next_station: u32,
}

impl<'a> Context<'a> {
    pub(crate) fn new(
        plan: &'a ControllerPlan,
        helpers: &'a mut Helpers,
        talk: &'a mut dyn FnMut(&str),
    ) -> Self {
        // A controller remembers the stations of earlier runs, so other processes use other numbers.
        let next_station = (std::process::id() % 0xff) << 24 | 1;
        Self { plan, helpers, talk, next_station }
    }

    pub(crate) fn say(&mut self, text: &str) {
        (self.talk)(text);
    }

    /// Reports the next trial. `None` after the last trial, and if the user has ended the benchmark; the earlier trials
    /// are then the result.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if there was no earlier trial.
    pub(crate) fn next_trial(
        &mut self,
        case: &Case,
        trials: &mut Range<usize>,
    ) -> Result<Option<usize>, Error> {
        let Some(trial) = trials.next() else { return Ok(None) };
        if self.plan.stop.is_asked() {
            return if trial == 0 { Err(Error::Interrupted) } else { Ok(None) };
        }
        let text = format!("{}: trial {} of {}", case.label(), trial + 1, self.plan.trials);
        self.say(&text);
        Ok(Some(trial))
    }

    /// A station number that was not used before.
    pub(crate) fn station(&mut self) -> u32 {
        let station = self.next_station;
        self.next_station = self.next_station.wrapping_add(1);
        station
    }

    /// Two stations that the controller does not know.
    pub(crate) fn probe(&mut self) -> Probe {
        Probe { near: self.station(), far: self.station() }
    }

    /// Waits for the pause that the controller needs between two trials.
    pub(crate) fn rest(&self) {
        std::thread::sleep(Duration::from_millis(self.plan.settle_ms));
    }

    /// The longest wait of one trial.
    pub(crate) fn limit(&self) -> Duration {
        Duration::from_millis(self.plan.limit_ms)
    }

    /// The sending time of one trial, if the trial sends for a fixed time.
    pub(crate) fn trial(&self) -> Duration {
        Duration::from_millis(self.plan.trial_ms)
    }
}

/// A benchmark and its conditions: the parameters of a point.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) parameters: Vec<(&'static str, Scalar)>,
    pub(crate) trouble: super::trouble::Trouble,
}

impl Case {
    /// The benchmark of this name, without a disturbance.
    pub(crate) fn plain(test: &'static str) -> Self {
        let trouble = super::trouble::Trouble::None;
        Self { parameters: vec![("test", test.into())], trouble }
    }

    /// Adds a parameter.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Scalar>) -> Self {
        self.parameters.push((name, value.into()));
        self
    }

    pub(crate) fn label(&self) -> String {
        let parts = self.parameters.iter().map(|(name, value)| match *name {
            "test" => value.to_string(),
            _ => format!("{name}={value}"),
        });
        parts.collect::<Vec<_>>().join(" ")
    }
}

/// The samples of one point during the measurement.
pub(crate) struct Sheet {
    point: Point,
    label: String,
    samples: BTreeMap<&'static str, (&'static str, Better, Vec<f64>)>,
    findings: Vec<Finding>,
}

impl Sheet {
    pub(crate) fn new(context: &Context<'_>, case: &Case) -> Self {
        let point = Point::new(&context.plan.name, case.parameters.iter().cloned());
        let label = format!("{} {}", context.plan.name, case.label());
        Self { point, label, samples: BTreeMap::new(), findings: Vec::new() }
    }

    /// Adds a figure of one trial.
    pub(crate) fn sample(
        &mut self,
        name: &'static str,
        unit: &'static str,
        better: Better,
        value: f64,
    ) {
        self.samples.entry(name).or_insert_with(|| (unit, better, Vec::new())).2.push(value);
    }

    /// Adds a time of one trial, given in ns.
    pub(crate) fn time(&mut self, name: &'static str, ns: u64) {
        self.sample(name, "ms", Better::Lower, ns as f64 / 1e6);
    }

    /// Adds a finding. A finding that occurs in every trial is reported once.
    pub(crate) fn finding(&mut self, code: &str, text: &str) {
        let text = format!("{}: {text}", self.label);
        let finding = Finding { code: code.to_owned(), text };
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    /// Reports connections that the controller should not have closed.
    pub(crate) fn with_closed_connections(mut self, fabric: &super::fabric::Fabric) -> Self {
        match fabric.closed() {
            0 => {}
            count => self.finding("connection-closed", &format!("connections ended {count} times")),
        }
        self
    }

    pub(crate) fn finish(mut self) -> Measurement {
        for (name, (unit, better, samples)) in self.samples {
            self.point.metrics.insert(name.to_owned(), Metric::new(unit, better, samples));
        }
        Measurement { point: self.point, histograms: Vec::new(), findings: self.findings }
    }
}
