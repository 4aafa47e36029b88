//! FLOW_MOD and FLOW_REMOVED (specification 1.3.5, sections 7.3.4.2 and 7.4.2).

use super::flow_match::Match;
use super::group::GROUP_ANY;
use super::instruction::Instruction;
use super::port::PortNo;
use crate::NO_BUFFER;
use crate::list::List;

open_enum! {
    /// What to do to the flow table.
    pub struct FlowModCommand(u8) {
        /// Add an entry.
        ADD = 0,
        /// Change the instructions of all entries that the match covers.
        MODIFY = 1,
        /// Change the instructions of the entry with just this match and priority.
        MODIFY_STRICT = 2,
        /// Delete all entries that the match covers.
        DELETE = 3,
        /// Delete the entry with just this match and priority.
        DELETE_STRICT = 4,
    }
}

flags! {
    /// `enum ofp_flow_mod_flags`.
    pub struct FlowModFlags(u16) {
        /// Send FLOW_REMOVED when the entry expires or is deleted.
        SEND_FLOW_REM = 1 << 0,
        /// Refuse to add an entry that overlaps one of the same priority.
        CHECK_OVERLAP = 1 << 1,
        /// Reset the counters.
        RESET_COUNTS = 1 << 2,
        /// Count no packets.
        NO_PKT_COUNTS = 1 << 3,
        /// Count no bytes.
        NO_BYT_COUNTS = 1 << 4,
    }
}

/// `struct ofp_flow_mod`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowMod<'a> {
    /// The controller's own mark on the entry.
    pub cookie: u64,
    /// For modifications and deletions: only entries whose cookie is the same in these bits.
    pub cookie_mask: u64,
    /// The table; for deletions [`TABLE_ALL`](super::TABLE_ALL) is every one.
    pub table_id: u8,
    /// What to do.
    pub command: FlowModCommand,
    /// Seconds without a packet until it expires; 0 is never.
    pub idle_timeout: u16,
    /// Seconds until it expires; 0 is never.
    pub hard_timeout: u16,
    /// Higher wins.
    pub priority: u16,
    /// A buffered packet to send through the tables afterwards, or [`NO_BUFFER`].
    pub buffer_id: u32,
    /// For deletions: only entries that output to this port; `PortNo::ANY` is no condition.
    pub out_port: PortNo,
    /// For deletions: only entries that use this group; [`GROUP_ANY`] is no condition.
    pub out_group: u32,
    /// How.
    pub flags: FlowModFlags,
    /// Which packets.
    pub match_: Match<'a>,
    /// What the entry does; nothing drops.
    pub instructions: List<'a, Instruction<'a>>,
}

impl FlowMod<'_> {
    /// The priority in the middle; the specification leaves the default to the controller.
    pub const DEFAULT_PRIORITY: u16 = 0x8000;
}

/// Adds an entry of middle priority to table 0 that drops everything.
impl Default for FlowMod<'_> {
    fn default() -> Self {
        Self {
            cookie: 0,
            cookie_mask: 0,
            table_id: 0,
            command: FlowModCommand::ADD,
            idle_timeout: 0,
            hard_timeout: 0,
            priority: Self::DEFAULT_PRIORITY,
            buffer_id: NO_BUFFER,
            out_port: PortNo::ANY,
            out_group: GROUP_ANY,
            flags: FlowModFlags::NONE,
            match_: Match::ANY,
            instructions: List::EMPTY,
        }
    }
}

layout!(FlowMod<'a>: Body {
    cookie, cookie_mask, table_id, command, idle_timeout, hard_timeout, priority, buffer_id, out_port, out_group,
    flags, [2], match_, instructions
});

open_enum! {
    /// Why a flow entry is gone.
    pub struct FlowRemovedReason(u8) {
        /// No packet for `idle_timeout`.
        IDLE_TIMEOUT = 0,
        /// `hard_timeout` has passed.
        HARD_TIMEOUT = 1,
        /// A FLOW_MOD deleted it.
        DELETE = 2,
        /// Its group was deleted.
        GROUP_DELETE = 3,
        /// Its meter was deleted (as `ovs-ofctl` names it; 1.3.5 leaves the number to 1.4).
        METER_DELETE = 4,
    }
}

/// `struct ofp_flow_removed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowRemoved<'a> {
    /// The entry's cookie.
    pub cookie: u64,
    /// Its priority.
    pub priority: u16,
    /// Why it is gone.
    pub reason: FlowRemovedReason,
    /// The table that it was in.
    pub table_id: u8,
    /// How long it was there, in seconds.
    pub duration_sec: u32,
    /// And nanoseconds beyond.
    pub duration_nsec: u32,
    /// Its idle time-out in seconds.
    pub idle_timeout: u16,
    /// Its hard time-out in seconds.
    pub hard_timeout: u16,
    /// Packets that it matched.
    pub packet_count: u64,
    /// Bytes in them.
    pub byte_count: u64,
    /// Its match.
    pub match_: Match<'a>,
}

layout!(FlowRemoved<'a>: Body {
    cookie, priority, reason, table_id, duration_sec, duration_nsec, idle_timeout, hard_timeout, packet_count,
    byte_count, match_
});
