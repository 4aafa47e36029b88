//! Translates FLOW_MODs and instructions of 1.3 to and from the form of the datapath.

use flowspace::Match;
use openflow::error::v13 as code;
use openflow::v13::{FlowMod, FlowModCommand, FlowModFlags, Instruction, TABLE_ALL};
use openflow::{ErrorCode, List, ListBuf, NO_BUFFER};

use super::actions;
use super::shape::Shape;
use crate::action::Instructions;
use crate::datapath::{Command, FlowRequest};
use crate::state::State;

/// Checks and translates a FLOW_MOD.
pub(super) fn request(switch: &State, body: &FlowMod<'_>) -> Result<FlowRequest, ErrorCode> {
    let command = match body.command {
        FlowModCommand::ADD => Command::Add,
        FlowModCommand::MODIFY => Command::Modify,
        FlowModCommand::MODIFY_STRICT => Command::ModifyStrict,
        FlowModCommand::DELETE => Command::Delete,
        FlowModCommand::DELETE_STRICT => Command::DeleteStrict,
        _ => return Err(code::FLOW_MOD_FAILED_BAD_COMMAND),
    };
    let deletes = matches!(command, Command::Delete | Command::DeleteStrict);
    let n_tables = switch.config.n_tables;
    if body.table_id >= n_tables && !(deletes && body.table_id == TABLE_ALL) {
        return Err(code::FLOW_MOD_FAILED_BAD_TABLE_ID);
    }
    const KNOWN_FLAGS: FlowModFlags = FlowModFlags(0x1f);
    if !KNOWN_FLAGS.contains(body.flags) {
        return Err(code::FLOW_MOD_FAILED_BAD_FLAGS);
    }
    let match_ = Match::from_v13(&body.match_).map_err(|fault| fault.error_code())?;
    let instructions = if deletes {
        Instructions::default()
    } else {
        instructions(body.instructions, &match_, body.table_id, n_tables)?
    };
    Ok(FlowRequest {
        command,
        table: body.table_id,
        match_,
        priority: body.priority,
        cookie: body.cookie,
        cookie_mask: body.cookie_mask,
        idle_timeout: body.idle_timeout,
        hard_timeout: body.hard_timeout,
        flags: body.flags.0,
        out_port: body.out_port.0,
        out_group: body.out_group,
        buffer: (body.buffer_id != NO_BUFFER).then_some(body.buffer_id),
        instructions,
        modify_adds: false,
    })
}

/// Checks and translates the instructions of an entry in table `table` with this match.
fn instructions(
    list: List<'_, Instruction<'_>>,
    match_: &Match,
    table: u8,
    n_tables: u8,
) -> Result<Instructions, ErrorCode> {
    let mut found = Instructions::default();
    let mut seen = [false; 7];
    for instruction in list {
        match seen.get_mut(usize::from(instruction.type_())) {
            // OpenFlow 1.4 added a code for a repeated instruction. In 1.3 this code is the
            // nearest.
            Some(true) => return Err(code::BAD_INSTRUCTION_UNSUP_INST),
            Some(place) => *place = true,
            None => {}
        }
        match instruction {
            Instruction::GotoTable(next) if next > table && next < n_tables => {
                found.goto = Some(next);
            }
            Instruction::GotoTable(_) => return Err(code::BAD_INSTRUCTION_BAD_TABLE_ID),
            Instruction::WriteMetadata { metadata, mask } => {
                found.metadata = Some((metadata, mask))
            }
            Instruction::WriteActions(actions) => {
                // The headers of packets at the execution of the action set depend on entries of other tables. Open
                // vSwitch refuses no action here either.
                found.write = actions::read(actions)?;
            }
            Instruction::ApplyActions(actions) => {
                found.apply = actions::read(actions)?;
                found.apply.iter().try_fold(Shape::of(match_), Shape::after)?;
            }
            Instruction::ClearActions => found.clear = true,
            Instruction::Meter(id) => found.meter = Some(id),
            Instruction::Experimenter { .. } => return Err(code::BAD_INSTRUCTION_BAD_EXPERIMENTER),
            Instruction::Unknown { .. } => return Err(code::BAD_INSTRUCTION_UNKNOWN_INST),
        }
    }
    Ok(found)
}

/// Encodes instructions for 1.3, in the order of their execution.
pub(super) fn write(instructions: &Instructions) -> ListBuf<Instruction<'static>> {
    let mut list = ListBuf::new();
    if let Some(id) = instructions.meter {
        list.push(Instruction::Meter(id));
    }
    if !instructions.apply.is_empty() {
        let actions = actions::write(&instructions.apply);
        list.push(Instruction::ApplyActions(actions.as_list()));
    }
    if instructions.clear {
        list.push(Instruction::ClearActions);
    }
    if !instructions.write.is_empty() {
        let actions = actions::write(&instructions.write);
        list.push(Instruction::WriteActions(actions.as_list()));
    }
    if let Some((metadata, mask)) = instructions.metadata {
        list.push(Instruction::WriteMetadata { metadata, mask });
    }
    if let Some(table) = instructions.goto {
        list.push(Instruction::GotoTable(table));
    }
    list
}
