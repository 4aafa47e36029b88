//! Tests of `weir bench provisioning`: a small network starts and is rerouted through the real program, in both
//! OpenFlow versions.

#![forbid(unsafe_code)]
#![allow(clippy::expect_used, clippy::panic)]

use report::Results;
use std::fs;
use std::process::{Command, Output, Stdio};

fn weir(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["bench", "provisioning"])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("start weir bench")
}

#[track_caller]
fn check(version: &str) {
    let out = std::env::temp_dir().join(format!("weir-move-{version}-{}", std::process::id()));
    let folder = out.display().to_string();
    // The limits are high, because the test does not judge times: it runs beside other tests, and without optimization.
    let small = ["--switches", "9", "--links", "12", "--reroute", "20", "--runs", "1"];
    let limits = ["--start-limit", "60", "--reroute-limit", "60", "--openflow", version];
    let output = weir(&[&small[..], &limits, &["--out", &folder]].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{stderr}{stdout}");
    assert_eq!(stdout.matches("  met").count(), 4, "{stdout}");
    let results = Results::read(&out).expect("result.json");
    for file in ["report.html", "metrics.csv"] {
        assert!(out.join(file).exists(), "{file}");
    }
    let _ = fs::remove_dir_all(out);
    let labels: Vec<String> = results.points.iter().map(report::Point::label).collect();
    assert_eq!(labels.len(), 4);
    for (point, label) in results.points.iter().zip(labels) {
        let mean = |metric: &str| point.mean(metric);
        assert!(mean("total_ms").is_some_and(|ms| ms > 0.0), "{label}");
        assert!(mean("changes") >= Some(40.0) || label.contains("start"), "{label}");
        // Each link that crosses the failed physical link has moved.
        let moved = label.contains("reroute").then_some(20.0);
        assert_eq!(mean("moved"), moved, "{label}");
        // The switches have at least one entry for each direction of each of the 12 links.
        assert!(mean("entries") >= Some(24.0), "{label}: {:?}", mean("entries"));
        assert!(mean("cpu_ms") > Some(0.0), "{label}");
    }
}

#[test]
fn bench_provisioning_starts_and_reroutes_a_network_on_1_3() {
    check("1.3");
}

#[test]
fn bench_provisioning_starts_and_reroutes_a_network_on_1_0() {
    check("1.0");
}

#[test]
fn wrong_arguments_are_refused() {
    for (arguments, word) in [
        (["--switches", "8"], "9..=1000"),
        (["--reroute", "0"], "1..=2000"),
        (["--openflow", "1.1"], "1.1"),
        (["--start-limit", "soon"], "soon"),
    ] {
        let output = weir(&arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(word), "no {word:?} in {stderr}");
    }
}
