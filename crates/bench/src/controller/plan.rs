//! The plan of a controller benchmark: switches, hosts, flow entries and the time of each test.

use crate::plan::{Identity, Setup, SwitchModel, TlsSides, Topology, Version};
use crate::stop::Stop;
use emulate::Layout;
use std::net::SocketAddr;

/// The plan of a controller benchmark.
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerPlan {
    /// The controller's name in results.
    pub name: String,
    /// The controller's version, for the report; empty if unknown.
    pub controller_version: String,
    /// The address of the controller.
    pub address: SocketAddr,
    /// The controller's process, if the controller runs on this machine.
    pub pid: Option<u32>,
    /// The addresses of the other controllers of the same network, in a cluster of any size.
    pub backups: Vec<SocketAddr>,
    /// The interfaces that the denial-of-service test attacks; if empty, the interface at
    /// [`address`](Self::address).
    pub attacks: Vec<SocketAddr>,
    /// The switches' identity towards controllers that speak TLS; absent: plain TCP.
    pub tls: Option<Identity>,
    /// The OpenFlow version.
    pub version: Version,
    /// The topologies. Discovery time is measured with each topology, and all other figures with
    /// the first topology.
    pub layouts: Vec<Layout>,
    /// The length of probes, in bytes without the frame check sequence:
    /// [`crate::rfc8456::FRAME_BYTES`].
    pub frame_bytes: usize,
    /// The number of emulated switches in tests in which each switch is alone (latency, throughput,
    /// rate).
    pub switches: usize,
    /// The number of hosts of each of these switches, and the number of destinations of paths.
    pub macs: u32,
    /// The number of trials of each test; the RFC requires at least ten.
    pub trials: usize,
    /// The sending time of one trial, in ms.
    pub trial_ms: u64,
    /// The longest wait of one trial, in ms.
    pub limit_ms: u64,
    /// The longest time of all handshakes together, in ms.
    pub handshake_ms: u64,
    /// The pause between trials, in ms.
    pub settle_ms: u64,
    /// The time between two queries of the northbound interface or of the tables, in ms.
    pub query_ms: u64,
    /// Messages in flight per switch in the throughput test; unfinished paths in the path rate
    /// tests.
    pub outstanding: u32,
    /// Messages per second in total in the tests at a steady rate.
    pub steady_rate: f64,
    /// Packets per second in each direction in the tests with a failure.
    pub traffic_rate: f64,
    /// The highest rate that the search tries, per second in total.
    pub highest_rate: f64,
    /// The largest number of sessions that is tried.
    pub most_sessions: usize,
    /// The largest number of switches in the discovery test.
    pub most_switches: u16,
    /// The largest number of flow entries that is tried.
    pub most_flows: usize,
    /// The seed of random choices.
    pub seed: u64,
    /// Ends the benchmark early on request; the result then has the tests measured so far.
    pub stop: Stop,
}

impl ControllerPlan {
    /// The defaults of cbench, where cbench has a default: 16 switches. Each switch has 100 hosts
    /// here. The topology is a leaf-spine network of two leaves and one spine: the smallest network
    /// that the RFC allows, without a loop.
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

    /// The topology of all tests that are not measured with several topologies.
    pub(crate) fn layout(&self) -> Layout {
        self.layouts.first().copied().unwrap_or(Layout::LeafSpine { leaves: 2, spines: 1 })
    }

    /// The interfaces that are attacked.
    pub(crate) fn attacked(&self) -> Vec<SocketAddr> {
        if self.attacks.is_empty() { vec![self.address] } else { self.attacks.clone() }
    }

    /// A setup with this number of independent switches.
    pub(crate) fn setup(&self, switches: usize) -> Setup {
        let switch = SwitchModel { macs: self.macs, ..SwitchModel::default() };
        let topology = Topology::Controller { address: self.address };
        let tls = TlsSides { switches: self.tls.clone(), ..TlsSides::default() };
        let (version, handshake_ms) = (self.version, self.handshake_ms);
        Setup { version, switch, handshake_ms, tls, ..Setup::new(topology, switches) }
    }
}
