//! Real controllers under the controller benchmarks: `ovs-testcontroller` (Debian package
//! openvswitch-testcontroller) and os-ken. Counts are asserted, never times.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "test code")]

use bench::{ControllerPlan, Test, Verdict, Version};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A controller's process; it ends when this is dropped.
struct Controller {
    child: Child,
    address: SocketAddr,
    /// Removed at the end: a killed process does not.
    socket: Option<PathBuf>,
}

impl Controller {
    fn start(command: impl FnOnce(u16) -> Command) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let child =
            command(free.port()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let controller = Self { child, address: free, socket: None };
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(controller.address).is_err() {
            assert!(Instant::now() < deadline, "the controller does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        controller
    }

    fn run(&self, name: &str, version: Version, tests: &[Test]) -> Verdict {
        let plan = ControllerPlan {
            pid: Some(self.child.id()),
            switches: 3,
            macs: 10,
            trials: 2,
            trial_ms: 200,
            steady_rate: 100.0,
            highest_rate: 1_000.0,
            most_sessions: 8,
            ..ControllerPlan::new(name, self.address, version)
        };
        plan.run(tests, &mut |_| {}).unwrap()
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(socket) = &self.socket {
            let _ = std::fs::remove_file(socket);
        }
    }
}

/// Whether to go on without `what`: says so loudly, and fails where everything must be there.
fn missing(test: &str, what: &str) {
    assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "{test}: {what} is missing");
    eprintln!("SKIPPED {test}: {what} is missing");
}

fn check(verdict: &Verdict, answers: bool) {
    for point in &verdict.results.points {
        let mean = |metric: &str| point.mean(metric);
        if answers {
            assert!(mean("rate_per_s").unwrap() > 0.0, "{point:?}");
            assert!(mean("p50_us").unwrap() > 0.0, "{point:?}");
        }
    }
    assert!(verdict.results.findings.iter().any(|finding| finding.code == "few-trials"));
}

#[test]
fn ovs_testcontroller_in_every_benchmark() {
    if Command::new("ovs-testcontroller").arg("--version").output().is_err() {
        return missing("ovs_testcontroller_in_every_benchmark", "ovs-testcontroller");
    }
    let socket = |port| std::env::temp_dir().join(format!("weir-bench-testcontroller-{port}.ctl"));
    let mut controller = Controller::start(|port| {
        let mut command = Command::new("ovs-testcontroller");
        command.arg(format!("ptcp:{port}:127.0.0.1"));
        command.arg(format!("--unixctl={}", socket(port).display()));
        command
    });
    controller.socket = Some(socket(controller.address.port()));
    for version in [Version::V1_0, Version::V1_3] {
        let steady = [Test::Latency, Test::Throughput, Test::Exceptions, Test::DenialOfService];
        check(&controller.run("ovs-testcontroller", version, &steady), true);
    }
    let verdict =
        controller.run("ovs-testcontroller", Version::V1_0, &[Test::Rate, Test::Sessions]);
    check(&verdict, false);
    let sessions = verdict.results.points.iter().find_map(|point| point.mean("sessions"));
    assert_eq!(sessions, Some(8.0));
}

#[test]
fn os_ken_in_both_of_cbenchs_modes() {
    let python = std::env::var_os("WEIR_PYTHON").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.venv/bin/python")),
        PathBuf::from,
    );
    let has = Command::new(&python).args(["-c", "import os_ken"]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        return missing("os_ken_in_both_of_cbenchs_modes", "a Python with os-ken");
    }
    let app = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/os_ken_switch.py");
    let controller = Controller::start(|port| {
        let mut command = Command::new(&python);
        command.arg(app).arg(port.to_string());
        command
    });
    check(&controller.run("os-ken", Version::V1_3, &[Test::Latency, Test::Throughput]), true);
}
