//! The FLOW_MODs that Weir sends, the FLOW_REMOVED of a switch and to a tenant, and the meaning of instructions.

use super::unreadable;
use crate::buffers::Buffered;
use crate::flows::{self, Flow, FlowMod as Asked, Head, Rule, SentFlowMod as Sent, Wanted};
use crate::named::actions_of;
use crate::parts::written;
use crate::south::reports::{Age, Removed};
use crate::tally::Count;
use alloc::vec::Vec;
use compile::metadata::own_part;
use compile::{Refused, RuleKey};
use flowspace::{Match as Space, MiniMatch};
use openflow::v13::{
    Action, FlowMod, FlowModCommand, FlowRemoved, FlowRemovedReason, GROUP_ANY, Instruction, Match,
    MatchBuf, MessageType, PortNo, TABLE_ALL,
};
use openflow::{ErrorCode, List, ListBuf, NO_BUFFER, TooLong, Version, frame};

/// A match from its wire form, with the padding.
pub(crate) fn read_match(wire: &[u8]) -> Option<Space> {
    let wire = Match::parse(wire).ok()?;
    Space::from_v13(&wire).ok()
}

/// A match on the wire, with the padding; nothing if 1.3 cannot express the match.
pub(crate) fn write_match(match_: &Space) -> Vec<u8> {
    let mut fields = MatchBuf::new();
    let said = match_.to_v13(&mut fields);
    said.map(|()| written(&fields.as_match())).unwrap_or_default()
}

/// The actions that send a packet through the tables.
pub(crate) fn through_table() -> ListBuf<Action<'static>> {
    ListBuf::from([Action::Output { port: PortNo::TABLE, max_len: 0 }])
}

/// Tenants' tables follow Weir's own; `first` is the first of them.
pub(crate) fn physical_table(table: u8, first: u8) -> u8 {
    if table == TABLE_ALL { TABLE_ALL } else { table.saturating_add(first) }
}

/// No rule of a MODIFY releases a buffered packet: the packet goes through the tables afterwards (specification section
/// 6.4).
pub(crate) fn buffer_for(_rule: &Rule, _buffered: &mut Option<Buffered>) -> u32 {
    NO_BUFFER
}

/// Appends a FLOW_MOD of Weir.
pub(crate) fn write_flow_mod(it: &Sent<'_>, out: &mut Vec<u8>) -> Result<(), TooLong> {
    if it.match_wire.is_empty() {
        // 1.3 cannot express the match.
        return Err(TooLong { length: 0 });
    }
    let message = FlowMod {
        cookie: it.cookie,
        cookie_mask: it.cookie_mask,
        table_id: it.table,
        command: it.command,
        idle_timeout: it.idle_timeout,
        hard_timeout: it.hard_timeout,
        priority: it.priority,
        buffer_id: it.buffer_id,
        out_port: PortNo::ANY,
        out_group: GROUP_ANY,
        flags: it.flags,
        match_: Match::ANY,
        instructions: List::EMPTY,
    };
    // Weir has written match and instructions, or has read both before, so they are not read again.
    frame::write(Version::V1_3, MessageType::FLOW_MOD.0, 0, out, |out| {
        message.write(out);
        out.truncate(out.len().saturating_sub(ANY_LEN));
        out.extend_from_slice(it.match_wire);
        out.extend_from_slice(it.actions);
    })
}

/// Bytes of [`Match::ANY`].
const ANY_LEN: usize = 8;

/// A tenant's FLOW_MOD.
pub(crate) fn read_flow_mod(body: &[u8], metadata_kept: u64) -> Result<Asked<'_>, Refused> {
    let it = FlowMod::parse(body).map_err(unreadable)?;
    Ok(Asked {
        command: it.command,
        wanted: Wanted {
            match_: tenants_match(&it.match_, metadata_kept)?,
            table: (it.table_id != TABLE_ALL).then_some(it.table_id),
            cookie: it.cookie,
            cookie_mask: it.cookie_mask,
            out_port: it.out_port,
            out_group: it.out_group,
        },
        match_wire: written(&it.match_),
        priority: it.priority,
        cookie: it.cookie,
        flags: it.flags.0,
        idle_timeout: it.idle_timeout,
        hard_timeout: it.hard_timeout,
        buffer_id: it.buffer_id,
        actions: it.instructions.as_bytes(),
    }
    .without_ignored_filters())
}

/// A match in a tenant's request, without the bits of the metadata that the tenant does not own. The tenant sees these
/// bits as 0: a match on 0 there is left out, and a match on another value matches no packet.
pub(super) fn tenants_match(match_: &Match<'_>, metadata_kept: u64) -> Result<Space, Refused> {
    let match_ = Space::from_v13(match_).map_err(|error| error.error_code())?;
    own_part(&match_, metadata_kept)
}

/// Whether instructions send to the `out_port` and `out_group` of a request.
pub(crate) fn sends_to(instructions: &[u8], wanted: &Wanted) -> bool {
    let &Wanted { out_port, out_group, .. } = wanted;
    let goes_on = |it| matches!(it, Action::Group(group) if group == out_group);
    (out_port == PortNo::ANY || ports_of(instructions).any(|port| port == out_port))
        && (out_group == GROUP_ANY || actions_of(instructions).any(goes_on))
}

/// Calls `each` for each port that instructions output to, also by an action set.
pub(crate) fn outputs(instructions: &[u8], each: &mut dyn FnMut(PortNo)) {
    ports_of(instructions).for_each(each);
}

fn ports_of(instructions: &[u8]) -> impl Iterator<Item = PortNo> {
    actions_of(instructions).filter_map(|action| match action {
        Action::Output { port, .. } => Some(port),
        _ => None,
    })
}

/// The table to which instructions send packets on.
pub(crate) fn next_table(instructions: &[u8]) -> Option<u8> {
    let instructions = List::<Instruction<'_>>::parse(instructions).ok()?;
    instructions.iter().find_map(|instruction| match instruction {
        Instruction::GotoTable(next) => Some(next),
        _ => None,
    })
}

/// An entry from the store, without the bits of the metadata that the tenant does not own.
pub(crate) fn restored(flow: Flow, metadata_kept: u64) -> Option<Flow> {
    let match_ = own_part(&flow.match_.to_match(), metadata_kept).ok()?;
    Some(Flow { match_: MiniMatch::new(&match_), ..flow })
}

/// The command of a FLOW_MOD.
pub(crate) fn command(body: &[u8]) -> Option<u16> {
    body.get(17).copied().map(u16::from)
}

/// Whether Weir may have to examine other entries for a FLOW_MOD than the entry with its match and priority.
pub(crate) fn examines_others(body: &[u8]) -> bool {
    flows::examines_others(command(body), body.get(37))
}

/// The fields in the first bytes of a FLOW_MOD. A long match is incomplete.
pub(crate) fn head(body: &[u8]) -> Option<Head> {
    const MATCH: usize = 40;
    let u16_at = |at: usize| body.get(at..at + 2)?.try_into().ok().map(u16::from_be_bytes);
    let command = FlowModCommand(*body.get(17)?).name()?;
    // The match is padded to 8 bytes.
    let length = usize::from(u16_at(MATCH + 2)?).next_multiple_of(8);
    let match_ = body.get(MATCH..MATCH + length).and_then(read_match);
    Some(Head { command, table: body.get(16).copied(), priority: u16_at(22)?, match_ })
}

/// Whether instructions name a port, or a reserved port that may include this port.
pub(crate) fn names_port(instructions: &[u8], number: u32) -> bool {
    let unnamed = [PortNo::FLOOD, PortNo::ALL, PortNo::IN_PORT];
    actions_of(instructions).any(|action| match action {
        Action::Output { port, .. } => port.0 == number || unnamed.contains(&port),
        _ => false,
    })
}

/// The instructions of a rule as a tenant would write them, with the tenant's numbers of tables.
pub(crate) fn tenants_actions(instructions: &[u8], first_table: u8) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for instruction in List::<Instruction<'_>>::parse(instructions).ok()? {
        match instruction {
            Instruction::GotoTable(table) => {
                Instruction::GotoTable(table.checked_sub(first_table)?).write(&mut out);
            }
            other => other.write(&mut out),
        }
    }
    Some(out)
}

/// The switch's report that a rule was removed.
pub(crate) fn removed(body: &[u8], first_table: u8) -> Result<Removed, ErrorCode> {
    let removed = FlowRemoved::parse(body).map_err(unreadable)?;
    let match_ = Space::from_v13(&removed.match_).map_err(|error| error.error_code())?;
    let (table, match_wire) = (removed.table_id.saturating_sub(first_table), write_match(&match_));
    Ok(Removed {
        cookie: removed.cookie,
        key: RuleKey { table, priority: removed.priority, match_wire: match_wire.into() },
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
        match_: Match::parse(&flow.match_wire).unwrap_or(Match::ANY),
        cookie: flow.cookie,
        priority: flow.priority,
        reason: FlowRemovedReason(reason),
        table_id: flow.table,
        duration_sec: stood.duration_sec,
        duration_nsec: stood.duration_nsec,
        idle_timeout: flow.idle_timeout,
        hard_timeout: flow.hard_timeout,
        packet_count: flow.past.packets,
        byte_count: flow.past.bytes,
    }
    .write_message(0, out)
}
