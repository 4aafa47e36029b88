//! Networks on OpenFlow 1.0: one table, no metadata, so each entry is written once for each virtual port of entry.
//!
//! What came by a virtual link bears a link's tag all the way through the table: it is a part of the match, and the
//! actions exchange it for the tag of the next link or take it off at the edge. A frame has one VLAN tag on 1.0 (there
//! is no PUSH), so a frame that has one of the tenant's own cannot pass by a link: it stays where it came in. An entry that
//! sends by a link and does not say of which VLAN is written for untagged frames alone; one that makes tagged frames of what it
//! sends there is refused.
//!
//! What leaves by a port that other tenants have as well depends on whom it is for. Where an entry does not say so, the
//! hypervisor is told of its packets and sends them there: see `asking`.

mod asking;
pub(super) mod packet;
pub(super) mod statistics;

use super::flow_mod::priority_of;
use super::unreadable;
use crate::flows::{Flow, Piece, Presumes, Taken, Tells, check_length};
use crate::ids::TenantIndex;
use crate::network::{
    Admits, Arrival, Entered, Network, WayOut, Wire, is_for_many, number_of, spanning_tree,
    untagged,
};
use crate::switch::Switch;
use crate::told;
use alloc::vec::Vec;
pub(super) use asking::{ASK, MOST_ASKED};
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
    sends: Sends,
    /// What the tenant has had done to the packets so far, beside sending them.
    changes: Changes,
    found: Found,
}

/// What is done to packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Changes {
    None,
    Known,
    /// There is an experimenter's action among it.
    Unknown,
}

/// What is found in a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Found {
    /// It tells the tenant.
    tells: bool,
    /// And of packets that it has changed, in ways that are known.
    tells_changed: bool,
    /// Something is not said, since the packets' destination is not known.
    asks: bool,
    /// An experimenter's action.
    has_experimenter: bool,
}

/// Which of a list's outputs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sends {
    /// All that can be said.
    All,
    /// The same behind one by which the hypervisor is told of the packet, and tells the tenant.
    Asking,
    /// Those that were left to the hypervisor.
    Left,
    /// All that can be said, by the hypervisor, which tells the tenant.
    Alone,
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
                let region = match admits {
                    Admits::SpanningTree => spanning_tree(&region),
                    Admits::Everything | Admits::Nothing => Some(region),
                };
                let Some(region) = region else { continue };
                let packets = packets(port, &arrival, &region);
                let mut regions = Vec::new();
                self.network_regions_v10(tenant, network, region, packets, actions, &mut regions)?;
                for (region, actions, tells) in regions {
                    let wire = region.to_v10().map_err(|_| code::FLOW_MOD_FAILED_EPERM)?;
                    let priority = priority_of(&wire, flow.priority);
                    if admits == Admits::Nothing && priority == u16::MAX {
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
                            presumes: Presumes::default(),
                            tells,
                        };
                        taken.add(&piece, self.version)?;
                        pieces.push(piece);
                    }
                }
            }
        }
        if actions.iter().count() > MOST_ASKED && pieces.iter().any(|piece| piece.tells.asks()) {
            return Err(code::BAD_ACTION_TOO_MANY);
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
        regions: &mut Vec<(Match, Vec<u8>, Tells)>,
    ) -> Result<(), ErrorCode> {
        let mut translated = Vec::new();
        match self.rule_actions_v10(tenant, network, packets, actions, &mut translated) {
            Ok(tells) => regions.push((region, translated, tells)),
            Err(Unsaid::Code(code)) => return Err(code),
            Err(Unsaid::NeedsVlan) => {
                // Frames with a tag do not pass: they do not meet the rule.
                if let Some(part) = untagged(&region) {
                    let packets = Packets { vlan: Vlan::Untagged, ..packets };
                    self.network_regions_v10(tenant, network, part, packets, actions, regions)?;
                }
            }
        }
        Ok(())
    }

    /// Writes a rule's list as it has to be on the switch, and says who is told of its packets.
    fn rule_actions_v10(
        &self,
        tenant: TenantIndex,
        network: &Network,
        packets: Packets,
        actions: List<'_, Action<'_>>,
        out: &mut Vec<u8>,
    ) -> Result<Tells, Unsaid> {
        let mut writer = Writer::new(network, packets, out, Sends::All);
        let found = self.network_actions_v10(tenant, &mut writer, actions)?;
        let tells = match found {
            Found { asks: true, has_experimenter: true, .. } => Tells::HypervisorForAll,
            Found { asks: true, .. } => Tells::Hypervisor,
            Found { tells_changed: true, has_experimenter: false, .. } if network.may_ask() => {
                Tells::TenantByHypervisor
            }
            Found { tells: true, .. } => Tells::Tenant,
            _ => Tells::Nobody,
        };
        if tells.asks() {
            out.clear();
            ASK.write(out);
            let mut beside = Vec::new();
            let mut writer = Writer::new(network, packets, &mut beside, Sends::Asking);
            self.network_actions_v10(tenant, &mut writer, actions)?;
            if tells != Tells::HypervisorForAll {
                out.extend_from_slice(&beside);
            }
        }
        Ok(tells)
    }

    /// Writes a list, and says what is in it.
    fn network_actions_v10(
        &self,
        tenant: TenantIndex,
        writer: &mut Writer<'_>,
        actions: List<'_, Action<'_>>,
    ) -> Result<Found, Unsaid> {
        for action in actions {
            writer.changes = match action {
                Action::Output { .. } => writer.changes,
                Action::Vendor { .. } => Changes::Unknown,
                _ if writer.changes == Changes::None => Changes::Known,
                _ => writer.changes,
            };
            match action {
                Action::Output { port, max_len } => writer.output(port, max_len)?,
                Action::Enqueue { .. } => return Err(code::BAD_ACTION_BAD_QUEUE.into()),
                Action::Vendor { vendor, .. } => {
                    if !self.tenants[tenant.0 as usize].experimenters.contains(&vendor) {
                        return Err(code::BAD_ACTION_BAD_VENDOR.into());
                    }
                    writer.found.has_experimenter = true;
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
                    if let Action::SetDlDst(address) = other {
                        let dl_dst = address.iter().fold(0, |n, b| n << 8 | u128::from(*b));
                        writer.packets.dl_dst = Some(dl_dst);
                        if writer.sends == Sends::Left {
                            // Whom packets are for is said from here on, and nothing was left.
                            break;
                        }
                    }
                    other.write(writer.out);
                }
            }
            check_length(writer.out)?;
        }
        Ok(writer.found)
    }
}

impl<'a> Writer<'a> {
    fn new(
        network: &'a Network,
        packets: Packets,
        out: &'a mut Vec<u8>,
        sends: Sends,
    ) -> Writer<'a> {
        let (changes, found) = (Changes::None, Found::default());
        Writer { network, packets, out, sends, changes, found }
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
            // What an experimenter has made of them only the switch knows, and what that tells would be asked of again.
            PortNo::CONTROLLER
                if self.sends == Sends::Asking && self.changes == Changes::Unknown =>
            {
                Err(code::BAD_ACTION_BAD_OUT_PORT.into())
            }
            PortNo::CONTROLLER if self.sends != Sends::All && self.changes != Changes::Unknown => {
                Ok(())
            }
            PortNo::CONTROLLER => {
                self.found.tells = true;
                self.found.tells_changed |= self.changes == Changes::Known;
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

    fn leave(&mut self, way: WayOut<'_>) -> Result<(), Unsaid> {
        if self.sends == Sends::Left && way.hosts.is_empty() {
            return Ok(());
        }
        if !way.hosts.is_empty() && self.packets.dl_dst.is_none() {
            self.found.asks = true;
            return self.check_vlan(way.wire);
        }
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
