//! A list of actions in a network: virtual ports become physical ports and labels.
//!
//! ```text
//!   the tenant says     labels are stacked (1.3)                       a label takes the tag's place (1.0)
//!   output:1, an edge   OUTPUT 3                                       STRIP_VLAN if there is a label, OUTPUT 3
//!   output:10, a link   PUSH_VLAN, set label, OUTPUT 5, POP_VLAN       SET_VLAN_VID label, OUTPUT 5
//! ```
//! Between two switches of 1.3 the tenant's VLAN tags travel behind the label. If this switch or the remote end is on
//! 1.0, a frame has room for one tag, so only untagged frames of the tenant pass the link. The compilation of a list
//! that sends tagged and untagged frames into such a link [stops](Stop::ByVlan); the list is then written for untagged
//! frames.
//!
//! By a shared edge port, frames leave for the tenant's own hosts only. So the list has to name the destination
//! address, or [the last table](crate::delivery) matches the destination address.

use crate::class::{PacketClass, Vlan};
use crate::context::Context;
use crate::instances::{Instances, Variant};
use crate::network::{
    Egress, Encapsulation, Ingress, IngressPort, Network, Stop, Written, is_for_many, number_of,
};
use crate::packet_in_len;
use crate::refusal::{Reason, Refused, not_own};
use crate::rule::check_length;
use crate::wire::{Action, Actions, Verb, VlanChange, Wire};
use alloc::vec::Vec;
use openflow::error::v13 as code;
use openflow::v13::{self, PortNo};
use openflow::{ErrorCode, List};

/// Writes a list of actions for the switch.
pub struct ListWriter<'c, 'a, 'o> {
    cx: &'c Context<'a>,
    network: &'a Network,
    /// The packets after the actions written so far.
    class: PacketClass,
    /// Whether the switch or Weir sends PACKET_IN for an output to CONTROLLER.
    controller: ToController,
    /// Whether outputs to shared edge ports are left to [the last table](crate::delivery) if the destination is
    /// unknown.
    is_delivered_later: bool,
    /// Whether the list has an experimenter's action: only the switch knows how such an action changes packets.
    has_experimenter: bool,
    /// Whether the list may have changed the source address.
    has_other_source: bool,
    out: &'o mut Vec<u8>,
}

/// The sender of the PACKET_IN for an output to CONTROLLER.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToController {
    /// The switch.
    Switch,
    /// Weir: the switch's own PACKET_IN would look like the report of a packet that has entered.
    Weir,
}

impl<'c, 'a, 'o> ListWriter<'c, 'a, 'o> {
    /// A list for these packets in a network, appended to `out`.
    #[inline]
    pub fn new(
        cx: &'c Context<'a>,
        network: &'a Network,
        class: PacketClass,
        out: &'o mut Vec<u8>,
    ) -> Self {
        ListWriter {
            cx,
            network,
            class,
            controller: ToController::Switch,
            is_delivered_later: false,
            has_experimenter: false,
            has_other_source: false,
            out,
        }
    }

    /// The same list; `controller` sends the PACKET_INs.
    pub fn informing(self, controller: ToController) -> Self {
        ListWriter { controller, ..self }
    }

    /// The same list; outputs to shared edge ports may be left to the last table.
    pub fn delivering_later(self, is_delivered_later: bool) -> Self {
        ListWriter { is_delivered_later, ..self }
    }

    /// Writes all of a list.
    pub fn actions(&mut self, actions: Actions<'_>) -> Written {
        match actions {
            Actions::V10(list) => list.iter().try_for_each(|action| self.action(&action)),
            Actions::V13(list) => list.iter().try_for_each(|action| self.action(&action)),
        }
    }

    /// Writes one action.
    #[inline]
    pub fn action(&mut self, action: &impl Action) -> Written {
        match action.verb() {
            Verb::Output { port, max_len } => self.output(port, max_len)?,
            // Virtual ports have no queues.
            Verb::Enqueue { .. } => {
                return Err(Reason::EnqueueInNetwork.with(code::BAD_ACTION_BAD_QUEUE).into());
            }
            Verb::Group(group) => {
                let instances = self.cx.groups.instances(group);
                self.group(instances.ok_or(code::BAD_ACTION_BAD_OUT_GROUP)?)?;
            }
            Verb::Stay => {
                self.cx.check(action)?;
                self.has_experimenter |= action.is_experimenter();
                self.has_other_source |= action.is_experimenter() || action.source().is_some();
                if action.vlan_change() == Some(VlanChange::SetsPriority) {
                    // The action changes only a part of the tag, so the packet needs a tag of its own instead of the
                    // label.
                    self.carry(None);
                }
                self.class.follow(action);
                action.write(self.out);
            }
        }
        check_length(self.out)?;
        Ok(())
    }

    /// Writes an OUTPUT.
    #[inline]
    pub fn output(&mut self, port: PortNo, max_len: u16) -> Written {
        let network = self.network;
        match port {
            PortNo::CONTROLLER => self.output_to_controller(max_len),
            PortNo::IN_PORT => match self.class.ingress {
                Ingress::Any => Err(Stop::ByIngress),
                Ingress::Controller => {
                    Err(Reason::NoInPort.with(code::BAD_ACTION_BAD_OUT_PORT).into())
                }
                Ingress::Port(number) | Ingress::At(IngressPort { port: number, .. }) => {
                    network.egress_back(number).map_or(Ok(()), |egress| self.leave(egress))
                }
            },
            PortNo::FLOOD => self.output_to_all(network.flooded()),
            PortNo::ALL => self.output_to_all(network.ports().keys().copied()),
            PortNo(number) => {
                let egress = network.egress(number, self.class.ingress);
                let egress = egress.ok_or_else(|| not_own(port))?;
                egress.map_or(Ok(()), |egress| self.leave(egress))
            }
        }
    }

    fn output_to_controller(&mut self, max_len: u16) -> Written {
        if self.controller == ToController::Weir && !self.has_experimenter {
            return Ok(());
        }
        if self.cx.target.has_metadata() {
            let max_len = max_len.max(packet_in_len::HEADERS);
            return Ok(self.wire().output(PortNo::CONTROLLER, max_len, self.out)?);
        }
        // The source address identifies the tenant of the packet.
        let came_by_shared_edge =
            self.class.ingress.port().is_some_and(|number| self.network.is_shared_edge(number));
        if self.has_other_source && came_by_shared_edge {
            return Err(Reason::SourceToController.with(code::BAD_ACTION_BAD_OUT_PORT).into());
        }
        // The label identifies the ingress of the packet.
        let label = match self.class.ingress {
            Ingress::At(IngressPort { port, at }) => self.network.label_received(port, at),
            _ => None,
        };
        let label = match (label, self.class.vlan()) {
            (None, _) | (_, Vlan::Unknown) => None,
            (Some(label), Vlan::Untagged) => Some(label.get()),
            (Some(_), Vlan::Tagged) => {
                return Err(Reason::TagToController.with(code::BAD_ACTION_BAD_ARGUMENT).into());
            }
        };
        self.carry(label);
        let max_len = packet_in_len::length(max_len, self.class.dl_type);
        Ok(self.wire().output(PortNo::CONTROLLER, max_len, self.out)?)
    }

    fn output_to_all(&mut self, numbers: impl Iterator<Item = u32>) -> Written {
        let network = self.network;
        for number in numbers {
            let is_later = self.is_delivered_later
                && self.class.destination.is_none()
                && network.is_shared_edge(number);
            let egress = network.egress(number, self.class.ingress).flatten();
            let Some(egress) = egress.filter(|_| !is_later) else { continue };
            // The packet would return to its ingress port.
            if self.class.ingress == Ingress::Any
                && network.received_elsewhere(number).next().is_some()
            {
                return Err(Stop::ByIngress);
            }
            match self.leave(egress) {
                // Copies that cannot pass a port are not sent.
                Err(Stop::Refused(refused))
                    if refused.reason() == Reason::TagOnLink && self.cx.target.stacks_labels() => {}
                done => done?,
            }
        }
        Ok(())
    }

    /// Writes the actions that send to a group.
    pub fn group(&mut self, instances: &Instances) -> Written {
        let group = self.instance(instances)?;
        v13::Action::Group(group).write(self.out);
        Ok(())
    }

    fn instance(&self, instances: &Instances) -> Written<u32> {
        if instances.depend_on_ingress(self.class.ingress) {
            return Err(Stop::ByIngress);
        }
        let tag = match instances.depend_on_tag() {
            true => self.class.tag_state()?,
            false => Default::default(),
        };
        Ok(instances.id_for(Variant::new(self.class.ingress, tag)))
    }

    /// Writes the actions that send a packet by a port. If labels are stacked, the packet is unchanged for the
    /// following actions.
    #[inline]
    fn leave(&mut self, egress: Egress<'_>) -> Written {
        let is_back = self.network.is_back(egress.port, self.class.ingress)?;
        let port = if is_back { PortNo::IN_PORT } else { PortNo(egress.port) };
        let encapsulation = egress.encapsulation;
        self.class.check(encapsulation, self.cx.target.stacks_labels())?;
        if !self.cx.target.stacks_labels() {
            self.carry(match encapsulation {
                Encapsulation::None => None,
                Encapsulation::Label { label, .. } => Some(label.get()),
            });
        }
        if egress.hosts.is_empty() {
            return self.send(encapsulation, port);
        }
        let is_behind = |address| egress.hosts.iter().any(|host| number_of(*host) == address);
        match self.class.destination {
            None => Err(Reason::SharedEdge.with(code::BAD_ACTION_BAD_OUT_PORT).into()),
            // A broadcast or multicast frame goes to each of the tenant's own hosts.
            Some(address) if is_for_many(address) => {
                for host in egress.hosts {
                    self.wire().set_destination(number_of(*host), self.out);
                    self.send(encapsulation, port)?;
                }
                self.wire().set_destination(address, self.out);
                Ok(())
            }
            Some(address) if is_behind(address) => self.send(encapsulation, port),
            Some(_) => Ok(()),
        }
    }

    #[inline]
    fn send(&mut self, encapsulation: Encapsulation, port: PortNo) -> Written {
        match encapsulation {
            Encapsulation::Label { label, .. } if self.cx.target.stacks_labels() => {
                send_labelled(label.get(), port, self.out)?;
            }
            _ => self.wire().output(port, 0, self.out)?,
        }
        Ok(())
    }

    /// Writes the actions that send a packet to the tables, with this label in front of the packet's own tags (1.3).
    pub fn enter_tables(&mut self, label: Option<u16>) -> Result<(), ErrorCode> {
        match label {
            Some(label) => send_labelled(label, PortNo::TABLE, self.out),
            None => self.wire().output(PortNo::TABLE, 0, self.out),
        }
    }

    /// Writes the actions after which the packet has this label, or none, where labels take the place of the tag.
    #[inline]
    pub fn carry(&mut self, label: Option<u16>) {
        match (self.class.label(), label) {
            // A packet with a label has no tag of its own.
            (Some(_), None) => self.wire().pop_vlan(self.out),
            (carried, Some(label)) if carried != Some(label) => {
                self.wire().set_vlan(label, self.out);
            }
            _ => {}
        }
        self.class.set_label(label);
    }

    #[inline]
    fn wire(&self) -> Wire {
        self.cx.target.wire
    }
}

/// An error if the tenant may not use one of the actions of a set or of a bucket. This includes actions that other
/// actions of the set replace.
pub fn check_set(
    cx: &Context<'_>,
    network: &Network,
    actions: List<'_, v13::Action<'_>>,
) -> Result<(), Refused> {
    for action in actions {
        match action {
            v13::Action::Output { port, .. } => {
                let reserved = [PortNo::CONTROLLER, PortNo::IN_PORT, PortNo::FLOOD, PortNo::ALL];
                if !reserved.contains(&port) && !network.has_port(port.0) {
                    return Err(not_own(port));
                }
            }
            v13::Action::Group(number) => {
                cx.groups.instances(number).ok_or(code::BAD_ACTION_BAD_OUT_GROUP)?;
            }
            other => cx.check(&other)?,
        }
    }
    Ok(())
}

/// Appends the actions that put a label in front of a packet's own tags, send the packet, and remove the label again
/// (1.3).
pub fn send_labelled(label: u16, port: PortNo, out: &mut Vec<u8>) -> Result<(), ErrorCode> {
    Wire::push_label(label, out);
    Wire::V13.output(port, 0, out)?;
    Wire::V13.pop_vlan(out);
    Ok(())
}
