//! One controller's connection, as the switch sees it.

use std::collections::VecDeque;

use openflow::Version;

/// Names a session of a [`Switch`](crate::Switch).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub(crate) usize);

impl SessionId {
    /// The session that `Switch::handle_message` serves.
    pub const MAIN: SessionId = SessionId(0);
}

/// A controller's role (`OFPCR_ROLE_*`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Full access, like its equals.
    #[default]
    Equal,
    /// Full access; there is one at most.
    Master,
    /// Reads only.
    Slave,
}

/// Which asynchronous messages a session gets: bit n is reason n; first as master or equal, then as
/// slave (1.3, section 7.3.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AsyncMasks {
    pub(crate) packet_in: [u32; 2],
    pub(crate) port_status: [u32; 2],
    pub(crate) flow_removed: [u32; 2],
}

impl Default for AsyncMasks {
    /// Open vSwitch's: a slave hears of ports only; invalid TTLs are heard of on request.
    fn default() -> Self {
        AsyncMasks { packet_in: [0b011, 0], port_status: [0b111, 0b111], flow_removed: [0b1111, 0] }
    }
}

pub(crate) struct Session {
    /// Decided by HELLO.
    pub(crate) version: Option<Version>,
    /// Bytes for the controller.
    pub(crate) out: Vec<u8>,
    /// Bytes for the controller that leave later, with their times, ns.
    pub(crate) later: VecDeque<(u64, Vec<u8>)>,
    pub(crate) miss_send_len: u16,
    /// Whether FLOW_MODs of 1.0 name their tables (Open vSwitch's extension).
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

    /// A transaction id for a message of the switch's own. Asynchronous messages have 0, as in OVS.
    pub(crate) fn own_xid(&mut self) -> u32 {
        self.next_xid = self.next_xid.wrapping_add(1);
        self.next_xid
    }

    /// Whether an asynchronous message with this reason is wanted.
    pub(crate) fn wants(&self, masks: [u32; 2], reason: u8) -> bool {
        let [as_master, as_slave] = masks;
        let mask = if self.role == Role::Slave { as_slave } else { as_master };
        mask & 1u32.checked_shl(reason.into()).unwrap_or(0) != 0
    }

    /// Moves what is due by `now` to the output.
    pub(crate) fn release(&mut self, now: u64) {
        while self.later.front().is_some_and(|(due, _)| *due <= now) {
            if let Some((_, bytes)) = self.later.pop_front() {
                self.out.extend_from_slice(&bytes);
            }
        }
    }
}
