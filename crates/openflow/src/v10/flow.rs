//! FLOW_MOD and FLOW_REMOVED (specification 1.0.0, sections 5.3.3 and 5.4.2).

use super::action::Action;
use super::flow_match::Match;
use super::port::PortNo;
use crate::NO_BUFFER;
use crate::list::List;

open_enum! {
    /// What to do to the flow table.
    pub struct FlowModCommand(u16) {
        /// Add an entry.
        ADD = 0,
        /// Change the actions of all entries that the match covers; add one if there are none.
        MODIFY = 1,
        /// Change the actions of the entry with just this match and priority; add it if there is none.
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
        /// An emergency entry.
        EMERG = 1 << 2,
    }
}

/// `struct ofp_flow_mod`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowMod<'a> {
    /// Which packets.
    pub match_: Match,
    /// The controller's own mark on the entry.
    pub cookie: u64,
    /// What to do.
    pub command: FlowModCommand,
    /// Seconds without a packet until it expires; 0 is never.
    pub idle_timeout: u16,
    /// Seconds until it expires; 0 is never.
    pub hard_timeout: u16,
    /// Higher wins. Entries without wildcards win over all others.
    pub priority: u16,
    /// A buffered packet to apply the actions to, or [`NO_BUFFER`].
    pub buffer_id: u32,
    /// For deletions: only entries that output to this port; `PortNo::NONE` is no condition.
    pub out_port: PortNo,
    /// How.
    pub flags: FlowModFlags,
    /// What the entry does; nothing drops.
    pub actions: List<'a, Action<'a>>,
}

impl FlowMod<'_> {
    /// The priority in the middle (`OFP_DEFAULT_PRIORITY`).
    pub const DEFAULT_PRIORITY: u16 = 0x8000;
}

/// Adds an entry of default priority that drops everything.
impl Default for FlowMod<'_> {
    fn default() -> Self {
        Self {
            match_: Match::ANY,
            cookie: 0,
            command: FlowModCommand::ADD,
            idle_timeout: 0,
            hard_timeout: 0,
            priority: Self::DEFAULT_PRIORITY,
            buffer_id: NO_BUFFER,
            out_port: PortNo::NONE,
            flags: FlowModFlags::NONE,
            actions: List::EMPTY,
        }
    }
}

layout!(FlowMod<'a>: Body {
    match_, cookie, command, idle_timeout, hard_timeout, priority, buffer_id, out_port, flags, actions,
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
    }
}

/// `struct ofp_flow_removed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowRemoved {
    /// The entry's match.
    pub match_: Match,
    /// Its cookie.
    pub cookie: u64,
    /// Its priority.
    pub priority: u16,
    /// Why it is gone.
    pub reason: FlowRemovedReason,
    /// How long it was there, in seconds.
    pub duration_sec: u32,
    /// And nanoseconds beyond.
    pub duration_nsec: u32,
    /// Its idle time-out in seconds.
    pub idle_timeout: u16,
    /// Packets that it matched.
    pub packet_count: u64,
    /// Bytes in them.
    pub byte_count: u64,
}

layout!(FlowRemoved: Body {
    match_, cookie, priority, reason, [1], duration_sec, duration_nsec, idle_timeout, [2], packet_count, byte_count,
});
