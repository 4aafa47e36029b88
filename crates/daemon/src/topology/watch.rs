//! The topology for other threads: the newest state, and the changes since the last look.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use fabric::{LinkId, Network};

use super::state::Wire;

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

/// A change of the network.
#[derive(Clone, Debug)]
pub struct Change {
    /// The newest state.
    pub snapshot: Arc<Snapshot>,
    /// Links (both directions each) that went up or down or changed their capacity since the subscriber's last change;
    /// empty if only ports or switches without links have changed.
    pub links: Vec<LinkId>,
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
    news: Mutex<Option<BTreeSet<LinkId>>>,
    changed: Condvar,
}

/// A subscription to changes. Changes that the subscriber has not read are combined: each link occurs at most once, and
/// nobody waits for a slow subscriber. Dropping the value ends the subscription.
pub struct Subscription {
    watch: Watch,
    slot: Arc<Slot>,
}

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

    /// Subscribes to changes; the first change is due at once, with every link.
    pub fn subscribe(&self) -> Subscription {
        let slot = Arc::new(Slot::default());
        // The subscription is registered before the present state is read, so that no change is missed.
        lock(&self.0.subscribers).push(Arc::downgrade(&slot));
        let links: Vec<LinkId> = self.current().network.links().map(|(id, _)| id).collect();
        slot.notify(&links);
        Subscription { watch: self.clone(), slot }
    }

    pub(crate) fn publish(&self, snapshot: Snapshot, changed: &[LinkId]) {
        *lock(&self.0.current) = Arc::new(snapshot);
        lock(&self.0.subscribers)
            .retain(|slot| slot.upgrade().inspect(|slot| slot.notify(changed)).is_some());
    }
}

impl Subscription {
    /// The next change; `None` if there is none in time.
    pub fn wait(&self, within: Duration) -> Option<Change> {
        let deadline = Instant::now() + within;
        let mut news = lock(&self.slot.news);
        loop {
            if let Some(links) = news.take() {
                drop(news);
                return Some(Change {
                    snapshot: self.watch.current(),
                    links: links.into_iter().collect(),
                });
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let waited = self.slot.changed.wait_timeout(news, left);
            news = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Slot {
    fn notify(&self, links: &[LinkId]) {
        lock(&self.news).get_or_insert_default().extend(links);
        self.changed.notify_one();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric::{Bandwidth, Dpid, PortId};

    #[test]
    fn unread_topology_changes_are_merged_for_a_subscriber() {
        let watch = Watch::default();
        let mut network = Network::default();
        let port = |text: &str| text.parse::<PortId>().unwrap();
        for dpid in [1, 2] {
            network.add_switch(Dpid(dpid)).unwrap();
            network.add_port(port(&format!("{dpid} port 1"))).unwrap();
        }
        let capacity = Bandwidth::from_megabits_per_second(1);
        let (link, changed) =
            network.connect(port("1 port 1"), port("2 port 1"), capacity, Duration::ZERO).unwrap();
        let subscription = watch.subscribe();
        assert!(subscription.wait(Duration::ZERO).unwrap().links.is_empty());
        for number in 1..=3 {
            watch.publish(
                Snapshot { number, network: network.clone(), ..Snapshot::default() },
                &changed,
            );
        }
        let change = subscription.wait(Duration::ZERO).unwrap();
        assert_eq!((change.snapshot.number, change.links), (3, vec![link, link.reverse()]));
        assert!(subscription.wait(Duration::ZERO).is_none());
        // A later subscriber first gets the current state.
        let late = watch.subscribe();
        assert_eq!(late.wait(Duration::ZERO).unwrap().links.len(), 2);
        drop(subscription);
        watch.publish(Snapshot::default(), &[]);
        assert_eq!(lock(&watch.0.subscribers).len(), 1);
    }
}
