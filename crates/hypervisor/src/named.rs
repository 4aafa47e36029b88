//! The groups and meters that an entry's instructions name (1.3).

use crate::store::Kind;
use alloc::vec::Vec;
use openflow::List;
use openflow::v13::{Action, Instruction};

/// The groups or meters that instructions name.
pub(crate) fn named_of(kind: Kind, instructions: &[u8]) -> Vec<u32> {
    match kind {
        Kind::Meter => {
            let instructions = List::<Instruction<'_>>::parse(instructions).unwrap_or_default();
            let meters = instructions.iter().filter_map(|instruction| match instruction {
                Instruction::Meter(number) => Some(number),
                _ => None,
            });
            meters.collect()
        }
        _ => groups_of(instructions),
    }
}

/// The groups that instructions send packets to. A group's own groups are not followed.
pub(crate) fn groups_of(instructions: &[u8]) -> Vec<u32> {
    let mut groups = Vec::new();
    for instruction in List::<Instruction<'_>>::parse(instructions).unwrap_or_default() {
        if let Instruction::ApplyActions(actions) | Instruction::WriteActions(actions) = instruction
        {
            groups.extend(actions.iter().filter_map(|action| match action {
                Action::Group(number) => Some(number),
                _ => None,
            }));
        }
    }
    groups.sort_unstable();
    groups.dedup();
    groups
}
