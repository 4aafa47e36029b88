//! Publishes the progress of a run for threads that do not take part in the run.

use std::sync::atomic::{AtomicU64, AtomicUsize};

/// The progress of a worker, which all threads can read.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) sent: AtomicU64,
    pub(crate) arrived: AtomicU64,
    /// The number of senders that still have messages to send in this run.
    pub(crate) unfinished: AtomicUsize,
    /// The number of controllers' connections with a complete handshake.
    pub(crate) ready: AtomicUsize,
    /// The number of switches from which a controller has requested the features.
    pub(crate) introduced: AtomicUsize,
}
