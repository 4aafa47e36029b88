//! Networks on OpenFlow 1.0: one table, no metadata, so each entry is written once for each virtual port of entry.
//!
//! What came by a virtual link bears the link's tag all the way through the table: it is a part of the match, and the
//! actions exchange it for the tag of the next link or take it off at the edge. A frame has one VLAN tag on 1.0 (there
//! is no PUSH), so what bears a VLAN tag of the tenant's own stays at the switch where it came in: an entry that sends
//! by a link takes untagged frames only, and a rewriting of the VLAN is refused before a link.

pub(super) mod packet;
pub(super) mod statistics;

use super::unreadable;
use crate::flows::{Flow, Piece};
use crate::ids::TenantIndex;
use crate::network::{Admits, Entered, Exit, Network, Wire, number_of, spanning_tree};
use crate::switch::Switch;
use alloc::vec::Vec;
use fabric::MacAddress;
use flowspace::field::VLAN_PRESENT;
use flowspace::{Field, Match, port_to_v10};
use openflow::error::v10 as code;
use openflow::v10::{Action, PortNo};
use openflow::{ErrorCode, List};

/// What a list of actions has made of a packet's VLAN tag so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Vlan {
    /// Whatever the packet came with at the edge: perhaps none, perhaps the tenant's.
    Unknown,
    /// None.
    Untagged,
    /// A link's.
    Tag(u16),
    /// The tenant's own, by its own actions.
    Own,
}

/// A list on its way to the switch.
struct Writer<'a> {
    network: &'a Network,
    entered: Entered,
    /// The tag with which the packet came by a link.
    arrived: Option<u16>,
    vlan: Vlan,
    dl_dst: Option<u128>,
    out: &'a mut Vec<u8>,
}

impl Switch {
    /// The entries on the switch that stand for one of a network's: one for each look that its packets may come with.
    pub(crate) fn plan_network_v10(
        &self,
        tenant: TenantIndex,
        network: &Network,
        flow: &Flow,
    ) -> Result<Vec<Piece>, ErrorCode> {
        let actions = List::<Action<'_>>::parse(&flow.actions).map_err(unreadable)?;
        let only = flow.match_.exact_value(Field::InPort).map(|port| port as u32);
        if only.is_some_and(|port| !network.ports.contains_key(&port)) {
            return Err(code::FLOW_MOD_FAILED_EPERM);
        }
        let mut pieces: Vec<Piece> = Vec::new();
        for port in network.entries().filter(|port| only.is_none_or(|only| only == *port)) {
            let admits = network.admits(port);
            for arrival in network.arrivals(port) {
                let Some((region, vlan)) = region(&arrival, &flow.match_) else { continue };
                let region = match admits {
                    Admits::SpanningTree => spanning_tree(&region),
                    Admits::Everything | Admits::Nothing => Some(region),
                };
                let Some(region) = region else { continue };
                let mut translated = Vec::new();
                let entered = Entered::Port(port);
                let dl_dst = region.exact_value(Field::DlDst);
                let untagged = self.network_actions_v10(
                    tenant,
                    network,
                    (entered, dl_dst),
                    vlan,
                    actions,
                    &mut translated,
                )?;
                let region = match (vlan, untagged) {
                    (Vlan::Unknown, true) => region.with(Field::VlanVid, 0),
                    _ => region,
                };
                let wire = region.to_v10().map_err(|_| code::FLOW_MOD_FAILED_EPERM)?;
                let is_highest = flow.priority == u16::MAX || wire.wildcards.is_empty();
                if admits == Admits::Nothing && is_highest {
                    // Others stand, and age, below the entry that drops what comes; this would be its equal.
                    continue;
                }
                let mut match_wire = Vec::new();
                wire.write(&mut match_wire);
                if pieces.iter().all(|piece| *piece.match_wire != *match_wire) {
                    pieces.push(Piece {
                        match_wire: match_wire.into_boxed_slice(),
                        actions: translated.into_boxed_slice(),
                    });
                }
            }
        }
        Ok(pieces)
    }

    /// Appends a list as it has to be on the switch, for packets that came by one port. Says whether it is right for
    /// untagged frames only.
    fn network_actions_v10(
        &self,
        tenant: TenantIndex,
        network: &Network,
        (entered, dl_dst): (Entered, Option<u128>),
        vlan: Vlan,
        actions: List<'_, Action<'_>>,
        out: &mut Vec<u8>,
    ) -> Result<bool, ErrorCode> {
        let arrived = if let Vlan::Tag(tag) = vlan { Some(tag) } else { None };
        let mut writer = Writer { network, entered, arrived, vlan, dl_dst, out };
        let mut untagged = false;
        for action in actions {
            match action {
                Action::Output { port, max_len } => {
                    untagged |= writer.output(port, max_len)?;
                }
                Action::Enqueue { .. } => return Err(code::BAD_ACTION_BAD_QUEUE),
                Action::Vendor { vendor, .. } => {
                    if !self.tenants[tenant.0 as usize].experimenters.contains(&vendor) {
                        return Err(code::BAD_ACTION_BAD_VENDOR);
                    }
                    action.write(writer.out);
                }
                Action::Unknown { .. } => return Err(code::BAD_ACTION_BAD_TYPE),
                Action::SetVlanVid(vid) if vid > 0xfff => {
                    return Err(code::BAD_ACTION_BAD_ARGUMENT);
                }
                Action::SetVlanPcp(pcp) if pcp > 7 => return Err(code::BAD_ACTION_BAD_ARGUMENT),
                Action::SetNwTos(tos) if tos & 3 != 0 => {
                    return Err(code::BAD_ACTION_BAD_ARGUMENT);
                }
                Action::SetVlanVid(_) | Action::SetVlanPcp(_) => {
                    writer.settle(None);
                    action.write(writer.out);
                    writer.vlan = Vlan::Own;
                }
                Action::StripVlan => {
                    action.write(writer.out);
                    writer.vlan = Vlan::Untagged;
                }
                other => {
                    if let Action::SetDlDst(address) = other {
                        writer.dl_dst =
                            Some(address.iter().fold(0, |n, b| n << 8 | u128::from(*b)));
                    }
                    other.write(writer.out);
                }
            }
        }
        Ok(untagged)
    }
}

impl Writer<'_> {
    /// Appends an output; says whether it is right for untagged frames only.
    fn output(&mut self, port: PortNo, max_len: u16) -> Result<bool, ErrorCode> {
        match port {
            PortNo::CONTROLLER => {
                // As it came, so that the hypervisor knows by which port.
                let arrived = self.arrived;
                if arrived.is_some() && self.vlan != Vlan::Own {
                    self.settle(arrived);
                }
                Action::Output { port, max_len }.write(self.out);
                Ok(false)
            }
            PortNo::IN_PORT => match self.entered {
                Entered::Port(number) => match self.network.exit_back(number) {
                    Some(exit) => self.leave(exit),
                    None => Ok(false),
                },
                _ => Err(code::BAD_ACTION_BAD_OUT_PORT),
            },
            PortNo::FLOOD => self.leave_by_all(self.network.flooded()),
            PortNo::ALL => self.leave_by_all(self.network.ports.keys().copied()),
            PortNo(number) => {
                let network = self.network;
                let exit = network.exit(u32::from(number), self.entered);
                match exit.ok_or(code::BAD_ACTION_BAD_OUT_PORT)? {
                    Some(exit) => self.leave(exit),
                    None => Ok(false),
                }
            }
        }
    }

    fn leave_by_all(&mut self, numbers: impl Iterator<Item = u32>) -> Result<bool, ErrorCode> {
        let network = self.network;
        let mut untagged = false;
        for number in numbers {
            if let Some(Some(exit)) = network.exit(number, self.entered) {
                untagged |= self.leave(exit)?;
            }
        }
        Ok(untagged)
    }

    fn leave(&mut self, exit: Exit<'_>) -> Result<bool, ErrorCode> {
        let back = match self.entered {
            Entered::Port(number) => self.network.physical(number) == Some(exit.port),
            _ => false,
        };
        let port = match back {
            true => PortNo::IN_PORT,
            false => PortNo(port_to_v10(exit.port).ok_or(code::BAD_ACTION_BAD_OUT_PORT)?),
        };
        let send = Action::Output { port, max_len: 0 };
        match exit.wire {
            Wire::Plain => {
                self.settle(None);
                send.write(self.out);
            }
            Wire::Tagged(tag) => {
                if self.vlan == Vlan::Own {
                    return Err(code::BAD_ACTION_BAD_ARGUMENT);
                }
                let unknown = self.vlan == Vlan::Unknown;
                self.settle(Some(tag.get()));
                send.write(self.out);
                return Ok(unknown);
            }
            Wire::Hosts(hosts) => {
                self.settle(None);
                self.give_hosts(hosts, send)?;
            }
        }
        Ok(false)
    }

    /// The wire leads to other tenants too: what is for everybody goes to each of the tenant's own.
    fn give_hosts(&mut self, hosts: &[MacAddress], send: Action<'_>) -> Result<(), ErrorCode> {
        let dl_dst = self.dl_dst.ok_or(code::BAD_ACTION_BAD_OUT_PORT)?;
        if dl_dst >> 40 & 1 == 0 {
            if hosts.iter().any(|host| number_of(*host) == dl_dst) {
                send.write(self.out);
            }
            return Ok(());
        }
        for host in hosts {
            Action::SetDlDst(host.octets()).write(self.out);
            send.write(self.out);
        }
        let bytes = (dl_dst as u64).to_be_bytes();
        let back = [bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7]];
        Action::SetDlDst(back).write(self.out);
        Ok(())
    }

    /// Makes the packet bear a link's tag, or none of a link's.
    fn settle(&mut self, tag: Option<u16>) {
        match (self.vlan, tag) {
            (Vlan::Tag(known), Some(tag)) if known == tag => {}
            (_, Some(tag)) => {
                Action::SetVlanVid(tag).write(self.out);
                self.vlan = Vlan::Tag(tag);
            }
            (Vlan::Tag(_), None) => {
                Action::StripVlan.write(self.out);
                self.vlan = Vlan::Untagged;
            }
            (_, None) => {}
        }
    }
}

/// The packets of an arrival that a tenant's match means, and what is known of their tag; `None` if there are none.
fn region(arrival: &Match, match_: &Match) -> Option<(Match, Vlan)> {
    let match_ = match_.without(Field::InPort);
    let (tag, mask) = arrival.get(Field::VlanVid);
    if mask != 0 {
        // By a link come frames that are untagged to the tenant.
        let (vid, vid_mask) = match_.get(Field::VlanVid);
        if vid & vid_mask & VLAN_PRESENT != 0 {
            return None;
        }
        let inner = match_.without(Field::VlanPcp).without(Field::VlanVid);
        return Some((arrival.intersect(&inner)?, Vlan::Tag((tag & 0xfff) as u16)));
    }
    let region = arrival.intersect(&match_)?;
    let vlan = match region.exact_value(Field::VlanVid) {
        Some(0) => Vlan::Untagged,
        Some(_) => Vlan::Own,
        None => Vlan::Unknown,
    };
    Some((region, vlan))
}
