//! Tests of `weir agent` on a real lab: an agent that ends, a killed agent, a second agent for the same interface, and
//! wrong arguments.

#![forbid(unsafe_code)]
#![allow(clippy::expect_used, clippy::panic)]

use lab::{Lab, LabGuard, Options, Requirements, StateDirectory, Topology};
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const RATED: Requirements = Requirements { switches: false, rates: true };

/// A lab with two hosts on a link of 20 Mbit/s.
struct Network {
    lab: LabGuard,
    state: PathBuf,
}

impl Network {
    fn new(name: &str) -> Network {
        let name = format!("g{}-{name}", std::process::id());
        let state = std::env::temp_dir().join(format!("weir-{name}"));
        let mut topology = Topology::builder();
        let rate = "20Mbit".parse().ok();
        let hosts = topology.host("h1").and_then(|it| it.host("h2"));
        hosts.and_then(|it| it.link("h1", "h2", rate)).expect("a topology");
        let options = Options {
            name: Some(name),
            state: StateDirectory::at(&state),
            ephemeral: true,
            ..Options::default()
        };
        let topology = topology.build().expect("a topology");
        Network { lab: LabGuard::new(Lab::up(&topology, &options).expect("a lab")), state }
    }

    fn agent(&self, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.args(["agent", "--lab", self.lab.name(), "--state"]).arg(&self.state).args(more);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Starts the agent, and waits until the agent shapes its VNICs. Returns the process, and its further output on
    /// stderr.
    fn start(&self, more: &[&str]) -> (Child, impl BufRead + use<>) {
        let mut child = self.agent(more).spawn().expect("start weir");
        let mut stderr = BufReader::new(child.stderr.take().expect("stderr"));
        let mut line = String::new();
        stderr.read_line(&mut line).expect("what it says");
        assert_eq!(line, "2 VNICs shaped\n");
        (child, stderr)
    }

    fn queueing(&self) -> String {
        let output = self.lab.exec("h1", &["sh", "-c", "tc qdisc show; tc class show dev eth0"]);
        String::from_utf8(output.expect("run tc").stdout).expect("UTF-8")
    }

    /// Sends UDP from h1 to h2 at full rate until the returned value is dropped.
    fn send(&self) -> Sender {
        let namespace = self.lab.namespace("h1").expect("a host");
        let bind = || UdpSocket::bind("0.0.0.0:0");
        let socket = packet::in_namespace(&namespace, bind).expect("enter").expect("bind");
        socket.set_write_timeout(Some(Duration::from_millis(50))).expect("a timeout");
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let send = move || {
            while !stopped.load(Ordering::SeqCst) {
                // No program listens at this port of h2, so h2 may answer with ICMP port unreachable.
                let _ = socket.send_to(&[0; 1400], "10.0.0.2:9");
            }
        };
        Sender { stop, thread: Some(std::thread::spawn(send)) }
    }

    /// Waits until the queueing of h1 satisfies `wanted`.
    fn wait_for(&self, wanted: impl Fn(&str) -> bool) {
        let start = Instant::now();
        while !wanted(&self.queueing()) {
            assert!(start.elapsed() < Duration::from_secs(20), "{}", self.queueing());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

struct Sender {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    let status = Command::new("kill").args([name, &pid]).status().expect("run kill");
    assert!(status.success());
}

#[test]
fn root_an_agent_that_ends_restores_the_queueing_of_its_interfaces() {
    if lab::testing::skip("root_an_agent_that_ends_restores_the_queueing_of_its_interfaces", RATED)
    {
        return;
    }
    let network = Network::new("end");
    let before = network.queueing();
    for end in ["-INT", "-TERM"] {
        let (mut child, mut stderr) = network.start(&[]);
        assert!(network.queueing().contains("htb 5745: dev eth0 parent 1:1"));
        signal(&child, end);
        assert_eq!(child.wait().expect("its status").code(), Some(0));
        let mut said = String::new();
        stderr.read_to_string(&mut said).expect("what it says");
        assert!(said.starts_with("interfaces are as they were; "), "{said}");
        assert_eq!(network.queueing(), before);
    }
    let output = network.agent(&["--seconds", "0.5", "--every", "0.2", "--json"]).output();
    let output = output.expect("run weir");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(!lines.is_empty());
    assert_eq!(lines[0]["vnics"][0]["vnic"], "h1");
    assert_eq!(lines[0]["vnics"][0]["destinations"][0]["most"], 20_000_000);
    assert_eq!(network.queueing(), before);
}

#[test]
fn root_vnics_of_a_killed_agent_are_unthrottled_and_the_next_agent_cleans_up() {
    if lab::testing::skip(
        "root_vnics_of_a_killed_agent_are_unthrottled_and_the_next_agent_cleans_up",
        RATED,
    ) {
        return;
    }
    let network = Network::new("kill");
    let before = network.queueing();
    let (mut child, mut stderr) = network.start(&["--vnic", "h1=8Mbit", "--vnic", "h2=2Mbit"]);
    // The agent throttles h1 below its 8 Mbit/s, because h2 has bought only 2 Mbit/s.
    let throttled = |text: &str| {
        text.lines().any(|line| line.contains("htb 5745:10 ") && !line.contains("ceil 8Mbit"))
    };
    let sender = network.send();
    network.wait_for(throttled);
    let twice = network.agent(&[]).output().expect("run weir");
    assert_eq!(twice.status.code(), Some(3));
    let said = String::from_utf8_lossy(&twice.stderr).into_owned();
    assert!(said.contains("VNIC h1: another weir agent shapes eth0"), "{said}");

    signal(&child, "-KILL");
    assert_eq!(child.wait().expect("its status").code(), None);
    network.wait_for(|text| text.contains("htb 5745:10 ") && !throttled(text));
    let mut said = String::new();
    stderr.read_to_string(&mut said).expect("what its guard says");
    assert!(
        said.contains("the agent was killed; 2 of 2 VNICs have their whole bandwidth"),
        "{said}"
    );
    drop(sender);

    let (mut child, _stderr) = network.start(&[]);
    assert!(network.queueing().contains("rate 20Mbit ceil 20Mbit"), "{}", network.queueing());
    signal(&child, "-INT");
    assert!(child.wait().expect("its status").success());
    assert_eq!(network.queueing(), before);
}

#[test]
fn wrong_arguments_of_the_agent_are_refused_with_a_reason() {
    let cases: [(&[&str], i32, &str); 10] = [
        (&[], 2, "neither a CONFIG nor a --lab"),
        (&["/nowhere/edge.toml"], 2, "cannot read /nowhere/edge.toml"),
        (&["--lab", "no-such-lab-at-all", "--state", "/tmp/weir-no-such"], 2, "no-such-lab-at-all"),
        (&["--lab", "x", "--vnic", "A"], 2, "write it as HOST=RATE"),
        (&["--lab", "x", "--vnic", "A=9Parsec"], 2, "9Parsec"),
        (&["--vnic", "A=1Mbit"], 2, "--lab"),
        (&["--lab", "x", "--report", "127.0.0.1:1"], 2, "--key"),
        (&["--report", "here", "--key", "k", "--lab", "x"], 2, "invalid socket address"),
        (&["edge.toml", "--lab", "x"], 2, "cannot be used with"),
        (&["--lab", "x", "--every", "0"], 2, "not a number of seconds"),
    ];
    for (arguments, expected, says) in cases {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        let output = command.arg("agent").args(arguments).stdin(Stdio::null()).output();
        let output = output.expect("run weir");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(says), "{arguments:?}: {said}");
        assert_eq!(output.status.code(), Some(expected), "{arguments:?}: {said}");
    }
}

/// The guard reads its steps from standard input. The guard ends with 0 after an empty input, the line `done` or an
/// empty plan, and with 3 after a text that is no plan.
#[test]
fn a_guard_ends_without_steps_and_fails_on_text_that_is_no_plan() {
    for (input, expected) in
        [("", 0), ("done\n", 0), ("{\"vnics\":[],\"bridges\":[]}\n", 0), ("garbage\n", 3)]
    {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.args(["agent", "--guard"]).stdin(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("start weir");
        std::io::Write::write_all(&mut child.stdin.take().expect("stdin"), input.as_bytes())
            .expect("it listens");
        assert_eq!(child.wait().expect("its status").code(), Some(expected), "{input:?}");
    }
}
