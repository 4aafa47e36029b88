//! `path-delay`: measures delay, loss and order from port to port, against rate and frame size.

use crate::module::Module;
use crate::modules::experiment::{Common, Experiment, MILLISECOND};
use crate::modules::path::{Path, Trial};
use crate::probe::headers;
use crate::record::Case;

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
        let mut trials = Vec::new();
        for &length in &self.lengths {
            for &rate in &self.rates {
                let case = Case::new().with("rate", rate).with("length", length);
                let (actions, headers) = (Vec::new(), headers(0));
                trials.push(Trial { case, actions, queue: None, headers, length, rate });
            }
        }
        Box::new(Path::new(trials, &self.common, self.duration))
    }
}
