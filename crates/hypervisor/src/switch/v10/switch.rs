//! FEATURES and QUEUE_GET_CONFIG.

use crate::south::pending::Awaits;
use crate::south::queue::Class;
use crate::switch::{Request, Switch};
use crate::time::Instant;
use crate::v10::unreadable;
use compile::{Reason, Refused};
use flowspace::port_from_v10;
use openflow::error::v10 as code;
use openflow::v10::{
    Capabilities, FeaturesReply, PacketQueue, QueueGetConfigReply, QueueGetConfigRequest,
    SupportedActions,
};
use openflow::{ErrorCode, List, ListBuf, TooLong};

impl Switch {
    /// The switch with the tenant's ports, one table, and without what the tenant may not do.
    pub(crate) fn features_v10(&mut self, request: &Request<'_>) -> Result<(), Refused> {
        if self.configures_ports(request.tenant) {
            self.postpone(request);
            return Ok(());
        }
        let ports = self.described_ports(request.tenant);
        let tenant = &self.tenants[request.tenant.0 as usize];
        let mut actions = SupportedActions(self.datapath.features().actions);
        if tenant.terms.queues().is_empty() || tenant.network.is_some() {
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
            // As they are: with labels they are longer than the specification has them.
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

    /// The queues of a port that the tenant sees.
    pub(crate) fn queue_config_v10(&mut self, request: &Request<'_>) -> Result<(), Refused> {
        let asked = QueueGetConfigRequest::parse(request.body()).map_err(unreadable)?;
        if !self.has_port(request.tenant, port_from_v10(asked.port.0)) {
            return Err(code::QUEUE_OP_FAILED_BAD_PORT.into());
        }
        if self.tenants[request.tenant.0 as usize].network.is_some() {
            // Virtual ports have no queues.
            self.reply(request, |_, out| {
                QueueGetConfigReply { port: asked.port, queues: List::EMPTY }
                    .write_message(request.header.xid, out)
            });
            return Ok(());
        }
        self.forward_request(request, Awaits::Reply, Class::Other, request.frame);
        Ok(())
    }

    /// Of the port's queues, those that the tenant may use.
    pub(crate) fn queue_config_reply_v10(
        &mut self,
        xid: u32,
        body: &[u8],
        now: Instant,
    ) -> Result<(), ErrorCode> {
        let reply = QueueGetConfigReply::parse(body).map_err(unreadable)?;
        let entry = self.acknowledge(xid, now).ok_or(code::BAD_REQUEST_BAD_TYPE)?;
        let Some(origin) = entry.origin.filter(|_| entry.awaits == Awaits::Reply) else {
            return Err(code::BAD_REQUEST_BAD_TYPE);
        };
        self.session.take(xid);
        let tenant = &self.tenants[origin.tenant.0 as usize];
        let mut queues = ListBuf::<PacketQueue<'_>>::new();
        for queue in reply.queues.iter().filter(|q| tenant.terms.queues().contains(&q.queue_id)) {
            queues.push(queue);
        }
        let mut message = alloc::vec::Vec::new();
        let pruned = QueueGetConfigReply { port: reply.port, queues: queues.as_list() };
        match pruned.write_message(origin.xid, &mut message) {
            Ok(()) => self.relay_reply(&origin, &message),
            Err(_) => {
                self.refuse(&origin, Reason::AnswerTooLarge.with(self.codes().too_much));
                self.answered(origin.tenant);
            }
        }
        Ok(())
    }
}
