//! `path-delay`: measures delay, loss and order from port to port, against rate and frame size.

use crate::module::{Event, Module, Orders};
use crate::modules::experiment::{Common, Experiment, MILLISECOND};
use crate::modules::path::{Path, Trial};
use crate::probe::headers;
use crate::record::Case;
use crate::rule::Action;

/// The parameters of the experiment.
#[derive(Clone, Debug)]
pub struct PathDelay {
    /// The parameters of all modules.
    pub common: Common,
    /// The duration of each repetition, ns.
    pub duration: u64,
    /// The probes per second.
    pub rates: Vec<f64>,
    /// The bytes of a probe.
    pub lengths: Vec<usize>,
}

impl PathDelay {
    /// 1,000 and 12,500 probes per second of 60, 100 and 1,500 bytes.
    pub fn new(common: Common) -> PathDelay {
        PathDelay {
            common,
            duration: 1_000 * MILLISECOND,
            rates: vec![1_000.0, 12_500.0],
            lengths: vec![60, 100, 1_500],
        }
    }
}

impl Experiment for PathDelay {
    fn name(&self) -> &str {
        "path-delay"
    }

    fn module(&self) -> Box<dyn Module> {
        Box::new(Late { plan: self.clone(), path: None })
    }
}

/// Makes the trials when the ports are known.
struct Late {
    plan: PathDelay,
    path: Option<Path>,
}

impl Late {
    fn trials(&self, out: u32) -> Vec<Trial> {
        let mut trials = Vec::new();
        for &length in &self.plan.lengths {
            for &rate in &self.plan.rates {
                let case = Case::new().with("rate", rate).with("length", length);
                let actions = vec![Action::Output(out)];
                trials.push(Trial { case, actions, headers: headers(0), length, rate });
            }
        }
        trials
    }
}

impl Module for Late {
    fn handle(&mut self, at: u64, event: &Event<'_>, orders: &mut Orders<'_>) {
        if self.path.is_none() {
            let common = &self.plan.common;
            let trials = self.trials(orders.port(1));
            self.path =
                Some(Path::new(trials, common.repetitions, self.plan.duration, common.patience));
        }
        if let Some(path) = &mut self.path {
            path.handle(at, event, orders);
        }
    }
}
