//! Actions of both versions in bytes, read and written. Only this module of the crate knows the bytes of an action.
//!
//! Ports are numbered as in 1.3 everywhere: see [`flowspace::port_from_v10`].

use crate::refusal::{Reason, Refused};
use alloc::vec::Vec;
use flowspace::field::{VLAN_PRESENT, ethertype};
use flowspace::frame::is_vlan;
use flowspace::{Field, Match, port_from_v10, port_to_v10};
use openflow::error::v13 as code;
use openflow::v13::{Oxm, OxmField, PortNo};
use openflow::{Decode, Encode, ErrorCode, List, Version, v10, v13};

/// The version of OpenFlow that the switch and its tenants' controllers speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// OpenFlow 1.0.
    V10,
    /// OpenFlow 1.3.
    V13,
}

/// A list of actions of either version.
#[derive(Clone, Copy, Debug)]
pub enum Actions<'a> {
    /// OpenFlow 1.0.
    V10(List<'a, v10::Action<'a>>),
    /// OpenFlow 1.3.
    V13(List<'a, v13::Action<'a>>),
}

/// The questions of the compiler about an action of either version. The compiler writes actions that it does not change
/// byte by byte.
pub trait Action: Encode + Copy {
    /// Whether and how the action sends a packet out.
    fn verb(&self) -> Verb;

    /// Whether the action may change headers that a flowspace can match.
    fn changes_headers(&self) -> bool;

    /// The packets of a set after the action, or a superset of these packets.
    fn image(&self, packets: &Match) -> Match;

    /// The change of the outermost VLAN tag.
    fn vlan_change(&self) -> Option<VlanChange>;

    /// The destination address that the action writes.
    fn destination(&self) -> Option<u128>;

    /// The source address that the action writes.
    fn source(&self) -> Option<u128>;

    /// Whether only the switch knows the effect of the action on a packet.
    fn is_experimenter(&self) -> bool;

    /// An error if a tenant may not use the action with these arguments on the tenant's own packets. Other code checks
    /// the ports by which packets may leave. The errors have the same numbers in both versions.
    fn check(&self, in_network: bool, experimenters: &[u32], queues: &[u32])
    -> Result<(), Refused>;
}

/// The kind of an action: whether and how the action sends a packet out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// The action sends the packet by a port.
    Output {
        /// The port.
        port: PortNo,
        /// The number of bytes for the controller.
        max_len: u16,
    },
    /// The action sends the packet by a queue of a port (1.0).
    Enqueue {
        /// The port.
        port: PortNo,
        /// The queue.
        queue: u32,
    },
    /// The action sends the packet to a group (1.3).
    Group(u32),
    /// The action only changes the packet, or how later actions send the packet.
    Stay,
}

/// The change of the outermost VLAN tag by an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VlanChange {
    /// The packet then has a tag with another id (1.0).
    SetsId,
    /// The packet then has a tag with another priority (1.0).
    SetsPriority,
    /// The packet then has one more tag (1.3).
    Push,
    /// The packet then has one tag less, if it had a tag.
    Pop,
}

/// TPID of a VLAN tag (IEEE 802.1Q).
const VLAN: u16 = 0x8100;

impl Wire {
    /// The version, if the compiler supports it.
    #[inline]
    pub fn of(version: Version) -> Wire {
        match version {
            Version::V1_0 => Wire::V10,
            _ => Wire::V13,
        }
    }

    /// A tenant's list of actions.
    #[inline]
    pub fn actions(self, bytes: &[u8]) -> Result<Actions<'_>, ErrorCode> {
        match self {
            Wire::V10 => self.list(bytes).map(Actions::V10),
            Wire::V13 => self.list(bytes).map(Actions::V13),
        }
    }

    /// A tenant's list, or a list that the compiler has written.
    #[inline]
    pub fn list<'a, T: Decode<'a>>(self, bytes: &'a [u8]) -> Result<List<'a, T>, ErrorCode> {
        List::parse(bytes).map_err(|error| match self {
            Wire::V10 => error.openflow_error(Version::V1_0),
            Wire::V13 => error.openflow_error(Version::V1_3),
        })
    }

    /// Appends an OUTPUT. The error is for a port that 1.0 cannot name.
    #[inline]
    pub fn output(self, port: PortNo, max_len: u16, out: &mut Vec<u8>) -> Result<(), ErrorCode> {
        match self {
            Wire::V10 => {
                let port = port_to_v10(port.0).ok_or(code::BAD_ACTION_BAD_OUT_PORT)?;
                v10::Action::Output { port: v10::PortNo(port), max_len }.write(out);
            }
            Wire::V13 => v13::Action::Output { port, max_len }.write(out),
        }
        Ok(())
    }

    /// Appends an action that writes the destination address.
    pub fn set_destination(self, address: u128, out: &mut Vec<u8>) {
        match self {
            Wire::V10 => {
                let [_, _, octets @ ..] = (address as u64).to_be_bytes();
                v10::Action::SetDlDst(octets).write(out);
            }
            Wire::V13 => set_field(OxmField::ETH_DST, address, out),
        }
    }

    /// Appends an action that writes the VLAN id; on 1.3 the packet must have a tag.
    #[inline]
    pub fn set_vlan(self, vid: u16, out: &mut Vec<u8>) {
        match self {
            Wire::V10 => v10::Action::SetVlanVid(vid).write(out),
            Wire::V13 => set_field(OxmField::VLAN_VID, u128::from(vid) | VLAN_PRESENT, out),
        }
    }

    /// Appends an action that removes the outermost VLAN tag.
    #[inline]
    pub fn pop_vlan(self, out: &mut Vec<u8>) {
        match self {
            Wire::V10 => v10::Action::StripVlan.write(out),
            Wire::V13 => v13::Action::PopVlan.write(out),
        }
    }

    /// Appends the actions that put a label in front of a packet's own VLAN tag (1.3).
    pub fn push_label(vid: u16, out: &mut Vec<u8>) {
        v13::Action::PushVlan(VLAN).write(out);
        Wire::V13.set_vlan(vid, out);
    }
}

impl<'a> Actions<'a> {
    /// The bytes of the list.
    pub fn as_bytes(self) -> &'a [u8] {
        match self {
            Actions::V10(list) => list.as_bytes(),
            Actions::V13(list) => list.as_bytes(),
        }
    }
}

impl Action for v10::Action<'_> {
    #[inline]
    fn verb(&self) -> Verb {
        match *self {
            v10::Action::Output { port, max_len } => {
                Verb::Output { port: PortNo(port_from_v10(port.0)), max_len }
            }
            v10::Action::Enqueue { port, queue_id: queue } => {
                Verb::Enqueue { port: PortNo(port_from_v10(port.0)), queue }
            }
            _ => Verb::Stay,
        }
    }

    #[inline]
    fn changes_headers(&self) -> bool {
        !matches!(
            self,
            v10::Action::Output { .. }
                | v10::Action::Enqueue { .. }
                | v10::Action::Vendor { .. }
                | v10::Action::Unknown { .. }
        )
    }

    fn image(&self, packets: &Match) -> Match {
        packets.image_v10(self)
    }

    #[inline]
    fn vlan_change(&self) -> Option<VlanChange> {
        match self {
            v10::Action::SetVlanVid(_) => Some(VlanChange::SetsId),
            v10::Action::SetVlanPcp(_) => Some(VlanChange::SetsPriority),
            v10::Action::StripVlan => Some(VlanChange::Pop),
            _ => None,
        }
    }

    #[inline]
    fn destination(&self) -> Option<u128> {
        match self {
            v10::Action::SetDlDst(octets) => Some(number(octets)),
            _ => None,
        }
    }

    #[inline]
    fn source(&self) -> Option<u128> {
        match self {
            v10::Action::SetDlSrc(octets) => Some(number(octets)),
            _ => None,
        }
    }

    #[inline]
    fn is_experimenter(&self) -> bool {
        matches!(self, v10::Action::Vendor { .. })
    }

    #[inline]
    fn check(
        &self,
        _in_network: bool,
        experimenters: &[u32],
        _queues: &[u32],
    ) -> Result<(), Refused> {
        use v10::Action;
        match *self {
            Action::Vendor { vendor, .. } if !experimenters.contains(&vendor) => {
                Err(code::BAD_ACTION_BAD_EXPERIMENTER.into())
            }
            Action::Unknown { .. } => Err(code::BAD_ACTION_BAD_TYPE.into()),
            Action::SetVlanVid(vid) if vid > 0xfff => Err(code::BAD_ACTION_BAD_ARGUMENT.into()),
            Action::SetVlanPcp(pcp) if pcp > 7 => Err(code::BAD_ACTION_BAD_ARGUMENT.into()),
            Action::SetNwTos(tos) if tos & 3 != 0 => Err(code::BAD_ACTION_BAD_ARGUMENT.into()),
            _ => Ok(()),
        }
    }
}

impl Action for v13::Action<'_> {
    #[inline]
    fn verb(&self) -> Verb {
        match *self {
            v13::Action::Output { port, max_len } => Verb::Output { port, max_len },
            v13::Action::Group(group) => Verb::Group(group),
            _ => Verb::Stay,
        }
    }

    #[inline]
    fn changes_headers(&self) -> bool {
        matches!(
            self,
            v13::Action::SetField(_)
                | v13::Action::PushVlan(_)
                | v13::Action::PopVlan
                | v13::Action::PushMpls(_)
                | v13::Action::PopMpls(_)
                | v13::Action::PushPbb(_)
                | v13::Action::PopPbb
        )
    }

    fn image(&self, packets: &Match) -> Match {
        packets.image_v13(self)
    }

    /// A SET_FIELD adds no tag. Switches treat a SET_FIELD on an untagged packet differently, but in each case the
    /// packet gets a link's label in front.
    #[inline]
    fn vlan_change(&self) -> Option<VlanChange> {
        match self {
            v13::Action::PushVlan(_) => Some(VlanChange::Push),
            v13::Action::PopVlan => Some(VlanChange::Pop),
            _ => None,
        }
    }

    #[inline]
    fn destination(&self) -> Option<u128> {
        written(self, OxmField::ETH_DST)
    }

    #[inline]
    fn source(&self) -> Option<u128> {
        written(self, OxmField::ETH_SRC)
    }

    #[inline]
    fn is_experimenter(&self) -> bool {
        matches!(self, v13::Action::Experimenter { .. })
    }

    #[inline]
    fn check(
        &self,
        in_network: bool,
        experimenters: &[u32],
        queues: &[u32],
    ) -> Result<(), Refused> {
        use v13::Action;
        let not_pushed =
            |type_: u16| Err(Reason::PushType.of(u32::from(type_), code::BAD_ACTION_BAD_ARGUMENT));
        match *self {
            Action::SetQueue(queue) if !queues.contains(&queue) => {
                Err(code::BAD_ACTION_BAD_QUEUE.into())
            }
            Action::Experimenter { experimenter, .. } if !experimenters.contains(&experimenter) => {
                Err(code::BAD_ACTION_BAD_EXPERIMENTER.into())
            }
            Action::Unknown { .. } => Err(code::BAD_ACTION_BAD_TYPE.into()),
            // With other Ethernet types no switch would recognize the tag or shim.
            Action::PushVlan(type_) if !is_vlan(type_) => not_pushed(type_),
            Action::PushMpls(type_)
                if !matches!(type_, ethertype::MPLS | ethertype::MPLS_MULTICAST) =>
            {
                not_pushed(type_)
            }
            Action::PushPbb(type_) if type_ != ethertype::PBB => not_pushed(type_),
            // The addresses and tags behind the shim would not identify the tenant and the destination of a network's
            // packets.
            Action::PopMpls(type_) if in_network && is_vlan(type_) => {
                Err(Reason::VlanUnderMpls.with(code::BAD_ACTION_BAD_ARGUMENT))
            }
            Action::PushPbb(_) | Action::PopPbb if in_network => {
                Err(Reason::PbbInNetwork.with(code::BAD_ACTION_BAD_TYPE))
            }
            // A tenant may not set the ingress and the owner of a packet.
            Action::SetField(oxm)
                if matches!(
                    oxm.basic(),
                    None | Some(OxmField::IN_PORT | OxmField::IN_PHY_PORT | OxmField::METADATA)
                ) =>
            {
                Err(code::BAD_ACTION_BAD_SET_TYPE.into())
            }
            Action::SetField(oxm) if oxm.has_mask() => {
                Err(code::BAD_ACTION_BAD_SET_ARGUMENT.into())
            }
            _ => Ok(()),
        }
    }
}

/// The value that an action writes to a field.
#[inline]
fn written(action: &v13::Action<'_>, field: OxmField) -> Option<u128> {
    match action {
        v13::Action::SetField(oxm) if oxm.basic() == Some(field) => oxm.number(),
        _ => None,
    }
}

/// Whether two entries have the same effect. A switch may report another `max_len` where `max_len` has no effect. `a`
/// and `b` are actions (1.0) or instructions (1.3).
pub fn do_the_same(wire: Wire, a: &[u8], b: &[u8]) -> bool {
    match wire {
        Wire::V10 => same_actions(a, b),
        Wire::V13 => same_instructions(a, b),
    }
}

fn same_actions(a: &[u8], b: &[u8]) -> bool {
    use v10::{Action, PortNo};
    let (Ok(a), Ok(b)) = (List::<Action<'_>>::parse(a), List::<Action<'_>>::parse(b)) else {
        return false;
    };
    let without_limit = |action| match action {
        Action::Output { port, .. } if port != PortNo::CONTROLLER => {
            Action::Output { port, max_len: 0 }
        }
        other => other,
    };
    a.iter().map(without_limit).eq(b.iter().map(without_limit))
}

fn same_instructions(a: &[u8], b: &[u8]) -> bool {
    use v13::Instruction;
    let parse = |bytes| List::<Instruction<'_>>::parse(bytes);
    let (Ok(a), Ok(b)) = (parse(a), parse(b)) else { return false };
    let mut b: Vec<Instruction<'_>> = b.iter().collect();
    // The order of instructions in an entry has no effect (specification section 5.9).
    let is_in_both = a.iter().all(|x| match b.iter().position(|y| same_instruction(&x, y)) {
        Some(at) => {
            b.swap_remove(at);
            true
        }
        None => false,
    });
    is_in_both && b.is_empty()
}

fn same_instruction(a: &v13::Instruction<'_>, b: &v13::Instruction<'_>) -> bool {
    use v13::{Action, Instruction};
    let without_limit = |action| match action {
        Action::Output { port, .. } if port != PortNo::CONTROLLER => {
            Action::Output { port, max_len: 0 }
        }
        other => other,
    };
    match (a, b) {
        (Instruction::ApplyActions(a), Instruction::ApplyActions(b))
        | (Instruction::WriteActions(a), Instruction::WriteActions(b)) => {
            a.iter().map(without_limit).eq(b.iter().map(without_limit))
        }
        _ => a == b,
    }
}

/// Appends a SET_FIELD (1.3).
fn set_field(field: OxmField, value: u128, out: &mut Vec<u8>) {
    let bytes = value.to_be_bytes();
    let length = field.value_len().unwrap_or(0);
    let value = bytes.get(bytes.len() - length..).unwrap_or_default();
    v13::Action::SetField(Oxm::exact(field, value)).write(out);
}

/// An address as a number.
fn number(octets: &[u8; 6]) -> u128 {
    octets.iter().fold(0, |number, octet| number << 8 | u128::from(*octet))
}

/// The ingress port that a match names.
pub fn in_port_of(match_: &Match) -> Option<u32> {
    match_.exact_value(Field::InPort).map(|port| port as u32)
}

#[cfg(test)]
mod tests {
    use openflow::error::{v10, v13};

    #[test]
    fn the_errors_used_for_both_versions_have_the_same_numbers() {
        let both = [
            (v10::BAD_ACTION_BAD_OUT_PORT, v13::BAD_ACTION_BAD_OUT_PORT),
            (v10::BAD_ACTION_BAD_ARGUMENT, v13::BAD_ACTION_BAD_ARGUMENT),
            (v10::BAD_ACTION_BAD_TYPE, v13::BAD_ACTION_BAD_TYPE),
            (v10::BAD_ACTION_BAD_VENDOR, v13::BAD_ACTION_BAD_EXPERIMENTER),
            (v10::BAD_ACTION_BAD_QUEUE, v13::BAD_ACTION_BAD_QUEUE),
            (v10::BAD_ACTION_EPERM, v13::BAD_ACTION_EPERM),
            (v10::BAD_ACTION_TOO_MANY, v13::BAD_ACTION_TOO_MANY),
            (v10::BAD_REQUEST_EPERM, v13::BAD_REQUEST_EPERM),
        ];
        for (old, new) in both {
            assert_eq!(old, new);
        }
    }
}
