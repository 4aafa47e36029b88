//! Slices on OpenFlow 1.3: every message type, in each direction, has its place here.
//!
//! Table 0 is the hypervisor's: one entry per flowspace entry writes the tenant's number into the upper 16 bits of the
//! metadata and sends the packet to table 1. Tenants' tables follow, each table shared by all tenants and each
//! entry in it matching on that number as well. So a FLOW_MOD stays one FLOW_MOD. For networks the last table is the
//! hypervisor's as well ([`compile::last_table`]).

mod features;
pub(super) mod groups;
mod meters;
pub(super) mod network_statistics;
pub(super) mod numbers;
mod packet;
mod statistics;
pub(super) mod switch;

use super::{Request, Switch};
use crate::north::Role;
use crate::time::Instant;
use crate::v13::unreadable;
use compile::{Reason, Refused};
use openflow::error::v13 as code;
use openflow::v13::MessageType;
use openflow::{ErrorCode, Header, frame};

impl Switch {
    /// From a controller.
    pub(crate) fn controller_message_v13(&mut self, request: Request<'_>) -> Result<(), Refused> {
        let type_ = MessageType(request.header.type_);
        if self.is_slave(request.controller) && changes_the_switch(type_) {
            return Err(code::BAD_REQUEST_IS_SLAVE.into());
        }
        if changes_the_switch(type_) && !self.may_write(request.tenant) {
            return Err(Reason::ReadOnly.with(code::BAD_REQUEST_EPERM));
        }
        match type_ {
            MessageType::PACKET_OUT => self.packet_out_v13(&request),
            MessageType::FLOW_MOD => self.flow_mod(&request),
            MessageType::GROUP_MOD => self.group_mod_v13(&request),
            MessageType::METER_MOD => self.meter_mod_v13(&request),
            MessageType::ECHO_REQUEST => {
                self.reply(&request, |_, out| {
                    let xid = request.header.xid;
                    frame::write(
                        request.header.version,
                        MessageType::ECHO_REPLY.0,
                        xid,
                        out,
                        |out| {
                            out.extend_from_slice(request.body());
                        },
                    )
                });
                Ok(())
            }
            MessageType::BARRIER_REQUEST
            | MessageType::FEATURES_REQUEST
            | MessageType::GET_CONFIG_REQUEST
            | MessageType::GET_ASYNC_REQUEST
                if !request.body().is_empty() =>
            {
                Err(code::BAD_REQUEST_BAD_LEN.into())
            }
            MessageType::BARRIER_REQUEST => {
                self.forward_barrier(&request);
                Ok(())
            }
            MessageType::MULTIPART_REQUEST => self.statistics_v13(&request),
            MessageType::FEATURES_REQUEST => self.features_v13(&request),
            MessageType::GET_CONFIG_REQUEST => self.get_config_v13(&request),
            MessageType::SET_CONFIG => self.set_config_v13(&request),
            MessageType::PORT_MOD => self.port_mod_v13(&request),
            MessageType::TABLE_MOD => self.table_mod_v13(&request),
            MessageType::QUEUE_GET_CONFIG_REQUEST => self.queue_config_v13(&request),
            MessageType::ROLE_REQUEST => self.role_v13(&request),
            MessageType::GET_ASYNC_REQUEST => self.get_async_v13(&request),
            MessageType::SET_ASYNC => self.set_async_v13(&request),
            MessageType::EXPERIMENTER => self.experimenter_v13(&request),
            // See `controller_message_v10`: counted, and in need of no answer.
            MessageType::HELLO | MessageType::ECHO_REPLY | MessageType::ERROR => Ok(()),
            _ => Err(code::BAD_REQUEST_BAD_TYPE.into()),
        }
    }

    /// From the switch.
    pub(crate) fn switch_message_v13(
        &mut self,
        header: Header,
        frame: &[u8],
        now: Instant,
    ) -> Result<(), ErrorCode> {
        let body = frame.get(Header::LEN..).unwrap_or_default();
        match MessageType(header.type_) {
            MessageType::PACKET_IN => self.packet_in_v13(body, now),
            MessageType::ECHO_REQUEST => {
                self.session.answer_echo(header, body);
                Ok(())
            }
            MessageType::BARRIER_REPLY => self.barrier_reply(header.xid, now),
            MessageType::MULTIPART_REPLY => self.statistics_reply_v13(header.xid, body, now),
            MessageType::FLOW_REMOVED => self.flow_removed(body, now),
            MessageType::PORT_STATUS => self.port_status_v13(body, now),
            MessageType::ERROR => {
                let error = openflow::error::Error::parse(body).map_err(unreadable)?;
                self.switch_error(header.xid, &error, now);
                Ok(())
            }
            MessageType::QUEUE_GET_CONFIG_REPLY => {
                self.queue_config_reply_v13(header.xid, body, now)
            }
            MessageType::EXPERIMENTER => self.relay_experimenter(header.xid, frame, now),
            MessageType::HELLO
            | MessageType::ECHO_REPLY
            | MessageType::FEATURES_REPLY
            | MessageType::GET_CONFIG_REPLY
            | MessageType::ROLE_REPLY => Ok(()),
            _ => Err(code::BAD_REQUEST_BAD_TYPE),
        }
    }

    fn is_slave(&self, controller: crate::ids::ControllerIndex) -> bool {
        self.controllers.get(controller).is_some_and(|state| state.role == Role::Slave)
    }
}

/// Requests that a slave may not make (specification section 6.3.4) and a reader neither.
fn changes_the_switch(type_: MessageType) -> bool {
    matches!(
        type_,
        MessageType::PACKET_OUT
            | MessageType::FLOW_MOD
            | MessageType::GROUP_MOD
            | MessageType::PORT_MOD
            | MessageType::TABLE_MOD
            | MessageType::METER_MOD
    )
}
