//! Tests of `weir reproduce riggio2013` with few runs on Open vSwitch: tenants by VLAN, with real controllers, shapers
//! and TCP. The test checks the spines of the flows, and that more arrives with labels than in the worst case.

use serde_json::Value;

use crate::support::repository;
use crate::support::requirements::{Needs, needs};
use std::process::Command;

#[test]
fn ovs_riggio2013_flows_use_two_spines_with_labels_and_one_spine_at_worst() {
    needs!(ovs_riggio2013_flows_use_two_spines_with_labels_and_one_spine_at_worst:
        Needs::OpenVSwitch, Needs::OsKen, Needs::Program("iperf3"));
    // Weir looks for os-ken in this folder.
    let output = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["reproduce", "riggio2013", "--runs", "1", "--gap", "6", "--side-by-side", "--json"])
        .current_dir(repository())
        .output()
        .expect("start weir");
    let said = String::from_utf8_lossy(&output.stderr);
    // On a busy machine flows may get less bandwidth than they have bought.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{:?}: {said}", output.status);
    assert!(said.contains("with labels: by s1, s2, s1;"), "{said}");
    assert!(said.contains("worst case: by s1, s1, s1;"), "{said}");

    let results: Value = serde_json::from_slice(&output.stdout).expect("result.json");
    let together = |name: &str| -> f64 {
        let points = results["points"].as_array().into_iter().flatten();
        let point = points.into_iter().find(|point| point["system"] == name);
        let value = point.and_then(|it| it["metrics"]["total_mbit_s"]["samples"][0].as_f64());
        value.unwrap_or_else(|| panic!("{name} is not in {results}"))
    };
    let (with, worst) = (together("with labels"), together("without labels, worst case"));
    // A spine carries 10 Mbit/s, counted with VLAN tags. Flows over both spines transfer more than one spine carries.
    assert!(worst < 10.5 && with > worst, "{with} with labels, {worst} without");
}
