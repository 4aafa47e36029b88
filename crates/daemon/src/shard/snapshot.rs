//! What a reload changes.

use std::collections::HashMap;
use std::sync::Arc;

use channel::Address;
use hypervisor::{Policy, Settings, TenantId};

use crate::admission::Admission;
use crate::config::{Keepalive, Reconnect};
use crate::identity::Identity;

/// What a reload changes, as one value.
#[derive(Clone)]
pub struct Snapshot {
    /// What to enforce.
    pub policy: Arc<Policy>,
    /// Where each tenant's controllers are.
    pub controllers: Arc<HashMap<TenantId, Vec<Address>>>,
    /// Bounds for switches that connect from now on.
    pub settings: Settings,
    /// How a dead peer is noticed.
    pub keepalive: Keepalive,
    /// Back-off towards controllers.
    pub reconnect: Reconnect,
    /// Whether changes of tenants' flow tables are told to the topology's thread.
    pub tracks_flows: bool,
    /// Which switches may come.
    pub admission: Arc<Admission>,
    /// Our identity over TLS, and which certificates are whose.
    pub identity: Identity,
}
