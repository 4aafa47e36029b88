//! The lab in which costs are measured: two paths through one Open vSwitch, and a remote server.

use super::turns::Turns;
use agent::mirror::VXLAN_PORT;
use agent::ovsdb::Database;
use anyhow::{Context, ensure};
use lab::{IperfOptions, Lab, LabGuard, Requirements, StateDirectory, Topology};
use std::net::{SocketAddr, UdpSocket};
use std::process::Stdio;
use std::time::Duration;

/// The ports at which traffic comes in, and the one behind which the remote server is.
pub const PORTS: [&str; 2] = ["s1-eth1", "s1-eth2"];
const REMOTE: &str = "s1-eth3";
/// Where mirrored frames go.
pub const TUNNEL: &str = "remote";
/// The bridge at which samples are taken, and the one at which none ever are.
pub const SWITCH: &str = "s1";
const UNTOUCHED: &str = "s2";

pub struct Bridge {
    lab: LabGuard,
    sink: Sink,
}

impl Bridge {
    pub fn up() -> anyhow::Result<Bridge> {
        Requirements { switches: true, rates: false }.require()?;
        // What a killed calibration left.
        Lab::down_abandoned(&StateDirectory::default()).context("cannot clear old labs")?;
        let mut topology = Topology::builder();
        topology.switch(SWITCH)?;
        for host in ["h1", "h2", "remote"] {
            topology.host(host)?.link(SWITCH, host, None)?;
        }
        topology.switch(UNTOUCHED)?;
        for host in ["h3", "h4"] {
            topology.host(host)?.link(UNTOUCHED, host, None)?;
        }
        let options = lab::Options {
            name: Some(format!("calibrate{}", std::process::id())),
            static_arp: true,
            ephemeral: true,
            ..lab::Options::default()
        };
        let lab = LabGuard::new(Lab::up(&topology.build()?, &options)?);
        let here = lab.controller_address().context("the lab has no switch")?;
        tunnel(&lab)?;
        Ok(Bridge { sink: Sink::open((here, 0).into())?, lab })
    }

    /// The two paths, with the CPU that all share.
    pub fn turns(&self, cpu: usize) -> anyhow::Result<Turns> {
        let switches = self.lab.open_vswitch().context("the lab has no switch")?;
        let switch = switches.switch_process().context("Open vSwitch does not run")?;
        Turns::open(&self.lab, [["h3", "h4"], ["h1", "h2"]], &[switch.pid], cpu)
    }

    pub fn down(self) -> anyhow::Result<()> {
        let Bridge { lab, sink } = self;
        drop(sink);
        Ok(lab.down()?)
    }

    /// Where every mechanism sends its sFlow; it is thrown away.
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
        batch(&self.lab, SWITCH, "tc", script)
            .context("does this kernel have cls_bpf and act_mirred?")
    }

    /// Bits per second in each second of a TCP stream: (its end, rate).
    pub fn course(&self, seconds: u16) -> anyhow::Result<Vec<(f64, f64)>> {
        let duration = Duration::from_secs(seconds.into());
        let options = IperfOptions { duration, ..IperfOptions::default() };
        let report = self.lab.iperf("h1", "h2", &options)?;
        let intervals = report.json["intervals"].as_array().cloned().unwrap_or_default();
        let point = |interval: &serde_json::Value| {
            let sum = &interval["sum"];
            sum["end"].as_f64().zip(sum["bits_per_second"].as_f64())
        };
        Ok(intervals.iter().filter_map(point).collect())
    }
}

/// Has `ip` or `tc` carry a script out at a node.
fn batch(lab: &Lab, node: &str, program: &str, script: &str) -> anyhow::Result<()> {
    let mut command = lab.command(node, program)?;
    command
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot start {program}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        std::io::Write::write_all(&mut stdin, script.as_bytes())
            .with_context(|| format!("cannot write to {program}"))?;
    }
    let output = child.wait_with_output().with_context(|| format!("cannot wait for {program}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program} refuses: {}", said.trim());
    Ok(())
}

/// A tunnel to the remote server, as between servers: VXLAN, past the switch. What the remote server does with it is not on
/// this account: it drops the datagrams, which are for a hardware address that it does not have.
fn tunnel(lab: &Lab) -> anyhow::Result<()> {
    let (here, there) = ("192.0.2.1", "192.0.2.2");
    batch(lab, "remote", "ip", "link set eth0 mtu 1600\n")?;
    let script = format!(
        "link set {REMOTE} mtu 1600\n\
         addr add {here}/30 dev {REMOTE}\n\
         neigh add {there} lladdr 02:00:00:00:00:fe dev {REMOTE} nud permanent\n\
         link add {TUNNEL} mtu 1550 type vxlan id 1 local {here} remote {there} dstport {VXLAN_PORT} nolearning\n\
         link set {TUNNEL} up\n"
    );
    batch(lab, SWITCH, "ip", &script).context("does this kernel have VXLAN?")
}

/// A socket that nobody reads, so that nobody is told that the collector is down, and its work is not on this machine's account.
struct Sink {
    address: SocketAddr,
    _socket: UdpSocket,
}

impl Sink {
    fn open(address: SocketAddr) -> anyhow::Result<Sink> {
        let socket = UdpSocket::bind(address).context("cannot open a socket for samples")?;
        let address = socket.local_addr().context("a socket without address")?;
        Ok(Sink { address, _socket: socket })
    }
}
