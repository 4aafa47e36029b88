//! Tests of the command `weir fabric simulate`: its output, files and exit status.

#![forbid(unsafe_code)]
#![allow(clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn fabric_simulate_prints_and_writes_repeatable_results() {
    let out = std::env::temp_dir().join(format!("weir-fabric-{}", std::process::id()));
    let arguments = "fabric simulate fattree,4 --tenants 8 --quick --intervals 0.1,5 --json --out";
    let run = || {
        let output = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(arguments.split(' '))
            .arg(&out)
            .output()
            .expect("start weir");
        let results: serde_json::Value =
            serde_json::from_slice(&output.stdout).expect("result.json on stdout");
        let said = results["findings"].as_array().expect("findings");
        let is_below = said.iter().any(|finding| finding["code"] == "below-target");
        assert_eq!(output.status.code(), Some(i32::from(is_below)), "{results}");
        results
    };
    let results = run();
    let written: serde_json::Value =
        serde_json::from_slice(&fs::read(out.join("result.json")).expect("result.json"))
            .expect("JSON");
    assert_eq!(written, results);
    for file in ["metrics.csv", "report.html", "figures/intervals.svg", "figures/course.svg"] {
        check_is_there(&out.join(file));
    }
    assert_eq!(run()["points"], results["points"], "the same seed gives the same result");
    let _ = fs::remove_dir_all(&out);

    // Two methods without labels, and three methods with labels at two intervals each.
    let points = results["points"].as_array().expect("points");
    assert_eq!(points.len(), 2 + 3 * 2);
    let reached = |system: &str, interval: Option<f64>| {
        let point = points.iter().find(|point| {
            point["system"] == system && point["parameters"]["labels_every_s"].as_f64() == interval
        });
        let point = point.unwrap_or_else(|| panic!("no {system} every {interval:?}"));
        point["metrics"]["optimum_percent"]["mean"].as_f64().expect("a mean")
    };
    let hashing = reached("equal-cost", None);
    let [fresh, old] = [0.1, 5.0].map(|interval| reached("labels, damped", Some(interval)));
    assert!(hashing < old && old < fresh && fresh <= 100.0, "{hashing} {old} {fresh}");
}

fn check_is_there(file: &Path) {
    let length = fs::metadata(file).map_or(0, |metadata| metadata.len());
    assert!(length > 100, "{} has {length} bytes", file.display());
}
