//! Labels for REST and server-sent events: what each tenant was told last, and the stream of what it is told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fabric::{PortId, TenantId};
use hypervisor::Label;
use tokio::sync::broadcast;

/// Labels that a listener may be behind; beyond, it is told that it missed some, and asks for all.
const BEHIND: usize = 1024;

/// What is left of the link behind a port, as one tenant was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// Who was told.
    pub tenant: TenantId,
    /// The port.
    pub port: PortId,
    /// What.
    pub label: Label,
}

/// Where it can be had. Cheap to clone.
#[derive(Clone)]
pub struct Board(Arc<Shared>);

struct Shared {
    /// Tenants that are told labels, by name.
    tenants: Mutex<BTreeMap<String, TenantId>>,
    labels: Mutex<BTreeMap<(TenantId, PortId), Label>>,
    stream: broadcast::Sender<Told>,
    counts: Mutex<Counts>,
}

/// How much is followed and told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Flows that are followed.
    pub flows: usize,
    /// Flows among them that do not come to their receiver.
    pub lost_flows: usize,
    /// Labels told, to all tenants together.
    pub told: u64,
    /// Labels that a newer one replaced before they were told.
    pub replaced: u64,
}

impl Default for Board {
    fn default() -> Board {
        let (stream, _) = broadcast::channel(BEHIND);
        let (tenants, labels, counts) = Default::default();
        Board(Arc::new(Shared { tenants, labels, stream, counts }))
    }
}

impl Board {
    /// A tenant that is told labels.
    pub fn tenant(&self, name: &str) -> Option<TenantId> {
        lock(&self.0.tenants).get(name).copied()
    }

    /// What a tenant was told last, by port.
    pub fn labels(&self, tenant: TenantId) -> Vec<(PortId, Label)> {
        let labels = lock(&self.0.labels);
        let own = labels.iter().filter(|((of, _), _)| *of == tenant);
        own.map(|((_, port), label)| (*port, *label)).collect()
    }

    /// Everything that is told to anybody from now on.
    pub fn listen(&self) -> broadcast::Receiver<Told> {
        self.0.stream.subscribe()
    }

    /// How much is followed and told.
    pub fn counts(&self) -> Counts {
        *lock(&self.0.counts)
    }

    pub(super) fn set_counts(&self, counts: Counts) {
        *lock(&self.0.counts) = counts;
    }

    pub(super) fn set_tenants(&self, tenants: BTreeMap<String, TenantId>) {
        let is_told = |tenant: &TenantId| tenants.values().any(|other| other == tenant);
        lock(&self.0.labels).retain(|(tenant, _), _| is_told(tenant));
        *lock(&self.0.tenants) = tenants;
    }

    pub(super) fn tell(&self, told: Told) {
        lock(&self.0.labels).insert((told.tenant, told.port), told.label);
        // Fails only when nobody listens.
        let _ = self.0.stream.send(told);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
