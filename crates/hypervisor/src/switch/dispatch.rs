//! The place of each message type, in each direction. Where the versions of OpenFlow differ in more than facts,
//! [`Switch`] calls the function of the switch's version.
//!
//! A slice of 1.0 has one rule for each pair of an entry and one of the tenant's flowspace entries, if these overlap.
//! On 1.3 table 0 belongs to Weir: one rule per flowspace entry writes the tenant's number into the upper 16 bits of
//! the metadata, and sends the packet to table 1. The tenants' tables follow. All tenants share each table, and each
//! rule there also matches on the tenant's number. So one FLOW_MOD stays one FLOW_MOD. For networks the last table
//! belongs to Weir as well ([`compile::last_table`]).

use super::{Cause, Request, Switch};
use crate::buffers::Buffered;
use crate::flows::Wanted;
use crate::ids::TenantIndex;
use crate::messages;
use crate::north::Role;
use crate::south::pending::Purpose;
use crate::time::Instant;
use alloc::vec::Vec;
use compile::{Reason, Refused, Wire};
use openflow::error::v13 as code;
use openflow::v13::{MessageType, MultipartType};
use openflow::{ErrorCode, Header, List, frame, v13};

impl Switch {
    /// A message of a controller. The error codes here have the same numbers in both versions.
    pub(super) fn controller_message(&mut self, request: Request<'_>) -> Result<(), Refused> {
        let type_ = messages::type_in_v13(self.wire, request.header.type_);
        if self.semantics().rights_by_type && type_.changes_the_switch() {
            let controller = self.controllers.get(request.controller);
            if controller.is_some_and(|it| it.role == Role::Slave) {
                return Err(code::BAD_REQUEST_IS_SLAVE.into());
            }
            if !self.may_write(request.tenant) {
                return Err(Reason::ReadOnly.with(code::BAD_REQUEST_EPERM));
            }
        }
        match type_ {
            MessageType::PACKET_OUT => match self.wire {
                Wire::V10 => self.packet_out_v10(&request),
                Wire::V13 => self.packet_out_v13(&request),
            },
            MessageType::FLOW_MOD | MessageType::GROUP_MOD | MessageType::METER_MOD => {
                self.apply(&request)
            }
            MessageType::ECHO_REQUEST => {
                let Header { version, xid, .. } = request.header;
                self.reply(&request, |_, out| {
                    let append = |out: &mut Vec<u8>| out.extend_from_slice(request.body());
                    frame::write(version, MessageType::ECHO_REPLY.0, xid, out, append)
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
            MessageType::MULTIPART_REQUEST => self.statistics(&request),
            MessageType::FEATURES_REQUEST => match self.wire {
                Wire::V10 => self.features_v10(&request),
                Wire::V13 => self.features_v13(&request),
            },
            MessageType::GET_CONFIG_REQUEST => self.get_config(&request),
            MessageType::SET_CONFIG => self.set_config(&request),
            MessageType::PORT_MOD => self.port_mod(&request),
            MessageType::TABLE_MOD => self.table_mod_v13(&request),
            MessageType::QUEUE_GET_CONFIG_REQUEST => self.queue_config(&request),
            MessageType::ROLE_REQUEST => self.role_v13(&request),
            MessageType::GET_ASYNC_REQUEST => self.get_async_v13(&request),
            MessageType::SET_ASYNC => self.set_async_v13(&request),
            MessageType::EXPERIMENTER => self.experimenter(&request),
            // The driver does HELLO and the keepalives, and an ERROR of a controller is its own affair. All three are
            // counted and need no answer.
            MessageType::HELLO | MessageType::ECHO_REPLY | MessageType::ERROR => Ok(()),
            _ => Err(code::BAD_REQUEST_BAD_TYPE.into()),
        }
    }

    /// A message of the switch.
    pub(super) fn switch_message(
        &mut self,
        header: Header,
        frame: &[u8],
        now: Instant,
    ) -> Result<(), ErrorCode> {
        let (body, xid) = (frame.get(Header::LEN..).unwrap_or_default(), header.xid);
        match messages::type_in_v13(self.wire, header.type_) {
            MessageType::PACKET_IN => match self.wire {
                Wire::V10 => self.packet_in_v10(frame, now),
                Wire::V13 => self.packet_in_v13(body, now),
            },
            MessageType::ECHO_REQUEST => {
                self.session.answer_echo(header, body);
                Ok(())
            }
            MessageType::BARRIER_REPLY => self.barrier_reply(xid, now),
            MessageType::MULTIPART_REPLY => self.statistics_reply(xid, body, now),
            MessageType::FLOW_REMOVED => self.flow_removed(body, now),
            MessageType::PORT_STATUS => self.port_status(body, now),
            MessageType::ERROR => {
                let error = openflow::error::Error::parse(body);
                self.switch_error(xid, &error.map_err(|it| self.unreadable(&it))?, now);
                Ok(())
            }
            MessageType::QUEUE_GET_CONFIG_REPLY => self.queue_config_reply(header, body, now),
            MessageType::EXPERIMENTER => self.relay_experimenter(xid, frame, now),
            MessageType::HELLO
            | MessageType::ECHO_REPLY
            | MessageType::FEATURES_REPLY
            | MessageType::GET_CONFIG_REPLY
            | MessageType::ROLE_REPLY => Ok(()),
            _ => Err(code::BAD_REQUEST_BAD_TYPE),
        }
    }

    /// Applies a change of tables. A replay calls this again; all checks that do not depend on tables were done before.
    pub(super) fn apply(&mut self, request: &Request<'_>) -> Result<(), Refused> {
        match messages::type_in_v13(self.wire, request.header.type_) {
            MessageType::FLOW_MOD => self.flow_mod(request),
            MessageType::GROUP_MOD => self.group_mod_v13(request),
            MessageType::METER_MOD => self.meter_mod_v13(request),
            _ => Ok(()),
        }
    }

    /// The error code for bytes that cannot be read.
    pub(super) fn unreadable(&self, error: &openflow::DecodeError) -> ErrorCode {
        error.openflow_error(self.version())
    }

    /// Questions to the switch for the counters of the entries that a request selects, or for the sum of these
    /// counters.
    pub(super) fn flow_questions(
        &self,
        tenant: TenantIndex,
        wanted: &Wanted,
        is_sum: bool,
    ) -> Result<Vec<u8>, Refused> {
        match self.wire {
            Wire::V10 => Ok(self.flow_questions_v10(tenant, &wanted.match_)),
            Wire::V13 => self.flow_question_v13(tenant, wanted, is_sum),
        }
    }

    /// The switch reports the sizes of its tables, or the number of rules in a full table.
    pub(super) fn space_part(
        &mut self,
        purpose: Purpose,
        type_: MultipartType,
        entries: &[u8],
        more: bool,
    ) {
        match (self.wire, purpose, type_) {
            (Wire::V10, _, MultipartType::TABLE) => {
                let tables = List::parse(entries).unwrap_or_default();
                self.space_said_v10(purpose != Purpose::Space, tables);
            }
            (Wire::V13, Purpose::Full(table), MultipartType::TABLE) => {
                self.space_found_v13(table, List::parse(entries).unwrap_or_default());
            }
            (Wire::V13, Purpose::Space, MultipartType::TABLE_FEATURES) => {
                self.space_said_v13(List::parse(entries).unwrap_or_default());
            }
            (Wire::V13, Purpose::Space, MultipartType::GROUP_FEATURES) => {
                let groups = v13::GroupFeatures::parse(entries);
                groups.into_iter().for_each(|it| self.groups_said(&it));
            }
            (Wire::V13, Purpose::Space, MultipartType::METER_FEATURES) => {
                let meters = v13::MeterFeatures::parse(entries);
                meters.into_iter().for_each(|it| self.meters_said(&it));
            }
            _ => {}
        }
        // Once for an answer: dividing looks at all tenants.
        if !more {
            self.divide_space();
        }
    }

    /// Sends a buffered packet through the tables that none of the changed entries has taken.
    pub(super) fn release_through_table(&mut self, cause: &Cause, buffered: &Buffered) {
        match self.wire {
            Wire::V10 => self.release_through_table_v10(cause, buffered),
            Wire::V13 => self.release_through_table_v13(cause, buffered),
        }
    }
}
