//! A private Open vSwitch with dummy ports: no root, no interface, no namespace; frames go in by
//! command and come out in capture files. Its bridges, numbered from 1, are wired as is asked for.
#![allow(dead_code, reason = "each test that is made with this uses its part")]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use openflow::{Version, VersionSet};

/// Ports 1 to 4 of each bridge are for the packets; by another come sentinels, which say that all is through that came
/// before.
pub(crate) const PORTS: u32 = 4;
const SENTINEL_PORT: u32 = 9;
const SENTINEL_TYPE: u16 = 0x88b5;

/// A port of a bridge.
pub(crate) type Place = (u64, u32);

pub(crate) struct Ovs {
    folder: PathBuf,
    processes: Vec<Child>,
    bridges: u64,
    /// How far each port's capture was read.
    seen: BTreeMap<Place, usize>,
    sentinels: u8,
}

impl Ovs {
    /// One bridge. `None`, said loudly, if Open vSwitch is missing; in CI that is a failure.
    pub(crate) fn start(test: &str) -> Option<Ovs> {
        Ovs::wired(test, 1, &[])
    }

    /// So many bridges, and from which port to which there are wires.
    pub(crate) fn wired(test: &str, bridges: u64, wires: &[[Place; 2]]) -> Option<Ovs> {
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
        let (processes, seen) = (Vec::new(), BTreeMap::new());
        let mut ovs = Ovs { folder, processes, bridges, seen, sentinels: 0 };
        ovs.boot(wires);
        Some(ovs)
    }

    fn boot(&mut self, wires: &[[Place; 2]]) {
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
        let mut arguments = words("--db=unix:db.sock --timeout=20");
        for bridge in 1..=self.bridges {
            arguments.extend(words(&format!("-- add-br br{bridge} -- set bridge br{bridge}")));
            arguments.extend(words("datapath_type=dummy protocols=OpenFlow10,OpenFlow13"));
            arguments.extend(words("fail-mode=secure"));
            for port in (1..=PORTS).chain([SENTINEL_PORT]) {
                let capture = self.capture((bridge, port));
                arguments.extend(add_port((bridge, port), "dummy"));
                arguments.push(format!("options:tx_pcap={}", capture.display()));
            }
        }
        for &[a, b] in wires {
            for (here, there) in [(a, b), (b, a)] {
                arguments.extend(add_port(here, "patch"));
                arguments.push(format!("options:peer={}", interface(there)));
            }
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        self.run("ovs-vsctl", &arguments);
        (1..=self.bridges).for_each(|bridge| self.wait_for_file(&format!("br{bridge}.mgmt")));
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

    /// `ovs-ofctl COMMAND BRIDGE ARGUMENT` on the first bridge.
    pub(crate) fn ofctl(&self, version: Version, command: &str, argument: &str) {
        self.ofctl_on(1, version, command, argument);
    }

    fn ofctl_on(&self, bridge: u64, version: Version, command: &str, argument: &str) -> String {
        let bridge = format!("unix:{}", self.folder.join(format!("br{bridge}.mgmt")).display());
        self.run("ovs-ofctl", &["-O", name(version), command, &bridge, argument])
    }

    /// Empties the first bridge but for the rule that carries sentinels.
    pub(crate) fn reset(&self) {
        self.ofctl(Version::V1_3, "del-flows", "");
        self.ofctl(Version::V1_3, "del-groups", "");
        self.carry_sentinels(1);
    }

    /// Deletes all groups of a bridge, and with them the rules that use groups.
    pub(crate) fn delete_groups(&self, bridge: u64) {
        self.ofctl_on(bridge, Version::V1_3, "del-groups", "");
    }

    fn carry_sentinels(&self, bridge: u64) {
        let rule = format!(
            "table=0,priority=65535,in_port={SENTINEL_PORT},dl_type={SENTINEL_TYPE:#x},\
             actions=output:1,output:2,output:3,output:4"
        );
        self.ofctl_on(bridge, Version::V1_3, "add-flow", &rule);
    }

    /// Makes a new bridge hold what these messages say; gives what it refuses, with the ERRORs' types and codes.
    pub(crate) fn load(
        &self,
        bridge: u64,
        version: Version,
        messages: &[Vec<u8>],
    ) -> Vec<(Vec<u8>, (u16, u16))> {
        let numbered = messages.iter().zip(1_u32..).map(|(message, xid)| {
            let mut message = message.clone();
            message[4..8].copy_from_slice(&xid.to_be_bytes());
            message
        });
        let refusals = self.refusals(bridge, version, &numbered.collect::<Vec<_>>().concat());
        self.carry_sentinels(bridge);
        let message = |xid: u32| messages[xid as usize - 1].clone();
        refusals.into_iter().map(|(xid, code)| (message(xid), code)).collect()
    }

    /// What a bridge holds, to be read.
    pub(crate) fn dump(&self, bridge: u64) -> String {
        let dump = |command| self.ofctl_on(bridge, Version::V1_3, command, "");
        format!("br{bridge}\n{}{}", dump("dump-flows"), dump("dump-groups"))
    }

    /// Makes what was configured hold for the very next packet: the datapath's cache of earlier
    /// decisions is emptied, and the stations that NORMAL saw are forgotten.
    pub(crate) fn settle(&self) {
        (1..=self.bridges).for_each(|it| drop(self.appctl(&["fdb/flush", &format!("br{it}")])));
        self.appctl(&["revalidator/purge"]);
    }

    /// Puts a frame in at a port of the first bridge, and gives what leaves: ports with frames, by port.
    pub(crate) fn forward(&mut self, in_port: u32, frame: &[u8]) -> Vec<(u32, Vec<u8>)> {
        let sent = self.forward_at((1, in_port), frame);
        sent.into_iter().map(|((_, port), frame)| (port, frame)).collect()
    }

    /// Puts a frame in at a port, and gives what leaves all bridges: where, and the frame, by port.
    pub(crate) fn forward_at(&mut self, at: Place, frame: &[u8]) -> Vec<(Place, Vec<u8>)> {
        self.receive(at, frame);
        self.sentinels = self.sentinels.wrapping_add(1);
        let mut sentinel = vec![self.sentinels; 12];
        sentinel[0] &= 0xfe;
        sentinel.extend_from_slice(&SENTINEL_TYPE.to_be_bytes());
        sentinel.resize(60, self.sentinels);
        (1..=self.bridges).for_each(|bridge| self.receive((bridge, SENTINEL_PORT), &sentinel));
        let bridges = 1..=self.bridges;
        let ports = bridges.flat_map(|bridge| (1..=PORTS).map(move |port| (bridge, port)));
        let mut sent = Vec::new();
        for place in ports {
            let frames = self.capture_until(place, &sentinel);
            sent.extend(frames.into_iter().map(|frame| (place, frame)));
        }
        sent
    }

    fn receive(&self, at: Place, frame: &[u8]) {
        let hex: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
        self.appctl(&["netdev-dummy/receive", &interface(at), &hex]);
    }

    fn appctl(&self, arguments: &[&str]) -> String {
        let target = self.folder.join("vs.ctl").display().to_string();
        let arguments: Vec<&str> =
            ["-t", target.as_str()].iter().chain(arguments).copied().collect();
        self.run("ovs-appctl", &arguments)
    }

    fn capture(&self, (bridge, port): Place) -> PathBuf {
        self.folder.join(format!("{}.pcap", interface((bridge, port))))
    }

    /// The frames that a port sent since the last look, without the sentinel that ends them.
    fn capture_until(&mut self, place: Place, sentinel: &[u8]) -> Vec<Vec<u8>> {
        const FILE_HEADER: usize = 24;
        let path = self.capture(place);
        let from = self.seen.get(&place).copied().unwrap_or(FILE_HEADER);
        let mut frames = Vec::new();
        let mut end = from;
        wait("the sentinel", || {
            (frames, end) = records(&path, from);
            frames.last().is_some_and(|last| last == sentinel)
        });
        frames.pop();
        self.seen.insert(place, end);
        frames
    }

    /// Sends a raw message and a barrier; the type and code of the ERROR that came before the
    /// barrier's answer, if one did.
    pub(crate) fn refusal(&self, version: Version, message: &[u8]) -> Option<(u16, u16)> {
        self.refusals(1, version, message).first().map(|(_, code)| *code)
    }

    /// Sends raw messages and a barrier to a bridge; transaction ids, types and codes of the ERRORs that came before
    /// the barrier's answer.
    fn refusals(&self, bridge: u64, version: Version, messages: &[u8]) -> Vec<(u32, (u16, u16))> {
        let mut stream = UnixStream::connect(self.folder.join(format!("br{bridge}.mgmt"))).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut out = Vec::new();
        openflow::Hello::write_message(VersionSet::only(version), 1, &mut out).unwrap();
        out.extend_from_slice(messages);
        let barrier = if version == Version::V1_0 { 18 } else { 20 };
        out.extend_from_slice(&[version.0, barrier, 0, 8, 0xb0, 0, 0, 0]);
        stream.write_all(&out).unwrap();
        let (mut buffer, mut found) = (Vec::new(), Vec::new());
        loop {
            while let Some(length) = openflow::frame::next(&buffer).unwrap() {
                let frame: Vec<u8> = buffer.drain(..length).collect();
                match frame[1] {
                    1 => {
                        let word = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
                        let xid = u32::from_be_bytes(frame[4..8].try_into().unwrap());
                        found.push((xid, (word(8), word(10))));
                    }
                    kind if kind == barrier + 1 => return found,
                    _ => {}
                }
            }
            let mut chunk = [0; 4096];
            let read = match stream.read(&mut chunk) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                read => read.unwrap(),
            };
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

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn interface((bridge, port): Place) -> String {
    format!("br{bridge}p{port}")
}

/// Of `ovs-vsctl`; options can follow.
fn add_port((bridge, port): Place, kind: &str) -> Vec<String> {
    let it = interface((bridge, port));
    let set = format!("-- set interface {it} type={kind} ofport_request={port}");
    words(&format!("-- add-port br{bridge} {it} {set}"))
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
