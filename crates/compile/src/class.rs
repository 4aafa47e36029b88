//! Facts about the packets of a list of actions. Each action of the list can change these facts.

use crate::network::{Encapsulation, Ingress, Stop, Written};
use crate::refusal::Reason;
use crate::wire::{Action, VlanChange};
use fabric::Tagging;
use flowspace::field::VLAN_PRESENT;
use flowspace::{Field, Key, Match};
use openflow::error::v13 as code;

/// Packets of a network that have the same known properties.
#[derive(Clone, Debug)]
pub struct PacketClass {
    /// The ingress of the packets.
    pub ingress: Ingress,
    /// The outermost VLAN tag of the packets, without the tags that the list has pushed.
    received: Vlan,
    /// How many tags the list has pushed.
    pushed: usize,
    /// The label that the packets carry in place of a VLAN tag of their own, where labels are not stacked.
    label: Option<u16>,
    /// The destination address, if all packets have the same.
    pub destination: Option<u128>,
    /// The Ethernet type, if all packets have the same. No action changes the Ethernet type as far as Weir is
    /// concerned.
    pub dl_type: Option<u128>,
}

/// The known state of the packets' VLAN tag, as the tenant sees the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vlan {
    /// Some packets may have a tag.
    Unknown,
    /// All packets have a tag.
    Tagged,
    /// No packet has a tag.
    Untagged,
}

/// Whether packets carry a VLAN tag: some groups have one instance for each of these two states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TagState {
    /// No tag.
    #[default]
    Untagged,
    /// One or more.
    Tagged,
}

impl Vlan {
    /// The state from the VLAN field of a packet or of an exact match.
    pub fn of_field(value: u128) -> Vlan {
        if value & VLAN_PRESENT != 0 { Vlan::Tagged } else { Vlan::Untagged }
    }

    /// The state of the packets of a match.
    pub fn of_match(match_: &Match) -> Vlan {
        match (match_.exact_value(Field::VlanVid), match_.get(Field::VlanVid)) {
            (Some(vid), _) => Vlan::of_field(vid),
            (None, (value, mask)) if value & mask & VLAN_PRESENT != 0 => Vlan::Tagged,
            _ => Vlan::Unknown,
        }
    }
}

impl PacketClass {
    /// Packets with this ingress and this tag state.
    #[inline]
    pub fn new(ingress: Ingress, vlan: Vlan) -> PacketClass {
        let (pushed, label, destination, dl_type) = (0, None, None, None);
        PacketClass { ingress, received: vlan, pushed, label, destination, dl_type }
    }

    /// The packets of a match with this ingress.
    pub fn of_match(ingress: Ingress, match_: &Match) -> PacketClass {
        PacketClass {
            destination: match_.exact_value(Field::DlDst),
            dl_type: match_.exact_value(Field::DlType),
            ..PacketClass::new(ingress, Vlan::of_match(match_))
        }
    }

    /// One packet.
    #[inline]
    pub fn of_packet(ingress: Ingress, key: &Key) -> PacketClass {
        PacketClass {
            destination: Some(key.get(Field::DlDst)),
            dl_type: Some(key.get(Field::DlType)),
            ..PacketClass::new(ingress, Vlan::of_field(key.get(Field::VlanVid)))
        }
    }

    /// The same packets, with this label in place of a VLAN tag.
    pub fn labelled(self, label: u16) -> PacketClass {
        PacketClass { received: Vlan::Untagged, label: Some(label), ..self }
    }

    /// The part of the packets without a VLAN tag of their own.
    pub fn untagged(self) -> PacketClass {
        PacketClass { received: Vlan::Untagged, ..self }
    }

    /// The outermost VLAN tag. One table cannot match a tag below the outermost tag. So after a list has removed the
    /// outermost tag, packets count as untagged.
    #[inline]
    pub fn vlan(&self) -> Vlan {
        if self.pushed > 0 { Vlan::Tagged } else { self.received }
    }

    /// The label that the packets carry in place of a VLAN tag.
    pub fn label(&self) -> Option<u16> {
        self.label
    }

    /// Notes that the label is removed or exchanged.
    pub fn set_label(&mut self, label: Option<u16>) {
        self.label = label;
    }

    /// Notes how an action changes the packets.
    #[inline]
    pub fn follow(&mut self, action: &impl Action) {
        if let Some(destination) = action.destination() {
            self.destination = Some(destination);
        }
        match action.vlan_change() {
            Some(VlanChange::SetsId) => (self.received, self.label) = (Vlan::Tagged, None),
            // Untagged packets get a tag of VLAN 0.
            Some(VlanChange::SetsPriority) if self.received == Vlan::Untagged => {
                self.received = Vlan::Tagged;
            }
            Some(VlanChange::Push) => self.pushed += 1,
            Some(VlanChange::Pop) => match self.pushed.checked_sub(1) {
                Some(pushed) => self.pushed = pushed,
                None => (self.received, self.label) = (Vlan::Untagged, None),
            },
            Some(VlanChange::SetsPriority) | None => {}
        }
    }

    /// The tag state that selects the instance of a group for these packets.
    pub fn tag_state(&self) -> Written<TagState> {
        match self.vlan() {
            Vlan::Untagged => Ok(TagState::Untagged),
            Vlan::Tagged => Ok(TagState::Tagged),
            Vlan::Unknown => Err(Stop::ByVlan),
        }
    }

    /// Whether the packets can get this encapsulation. Where a frame has room for one tag, on this switch or at the
    /// remote end, frames with a tag of their own cannot get a label.
    #[inline]
    pub fn check(&self, encapsulation: Encapsulation, stacks_labels: bool) -> Written {
        let Encapsulation::Label { remote, .. } = encapsulation else { return Ok(()) };
        match self.vlan() {
            _ if stacks_labels && remote != Tagging::Single => Ok(()),
            Vlan::Untagged => Ok(()),
            Vlan::Unknown => Err(Stop::ByVlan),
            Vlan::Tagged => Err(Reason::TagOnLink.with(code::BAD_ACTION_BAD_ARGUMENT).into()),
        }
    }
}
