//! The compiler's input: the switch, the tenant, and the tenant's groups, meters and network here.

use super::{Switch, Tenant};
use crate::ids::TenantIndex;
use alloc::vec::Vec;
use compile::infra::{Infra, InfraTenant};
use compile::{Context, GroupTable, InfraRule, Instances, Network, Slice, Space, Target};
use openflow::v13::PortNo;

impl Switch {
    /// Whether a tenant's switch has the port.
    pub(crate) fn has_port(&self, tenant: TenantIndex, number: u32) -> bool {
        match &self.tenants[tenant].network {
            Some(network) => network.has_port(number),
            None => self.map.ownership().sees_port(tenant, number),
        }
    }

    /// The switch, as the compiler sees it.
    pub(crate) fn target(&self) -> Target {
        Target {
            wire: self.wire,
            tables: self.datapath.features().n_tables,
            is_joined: self.datapath.is_joined(),
        }
    }

    /// The number of tables that a tenant sees.
    pub(crate) fn tenant_tables(&self, tenant: TenantIndex) -> u8 {
        self.target().tenant_tables(self.tenants[tenant].network.is_some())
    }

    /// The bits of the metadata that the tenant does not own.
    pub(crate) fn metadata_kept(&self, tenant: TenantIndex) -> u64 {
        self.target().metadata_kept(self.tenants[tenant].network.is_some())
    }

    /// A tenant on the switch.
    pub(crate) fn context(&self, tenant: TenantIndex) -> Context<'_> {
        self.context_in(tenant, self.tenants[tenant].network.as_deref())
    }

    /// A tenant in a network that the tenant has or is about to have; without a network, in its slice.
    pub(crate) fn context_in<'a>(
        &'a self,
        tenant: TenantIndex,
        network: Option<&'a Network>,
    ) -> Context<'a> {
        let state = &self.tenants[tenant];
        Context {
            target: self.target(),
            tenant,
            id: state.id,
            space: network.map_or_else(|| Space::Slice(self.slice()), Space::Network),
            experimenters: &state.terms.experimenters,
            queues: &state.terms.queues,
            groups: state,
            labels: self.map.policy().tags.as_ref(),
        }
    }

    /// What the compiler needs of the physical network for slices.
    pub(crate) fn slice(&self) -> Slice<'_> {
        Slice { ownership: self.map.ownership(), ports: self.datapath.ports() }
    }

    /// Weir's own rules that the policy needs now.
    pub(crate) fn wanted_infra(&self) -> Vec<InfraRule> {
        let mut tenants = Vec::with_capacity(self.tenants.len());
        for Tenant { id, network, ports, .. } in self.tenants.iter() {
            let (network, refused_ports) = (network.as_deref(), ports.refused());
            tenants.push(InfraTenant { id: *id, network, refused_ports });
        }
        let infra = Infra {
            target: self.target(),
            map: self.map.policy().maps.get(&self.dpid()).map(|map| &**map),
            labels: self.map.policy().tags.as_ref(),
            ownership: self.map.ownership(),
            tenants,
        };
        infra.rules()
    }
}

impl GroupTable for Tenant {
    fn instances(&self, group: u32) -> Option<&Instances> {
        self.numbers.groups().get(group).map(|known| &known.instances)
    }

    fn egress(&self, output: PortNo) -> Option<&Instances> {
        let number = self.numbers.groups().egress_group(output)?;
        self.numbers.groups().any(number).map(|known| &known.instances)
    }

    fn meter(&self, meter: u32) -> Option<u32> {
        self.numbers.meters().get(meter).map(|known| known.instances.id())
    }
}
