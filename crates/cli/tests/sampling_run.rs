//! Tests of `weir sampling run` on a lab of servers with an Open vSwitch each: the run samples as planned, continues
//! when servers are busy or dead, and leaves nothing.

#![forbid(unsafe_code)]
#![allow(clippy::expect_used, clippy::panic)]

use lab::{Lab, StateDirectory};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Only one run at a time, because runs measure and share the CPUs of the machine.
static ALONE: Mutex<()> = Mutex::new(());

/// How long the test waits for an event.
const PATIENCE: Duration = Duration::from_secs(60);

/// A `weir sampling run` in progress.
struct Run {
    child: Child,
    lines: Receiver<String>,
    agents: Vec<i32>,
    // The pipe stays open until the run ends. The run writes little to stderr, so the pipe does not fill.
    _stderr: BufReader<ChildStderr>,
    _alone: MutexGuard<'static, ()>,
}

impl Run {
    /// Returns `None` if this machine lacks a requirement.
    fn start(test: &str, arguments: &[&str]) -> Option<Run> {
        let needs = lab::Requirements { switches: true, rates: false };
        let programs = [("tc", "iproute2")];
        if lab::testing::skip(test, needs) || lab::testing::skip_without(test, &programs) {
            return None;
        }
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["sampling", "run", "--lab", "--json", "--cpu", "0.3", "--observe", "1"])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start weir");
        let mut stderr = BufReader::new(child.stderr.take().expect("its stderr"));
        let mut line = String::new();
        stderr.read_line(&mut line).expect("a line");
        let (_, pids) = line.split_once("processes ").unwrap_or_else(|| panic!("{line}"));
        let agents = pids.trim().split(", ").map(|pid| pid.parse().expect("a pid")).collect();
        let stdout = BufReader::new(child.stdout.take().expect("its stdout"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Some(Run { child, lines, agents, _stderr: stderr, _alone: alone })
    }

    /// Waits for the next line with this event.
    fn wait_for(&mut self, event: &str) -> Value {
        let end = Instant::now() + PATIENCE;
        let mut before = String::new();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            let line = line.unwrap_or_else(|end| panic!("no {event}: {end}, after {before}"));
            let value: Value = serde_json::from_str(&line).expect("JSON");
            if value["event"] == event {
                return value;
            }
            before = line;
        }
    }

    /// Returns the names of the interfaces to which the filters of a server mirror packets.
    fn ways(&self, server: usize) -> Vec<String> {
        let name = format!("run{}", self.child.id());
        let lab = Lab::open(&name, &StateDirectory::default()).expect("its lab");
        let rack = format!("rack{server}");
        let mut ways = Vec::new();
        for port in ["eth0", "eth1"] {
            let show = ["tc", "filter", "show", "dev", port, "ingress"];
            let output = lab.exec(&rack, &show).expect("tc");
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let mut words = text.split_whitespace();
            // `mirred (Egress Mirror to device weiro0x1) pipe`
            while words.any(|word| word == "device") {
                ways.extend(words.next().map(|way| way.trim_end_matches(')').to_owned()));
            }
        }
        ways
    }

    /// Interrupts the run, and asserts that nothing is left. Returns the last line.
    fn interrupt(mut self) -> Value {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.child.id()).expect("a pid"));
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).expect("it is there");
        let mut last = Value::Null;
        for line in &self.lines {
            last = serde_json::from_str(&line).expect("JSON");
        }
        let status = self.child.wait().expect("its end");
        // Chance and a busy machine change the number of samples, which this test does not judge.
        assert!(matches!(status.code(), Some(0 | 1)), "{status}");
        self.check_nothing_is_left();
        last
    }

    fn check_nothing_is_left(&self) {
        let pid = self.child.id();
        let labs = Lab::list(&StateDirectory::default()).expect("the labs");
        assert!(labs.iter().all(|lab| lab.name != format!("run{pid}")), "{labs:?}");
        for folder in ["/sys/fs/cgroup", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpuacct"] {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
            let left: Vec<_> =
                names.filter(|one| one.starts_with(&format!("weir-{pid}-"))).collect();
            assert!(left.is_empty(), "{left:?}");
        }
        for agent in &self.agents {
            assert!(!fs::exists(format!("/proc/{agent}")).expect("/proc"), "agent {agent}");
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // If the test failed, the run is ended here. Otherwise the test has ended the run before.
        if matches!(self.child.try_wait(), Ok(None)) {
            let pid = nix::unistd::Pid::from_raw(i32::try_from(self.child.id()).unwrap_or(0));
            let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT);
            let _ = self.child.wait();
        }
    }
}

/// A process that uses all CPU time that it gets.
struct Burner(Child);

impl Burner {
    fn start(run: &Run, server: usize) -> Burner {
        let child = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("sh");
        let group = format!("weir-{}-rack{server}/cgroup.procs", run.child.id());
        let pid = child.id().to_string();
        let put = |root: &str| fs::write(format!("{root}/{group}"), &pid).is_ok();
        let is_put = ["/sys/fs/cgroup", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpuacct"].map(put);
        assert!(is_put.contains(&true), "no group {group}");
        Burner(child)
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn ovs_sampling_run_samples_as_much_as_planned() {
    // Active tests measure the capacity, so the noise of the CPU does not change the capacity.
    let arguments =
        ["--load", "3000,600,600", "--capacity", "active", "--alpha", "0.5", "--beta", "0.2"];
    let Some(mut run) = Run::start("ovs_sampling_run_samples_as_much_as_planned", &arguments)
    else {
        return;
    };
    let planned = run.wait_for("planned");
    assert!(planned["sampled"].as_f64() > Some(100.0), "{planned}");
    run.wait_for("enacted");
    for _ in 0..6 {
        run.wait_for("round");
    }
    let report = run.interrupt();
    let plans = report["plans"].as_array().expect("plans");
    assert!(!plans.is_empty(), "{report}");
    for plan in plans {
        let number = |key: &str| plan[key].as_f64().expect("a number");
        assert!(number("deviation").abs() <= 0.03 + number("scatter"), "{plan}");
    }
    let collected = &report["collected"];
    assert_eq!((&collected["rejected"], &collected["missing"]), (&0.into(), &0.into()), "{report}");
    let tenants = collected["tenants"].as_array().expect("tenants");
    for (tenant, name) in tenants.iter().zip(["red", "blue"]) {
        assert!(tenant["name"] == name && tenant["packets"].as_f64() > Some(100.0), "{tenant}");
    }
    // Each origin has a sub-agent number of its own, whichever server has processed its samples.
    let agents = collected["agents"].as_array().expect("agents");
    assert!(agents.iter().any(|one| one["name"] == "10.99.0.1/1"), "{agents:?}");
}

#[test]
fn ovs_sampling_run_learns_the_cost_of_samples() {
    // The run reads each byte of a sample a hundred times, and begins with low estimates of the costs. So the first
    // plan samples far too much.
    let arguments =
        ["--load", "6000,1000,1000", "--length", "1000", "--header", "1000", "--passes"];
    let costs = ["100", "--alpha", "0.05", "--beta", "0.02", "--costs", "estimated"];
    let arguments = [&arguments[..], &costs].concat();
    let Some(mut run) = Run::start("ovs_sampling_run_learns_the_cost_of_samples", &arguments)
    else {
        return;
    };
    let number = |of: &Value| of.as_f64().expect("a number");
    run.wait_for("enacted");
    let costs = run.wait_for("costs");
    let (before, now) = (&costs["before"], &costs["now"]);
    assert!(number(&now["alpha"]) > 2.0 * number(&before["alpha"]), "{costs}");
    // A new plan follows. Its number of samples depends on the capacity that is measured meanwhile.
    run.wait_for("planned");
    run.wait_for("enacted");
    let round = run.wait_for("round");
    let servers = round["servers"].as_array().expect("servers");
    let alpha = |one: &Value| number(&one["estimated"]["alpha"][0]);
    assert!(servers.iter().any(|one| alpha(one) > 0.1), "{round}");
    run.interrupt();
}

#[test]
fn ovs_a_busy_server_stops_sampling_and_a_dead_server_gets_no_mirrored_packets() {
    let name = "ovs_a_busy_server_stops_sampling_and_a_dead_server_gets_no_mirrored_packets";
    // Mirroring is cheap and sampling is expensive, so the first server mirrors to both other servers, on a machine of
    // any speed.
    let arguments = ["--load", "3000,100,100", "--capacity", "6000", "--alpha", "3", "--beta"];
    let arguments = [&arguments[..], &["0.1", "--interval", "3"]].concat();
    let Some(mut run) = Run::start(name, &arguments) else { return };
    run.wait_for("enacted");
    assert!(run.ways(1).iter().any(|way| way.starts_with("weiro")), "{:?}", run.ways(1));

    let burner = Burner::start(&run, 3);
    // On a busy machine another server may be cut before this server.
    while run.wait_for("cut")["server"] != "rack3" {}
    assert_eq!(run.ways(3), Vec::<String>::new(), "it samples nothing");
    drop(burner);

    let vanishing = nix::unistd::Pid::from_raw(run.agents[1]);
    nix::sys::signal::kill(vanishing, nix::sys::signal::Signal::SIGKILL).expect("it is there");
    let gone = run.wait_for("gone");
    assert_eq!(gone["server"], "rack2");
    // At the next round the other servers have stopped mirroring to the dead server.
    run.wait_for("round");
    for server in [1, 3] {
        let ways = run.ways(server);
        assert!(ways.iter().all(|way| !way.ends_with("x1")), "{server}: {ways:?}");
    }
    let planned = run.wait_for("planned");
    assert!(planned["total"].as_f64() > Some(0.0), "{planned}");
    run.wait_for("enacted");
    run.interrupt();
}

#[test]
fn sampling_run_with_a_wrong_configuration_is_refused_with_a_reason() {
    let folder = std::env::temp_dir().join(format!("weir-run-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let server =
        "[[servers]]\nname = \"a\"\naddress = \"192.0.2.1\"\nbridge = \"br0\"\nguests = []\n";
    let agent = "agent = [\"false\"]\n";
    for (text, status, words) in [
        ("collector = \"x\"".to_owned(), 2, "collector"),
        ("collector = \"127.0.0.1:0\"\nservers = []\n".to_owned(), 2, "there are none"),
        (format!("collector = \"127.0.0.1:0\"\nalpha = 0\n{server}"), 2, "alpha"),
        (format!("collector = \"192.0.2.77:0\"\n{server}"), 3, "cannot listen"),
        (format!("collector = \"127.0.0.1:0\"\n{server}{agent}"), 3, "a: its agent ended"),
        (format!("collector = \"127.0.0.1:0\"\n{server}switch = \"/nowhere\"\n"), 3, "a: "),
    ] {
        let path = folder.join("site.toml");
        fs::write(&path, &text).expect("a file");
        let output = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["sampling", "run"])
            .arg(&path)
            .stdin(Stdio::null())
            .output()
            .expect("start weir");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{text}: {stderr}");
        assert!(stderr.contains(words), "{text}: {stderr}");
    }
    let _ = fs::remove_dir_all(&folder);
    for arguments in [&["run"][..], &["run", "--lab", "--cpu", "0"], &["run", "--lab", "x.toml"]] {
        let output =
            Command::new(env!("CARGO_BIN_EXE_weir")).arg("sampling").args(arguments).output();
        assert_eq!(output.expect("start weir").status.code(), Some(2), "{arguments:?}");
    }
}
