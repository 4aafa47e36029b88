//! FLOW_MODs of tenants and of Weir, and the entries that a request means, in one form for all versions. Ports have
//! their numbers of 1.3.

use super::entry::Flow;
use crate::south::diff::Change;
use crate::south::reports::TimeoutsAndFlags;
use crate::time::Instant;
use crate::work::Examines;
use alloc::vec::Vec;
use flowspace::{Match, MiniWords};
use openflow::NO_BUFFER;
use openflow::v13::{FlowModCommand, FlowModFlags, GROUP_ANY, PortNo};

/// Which entries a request means. A request of 1.0 names neither a cookie nor a group.
pub(crate) struct Wanted {
    pub match_: Match,
    /// `None` for all tables.
    pub table: Option<u8>,
    pub cookie: u64,
    pub cookie_mask: u64,
    /// The entry sends to this port, or to any port.
    pub out_port: PortNo,
    /// The entry sends to this group, or to any group.
    pub out_group: u32,
}

/// A FLOW_MOD of a tenant.
pub(crate) struct FlowMod<'a> {
    /// The numbers are the same in all versions.
    pub command: FlowModCommand,
    /// The entries that the FLOW_MOD changes or deletes, or the entry that it adds.
    pub wanted: Wanted,
    pub match_wire: Vec<u8>,
    pub priority: u16,
    pub cookie: u64,
    pub flags: u16,
    pub idle_timeout: u16,
    pub hard_timeout: u16,
    pub buffer_id: u32,
    /// Actions (1.0) or instructions (1.3).
    pub actions: &'a [u8],
}

/// A FLOW_MOD that Weir sends.
pub(crate) struct SentFlowMod<'a> {
    pub command: FlowModCommand,
    /// The table, and the bits of the cookie of an entry that is meant (1.3).
    pub table: u8,
    pub cookie_mask: u64,
    pub match_wire: &'a [u8],
    pub priority: u16,
    pub cookie: u64,
    /// The flag for a report of the end has the same number in all versions.
    pub flags: FlowModFlags,
    pub idle_timeout: u16,
    pub hard_timeout: u16,
    pub buffer_id: u32,
    /// Actions (1.0) or instructions (1.3).
    pub actions: &'a [u8],
}

impl<'a> SentFlowMod<'a> {
    /// A FLOW_MOD that makes this change, with these actions. The caller fills in the other fields.
    pub(crate) fn of(change: Change, actions: &'a [u8]) -> SentFlowMod<'a> {
        SentFlowMod {
            command: match change {
                Change::Add => FlowModCommand::ADD,
                Change::Modify => FlowModCommand::MODIFY_STRICT,
                Change::Delete => FlowModCommand::DELETE_STRICT,
            },
            table: 0,
            cookie_mask: 0,
            match_wire: &[],
            priority: 0,
            cookie: 0,
            flags: FlowModFlags::NONE,
            idle_timeout: 0,
            hard_timeout: 0,
            buffer_id: NO_BUFFER,
            actions: if change == Change::Delete { &[] } else { actions },
        }
    }

    /// A FLOW_MOD that makes this change to an entry, as the entry's tenant would write the message.
    pub(crate) fn of_flow(change: Change, flow: &'a Flow) -> SentFlowMod<'a> {
        SentFlowMod {
            table: flow.table,
            match_wire: &flow.match_wire,
            priority: flow.priority,
            cookie: flow.cookie,
            flags: FlowModFlags(flow.flags),
            idle_timeout: flow.idle_timeout,
            hard_timeout: flow.hard_timeout,
            ..SentFlowMod::of(change, &flow.actions)
        }
    }
}

impl Wanted {
    /// Means all entries.
    pub(crate) const EVERYTHING: Wanted = Wanted {
        match_: Match::ANY,
        table: None,
        cookie: 0,
        cookie_mask: 0,
        out_port: PortNo::ANY,
        out_group: GROUP_ANY,
    };

    /// Whether a request means an entry, by table, match and cookie. `words` are the words of the request's match; a
    /// strict request has a priority.
    pub(crate) fn covers(&self, flow: &Flow, words: &MiniWords, strictly: Option<u16>) -> bool {
        flow.is_covered(words, strictly)
            && self.table.is_none_or(|table| table == flow.table)
            && (flow.cookie ^ self.cookie) & self.cookie_mask == 0
    }
}

/// Whether Weir may have to examine other entries for a FLOW_MOD than the entry with its match and priority. `flags` is
/// the low byte. Most FLOW_MODs do not. The numbers of commands and flags are the same in both versions.
pub(crate) fn examines_others(command: Option<u16>, flags: Option<&u8>) -> bool {
    let checks = flags.is_some_and(|flags| u16::from(*flags) & FlowModFlags::CHECK_OVERLAP.0 != 0);
    let wide = [FlowModCommand::MODIFY, FlowModCommand::DELETE];
    checks || command.is_some_and(|command| wide.iter().any(|wide| u16::from(wide.0) == command))
}

impl FlowMod<'_> {
    /// Whether the FLOW_MOD deletes entries.
    pub(crate) fn deletes(&self) -> bool {
        matches!(self.command, FlowModCommand::DELETE | FlowModCommand::DELETE_STRICT)
    }

    /// The same FLOW_MOD without `out_port` and `out_group` if it does not delete: then OpenFlow ignores both (1.0,
    /// section 5.3.3; 1.3, section 7.3.4.1).
    pub(crate) fn without_ignored_filters(mut self) -> Self {
        if !self.deletes() {
            (self.wanted.out_port, self.wanted.out_group) = (PortNo::ANY, GROUP_ANY);
        }
        self
    }

    /// The priority of the only entry that a strict FLOW_MOD means.
    pub(crate) fn strictly(&self) -> Option<u16> {
        let strict = [FlowModCommand::MODIFY_STRICT, FlowModCommand::DELETE_STRICT];
        strict.contains(&self.command).then_some(self.priority)
    }

    /// Whether the FLOW_MOD has one of these flags.
    pub(crate) fn has(&self, flags: u16) -> bool {
        self.flags & flags != 0
    }

    /// What Weir examines to carry out the FLOW_MOD.
    pub(crate) fn examines(&self) -> Examines {
        let Wanted { cookie, cookie_mask, out_port, .. } = self.wanted;
        match self.command {
            FlowModCommand::MODIFY | FlowModCommand::DELETE if cookie_mask == u64::MAX => {
                Examines::WithCookie(cookie)
            }
            FlowModCommand::DELETE if out_port != PortNo::ANY => Examines::WithOutput(out_port),
            FlowModCommand::MODIFY | FlowModCommand::DELETE => Examines::Every,
            _ if self.has(FlowModFlags::CHECK_OVERLAP.0) => Examines::Glance,
            _ => Examines::Nothing,
        }
    }

    /// The entry that an ADD brings to a table, without rules.
    pub(crate) fn to_flow(&self, table: u8, now: Instant) -> Flow {
        // All flags, also those that asked for something once (specification of 1.3, section 6.4).
        let FlowMod { idle_timeout, hard_timeout, flags, .. } = *self;
        let terms = TimeoutsAndFlags { idle_timeout, hard_timeout, flags };
        let (match_, match_wire) = (&self.wanted.match_, self.match_wire.as_slice().into());
        let flow = Flow::new(match_, match_wire, self.actions.into(), terms);
        Flow { table, priority: self.priority, cookie: self.cookie, installed: now, ..flow }
    }
}
