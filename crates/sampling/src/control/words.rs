//! What the loop is told and tells: servers as they take part, what they report, what they are to do.

use super::capacity::{ActiveSearch, CpuModel, PassiveSearch};
use super::enact::{Epoch, Step};
use crate::cost::Costs;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How the loop works.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How often to plan without a reason.
    pub interval: Duration,
    /// The least time between two plans, whatever the reason.
    pub least: Duration,
    /// How long servers may take for each step of an enactment.
    pub patience: Duration,
    /// A volume that differs by this share from the one planned with is a reason to plan again.
    pub change: f64,
    /// How long a server whose headroom vanished samples nothing.
    pub hold: Duration,
    /// Up to which share of its CPU a server is filled, where its CPU says what it bears.
    pub fill: f64,
    /// How often to repeat active tests.
    pub test_interval: Duration,
    /// Whether servers sample for each other; the paper's comparison is with `false`.
    pub is_collaborative: bool,
}

impl Default for Settings {
    /// Every ten seconds, on a change of a tenth; filled to 80 %.
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

/// How a server's capacity is known.
#[derive(Clone, Copy, Debug)]
pub enum Estimator {
    /// It was said.
    Fixed(f64),
    /// From CPU statistics.
    Cpu(CpuModel),
    /// By short tests; the time of the last, what it found, and the one under way.
    Active {
        /// When the last series of tests ended.
        last: Option<Duration>,
        /// What it found.
        found: Option<f64>,
        /// The series under way.
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
    /// α and β, as they are believed to be.
    pub costs: Costs,
    /// Whether they are estimated while it runs, from its CPU use and what it does.
    pub is_learning: bool,
    /// The least share of its traffic that has to be sampled.
    pub minimum: f64,
    /// How its capacity is known.
    pub estimator: Estimator,
}

/// What a server sampled, in packets per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sampled {
    /// Of its own, processed here.
    pub local: f64,
    /// Of its own, mirrored to others.
    pub mirrored: f64,
    /// Of others', processed here.
    pub imported: f64,
}

/// Traffic of one server: what its guests send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Traffic {
    /// To which server; `None` where it leaves the servers that are known.
    pub to: Option<usize>,
    /// Whose.
    pub tenant: Option<usize>,
    /// Packets per second.
    pub volume: f64,
}

/// What a server reported.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    /// By its switch's counters.
    pub traffic: Vec<Traffic>,
    /// Share of its CPU that was busy.
    pub busy: Option<f64>,
    /// What it did for samples meanwhile; costs are learnt from that and CPU use.
    pub sampled: Option<Sampled>,
    /// Latency through its switch, in seconds.
    pub latency: Option<f64>,
}

/// A share of a server's traffic, and who processes it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// The server that processes it.
    pub to: usize,
    /// Whose traffic; `None` for everybody's.
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
    /// Whose traffic it is.
    pub from: usize,
    /// By tenant: how many packets each sample stands for.
    pub one_in: Vec<(Option<usize>, f64)>,
}

/// A plan as one server has to know it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// The plan's number.
    pub epoch: Epoch,
    /// Which of the two sets of names it uses: the one that the plan before does not.
    pub generation: u8,
    /// Where its own traffic goes.
    pub sends: Vec<Share>,
    /// What it processes.
    pub receives: Vec<Import>,
}

/// What a server is to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// [`Step::Prepare`], with what is to be prepared.
    Prepare(Assignment),
    /// Any other step.
    Step(Step),
    /// Mirror nothing to that server any more, under no plan; not answered.
    CutOff(usize),
    /// Send so many test packets per second through the switch for a moment.
    Test(f64),
}

/// What whoever watches wants to know.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A plan was made and is being enacted.
    Planned {
        /// Its number.
        epoch: Epoch,
        /// Packets per second that it samples.
        sampled: f64,
        /// Of so many.
        total: f64,
        /// What servers could sample alone.
        alone: f64,
    },
    /// It is in force everywhere.
    Enacted(Epoch),
    /// It is in force nowhere.
    RolledBack {
        /// Its number.
        epoch: Epoch,
        /// Whose fault it was.
        server: usize,
        /// What happened.
        why: String,
    },
    /// A server is no more; nobody mirrors to it.
    Gone {
        /// Which.
        server: usize,
        /// What happened.
        why: String,
    },
    /// A server's headroom vanished; it samples nothing for a while, and nobody mirrors to it.
    Cut(usize),
    /// Plans reckon with other costs of a server from now on, since its own data excludes those before.
    Costs {
        /// Which.
        server: usize,
        /// Before.
        before: Costs,
        /// From now on.
        now: Costs,
    },
    /// What was asked for cannot be had.
    NoPlan(String),
}
