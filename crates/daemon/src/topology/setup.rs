//! The setup of the topology's thread.

use std::collections::BTreeMap;
use std::sync::Arc;

use fabric::TenantId;
use fabric::embedding::SwitchMap;
use hypervisor::Policy;

use crate::config::{self, Config};

/// The maps of tenants' own networks, by datapath id.
pub type Maps = BTreeMap<u64, Arc<SwitchMap>>;

/// The operator's configuration of the network and of labels.
#[derive(Clone)]
pub struct Setup {
    /// `[topology]`
    pub topology: config::Topology,
    /// `[labels]`
    pub labels: config::Labels,
    /// All tenants.
    pub tenants: Vec<Tenant>,
    /// The policy: the ports that each tenant may see.
    pub policy: Arc<Policy>,
}

/// The data of a tenant for flows and labels.
#[derive(Clone)]
pub struct Tenant {
    /// The tenant's number.
    pub id: TenantId,
    /// The tenant's name.
    pub name: String,
    /// Whether the tenant gets labels.
    pub gets_labels: bool,
    /// The tenant's virtual interfaces.
    pub vnics: Vec<config::Vnic>,
}

impl Setup {
    /// The setup of a configuration and its policy.
    pub fn new(config: &Config, policy: Arc<Policy>) -> Setup {
        let tenants = config.tenants.iter().zip(&policy.tenants).map(|(tenant, own)| Tenant {
            id: own.id,
            name: tenant.name.clone(),
            gets_labels: tenant.labels.is_some(),
            vnics: tenant.vnics.clone(),
        });
        Setup {
            topology: config.topology.clone(),
            labels: config.labels.clone(),
            tenants: tenants.collect(),
            policy,
        }
    }

    /// Whether flows have to be followed, because a tenant gets labels.
    pub fn tracks_flows(&self) -> bool {
        self.tenants.iter().any(|tenant| tenant.gets_labels)
    }
}
