//! The FLOW_MODs that Weir sends, and the FLOW_REMOVED that a tenant gets.

use crate::buffers::Buffered;
use crate::flows::{Flow, Rule};
use crate::south::diff::{Change, Writing};
use alloc::vec::Vec;
use compile::entry::priority_v10 as priority_of;
use openflow::v10::{
    self, Action, FlowMod, FlowModCommand, FlowModFlags, FlowRemoved, FlowRemovedReason, PortNo,
};
use openflow::{List, NO_BUFFER, TooLong};

/// The buffered packet goes with the first rule that takes it, and with no other: the switch knows its number once.
pub(crate) fn buffer_for(rule: &Rule, buffered: &mut Option<Buffered>) -> u32 {
    let takes =
        |b: &mut Buffered| super::read_match(&rule.match_wire).is_some_and(|m| m.matches(&b.key));
    buffered.take_if(takes).map_or(NO_BUFFER, |b| b.physical)
}

/// Appends the FLOW_MOD that does this to one rule of an entry.
pub(crate) fn write_rule(
    flow: &Flow,
    rule: &Rule,
    writing: &Writing,
    out: &mut Vec<u8>,
) -> Result<(), TooLong> {
    let &Writing { cookie, change, buffer_id, hard_timeout, .. } = writing;
    let (Ok(match_), Ok(actions)) =
        (v10::Match::parse(&rule.match_wire), List::parse(&rule.actions))
    else {
        // Both were written by the compiler.
        return Err(TooLong { length: 0 });
    };
    FlowMod {
        match_,
        cookie,
        command: match change {
            Change::Add => FlowModCommand::ADD,
            Change::Modify => FlowModCommand::MODIFY_STRICT,
            Change::Delete => FlowModCommand::DELETE_STRICT,
        },
        idle_timeout: flow.idle_timeout,
        hard_timeout,
        priority: rule.priority,
        buffer_id,
        out_port: PortNo::NONE,
        // The hypervisor always wants to know: its tables have to stay true.
        flags: FlowModFlags::SEND_FLOW_REM,
        actions: if change == Change::Delete { List::EMPTY } else { actions },
    }
    .write_message(0, out)
}

/// Appends the FLOW_MOD that removes an entry that the switch holds.
pub(crate) fn write_removal(
    match_wire: &[u8],
    priority: u16,
    cookie: u64,
    out: &mut Vec<u8>,
) -> Result<(), TooLong> {
    let match_ = v10::Match::parse(match_wire).unwrap_or_default();
    FlowMod {
        match_,
        cookie,
        command: FlowModCommand::DELETE_STRICT,
        priority,
        ..FlowMod::default()
    }
    .write_message(0, out)
}

/// Whether a list of actions outputs to the port, as the out_port filter of requests means it.
pub(crate) fn outputs_to(actions: &[u8], out_port: PortNo) -> bool {
    if out_port == PortNo::NONE {
        return true;
    }
    List::<Action<'_>>::parse(actions).is_ok_and(|actions| {
        actions.iter().any(|action| match action {
            Action::Output { port, .. } | Action::Enqueue { port, .. } => port == out_port,
            _ => false,
        })
    })
}

/// An entry as it was stored, with the priority that it has.
pub(crate) fn restored(flow: Flow) -> Flow {
    let match_ = v10::Match::parse(&flow.match_wire);
    let priority = match_.map_or(flow.priority, |match_| priority_of(&match_, flow.priority));
    Flow { priority, ..flow }
}

/// Appends the report to a tenant that its entry has ended.
pub(crate) fn write_removed(
    flow: &Flow,
    reason: u8,
    (duration_sec, duration_nsec): (u32, u32),
    out: &mut Vec<u8>,
) -> Result<(), TooLong> {
    FlowRemoved {
        match_: v10::Match::parse(&flow.match_wire).unwrap_or_default(),
        cookie: flow.cookie,
        priority: flow.priority,
        reason: FlowRemovedReason(reason),
        duration_sec,
        duration_nsec,
        idle_timeout: flow.idle_timeout,
        packet_count: flow.past_packets,
        byte_count: flow.past_bytes,
    }
    .write_message(0, out)
}
