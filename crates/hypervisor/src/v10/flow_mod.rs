//! The FLOW_MODs that Weir sends, and FLOW_REMOVED of a switch and to a tenant.

use super::unreadable;
use crate::buffers::Buffered;
use crate::flows::{self, Flow, FlowMod as Asked, Head, Rule, SentFlowMod as Sent, Wanted};
use crate::parts::written;
use crate::south::reports::{Age, Removed};
use crate::tally::Count;
use alloc::vec::Vec;
use compile::entry::priority_v10 as priority_of;
use compile::{Refused, RuleKey};
use flowspace::{Match, port_from_v10};
use openflow::v10::{
    self, Action, FlowMod, FlowModCommand, FlowModFlags, FlowRemoved, FlowRemovedReason, PortNo,
};
use openflow::{ErrorCode, List, NO_BUFFER, TooLong, v13};

/// A match from its wire form.
pub(crate) fn read_match(wire: &[u8]) -> Option<Match> {
    v10::Match::parse(wire).ok().map(|m| Match::from_v10(&m))
}

/// A match on the wire; nothing if 1.0 cannot say the match.
pub(crate) fn write_match(match_: &Match) -> Vec<u8> {
    match_.to_v10().map(|match_| written(&match_)).unwrap_or_default()
}

/// The buffered packet goes with the first rule that matches it, and with no other rule: the switch accepts the buffer
/// id once.
pub(crate) fn buffer_for(rule: &Rule, buffered: &mut Option<Buffered>) -> u32 {
    let takes = |b: &mut Buffered| read_match(&rule.match_wire).is_some_and(|m| m.matches(&b.key));
    buffered.take_if(takes).map_or(NO_BUFFER, |b| b.physical)
}

/// Appends a FLOW_MOD of Weir, which names no table.
pub(crate) fn write_flow_mod(it: &Sent<'_>, out: &mut Vec<u8>) -> Result<(), TooLong> {
    let (Ok(match_), Ok(actions)) = (v10::Match::parse(it.match_wire), List::parse(it.actions))
    else {
        // Weir has written both, or has read both before.
        return Err(TooLong { length: 0 });
    };
    FlowMod {
        match_,
        cookie: it.cookie,
        command: FlowModCommand(it.command.0.into()),
        idle_timeout: it.idle_timeout,
        hard_timeout: it.hard_timeout,
        priority: it.priority,
        buffer_id: it.buffer_id,
        out_port: PortNo::NONE,
        flags: FlowModFlags(it.flags.0),
        actions,
    }
    .write_message(0, out)
}

/// A tenant's FLOW_MOD, with the priority that Weir uses.
pub(crate) fn read_flow_mod(body: &[u8], _metadata_kept: u64) -> Result<Asked<'_>, Refused> {
    let it = FlowMod::parse(body).map_err(unreadable)?;
    Ok(Asked {
        command: v13::FlowModCommand(u8::try_from(it.command.0).unwrap_or(u8::MAX)),
        wanted: Wanted { table: Some(0), ..wanted(&it.match_, it.out_port) },
        match_wire: written(&it.match_),
        priority: priority_of(&it.match_, it.priority),
        cookie: it.cookie,
        flags: it.flags.0,
        idle_timeout: it.idle_timeout,
        hard_timeout: it.hard_timeout,
        buffer_id: it.buffer_id,
        actions: it.actions.as_bytes(),
    }
    .without_ignored_filters())
}

/// The entries that a request with this match and out_port means.
pub(super) fn wanted(match_: &v10::Match, out_port: PortNo) -> Wanted {
    let out_port = v13::PortNo(port_from_v10(out_port.0));
    Wanted { match_: Match::from_v10(match_), out_port, ..Wanted::EVERYTHING }
}

/// Whether a list of actions outputs to the port, as the out_port filter of requests means it.
pub(crate) fn sends_to(actions: &[u8], &Wanted { out_port, .. }: &Wanted) -> bool {
    out_port == v13::PortNo::ANY || ports_of(actions).any(|port| port == out_port)
}

/// Calls `each` for each port that a list of actions outputs to.
pub(crate) fn outputs(actions: &[u8], each: &mut dyn FnMut(v13::PortNo)) {
    ports_of(actions).for_each(each);
}

fn ports_of(actions: &[u8]) -> impl Iterator<Item = v13::PortNo> {
    let actions = List::<Action<'_>>::parse(actions).unwrap_or_default();
    actions.into_iter().filter_map(|action| match action {
        Action::Output { port, .. } | Action::Enqueue { port, .. } => {
            Some(v13::PortNo(port_from_v10(port.0)))
        }
        _ => None,
    })
}

/// An entry from the store, with the priority that Weir uses.
pub(crate) fn restored(flow: Flow, _metadata_kept: u64) -> Option<Flow> {
    let match_ = v10::Match::parse(&flow.match_wire);
    let priority = match_.map_or(flow.priority, |match_| priority_of(&match_, flow.priority));
    Some(Flow { priority, ..flow })
}

/// The command of a FLOW_MOD.
pub(crate) fn command(body: &[u8]) -> Option<u16> {
    body.get(48..50)?.try_into().ok().map(u16::from_be_bytes)
}

/// Whether Weir may have to examine other entries for a FLOW_MOD than the entry with its match and priority.
pub(crate) fn examines_others(body: &[u8]) -> bool {
    flows::examines_others(command(body), body.get(63))
}

/// The fields in the first bytes of a FLOW_MOD.
pub(crate) fn head(body: &[u8]) -> Option<Head> {
    let match_ = v10::Match::parse(body.get(..40)?).ok()?;
    let priority = body.get(54..56)?.try_into().ok()?;
    Some(Head {
        command: FlowModCommand(command(body)?).name()?,
        table: None,
        priority: u16::from_be_bytes(priority),
        match_: Some(Match::from_v10(&match_)),
    })
}

/// Whether a list of actions names a port, or a reserved port that may include this port.
pub(crate) fn names_port(actions: &[u8], number: u32) -> bool {
    let unnamed = [PortNo::FLOOD, PortNo::ALL, PortNo::IN_PORT];
    let actions = List::<Action<'_>>::parse(actions).unwrap_or_default();
    actions.iter().any(|action| match action {
        Action::Output { port, .. } => port_from_v10(port.0) == number || unnamed.contains(&port),
        _ => false,
    })
}

/// The table to which actions send packets on: none.
pub(crate) fn next_table(_actions: &[u8]) -> Option<u8> {
    None
}

/// The actions of a rule as a tenant would write them.
pub(crate) fn tenants_actions(actions: &[u8], _first_table: u8) -> Option<Vec<u8>> {
    Some(actions.to_vec())
}

/// The switch's report that a rule was removed. The report names no table.
pub(crate) fn removed(body: &[u8], _first_table: u8) -> Result<Removed, ErrorCode> {
    let removed = FlowRemoved::parse(body).map_err(unreadable)?;
    let match_wire = write_match(&Match::from_v10(&removed.match_)).into();
    Ok(Removed {
        cookie: removed.cookie,
        key: RuleKey { table: 0, priority: removed.priority, match_wire },
        reason: removed.reason.0,
        counted: Count { packets: removed.packet_count, bytes: removed.byte_count },
        stood: Age { duration_sec: removed.duration_sec, duration_nsec: removed.duration_nsec },
    })
}

/// Appends the FLOW_REMOVED for a tenant's entry.
pub(crate) fn write_removed(
    flow: &Flow,
    reason: u8,
    stood: Age,
    out: &mut Vec<u8>,
) -> Result<(), TooLong> {
    FlowRemoved {
        match_: v10::Match::parse(&flow.match_wire).unwrap_or_default(),
        cookie: flow.cookie,
        priority: flow.priority,
        reason: FlowRemovedReason(reason),
        duration_sec: stood.duration_sec,
        duration_nsec: stood.duration_nsec,
        idle_timeout: flow.idle_timeout,
        packet_count: flow.past.packets,
        byte_count: flow.past.bytes,
    }
    .write_message(0, out)
}
