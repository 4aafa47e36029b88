//! The topology for other threads: the newest state, and notices of changes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

use fabric::Network;

use super::state::Wire;

use crate::lock::lock;

/// The known network at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Grows with each change.
    pub number: u64,
    /// The switches, ports, plugged-in links and edges.
    pub network: Network,
    /// Present and past links between switches, with their origins.
    pub wires: Vec<Wire>,
}

/// Access to the newest topology. Cheap to clone.
#[derive(Clone, Default)]
pub struct Watch(Arc<Shared>);

#[derive(Default)]
struct Shared {
    current: Mutex<Arc<Snapshot>>,
    subscribers: Mutex<Vec<Weak<Slot>>>,
    refused: AtomicU64,
}

#[derive(Default)]
struct Slot {
    has_news: Mutex<bool>,
    changed: Condvar,
}

/// A subscription to changes. Changes that the subscriber has not noticed count as one change, and nobody waits for a
/// slow subscriber. Dropping the value ends the subscription.
pub struct Subscription(Arc<Slot>);

impl Watch {
    /// The newest state.
    pub fn current(&self) -> Arc<Snapshot> {
        Arc::clone(&lock(&self.0.current))
    }

    /// Received probes that were ignored since the start: late, forwarded by hosts, or at edge ports.
    pub fn refused_probes(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }

    pub(super) fn set_refused_probes(&self, refused: u64) {
        self.0.refused.store(refused, Ordering::Relaxed);
    }

    /// Subscribes to changes; the present state counts as the first change.
    pub fn subscribe(&self) -> Subscription {
        let slot = Arc::new(Slot::default());
        lock(&self.0.subscribers).push(Arc::downgrade(&slot));
        slot.notify();
        Subscription(slot)
    }

    pub(crate) fn publish(&self, snapshot: Snapshot) {
        *lock(&self.0.current) = Arc::new(snapshot);
        lock(&self.0.subscribers)
            .retain(|slot| slot.upgrade().inspect(|slot| slot.notify()).is_some());
    }
}

impl Subscription {
    /// Waits for the next change; `false` if there is none in time.
    pub fn wait(&self, within: Duration) -> bool {
        let Subscription(slot) = self;
        let waited =
            slot.changed.wait_timeout_while(lock(&slot.has_news), within, |has_news| !*has_news);
        std::mem::take(&mut *waited.unwrap_or_else(PoisonError::into_inner).0)
    }
}

impl Slot {
    fn notify(&self) {
        *lock(&self.has_news) = true;
        self.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unnoticed_topology_changes_are_one_change_for_a_subscriber() {
        let watch = Watch::default();
        let subscription = watch.subscribe();
        assert!(subscription.wait(Duration::ZERO) && !subscription.wait(Duration::ZERO));
        for number in 1..=3 {
            watch.publish(Snapshot { number, ..Snapshot::default() });
        }
        assert!(subscription.wait(Duration::ZERO) && !subscription.wait(Duration::ZERO));
        assert_eq!(watch.current().number, 3);
        // A later subscriber first gets the present state.
        let late = watch.subscribe();
        assert!(late.wait(Duration::ZERO));
        drop(subscription);
        watch.publish(Snapshot::default());
        assert_eq!(lock(&watch.0.subscribers).len(), 1);
    }
}
