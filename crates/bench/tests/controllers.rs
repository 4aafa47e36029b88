//! Tests of the controller benchmarks with real controllers: `ovs-testcontroller` (Debian package
//! openvswitch-testcontroller) and os-ken. The tests assert counts, never times.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "test code")]

#[path = "common/controller.rs"]
mod controller;
#[path = "../../channel/tests/common/mod.rs"]
mod pki;

use bench::rfc8456::Helpers;
use bench::rfc8456::helpers::{NorthboundCommand, OperatorCommands};
use bench::{ControllerPlan, Identity, Test, Verdict, Version};
use channel::TlsFiles;
use controller::Controller;
use pki::Pki;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

impl Controller {
    fn plan(&self, name: &str, version: Version) -> ControllerPlan {
        ControllerPlan {
            pid: Some(self.child.id()),
            switches: 3,
            macs: 10,
            trials: 2,
            trial_ms: 200,
            limit_ms: 10_000,
            settle_ms: 300,
            query_ms: 300,
            steady_rate: 100.0,
            highest_rate: 1_000.0,
            most_sessions: 8,
            ..ControllerPlan::new(name, self.address, version)
        }
    }
}

/// Runs a command that must succeed.
fn shell(command: &str) {
    assert!(Command::new("sh").args(["-c", command]).status().unwrap().success(), "{command}");
}

/// A shell command that runs when this value is dropped.
struct AtEnd(String);

impl Drop for AtEnd {
    fn drop(&mut self) {
        shell(&self.0);
    }
}

fn has_ovs_testcontroller(test: &str) -> bool {
    let program = ("ovs-testcontroller", "openvswitch-testcontroller");
    !lab::testing::skip_without(test, &[program])
}

/// A Python with os-ken. Without such a Python, the test fails on machines that must have all programs.
fn python(test: &str) -> Option<PathBuf> {
    let python = std::env::var_os("WEIR_PYTHON")
        .map_or_else(|| repository().join(".venv/bin/python"), PathBuf::from);
    let has = Command::new(&python).args(["-c", "import os_ken"]).output();
    if has.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    let what = "a Python with os-ken is missing";
    assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "{test}: {what}");
    eprintln!("SKIPPED {test}: {what}");
    None
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn run(plan: &ControllerPlan, tests: &[&str], helpers: &mut Helpers) -> Verdict {
    let tests: Vec<Test> = tests.iter().map(|name| name.parse().unwrap()).collect();
    for test in &tests {
        assert_eq!(plan.missing(*test, helpers), None, "{test:?}");
    }
    let verdict = plan.run(&tests, helpers, &mut |_| {}).unwrap();
    assert!(verdict.results.findings.iter().any(|finding| finding.code == "few-trials"));
    verdict
}

/// Asserts that all points of the benchmark `test` have the given figures, each with a mean above 0.
#[track_caller]
fn check(verdict: &Verdict, test: &str, figures: &[&str]) {
    let points = &verdict.results.points;
    let of = report::Scalar::from(test);
    let mut these = points.iter().filter(|point| point.parameters["test"] == of).peekable();
    assert!(these.peek().is_some(), "no {test} in {points:?}");
    for point in these {
        for figure in figures {
            let found = format!("{figure} of {}: {:?}", point.label(), verdict.results.findings);
            assert!(point.mean(figure).is_some_and(|mean| mean > 0.0), "{found}");
        }
    }
}

/// Asserts that the findings are exactly the expected findings.
#[track_caller]
fn check_findings(verdict: &Verdict, expected: &[&str]) {
    // These findings come from few trials or from a busy machine, not from the controller.
    let own = ["few-trials", "generator-behind"];
    let findings = verdict.results.findings.iter().map(|finding| finding.code.as_str());
    let mut codes: Vec<&str> = findings.filter(|code| !own.contains(code)).collect();
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes, expected, "{:?}", verdict.results.findings);
}

#[test]
fn ovs_testcontroller_is_measured_over_tls() {
    let name = "ovs_testcontroller_is_measured_over_tls";
    let (true, Some(pki)) = (has_ovs_testcontroller(name), Pki::new(name)) else { return };
    let own = pki.controller();
    let controller = Controller::ovs_testcontroller_as("pssl", |command| {
        let files = [&own.private_key, &own.certificate, &own.ca_certificate];
        for (option, file) in ["--private-key", "--certificate", "--ca-cert"].iter().zip(files) {
            command.arg(format!("{option}={}", file.display()));
        }
    });
    let mut plan = controller.plan("ovs-testcontroller", Version::V1_3);
    let TlsFiles { private_key, certificate, ca_certificate } = pki.switch();
    plan.tls = Some(Identity { private_key, certificate, ca: ca_certificate });
    let verdict = run(&plan, &["latency", "reactive-path-time"], &mut Helpers::default());
    check(&verdict, "latency", &["p50_us"]);
    check(&verdict, "reactive-path-time", &["path_ms", "first_packet_ms"]);
    check_findings(&verdict, &[]);
    let connection = verdict.results.settings["connection"].to_string();
    assert!(connection.starts_with("TLS"), "{connection}");
}

#[test]
fn ovs_testcontroller_is_measured_in_latency_and_throughput_mode() {
    if !has_ovs_testcontroller("ovs_testcontroller_is_measured_in_latency_and_throughput_mode") {
        return;
    }
    let controller = Controller::ovs_testcontroller();
    for version in [Version::V1_0, Version::V1_3] {
        let plan = controller.plan("ovs-testcontroller", version);
        let verdict = run(&plan, &["latency", "throughput"], &mut Helpers::default());
        for test in ["latency", "throughput"] {
            check(&verdict, test, &["rate_per_s", "p50_us"]);
        }
    }
}

#[test]
fn ovs_testcontroller_provisions_paths_but_has_no_topology_discovery() {
    if !has_ovs_testcontroller("ovs_testcontroller_provisions_paths_but_has_no_topology_discovery")
    {
        return;
    }
    let controller = Controller::ovs_testcontroller();
    for version in [Version::V1_0, Version::V1_3] {
        let mut plan = controller.plan("ovs-testcontroller", version);
        // Other tests can leave the controller no core for the 200 ms of a short trial.
        plan.trial_ms = 1_000;
        let paths = ["reactive-path-time", "reactive-path-rate"];
        let verdict = run(&plan, &paths, &mut Helpers::default());
        check(&verdict, "reactive-path-time", &["path_ms", "first_packet_ms", "flow_mods"]);
        check(&verdict, "reactive-path-rate", &["paths_per_s", "flow_mods_per_path"]);
        check_findings(&verdict, &[]);
        plan.limit_ms = 500;
        let discovery = ["discovery-time", "change-detection", "discovery-size"];
        check_findings(&run(&plan, &discovery, &mut Helpers::default()), &["no-discovery"]);
    }
}

#[test]
fn ovs_testcontroller_session_limit_and_table_capacity_are_measured() {
    if !has_ovs_testcontroller("ovs_testcontroller_session_limit_and_table_capacity_are_measured") {
        return;
    }
    let controller = Controller::ovs_testcontroller();
    let mut plan = controller.plan("ovs-testcontroller", Version::V1_0);
    let verdict = run(&plan, &["sessions", "rate"], &mut Helpers::default());
    check(&verdict, "sessions", &["sessions"]);
    check_findings(&verdict, &["at-upper-bound"]);
    // `ovs-testcontroller` is built with MAX_SWITCHES 16, and closes every further connection.
    (plan.most_sessions, plan.handshake_ms, plan.trials) = (40, 1_000, 1);
    let verdict = run(&plan, &["sessions"], &mut Helpers::default());
    assert_eq!(verdict.results.points[0].mean("sessions"), Some(16.0));

    (plan.most_flows, plan.steady_rate) = (60, 1_000.0);
    let verdict = run(&plan, &["table-capacity"], &mut Helpers::default());
    assert_eq!(verdict.results.points[0].mean("flow_entries"), Some(60.0));
}

#[test]
fn ovs_testcontroller_is_measured_with_malformed_messages_and_attacks() {
    if !has_ovs_testcontroller("ovs_testcontroller_is_measured_with_malformed_messages_and_attacks")
    {
        return;
    }
    let controller = Controller::ovs_testcontroller();
    let mut plan = controller.plan("ovs-testcontroller", Version::V1_3);
    plan.limit_ms = 500;
    let verdict = run(&plan, &["exceptions", "denial-of-service"], &mut Helpers::default());
    for test in ["exceptions", "denial-of-service"] {
        let of = report::Scalar::from(test);
        let points = verdict.results.points.iter();
        let points: Vec<_> = points.filter(|point| point.parameters["test"] == of).collect();
        // Each of three benchmarks has three points, and the benchmark without discovery has one point.
        assert_eq!(points.len(), 10, "{test}");
        for (benchmark, figure) in [
            ("reactive-path-time", "path_ms"),
            ("reactive-path-rate", "paths_per_s"),
            ("latency", "p50_us"),
        ] {
            let of = report::Scalar::from(benchmark);
            let these = points.iter().filter(|point| point.parameters["of"] == of);
            let means: Vec<_> = these.filter_map(|point| point.mean(figure)).collect();
            assert!(means.len() == 3 && means.iter().all(|mean| *mean > 0.0), "{means:?}");
        }
    }
}

#[test]
fn ovs_testcontroller_failover_to_a_backup_is_measured() {
    if !has_ovs_testcontroller("ovs_testcontroller_failover_to_a_backup_is_measured") {
        return;
    }
    let backup = Controller::ovs_testcontroller();
    // The shell commands start and end the first controller.
    let mut active = Controller::ovs_testcontroller();
    let _ = active.child.kill().and_then(|()| active.child.wait().map(drop));
    let port = active.address.port();
    let pid_file = std::env::temp_dir().join(format!("weir-bench-controller-{port}.pid"));
    let pid_path = pid_file.display();
    let restore = format!(
        "ovs-testcontroller ptcp:{port}:127.0.0.1 --unixctl={} >/dev/null 2>&1 & echo $! > {pid_path}",
        active.leftovers[0].display()
    );
    let fail = format!("kill -9 $(cat {pid_path})");
    active.leftovers.push(pid_file.clone());
    shell(&restore);
    let end = AtEnd(fail.clone());
    active.wait_listening();
    let mut plan = active.plan("ovs-testcontroller", Version::V1_0);
    (plan.pid, plan.backups) = (None, vec![backup.address]);
    let operator = OperatorCommands { fail, restore };
    let mut helpers = Helpers { operator: Some(Box::new(operator)), ..Helpers::default() };
    let verdict = run(&plan, &["failover"], &mut helpers);
    // The controller was started again after the last trial.
    drop(end);
    // Both controllers are always active, so the gap is only the distance of two packets.
    check(&verdict, "failover", &["gap_ms", "spacing_ms"]);
    check_findings(&verdict, &[]);
}

#[test]
fn os_ken_is_measured_in_latency_and_throughput_mode() {
    let Some(python) = python("os_ken_is_measured_in_latency_and_throughput_mode") else { return };
    let app = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/os_ken_switch.py");
    let controller = Controller::start(|port| {
        let mut command = Command::new(&python);
        command.arg(app).arg(port.to_string()).stdout(Stdio::null());
        command
    });
    let plan = controller.plan("os-ken", Version::V1_3);
    let verdict = run(&plan, &["latency", "throughput"], &mut Helpers::default());
    for test in ["latency", "throughput"] {
        check(&verdict, test, &["rate_per_s", "p50_us"]);
    }
}

#[test]
fn os_ken_discovery_provisioning_and_rerouting_are_measured() {
    let Some(python) = python("os_ken_discovery_provisioning_and_rerouting_are_measured") else {
        return;
    };
    let folder = std::env::temp_dir().join(format!("weir-bench-os-ken-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (orders, answers) = (folder.join("orders"), folder.join("answers"));
    let made = Command::new("mkfifo").args([&orders, &answers]).status().unwrap();
    assert!(made.success());
    // The file is opened for reading and writing, so that opening does not wait for the other end.
    let open = |path: &Path| std::fs::File::options().read(true).write(true).open(path).unwrap();
    let (stdin, stdout) = (open(&orders), open(&answers));
    for version in [Version::V1_0, Version::V1_3] {
        let (stdin, stdout) = (stdin.try_clone().unwrap(), stdout.try_clone().unwrap());
        let controller = Controller::start(|port| {
            let mut command = Command::new(&python);
            command.arg(repository().join("examples/os-ken/run.py")).arg("shortest_path");
            command.args(["--listen", &format!("127.0.0.1:{port}")]);
            command.stdin(stdin).stdout(stdout);
            command
        });
        let mut plan = controller.plan("os-ken", version);
        plan.layouts = vec!["ring,4".parse().unwrap()];
        (plan.most_switches, plan.limit_ms) = (5, 20_000);
        // Before the first packet os-ken must know all links. On busy cores it takes longer than the other controllers.
        plan.settle_ms = 1_000;
        let northbound = format!("cat {} & cat > {}", answers.display(), orders.display());
        let northbound = NorthboundCommand::start(&northbound).unwrap();
        let mut helpers = Helpers { northbound: Some(Box::new(northbound)), ..Helpers::default() };
        for (test, figures) in [
            ("discovery-time", &["discovery_ms", "discovery_messages", "confirmed_ms"][..]),
            ("reactive-path-time", &["path_ms", "first_packet_ms"]),
            ("proactive-path-time", &["path_ms", "first_packet_ms"]),
            ("reactive-path-rate", &["paths_per_s"]),
            ("proactive-path-rate", &["paths_per_s"]),
            ("change-detection", &["detection_ms"]),
            ("reprovisioning", &["reprovisioning_ms", "control_ms", "lost_forward"]),
        ] {
            // A path counts as lost after a second. On busy cores os-ken takes longer for many paths at a time.
            if test.ends_with("path-rate") {
                (plan.trial_ms, plan.outstanding) = (4_000, 4);
            } else {
                plan.trial_ms = 1_500;
            }
            let verdict = run(&plan, &[test], &mut helpers);
            check(&verdict, test, figures);
            check_findings(&verdict, &[]);
        }
        let verdict = run(&plan, &["discovery-size"], &mut helpers);
        assert_eq!(verdict.results.points[0].mean("switches"), Some(5.0));
        check_findings(&verdict, &["at-upper-bound"]);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
