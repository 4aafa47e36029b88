//! The observations of the attacked process.

use std::time::Duration;

/// The observations of the process.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) descriptors: Option<usize>,
    pub(super) log_lines_per_s: Option<f64>,
    pub(super) health: Option<Health>,
}

#[derive(Debug, Default)]
pub(super) struct Health {
    pub(super) unanswered: u64,
    pub(super) slowest: Duration,
}
