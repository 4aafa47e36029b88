//! Tests of `weir agent` with samplers in its configuration: samplers with and without shapers, a killed agent, and an
//! agent that cannot start.

#![forbid(unsafe_code)]
#![allow(clippy::expect_used, clippy::panic)]

use agent::{Collector, Limits};
use lab::{Lab, LabGuard, Options, Requirements, StateDirectory, Topology};
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

/// A lab with one switch and two hosts, and an sFlow collector.
struct Network {
    lab: LabGuard,
    folder: PathBuf,
    collector: UdpSocket,
}

impl Network {
    fn new(name: &str) -> Network {
        let name = format!("f{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(format!("weir-{name}"));
        let options = Options {
            name: Some(name),
            state: StateDirectory::at(&folder),
            ephemeral: true,
            static_arp: true,
            ..Options::default()
        };
        let topology = Topology::builtin("single,2").expect("a topology");
        let lab = LabGuard::new(Lab::up(&topology, &options).expect("a lab"));
        let here = lab.controller_address().expect("its address");
        let collector = UdpSocket::bind((here, 0)).expect("bind");
        collector.set_read_timeout(Some(Duration::from_millis(100))).expect("a timeout");
        Network { lab, folder, collector }
    }

    fn bridge(&self) -> String {
        let switch = self.lab.open_vswitch().expect("its Open vSwitch");
        let switch = format!("switch = \"{}\"", switch.folder().display());
        self.sampler(&format!("bridge = \"s1\"\n{switch}"))
    }

    fn interface(&self, name: &str) -> String {
        let namespace = self.lab.namespace("h2").expect("a host");
        self.sampler(&format!("interface = \"{name}\"\nnamespace = \"{namespace}\""))
    }

    fn sampler(&self, what: &str) -> String {
        let collector = self.collector.local_addr().expect("its address");
        format!("[[samplers]]\n{what}\none_in = 1\ncollector = \"{collector}\"\n")
    }

    fn start(&self, file: &str) -> Agent {
        let path = self.folder.join("edge.toml");
        std::fs::write(&path, file).expect("write the file");
        Agent::start(&path)
    }

    /// Whether the database of Open vSwitch has an sFlow setting for the bridge.
    fn samples(&self) -> bool {
        let switch = self.lab.open_vswitch().expect("its Open vSwitch");
        switch.vsctl(["get", "Bridge", "s1", "sflow"]).expect("it").len() > 10
    }

    fn run(&self, host: &str, words: &[&str]) {
        let output = self.lab.exec(host, words).expect("run it");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Sends pings from h1 until this number of samplers has reported at least 20 samples each.
    fn wait_for_pings_of(&self, agents: usize) {
        let (start, mut buffer) = (Instant::now(), [0; 2048]);
        let mut collector = Collector::new(Vec::new(), Limits::default());
        while collector.agents().iter().filter(|row| row.samples >= 20).count() < agents {
            assert!(start.elapsed() < PATIENCE, "{:?}", collector.agents());
            self.run("h1", &["ping", "-c", "5", "-i", "0.002", "-q", "10.0.0.2"]);
            while let Ok(count) = self.collector.recv(&mut buffer) {
                collector.add(&buffer[..count]).expect("sFlow");
            }
        }
        assert!(collector.flows(1)[0].name.contains("ip 1 10.0.0."), "{:?}", collector.flows(1));
    }
}

struct Agent {
    child: Child,
    stderr: BufReader<ChildStderr>,
}

impl Agent {
    fn start(file: &Path) -> Agent {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.arg("agent").arg(file).stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::piped()).spawn().expect("start weir");
        let stderr = BufReader::new(child.stderr.take().expect("stderr"));
        Agent { child, stderr }
    }

    fn says(&mut self, expected: &str) {
        let mut line = String::new();
        self.stderr.read_line(&mut line).expect("what it says");
        assert!(line.contains(expected), "{line:?}, not {expected:?}");
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().expect("run kill").success());
    }

    /// Returns the exit status of the agent, and the rest of its output on stderr.
    fn end(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).expect("what it says");
        (self.child.wait().expect("its status").code(), said)
    }
}

fn is_left_out(name: &str, rates: bool) -> bool {
    lab::testing::skip(name, Requirements { switches: true, rates })
}

#[test]
fn ovs_bridge_and_interface_samplers_run_and_recover_until_the_agent_ends() {
    if is_left_out("ovs_bridge_and_interface_samplers_run_and_recover_until_the_agent_ends", false)
    {
        return;
    }
    let network = Network::new("stand");
    let add = || {
        network.run("h2", &["ip", "link", "add", "spare", "type", "veth"]);
        network.run("h2", &["ip", "link", "set", "spare", "up"]);
    };
    add();
    let file = network.bridge() + &network.interface("eth0") + &network.interface("spare");
    let mut agent = network.start(&file);
    agent.says("Open vSwitch samples one of 1 on s1");
    agent.says("sampling one of 1 on eth0");
    agent.says("sampling one of 1 on spare");
    network.wait_for_pings_of(2);

    // A second agent does not take over the sampling of s1: the second agent exits with 3, and s1 still samples.
    let (status, said) = Agent::start(&network.folder.join("edge.toml")).end();
    assert!(status == Some(3) && said.contains("s1 samples by sFlow already"), "{said}");
    assert!(network.samples());

    // The agent restores the sampling of s1 after another program has cleared the sFlow setting. The agent samples
    // `spare` again after the interface was deleted and added.
    let switch = network.lab.open_vswitch().expect("its Open vSwitch");
    switch.vsctl(["clear", "Bridge", "s1", "sflow"]).expect("clear it");
    agent.says("s1 samples again");
    assert!(network.samples());
    network.run("h2", &["ip", "link", "delete", "spare"]);
    agent.says("tried again every second");
    add();
    agent.says("spare is sampled again");

    agent.signal("-TERM");
    let (status, said) = agent.end();
    assert_eq!(status, Some(0), "{said}");
    assert!(said.starts_with("sampling has ended; "), "{said}");
    assert!(!network.samples());
}

#[test]
fn ovs_a_killed_agent_leaves_no_bridge_sampling() {
    if is_left_out("ovs_a_killed_agent_leaves_no_bridge_sampling", true) {
        return;
    }
    let network = Network::new("killed");
    let namespace = network.lab.namespace("h1").expect("a host");
    let vnic = format!(
        "[[vnics]]\nname = \"h1\"\nmac = \"02:00:00:00:00:01\"\nbandwidth = \"8Mbit\"\nnamespace = \"{namespace}\"\n"
    );
    let mut agent = network.start(&(vnic + &network.bridge()));
    agent.says("1 VNICs shaped");
    agent.says("Open vSwitch samples one of 1 on s1");
    network.wait_for_pings_of(1);
    agent.signal("-KILL");
    let (status, said) = agent.end();
    assert_eq!(status, None);
    assert!(said.contains("1 of 1 VNICs have their whole bandwidth"), "{said}");
    assert!(said.contains("1 of 1 bridges sample no longer"), "{said}");
    assert!(!network.samples());
}

#[test]
fn ovs_an_agent_that_cannot_start_leaves_no_bridge_sampling() {
    if is_left_out("ovs_an_agent_that_cannot_start_leaves_no_bridge_sampling", false) {
        return;
    }
    let network = Network::new("begin");
    let elsewhere = network.bridge().replace("\"s1\"", "\"s9\"");
    let vnic = "[[vnics]]\nname = \"A\"\nmac = \"02:00:00:00:00:01\"\nbandwidth = \"8Mbit\"\ninterface = \"nowhere\"\n";
    for (file, expected) in [
        (network.bridge() + &network.interface("nowhere"), "nowhere"),
        (network.interface("eth0") + &elsewhere, "there is no bridge \"s9\""),
        (network.bridge() + &network.bridge(), "s1 samples by sFlow already"),
        (network.bridge().replace("switch = \"", "switch = \"/no"), "cannot connect to"),
        (network.bridge() + vnic, "nowhere"),
    ] {
        let (status, said) = network.start(&file).end();
        assert_eq!(status, Some(3), "{said}");
        assert!(said.contains(expected) && !said.contains("killed"), "{said}, not {expected}");
        assert!(!network.samples(), "{file}");
    }
}
