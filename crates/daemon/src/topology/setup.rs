//! What the topology's thread is told to follow.

use std::collections::BTreeMap;
use std::sync::Arc;

use fabric::TenantId;
use fabric::embedding::SwitchMap;
use hypervisor::Policy;

use crate::config::{self, Config};

/// What each switch has to do for tenants' own networks, by datapath id.
pub type Maps = BTreeMap<u64, Arc<SwitchMap>>;

/// What the operator says of the network and of who is told what about it.
#[derive(Clone)]
pub struct Setup {
    /// `[topology]`
    pub topology: config::Topology,
    /// `[labels]`
    pub labels: config::Labels,
    /// All tenants.
    pub tenants: Vec<Tenant>,
    /// What each may see.
    pub policy: Arc<Policy>,
}

/// A tenant, as far as flows and labels are concerned.
#[derive(Clone)]
pub struct Tenant {
    /// Its number.
    pub id: TenantId,
    /// Its name.
    pub name: String,
    /// Whether it is told labels.
    pub is_told: bool,
    /// Its virtual interfaces.
    pub vnics: Vec<config::Vnic>,
}

impl Setup {
    /// From a configuration and the tenants' numbers, in its order.
    pub fn new(config: &Config, policy: Arc<Policy>) -> Setup {
        let tenants = config.tenants.iter().zip(&policy.tenants).map(|(tenant, own)| Tenant {
            id: own.id,
            name: tenant.name.clone(),
            is_told: tenant.labels.is_some(),
            vnics: tenant.vnics.clone(),
        });
        Setup {
            topology: config.topology.clone(),
            labels: config.labels.clone(),
            tenants: tenants.collect(),
            policy,
        }
    }

    /// Whether flows have to be followed: somebody wants to know what is left.
    pub fn tracks_flows(&self) -> bool {
        self.tenants.iter().any(|tenant| tenant.is_told)
    }
}
