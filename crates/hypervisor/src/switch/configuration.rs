//! GET_CONFIG and SET_CONFIG, PORT_STATUS and PORT_MOD, QUEUE_GET_CONFIG, and messages of experimenters.

use super::{Request, Switch};
use crate::messages;
use crate::port_desc::PORT_DELETE;
use crate::south::pending::Awaits;
use crate::south::queue::Class;
use crate::time::Instant;
use alloc::vec::Vec;
use compile::{Reason, Refused};
use openflow::error::v13 as code;
use openflow::v13::{ConfigFlags, MessageType, PortNo, SwitchConfig};
use openflow::{ErrorCode, Header, frame};

impl Switch {
    /// Each tenant has its own configuration: the switch sends whole packets, and Weir shortens a PACKET_IN of a table
    /// miss to the tenant's `miss_send_len`. The message has the same form and type in both versions.
    pub(super) fn get_config(&mut self, request: &Request<'_>) -> Result<(), Refused> {
        let miss_send_len = self.tenants[request.tenant].packets.miss_send_len();
        let config = SwitchConfig { flags: ConfigFlags::FRAG_NORMAL, miss_send_len };
        self.reply(request, |switch, out| {
            let (type_, xid) = (MessageType::GET_CONFIG_REPLY.0, request.header.xid);
            frame::write(switch.version(), type_, xid, out, |out| config.write(out))
        });
        Ok(())
    }

    /// The treatment of fragments is the same for all tenants, so no tenant can change it.
    pub(super) fn set_config(&mut self, request: &Request<'_>) -> Result<(), Refused> {
        let config = SwitchConfig::parse(request.body()).map_err(|it| self.unreadable(&it))?;
        if config.flags.intersects(ConfigFlags::FRAG_MASK) {
            return Err(self.codes().config_not_permitted.into());
        }
        self.tenants[request.tenant].packets.set_miss_send_len(config.miss_send_len);
        Ok(())
    }

    /// A port was added, removed or changed: the tenants that see the port get a PORT_STATUS, and entries with FLOOD
    /// are compiled again.
    pub(super) fn port_status(&mut self, body: &[u8], now: Instant) -> Result<(), ErrorCode> {
        let (reason, number, port) = messages::port_status(self.wire, body)?;
        let wire = port.description.clone();
        self.port_changed(number, (reason != PORT_DELETE).then_some(port), now);
        self.report_slices(number, &wire, reason, None);
        Ok(())
    }

    /// A port of a network belongs to its tenant. A port of a slice belongs to one tenant, or no tenant may configure
    /// it.
    pub(super) fn port_mod(&mut self, request: &Request<'_>) -> Result<(), Refused> {
        let change = messages::port_mod(self.wire, request.body())?;
        let (tenant, number) = (request.tenant, change.number);
        if self.tenants[tenant].network.is_some() {
            return self.configure_port(request, &change);
        }
        let (ownership, codes) = (self.map.ownership(), &self.codes().port_mod);
        if !ownership.sees_port(tenant, number) || !self.datapath.ports().contains_key(&number) {
            return Err(codes.bad_port.into());
        }
        if !ownership.owns_port_whole(tenant, number) {
            return Err(Reason::PortShared.with(codes.not_permitted));
        }
        self.forward_port_mod(request, &change);
        Ok(())
    }

    /// The queues of a port that the tenant sees.
    pub(super) fn queue_config(&mut self, request: &Request<'_>) -> Result<(), Refused> {
        let (port, head) = messages::queue_port(self.wire, request.body())?;
        if port != PortNo::ANY && !self.has_port(request.tenant, port.0) {
            return Err(self.codes().queue_bad_port.into());
        }
        if self.tenants[request.tenant].network.is_some() {
            // Virtual ports have no queues. The type of the reply is the next number.
            let Header { version, type_, xid, .. } = request.header;
            self.reply(request, |_, out| {
                frame::write(version, type_ + 1, xid, out, |out| out.extend_from_slice(&head))
            });
            return Ok(());
        }
        self.forward_request(request, Awaits::Reply, Class::Other, request.frame);
        Ok(())
    }

    /// Sends the queues of the tenant's ports that the tenant may use.
    pub(super) fn queue_config_reply(
        &mut self,
        Header { version, type_, xid, .. }: Header,
        body: &[u8],
        now: Instant,
    ) -> Result<(), ErrorCode> {
        let queues = messages::queues(self.wire, body)?;
        // The error code has the same number in both versions.
        let entry = self.session.acknowledge(xid, now).ok_or(code::BAD_REQUEST_BAD_TYPE)?;
        let origin = entry.origin.filter(|_| entry.awaits == Awaits::Reply);
        let origin = origin.ok_or(code::BAD_REQUEST_BAD_TYPE)?;
        self.session.take(xid);
        let allowed = &self.tenants[origin.tenant].terms.queues;
        let own = queues.iter().filter(|(port, queue, _)| {
            allowed.contains(queue) && self.map.ownership().sees_port(origin.tenant, *port)
        });
        let own = own.flat_map(|(_, _, description)| description);
        let body: Vec<u8> = body.iter().take(8).chain(own).copied().collect();
        let mut message = Vec::new();
        // The reply is not longer than the switch's reply.
        let _ = frame::write(version, type_, 0, &mut message, |out| out.extend_from_slice(&body));
        self.relay_reply(&origin, &message);
        Ok(())
    }

    /// A tenant may send messages of an experimenter that the operator has allowed for the tenant. The error codes have
    /// the same numbers in both versions.
    pub(super) fn experimenter(&mut self, request: &Request<'_>) -> Result<(), Refused> {
        let experimenter = messages::experimenter(self.wire, request.body())?;
        let tenant = &self.tenants[request.tenant];
        if !tenant.terms.experimenters.contains(&experimenter) {
            return Err(code::BAD_REQUEST_BAD_EXPERIMENTER.into());
        }
        if !self.may_write(request.tenant) {
            return Err(Reason::ReadOnly.with(code::BAD_REQUEST_EPERM));
        }
        self.forward_request(request, Awaits::Nothing, Class::Other, request.frame);
        Ok(())
    }
}
