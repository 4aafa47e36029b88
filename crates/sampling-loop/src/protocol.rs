//! The messages between `weir sampling run` and the agents on its servers: one line of JSON each, over the agent's
//! stdin and stdout. So an agent can run wherever a command can be started, for example over ssh.

use agent::station;
use sampling::control::{Assignment, Step};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A message to an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// The first order: the server's setup.
    Setup(Box<Setup>),
    Prepare(Assignment),
    Step(Step),
    CutOff(usize),
    /// Asks for [`Report::Observed`]; also shows the agent that its caller still runs.
    Observe,
    /// Send so many test packets per second for a moment.
    Test(f64),
}

/// A message from an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Report {
    Ready,
    Answer {
        step: Step,
        error: Option<String>,
    },
    Observed(Observed),
    /// The share of test packets that arrived.
    Tested(f64),
    /// The server has stopped sampling, because this share of its CPU was busy.
    HeadroomGone(f64),
    /// The agent cannot go on.
    Failed(String),
}

/// The setup of a server for its agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) station: station::Setup,
    pub(crate) namespace: Option<String>,
    /// The folder of its Open vSwitch's sockets.
    pub(crate) switch: PathBuf,
    pub(crate) bridge: String,
    /// Two interfaces whose other ends are ports of the bridge. The bridge forwards the frames of the first interface
    /// to the second.
    pub(crate) test: Option<[String; 2]>,
    pub(crate) cpu: Option<CpuSource>,
    /// The CPU share above which the server has no headroom.
    pub(crate) limit: f64,
}

/// The source of a server's CPU use, if it is not the machine's.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CpuSource {
    /// `cpu.stat` of cgroup v2 or `cpuacct.usage` of v1.
    pub(crate) usage: PathBuf,
    /// The number of CPUs that the server has.
    pub(crate) share: f64,
}

/// An observation of an agent; counters count from the start of their switch.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Observed {
    /// The time of the agent's own clock.
    pub(crate) seconds: f64,
    /// Received packets, by port.
    pub(crate) ports: Vec<(String, u64)>,
    /// Packets by port and destination address, as the switch's flows count them.
    pub(crate) flows: Vec<(String, String, u64)>,
    #[serde(default)]
    pub(crate) sampled: Counted,
    /// The share of its CPU that was busy since the previous observation.
    pub(crate) busy: Option<f64>,
    /// The mean and the standard deviation of latencies, in seconds.
    pub(crate) latency: Option<f64>,
    pub(crate) jitter: Option<f64>,
}

/// Samples, counted from the start of the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counted {
    /// Own traffic, processed there.
    pub(crate) local: u64,
    /// Own traffic, mirrored to others.
    pub(crate) mirrored: u64,
    /// Other servers' traffic, processed there.
    pub(crate) imported: u64,
}
