//! The built-in experiments, one file each.
//!
//! Each is a value that says what to measure ([`Experiment`]), and makes the [`Module`] that does it.

mod capacity;
mod change;
mod delete;
mod insert;
mod interaction;
mod modify;
mod packets;
mod path;
mod path_delay;
mod port_status;
mod queue;
mod search;
mod setup;
mod statistics;
mod timestamp;
mod update;

pub use capacity::Capacity;
pub use change::Change;
pub use delete::Delete;
pub use insert::{Insert, MatchKind, Priorities};
pub use interaction::Interaction;
pub use modify::{Modification, Modify};
pub use packets::{Packets, Way};
pub use path_delay::PathDelay;
pub use port_status::PortStatus;
pub use queue::Queue;
pub use statistics::{Kind as StatisticsKind, Statistics};
pub use timestamp::Timestamp;

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
