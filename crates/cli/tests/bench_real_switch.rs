//! Tests of `weir bench` on Open vSwitch: each message through each system on an existing bridge, which has the same
//! settings afterwards, and comparisons of many tenants.

#![forbid(unsafe_code)]
#![allow(clippy::expect_used, clippy::panic)]

use lab::{FailMode, Lab, LabGuard, Options, Requirements, StateDirectory, Topology};
use report::Results;
use std::process::Command;

#[test]
fn ovs_bench_run_measures_an_existing_bridge_and_restores_the_bridge() {
    if lab::testing::skip(
        "ovs_bench_run_measures_an_existing_bridge_and_restores_the_bridge",
        Requirements::ALL,
    ) {
        return;
    }
    let name = format!("bb{}", std::process::id());
    let folder = std::env::temp_dir().join(format!("weir-{name}"));
    let options = Options {
        state: StateDirectory::at(folder.join("lab")),
        name: Some(name),
        fail_mode: Some(FailMode::Standalone),
        ephemeral: true,
        ..Options::default()
    };
    let topology = Topology::builtin("single,2").expect("a topology");
    let lab = LabGuard::new(Lab::up(&topology, &options).expect("a lab"));
    let switch = lab.open_vswitch().expect("Open vSwitch").clone();
    let here = lab.controller_address().expect("a control channel").to_string();
    let state = || {
        let columns = "--columns=controller,fail_mode,protocols";
        let rules = switch.ofctl(["-O", "OpenFlow13", "dump-flows", "s1", "--no-stats"]);
        (switch.vsctl([columns, "list", "Bridge", "s1"]).expect("its settings"), rules.ok())
    };
    let before = state();
    let channel = |host: &str, port: u16| {
        format!("eth0@{}={port}", lab.namespace(host).expect("a namespace"))
    };
    let out = folder.join("out");
    let bench = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["bench", "run", "--switch", "s1", "--here", &here, "--ovs-rundir"])
            .arg(switch.folder())
            .args(["--channel", &channel("h1", 1), "--channel", &channel("h2", 2)])
            .args(["--runs", "1", "--duration", "0.6", "--cut", "0.1", "--rate", "100"])
            .args(arguments)
            .arg("--out")
            .arg(&out)
            .output()
            .expect("start weir")
    };
    let messages = "packet-in,packet-out,flow-mod,flow-mod-packet,port-stats,echo";
    let output = bench(&["--system", "direct,weir,weir-networks", "--message", messages]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    // Exit code 4: the load generator was late, which depends on the machine.
    assert!(
        matches!(output.status.code(), Some(0 | 4)),
        "{stderr}{}",
        String::from_utf8_lossy(&output.stdout)
    );
    let results = Results::read(&out).expect("result.json");
    assert_eq!(results.points.len(), 6 * 3);
    for point in &results.points {
        let unanswered = point.mean("unanswered_percent");
        assert_eq!(unanswered, Some(0.0), "{} {}", point.system, point.label());
        let is_weir = point.system.starts_with("weir");
        // Weir answers ECHO_REQUESTs itself, and sends PACKET_INs only to controllers.
        let message = point.parameters["message"].to_string();
        let goes_south = !["PACKET_IN", "ECHO"].contains(&message.as_str());
        let own = point.mean("own_messages_percent");
        assert_eq!(own.is_some(), is_weir && goes_south, "{} {message}", point.system);
        assert_eq!(point.mean("cpu_us_per_message").is_some(), is_weir, "{}", point.system);
    }
    assert_eq!(state(), before, "the bridge is as it was");

    let output = bench(&["--system", "direct,weir", "--message", "echo", "--tenants", "2"]);
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{stdout}");
    assert!(stdout.contains("not-measured") && stdout.contains("a switch of its own"), "{stdout}");

    switch.vsctl(["set-controller", "s1", "tcp:127.0.0.1:9"]).expect("a controller");
    let output = bench(&["--system", "direct", "--message", "echo"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("has a controller"), "{stderr}");
    drop(lab);
    let _ = std::fs::remove_dir_all(&folder);
}

#[test]
fn ovs_bench_comparisons_of_many_tenants_run_on_a_real_switch() {
    if lab::testing::skip(
        "ovs_bench_comparisons_of_many_tenants_run_on_a_real_switch",
        Requirements::ALL,
    ) {
        return;
    }
    let folder = std::env::temp_dir().join(format!("weir-comparisons-{}", std::process::id()));
    // Each row has a comparison, the number of its points, and the systems that may have points.
    for (comparison, cases, systems) in [
        ("tenants", 13, &["direct", "haproxy", "weir", "weir-networks"][..]),
        ("isolation-flood", 18, &["direct", "weir", "weir-networks"]),
        ("networks", 13, &["direct", "haproxy", "weir", "weir-networks"]),
        ("labels", 4, &["weir", "weir-labels"]),
    ] {
        let out = folder.join(comparison);
        let output = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["bench", comparison, "--switch", "openvswitch"])
            .args(["--runs", "1", "--duration", "0.3", "--cut", "0.1", "--out"])
            .arg(&out)
            .output()
            .expect("start weir");
        let stdout = String::from_utf8_lossy(&output.stdout);
        let stderr = String::from_utf8_lossy(&output.stderr);
        // Exit code 1: a time criterion is not met. Exit code 4: the load generator was late. Both depend on the
        // machine.
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 1 | 4)), "{comparison}: {stdout}{stderr}");
        let results = Results::read(&out).expect("result.json");
        assert_eq!(results.points.len(), cases, "{comparison}: {stdout}");
        for point in &results.points {
            let case = format!("{comparison} {} {}", point.system, point.label());
            assert!(systems.contains(&point.system.as_str()), "{case}");
            let unanswered = point.mean("unanswered_percent");
            assert!(unanswered.is_some_and(|percent| percent < 100.0), "{case}: {stdout}");
            // A debug build is too slow to add 10,000 rules in the four seconds before the measurement.
            if point.system == "weir-labels" {
                let followed = point.mean("flows_followed");
                assert!(followed.is_some_and(|flows| flows > 0.0), "{case}: {stdout}");
            }
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
}
