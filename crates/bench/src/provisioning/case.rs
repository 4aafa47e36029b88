//! The plan of a provisioning benchmark, and its cases.

use crate::plan::Version;
use crate::stop::Stop;
use report::{Point, Scalar};
use std::path::PathBuf;

/// The plan of a provisioning benchmark, which measures how fast networks start and links move.
#[derive(Clone, Debug)]
pub struct Provisioning {
    /// The hypervisor's command, such as `weir serve`.
    pub command: Vec<String>,
    /// The number of physical switches, and of virtual switches: 9 to 1,000.
    pub switches: usize,
    /// Virtual links of the started network: 1 to 2,000.
    pub links: usize,
    /// Virtual links that move: 1 to 2,000.
    pub reroute: usize,
    /// The OpenFlow version.
    pub version: Version,
    /// The number of measurements of each case, in turn with the other cases.
    pub runs: usize,
    /// The longest allowed time of a start, in ms.
    pub start_limit_ms: f64,
    /// The longest allowed time of moving the links, in ms.
    pub reroute_limit_ms: f64,
    /// The seed of random choices.
    pub seed: u64,
    /// The folder of configurations and logs. The caller makes and removes this folder.
    pub work_dir: PathBuf,
    /// Ends the measurement early on request; the result then has the cases measured so far.
    pub stop: Stop,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Start,
    Reroute,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) phase: Phase,
    pub(super) backups: bool,
}

pub(super) const CASES: [Case; 4] = [
    Case { phase: Phase::Start, backups: false },
    Case { phase: Phase::Start, backups: true },
    Case { phase: Phase::Reroute, backups: false },
    Case { phase: Phase::Reroute, backups: true },
];

impl Case {
    pub(super) fn point(self, plan: &Provisioning) -> Point {
        let (phase, links) = match self.phase {
            Phase::Start => ("start", plan.links),
            Phase::Reroute => ("reroute", plan.reroute),
        };
        let backups = if self.backups { "yes" } else { "no" };
        let phase = Scalar::from(phase);
        Point::new("weir", [("phase", phase), ("links", links.into()), ("backups", backups.into())])
    }

    pub(super) fn limit(self, plan: &Provisioning) -> f64 {
        match self.phase {
            Phase::Start => plan.start_limit_ms,
            Phase::Reroute => plan.reroute_limit_ms,
        }
    }
}
