//! The values that a reload changes.

use std::collections::HashMap;
use std::sync::Arc;

use channel::Address;
use hypervisor::{Policy, Settings, TenantId};

use crate::admission::Admission;
use crate::config::{Keepalive, Reconnect};
use crate::identity::Identity;

/// The values that a reload changes, as one value.
#[derive(Clone)]
pub struct Snapshot {
    /// The policy to enforce.
    pub policy: Arc<Policy>,
    /// The addresses of each tenant's controllers.
    pub controllers: Arc<HashMap<TenantId, Vec<Address>>>,
    /// The bounds for switches that connect from now on.
    pub settings: Settings,
    /// The detection of dead peers.
    pub keepalive: Keepalive,
    /// The back-off towards controllers.
    pub reconnect: Reconnect,
    /// Whether changes of tenants' flow tables are reported to the topology's thread.
    pub tracks_flows: bool,
    /// The admission of switches.
    pub admission: Arc<Admission>,
    /// Weir's identities over TLS, and the certificates of peers.
    pub identity: Identity,
}
