//! The built-in experiments, one file each.
//!
//! Each experiment is a value with parameters ([`Experiment`]) that makes the [`Module`](crate::Module) of the
//! experiment.

mod capacity;
mod change;
mod delete;
mod experiment;
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
pub use experiment::{Common, Experiment};
pub use insert::{Insert, MatchKind};
pub use interaction::Interaction;
pub use modify::{Modification, Modify};
pub use packets::{Packets, Way};
pub use path_delay::PathDelay;
pub use port_status::PortStatus;
pub use queue::Queue;
pub(crate) use setup::for_all_probes;
pub use statistics::{Kind as StatisticsKind, Statistics};
pub use timestamp::Timestamp;
pub use update::Priorities;
