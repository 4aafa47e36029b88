//! The group table of OpenFlow 1.3 (section 5.6).

use std::collections::BTreeMap;

use crate::action::{ANY_GROUP, Action, port};

/// How a group uses its buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupKind {
    /// Executes every bucket, each on its own copy of the packet.
    All,
    /// Executes one bucket, which a hash of the packet and the weights select.
    Select,
    /// Executes its only bucket.
    Indirect,
    /// Executes the first live bucket.
    FastFailover,
}

/// A group.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// The type of the group.
    pub kind: GroupKind,
    /// The buckets in the order of the GROUP_MOD.
    pub buckets: Vec<Bucket>,
    /// The time when the group was added, ns.
    pub created: u64,
    /// Packets processed.
    pub packets: u64,
    /// Bytes processed.
    pub bytes: u64,
}

/// A bucket of a group.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    /// Relative weight, for select groups.
    pub weight: u16,
    /// Port whose state decides whether the bucket is live, or [`port::ANY`].
    pub watch_port: u32,
    /// Group whose state decides whether the bucket is live, or [`ANY_GROUP`].
    pub watch_group: u32,
    /// The actions that the switch applies to its copy of the packet.
    pub actions: Vec<Action>,
    /// Packets processed.
    pub packets: u64,
    /// Bytes processed.
    pub bytes: u64,
}

/// All groups of a switch.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    groups: BTreeMap<u32, Group>,
}

/// The maximum depth of groups that refer to groups.
const MAX_DEPTH: usize = 16;

impl Groups {
    /// The group of this id.
    pub(crate) fn get(&self, id: u32) -> Option<&Group> {
        self.groups.get(&id)
    }

    /// Adds or replaces a group.
    pub(crate) fn insert(&mut self, id: u32, group: Group) {
        self.groups.insert(id, group);
    }

    /// Removes a group. Returns whether the group existed.
    pub(crate) fn remove(&mut self, id: u32) -> bool {
        self.groups.remove(&id).is_some()
    }

    /// Groups in the order of their ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Group)> {
        self.groups.iter().map(|(id, group)| (*id, group))
    }

    /// Number of groups.
    pub(crate) fn len(&self) -> usize {
        self.groups.len()
    }

    /// The number of groups that refer to this group. The tables count the flow entries.
    pub(crate) fn references_to(&self, target: u32) -> usize {
        self.groups.values().flat_map(Group::references).filter(|id| *id == target).count()
    }

    /// Whether the group `id` with these buckets would be part of a loop of groups.
    pub(crate) fn would_loop(&self, id: u32, buckets: &[Bucket]) -> bool {
        let mut seen = vec![id];
        let mut next: Vec<u32> = buckets.iter().flat_map(Bucket::references).collect();
        while let Some(candidate) = next.pop() {
            if candidate == id {
                return true;
            }
            if !seen.contains(&candidate) {
                seen.push(candidate);
                next.extend(self.groups.get(&candidate).into_iter().flat_map(Group::references));
            }
        }
        false
    }

    /// Counts a packet and returns the indexes of the buckets to execute.
    ///
    /// `port_is_live` returns whether a port is up. `hash` selects the bucket of a select group.
    pub(crate) fn choose(
        &mut self,
        id: u32,
        bytes: usize,
        hash: u64,
        port_is_live: &dyn Fn(u32) -> bool,
    ) -> Vec<usize> {
        let Some(group) = self.groups.get(&id) else { return Vec::new() };
        let live = |index: usize| {
            group.buckets.get(index).is_some_and(|bucket| self.is_live(bucket, port_is_live, 0))
        };
        let all = 0..group.buckets.len();
        let chosen: Vec<usize> = match group.kind {
            GroupKind::All => all.collect(),
            GroupKind::Indirect => all.take(1).collect(),
            GroupKind::FastFailover => all.into_iter().find(|i| live(*i)).into_iter().collect(),
            GroupKind::Select => pick(&group.buckets, hash, live).into_iter().collect(),
        };
        if let Some(group) = self.groups.get_mut(&id) {
            group.packets += 1;
            group.bytes += bytes as u64;
            for &index in &chosen {
                if let Some(bucket) = group.buckets.get_mut(index) {
                    bucket.packets += 1;
                    bucket.bytes += bytes as u64;
                }
            }
        }
        chosen
    }

    /// Whether a bucket is live. A bucket without a watch port and a watch group is live. Any other
    /// bucket is live if its watch port or its watch group is live.
    fn is_live(&self, bucket: &Bucket, port_is_live: &dyn Fn(u32) -> bool, depth: usize) -> bool {
        if bucket.watch_port == port::ANY && bucket.watch_group == ANY_GROUP {
            return true;
        }
        let port = bucket.watch_port != port::ANY && port_is_live(bucket.watch_port);
        let group = || {
            self.groups.get(&bucket.watch_group).is_some_and(|group| {
                depth < MAX_DEPTH
                    && group
                        .buckets
                        .iter()
                        .any(|inner| self.is_live(inner, port_is_live, depth + 1))
            })
        };
        port || group()
    }
}

/// Selects one of the live buckets, in proportion to their weights.
fn pick(buckets: &[Bucket], hash: u64, live: impl Fn(usize) -> bool) -> Option<usize> {
    let candidates: Vec<(usize, u64)> = buckets
        .iter()
        .enumerate()
        .filter(|(index, bucket)| bucket.weight > 0 && live(*index))
        .map(|(index, bucket)| (index, u64::from(bucket.weight)))
        .collect();
    let total: u64 = candidates.iter().map(|(_, weight)| weight).sum();
    let mut point = hash.checked_rem(total)?;
    for (index, weight) in candidates {
        if point < weight {
            return Some(index);
        }
        point -= weight;
    }
    None
}

impl Group {
    /// The groups to which the buckets of this group send packets.
    pub(crate) fn references(&self) -> impl Iterator<Item = u32> + '_ {
        self.buckets.iter().flat_map(Bucket::references)
    }
}

impl Bucket {
    fn references(&self) -> impl Iterator<Item = u32> + '_ {
        self.actions.iter().filter_map(|action| match action {
            Action::Group(id) => Some(*id),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(weight: u16, watch_port: u32, action: Action) -> Bucket {
        Bucket {
            weight,
            watch_port,
            watch_group: ANY_GROUP,
            actions: vec![action],
            packets: 0,
            bytes: 0,
        }
    }

    fn group(kind: GroupKind, buckets: Vec<Bucket>) -> Group {
        Group { kind, buckets, created: 0, packets: 0, bytes: 0 }
    }

    #[test]
    fn each_group_type_selects_the_right_buckets() {
        let buckets = || vec![bucket(1, 1, Action::PopVlan), bucket(3, 2, Action::PopVlan)];
        let mut groups = Groups::default();
        let kinds =
            [GroupKind::All, GroupKind::Select, GroupKind::Indirect, GroupKind::FastFailover];
        for (id, kind) in (0..).zip(kinds) {
            groups.insert(id, group(kind, buckets()));
        }
        let up = |_: u32| true;
        let first_down = |port: u32| port != 1;
        assert_eq!(groups.choose(0, 64, 0, &up), [0, 1]);
        assert_eq!(groups.choose(2, 64, 0, &up), [0]);
        assert_eq!(groups.choose(3, 64, 0, &up), [0]);
        assert_eq!(groups.choose(3, 64, 0, &first_down), [1]);
        assert_eq!(groups.choose(3, 64, 0, &|_| false), [0usize; 0]);
        let picks: Vec<usize> = (0..8).flat_map(|hash| groups.choose(1, 64, hash, &up)).collect();
        assert_eq!(picks, [0, 1, 1, 1, 0, 1, 1, 1]);
        assert_eq!(groups.choose(1, 64, 0, &first_down), [1]);
        let counted = groups.get(1).unwrap();
        assert_eq!((counted.packets, counted.buckets[0].packets), (9, 2));
    }

    #[test]
    fn group_loops_are_detected_and_references_are_counted() {
        let mut groups = Groups::default();
        groups.insert(1, group(GroupKind::All, vec![bucket(1, port::ANY, Action::Group(2))]));
        groups.insert(2, group(GroupKind::All, vec![bucket(1, port::ANY, Action::PopVlan)]));
        assert!(groups.would_loop(2, &[bucket(1, port::ANY, Action::Group(1))]));
        assert!(groups.would_loop(3, &[bucket(1, port::ANY, Action::Group(3))]));
        assert!(!groups.would_loop(3, &[bucket(1, port::ANY, Action::Group(1))]));
        assert_eq!(groups.references_to(2), 1);
        assert!(groups.remove(1) && !groups.remove(1));
        assert_eq!((groups.references_to(2), groups.len()), (0, 1));
    }
}
