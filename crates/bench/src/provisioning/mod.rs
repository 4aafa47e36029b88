//! Measures how fast a tenant's own big network starts, and how fast its links move when a physical link fails.
//!
//! ```text
//!   Fabric: emulated switches ◀── OpenFlow ──▶ system under test ◀── OpenFlow ──▶ Tenant: its controller
//!   (every change of a table is timed)            ▲
//!                                                 └── REST: one request ── Stage
//! ```
//!
//! The measurement has the user's view. One request defines the network. The network has started when every rule is in
//! the switches' tables and acknowledged by a barrier, and when the tenant's controller has completed the handshake
//! with every virtual switch and sees every port up. Then the paths that the system reports are compared with the
//! tables, and a packet is sent over each link in each direction, before and after the failure, too. A packet that does
//! not arrive is a finding.
//!
//! Start reading at [`Provisioning::run`], then `trial` (one run); `shape` has the requested networks.

mod case;
mod fabric;
mod present;
mod shape;
mod tenant;
mod trial;

use crate::comparison::{Criterion, Verdict};
use crate::criterion;
use crate::error::{Error, setting};
use crate::plan::Version;
use case::CASES;
use report::pace::Pace;
use report::{Better, Environment, Finding, Metric, Point, Results};
use std::collections::BTreeMap;
use std::time::Duration;
use trial::Found;

pub use case::Provisioning;
pub use present::{table, write};

/// The approximate time of a run. Most of this time is to start the switches and to wait until nothing changes any
/// more.
const A_RUN: Duration = Duration::from_secs(8);

/// The figure that the criteria judge.
const TOTAL: &str = "total ms";

impl Provisioning {
    /// Checks the settings.
    ///
    /// # Errors
    /// [`Error::Setting`].
    pub fn check(&self) -> Result<(), Error> {
        let least = shape::LEAST_SWITCHES;
        let switches = (least..=1000).contains(&self.switches);
        setting(switches, "switches", self.switches, &format!("{least} to 1000"))?;
        for (name, links) in [("links", self.links), ("reroute", self.reroute)] {
            // A physical link has 2,000 tags by default.
            setting((1..=2000).contains(&links), name, links, "1 to 2000")?;
        }
        setting((1..=1000).contains(&self.runs), "runs", self.runs, "1 to 1000")
    }

    /// Measures all cases in turn, for the requested number of runs. `talk` gets the current step.
    ///
    /// # Errors
    /// The errors of [`check`](Provisioning::check); [`Error::System`] if the system does not start, refuses a request,
    /// or ends.
    pub fn run(&self, talk: &mut dyn FnMut(&str)) -> Result<Verdict, Error> {
        self.check()?;
        let mut results = Results::new("bench provisioning", self.seed, Environment::capture(&[]));
        let openflow = if self.version == Version::V1_0 { "1.0" } else { "1.3" };
        let settings = [
            ("switches", self.switches.into()),
            ("links", self.links.into()),
            ("reroute", self.reroute.into()),
            ("runs", self.runs.into()),
            ("openflow", openflow.into()),
            ("start_limit_ms", self.start_limit_ms.into()),
            ("reroute_limit_ms", self.reroute_limit_ms.into()),
        ];
        results.settings.extend(settings.map(|(name, value)| (name.to_owned(), value)));
        let mut runs: Vec<Vec<Found>> = CASES.iter().map(|_| Vec::new()).collect();
        let wanted = self.runs * CASES.len();
        let mut pace = Pace::new(wanted, A_RUN);
        talk(&format!("{} cases, {} times each: {}", CASES.len(), self.runs, pace.whole()));
        let mut made = 0;
        'runs: for run in 0..self.runs {
            for (case, found) in CASES.iter().zip(&mut runs) {
                let (label, step) = (case.point(self).label(), pace.step());
                talk(&format!("run {} of {}: {label} ({step})", run + 1, self.runs));
                let seed = self.seed.wrapping_add(run as u64);
                let dir = self.work_dir.join(format!("run-{run}"));
                match trial::run(self, *case, seed, &dir) {
                    // The signal that ended the measurement may have ended the system as well.
                    _ if self.stop.is_asked() => break 'runs,
                    outcome => found.push(outcome?),
                }
                made += 1;
            }
        }
        if self.stop.is_asked() {
            if made == 0 {
                return Err(Error::Interrupted);
            }
            results.mark_partial(&format!("interrupted: {made} of {wanted} runs were made"));
        }
        let criteria = self.judge(&mut results, &runs);
        Ok(Verdict { results, histograms: Vec::new(), criteria, window: Duration::ZERO })
    }

    /// Writes the figures into the results, and judges the criteria.
    fn judge(&self, results: &mut Results, runs: &[Vec<Found>]) -> Vec<Criterion> {
        let mut criteria = Vec::new();
        let finding = |code: &str, text: String| Finding { code: code.to_owned(), text };
        for (case, found) in CASES.iter().zip(runs) {
            if found.is_empty() {
                continue;
            }
            let point = case.point(self);
            let label = point.label();
            let totals: Option<Vec<f64>> = found.iter().map(|it| it.figure(TOTAL)).collect();
            let slowest = totals.and_then(|all| all.into_iter().reduce(f64::max));
            let name = format!("{label}: the slowest run, ms");
            let criterion = Criterion::at_most(name, slowest, case.limit(self));
            criteria.push(Criterion { is_valid: !results.is_partial(), ..criterion });
            for (run, found) in (1..).zip(found) {
                let say = |text| finding("not-as-wanted", format!("{label}: run {run}: {text}"));
                results.findings.extend(found.wrong.iter().map(say));
            }
            results.points.push(gather(point, found));
        }
        results.findings.extend(criterion::findings(&criteria));
        criteria
    }
}

impl Found {
    fn figure(&self, name: &str) -> Option<f64> {
        self.figures.iter().find(|(known, _)| *known == name).and_then(|(_, value)| *value)
    }
}

/// A point with one sample per run.
fn gather(mut point: Point, found: &[Found]) -> Point {
    let mut samples: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for run in found {
        for (name, value) in &run.figures {
            samples.entry((*name).to_owned()).or_default().extend(*value);
        }
        let cpu = run.cpu.iter().filter(|(_, ms)| **ms > 0.0);
        for (name, ms) in cpu {
            samples.entry(format!("cpu {name} ms")).or_default().push(*ms);
        }
        let system = run.cpu.iter().filter(|(name, _)| name.starts_with("system"));
        samples.entry(CPU.to_owned()).or_default().push(system.map(|(_, ms)| ms).sum());
    }
    for (name, samples) in samples {
        // Stable names, as in other results: `total_ms`, in ms.
        let is_time = name.ends_with(" ms");
        let (unit, better) = if is_time { ("ms", Better::Lower) } else { ("", Better::Neither) };
        point.metrics.insert(name.replace(' ', "_"), Metric::new(unit, better, samples));
    }
    point
}

/// CPU time of the whole system under test.
const CPU: &str = "cpu ms";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stop::Stop;
    use std::path::PathBuf;

    fn plan() -> Provisioning {
        Provisioning {
            command: Vec::new(),
            switches: 100,
            links: 500,
            reroute: 1000,
            version: Version::V1_3,
            runs: 2,
            start_limit_ms: 2000.0,
            reroute_limit_ms: 1000.0,
            seed: 1,
            work_dir: PathBuf::new(),
            stop: Stop::default(),
        }
    }

    /// Checks the totals of two runs of each case, other faults, and the codes of the findings.
    #[track_caller]
    fn check(totals: [[Option<f64>; 2]; 4], wrong: &str, codes: &[&str]) {
        let found = |total: Option<f64>| Found {
            figures: vec![(TOTAL, total), ("changes", Some(3.0))],
            cpu: BTreeMap::from([
                ("system shard-0".to_owned(), 2.0),
                ("generator".to_owned(), 5.0),
            ]),
            wrong: wrong.split_terminator(';').map(str::to_owned).collect(),
        };
        let runs = totals.map(|runs| runs.map(found).into());
        let mut results = Results::new("t", 1, Environment::capture(&[]));
        let criteria = plan().judge(&mut results, &runs);
        assert_eq!((criteria.len(), results.points.len()), (4, 4));
        let found: Vec<&str> = results.findings.iter().map(|it| it.code.as_str()).collect();
        assert_eq!(found, codes);
        assert_eq!(results.points[0].mean("cpu_ms"), Some(2.0));
        assert_eq!(results.points[0].mean("cpu_generator_ms"), Some(5.0));
        assert_eq!(table(&results).to_string().lines().count(), 1 + 4);
    }

    #[test]
    fn each_run_must_meet_the_time_limit_and_faults_are_findings() {
        let good = [Some(900.0), Some(1000.0)];
        check([good; 4], "", &[]);
        check([good, [Some(2000.0), Some(1999.0)], good, good], "", &[]);
        check([good, good, good, [Some(1.0), Some(1001.0)]], "", &["criterion-not-met"]);
        // A start that never completed is not in time.
        check([[Some(1.0), None], good, good, good], "", &["criterion-not-met"]);
        check([good; 4], "a port is down", &["not-as-wanted"; 8]);
    }

    #[test]
    fn provisioning_settings_outside_the_range_are_refused() {
        let error = |plan: Provisioning| plan.check().unwrap_err().to_string();
        assert!(plan().check().is_ok());
        assert!(error(Provisioning { switches: 8, ..plan() }).contains("9 to 1000"));
        assert!(error(Provisioning { reroute: 2001, ..plan() }).contains("reroute is 2001"));
        assert!(error(Provisioning { runs: 0, ..plan() }).contains("runs"));
    }
}
