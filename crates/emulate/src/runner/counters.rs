//! The counters of a running switch, which any thread can read at any time.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The number of counters by message type. Both versions have lower types only. The last counter
/// counts all higher types.
const TYPES: usize = 32;

/// A switch's counters at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters {
    /// The time since the start of the runner.
    pub elapsed: Duration,
    /// The time that the switch's CPU spent on messages.
    pub busy: Duration,
    /// Messages handled, by type.
    pub received: [u64; TYPES],
    /// Messages sent, by type.
    pub sent: [u64; TYPES],
    /// Connections that were established. A dialled connection counts from its start.
    pub connections: u64,
    /// Connections that ended.
    pub disconnections: u64,
    /// Bytes for controllers that wait for room in the send buffer, at the last update.
    pub backlog: u64,
    /// Messages that were dropped because the controller does not read.
    pub dropped: u64,
    /// Messages of controllers that were dropped because the CPU queue of the switch was full.
    pub overflowed: u64,
    /// The largest number of messages that waited in the CPU queue.
    pub longest_queue: u64,
}

impl Counters {
    /// The share of time that the CPU was busy since an earlier copy of the counters.
    pub fn busy_fraction_since(&self, earlier: &Counters) -> f64 {
        let elapsed = self.elapsed.saturating_sub(earlier.elapsed).as_secs_f64();
        let busy = self.busy.saturating_sub(earlier.busy).as_secs_f64();
        if elapsed > 0.0 { busy / elapsed } else { 0.0 }
    }
}

/// The live counters. Only the runner's thread writes them.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) busy: AtomicU64,
    received: [AtomicU64; TYPES],
    sent: [AtomicU64; TYPES],
    pub(super) connections: AtomicU64,
    pub(super) disconnections: AtomicU64,
    pub(super) backlog: AtomicU64,
    dropped: AtomicU64,
    pub(super) overflowed: AtomicU64,
    pub(super) longest_queue: AtomicU64,
}

impl Shared {
    pub(super) fn count_received(&self, frame: &[u8]) {
        count(&self.received, openflow::frame::type_(frame));
    }

    /// Counts the frames in bytes that are about to be sent.
    pub(super) fn count_sent(&self, bytes: &[u8]) {
        for_each_frame(bytes, |frame| count(&self.sent, openflow::frame::type_(frame)));
    }

    /// Counts the frames in bytes that are dropped.
    pub(super) fn count_dropped(&self, bytes: &[u8]) {
        for_each_frame(bytes, |_| {
            self.dropped.fetch_add(1, Relaxed);
        });
    }

    pub(super) fn read(&self, elapsed: Duration) -> Counters {
        let all = |places: &[AtomicU64; TYPES]| std::array::from_fn(|i| places[i].load(Relaxed));
        Counters {
            elapsed,
            busy: Duration::from_nanos(self.busy.load(Relaxed)),
            received: all(&self.received),
            sent: all(&self.sent),
            connections: self.connections.load(Relaxed),
            disconnections: self.disconnections.load(Relaxed),
            backlog: self.backlog.load(Relaxed),
            dropped: self.dropped.load(Relaxed),
            overflowed: self.overflowed.load(Relaxed),
            longest_queue: self.longest_queue.load(Relaxed),
        }
    }
}

/// Calls `look` for each whole frame in order.
pub(super) fn for_each_frame(mut bytes: &[u8], mut look: impl FnMut(&[u8])) {
    while let Ok(Some(length)) = openflow::frame::next(bytes) {
        look(bytes.get(..length).unwrap_or_default());
        bytes = bytes.get(length..).unwrap_or_default();
    }
}

fn count(places: &[AtomicU64; TYPES], type_: Option<u8>) {
    let index = usize::from(type_.unwrap_or(u8::MAX)).min(TYPES - 1);
    if let Some(place) = places.get(index) {
        place.fetch_add(1, Relaxed);
    }
}
