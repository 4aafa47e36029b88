//! Which ports tenants on the stage are told to be up, and which their switches refuse.

use super::Stage;
use hypervisor::TenantId;
use openflow::v13::{MultipartReply, MultipartReplyBody, PortState};

impl Stage {
    /// The ports of a tenant's switch that are not down, as its controller is told (1.3).
    pub fn ports_up(&mut self, tenant: usize, switch: u64) -> Vec<u32> {
        self.raw.clear();
        self.speak(tenant, switch, "stats port_desc");
        let told = std::mem::take(&mut self.raw).concat();
        let reply = MultipartReply::parse(&told[8..]).unwrap();
        let MultipartReplyBody::PortDesc(ports) = reply.body else { panic!("{told:?}") };
        let up = ports.iter().filter(|port| !port.state.contains(PortState::LINK_DOWN));
        up.map(|port| port.port_no.0).collect()
    }

    /// The ports that a physical switch refuses, as whoever runs the hypervisor is told.
    pub fn refused(&self, switch: u64) -> Vec<(TenantId, u32)> {
        self.refused.get(&switch).cloned().unwrap_or_default()
    }
}
