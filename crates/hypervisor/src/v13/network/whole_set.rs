//! Action sets that are known in full when they are written: nothing was in the set before, and nothing comes after.
//!
//! A set that is merged with others cannot put on the tag of a link for one port, so none sends by a port. But most are not
//! merged: the entry is in the tenant's first table, or clears the set, and goes to no other table. What is in such a set is carried out at once, one of each kind and in the order of the specification (1.3.5,
//! section 5.10), just as a list is; so it is said as one, behind what the entry applies anyway.

use super::exits::sent_by;
use crate::v13::actions::order_in_set;
use alloc::vec::Vec;
use core::mem::discriminant;
use openflow::List;
use openflow::v13::{Action, Instruction, PortNo};

/// What an entry does to the action set, and where packets go on.
#[derive(Default)]
pub(super) struct Written {
    /// Whether it writes anything there.
    pub is_set: bool,
    /// Whether nothing stays of what earlier tables have left.
    pub cleared: bool,
    /// Whether a table comes after.
    pub goes_on: bool,
}

impl Written {
    pub(super) fn by(instructions: List<'_, Instruction<'_>>) -> Written {
        let mut written = Written::default();
        for instruction in instructions {
            match instruction {
                Instruction::WriteActions(_) => written.is_set = true,
                Instruction::ClearActions => written.cleared = true,
                Instruction::GotoTable(_) => written.goes_on = true,
                _ => {}
            }
        }
        written
    }
}

/// What an entry applies and writes, as one list in the order in which it is carried out; `None` if the set is not known in
/// full, or there is none. `is_empty` says that nothing is in the set before.
pub(super) fn as_list(is_empty: bool, instructions: List<'_, Instruction<'_>>) -> Option<Vec<u8>> {
    let (mut applied, mut written) = (None, None);
    let Written { cleared, goes_on, .. } = Written::by(instructions);
    let mut writes_metadata = false;
    for instruction in instructions {
        match instruction {
            // An entry has one of each kind at most; what has more is the switch's to refuse.
            Instruction::ApplyActions(_) if applied.is_some() => return None,
            Instruction::WriteActions(_) if written.is_some() => return None,
            Instruction::ApplyActions(list) => applied = Some(list),
            Instruction::WriteActions(list) => written = Some(list),
            Instruction::WriteMetadata { .. } => writes_metadata = true,
            _ => {}
        }
    }
    if goes_on || !(is_empty || cleared) {
        return None;
    }
    let written = written?;
    if writes_metadata && sent_by(written).is_some_and(may_tell) {
        // A list comes before the metadata are written, with which a set tells the controller of a packet.
        return None;
    }
    let place_is_unknown =
        |action: Action<'_>| matches!(action, Action::Experimenter { .. } | Action::Unknown { .. });
    if written.iter().any(place_is_unknown) {
        return None;
    }
    let mut list = Vec::new();
    let written = in_order(written);
    applied.into_iter().flatten().chain(written).for_each(|action| action.write(&mut list));
    Some(list)
}

/// What an entry applies: with its set, if that is `whole`.
pub(super) fn lists<'a>(
    whole: Option<&'a [u8]>,
    instructions: List<'a, Instruction<'a>>,
) -> Vec<List<'a, Action<'a>>> {
    match whole {
        Some(whole) => Vec::from([List::parse(whole).unwrap_or_default()]),
        None => {
            let lists = instructions.iter().filter_map(|instruction| match instruction {
                Instruction::ApplyActions(list) => Some(list),
                _ => None,
            });
            lists.collect()
        }
    }
}

/// Whether the controller may be told of a packet that is sent by this.
fn may_tell(sent: Action<'_>) -> bool {
    matches!(sent, Action::Group(_) | Action::Output { port: PortNo::CONTROLLER, .. })
}

/// The set, in the order in which it is carried out: the last of each kind counts, and a group takes an output's place.
fn in_order<'a>(written: List<'a, Action<'a>>) -> Vec<Action<'a>> {
    let mut set: Vec<Action<'a>> = Vec::new();
    for action in written {
        match set.iter_mut().find(|old| same_kind(old, &action)) {
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

fn same_kind(a: &Action<'_>, b: &Action<'_>) -> bool {
    match (a, b) {
        (Action::SetField(a), Action::SetField(b)) => a.basic() == b.basic(),
        _ => discriminant(a) == discriminant(b),
    }
}
