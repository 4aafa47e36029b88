//! Slices on OpenFlow 1.3: every message type, in each direction, has its place here.
//!
//! Table 0 is the hypervisor's: one entry per flowspace entry writes the tenant's number into the upper 16 bits of the
//! metadata and sends the packet to table 1. Tenants' tables stand behind it, each table shared by all tenants and each
//! entry in it matching on that number as well. So a FLOW_MOD stays one FLOW_MOD. For networks the last table is the
//! hypervisor's as well ([delivery]).

pub(crate) mod actions;
pub(crate) mod delivery;
mod features;
pub(crate) mod flow_mod;
mod flow_removed;
pub(crate) mod groups;
pub(crate) mod idle;
pub(crate) mod looks;
mod meters;
pub(crate) mod network;
pub(crate) mod numbers;
pub(crate) mod own;
mod packet;
pub(crate) mod statistics;
pub(crate) mod switch;

use crate::ids::TenantIndex;
use crate::network::{from_16_bits, in_16_bits};
use crate::pending::{Awaits, Purpose};
use crate::policy::TenantId;
use crate::switch::{Request, Switch};
use crate::tenant::Role;
use crate::time::Instant;
use alloc::vec;
use alloc::vec::Vec;
use flowspace::{Field, Match};
use openflow::error::v13 as code;
use openflow::v13::{
    ConfigFlags, FlowStatsRequest, Message, MessageType, MultipartRequest, MultipartRequestBody,
    SwitchConfig,
};
use openflow::{ErrorCode, Header, Version, frame};

/// The bits of the metadata that name the tenant; the rest is the tenant's own.
pub(crate) const METADATA_TENANT: u64 = 0xffff << 48;

/// The bits of the metadata that name the tenant and its virtual port, in a network; table 0 writes them all.
pub(crate) const METADATA_PORT: u64 = 0xffff_ffff << 32;

/// The bits of the metadata that are the tenant's own in a network.
pub(crate) const METADATA_OWN: u64 = !METADATA_PORT;

/// A tenant's number and its virtual port in the metadata.
pub(crate) fn metadata_at(tenant: TenantId, port: u32) -> u64 {
    metadata_of(tenant) | in_16_bits(port).map_or(0, u64::from) << 32
}

/// In place of a virtual port in the metadata: packets have come by none, but out of a controller's hands.
pub(crate) const NO_PORT: u32 = 0;

/// The virtual port in the metadata.
pub(crate) fn port_in(metadata: u64) -> u32 {
    from_16_bits((metadata >> 32) as u16)
}

/// The tenant whose number is in the metadata.
pub(crate) fn tenant_in(metadata: u64) -> TenantId {
    TenantId((metadata >> 48) as u16)
}

/// A tenant's number in the metadata.
pub(crate) fn metadata_of(tenant: TenantId) -> u64 {
    u64::from(tenant.0) << 48
}

impl Switch {
    /// From a controller.
    pub(crate) fn controller_message_v13(&mut self, request: Request<'_>) -> Result<(), ErrorCode> {
        let type_ = MessageType(request.header.type_);
        if self.is_slave(request.controller) && changes_the_switch(type_) {
            return Err(code::BAD_REQUEST_IS_SLAVE);
        }
        if changes_the_switch(type_) && !self.may_write(request.tenant) {
            return Err(code::BAD_REQUEST_EPERM);
        }
        match type_ {
            MessageType::PACKET_OUT => self.packet_out_v13(&request),
            MessageType::FLOW_MOD => self.flow_mod_v13(&request),
            MessageType::GROUP_MOD => self.group_mod_v13(&request),
            MessageType::METER_MOD => self.meter_mod_v13(&request),
            MessageType::ECHO_REQUEST => {
                self.reply(&request, |_, out| {
                    let xid = request.header.xid;
                    frame::write(Version::V1_3, MessageType::ECHO_REPLY.0, xid, out, |out| {
                        out.extend_from_slice(request.body());
                    })
                });
                Ok(())
            }
            MessageType::BARRIER_REQUEST
            | MessageType::FEATURES_REQUEST
            | MessageType::GET_CONFIG_REQUEST
            | MessageType::GET_ASYNC_REQUEST
                if !request.body().is_empty() =>
            {
                Err(code::BAD_REQUEST_BAD_LEN)
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
            _ => Err(code::BAD_REQUEST_BAD_TYPE),
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
                self.answer_switch_echo(header, body);
                Ok(())
            }
            MessageType::BARRIER_REPLY => self.barrier_reply(header.xid, now),
            MessageType::MULTIPART_REPLY => self.statistics_reply_v13(header.xid, body, now),
            MessageType::FLOW_REMOVED => self.flow_removed_v13(body, now),
            MessageType::PORT_STATUS => self.port_status_v13(body, now),
            MessageType::ERROR => {
                let error = openflow::error::Error::parse(body).map_err(unreadable)?;
                self.switch_error(header.xid, error.code, now);
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

    /// The bits of the metadata that are not the tenant's own.
    pub(crate) fn metadata_kept(&self, tenant: TenantIndex) -> u64 {
        match self.tenants[tenant.0 as usize].network {
            None if self.joins.is_none() => METADATA_TENANT,
            _ => METADATA_PORT,
        }
    }

    /// A match in a tenant's request, without the bits of the metadata that are not the tenant's own: the tenant sees them as 0,
    /// so a match on 0 there says nothing, and one on anything else means no packet.
    pub(crate) fn match_of_v13(
        &self,
        tenant: TenantIndex,
        wire: &openflow::v13::Match<'_>,
    ) -> Result<Match, ErrorCode> {
        let match_ = Match::from_v13(wire).map_err(|error| error.error_code())?;
        own_part(&match_, self.metadata_kept(tenant))
    }

    /// Tables that a tenant sees.
    pub(crate) fn tenant_tables(&self, tenant: TenantIndex) -> u8 {
        let behind = self.features.n_tables.saturating_sub(self.first_table());
        let has_network = self.tenants[tenant.0 as usize].network.is_some();
        let is_taken = has_network && self.delivery_table().is_some();
        behind.saturating_sub(u8::from(is_taken))
    }

    /// The switch's last table, which is the hypervisor's for networks: see [`delivery`]. A switch of two has none to spare.
    pub(crate) fn delivery_table(&self) -> Option<u8> {
        let is_real = self.version != Version::V1_0 && self.joins.is_none();
        let last = self.features.n_tables.checked_sub(1).filter(|last| *last >= 2);
        last.filter(|_| is_real)
    }

    /// The first of the switch's tables that is the tenants'.
    pub(crate) fn first_table(&self) -> u8 {
        u8::from(self.joins.is_none())
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

/// What a new switch is told and asked.
pub(crate) fn questions(miss_send_len: u16) -> Vec<(Awaits, Vec<u8>)> {
    let mut config = Vec::new();
    let told = Message::SetConfig(SwitchConfig { flags: ConfigFlags::FRAG_NORMAL, miss_send_len })
        .write(0, &mut config);
    debug_assert!(told.is_ok());
    let ask = |body: MultipartRequestBody<'_>| {
        let mut out = Vec::new();
        let asked = MultipartRequest::from(body).write_message(0, &mut out);
        debug_assert!(asked.is_ok());
        out
    };
    vec![
        (Awaits::Nothing, config),
        (Awaits::Own(Purpose::Ports), ask(MultipartRequestBody::PortDesc)),
        (Awaits::Own(Purpose::Groups), ask(MultipartRequestBody::GroupDesc)),
        (
            Awaits::Own(Purpose::Meters),
            ask(MultipartRequestBody::MeterConfig { meter_id: openflow::v13::METER_ALL }),
        ),
        (Awaits::Own(Purpose::Flows), ask(MultipartRequestBody::Flow(FlowStatsRequest::default()))),
    ]
}

/// A match without these bits of the metadata.
pub(crate) fn own_part(match_: &Match, kept: u64) -> Result<Match, ErrorCode> {
    let (value, mask) = match_.get(Field::Metadata);
    if value & u128::from(kept) != 0 {
        return Err(code::BAD_MATCH_BAD_MASK);
    }
    Ok(match_.with_masked(Field::Metadata, value, mask & !u128::from(kept)))
}

/// A match from its wire form, with the padding.
pub(crate) fn read_match(wire: &[u8]) -> Option<Match> {
    let wire = openflow::v13::Match::parse(wire).ok()?;
    Match::from_v13(&wire).ok()
}

/// The bytes make no sense.
fn unreadable(error: openflow::DecodeError) -> ErrorCode {
    error.openflow_error(Version::V1_3)
}
