//! What the tests share: an emulated switch with planted faults, and one run.

#![allow(dead_code, clippy::unwrap_used, reason = "each test file uses some of it")]

use std::sync::atomic::AtomicBool;

use emulate::{Config, Fault};
use evaluate::{Emulated, Experiment, Hardware, Outcome, RunOptions, run};
use openflow::Version;

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const VERSIONS: [Version; 2] = [Version::V1_0, Version::V1_3];

pub(crate) fn never() -> &'static AtomicBool {
    static NEVER: AtomicBool = AtomicBool::new(false);
    &NEVER
}

/// A switch with three ports.
pub(crate) fn config(faults: &[Fault]) -> Config {
    Config { faults: faults.to_vec(), ..Config::new(7, 3) }
}

pub(crate) fn testbed(version: Version, config: Config, hardware: Hardware) -> Emulated {
    Emulated::new(config, hardware, version).unwrap()
}

/// Runs to the end on an emulated switch, which is then as it was.
#[track_caller]
pub(crate) fn measure(
    version: Version,
    config: Config,
    hardware: Hardware,
    experiment: &dyn Experiment,
) -> Outcome {
    let mut testbed = testbed(version, config, hardware);
    let outcome =
        run(&mut testbed, experiment.module().as_mut(), &RunOptions::new(never())).unwrap();
    assert_eq!(testbed.switch().flow_count(), 0, "entries are left");
    outcome
}

/// The codes of the findings.
pub(crate) fn codes(outcome: &Outcome) -> Vec<&str> {
    outcome.record.findings().iter().map(|finding| finding.code.as_str()).collect()
}
