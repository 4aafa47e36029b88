//! What is known of the packets to which a list of actions is applied, as the list goes on.

use crate::network::{Encapsulation, Ingress, Stop, Written};
use crate::refusal::Reason;
use crate::wire::{Action, VlanChange};
use fabric::Tagging;
use flowspace::field::VLAN_PRESENT;
use flowspace::{Field, Key, Match};
use openflow::error::v13 as code;

/// Packets of a network of which the same is known.
#[derive(Clone, Debug)]
pub struct PacketClass {
    /// How they came.
    pub ingress: Ingress,
    /// Their outermost VLAN tag, but for tags that the list has pushed.
    came: Vlan,
    /// How many tags the list has pushed.
    pushed: usize,
    /// The label that they carry in the place of a VLAN tag of their own, where labels are not stacked.
    label: Option<u16>,
    /// Their destination address, where it is the same for all.
    pub destination: Option<u128>,
    /// Their Ethernet type, where it is the same for all. No action changes it for the hypervisor's purposes.
    pub dl_type: Option<u128>,
}

/// What is known of the VLAN tag of packets, as their tenant sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vlan {
    /// Some may have one.
    Unknown,
    /// All have one.
    Tagged,
    /// None has one.
    Untagged,
}

/// Whether packets carry a VLAN tag, for groups that have instances by that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TagState {
    /// No tag.
    #[default]
    Untagged,
    /// One or more.
    Tagged,
}

impl Vlan {
    /// By a field of a packet or of an exact match.
    pub fn of_field(value: u128) -> Vlan {
        if value & VLAN_PRESENT != 0 { Vlan::Tagged } else { Vlan::Untagged }
    }

    /// Of the packets of a match.
    pub fn of_match(match_: &Match) -> Vlan {
        match (match_.exact_value(Field::VlanVid), match_.get(Field::VlanVid)) {
            (Some(vid), _) => Vlan::of_field(vid),
            (None, (value, mask)) if value & mask & VLAN_PRESENT != 0 => Vlan::Tagged,
            _ => Vlan::Unknown,
        }
    }
}

impl PacketClass {
    /// Packets that came so, with such a tag.
    #[inline]
    pub fn new(ingress: Ingress, vlan: Vlan) -> PacketClass {
        let (pushed, label, destination, dl_type) = (0, None, None, None);
        PacketClass { ingress, came: vlan, pushed, label, destination, dl_type }
    }

    /// The packets of a match that came so.
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

    /// The same packets, bearing this label in the place of a VLAN tag.
    pub fn labelled(self, label: u16) -> PacketClass {
        PacketClass { came: Vlan::Untagged, label: Some(label), ..self }
    }

    /// Those of the packets that have no VLAN tag of their own.
    pub fn untagged(self) -> PacketClass {
        PacketClass { came: Vlan::Untagged, ..self }
    }

    /// Their outermost VLAN tag. A tag below one that they came with cannot be matched in the same table, so once a list has
    /// taken off the first, packets count as untagged.
    #[inline]
    pub fn vlan(&self) -> Vlan {
        if self.pushed > 0 { Vlan::Tagged } else { self.came }
    }

    /// The label that they carry in the place of a VLAN tag.
    pub fn label(&self) -> Option<u16> {
        self.label
    }

    /// Their label is taken off, or exchanged.
    pub fn set_label(&mut self, label: Option<u16>) {
        self.label = label;
    }

    /// Notes what an action makes of them.
    #[inline]
    pub fn follow(&mut self, action: &impl Action) {
        if let Some(destination) = action.destination() {
            self.destination = Some(destination);
        }
        match action.vlan_change() {
            Some(VlanChange::SetsId) => (self.came, self.label) = (Vlan::Tagged, None),
            // Without a tag they get one, of VLAN 0.
            Some(VlanChange::SetsPriority) if self.came == Vlan::Untagged => {
                self.came = Vlan::Tagged;
            }
            Some(VlanChange::Push) => self.pushed += 1,
            Some(VlanChange::Pop) => match self.pushed.checked_sub(1) {
                Some(pushed) => self.pushed = pushed,
                None => (self.came, self.label) = (Vlan::Untagged, None),
            },
            Some(VlanChange::SetsPriority) | None => {}
        }
    }

    /// Which instance of a group that has them by tag is for these packets.
    pub fn tag_state(&self) -> Written<TagState> {
        match self.vlan() {
            Vlan::Untagged => Ok(TagState::Untagged),
            Vlan::Tagged => Ok(TagState::Tagged),
            Vlan::Unknown => Err(Stop::ByVlan),
        }
    }

    /// Whether they can get such an encapsulation: where a frame carries one tag, here or at the remote end, frames with a tag of
    /// their own cannot get a label.
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
