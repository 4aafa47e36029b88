//! The progress of a run, for threads that do not take part.

use std::sync::atomic::{AtomicU64, AtomicUsize};

/// The progress of a worker, which all threads can read.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) sent: AtomicU64,
    pub(crate) arrived: AtomicU64,
    /// Senders that still have messages to send in this run.
    pub(crate) unfinished: AtomicUsize,
    /// Controllers' connections that have shaken hands.
    pub(crate) ready: AtomicUsize,
    /// Switches from which a controller has requested the features.
    pub(crate) introduced: AtomicUsize,
}
