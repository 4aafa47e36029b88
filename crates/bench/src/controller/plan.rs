//! The plan of a controller benchmark: switches, hosts, flow entries and how long each test takes.

use crate::plan::{Identity, Setup, SwitchModel, TlsSides, Topology, Version};
use crate::stop::Stop;
use emulate::Layout;
use std::net::SocketAddr;

/// The plan of a controller benchmark.
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerPlan {
    /// What results call it.
    pub name: String,
    /// Its own version, for the report; empty where nobody said.
    pub controller_version: String,
    /// Where it listens.
    pub address: SocketAddr,
    /// Its process, when it is on this machine.
    pub pid: Option<u32>,
    /// Where the other controllers of the same network listen, in a cluster of any size.
    pub backups: Vec<SocketAddr>,
    /// The interfaces that denial of service attacks; none: the one at [`address`](Self::address).
    pub attacks: Vec<SocketAddr>,
    /// The switches' identity towards controllers that speak TLS; absent: plain TCP.
    pub tls: Option<Identity>,
    /// The OpenFlow version.
    pub version: Version,
    /// The topologies: discovery time is measured with each, everything else with the first.
    pub layouts: Vec<Layout>,
    /// How long probes are, in bytes without the frame check sequence: [`crate::rfc8456::FRAME_BYTES`].
    pub frame_bytes: usize,
    /// How many emulated switches there are where each is alone (latency, throughput, rate).
    pub switches: usize,
    /// How many hosts each of these has, and how many destinations paths lead to.
    pub macs: u32,
    /// How often each test is repeated; the RFC wants ten at least.
    pub trials: usize,
    /// How long one trial sends, in ms.
    pub trial_ms: u64,
    /// The longest that one trial waits for anything, in ms.
    pub limit_ms: u64,
    /// The longest that all handshakes together may take, in ms.
    pub handshake_ms: u64,
    /// How long a controller is left alone between trials, in ms.
    pub settle_ms: u64,
    /// How often the northbound interface is asked, and tables are looked at, in ms.
    pub query_ms: u64,
    /// Messages in flight per switch in the throughput test; paths in the making in the path rates.
    pub outstanding: u32,
    /// Messages per second in total in the tests at a steady rate.
    pub steady_rate: f64,
    /// Packets per second each way while something fails.
    pub traffic_rate: f64,
    /// The highest rate that the search tries, per second in total.
    pub highest_rate: f64,
    /// The most sessions that are tried.
    pub most_sessions: usize,
    /// The most switches that are to be discovered.
    pub most_switches: u16,
    /// The most flow entries that are tried.
    pub most_flows: usize,
    /// What random choices are drawn from.
    pub seed: u64,
    /// Ends the benchmark early on request; the result then has the tests measured so far.
    pub stop: Stop,
}

impl ControllerPlan {
    /// cbench's defaults where it has them: 16 switches; here with 100 hosts each. A leaf-spine
    /// network of two leaves and one spine: the least that the RFC allows, and without a loop.
    #[must_use]
    pub fn new(name: &str, address: SocketAddr, version: Version) -> Self {
        Self {
            name: name.to_owned(),
            controller_version: String::new(),
            address,
            pid: None,
            backups: Vec::new(),
            attacks: Vec::new(),
            tls: None,
            version,
            layouts: vec![Layout::LeafSpine { leaves: 2, spines: 1 }],
            frame_bytes: 128,
            switches: 16,
            macs: 100,
            trials: 10,
            trial_ms: 3_000,
            limit_ms: 30_000,
            handshake_ms: 10_000,
            settle_ms: 500,
            query_ms: 3_000,
            outstanding: 100,
            steady_rate: 500.0,
            traffic_rate: 200.0,
            highest_rate: 500_000.0,
            most_sessions: 1_000,
            most_switches: 100,
            most_flows: 10_000,
            seed: 1,
            stop: Stop::default(),
        }
    }

    /// The topology of everything that is not measured with several.
    pub(crate) fn layout(&self) -> Layout {
        self.layouts.first().copied().unwrap_or(Layout::LeafSpine { leaves: 2, spines: 1 })
    }

    /// The interfaces that are attacked.
    pub(crate) fn attacked(&self) -> Vec<SocketAddr> {
        if self.attacks.is_empty() { vec![self.address] } else { self.attacks.clone() }
    }

    /// So many switches that have nothing to do with one another.
    pub(crate) fn setup(&self, switches: usize) -> Setup {
        let switch = SwitchModel { macs: self.macs, ..SwitchModel::default() };
        let topology = Topology::Controller { address: self.address };
        let tls = TlsSides { switches: self.tls.clone(), ..TlsSides::default() };
        let (version, handshake_ms) = (self.version, self.handshake_ms);
        Setup { version, switch, handshake_ms, tls, ..Setup::new(topology, switches) }
    }
}
