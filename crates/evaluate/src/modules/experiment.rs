//! The trait of an experiment, and the parameters of all experiments.

use crate::module::Module;

/// An experiment with its parameters.
pub trait Experiment {
    /// The command of the experiment.
    fn name(&self) -> &str;

    /// A new module that runs the experiment.
    fn module(&self) -> Box<dyn Module>;
}

/// The parameters of all experiments.
#[derive(Clone, Debug, PartialEq)]
pub struct Common {
    /// The number of repetitions of each case.
    pub repetitions: u32,
    /// Probes per second.
    pub rate: f64,
    /// The bytes of a probe, without the frame check sequence.
    pub length: usize,
    /// The timeout of a step, ns.
    pub patience: u64,
}

impl Default for Common {
    /// Ten repetitions, 12,500 probes of 100 bytes per second, five seconds per step.
    fn default() -> Self {
        Common { repetitions: 10, rate: 12_500.0, length: 100, patience: 5_000 * MILLISECOND }
    }
}

/// The priority of the entry below the measured entries.
pub(crate) const GUARD: u16 = 0x7000;
/// One millisecond in ns.
pub(crate) const MILLISECOND: u64 = 1_000_000;
