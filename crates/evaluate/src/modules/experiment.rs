//! What an experiment is, and what all experiments share.

use crate::module::Module;

/// What to measure.
pub trait Experiment {
    /// The command that asks for it.
    fn name(&self) -> &str;

    /// The module that does it, at its beginning.
    fn module(&self) -> Box<dyn Module>;
}

/// What all experiments share.
#[derive(Clone, Debug, PartialEq)]
pub struct Common {
    /// How often each case is measured.
    pub repetitions: u32,
    /// Probes per second.
    pub rate: f64,
    /// Bytes of a probe, without the frame check sequence.
    pub length: usize,
    /// The longest that any step may take, ns.
    pub patience: u64,
}

impl Default for Common {
    /// Ten repetitions, 12,500 probes of 100 bytes a second, five seconds a step.
    fn default() -> Self {
        Common { repetitions: 10, rate: 12_500.0, length: 100, patience: 5_000 * MILLISECOND }
    }
}

/// Priority of the entry that stands below those that are measured.
pub(crate) const GUARD: u16 = 0x7000;
/// In ns.
pub(crate) const MILLISECOND: u64 = 1_000_000;
