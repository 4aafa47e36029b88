//! The group table and the meter table of a tenant, with the ids on the switch.

use crate::named::named_by;
use crate::store::Kind;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use compile::class::TagState;
use compile::egress_group::{is_egress_group, output_described};
use compile::network::IngressPort;
use compile::{Instances, Variant};
use hashbrown::HashMap;
use openflow::v13::{GroupDesc, GroupMod, GroupModCommand, MessageType, MeterConfig, PortNo};
use openflow::{List, Version, frame};

/// A tenant's groups and meters.
#[derive(Default)]
pub(crate) struct GroupsAndMeters {
    groups: IdTable,
    meters: IdTable,
    /// Whether some ids on the switch may no longer be needed.
    may_have_unused: bool,
}

impl GroupsAndMeters {
    /// Groups, or meters.
    pub(crate) fn of(&self, kind: Kind) -> &IdTable {
        match kind {
            Kind::Meter => &self.meters,
            _ => &self.groups,
        }
    }

    pub(crate) fn of_mut(&mut self, kind: Kind) -> &mut IdTable {
        match kind {
            Kind::Meter => &mut self.meters,
            _ => &mut self.groups,
        }
    }

    /// The groups.
    #[inline]
    pub(crate) fn groups(&self) -> &IdTable {
        &self.groups
    }

    /// The meters.
    #[inline]
    pub(crate) fn meters(&self) -> &IdTable {
        &self.meters
    }

    /// Whether some ids on the switch may no longer be needed.
    pub(crate) fn may_have_unused(&self) -> bool {
        self.may_have_unused
    }

    /// See [`may_have_unused`](Self::may_have_unused).
    pub(crate) fn set_may_have_unused(&mut self, may_have_unused: bool) {
        self.may_have_unused = may_have_unused;
    }
}

/// The group table or the meter table of a tenant.
#[derive(Default)]
pub(crate) struct IdTable {
    known: HashMap<u32, GroupOrMeter>,
    /// Each id on the switch, with the tenant's number of the group or meter.
    by_physical: BTreeSet<(u32, u32)>,
    /// The numbers of egress groups, by the outputs that they replace.
    egress_groups: BTreeMap<PortNo, u32>,
}

/// In the store: no ingress port.
const NO_PORT: u32 = 0;

/// One group or meter.
#[derive(Clone)]
pub(crate) struct GroupOrMeter {
    /// The ids on the switch; a meter has one.
    pub instances: Instances,
    /// The body of the GROUP_MOD or METER_MOD by which the tenant last described the group or meter.
    pub body: Box<[u8]>,
}

/// The first bytes of a stored group with several instances. No id on the switch has this value.
const WITH_VARIANTS: u32 = u32::MAX - 4;

impl GroupOrMeter {
    /// The group as the tenant has described it.
    pub(crate) fn group(&self) -> Option<GroupMod<'_>> {
        GroupMod::parse(&self.body).ok()
    }

    /// The groups that a group's buckets send to.
    pub(crate) fn named(&self) -> impl Iterator<Item = u32> {
        self.group().into_iter().flat_map(|group| named_by(group.buckets))
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut write = |number: u32| out.extend_from_slice(&number.to_be_bytes());
        let variants = self.instances.variants();
        if !variants.is_empty() {
            write(WITH_VARIANTS);
            write(variants.len() as u32);
            for (variant, &id) in variants {
                write(variant.ingress.map_or(NO_PORT, |ingress| ingress.port));
                write(variant.ingress.map_or(NO_PORT, |ingress| ingress.at));
                write(u32::from(variant.tag == TagState::Tagged));
                write(id);
            }
        }
        write(self.instances.id());
        out.extend_from_slice(&self.body);
        out
    }

    pub(crate) fn from_bytes(mut bytes: &[u8]) -> Option<GroupOrMeter> {
        let mut number = || {
            let (first, rest) = bytes.split_first_chunk::<4>()?;
            bytes = rest;
            Some(u32::from_be_bytes(*first))
        };
        let mut variants = BTreeMap::new();
        let mut id = number()?;
        if id == WITH_VARIANTS {
            for _ in 0..number()? {
                let port = Some(number()?).filter(|port| *port != NO_PORT);
                let at = number()?;
                let ingress = port.map(|port| IngressPort { port, at });
                let tag = match number()? {
                    0 => TagState::Untagged,
                    1 => TagState::Tagged,
                    _ => return None,
                };
                let variant = Variant { ingress, tag };
                variants.insert(Some(variant).filter(|it| *it != Variant::default())?, number()?);
            }
            id = number()?;
        }
        Some(GroupOrMeter { instances: Instances::new(id, variants), body: bytes.into() })
    }
}

impl IdTable {
    /// A group or meter of the tenant.
    pub(crate) fn get(&self, number: u32) -> Option<&GroupOrMeter> {
        self.any(number).filter(|_| !is_egress_group(number))
    }

    /// A group or meter of the tenant, or an egress group.
    pub(crate) fn any(&self, number: u32) -> Option<&GroupOrMeter> {
        self.known.get(&number)
    }

    /// The egress group for an output.
    pub(crate) fn egress_group(&self, output: PortNo) -> Option<u32> {
        self.egress_groups.get(&output).copied()
    }

    pub(crate) fn insert(&mut self, number: u32, numbered: GroupOrMeter) -> Option<GroupOrMeter> {
        if is_egress_group(number)
            && let Some(output) = output_described(&numbered.body)
        {
            self.egress_groups.insert(output, number);
        }
        let before = self.take(number);
        self.by_physical.extend(numbered.instances.ids().map(|physical| (physical, number)));
        self.known.insert(number, numbered);
        before
    }

    pub(crate) fn remove(&mut self, number: u32) -> Option<GroupOrMeter> {
        self.egress_groups.retain(|_, group| *group != number);
        self.take(number)
    }

    fn take(&mut self, number: u32) -> Option<GroupOrMeter> {
        let taken = self.known.remove(&number)?;
        for physical in taken.instances.ids() {
            self.by_physical.remove(&(physical, number));
        }
        Some(taken)
    }

    /// The number of the tenant's groups or meters.
    pub(crate) fn len(&self) -> usize {
        self.own().count()
    }

    /// The number of ids on the switch, of all groups or meters.
    pub(crate) fn instances(&self) -> usize {
        self.by_physical.len()
    }

    fn own(&self) -> impl Iterator<Item = u32> {
        self.known.keys().copied().filter(|number| !is_egress_group(*number))
    }

    /// The numbers of egress groups.
    pub(crate) fn egress_groups(&self) -> Vec<u32> {
        self.known.keys().copied().filter(|number| is_egress_group(*number)).collect()
    }

    /// The egress groups, each with the output that it replaces.
    pub(crate) fn egress_groups_by_output(&self) -> Vec<(PortNo, u32)> {
        self.egress_groups.iter().map(|(output, group)| (*output, *group)).collect()
    }

    /// The tenant's number for an id on the switch.
    pub(crate) fn of_physical(&self, physical: u32) -> Option<u32> {
        let own = self.by_physical.range((physical, 0)..=(physical, u32::MAX));
        own.map(|(_, number)| *number).next()
    }

    /// All groups, with egress groups, or all meters.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &GroupOrMeter)> {
        self.known.iter().map(|(number, known)| (*number, known))
    }

    /// The tenant's numbers.
    pub(crate) fn all(&self) -> Vec<u32> {
        let mut all: Vec<u32> = self.own().collect();
        all.sort_unstable();
        all
    }
}

/// A GROUP_MOD or METER_MOD. Both messages have the command, type or flags, the id, and buckets or bands. `content` has
/// all but the command and the id: see [`content_of`](crate::south::installed::content_of).
pub(crate) fn number_mod(
    kind: Kind,
    number: u32,
    command: GroupModCommand,
    content: &[u8],
) -> Vec<u8> {
    let type_ = if kind == Kind::Meter { MessageType::METER_MOD } else { MessageType::GROUP_MOD };
    let (terms, list) = content.split_at_checked(2).unwrap_or_default();
    let mut message = Vec::new();
    // The content came in a message, so there is room.
    let _ = frame::write(Version::V1_3, type_.0, 0, &mut message, |out| {
        for part in [&command.0.to_be_bytes(), terms, &number.to_be_bytes(), list] {
            out.extend_from_slice(part);
        }
    });
    message
}

/// The message that deletes a group or meter on the switch.
pub(crate) fn deletion(kind: Kind, physical: u32) -> Vec<u8> {
    number_mod(kind, physical, GroupModCommand::DELETE, &[0, 0])
}

/// Groups in a switch's answer, and their contents: see [`content_of`](crate::south::installed::content_of).
pub(crate) fn groups_held(entries: &[u8]) -> impl Iterator<Item = (u32, Vec<u8>)> {
    let groups = List::<GroupDesc<'_>>::parse(entries).unwrap_or_default().into_iter();
    groups.map(|it| (it.group_id, [&[it.type_.0, 0], it.buckets.as_bytes()].concat()))
}

/// Meters in a switch's answer, and their contents.
pub(crate) fn meters_held(entries: &[u8]) -> impl Iterator<Item = (u32, Vec<u8>)> {
    let meters = List::<MeterConfig<'_>>::parse(entries).unwrap_or_default().into_iter();
    meters.map(|it| (it.meter_id, [&it.flags.0.to_be_bytes(), it.bands.as_bytes()].concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ingress port and the tag state of a variant. The number of the port on the switch is 5.
    type Sort = (Option<u32>, TagState);

    fn variant((port, tag): Sort) -> Variant {
        Variant { ingress: port.map(|port| IngressPort { port, at: 5 }), tag }
    }

    fn group(sorts: &[Sort]) -> GroupOrMeter {
        let variants = sorts.iter().map(|sort| variant(*sort)).zip(8..).collect();
        GroupOrMeter { instances: Instances::new(7, variants), body: [1, 2, 3].into() }
    }

    #[test]
    fn a_stored_group_is_read_back_with_its_instances() {
        use TagState::{Tagged, Untagged};
        for (sorts, marker) in [
            (&[][..], 7),
            (&[(Some(10), Untagged), (Some(0xffff_fffe), Untagged)], WITH_VARIANTS),
            (&[(None, Tagged), (Some(10), Tagged)], WITH_VARIANTS),
            (&[(None, Tagged)], WITH_VARIANTS),
        ] {
            let (before, bytes) = (group(sorts), group(sorts).to_bytes());
            assert_eq!(bytes[..4], u32::to_be_bytes(marker));
            let after = GroupOrMeter::from_bytes(&bytes).unwrap();
            assert_eq!((&after.instances, &after.body), (&before.instances, &before.body));
            let head = bytes.len() - before.body.len();
            assert!((0..head).all(|cut| GroupOrMeter::from_bytes(&bytes[..cut]).is_none()));
        }
    }

    #[test]
    fn physical_ids_are_found_after_groups_are_added_changed_and_removed() {
        use TagState::{Tagged, Untagged};
        let mut numbers = IdTable::default();
        let found = |numbers: &IdTable| [7, 8, 9].map(|physical| numbers.of_physical(physical));
        numbers.insert(1, group(&[(None, Tagged), (Some(10), Untagged)]));
        assert_eq!(found(&numbers), [Some(1), Some(1), Some(1)]);
        numbers.insert(1, group(&[(None, Tagged)]));
        assert_eq!(found(&numbers), [Some(1), Some(1), None]);
        numbers.insert(
            2,
            GroupOrMeter { instances: Instances::new(9, BTreeMap::new()), ..group(&[]) },
        );
        assert_eq!(found(&numbers), [Some(1), Some(1), Some(2)]);
        assert!(numbers.remove(1).is_some() && numbers.remove(1).is_none());
        assert_eq!(found(&numbers), [None, None, Some(2)]);
    }

    #[test]
    fn packets_get_the_group_instance_for_their_ingress_port_and_tag() {
        use TagState::{Tagged, Untagged};
        let by_port = group(&[(Some(10), Untagged)]);
        let by_both = group(&[(None, Tagged), (Some(10), Untagged), (Some(10), Tagged)]);
        let at = |group: &GroupOrMeter, port, is_tagged| {
            group.instances.id_for(variant((port, is_tagged)))
        };
        assert_eq!(
            at(&by_port, Some(10), Tagged),
            by_port.instances.variants()[&variant((Some(10), Untagged))]
        );
        assert_eq!(at(&by_port, Some(1), Tagged), 7);
        assert_eq!(at(&by_both, Some(1), Untagged), 7);
        for (received, form) in [(Some(1), None), (None, None), (Some(10), Some(10))] {
            let wanted = by_both.instances.variants()[&variant((form, Tagged))];
            assert_eq!(at(&by_both, received, Tagged), wanted, "{received:?}");
        }
    }
}
