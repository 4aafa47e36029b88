//! Changes roles and asynchronous configuration (1.3, sections 6.3.6 and 7.3.9 to 7.3.10).

use openflow::ErrorCode;
use openflow::error::v13 as code;
use openflow::v13::{AsyncConfig, Role as WireRole, RoleBody};

use crate::session::{AsyncMasks, Role, SessionId};
use crate::state::State;

/// Changes a controller's role, and returns the reply.
pub(super) fn change(
    switch: &mut State,
    id: SessionId,
    body: RoleBody,
) -> Result<RoleBody, ErrorCode> {
    let wanted = match body.role {
        WireRole::NOCHANGE => None,
        WireRole::EQUAL => Some(Role::Equal),
        WireRole::MASTER => Some(Role::Master),
        WireRole::SLAVE => Some(Role::Slave),
        _ => return Err(code::ROLE_REQUEST_FAILED_BAD_ROLE),
    };
    if matches!(wanted, Some(Role::Master | Role::Slave)) {
        // Generation ids wrap around. An id is newer if it is ahead by less than half the number
        // range.
        let is_stale = |known: u64| (body.generation_id.wrapping_sub(known) as i64) < 0;
        if switch.generation.is_some_and(is_stale) {
            return Err(code::ROLE_REQUEST_FAILED_STALE);
        }
        switch.generation = Some(body.generation_id);
    }
    if wanted == Some(Role::Master) {
        for (_, other) in switch.sessions_mut().filter(|(other, _)| *other != id) {
            if other.role == Role::Master {
                other.role = Role::Slave;
            }
        }
    }
    let generation_id = switch.generation.unwrap_or(u64::MAX);
    let role = switch.session(id).map_or(Role::Equal, |session| {
        session.role = wanted.unwrap_or(session.role);
        session.role
    });
    let role = match role {
        Role::Equal => WireRole::EQUAL,
        Role::Master => WireRole::MASTER,
        Role::Slave => WireRole::SLAVE,
    };
    Ok(RoleBody { role, generation_id })
}

/// Returns the asynchronous messages that a controller gets.
pub(super) fn async_config(switch: &State, id: SessionId) -> AsyncConfig {
    let masks = switch.session_ref(id).map_or_else(AsyncMasks::default, |session| session.masks);
    AsyncConfig {
        packet_in_mask: masks.packet_in,
        port_status_mask: masks.port_status,
        flow_removed_mask: masks.flow_removed,
    }
}

/// Sets the asynchronous messages that a controller gets.
pub(super) fn set_async_config(switch: &mut State, id: SessionId, body: AsyncConfig) {
    if let Some(session) = switch.session(id) {
        session.masks = AsyncMasks {
            packet_in: body.packet_in_mask,
            port_status: body.port_status_mask,
            flow_removed: body.flow_removed_mask,
        };
    }
}
