//! FEATURES.

use crate::switch::{Request, Switch};
use compile::Refused;
use openflow::v10::{Capabilities, FeaturesReply, SupportedActions};
use openflow::{List, TooLong};

impl Switch {
    /// The FEATURES_REPLY for a tenant: the tenant's ports, one table, and only allowed actions.
    pub(crate) fn features_v10(&mut self, request: &Request<'_>) -> Result<(), Refused> {
        if self.configures_ports(request.tenant) {
            self.postpone(request);
            return Ok(());
        }
        let ports = self.described_ports(request.tenant);
        let tenant = &self.tenants[request.tenant];
        let mut actions = SupportedActions(self.datapath.features().actions);
        if tenant.terms.queues.is_empty() || tenant.network.is_some() {
            actions = actions.without(SupportedActions::ENQUEUE);
        }
        let n_buffers = self.datapath.features().n_buffers.min(crate::buffers::CAPACITY as u32);
        self.reply(request, |switch, out| {
            FeaturesReply {
                datapath_id: switch.datapath_of(request.tenant),
                n_buffers,
                n_tables: 1,
                capabilities: Capabilities(switch.datapath.features().capabilities)
                    .without(Capabilities::STP | Capabilities::IP_REASM),
                actions,
                ports: List::EMPTY,
            }
            .write_message(request.header.xid, out)?;
            // Port descriptions with labels are longer than in the specification, so they are appended as bytes.
            for wire in ports.values() {
                out.extend_from_slice(wire);
            }
            if out.len() > usize::from(u16::MAX) {
                return Err(TooLong { length: out.len() });
            }
            crate::south::session::set_length(out);
            Ok(())
        });
        Ok(())
    }
}
