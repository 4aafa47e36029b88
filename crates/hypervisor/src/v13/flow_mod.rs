//! The FLOW_MODs that Weir sends, the FLOW_REMOVED that a tenant gets, and what instructions say.

use crate::cookie::{Cookie, Installation};
use crate::flows::{Flow, Rule};
use crate::south::diff::{Change, Writing};
use alloc::vec::Vec;
use openflow::v13::{
    Action, FlowMod, FlowModCommand, FlowModFlags, FlowRemoved, FlowRemovedReason, GROUP_ANY,
    Instruction, Match, PortNo, TABLE_ALL,
};
use openflow::{List, ListBuf, TooLong};

/// What sends a packet through the tables.
pub(crate) fn through_table() -> ListBuf<Action<'static>> {
    ListBuf::from([Action::Output { port: PortNo::TABLE, max_len: 0 }])
}

/// Tenants' tables follow Weir's own; `first` is the first of them.
pub(crate) fn physical_table(table: u8, first: u8) -> u8 {
    if table == TABLE_ALL { TABLE_ALL } else { table.saturating_add(first) }
}

/// Appends the FLOW_MOD that does this to an entry.
pub(crate) fn write_rule(
    flow: &Flow,
    rule: &Rule,
    writing: &Writing,
    first: u8,
    out: &mut Vec<u8>,
) -> Result<(), TooLong> {
    let &Writing { cookie, change, buffer_id, hard_timeout, resets_counts } = writing;
    let (Ok(match_), Ok(instructions)) =
        (Match::parse(&rule.match_wire), List::parse(&rule.actions))
    else {
        // Both were written by the compiler.
        return Err(TooLong { length: 0 });
    };
    let counting = FlowModFlags::NO_PKT_COUNTS | FlowModFlags::NO_BYT_COUNTS;
    let resets = if resets_counts { FlowModFlags::RESET_COUNTS } else { FlowModFlags(0) };
    FlowMod {
        cookie,
        // A deletion is of this very entry, whatever else has come to stand in its place.
        cookie_mask: if change == Change::Delete { u64::MAX } else { 0 },
        table_id: physical_table(flow.table, first),
        command: match change {
            Change::Add => FlowModCommand::ADD,
            Change::Modify => FlowModCommand::MODIFY_STRICT,
            Change::Delete => FlowModCommand::DELETE_STRICT,
        },
        idle_timeout: flow.idle_timeout,
        hard_timeout,
        priority: flow.priority,
        buffer_id,
        out_port: PortNo::ANY,
        out_group: GROUP_ANY,
        // The hypervisor always wants to know: its tables have to stay true.
        flags: FlowModFlags::SEND_FLOW_REM | resets | FlowModFlags(flow.flags & counting.0),
        match_,
        instructions: if change == Change::Delete { List::EMPTY } else { instructions },
    }
    .write_message(0, out)
}

/// Appends the FLOW_MOD that removes an entry that the switch holds.
pub(crate) fn write_removal(
    match_wire: &[u8],
    (table_id, priority): (u8, u16),
    cookie: u64,
    out: &mut Vec<u8>,
) -> Result<(), TooLong> {
    FlowMod {
        cookie,
        cookie_mask: u64::MAX,
        table_id,
        command: FlowModCommand::DELETE_STRICT,
        priority,
        match_: Match::parse(match_wire).unwrap_or(Match::ANY),
        ..FlowMod::default()
    }
    .write_message(0, out)
}

/// Whether instructions send to the port and the group, as the filters of requests mean it.
pub(crate) fn sends_to(instructions: &[u8], out_port: PortNo, out_group: u32) -> bool {
    let any = |test: &dyn Fn(&Action<'_>) -> bool| {
        List::<Instruction<'_>>::parse(instructions).is_ok_and(|list| {
            list.iter().any(|instruction| match instruction {
                Instruction::ApplyActions(actions) | Instruction::WriteActions(actions) => {
                    actions.iter().any(|action| test(&action))
                }
                _ => false,
            })
        })
    };
    (out_port == PortNo::ANY
        || any(&|action| matches!(action, Action::Output { port, .. } if *port == out_port)))
        && (out_group == GROUP_ANY
            || any(&|action| matches!(action, Action::Group(group) if *group == out_group)))
}

/// The table to which instructions send packets on.
pub(crate) fn next_table(instructions: &[u8]) -> Option<u8> {
    let instructions = List::<Instruction<'_>>::parse(instructions).ok()?;
    instructions.iter().find_map(|instruction| match instruction {
        Instruction::GotoTable(next) => Some(next),
        _ => None,
    })
}

/// The entry number and owner of a cookie that one of the tenants' entries has.
pub(crate) fn owner_of(cookie: u64, by: Installation) -> Option<Cookie> {
    Cookie::from_wire(cookie, by).filter(|cookie| !cookie.is_own())
}

/// Appends the report to a tenant that its entry has ended.
pub(crate) fn write_removed(
    flow: &Flow,
    reason: u8,
    (duration_sec, duration_nsec): (u32, u32),
    out: &mut Vec<u8>,
) -> Result<(), TooLong> {
    FlowRemoved {
        match_: Match::parse(&flow.match_wire).unwrap_or(Match::ANY),
        cookie: flow.cookie,
        priority: flow.priority,
        reason: FlowRemovedReason(reason),
        table_id: flow.table,
        duration_sec,
        duration_nsec,
        idle_timeout: flow.idle_timeout,
        hard_timeout: flow.hard_timeout,
        packet_count: flow.past_packets,
        byte_count: flow.past_bytes,
    }
    .write_message(0, out)
}
