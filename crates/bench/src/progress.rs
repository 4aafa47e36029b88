//! How far a run is, for those who do not run it.

use std::sync::atomic::{AtomicU64, AtomicUsize};

/// What all can see while a worker works.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) sent: AtomicU64,
    pub(crate) arrived: AtomicU64,
    /// Senders that still have something to send in this run.
    pub(crate) unfinished: AtomicUsize,
    /// Controllers' connections that have shaken hands.
    pub(crate) ready: AtomicUsize,
    /// Switches that a controller has asked for their features.
    pub(crate) introduced: AtomicUsize,
}
