//! The trait of an experiment, and the parameters of all experiments.

use packet::Headers;

use crate::module::{Module, Orders, Traffic};

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

/// Probes through the first channel for `duration` ns, at least one.
pub(crate) fn traffic(headers: Vec<Headers>, length: usize, rate: f64, duration: u64) -> Traffic {
    let count = (rate * duration as f64 / 1e9).max(1.0) as u32;
    Traffic { channel: 0, headers, length, rate, count, first: 0 }
}

/// The specification's name of an error.
pub(crate) fn error_name(code: (u16, u16), orders: &Orders<'_>) -> String {
    let code = openflow::ErrorCode { type_: code.0, code: code.1 };
    match code.name(orders.bench().version) {
        Some(name) => name.to_owned(),
        None => format!("type {}, code {}", code.type_, code.code),
    }
}

/// The priority of the entry below the measured entries.
pub(crate) const GUARD: u16 = 0x7000;
/// One millisecond in ns.
pub(crate) const MILLISECOND: u64 = 1_000_000;
