//! The lab in which costs are measured: two hosts, a remote server, one Open vSwitch.

use super::cpu::CpuTime;
use agent::ovsdb::Database;
use anyhow::{Context, ensure};
use lab::{IperfOptions, IperfReport, Lab, LabGuard, Requirements, StateDirectory, Topology};
use std::net::{SocketAddr, UdpSocket};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The ports at which traffic comes in, and the one behind which the remote server is.
pub const PORTS: [&str; 2] = ["s1-eth1", "s1-eth2"];
pub const REMOTE: &str = "s1-eth3";
pub const SWITCH: &str = "s1";

pub struct Bridge {
    lab: LabGuard,
    sink: Sink,
    cpu: CpuTime,
}

/// What a TCP stream from h1 to h2 came to.
#[derive(Clone, Copy, Debug)]
pub struct Throughput {
    /// Bits per second that arrived.
    pub per_second: f64,
    /// Bits that arrived per second of CPU time that switch, hosts and samplers took.
    pub per_cpu_second: f64,
}

impl Bridge {
    pub fn up(cpu: usize) -> anyhow::Result<Bridge> {
        Requirements { switches: true, rates: false }.require()?;
        // What a killed calibration left.
        Lab::down_abandoned(&StateDirectory::default()).context("cannot clear old labs")?;
        let mut topology = Topology::builder();
        topology.switch(SWITCH)?;
        for host in ["h1", "h2", "remote"] {
            topology.host(host)?.link(SWITCH, host, None)?;
        }
        let options = lab::Options {
            name: Some(format!("calibrate{}", std::process::id())),
            static_arp: true,
            ephemeral: true,
            ..lab::Options::default()
        };
        let lab = LabGuard::new(Lab::up(&topology.build()?, &options)?);
        let here = lab.controller_address().context("the lab has no switch")?;
        let switches = lab.open_vswitch().context("the lab has no switch")?;
        let switch = switches.switch_process().context("Open vSwitch does not run")?;
        let cpu = CpuTime::of(vec![switch.pid], cpu);
        Ok(Bridge { lab, sink: Sink::open((here, 0).into())?, cpu })
    }

    pub fn down(self) -> anyhow::Result<()> {
        let Bridge { lab, sink, .. } = self;
        drop(sink);
        Ok(lab.down()?)
    }

    /// Where every mechanism sends its sFlow; it is read, and thrown away.
    pub fn collector(&self) -> SocketAddr {
        self.sink.address
    }

    /// The namespace in which the switch's ports are.
    pub fn namespace(&self) -> anyhow::Result<String> {
        Ok(self.lab.namespace(SWITCH)?)
    }

    pub fn database(&self) -> anyhow::Result<Database> {
        let switches = self.lab.open_vswitch().context("the lab has no switch")?;
        Ok(Database::connect(&switches.folder().join("db.sock"))?)
    }

    /// Runs `tc -batch` among the switch's ports.
    pub fn tc(&self, script: &str) -> anyhow::Result<()> {
        let mut command = self.lab.command(SWITCH, "tc")?;
        command
            .args(["-batch", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot start tc")?;
        if let Some(mut stdin) = child.stdin.take() {
            std::io::Write::write_all(&mut stdin, script.as_bytes())
                .context("cannot write to tc")?;
        }
        let output = child.wait_with_output().context("cannot wait for tc")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "tc refuses (does this kernel have cls_bpf and act_mirred?): {}",
            said.trim()
        );
        Ok(())
    }

    /// Sends as fast as it goes.
    pub fn throughput(&self, seconds: u16) -> anyhow::Result<Throughput> {
        let before = self.cpu.seconds();
        let report = self.stream(seconds)?;
        let used = self.cpu.seconds() - before;
        let bits = report.json["end"]["sum_received"]["bytes"].as_f64().unwrap_or(0.0) * 8.0;
        ensure!(bits > 0.0 && used > 0.0, "nothing arrived");
        Ok(Throughput { per_second: report.received, per_cpu_second: bits / used })
    }

    /// Bits per second in each second: (its end, rate).
    pub fn course(&self, seconds: u16) -> anyhow::Result<Vec<(f64, f64)>> {
        let report = self.stream(seconds)?;
        let intervals = report.json["intervals"].as_array().cloned().unwrap_or_default();
        let point = |interval: &serde_json::Value| {
            let sum = &interval["sum"];
            sum["end"].as_f64().zip(sum["bits_per_second"].as_f64())
        };
        Ok(intervals.iter().filter_map(point).collect())
    }

    fn stream(&self, seconds: u16) -> anyhow::Result<IperfReport> {
        let duration = Duration::from_secs(seconds.into());
        Ok(self.lab.iperf("h1", "h2", &IperfOptions { duration, ..IperfOptions::default() })?)
    }
}

/// A socket that a thread reads, so that nobody is told that the collector is down.
struct Sink {
    address: SocketAddr,
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Sink {
    fn open(address: SocketAddr) -> anyhow::Result<Sink> {
        let socket = UdpSocket::bind(address).context("cannot open a socket for samples")?;
        let address = socket.local_addr().context("a socket without address")?;
        socket
            .set_read_timeout(Some(Duration::from_millis(200)))
            .context("cannot set a timeout")?;
        let ending = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ending);
        let thread = std::thread::Builder::new().name("collector".to_owned()).spawn(move || {
            let mut buffer = [0; 2048];
            while !seen.load(Ordering::Relaxed) {
                let _ = socket.recv(&mut buffer);
            }
        });
        Ok(Sink { address, ending, thread: Some(thread.context("cannot start a thread")?) })
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
