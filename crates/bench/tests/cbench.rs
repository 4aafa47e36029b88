//! A test that compares the benchmark with cbench, if cbench is installed (Debian has no package of cbench). Both
//! programs run in throughput mode with the same controller, in turn. The test prints both rates. Which rate is higher
//! depends on the controller, so the test asserts only that both rates are above 0.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "test code")]

#[path = "common/controller.rs"]
mod controller;

use bench::rfc8456::Helpers;
use bench::{ControllerPlan, Test, Version};
use controller::Controller;
use std::process::Command;

const SWITCHES: usize = 4;
const MACS: u32 = 100;

/// The average of cbench's last line: `RESULT: 4 switches 3 tests min/max/avg/stdev = 1/2/3/4 responses/s`.
fn cbench_average(output: &str) -> Option<f64> {
    let line = output.lines().rfind(|line| line.starts_with("RESULT:"))?;
    let figures = line.split(" = ").nth(1)?.split_whitespace().next()?;
    figures.split('/').nth(2)?.parse().ok()
}

#[test]
fn the_average_rate_is_parsed_from_the_output_of_cbench() {
    let output = "16 switches: flows/sec: 5  7\nRESULT: 16 switches 9 tests \
                  min/max/avg/stdev = 200.5/300.0/250.25/12.0 responses/s\n";
    assert_eq!(cbench_average(output), Some(250.25));
    assert_eq!(cbench_average("cbench: controller is not there"), None);
}

#[test]
fn cbench_and_weir_both_measure_throughput_of_ovs_testcontroller() {
    if Command::new("cbench").arg("-h").output().is_err() {
        // There is no package of cbench, so cbench may be missing on a machine that must have all other programs.
        let word = if std::env::var_os("CI").is_some() { "not compared:" } else { "SKIPPED" };
        eprintln!(
            "{word} cbench_and_weir_both_measure_throughput_of_ovs_testcontroller: cbench is not installed, and is no Debian package"
        );
        return;
    }
    let program = ("ovs-testcontroller", "openvswitch-testcontroller");
    if lab::testing::skip_without(
        "cbench_and_weir_both_measure_throughput_of_ovs_testcontroller",
        &[program],
    ) {
        return;
    }
    let controller = Controller::ovs_testcontroller();
    let address = controller.address;
    let output = Command::new("cbench")
        .args(["-c", "127.0.0.1", "-p", &address.port().to_string(), "-t"])
        .args(["-s", &SWITCHES.to_string(), "-M", &MACS.to_string(), "-m", "1000", "-l", "3"])
        .output()
        .unwrap();
    let theirs = cbench_average(&String::from_utf8_lossy(&output.stdout));
    let plan = ControllerPlan {
        switches: SWITCHES,
        macs: MACS,
        trials: 3,
        trial_ms: 1_000,
        ..ControllerPlan::new("ovs-testcontroller", address, Version::V1_0)
    };
    let throughput: Test = "throughput".parse().unwrap();
    let verdict = plan.run(&[throughput], &mut Helpers::default(), &mut |_| {}).unwrap();
    let ours = verdict.results.points[0].mean("rate_per_s");
    drop(controller);
    eprintln!("answers per second: cbench {theirs:?}, weir {ours:?}");
    assert!(theirs.is_some_and(|rate| rate > 0.0) && ours.is_some_and(|rate| rate > 0.0));
}
