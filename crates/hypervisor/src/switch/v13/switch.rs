//! FEATURES, tables, roles, asynchronous messages.

use crate::north::{Role as ControllerRole, Wanted};
use crate::switch::{Request, Switch};
use crate::v13::unreadable;
use compile::Refused;
use openflow::error::v13 as code;
use openflow::v13::{
    AsyncConfig, Capabilities, FeaturesReply, Message, Role, RoleBody, TABLE_ALL, TableMod,
};

impl Switch {
    /// The FEATURES_REPLY for a tenant: without Weir's tables.
    pub(crate) fn features_v13(&mut self, request: &Request<'_>) -> Result<(), Refused> {
        let n_buffers = self.datapath.features().n_buffers.min(crate::buffers::CAPACITY as u32);
        self.reply(request, |switch, out| {
            FeaturesReply {
                datapath_id: switch.datapath_of(request.tenant),
                n_buffers,
                n_tables: switch.tenant_tables(request.tenant),
                auxiliary_id: 0,
                capabilities: Capabilities(switch.datapath.features().capabilities)
                    .without(Capabilities::IP_REASM),
                reserved: 0,
            }
            .write_message(request.header.xid, out)
        });
        Ok(())
    }

    /// Tables are shared by all tenants, so no tenant may change their configuration. The only value that 1.3 leaves is
    /// 0, which changes nothing and is accepted.
    pub(crate) fn table_mod_v13(&mut self, request: &Request<'_>) -> Result<(), Refused> {
        let table_mod = TableMod::parse(request.body()).map_err(unreadable)?;
        if table_mod.table_id != TABLE_ALL
            && table_mod.table_id >= self.tenant_tables(request.tenant)
        {
            return Err(code::TABLE_MOD_FAILED_BAD_TABLE.into());
        }
        if table_mod.config != 0 { Err(code::TABLE_MOD_FAILED_EPERM.into()) } else { Ok(()) }
    }

    /// Roles apply among a tenant's controllers; the switch knows nothing of them (specification section 6.3.4).
    pub(crate) fn role_v13(&mut self, request: &Request<'_>) -> Result<(), Refused> {
        let asked = RoleBody::parse(request.body()).map_err(unreadable)?;
        let tenant = &mut self.tenants[request.tenant];
        let claims = matches!(asked.role, Role::MASTER | Role::SLAVE);
        if claims && !tenant.controllers.claim(asked.generation_id) {
            return Err(code::ROLE_REQUEST_FAILED_STALE.into());
        }
        let generation_id = tenant.controllers.generation();
        let others = tenant.controllers.to_vec();
        let role = match asked.role {
            Role::NOCHANGE => None,
            Role::EQUAL => Some(ControllerRole::Equal),
            Role::MASTER => Some(ControllerRole::Master),
            Role::SLAVE => Some(ControllerRole::Slave),
            _ => return Err(code::ROLE_REQUEST_FAILED_BAD_ROLE.into()),
        };
        if role == Some(ControllerRole::Master) {
            for other in others {
                if let Some(state) = self.controllers.get_mut(other)
                    && state.role == ControllerRole::Master
                {
                    state.role = ControllerRole::Slave;
                }
            }
        }
        let Some(state) = self.controllers.get_mut(request.controller) else { return Ok(()) };
        state.role = role.unwrap_or(state.role);
        self.want_others(request.now);
        let Some(state) = self.controllers.get(request.controller) else { return Ok(()) };
        let role = match state.role {
            ControllerRole::Equal => Role::EQUAL,
            ControllerRole::Master => Role::MASTER,
            ControllerRole::Slave => Role::SLAVE,
        };
        self.reply(request, |_, out| {
            Message::RoleReply(RoleBody { role, generation_id }).write(request.header.xid, out)
        });
        Ok(())
    }

    /// The asynchronous messages that a controller wants.
    pub(crate) fn get_async_v13(&mut self, request: &Request<'_>) -> Result<(), Refused> {
        let Some(state) = self.controllers.get(request.controller) else { return Ok(()) };
        let Wanted { packet_in, port_status, flow_removed } = state.wanted;
        self.reply(request, |_, out| {
            Message::GetAsyncReply(AsyncConfig {
                packet_in_mask: packet_in,
                port_status_mask: port_status,
                flow_removed_mask: flow_removed,
            })
            .write(request.header.xid, out)
        });
        Ok(())
    }

    /// Sets the asynchronous messages that this controller wants.
    pub(crate) fn set_async_v13(&mut self, request: &Request<'_>) -> Result<(), Refused> {
        let asked = AsyncConfig::parse(request.body()).map_err(unreadable)?;
        if let Some(state) = self.controllers.get_mut(request.controller) {
            state.wanted = Wanted {
                packet_in: asked.packet_in_mask,
                port_status: asked.port_status_mask,
                flow_removed: asked.flow_removed_mask,
            };
        }
        self.want_others(request.now);
        Ok(())
    }
}
