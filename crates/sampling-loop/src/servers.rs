//! A lab of servers. Each server is a namespace with its own Open vSwitch, a bounded share of the CPU, and guests.
//!
//! ```text
//!   weir-run1.red1 ── eth0 ┐                 ┌ eth… ══ (guests' traffic) ══ the other servers' bridges
//!                          ├ rack1: bridge br1
//!   weir-run1.blue1 ─ eth1 ┤                 └ eth… ══ (mirrored traffic, 10.99.0.1) ══ the other servers
//!   weir-run1.out1 ── eth2 ┘ the rest of the world
//! ```
//!
//! Bridges have one flow per port and receiver, so their counters show the traffic from each sender to each receiver. A
//! server's guests, switch and agent share its CPU, so sampling takes CPU time from the guests.

use crate::protocol::CpuSource;
use crate::site::{Guest, Site, SiteServer, SiteTenant};
use anyhow::Context;
use lab::{CpuBound, Lab, LabGuard, OpenVSwitch, Requirements, StateDirectory, Topology};
use packet::{Capture, CaptureOptions, Filter, Observation, in_namespace};
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The tenants of a lab, and their networks.
const TENANTS: [&str; 2] = ["red", "blue"];
/// The number of the port to the rest of the world; tenants' ports have the numbers before.
const OUTSIDE: usize = TENANTS.len();
const TAG: u64 = 0x5e41_10ad_0000_0003;

/// A lab of servers, each with an Open vSwitch and guests; dropping it takes the lab down.
pub struct Servers {
    // This field is dropped before the lab: the processes in the groups end first.
    guests: Vec<Child>,
    receivers: Vec<Receivers>,
    bounds: Vec<CpuBound>,
    lab: Option<LabGuard>,
    count: usize,
    site: Site,
}

/// The packets that guests received in an interval.
#[derive(Clone, Debug, Default)]
pub struct Received {
    /// The number of packets.
    pub packets: u64,
    /// Seconds.
    pub latencies: Vec<f64>,
    /// The length of the interval.
    pub seconds: f64,
}

impl Received {
    /// Packets per second.
    pub fn rate(&self) -> f64 {
        self.packets as f64 / self.seconds.max(1e-3)
    }

    /// The latency that this share of packets did not exceed.
    pub fn latency(&self, share: f64) -> Option<f64> {
        let mut all = self.latencies.clone();
        all.sort_by(f64::total_cmp);
        let at = (share * all.len().saturating_sub(1) as f64).round() as usize;
        all.get(at).copied()
    }
}

impl Servers {
    /// The site file of these servers, for a loop.
    #[must_use]
    pub fn site(&self) -> &Site {
        &self.site
    }

    /// The number of servers.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Makes the servers; `shares` has the CPU share of each.
    pub fn up(shares: &[f64]) -> anyhow::Result<Servers> {
        Requirements { switches: true, rates: false }.require()?;
        CpuBound::remove_abandoned();
        Lab::down_abandoned(&StateDirectory::default()).context("cannot clear old labs")?;
        let count = shares.len();
        let mut topology = Topology::builder();
        for server in 1..=count {
            topology.host(&format!("rack{server}"))?;
        }
        for server in 1..=count {
            for (tenant, name) in TENANTS.iter().enumerate() {
                let host = format!("{name}{server}");
                let mac = mac(tenant, server - 1).parse()?;
                topology.host_with(&host, mac, ip(tenant, server - 1), 8)?;
                topology.link(&format!("rack{server}"), &host, None)?;
            }
            let outside = format!("out{server}");
            let mac = mac(OUTSIDE, server - 1).parse()?;
            topology.host_with(&outside, mac, ip(OUTSIDE, server - 1), 8)?;
            topology.link(&format!("rack{server}"), &outside, None)?;
        }
        for (a, b) in pairs(count) {
            // One for guests' traffic, one for mirrored packets.
            for _ in 0..2 {
                topology.link(&format!("rack{}", a + 1), &format!("rack{}", b + 1), None)?;
            }
        }
        let options = lab::Options {
            name: Some(format!("run{}", std::process::id())),
            ephemeral: true,
            ..lab::Options::default()
        };
        let lab = LabGuard::new(Lab::up(&topology.build()?, &options)?);
        let bounds = shares.iter().enumerate();
        let bounds = bounds.map(|(at, share)| CpuBound::new(&format!("rack{}", at + 1), *share));
        let mut servers = Servers {
            guests: Vec::new(),
            receivers: Vec::new(),
            bounds: bounds.collect::<lab::Result<_>>()?,
            site: site(count),
            lab: Some(lab),
            count,
        };
        for server in 0..count {
            servers.set_up(server)?;
        }
        Ok(servers)
    }

    /// Puts a server's agent into the control group of the server's other processes.
    pub fn join(&self, server: usize, pid: i32) -> anyhow::Result<()> {
        match self.bounds.get(server) {
            Some(bound) => Ok(bound.add(pid)?),
            None => Ok(()),
        }
    }

    /// The namespace of one of the lab's nodes.
    pub fn namespace(&self, node: &str) -> anyhow::Result<String> {
        Ok(self.lab()?.namespace(node)?)
    }

    /// Starts the guests of each server, with the packets per second of each server. Red sends two thirds, blue the
    /// rest. Each sends half to the guests of its tenant at the other servers in turn, half to the rest of the world.
    pub fn send(&mut self, rates: &[f64], length: usize) -> anyhow::Result<()> {
        self.quiet();
        for (server, rate) in rates.iter().enumerate().filter(|(_, rate)| **rate > 0.0) {
            for (tenant, share) in [(0, 2.0 / 3.0), (1, 1.0 / 3.0)] {
                let child = self.guest(server, tenant, rate * share, length)?;
                self.join(server, i32::try_from(child.id()).unwrap_or(0))?;
                self.guests.push(child);
            }
        }
        Ok(())
    }

    fn guest(
        &self,
        server: usize,
        tenant: usize,
        rate: f64,
        length: usize,
    ) -> anyhow::Result<Child> {
        let name = TENANTS.get(tenant).copied().unwrap_or_default();
        let own = std::env::current_exe().context("cannot find this program")?;
        let mut command = Command::new(own);
        command.args(["sampling", "traffic", "--namespace"]);
        command.arg(self.namespace(&format!("{name}{}", server + 1))?);
        command.args(["--rate", &rate.to_string(), "--length", &length.to_string()]);
        command.args(["--tag", &TAG.to_string(), "--source-mac", &mac(tenant, server)]);
        command.args(["--source", &ip(tenant, server).to_string()]);
        let others = (0..self.count).filter(|to| *to != server);
        // The rest of the world gets as many packets as the servers of the lab.
        for to in others {
            command.args(["--to", &format!("{},{}", mac(OUTSIDE, server), ip(OUTSIDE, server))]);
            command.args(["--to", &format!("{},{}", mac(tenant, to), ip(tenant, to))]);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().context("cannot start a guest")
    }

    /// Ends the guests.
    pub fn quiet(&mut self) {
        for mut guest in self.guests.drain(..) {
            // The end of its stdin ends the guest; the kill is for a guest that goes on.
            drop(guest.stdin.take());
            let _ = guest.kill();
            let _ = guest.wait();
        }
    }

    /// Starts to count the packets that guests receive.
    pub fn watch(&mut self) -> anyhow::Result<()> {
        if self.receivers.is_empty() {
            for server in 1..=self.count {
                for name in TENANTS.iter().chain(&["out"]) {
                    let namespace = self.namespace(&format!("{name}{server}"))?;
                    self.receivers.push(Receivers::start(&namespace)?);
                }
            }
        }
        self.received();
        Ok(())
    }

    /// The packets received since the last call.
    pub fn received(&self) -> Received {
        let mut sum = Received::default();
        for one in &self.receivers {
            let mut one = one.count.lock().unwrap_or_else(PoisonError::into_inner);
            let (since, packets, latencies) = std::mem::replace(&mut *one, fresh());
            sum.packets += packets;
            sum.seconds = since.elapsed().as_secs_f64();
            sum.latencies.extend(latencies);
        }
        sum
    }

    /// Takes the lab down and reports errors, which dropping cannot do.
    pub fn down(mut self) -> anyhow::Result<()> {
        self.quiet();
        self.receivers.clear();
        let lab = self.lab.take();
        Ok(lab.map_or(Ok(()), LabGuard::down)?)
    }

    fn lab(&self) -> anyhow::Result<&LabGuard> {
        self.lab.as_ref().context("the lab is down")
    }

    fn set_up(&mut self, server: usize) -> anyhow::Result<()> {
        let rack = format!("rack{}", server + 1);
        let namespace = self.namespace(&rack)?;
        let mut script = format!("addr add {}/32 dev lo\n", underlay(server));
        // Test ports: the agent's ends, and the bridge's.
        for name in ["wt0", "wt1"] {
            let _ = writeln!(script, "link add {name} type veth peer name {name}p");
            let _ = writeln!(script, "link set {name} up\nlink set {name}p up");
        }
        for (other, port) in self.ways(server) {
            let _ = writeln!(
                script,
                "route add {}/32 dev eth{} src {}",
                underlay(other),
                port + 1,
                underlay(server)
            );
        }
        lab::tools::ip(Some(&namespace), &script)?;
        let folder = self.lab()?.folder().join(&rack);
        let switch = OpenVSwitch::start(&folder, &namespace)?;
        if let Some(bound) = self.bounds.get(server) {
            for process in switch.processes() {
                bound.add(process.pid)?;
            }
        }
        let bridge = format!("br{}", server + 1);
        let mut ports: Vec<String> = (0..=OUTSIDE).map(|at| format!("eth{at}")).collect();
        ports.extend(self.ways(server).into_iter().map(|(_, port)| format!("eth{port}")));
        ports.extend(["wt0p".to_owned(), "wt1p".to_owned()]);
        let mut arguments: Vec<String> = [
            "add-br",
            &bridge,
            "--",
            "set",
            "Bridge",
            &bridge,
            "datapath_type=netdev",
            "fail_mode=secure",
        ]
        .map(str::to_owned)
        .to_vec();
        for port in &ports {
            arguments.extend(["--", "add-port", &bridge, port].map(str::to_owned));
        }
        switch.vsctl(arguments)?;
        for flow in self.flows(server) {
            switch.ofctl(["add-flow", &bridge, &flow])?;
        }
        let usage = self
            .bounds
            .get(server)
            .map(|bound| CpuSource { usage: bound.usage_file().to_owned(), share: bound.share() });
        if let Some(site) = self.site.servers.get_mut(server) {
            (site.namespace, site.switch, site.bridge, site.cpu) =
                (Some(namespace), folder, bridge, usage);
        }
        Ok(())
    }

    /// The other servers, and the port that leads to each; mirrored packets take the next port.
    fn ways(&self, server: usize) -> Vec<(usize, usize)> {
        let mine = pairs(self.count).into_iter().filter(|(a, b)| *a == server || *b == server);
        let other = mine.map(|(a, b)| if a == server { b } else { a });
        other.enumerate().map(|(at, other)| (other, OUTSIDE + 1 + 2 * at)).collect()
    }

    fn flows(&self, server: usize) -> Vec<String> {
        let mut flows = vec!["in_port=wt0p,actions=output:wt1p".to_owned()];
        let ways = self.ways(server);
        for tenant in 0..TENANTS.len() {
            flows.push(format!(
                "in_port=eth{tenant},dl_dst={},actions=output:eth{OUTSIDE}",
                mac(OUTSIDE, server)
            ));
            for to in 0..self.count {
                let way = ways.iter().find(|(other, _)| *other == to);
                let out = way.map_or(tenant, |(_, port)| *port);
                let flow = |port: usize, out: usize| {
                    format!("in_port=eth{port},dl_dst={},actions=output:eth{out}", mac(tenant, to))
                };
                flows.push(flow(tenant, out));
                if to == server {
                    flows.extend(ways.iter().map(|(_, port)| flow(*port, tenant)));
                }
            }
        }
        flows
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.quiet();
        self.receivers.clear();
        // The lab, whose processes are in the groups, before the groups.
        drop(self.lab.take());
    }
}

fn pairs(count: usize) -> Vec<(usize, usize)> {
    (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b))).collect()
}

fn mac(tenant: usize, server: usize) -> String {
    format!("02:00:00:00:{:02x}:{:02x}", tenant + 1, server + 1)
}

fn ip(tenant: usize, server: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, tenant as u8 + 1, 0, server as u8 + 1)
}

fn underlay(server: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 99, 0, server as u8 + 1)
}

fn site(count: usize) -> Site {
    let tenant = |(index, name): (usize, &&str)| SiteTenant {
        name: (*name).to_owned(),
        network: format!("10.{}.0.0/16", index + 1),
        minimum: 0.0,
        weight: 1.0,
    };
    let guest = |server: usize, tenant: usize, name: &str| Guest {
        port: format!("eth{tenant}"),
        mac: mac(tenant, server),
        tenant: Some(name.to_owned()),
    };
    let server = |server: usize| SiteServer {
        name: format!("rack{}", server + 1),
        address: underlay(server),
        namespace: None,
        switch: std::path::PathBuf::new(),
        bridge: String::new(),
        guests: TENANTS.iter().enumerate().map(|(at, name)| guest(server, at, name)).collect(),
        test: Some(["wt0".to_owned(), "wt1".to_owned()]),
        cpu: None,
        capacity: None,
        minimum: 0.0,
        agent: Vec::new(),
    };
    Site {
        collector: SocketAddr::from(([127, 0, 0, 1], 0)),
        alpha: None,
        beta: None,
        tenants: TENANTS.iter().enumerate().map(tenant).collect(),
        servers: (0..count).map(server).collect(),
    }
}

/// Start time; packets; latencies.
type Count = (Instant, u64, Vec<f64>);

fn fresh() -> Count {
    (Instant::now(), 0, Vec::new())
}

/// One latency of so many is kept, up to this number.
const KEEP: u64 = 8;
const MOST: usize = 100_000;

/// A thread that counts what one guest receives.
struct Receivers {
    count: Arc<Mutex<Count>>,
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Receivers {
    fn start(namespace: &str) -> anyhow::Result<Receivers> {
        let options = CaptureOptions {
            filter: Some(Filter::probes(TAG)),
            blocks: 128,
            block_timeout: Duration::from_millis(20),
            ..CaptureOptions::default()
        };
        let mut capture = in_namespace(namespace, || Capture::open("eth0", &options))??;
        let count = Arc::new(Mutex::new(fresh()));
        let ending = Arc::new(AtomicBool::new(false));
        let (filled, seen) = (Arc::clone(&count), Arc::clone(&ending));
        let work = move || {
            while !seen.load(Ordering::Relaxed) {
                // An interface vanishes with its lab.
                let Ok(block) = capture.next_block(Duration::from_millis(100)) else { return };
                let Some(block) = block else { continue };
                let mut count = filled.lock().unwrap_or_else(PoisonError::into_inner);
                for frame in block.frames() {
                    count.1 += 1;
                    if count.1 % KEEP == 0
                        && count.2.len() < MOST
                        && let Some(seen) = Observation::of(&frame, TAG)
                    {
                        count.2.push(seen.latency() as f64 / 1e9);
                    }
                }
            }
        };
        let thread = std::thread::Builder::new().name("guest".to_owned()).spawn(work);
        Ok(Receivers { count, ending, thread: Some(thread.context("cannot start a thread")?) })
    }
}

impl Drop for Receivers {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
