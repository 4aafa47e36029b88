//! A private Open vSwitch with dummy ports: no root, no interface, no namespace; frames go in by
//! command and come out in capture files.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use openflow::{Version, VersionSet};

/// Ports 1 to 4 are for the packets; 5 is where sentinels come in.
pub(crate) const PORTS: u32 = 4;
const SENTINEL_PORT: u32 = 5;
const SENTINEL_TYPE: u16 = 0x88b5;

pub(crate) struct Ovs {
    folder: PathBuf,
    processes: Vec<Child>,
    /// How far each port's capture was read.
    seen: Vec<usize>,
    sentinels: u8,
}

impl Ovs {
    /// `None`, said loudly, if Open vSwitch is missing; in CI that is a failure.
    pub(crate) fn start(test: &str) -> Option<Ovs> {
        let is_there = |program: &str| Command::new(program).arg("--version").output().is_ok();
        let missing = ["ovs-vswitchd", "ovsdb-server", "ovs-vsctl", "ovs-ofctl"]
            .into_iter()
            .find(|program| !is_there(program));
        if let Some(program) = missing {
            assert!(std::env::var_os("CI").is_none(), "{test}: {program} is missing");
            eprintln!(
                "SKIPPED {test}: {program} is not installed (Debian package openvswitch-switch)"
            );
            return None;
        }
        let folder = std::env::temp_dir().join(format!("weir-ovs-{}-{test}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut ovs = Ovs { folder, processes: Vec::new(), seen: vec![24; 6], sentinels: 0 };
        ovs.boot();
        Some(ovs)
    }

    fn boot(&mut self) {
        let schema = "/usr/share/openvswitch/vswitch.ovsschema";
        self.run("ovsdb-tool", &["create", "conf.db", schema]);
        self.spawn("ovsdb-server", &["conf.db", "--remote=punix:db.sock", "--unixctl=db.ctl"]);
        self.wait_for_file("db.sock");
        self.run(
            "ovs-vsctl",
            &["--db=unix:db.sock", "--retry", "--timeout=20", "--no-wait", "init"],
        );
        let unixctl = format!("--unixctl={}", self.folder.join("vs.ctl").display());
        self.spawn(
            "ovs-vswitchd",
            &[
                "unix:db.sock",
                "--enable-dummy=override",
                "--disable-system",
                &unixctl,
                "-vsyslog:off",
            ],
        );
        let mut arguments: Vec<String> = [
            "--db=unix:db.sock",
            "--timeout=20",
            "add-br",
            "br0",
            "--",
            "set",
            "bridge",
            "br0",
            "datapath_type=dummy",
            "protocols=OpenFlow10,OpenFlow13",
            "fail-mode=secure",
        ]
        .map(str::to_owned)
        .to_vec();
        for port in 1..=SENTINEL_PORT {
            let pcap = self.folder.join(format!("p{port}.pcap"));
            arguments.extend(["--", "add-port", "br0"].map(str::to_owned));
            arguments.push(format!("p{port}"));
            arguments.extend(["--", "set", "interface"].map(str::to_owned));
            arguments.push(format!("p{port}"));
            arguments.push("type=dummy".to_owned());
            arguments.push(format!("ofport_request={port}"));
            arguments.push(format!("options:tx_pcap={}", pcap.display()));
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        self.run("ovs-vsctl", &arguments);
        self.wait_for_file("br0.mgmt");
        // Like us, it shall see through two tags.
        let limit = ["--db=unix:db.sock", "set", "Open_vSwitch", ".", "other_config:vlan-limit=2"];
        self.run("ovs-vsctl", &limit);
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(&self.folder)
            .env("OVS_RUNDIR", &self.folder)
            .env("OVS_LOGDIR", &self.folder)
            .env("OVS_DBDIR", &self.folder);
        command
    }

    /// Runs a program to its end; it must succeed.
    fn run(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.command(program, arguments).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{program} {arguments:?}: {error}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn spawn(&mut self, program: &str, arguments: &[&str]) {
        let mut command = self.command(program, arguments);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        self.processes.push(process);
    }

    fn wait_for_file(&self, name: &str) {
        let path = self.folder.join(name);
        wait(&format!("{name} of Open vSwitch"), || path.exists());
    }

    /// `ovs-ofctl COMMAND BRIDGE ARGUMENT`.
    pub(crate) fn ofctl(&self, version: Version, command: &str, argument: &str) {
        let bridge = format!("unix:{}", self.folder.join("br0.mgmt").display());
        self.run("ovs-ofctl", &["-O", name(version), command, &bridge, argument]);
    }

    /// Empties the switch but for the rule that carries sentinels.
    pub(crate) fn reset(&self) {
        self.ofctl(Version::V1_3, "del-flows", "");
        self.ofctl(Version::V1_3, "del-groups", "");
        let rule = format!(
            "table=0,priority=65535,in_port={SENTINEL_PORT},dl_type={SENTINEL_TYPE:#x},\
             actions=output:1,output:2,output:3,output:4"
        );
        self.ofctl(Version::V1_3, "add-flow", &rule);
    }

    /// Makes what was configured hold for the very next packet: the datapath's cache of earlier
    /// decisions is emptied, and the stations that NORMAL saw are forgotten.
    pub(crate) fn settle(&self) {
        self.appctl(&["fdb/flush", "br0"]);
        self.appctl(&["revalidator/purge"]);
    }

    /// Puts a frame in at a port, and gives what leaves: ports with frames, by port.
    pub(crate) fn forward(&mut self, in_port: u32, frame: &[u8]) -> Vec<(u32, Vec<u8>)> {
        self.receive(in_port, frame);
        self.sentinels += 1;
        let mut sentinel = vec![self.sentinels; 12];
        sentinel[0] &= 0xfe;
        sentinel.extend_from_slice(&SENTINEL_TYPE.to_be_bytes());
        sentinel.resize(60, self.sentinels);
        self.receive(SENTINEL_PORT, &sentinel);
        (1..=PORTS)
            .flat_map(|port| {
                let frames = self.capture_until(port, &sentinel);
                frames.into_iter().map(move |frame| (port, frame))
            })
            .collect()
    }

    fn receive(&self, port: u32, frame: &[u8]) {
        let hex: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
        self.appctl(&["netdev-dummy/receive", &format!("p{port}"), &hex]);
    }

    fn appctl(&self, arguments: &[&str]) {
        let target = self.folder.join("vs.ctl").display().to_string();
        let arguments: Vec<&str> =
            ["-t", target.as_str()].iter().chain(arguments).copied().collect();
        self.run("ovs-appctl", &arguments);
    }

    /// The frames that a port sent since the last look, without the sentinel that ends them.
    fn capture_until(&mut self, port: u32, sentinel: &[u8]) -> Vec<Vec<u8>> {
        let path = self.folder.join(format!("p{port}.pcap"));
        let from = self.seen[port as usize];
        let mut frames = Vec::new();
        let mut end = from;
        wait("the sentinel", || {
            (frames, end) = records(&path, from);
            frames.last().is_some_and(|last| last == sentinel)
        });
        frames.pop();
        self.seen[port as usize] = end;
        frames
    }

    /// Sends a raw message and a barrier; the type and code of the ERROR that came before the
    /// barrier's answer, if one did.
    pub(crate) fn refusal(&self, version: Version, message: &[u8]) -> Option<(u16, u16)> {
        let mut stream = UnixStream::connect(self.folder.join("br0.mgmt")).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut out = Vec::new();
        openflow::Hello::write_message(VersionSet::only(version), 1, &mut out).unwrap();
        out.extend_from_slice(message);
        let barrier = if version == Version::V1_0 { 18 } else { 20 };
        out.extend_from_slice(&[version.0, barrier, 0, 8, 0xb0, 0, 0, 0]);
        stream.write_all(&out).unwrap();
        let (mut buffer, mut found) = (Vec::new(), None);
        loop {
            while let Some(length) = openflow::frame::next(&buffer).unwrap() {
                let frame: Vec<u8> = buffer.drain(..length).collect();
                match frame[1] {
                    1 => {
                        let word = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
                        found = found.or(Some((word(8), word(10))));
                    }
                    kind if kind == barrier + 1 => return found,
                    _ => {}
                }
            }
            let mut chunk = [0; 4096];
            let read = stream.read(&mut chunk).unwrap();
            assert!(read > 0, "Open vSwitch closed the connection");
            buffer.extend_from_slice(&chunk[..read]);
        }
    }
}

impl Drop for Ovs {
    fn drop(&mut self) {
        for process in self.processes.iter_mut().rev() {
            // It may have ended by itself.
            let _ = process.kill();
            let _ = process.wait();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

pub(crate) fn name(version: Version) -> &'static str {
    if version == Version::V1_0 { "OpenFlow10" } else { "OpenFlow13" }
}

/// The frames of a capture file from a position on, and where the last whole one ends.
fn records(path: &Path, from: usize) -> (Vec<Vec<u8>>, usize) {
    let bytes = std::fs::read(path).unwrap_or_default();
    let (mut at, mut frames) = (from, Vec::new());
    while let Some(header) = bytes.get(at..at + 16) {
        let length = u32::from_ne_bytes(header[8..12].try_into().unwrap()) as usize;
        let Some(frame) = bytes.get(at + 16..at + 16 + length) else { break };
        frames.push(frame.to_vec());
        at += 16 + length;
    }
    (frames, at)
}

fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < deadline, "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
