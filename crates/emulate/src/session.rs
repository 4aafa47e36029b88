//! The state that a switch keeps for the connection of one controller.

use std::collections::VecDeque;

use openflow::Version;

/// The id of a session of a [`Switch`](crate::Switch).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub(crate) usize);

impl SessionId {
    /// The session that `Switch::handle_message` serves.
    pub const MAIN: SessionId = SessionId(0);
}

/// The role of a controller (`OFPCR_ROLE_*`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Full access, as all controllers of this role have.
    #[default]
    Equal,
    /// Full access. At most one controller has this role.
    Master,
    /// Read access only.
    Slave,
}

/// The asynchronous messages that a session gets (1.3, section 7.3.10). Bit n is reason n. The
/// first mask is for master and equal, the second mask is for slave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AsyncMasks {
    pub(crate) packet_in: [u32; 2],
    pub(crate) port_status: [u32; 2],
    pub(crate) flow_removed: [u32; 2],
}

impl Default for AsyncMasks {
    /// The default of Open vSwitch: a slave gets PORT_STATUS only, and a controller gets PACKET_INs
    /// for invalid TTLs only on request.
    fn default() -> Self {
        AsyncMasks { packet_in: [0b011, 0], port_status: [0b111, 0b111], flow_removed: [0b1111, 0] }
    }
}

pub(crate) struct Session {
    /// The version that HELLO negotiated.
    pub(crate) version: Option<Version>,
    /// Bytes for the controller.
    pub(crate) out: Vec<u8>,
    /// Bytes that the switch sends to the controller later, with their times, ns.
    pub(crate) later: VecDeque<(u64, Vec<u8>)>,
    pub(crate) miss_send_len: u16,
    /// Whether FLOW_MODs of 1.0 contain a table id (an extension of Open vSwitch).
    pub(crate) names_tables: bool,
    pub(crate) role: Role,
    pub(crate) masks: AsyncMasks,
    next_xid: u32,
}

/// `OFP_DEFAULT_MISS_SEND_LEN`.
const DEFAULT_MISS_SEND_LEN: u16 = 128;

impl Session {
    pub(crate) fn new() -> Session {
        Session {
            version: None,
            out: Vec::new(),
            later: VecDeque::new(),
            miss_send_len: DEFAULT_MISS_SEND_LEN,
            names_tables: false,
            role: Role::Equal,
            masks: AsyncMasks::default(),
            next_xid: 0,
        }
    }

    /// Returns a transaction id for a request of the switch. Asynchronous messages have the id 0,
    /// as in OVS.
    pub(crate) fn own_xid(&mut self) -> u32 {
        self.next_xid = self.next_xid.wrapping_add(1);
        self.next_xid
    }

    /// Whether the session gets asynchronous messages with this reason.
    pub(crate) fn wants(&self, masks: [u32; 2], reason: u8) -> bool {
        let [as_master, as_slave] = masks;
        let mask = if self.role == Role::Slave { as_slave } else { as_master };
        mask & 1u32.checked_shl(reason.into()).unwrap_or(0) != 0
    }

    /// Moves the bytes that are due at `now` to the output.
    pub(crate) fn release(&mut self, now: u64) {
        while self.later.front().is_some_and(|(due, _)| *due <= now) {
            if let Some((_, bytes)) = self.later.pop_front() {
                self.out.extend_from_slice(&bytes);
            }
        }
    }
}
