//! What `weir sampling run` and the agents on its servers say to each other: a line of JSON each, over the agent's stdin
//! and stdout. So an agent is wherever a command can be started, such as over ssh.

use agent::station;
use sampling::control::{Assignment, Step};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// To an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// The first of all: who it is.
    Setup(Box<Setup>),
    Prepare(Assignment),
    Step(Step),
    CutOff(usize),
    /// Answered by [`Report::Observed`]; also says that somebody is still there.
    Observe,
    /// Send so many test packets per second for a moment.
    Test(f64),
}

/// From an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Report {
    Ready,
    Answer {
        step: Step,
        error: Option<String>,
    },
    Observed(Observed),
    /// The share that came through.
    Tested(f64),
    /// It has stopped sampling: so much of its CPU was busy.
    HeadroomGone(f64),
    /// It cannot go on.
    Failed(String),
}

/// A server, as its agent has to know it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) station: station::Setup,
    pub(crate) namespace: Option<String>,
    /// Where its Open vSwitch has its sockets.
    pub(crate) switch: PathBuf,
    pub(crate) bridge: String,
    /// Two interfaces whose other ends are ports of the bridge, which leads the first's frames to the second.
    pub(crate) test: Option<[String; 2]>,
    pub(crate) cpu: Option<CpuSource>,
    /// The share of its CPU above which its headroom has vanished.
    pub(crate) limit: f64,
}

/// How a server's CPU use is known, where it is not the machine's.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CpuSource {
    /// `cpu.stat` of cgroup v2 or `cpuacct.usage` of v1.
    pub(crate) usage: PathBuf,
    /// How much of one CPU the server has.
    pub(crate) share: f64,
}

/// What an agent saw; counters count from their switch's beginning.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Observed {
    /// By the agent's own clock.
    pub(crate) seconds: f64,
    /// Packets that came in, by port.
    pub(crate) ports: Vec<(String, u64)>,
    /// Packets by port and destination address, as the switch's flows count them.
    pub(crate) flows: Vec<(String, String, u64)>,
    #[serde(default)]
    pub(crate) sampled: Counted,
    /// Since the observation before: the share of its CPU that was busy.
    pub(crate) busy: Option<f64>,
    /// The mean, and how far the latencies are apart (standard deviation), in seconds.
    pub(crate) latency: Option<f64>,
    pub(crate) jitter: Option<f64>,
}

/// Samples, counted from the agent's beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counted {
    /// Of its own, processed there.
    pub(crate) local: u64,
    /// Of its own, mirrored to others.
    pub(crate) mirrored: u64,
    /// Of others', processed there.
    pub(crate) imported: u64,
}
