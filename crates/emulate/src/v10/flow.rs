//! Translates FLOW_MODs and actions of 1.0 to and from the form of the datapath.

use flowspace::{Match, port_from_v10, port_to_v10};
use openflow::error::v13 as code;
use openflow::nicira::{NICIRA, Resubmit};
use openflow::v10::{Action as Wire, FlowMod, FlowModCommand, FlowModFlags, PortNo, Wildcards};
use openflow::v13::OxmField;
use openflow::{ErrorCode, List, ListBuf, NO_BUFFER};

use crate::action::{ANY_GROUP, Action, Instructions, port};
use crate::datapath::{Command, FlowRequest};
use crate::table::flags;

/// Checks and translates a FLOW_MOD. The higher byte of its command may contain the table id.
pub(super) fn request(body: &FlowMod<'_>, names_table: bool) -> Result<FlowRequest, ErrorCode> {
    let [named, command] = body.command.0.to_be_bytes();
    let table = names_table.then_some(named);
    let command = if names_table { FlowModCommand(command.into()) } else { body.command };
    let command = match command {
        FlowModCommand::ADD => Command::Add,
        FlowModCommand::MODIFY => Command::Modify,
        FlowModCommand::MODIFY_STRICT => Command::ModifyStrict,
        FlowModCommand::DELETE => Command::Delete,
        FlowModCommand::DELETE_STRICT => Command::DeleteStrict,
        _ => return Err(code::FLOW_MOD_FAILED_BAD_COMMAND),
    };
    if body.flags.contains(FlowModFlags::EMERG) {
        // The switch has no emergency table, so that table counts as full. Open vSwitch sends the
        // same error.
        return Err(code::FLOW_MOD_FAILED_TABLE_FULL);
    }
    // An entry without wildcards has the highest priority, independent of the priority field
    // (section 3.4).
    let is_exact = body.match_.wildcards.0 & Wildcards::ALL.0 == 0;
    let wanted = FlowModFlags::SEND_FLOW_REM | FlowModFlags::CHECK_OVERLAP;
    Ok(FlowRequest {
        command,
        table: table.unwrap_or(match command {
            Command::Delete | Command::DeleteStrict => 0xff,
            _ => 0,
        }),
        match_: Match::from_v10(&body.match_),
        priority: if is_exact { u16::MAX } else { body.priority },
        cookie: body.cookie,
        cookie_mask: 0,
        idle_timeout: body.idle_timeout,
        hard_timeout: body.hard_timeout,
        flags: body.flags.0 & wanted.0 | reset_counts(command),
        out_port: port_from_v10(body.out_port.0),
        out_group: ANY_GROUP,
        buffer: (body.buffer_id != NO_BUFFER).then_some(body.buffer_id),
        instructions: Instructions::apply(actions(body.actions)?),
        modify_adds: command.is_modify(),
    })
}

/// ADD of an existing entry resets the counters of the entry. MODIFY keeps the counters (section
/// 4.6).
fn reset_counts(command: Command) -> u16 {
    if command == Command::Add { flags::RESET_COUNTS } else { 0 }
}

/// Checks and translates actions.
pub(super) fn actions(list: List<'_, Wire<'_>>) -> Result<Vec<Action>, ErrorCode> {
    list.iter().map(action).collect()
}

fn action(wire: Wire<'_>) -> Result<Action, ErrorCode> {
    let set = |field, value: u128| Ok(Action::SetField { field, value });
    match wire {
        Wire::Output { port, max_len } => {
            Ok(Action::Output { port: output_port(port, false)?, max_len })
        }
        Wire::Enqueue { port, queue_id } => {
            Ok(Action::Enqueue { port: output_port(port, true)?, queue: queue_id })
        }
        Wire::SetVlanVid(vid) if vid > 0x0fff => Err(code::BAD_ACTION_BAD_ARGUMENT),
        Wire::SetVlanVid(vid) => Ok(Action::SetVlanVid(vid)),
        Wire::SetVlanPcp(pcp) if pcp > 7 => Err(code::BAD_ACTION_BAD_ARGUMENT),
        Wire::SetVlanPcp(pcp) => Ok(Action::SetVlanPcp(pcp)),
        Wire::StripVlan => Ok(Action::PopVlan),
        Wire::SetDlSrc(address) => set(OxmField::ETH_SRC, from_mac(address)),
        Wire::SetDlDst(address) => set(OxmField::ETH_DST, from_mac(address)),
        Wire::SetNwSrc(address) => set(OxmField::IPV4_SRC, address.into()),
        Wire::SetNwDst(address) => set(OxmField::IPV4_DST, address.into()),
        Wire::SetNwTos(tos) if tos & 0x03 != 0 => Err(code::BAD_ACTION_BAD_ARGUMENT),
        Wire::SetNwTos(tos) => Ok(Action::SetNwTos(tos)),
        Wire::SetTpSrc(port) => Ok(Action::SetTpSrc(port)),
        Wire::SetTpDst(port) => Ok(Action::SetTpDst(port)),
        Wire::Vendor { .. } if let Some(resubmit) = Resubmit::of_v10(&wire) => {
            Ok(Action::Resubmit { in_port: port_from_v10(resubmit.in_port), table: resubmit.table })
        }
        Wire::Vendor { .. } => Err(code::BAD_ACTION_BAD_EXPERIMENTER),
        Wire::Unknown { .. } => Err(code::BAD_ACTION_BAD_TYPE),
    }
}

/// Checks a port. The port need not exist, but its number must be possible: below OFPP_MAX, as in Open vSwitch
/// (including 0, which never exists). Only physical ports have queues.
fn output_port(number: PortNo, queued: bool) -> Result<u32, ErrorCode> {
    let is_physical = number.0 < PortNo::MAX.0;
    let is_allowed = match number {
        PortNo::IN_PORT | PortNo::LOCAL => true,
        PortNo::TABLE | PortNo::NORMAL | PortNo::FLOOD | PortNo::ALL | PortNo::CONTROLLER => {
            !queued
        }
        _ => is_physical,
    };
    if is_allowed { Ok(port_from_v10(number.0)) } else { Err(code::BAD_ACTION_BAD_OUT_PORT) }
}

fn from_mac(address: [u8; 6]) -> u128 {
    address.iter().fold(0, |value, byte| value << 8 | u128::from(*byte))
}

fn to_mac(value: u128) -> [u8; 6] {
    let [.., a, b, c, d, e, f] = value.to_be_bytes();
    [a, b, c, d, e, f]
}

/// Encodes the actions for 1.0. Returns `None` if 1.0 has no form for an action.
pub(super) fn to_wire(instructions: &Instructions) -> Option<ListBuf<Wire<'static>>> {
    let only_applies = Instructions { apply: Vec::new(), ..instructions.clone() };
    if only_applies != Instructions::default() {
        return None;
    }
    let mut list = ListBuf::new();
    for action in &instructions.apply {
        match *action {
            Action::Resubmit { in_port, table } => {
                let body = &Resubmit { in_port: port_to_v10(in_port)?, table }.body();
                list.push(Wire::Vendor { vendor: NICIRA, body });
            }
            _ => list.push(to_wire_action(action)?),
        }
    }
    Some(list)
}

fn to_wire_action(action: &Action) -> Option<Wire<'static>> {
    Some(match *action {
        Action::Output { port, max_len } => {
            // Only an output to the controller has a length.
            let max_len = if port == port::CONTROLLER { max_len } else { 0 };
            Wire::Output { port: PortNo(port_to_v10(port)?), max_len }
        }
        Action::Enqueue { port, queue } => {
            Wire::Enqueue { port: PortNo(port_to_v10(port)?), queue_id: queue }
        }
        Action::SetVlanVid(vid) => Wire::SetVlanVid(vid),
        Action::SetVlanPcp(pcp) => Wire::SetVlanPcp(pcp),
        Action::PopVlan => Wire::StripVlan,
        Action::SetField { field: OxmField::ETH_SRC, value } => Wire::SetDlSrc(to_mac(value)),
        Action::SetField { field: OxmField::ETH_DST, value } => Wire::SetDlDst(to_mac(value)),
        Action::SetField { field: OxmField::IPV4_SRC, value } => Wire::SetNwSrc(value as u32),
        Action::SetField { field: OxmField::IPV4_DST, value } => Wire::SetNwDst(value as u32),
        Action::SetNwTos(tos) => Wire::SetNwTos(tos),
        Action::SetTpSrc(port) => Wire::SetTpSrc(port),
        Action::SetTpDst(port) => Wire::SetTpDst(port),
        _ => return None,
    })
}
