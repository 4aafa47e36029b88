//! Action sets of 1.3 (specification 1.3.5, section 5.10).
//!
//! The switch merges an action set with the actions that other tables write. A merged set cannot put a link's label on
//! packets for one port only. So in a network a merged set sends by no port. Most sets are not merged: the entry is in
//! the tenant's first table, or clears the set, and has no GOTO_TABLE. The switch carries out such a set at once: one
//! action of each kind, in the order of the specification. So the compiler writes such a set as a list of actions,
//! behind the actions that the entry applies.

use alloc::vec::Vec;
use core::mem::discriminant;
use openflow::List;
use openflow::v13::{Action, Instruction, PortNo};

/// The instructions of an entry that concern action lists and the action set.
#[derive(Clone, Copy, Default)]
pub struct Program<'a> {
    /// The list that is applied.
    pub applied: Option<List<'a, Action<'a>>>,
    /// The actions that the entry writes to the set.
    pub written: Option<List<'a, Action<'a>>>,
    /// Whether the entry clears the set that earlier tables wrote.
    pub clears: bool,
    /// Whether the entry has GOTO_TABLE.
    pub goes_on: bool,
    /// Whether the entry writes metadata.
    pub writes_metadata: bool,
    /// Whether the entry has an instruction twice: a switch refuses such an entry.
    is_double: bool,
}

impl<'a> Program<'a> {
    /// Reads instructions.
    pub fn new(instructions: List<'a, Instruction<'a>>) -> Program<'a> {
        let mut program = Program::default();
        for instruction in instructions {
            match instruction {
                Instruction::ApplyActions(list) => {
                    program.is_double |= program.applied.replace(list).is_some();
                }
                Instruction::WriteActions(list) => {
                    program.is_double |= program.written.replace(list).is_some();
                }
                Instruction::ClearActions => program.clears = true,
                Instruction::GotoTable(_) => program.goes_on = true,
                Instruction::WriteMetadata { .. } => program.writes_metadata = true,
                _ => {}
            }
        }
        program
    }

    /// The applied actions and the action set, as one list in the order of execution. `None` if the set is not known in
    /// full, or if the entry writes no action to the set. `is_empty`: the set is empty before the entry.
    pub fn as_list(&self, is_empty: bool) -> Option<Vec<u8>> {
        if self.is_double || self.goes_on || !(is_empty || self.clears) {
            return None;
        }
        let written = self.written?;
        if self.writes_metadata && sent_by(written).is_some_and(may_inform_controller) {
            // A list is carried out before WRITE_METADATA, a set after it: a PACKET_IN would show other metadata.
            return None;
        }
        let has_unknown_place =
            |action| matches!(action, Action::Experimenter { .. } | Action::Unknown { .. });
        if written.iter().any(has_unknown_place) {
            return None;
        }
        let mut list = Vec::new();
        let actions = self.applied.into_iter().flatten().chain(in_order(written));
        actions.for_each(|action| action.write(&mut list));
        Some(list)
    }
}

/// Whether an action sends packets out.
pub fn sends(action: &Action<'_>) -> bool {
    matches!(action, Action::Output { .. } | Action::Group(_))
}

/// The action of a set that sends packets out: the last group or, without a group, the last output.
pub fn sent_by<'a>(written: List<'a, Action<'a>>) -> Option<Action<'a>> {
    let mut sent = None;
    for action in written {
        match (action, sent) {
            (Action::Group(_), _) => sent = Some(action),
            (Action::Output { .. }, None | Some(Action::Output { .. })) => sent = Some(action),
            _ => {}
        }
    }
    sent
}

/// The place of an action in the execution order of a set.
pub fn order_in_set(action: &Action<'_>) -> u8 {
    match action {
        Action::CopyTtlIn => 0,
        Action::PopVlan | Action::PopMpls(_) | Action::PopPbb => 1,
        Action::PushMpls(_) => 2,
        Action::PushPbb(_) => 3,
        Action::PushVlan(_) => 4,
        Action::CopyTtlOut => 5,
        Action::DecMplsTtl | Action::DecNwTtl => 6,
        Action::SetField(_) | Action::SetNwTtl(_) | Action::SetMplsTtl(_) => 7,
        Action::SetQueue(_) => 8,
        Action::Group(_) => 9,
        _ => 10,
    }
}

fn may_inform_controller(sent: Action<'_>) -> bool {
    matches!(sent, Action::Group(_) | Action::Output { port: PortNo::CONTROLLER, .. })
}

/// The actions of a set in execution order: the last action of each kind counts, and a group takes the place of an
/// output.
pub fn in_order<'a>(written: impl IntoIterator<Item = Action<'a>>) -> Vec<Action<'a>> {
    let mut set: Vec<Action<'a>> = Vec::new();
    for action in written {
        match set.iter_mut().find(|old| is_same_kind(old, &action)) {
            Some(old) => *old = action,
            None => set.push(action),
        }
    }
    if set.iter().any(|action| matches!(action, Action::Group(_))) {
        set.retain(|action| !matches!(action, Action::Output { .. }));
    }
    set.sort_by_key(order_in_set);
    set
}

fn is_same_kind(a: &Action<'_>, b: &Action<'_>) -> bool {
    match (a, b) {
        (Action::SetField(a), Action::SetField(b)) => a.basic() == b.basic(),
        _ => discriminant(a) == discriminant(b),
    }
}
