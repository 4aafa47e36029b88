//! Labels for REST and server-sent events: the last label of each link and tenant, and the stream of new labels.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use fabric::{Dpid, PortId, TenantId};
use hypervisor::Label;
use tokio::sync::broadcast;

use crate::lock::lock;

/// The most labels that a slow listener may lag behind; beyond, the listener is informed that it missed labels, and
/// asks for all of them.
const BEHIND: usize = 1024;

/// A tenant's label of the link behind a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkLabel {
    /// The tenant.
    pub tenant: TenantId,
    /// The port.
    pub port: PortId,
    /// The label.
    pub label: Label,
}

/// The labels for readers. Cheap to clone.
#[derive(Clone)]
pub struct LabelFeed(Arc<Shared>);

struct Shared {
    /// Tenants that get labels, by name.
    tenants: Mutex<BTreeMap<String, TenantId>>,
    labels: Mutex<BTreeMap<(TenantId, PortId), Label>>,
    /// The load of followed flows on links, by the sending port.
    loads: Mutex<BTreeMap<PortId, u64>>,
    stream: broadcast::Sender<LinkLabel>,
}

impl Default for LabelFeed {
    fn default() -> LabelFeed {
        let (stream, _) = broadcast::channel(BEHIND);
        let (tenants, labels, loads) = Default::default();
        LabelFeed(Arc::new(Shared { tenants, labels, loads, stream }))
    }
}

impl LabelFeed {
    /// The number of a tenant that gets labels.
    pub fn tenant(&self, name: &str) -> Option<TenantId> {
        lock(&self.0.tenants).get(name).copied()
    }

    /// The last labels of a tenant, by port.
    pub fn labels(&self, tenant: TenantId) -> Vec<(PortId, Label)> {
        let labels = lock(&self.0.labels);
        let own = labels.iter().filter(|((of, _), _)| *of == tenant);
        own.map(|((_, port), label)| (*port, *label)).collect()
    }

    /// The load of followed flows on links, in bits per second, by the sending port. A missing link never had a load.
    pub fn loads(&self) -> BTreeMap<PortId, u64> {
        lock(&self.0.loads).clone()
    }

    pub(super) fn set_loads(&self, changed: impl IntoIterator<Item = (PortId, u64)>) {
        lock(&self.0.loads).extend(changed);
    }

    /// All labels of all tenants from now on.
    pub fn listen(&self) -> broadcast::Receiver<LinkLabel> {
        self.0.stream.subscribe()
    }

    pub(super) fn set_tenants(&self, tenants: BTreeMap<String, TenantId>) {
        let is_known = |tenant: &TenantId| tenants.values().any(|other| other == tenant);
        lock(&self.0.labels).retain(|(tenant, _), _| is_known(tenant));
        *lock(&self.0.tenants) = tenants;
    }

    /// Sets the labels of a disconnected switch's links to 0. No other code sends these labels, because the switch's
    /// controllers are not connected.
    pub(super) fn handle_switch_gone(&self, dpid: Dpid) {
        let gone: Vec<LinkLabel> = lock(&self.0.labels)
            .iter()
            .filter(|((_, port), label)| port.dpid == dpid && label.left > 0)
            .map(|(&(tenant, port), &label)| LinkLabel {
                tenant,
                port,
                label: Label { left: 0, ..label },
            })
            .collect();
        gone.into_iter().for_each(|label| self.send(label));
    }

    pub(super) fn send(&self, label: LinkLabel) {
        lock(&self.0.labels).insert((label.tenant, label.port), label.label);
        // Sending fails only if there is no listener.
        let _ = self.0.stream.send(label);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_links_from_a_disconnected_switch_become_zero() {
        let (label_feed, red) = (LabelFeed::default(), TenantId(1));
        let label_of = |port: &str, left| LinkLabel {
            tenant: red,
            port: port.parse().unwrap(),
            label: Label { left, capacity: 10 },
        };
        for (port, left) in [("1 port 1", 7), ("1 port 2", 0), ("2 port 1", 8)] {
            label_feed.send(label_of(port, left));
        }
        let mut stream = label_feed.listen();
        label_feed.handle_switch_gone(Dpid(1));
        assert_eq!(stream.try_recv().ok(), Some(label_of("1 port 1", 0)));
        assert!(stream.try_recv().is_err(), "a label that was sent already is not sent again");
        let left: Vec<u64> = label_feed.labels(red).iter().map(|(_, label)| label.left).collect();
        assert_eq!(left, [0, 0, 8]);
    }
}
