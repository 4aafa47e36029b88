//! Networks on OpenFlow 1.0: one table, no metadata, so each entry is written once for each virtual port of entry.
//!
//! What came by a virtual link bears a link's tag all the way through the table: it is a part of the match, and the
//! actions exchange it for the tag of the next link or take it off at the edge. A frame has one VLAN tag on 1.0 (there
//! is no PUSH), so a frame that has one of the tenant's own cannot pass by a link: it stays where it came in. An entry that
//! sends by a link and does not say of which VLAN is written for untagged frames alone; one that makes tagged frames of what it
//! sends there is refused.
//!
//! What leaves by a port that other tenants have as well depends on whom it is for, so an entry that sends there has to name the
//! destination.

pub(super) mod packet;
pub(super) mod statistics;

use super::flow_mod::priority_of;
use super::unreadable;
use crate::flows::{Flow, Piece, Taken, check_length};
use crate::ids::TenantIndex;
use crate::network::{Arrival, Entered, Network, WayOut, Wire, is_for_many, number_of, untagged};
use crate::switch::Switch;
use crate::told;
use alloc::vec::Vec;
use fabric::MacAddress;
use flowspace::field::VLAN_PRESENT;
use flowspace::{Field, Match, port_from_v10, port_to_v10};
use hashbrown::HashSet;
use openflow::error::v10 as code;
use openflow::v10::{Action, PortNo};
use openflow::{ErrorCode, List};

/// What is known of the packets that a list is applied to.
#[derive(Clone, Copy)]
struct Packets {
    entered: Entered,
    /// The switch's port by which they came, if that was by a link.
    by_link: Option<u32>,
    vlan: Vlan,
    /// The link's tag that they bear in the place of their own.
    tag: Option<u16>,
    /// The destination address, where it is the same for all.
    dl_dst: Option<u128>,
    /// The Ethernet type, likewise.
    dl_type: Option<u128>,
}

impl Packets {
    /// The switch's port at which they came in, or are said to: by a link that may be another than it sends by.
    fn came_at(&self, network: &Network) -> Option<u32> {
        self.by_link.or_else(|| network.physical(self.entered.port()?))
    }
}

/// The VLAN tag of packets as their tenant sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Vlan {
    /// Whatever they came with at the edge.
    Unknown,
    /// None.
    Untagged,
    /// There is one.
    Tagged,
}

impl Vlan {
    /// By a field of a packet or a match.
    fn from_field(value: u128) -> Vlan {
        if value & VLAN_PRESENT != 0 { Vlan::Tagged } else { Vlan::Untagged }
    }
}

/// Why a list cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unsaid {
    /// It depends on the VLAN tag that the packets came with, which is not the same for all.
    NeedsVlan,
    Code(ErrorCode),
}

impl From<ErrorCode> for Unsaid {
    fn from(code: ErrorCode) -> Self {
        Unsaid::Code(code)
    }
}

impl Unsaid {
    /// Of one packet everything is known, so nothing is left open.
    fn code(self) -> ErrorCode {
        match self {
            Unsaid::NeedsVlan => code::BAD_ACTION_BAD_ARGUMENT,
            Unsaid::Code(code) => code,
        }
    }
}

/// A list on its way to the switch.
struct Writer<'a> {
    network: &'a Network,
    /// What has become of the packets so far.
    packets: Packets,
    out: &'a mut Vec<u8>,
    /// Whether the hypervisor tells the tenant, and the switch is not to.
    is_told_here: bool,
    /// Whether there is an experimenter's action among what has been done to the packets: what that makes of them only the switch
    /// knows.
    is_strange: bool,
    /// Whether they may bear another source than that with which they came.
    has_other_source: bool,
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
        let (mut pieces, taken) = (Vec::<Piece>::new(), Taken::default());
        let mut written: HashSet<Vec<u8>> = HashSet::new();
        for port in network.entries().filter(|port| only.is_none_or(|only| only == *port)) {
            let admits = network.admits(port);
            for arrival in network.arrivals(port) {
                let Some(region) = region(&arrival, &flow.match_) else { continue };
                let packets = packets(port, &arrival, &region);
                let mut regions = Vec::new();
                self.network_regions_v10(tenant, network, region, packets, actions, &mut regions)?;
                for (region, actions) in regions {
                    let wire = region.to_v10().map_err(|_| code::FLOW_MOD_FAILED_EPERM)?;
                    let priority = priority_of(&wire, flow.priority);
                    if !admits && priority == u16::MAX {
                        // Others stand, and age, below the entry that drops what comes; this would be its equal.
                        continue;
                    }
                    let mut match_wire = Vec::new();
                    wire.write(&mut match_wire);
                    if written.insert(match_wire.clone()) {
                        let piece = Piece {
                            match_wire: match_wire.into_boxed_slice(),
                            priority,
                            actions: actions.into_boxed_slice(),
                        };
                        taken.add(&piece, self.version)?;
                        pieces.push(piece);
                    }
                }
            }
        }
        Ok(pieces)
    }

    /// Appends what is done with the packets of a region: with all alike or, where it depends on what they are, with each
    /// part of them. With those of no part nothing is done: they meet no entry.
    fn network_regions_v10(
        &self,
        tenant: TenantIndex,
        network: &Network,
        region: Match,
        packets: Packets,
        actions: List<'_, Action<'_>>,
        regions: &mut Vec<(Match, Vec<u8>)>,
    ) -> Result<(), ErrorCode> {
        let mut translated = Vec::new();
        let mut writer = Writer::new(network, packets, &mut translated, false);
        match self.network_actions_v10(tenant, &mut writer, actions) {
            Ok(()) => regions.push((region, translated)),
            Err(Unsaid::Code(code)) => return Err(code),
            Err(Unsaid::NeedsVlan) => {
                // Frames with a tag do not pass: they do not meet the rule.
                let packets = Packets { vlan: Vlan::Untagged, ..packets };
                let met = untagged(&region);
                let (part, regions) = match met {
                    Some(part) => (part, regions),
                    // What is refused is so all the same.
                    None => (region, &mut Vec::new()),
                };
                self.network_regions_v10(tenant, network, part, packets, actions, regions)?;
            }
        }
        Ok(())
    }

    /// Writes a list.
    fn network_actions_v10(
        &self,
        tenant: TenantIndex,
        writer: &mut Writer<'_>,
        actions: List<'_, Action<'_>>,
    ) -> Result<(), Unsaid> {
        for action in actions {
            match action {
                Action::Output { port, max_len } => writer.output(port, max_len)?,
                Action::Enqueue { .. } => return Err(code::BAD_ACTION_BAD_QUEUE.into()),
                Action::Vendor { vendor, .. } => {
                    if !self.tenants[tenant.0 as usize].experimenters.contains(&vendor) {
                        return Err(code::BAD_ACTION_BAD_VENDOR.into());
                    }
                    (writer.is_strange, writer.has_other_source) = (true, true);
                    action.write(writer.out);
                }
                Action::Unknown { .. } => return Err(code::BAD_ACTION_BAD_TYPE.into()),
                Action::SetVlanVid(vid) if vid > 0xfff => {
                    return Err(code::BAD_ACTION_BAD_ARGUMENT.into());
                }
                Action::SetVlanPcp(pcp) if pcp > 7 => {
                    return Err(code::BAD_ACTION_BAD_ARGUMENT.into());
                }
                Action::SetNwTos(tos) if tos & 3 != 0 => {
                    return Err(code::BAD_ACTION_BAD_ARGUMENT.into());
                }
                other => {
                    writer.settle_vlan(&other);
                    writer.has_other_source |= matches!(other, Action::SetDlSrc(_));
                    if let Action::SetDlDst(address) = other {
                        let dl_dst = address.iter().fold(0, |n, b| n << 8 | u128::from(*b));
                        writer.packets.dl_dst = Some(dl_dst);
                    }
                    other.write(writer.out);
                }
            }
            check_length(writer.out)?;
        }
        Ok(())
    }
}

impl<'a> Writer<'a> {
    fn new(
        network: &'a Network,
        packets: Packets,
        out: &'a mut Vec<u8>,
        is_told_here: bool,
    ) -> Writer<'a> {
        let (is_strange, has_other_source) = (false, false);
        Writer { network, packets, out, is_told_here, is_strange, has_other_source }
    }
}

impl Writer<'_> {
    /// Notes what an action makes of the VLAN tag, and gives the packet its own back where it changes but a part of it.
    fn settle_vlan(&mut self, action: &Action<'_>) {
        match *action {
            Action::SetVlanVid(_) => {
                self.packets.vlan = Vlan::Tagged;
                self.packets.tag = None;
            }
            Action::SetVlanPcp(_) => {
                self.bear(None);
                if self.packets.vlan == Vlan::Untagged {
                    // It gets a tag, of VLAN 0.
                    self.packets.vlan = Vlan::Tagged;
                }
            }
            Action::StripVlan => {
                self.packets.vlan = Vlan::Untagged;
                self.packets.tag = None;
            }
            _ => {}
        }
    }

    fn output(&mut self, port: PortNo, max_len: u16) -> Result<(), Unsaid> {
        let Packets { entered, by_link, .. } = self.packets;
        match port {
            PortNo::CONTROLLER if self.is_told_here && !self.is_strange => Ok(()),
            // By the source the hypervisor knows whose they are.
            PortNo::CONTROLLER if self.has_other_source && self.came_by_shared_edge() => {
                Err(code::BAD_ACTION_BAD_OUT_PORT.into())
            }
            PortNo::CONTROLLER => {
                // With the tag by which the hypervisor knows how it came, and what it is now.
                let arrived = match (entered, by_link) {
                    (Entered::Port(number), Some(at)) => Some((number, at)),
                    _ => None,
                };
                let tag = match (arrived, self.packets.vlan) {
                    (None, _) | (_, Vlan::Unknown) => None,
                    (Some((number, at)), Vlan::Untagged) => self.network.arrival_tag(number, at),
                    (Some(_), Vlan::Tagged) => return Err(code::BAD_ACTION_BAD_ARGUMENT.into()),
                };
                self.bear(tag.map(|tag| tag.get()));
                let max_len = told::length(max_len, self.packets.dl_type);
                Action::Output { port, max_len }.write(self.out);
                Ok(())
            }
            PortNo::IN_PORT => match entered {
                Entered::Port(number) => match self.network.way_back(number) {
                    Some(way) => self.leave(way),
                    None => Ok(()),
                },
                _ => Err(code::BAD_ACTION_BAD_OUT_PORT.into()),
            },
            PortNo::FLOOD => self.leave_by_all(self.network.flooded()),
            PortNo::ALL => self.leave_by_all(self.network.ports.keys().copied()),
            PortNo(number) => {
                let network = self.network;
                let way = network.way_out(port_from_v10(number), entered);
                match way.ok_or(code::BAD_ACTION_BAD_OUT_PORT)? {
                    Some(way) => self.leave(way),
                    None => Ok(()),
                }
            }
        }
    }

    fn leave_by_all(&mut self, numbers: impl Iterator<Item = u32>) -> Result<(), Unsaid> {
        let network = self.network;
        for number in numbers {
            if let Some(Some(way)) = network.way_out(number, self.packets.entered) {
                self.leave(way)?;
            }
        }
        Ok(())
    }

    fn came_by_shared_edge(&self) -> bool {
        self.packets.entered.port().is_some_and(|number| self.network.is_shared_edge(number))
    }

    fn leave(&mut self, way: WayOut<'_>) -> Result<(), Unsaid> {
        let is_back = self.packets.came_at(self.network) == Some(way.port);
        let port = if is_back { Some(PortNo::IN_PORT.0) } else { port_to_v10(way.port) };
        let port = PortNo(port.ok_or(code::BAD_ACTION_BAD_OUT_PORT)?);
        match way.wire {
            Wire::Plain => {
                self.bear(None);
                self.give(way.hosts, port)?;
            }
            Wire::Tagged { tag, .. } => {
                self.check_vlan(way.wire)?;
                self.bear(Some(tag.get()));
                self.give(way.hosts, port)?;
            }
        }
        Ok(())
    }

    /// Whether packets can leave by a wire: a frame bears one tag, so those with a tag of their own cannot bear a link's.
    fn check_vlan(&self, wire: Wire) -> Result<(), Unsaid> {
        match (wire, self.packets.vlan) {
            (Wire::Plain, _) | (Wire::Tagged { .. }, Vlan::Untagged) => Ok(()),
            (Wire::Tagged { .. }, Vlan::Unknown) => Err(Unsaid::NeedsVlan),
            (Wire::Tagged { .. }, Vlan::Tagged) => Err(code::BAD_ACTION_BAD_ARGUMENT.into()),
        }
    }

    /// Where a way leads to other tenants too, what is for everybody goes to each of the tenant's own hosts.
    fn give(&mut self, hosts: &[MacAddress], port: PortNo) -> Result<(), ErrorCode> {
        let send = Action::Output { port, max_len: 0 };
        if hosts.is_empty() {
            send.write(self.out);
            return Ok(());
        }
        let dl_dst = self.packets.dl_dst.ok_or(code::BAD_ACTION_BAD_OUT_PORT)?;
        if !is_for_many(dl_dst) {
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

    /// Makes the packet bear a link's tag, or what is its own.
    fn bear(&mut self, tag: Option<u16>) {
        match (self.packets.tag, tag) {
            // What bears a link's tag has none of its own.
            (Some(_), None) => Action::StripVlan.write(self.out),
            (borne, Some(tag)) if borne != Some(tag) => Action::SetVlanVid(tag).write(self.out),
            _ => {}
        }
        self.packets.tag = tag;
    }
}

/// What is known of the packets of a region.
fn packets(port: u32, arrival: &Arrival, region: &Match) -> Packets {
    let vlan = match arrival.tag {
        Some(_) => Vlan::Untagged,
        None => region.exact_value(Field::VlanVid).map_or(Vlan::Unknown, Vlan::from_field),
    };
    Packets {
        entered: Entered::Port(port),
        by_link: arrival.tag.map(|hop| hop.port.get()),
        vlan,
        tag: arrival.tag.map(|hop| hop.tag.get()),
        dl_dst: region.exact_value(Field::DlDst),
        dl_type: region.exact_value(Field::DlType),
    }
}

/// The packets of an arrival that a tenant's match means; `None` if there are none.
fn region(arrival: &Arrival, match_: &Match) -> Option<Match> {
    let match_ = match_.without(Field::InPort);
    if arrival.tag.is_none() {
        return arrival.looks.intersect(&match_);
    }
    // The tag is the link's, and so is its priority.
    let inner = untagged(&match_)?.without(Field::VlanPcp).without(Field::VlanVid);
    arrival.looks.intersect(&inner)
}
