//! How packets leave by a virtual port: with a link's tag in front of the tenant's own.
//!
//! Between two switches of 1.3 the tenant's tags travel behind the link's, and nobody asks for them. Where the link's other end
//! is on 1.0, a frame bears one tag there, the link's: only frames without a tag of the tenant's pass.
//!
//! ```text
//!   packet of the tenant's    into a link to 1.3           into a link to 1.0
//!   without a tag             tag of the link, OUTPUT      tag of the link, OUTPUT
//!   with a tag                tag of the link, OUTPUT      –
//! ```
//! So an entry that sends into such a link and does not say of which VLAN its packets are is written for untagged ones. What is
//! behind the tag that a packet came with nobody can ask for in the same table: once a list has taken that off, the packet counts as
//! untagged.

use super::{Packets, set};
use crate::network::{Unsaid, WayOut, Wire, is_for_many, number_of};
use crate::v13::actions::order_in_set;
use crate::v13::looks::{Bears, Look};
use alloc::vec::Vec;
use fabric::Tagging;
use flowspace::field::VLAN_PRESENT;
use flowspace::{Field, Match};
use openflow::List;
use openflow::error::v13 as code;
use openflow::v13::{Action, OxmField, PortNo};

/// TPID of the tag (IEEE 802.1Q).
const VLAN: u16 = 0x8100;

/// What is known of the outermost VLAN tag of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::v13) enum Vlan {
    Unknown,
    /// There is one.
    Tagged,
    Untagged,
}

/// What is known of the VLAN tags of packets, as a list of actions goes on.
#[derive(Clone, Debug)]
pub(in crate::v13) struct Tags {
    /// The tag that they came with.
    came: Vlan,
    /// How many have been pushed.
    pushed: usize,
}

/// What is done to a packet so that it bears what it has to on a wire, and undone.
#[derive(Clone, Copy, Debug)]
pub(in crate::v13) enum Marking {
    Nothing,
    /// This tag is put in front.
    Put(u16),
}

impl Tags {
    pub(in crate::v13) fn new(came: Vlan) -> Tags {
        Tags { came, pushed: 0 }
    }

    /// Of the packets that a match means.
    pub(in crate::v13) fn of_match(match_: &Match) -> Tags {
        Tags::new(match (match_.exact_value(Field::VlanVid), match_.get(Field::VlanVid)) {
            (Some(vid), _) => Vlan::of_field(vid),
            (None, (value, mask)) if value & mask & VLAN_PRESENT != 0 => Vlan::Tagged,
            _ => Vlan::Unknown,
        })
    }

    /// Of packets for which a group has a form of its own.
    pub(super) fn of_look(look: Look) -> Tags {
        Tags::new(match look.bears {
            Bears::NoTag => Vlan::Untagged,
            Bears::Tag => Vlan::Tagged,
        })
    }

    pub(super) fn outermost(&self) -> Vlan {
        if self.pushed > 0 { Vlan::Tagged } else { self.came }
    }

    /// Notes what an action makes of them.
    pub(super) fn follow(&mut self, action: &Action<'_>) {
        match action {
            Action::PushVlan(_) => self.pushed += 1,
            Action::PopVlan => match self.pushed.checked_sub(1) {
                Some(pushed) => self.pushed = pushed,
                None => self.came = Vlan::Untagged,
            },
            // SET_FIELD of a VLAN id adds no tag: whatever a switch makes of it without one, it gets the link's in front.
            _ => {}
        }
    }

    /// What a bucket makes of them, which is a set: whatever the order in which it is written.
    pub(super) fn in_bucket(mut self, written: List<'_, Action<'_>>) -> Tags {
        let mut changes: Vec<Action<'_>> = written.iter().collect();
        changes.sort_by_key(order_in_set);
        changes.iter().for_each(|action| self.follow(action));
        self
    }

    /// Which form of a group is for them.
    pub(super) fn bears(&self) -> Result<Bears, Unsaid> {
        match self.outermost() {
            Vlan::Untagged => Ok(Bears::NoTag),
            Vlan::Unknown => Err(Unsaid::NeedsVlan),
            Vlan::Tagged => Ok(Bears::Tag),
        }
    }

    /// How packets are marked on a wire. The error says that they cannot pass.
    fn marking(&self, wire: Wire) -> Result<Marking, Unsaid> {
        match (wire, self.outermost()) {
            (Wire::Tagged { far: Tagging::Single, .. }, Vlan::Unknown) => Err(Unsaid::NeedsVlan),
            (Wire::Tagged { far: Tagging::Single, .. }, Vlan::Tagged) => {
                Err(code::BAD_ACTION_BAD_ARGUMENT.into())
            }
            _ => Ok(Marking::stacked(wire)),
        }
    }
}

impl Vlan {
    /// By a field of a packet or a match.
    pub(in crate::v13) fn of_field(vid: u128) -> Vlan {
        match vid & VLAN_PRESENT {
            0 => Vlan::Untagged,
            _ => Vlan::Tagged,
        }
    }
}

impl Marking {
    /// Behind whose tag all others travel.
    pub(in crate::v13) fn stacked(wire: Wire) -> Marking {
        match wire {
            Wire::Plain => Marking::Nothing,
            Wire::Tagged { tag, .. } => Marking::Put(tag.get()),
        }
    }

    /// Appends what sends packets there that are marked so, and are as before afterwards.
    pub(in crate::v13) fn send_to(self, to: PortNo, out: &mut Vec<u8>) {
        let output = Action::Output { port: to, max_len: 0 };
        match self {
            Marking::Nothing => output.write(out),
            Marking::Put(tag) => {
                push(tag, out);
                output.write(out);
                Action::PopVlan.write(out);
            }
        }
    }
}

/// Appends what sends a packet by a way out, and leaves it as it was for what comes after. What cannot pass stays, if
/// `may_stay`.
pub(super) fn leave(
    packets: &Packets,
    way: WayOut<'_>,
    to: PortNo,
    may_stay: bool,
    out: &mut Vec<u8>,
) -> Result<(), Unsaid> {
    let marking = match packets.tags.marking(way.wire) {
        Ok(marking) => marking,
        Err(Unsaid::Code(_)) if may_stay => return Ok(()),
        Err(unsaid) => return Err(unsaid),
    };
    if way.hosts.is_empty() {
        marking.send_to(to, out);
        return Ok(());
    }
    match packets.destination {
        None => return Err(code::BAD_ACTION_BAD_OUT_PORT.into()),
        // What is for everybody goes to each of the tenant's own.
        Some(address) if is_for_many(address) => {
            for host in way.hosts {
                set(OxmField::ETH_DST, number_of(*host), out);
                marking.send_to(to, out);
            }
            set(OxmField::ETH_DST, address, out);
        }
        Some(address) => {
            if way.hosts.iter().any(|host| number_of(*host) == address) {
                marking.send_to(to, out);
            }
        }
    }
    Ok(())
}

/// Appends the marking of a packet.
pub(super) fn push(tag: u16, out: &mut Vec<u8>) {
    Action::PushVlan(VLAN).write(out);
    set_vlan(tag, out);
}

/// Appends a SET_FIELD of the VLAN id of a tag that is there.
pub(in crate::v13) fn set_vlan(vlan: u16, out: &mut Vec<u8>) {
    set(OxmField::VLAN_VID, u128::from(vlan) | VLAN_PRESENT, out);
}
