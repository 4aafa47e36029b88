//! The groups and meters that an entry's instructions name (1.3).

use crate::store::Kind;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use openflow::List;
use openflow::v13::{Action, Bucket, Instruction};

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

/// All actions in instructions, also those of action sets.
pub(crate) fn actions_of(instructions: &[u8]) -> impl Iterator<Item = Action<'_>> {
    let instructions = List::<Instruction<'_>>::parse(instructions).unwrap_or_default();
    let lists = instructions.into_iter().filter_map(|instruction| match instruction {
        Instruction::ApplyActions(actions) | Instruction::WriteActions(actions) => Some(actions),
        _ => None,
    });
    lists.flatten()
}

fn group_of(action: Action<'_>) -> Option<u32> {
    match action {
        Action::Group(number) => Some(number),
        _ => None,
    }
}

/// The groups that instructions send packets to, without the groups that these groups name.
pub(crate) fn groups_of(instructions: &[u8]) -> Vec<u32> {
    let mut groups: Vec<u32> = actions_of(instructions).filter_map(group_of).collect();
    groups.sort_unstable();
    groups.dedup();
    groups
}

/// Groups by ascending numbers, each after the groups that it names. The order is arbitrary where groups name each
/// other in a circle.
pub(crate) fn named_first(groups: &[u32], named: impl Fn(u32) -> Vec<u32>) -> Vec<u32> {
    let (mut order, mut seen) = (Vec::new(), BTreeSet::new());
    for &start in groups {
        let mut path = Vec::new();
        if seen.insert(start) {
            path.push((start, named(start)));
        }
        while let Some((number, rest)) = path.last_mut() {
            match rest.pop() {
                Some(next) if groups.binary_search(&next).is_ok() && seen.insert(next) => {
                    path.push((next, named(next)));
                }
                Some(_) => {}
                None => {
                    order.push(*number);
                    path.pop();
                }
            }
        }
    }
    order
}

/// Groups and meters that are to be deleted, with the groups that each names: each group before the groups that it
/// names, then the meters.
pub(crate) fn before_named(all: &BTreeMap<(Kind, u32), Vec<u32>>) -> Vec<(Kind, u32)> {
    let groups: Vec<u32> = all.keys().filter(|it| it.0 == Kind::Group).map(|it| it.1).collect();
    let named = |number| all.get(&(Kind::Group, number)).cloned().unwrap_or_default();
    let groups = named_first(&groups, named).into_iter().rev().map(|it| (Kind::Group, it));
    groups.chain(all.keys().copied().filter(|it| it.0 == Kind::Meter)).collect()
}

/// The buckets of a group with this content: see [`content_of`](crate::south::installed::content_of).
pub(crate) fn buckets_of(content: &[u8]) -> List<'_, Bucket<'_>> {
    List::parse(content.get(2..).unwrap_or_default()).unwrap_or_default()
}

/// The groups that buckets send to.
pub(crate) fn named_by<'a>(buckets: List<'a, Bucket<'a>>) -> impl Iterator<Item = u32> + use<'a> {
    buckets.into_iter().flat_map(|bucket| bucket.actions).filter_map(group_of)
}
