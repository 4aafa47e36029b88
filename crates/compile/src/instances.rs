//! The instances of a group on the switch, and the packets of each instance: see [`crate::group`].

use crate::class::{PacketClass, TagState, Vlan};
use crate::network::{Ingress, IngressPort};
use alloc::collections::BTreeMap;

/// Packets for which a group may have an instance of its own. The default is all packets without an instance of their
/// own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Variant {
    /// The ingress port of the packets.
    pub ingress: Option<IngressPort>,
    /// Whether the packets carry a VLAN tag.
    pub tag: TagState,
}

/// The ids that the instances of one group have on the switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instances {
    id: u32,
    variants: BTreeMap<Variant, u32>,
    recirculates: bool,
}

impl Variant {
    /// The variant of packets with this ingress and this tag state.
    pub fn new(ingress: Ingress, tag: TagState) -> Variant {
        let ingress = match ingress {
            Ingress::At(ingress) => Some(ingress),
            // Where the ingress matters, the physical ingress port is known.
            Ingress::Any | Ingress::Port(_) | Ingress::Controller => None,
        };
        Variant { ingress, tag }
    }

    /// The known properties of the packets of this variant.
    pub fn class(self) -> PacketClass {
        let vlan = match self.tag {
            TagState::Untagged => Vlan::Untagged,
            TagState::Tagged => Vlan::Tagged,
        };
        PacketClass::new(self.ingress.map_or(Ingress::Controller, Ingress::At), vlan)
    }
}

impl Instances {
    /// A group with an instance for these variants, and one for all other packets.
    pub fn new(id: u32, variants: BTreeMap<Variant, u32>) -> Instances {
        Instances { id, variants, recirculates: false }
    }

    /// The same instances, with the note whether the group makes a switch recirculate packets: see
    /// [`crate::group::recirculates`].
    pub fn recirculating(self, recirculates: bool) -> Instances {
        Instances { recirculates, ..self }
    }

    /// Whether the group makes a switch recirculate packets.
    pub fn recirculates(&self) -> bool {
        self.recirculates
    }

    /// The id of the instance for all packets without an instance of their own.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The ids of the other instances.
    pub fn variants(&self) -> &BTreeMap<Variant, u32> {
        &self.variants
    }

    /// The id of the instance for packets of this variant.
    pub fn id_for(&self, variant: Variant) -> u32 {
        let tag = if self.depend_on_tag() { variant.tag } else { TagState::Untagged };
        let of = |ingress| self.variants.get(&Variant { ingress, tag }).copied();
        of(variant.ingress).or_else(|| of(None)).unwrap_or(self.id)
    }

    /// All instances, each with the variant of its packets.
    pub fn iter(&self) -> impl Iterator<Item = (Variant, u32)> + '_ {
        let variants = self.variants.iter().map(|(&variant, &id)| (variant, id));
        core::iter::once((Variant::default(), self.id)).chain(variants)
    }

    /// The ids of all instances.
    pub fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        self.iter().map(|(_, id)| id)
    }

    /// Whether the choice of an instance needs a more exact ingress than this one.
    pub fn depend_on_ingress(&self, ingress: Ingress) -> bool {
        let mut ports = self.variants.keys().filter_map(|variant| variant.ingress);
        match ingress {
            Ingress::Any => ports.next().is_some(),
            Ingress::Port(port) => ports.any(|ingress| ingress.port == port),
            Ingress::At(_) | Ingress::Controller => false,
        }
    }

    /// Whether the group has instances by VLAN tag.
    pub fn depend_on_tag(&self) -> bool {
        self.variants.keys().any(|variant| variant.tag != TagState::Untagged)
    }
}
