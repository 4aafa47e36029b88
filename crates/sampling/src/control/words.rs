//! The inputs and outputs of the loop: servers, their reports, their orders.

use super::capacity::{ActiveSearch, CpuModel, PassiveSearch};
use super::enact::{Epoch, Step};
use crate::cost::Costs;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The settings of the loop.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The time between plans without another reason.
    pub interval: Duration,
    /// The shortest time between two plans, for any reason.
    pub least: Duration,
    /// The time that servers have for each step of an enactment.
    pub patience: Duration,
    /// A volume that differs by this share from the planned volume is a reason to plan again.
    pub change: f64,
    /// The time for which a server without headroom samples nothing.
    pub hold: Duration,
    /// The planned CPU use of a server, if its capacity is estimated from its CPU.
    pub fill: f64,
    /// How often to repeat active tests.
    pub test_interval: Duration,
    /// Whether servers sample for each other; `false` is the paper's comparison.
    pub is_collaborative: bool,
}

impl Default for Settings {
    /// Plans every ten seconds and when a volume changes by a tenth; fills servers to 80 %.
    fn default() -> Settings {
        Settings {
            interval: Duration::from_secs(10),
            least: Duration::from_secs(2),
            patience: Duration::from_secs(5),
            change: 0.1,
            hold: Duration::from_secs(10),
            fill: 0.8,
            test_interval: Duration::from_secs(30),
            is_collaborative: true,
        }
    }
}

/// The source of a server's capacity.
#[derive(Clone, Copy, Debug)]
pub enum Estimator {
    /// A known capacity.
    Fixed(f64),
    /// From CPU statistics.
    Cpu(CpuModel),
    /// By short tests: the time of the last series of tests, its result, and the current series.
    Active {
        /// When the last series of tests ended.
        last: Option<Duration>,
        /// The result of the last series.
        found: Option<f64>,
        /// The current series.
        search: Option<ActiveSearch>,
    },
    /// From rises of latency.
    Passive(PassiveSearch),
}

/// A server that takes part.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// α and β at the start.
    pub costs: Costs,
    /// Whether α and β are estimated during the run, from the server's CPU use and work.
    pub is_learning: bool,
    /// The least share of the server's traffic that has to be sampled.
    pub minimum: f64,
    /// The source of the server's capacity.
    pub estimator: Estimator,
}

/// The samples of a server, in packets per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sampled {
    /// Own traffic, processed here.
    pub local: f64,
    /// Own traffic, mirrored to others.
    pub mirrored: f64,
    /// Other servers' traffic, processed here.
    pub imported: f64,
}

/// The traffic that one server's guests send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Traffic {
    /// The receiving server; `None` if the traffic goes to none of the known servers.
    pub to: Option<usize>,
    /// The tenant.
    pub tenant: Option<usize>,
    /// Packets per second.
    pub volume: f64,
}

/// A report of a server.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    /// From its switch's counters.
    pub traffic: Vec<Traffic>,
    /// Share of its CPU that was busy.
    pub busy: Option<f64>,
    /// The samples of the same interval; costs are learnt from them and the CPU use.
    pub sampled: Option<Sampled>,
    /// Latency through its switch, in seconds.
    pub latency: Option<f64>,
}

/// A share of a server's traffic, and the server that processes it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// The server that processes it.
    pub to: usize,
    /// The tenant of the traffic; `None` for all tenants.
    pub tenant: Option<usize>,
    /// 0 to 1.
    pub rate: f64,
    /// How many packets each sample stands for: the inverse of all rates at which this traffic is sampled, here and
    /// elsewhere, so that what all processors state adds up to the traffic.
    pub one_in: f64,
}

/// Samples that come from one server (perhaps itself).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Import {
    /// The server whose traffic was sampled.
    pub from: usize,
    /// By tenant: how many packets each sample stands for.
    pub one_in: Vec<(Option<usize>, f64)>,
}

/// The part of a plan that one server needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// The plan's number.
    pub epoch: Epoch,
    /// Which of the two sets of names the plan uses; the previous plan uses the other set.
    pub generation: u8,
    /// Where its own traffic goes.
    pub sends: Vec<Share>,
    /// The samples that the server processes.
    pub receives: Vec<Import>,
}

/// An order to a server.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// [`Step::Prepare`], with the plan.
    Prepare(Assignment),
    /// Any other step.
    Step(Step),
    /// Mirror nothing more to this server, under any plan. The server does not answer this order.
    CutOff(usize),
    /// Send so many test packets per second through the switch for a moment.
    Test(f64),
}

/// An event for the user.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A plan was made and is being enacted.
    Planned {
        /// The number of the plan.
        epoch: Epoch,
        /// Packets per second that the plan samples.
        sampled: f64,
        /// Packets per second of all traffic.
        total: f64,
        /// Packets per second that servers could sample without collaboration.
        alone: f64,
    },
    /// The plan is in force on all servers.
    Enacted(Epoch),
    /// The plan is in force on no server.
    RolledBack {
        /// The number of the plan.
        epoch: Epoch,
        /// The server that failed.
        server: usize,
        /// The reason, as a sentence.
        why: String,
    },
    /// A server has vanished; no server mirrors to it.
    Gone {
        /// The server.
        server: usize,
        /// The reason, as a sentence.
        why: String,
    },
    /// A server has no headroom; the server samples nothing for a while, and no server mirrors to it.
    Cut(usize),
    /// Plans use other costs of a server from now on, because the server's data excludes the earlier costs.
    Costs {
        /// The server.
        server: usize,
        /// The earlier costs.
        before: Costs,
        /// The new costs.
        now: Costs,
    },
    /// There is no plan for the current problem.
    NoPlan(String),
}
