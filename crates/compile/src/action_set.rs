//! Action sets of 1.3 (specification 1.3.5, section 5.10).
//!
//! A set that is merged with what other tables wrote cannot put on the label of a link for one port, so in a network such a set
//! sends by no port. But most sets are not merged: the entry is in the tenant's first table, or clears the set, and goes on to no
//! other table. Then the set is carried out at once, one action of each kind and in the order of the specification, as a list is.
//! So the compiler writes it as a list, behind what the entry applies anyway.

use alloc::vec::Vec;
use core::mem::discriminant;
use openflow::List;
use openflow::v13::{Action, Instruction, PortNo};

/// The instructions of an entry, as far as they are about lists and the set.
#[derive(Clone, Copy, Default)]
pub struct Program<'a> {
    /// The list that is applied.
    pub applied: Option<List<'a, Action<'a>>>,
    /// What is written to the set.
    pub written: Option<List<'a, Action<'a>>>,
    /// Whether nothing stays of what earlier tables wrote.
    pub clears: bool,
    /// Whether the packets go on to another table.
    pub goes_on: bool,
    /// Whether the entry writes metadata.
    pub writes_metadata: bool,
    /// Whether an instruction is there twice: a switch refuses that.
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

    /// What the entry applies and writes, as one list in the order in which it is carried out; `None` if the set is not known in
    /// full, or the entry writes nothing to the set. `is_empty` says that nothing is in the set before.
    pub fn as_list(&self, is_empty: bool) -> Option<Vec<u8>> {
        if self.is_double || self.goes_on || !(is_empty || self.clears) {
            return None;
        }
        let written = self.written?;
        if self.writes_metadata && sent_by(written).is_some_and(may_inform_controller) {
            // A list comes before the metadata are written, of which a set informs the controller.
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

/// Whether packets leave by an action.
pub fn sends(action: &Action<'_>) -> bool {
    matches!(action, Action::Output { .. } | Action::Group(_))
}

/// The action of a set by which packets leave: the last group or, if there is none, the last output.
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

/// The order in which the actions of a set are carried out.
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

/// The set in the order in which it is carried out: the last of each kind counts, and a group takes an output's place.
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
