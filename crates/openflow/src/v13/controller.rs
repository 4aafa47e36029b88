//! What a controller is to the switch: ROLE and the configuration of asynchronous messages (specification 1.3.5,
//! sections 7.3.9 and 7.3.10).

open_enum! {
    /// `enum ofp_controller_role`.
    pub struct Role(u32) {
        /// The role stays as it is, and the reply has the current role.
        NOCHANGE = 0,
        /// Full access, beside others.
        EQUAL = 1,
        /// Full access, and the only one that has it.
        MASTER = 2,
        /// Reads only.
        SLAVE = 3,
    }
}

/// `struct ofp_role_request`: the body of ROLE_REQUEST and ROLE_REPLY.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RoleBody {
    /// The role.
    pub role: Role,
    /// Which election this was; one behind the latest is stale.
    pub generation_id: u64,
}

layout!(RoleBody: Body { role, [4], generation_id });

/// `struct ofp_async_config`: the body of GET_ASYNC_REPLY and SET_ASYNC. In each mask bit *n* stands for reason *n*;
/// the first is for a controller that is master or equal, the second for a slave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AsyncConfig {
    /// Reasons of PACKET_IN.
    pub packet_in_mask: [u32; 2],
    /// Reasons of PORT_STATUS.
    pub port_status_mask: [u32; 2],
    /// Reasons of FLOW_REMOVED.
    pub flow_removed_mask: [u32; 2],
}

layout!(AsyncConfig: Body { packet_in_mask, port_status_mask, flow_removed_mask });
