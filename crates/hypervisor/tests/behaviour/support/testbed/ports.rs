//! Checks of the ports that tenants on the testbed see as up, and of the ports whose rules their switches refuse.

use super::Testbed;
use hypervisor::TenantId;
use openflow::v13::{MultipartReply, MultipartReplyBody, PortState};
use openflow::{Version, v10};

impl Testbed {
    /// The ports of a tenant's switch that are not down, as the tenant's controller sees them.
    pub fn ports_up(&mut self, tenant: usize, switch: u64) -> Vec<u32> {
        self.raw.clear();
        if self.version(switch) == Version::V1_0 {
            self.speak(tenant, switch, "features");
            let received = std::mem::take(&mut self.raw).concat();
            let reply = v10::FeaturesReply::parse(&received[8..]).unwrap();
            let is_up = |port: &v10::PhyPort| !port.state.contains(v10::PortState::LINK_DOWN);
            return reply.ports.iter().filter(is_up).map(|port| port.port_no.0.into()).collect();
        }
        self.speak(tenant, switch, "stats port_desc");
        let received = std::mem::take(&mut self.raw).concat();
        let reply = MultipartReply::parse(&received[8..]).unwrap();
        let MultipartReplyBody::PortDesc(ports) = reply.body else { panic!("{received:?}") };
        let up = ports.iter().filter(|port| !port.state.contains(PortState::LINK_DOWN));
        up.map(|port| port.port_no.0).collect()
    }

    /// The tenants' ports that are down because a physical switch refuses their rules, as the core reports.
    pub fn refused(&self, switch: u64) -> Vec<(TenantId, u32)> {
        self.refused.get(&switch).cloned().unwrap_or_default()
    }
}
