//! The network for measuring costs: two paths through one Open vSwitch (a lab's own or a running one), and a remote
//! server.

use super::borrowed::{Borrowed, Target};
use super::place::Place;
use super::stream::Batch;
use super::turns::Turns;
use agent::mirror::VXLAN_PORT;
use agent::ovsdb::Database;
use anyhow::{Context, ensure};
use lab::{IperfOptions, Lab, LabGuard, Requirements, StateDirectory, Topology, tools};
use packet::in_namespace;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

/// The hosts of the sampled path, and of the path that is never sampled.
const SAMPLED: [&str; 2] = ["h1", "h2"];
const UNTOUCHED: [&str; 2] = ["h3", "h4"];
const REMOTE: &str = "remote";

pub(crate) struct Bridge {
    // This field is dropped before the lab: the ports in a foreign switch are removed first.
    borrowed: Option<Borrowed>,
    lab: LabGuard,
    sink: Sink,
    pub(crate) place: Place,
}

impl Bridge {
    /// Uses an Open vSwitch of the lab's own, or the given bridge; everything runs on the given CPU.
    pub(crate) fn up(target: Option<&Target>, cpu: usize) -> anyhow::Result<Bridge> {
        // A running bridge may have any datapath.
        Requirements { switches: target.is_none(), rates: false }.require()?;
        // Removes everything that a killed calibration left.
        Lab::down_abandoned(&StateDirectory::default()).context("cannot clear old labs")?;
        let bridge = match target {
            None => Bridge::of_its_own()?,
            Some(target) => Bridge::at(target, cpu)?,
        };
        tunnel(&bridge.lab, &bridge.place)?;
        Ok(bridge)
    }

    fn of_its_own() -> anyhow::Result<Bridge> {
        let mut topology = Topology::builder();
        topology.switch("s1")?;
        for host in SAMPLED.into_iter().chain([REMOTE]) {
            topology.host(host)?.link("s1", host, None)?;
        }
        topology.switch("s2")?;
        for host in UNTOUCHED {
            topology.host(host)?.link("s2", host, None)?;
        }
        let lab = make(&topology.build()?)?;
        let here = lab.controller_address().context("the lab has no switch")?;
        let switches = lab.open_vswitch().context("the lab has no switch")?;
        let process = switches.switch_process().context("Open vSwitch does not run")?.pid;
        let place = Place {
            bridge: "s1".to_owned(),
            ports: ["s1-eth1", "s1-eth2"].map(str::to_owned),
            remote: "s1-eth3".to_owned(),
            tunnel: "remote".to_owned(),
            namespace: lab.namespace("s1")?,
            folder: switches.folder().to_owned(),
            process,
        };
        Ok(Bridge { borrowed: None, sink: Sink::open((here, 0).into())?, lab, place })
    }

    fn at(target: &Target, cpu: usize) -> anyhow::Result<Bridge> {
        // All ends are at one node first, and then move to the switch's namespace.
        let mut topology = Topology::builder();
        topology.host("ends")?;
        let hosts = SAMPLED.into_iter().chain(UNTOUCHED).chain([REMOTE]);
        for (number, host) in (1..).zip(hosts) {
            // These addresses belong to no other device of the switch: they are locally administered, and the IP
            // addresses are of the range for benchmarks (RFC 2544).
            let mac = format!("02:77:65:69:72:{number:02x}").parse()?;
            let address = Ipv4Addr::new(198, 18, 77, number);
            topology.host_with(host, mac, address, 24)?.link("ends", host, None)?;
        }
        let lab = make(&topology.build()?)?;
        let (borrowed, place) = Borrowed::join(target, &lab.namespace("ends")?, cpu)?;
        let here = || Sink::open((Ipv4Addr::LOCALHOST, 0).into());
        let sink = in_namespace(&place.namespace, here)??;
        Ok(Bridge { borrowed: Some(borrowed), lab, sink, place })
    }

    /// The two paths, with the CPU that all share. Each frame has its own memory, as a frame from a network card.
    /// Otherwise the frames of a batch would share its memory: one frame that waits for a program would keep all of it,
    /// and a few samples would cost the sender the memory in its cache.
    pub(crate) fn turns(&self, cpu: usize, batch: Batch) -> anyhow::Result<Turns> {
        self.scatter_gather(false)?;
        Turns::open(&self.lab, [UNTOUCHED, SAMPLED], &[self.place.process], cpu, batch)
    }

    pub(crate) fn down(self) -> anyhow::Result<()> {
        let Bridge { borrowed, lab, sink, place: _ } = self;
        drop(sink);
        let left = borrowed.map_or(Ok(()), Borrowed::leave);
        lab.down()?;
        left
    }

    /// The address for every mechanism's sFlow, which is discarded.
    pub(crate) fn collector(&self) -> SocketAddr {
        self.sink.address
    }

    pub(crate) fn database(&self) -> anyhow::Result<Database> {
        Ok(Database::connect(&self.place.folder.join("db.sock"))?)
    }

    /// Runs `tc -batch` among the switch's ports.
    pub(crate) fn tc(&self, script: &str) -> anyhow::Result<()> {
        tools::tc(Some(&self.place.namespace), script)
            .context("does this kernel have cls_bpf and act_mirred?")
    }

    /// Whether hosts may send frames that share memory.
    fn scatter_gather(&self, on: bool) -> anyhow::Result<()> {
        let words = ["ethtool", "-K", "eth0", "sg", if on { "on" } else { "off" }];
        for host in SAMPLED.into_iter().chain(UNTOUCHED) {
            let output = self.lab.exec(host, &words)?;
            let said = String::from_utf8_lossy(&output.stderr);
            ensure!(output.status.success(), "ethtool cannot set up {host}: {}", said.trim());
        }
        Ok(())
    }

    /// Bits per second in each second of a TCP stream: (its end, rate).
    pub(crate) fn course(&self, seconds: u16) -> anyhow::Result<Vec<(f64, f64)>> {
        self.scatter_gather(true)?;
        let duration = Duration::from_secs(seconds.into());
        let options = IperfOptions { duration, ..IperfOptions::default() };
        let report = self.lab.iperf(SAMPLED[0], SAMPLED[1], &options)?;
        let intervals = report.json["intervals"].as_array().cloned().unwrap_or_default();
        let point = |interval: &serde_json::Value| {
            let sum = &interval["sum"];
            sum["end"].as_f64().zip(sum["bits_per_second"].as_f64())
        };
        Ok(intervals.iter().filter_map(point).collect())
    }
}

fn make(topology: &Topology) -> anyhow::Result<LabGuard> {
    let options = lab::Options {
        name: Some(format!("calibrate{}", std::process::id())),
        static_arp: true,
        ephemeral: true,
        ..lab::Options::default()
    };
    Ok(LabGuard::new(Lab::up(topology, &options)?))
}

/// A tunnel to the remote server, as between servers: VXLAN, past the switch. The remote server's work does not count:
/// it drops the datagrams, because they have another hardware address.
fn tunnel(lab: &Lab, place: &Place) -> anyhow::Result<()> {
    let (here, there) = ("192.0.2.1", "192.0.2.2");
    let Place { remote, tunnel, namespace, .. } = place;
    tools::ip(Some(&lab.namespace(REMOTE)?), "link set eth0 mtu 1600\n")?;
    let script = format!(
        "link set {remote} mtu 1600\n\
         addr add {here}/30 dev {remote}\n\
         neigh add {there} lladdr 02:00:00:00:00:fe dev {remote} nud permanent\n\
         link add {tunnel} mtu 1550 type vxlan id 1 local {here} remote {there} dstport {VXLAN_PORT} nolearning\n\
         link set {tunnel} up\n"
    );
    tools::ip(Some(namespace), &script).context("does this kernel have VXLAN?")
}

/// A socket that no program reads: senders get no error that the collector is down, and the collector's work does not
/// count.
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
