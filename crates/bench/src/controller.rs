//! Measures a real controller by emulated switches that dial the controller (`weir bench
//! controller`).
//!
//! This module has the plan of all benchmarks ([`ControllerPlan`]) and runs the benchmarks one
//! after the other. The benchmarks themselves, cbench's modes and the benchmarks of RFC 8456, are
//! in [`rfc8456`](crate::rfc8456), one file each.
//!
//! As the RFC requires, each benchmark has at least ten trials, and reports mean and sample
//! variance with all settings.

pub mod plan;

pub use plan::ControllerPlan;

use crate::kind::{Kind, MAX_STREAMS};
use crate::measure::ceiling;
use crate::plan::{Setup, TlsSides, Version};
use crate::rfc8456::{Context, FRAME_BYTES, Helpers, Need, Test};
use crate::{Error, Verdict};
use report::pace::Pace;
use report::{Environment, Finding, Results, Scalar};
use std::time::Duration;

impl ControllerPlan {
    /// The needs of a test that this plan does not meet with these helpers.
    #[must_use]
    pub fn missing(&self, test: Test, helpers: &Helpers) -> Option<Need> {
        test.needs.iter().copied().find(|need| match need {
            Need::Northbound => helpers.northbound.is_none(),
            Need::Backup => self.backups.is_empty() || helpers.operator.is_none(),
            Need::Loop => !self.layout().has_loops(),
        })
    }

    /// Runs these benchmarks. `talk` gets the current step. A benchmark that cannot be finished is
    /// a finding, and the other benchmarks go on.
    ///
    /// # Errors
    /// [`Error::Setting`] for a bad plan; [`Error::Handshake`] and other errors if nothing could be
    /// measured.
    pub fn run(
        &self,
        tests: &[Test],
        helpers: &mut Helpers,
        talk: &mut dyn FnMut(&str),
    ) -> Result<Verdict, Error> {
        self.check()?;
        let environment =
            Environment::capture(&[("ovs-testcontroller", "ovs-testcontroller", &["--version"])]);
        let mut results = Results::new("bench controller", self.seed, environment);
        results.settings.extend(self.settings());
        if self.trials < 10 {
            results.findings.push(finding(
                "few-trials",
                &format!("{} trials: RFC 8456 asks for at least 10", self.trials),
            ));
        }
        talk("measuring the generator's own ceiling");
        // The generator's own two ends do not use TLS with each other.
        let plain = Setup { tls: TlsSides::default(), ..self.setup(4) };
        let most = ceiling(&plain, Kind::PacketIn, 500)?;
        results.settings.insert("generator_ceiling_per_s".to_owned(), most.into());
        let mut histograms = Vec::new();
        let mut pace = Pace::new(tests.len(), self.test_time());
        let (count, trials) = (tests.len(), self.trials);
        talk(&format!("{count} tests of {trials} trials: {}, more or less", pace.whole()));
        let mut context = Context::new(self, helpers, talk);
        let mut made = 0;
        for &test in tests {
            context.say(&format!("{} of {} ({})", test.name, self.name, pace.step()));
            let measured = match (test.measure)(&mut context) {
                Ok(measured) => measured,
                // The signal that ended the benchmark may have ended the programs that the test
                // needs.
                Err(_) if self.stop.is_asked() => break,
                Err(error) if results.points.is_empty() => return Err(error),
                Err(error) => {
                    let text = format!("{} {}: {error}", self.name, test.name);
                    results.findings.push(finding("not-measured", &text));
                    continue;
                }
            };
            for measurement in measured {
                histograms.extend(measurement.histograms);
                results.findings.extend(measurement.findings);
                results.points.push(measurement.point);
            }
            if self.stop.is_asked() {
                break;
            }
            made += 1;
        }
        if self.stop.is_asked() {
            if results.points.is_empty() {
                return Err(Error::Interrupted);
            }
            let text = format!(
                "interrupted: {made} of {count} tests were made; one more may have fewer trials"
            );
            results.mark_partial(&text);
        }
        let window = Duration::from_millis(self.trial_ms);
        Ok(Verdict { results, histograms, criteria: Vec::new(), window })
    }

    /// The approximate time of a test: some tests send for a fixed time, other tests wait for an
    /// event.
    fn test_time(&self) -> Duration {
        let trials = u32::try_from(self.trials).unwrap_or(u32::MAX);
        Duration::from_millis(self.trial_ms + self.settle_ms + 500).saturating_mul(trials)
    }

    fn check(&self) -> Result<(), Error> {
        use crate::error::setting;
        let rate = |rate: f64| rate.is_finite() && (0.1..=1e7).contains(&rate);
        setting(self.trials >= 1, "trials", self.trials, "at least 1")?;
        setting(
            FRAME_BYTES.contains(&self.frame_bytes),
            "frame bytes",
            self.frame_bytes,
            &format!("{} to {}", FRAME_BYTES.start(), FRAME_BYTES.end()),
        )?;
        setting(rate(self.steady_rate), "steady rate", self.steady_rate, "0.1 to 10000000")?;
        setting(rate(self.traffic_rate), "traffic rate", self.traffic_rate, "0.1 to 10000000")?;
        setting(self.most_sessions >= 1, "most sessions", self.most_sessions, "at least 1")
    }

    fn settings(&self) -> impl Iterator<Item = (String, Scalar)> + use<> {
        let version = if self.version == Version::V1_0 { "1.0" } else { "1.3" };
        let backups: Vec<String> = self.backups.iter().map(ToString::to_string).collect();
        let transport = if self.tls.is_some() { "TLS" } else { "plain TCP" };
        let texts = |all: &mut dyn Iterator<Item = String>| all.collect::<Vec<_>>().join(" ");
        let settings: [(&str, Scalar); 24] = [
            ("controller_name", self.name.clone().into()),
            ("controller_version", self.controller_version.clone().into()),
            ("controller", self.address.to_string().into()),
            ("backup", backups.join(" ").into()),
            ("openflow", version.into()),
            ("connection", format!("{transport}, one version, TCP_NODELAY").into()),
            ("topology", texts(&mut self.layouts.iter().map(ToString::to_string)).into()),
            ("frame_bytes", self.frame_bytes.into()),
            ("timestamps", "where the emulated switches read and write their sockets".into()),
            ("switches", self.switches.into()),
            ("macs_per_switch", self.macs.into()),
            ("trials", self.trials.into()),
            ("trial_ms", self.trial_ms.into()),
            ("limit_ms", self.limit_ms.into()),
            ("settle_ms", self.settle_ms.into()),
            ("query_ms", self.query_ms.into()),
            ("outstanding", self.outstanding.into()),
            ("steady_rate_per_s", self.steady_rate.into()),
            ("traffic_rate_per_s", self.traffic_rate.into()),
            ("attacked", texts(&mut self.attacked().iter().map(ToString::to_string)).into()),
            ("most_sessions", self.most_sessions.into()),
            ("most_switches", u32::from(self.most_switches).into()),
            ("most_flows", self.most_flows.into()),
            ("generator_most_devices", MAX_STREAMS.into()),
        ];
        settings.into_iter().map(|(name, value)| (name.to_owned(), value))
    }
}

fn finding(code: &str, text: &str) -> Finding {
    Finding { code: code.to_owned(), text: text.to_owned() }
}
