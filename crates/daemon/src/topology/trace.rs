//! Follows packets from a port through a tenant's entries on one switch after the other.
//!
//! ```text
//!   slice     port ──▶ entries ──▶ port ──▶ link ──▶ port ──▶ entries ──▶ ... ──▶ the receiver's port
//!   network   port ──▶ entries ──▶ virtual port ──▶ tag ──▶ link ──▶ transit ──▶ link ──▶ virtual port ──▶ entries ──▶ ...
//! ```
//!
//! A trace follows a set of packets from one sender to one receiver. On the first switch each entry that matches a part
//! of the set makes a flow of its own. On later switches a set that several entries share goes wherever any of these
//! entries sends it. Groups count as sending to all their buckets, and FLOOD and ALL to all ports that the tenant sees.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};

use fabric::embedding::{Exit, FarEnd, Hop, Member, PortKind};
use fabric::{Dpid, End, LinkId, Network, PortId, PortNumber, Tagging, TenantId};
use flowspace::{Field, Match, port_from_v10};
use hypervisor::FlowEntry;
use openflow::{List, Version, v10, v13};

use super::setup::Maps;
use super::tables::Tables;

/// The most flows of one pair; further entries count with the last.
const PIECES: usize = 64;
/// The most places of one flow. A loop in a tenant's rules ends before this bound.
const PLACES: usize = 256;
/// The most overlapping entries on one switch that are examined.
const ENTRIES: usize = 256;

/// The known network, for one trace.
pub(super) struct Ground<'a> {
    /// The links.
    pub(super) network: &'a Network,
    /// The tables by switch and tenant.
    pub(super) tables: &'a HashMap<(Dpid, TenantId), Tables>,
    /// The OpenFlow versions of the switches.
    pub(super) versions: &'a HashMap<Dpid, Version>,
    /// The maps of tenants' own networks.
    pub(super) maps: &'a Maps,
    /// Whether a tenant sees a port, for FLOOD.
    pub(super) sees: &'a dyn Fn(TenantId, PortId) -> bool,
    /// Whether an action has changed the addresses of packets since the last call.
    pub(super) readdresses: Cell<bool>,
}

/// The path of one entry's part of a pair's packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Traced {
    /// The entry's number.
    pub(super) entry: u32,
    /// The links between switches on the path.
    pub(super) links: BTreeSet<LinkId>,
    /// Whether the packets reach the receiver's port.
    pub(super) arrives: bool,
    /// Whether the first entry names the receiver.
    pub(super) is_meant: bool,
}

/// The result of a trace, and the switches whose tables it examined.
#[derive(Debug, Default)]
pub(super) struct Trace {
    /// A flow for each entry of the first switch that sends packets.
    pub(super) flows: Vec<Traced>,
    /// The switches where a change could change the result.
    pub(super) visited: BTreeSet<Dpid>,
}

/// One end of the traced packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Station {
    /// The switch's port.
    pub(super) port: PortId,
    /// The Ethernet address of the host.
    pub(super) mac: u128,
}

/// Packets at a place on their path.
struct Place {
    /// The switch, and the port in the tenant's numbering.
    at: PortId,
    packets: Match,
}

/// A matching entry with its number, and the outputs of its packets.
type Passed<'a> = (u32, &'a FlowEntry, Vec<(u32, Match)>);

/// A flow during the trace.
struct Walk {
    tenant: TenantId,
    to: Station,
    flow: Traced,
    places: Vec<Place>,
    /// The ingress ports so far: a loop is followed once.
    seen: BTreeSet<PortId>,
    visited: BTreeSet<Dpid>,
}

impl Ground<'_> {
    /// Follows packets that enter at `from` for the receiver `to`.
    pub(super) fn trace(
        &self,
        tenant: TenantId,
        from: Station,
        to: Station,
        packets: &Match,
    ) -> Trace {
        let mut trace = Trace::default();
        trace.visited.insert(from.port.dpid);
        let Some(start) = self.entrance(tenant, from) else { return trace };
        for (number, entry, outputs) in self.pass(tenant, start, packets) {
            let exact = |field| entry.match_.is_exact(field);
            let is_meant = [Field::DlDst, Field::NwDst, Field::Ipv6Dst].into_iter().any(exact);
            let mut walk = Walk {
                tenant,
                to,
                flow: Traced { entry: number, is_meant, ..Traced::default() },
                places: Vec::new(),
                seen: BTreeSet::new(),
                visited: BTreeSet::new(),
            };
            self.send(&mut walk, start, outputs);
            let mut looked = 0;
            while let Some(place) = walk.places.pop() {
                looked += 1;
                if looked > PLACES {
                    break;
                }
                walk.visited.insert(place.at.dpid);
                for (.., outputs) in self.pass(tenant, place.at, &place.packets) {
                    self.send(&mut walk, place.at, outputs);
                }
            }
            trace.visited.append(&mut walk.visited);
            if walk.flow.arrives || !walk.flow.links.is_empty() {
                trace.flows.push(walk.flow);
            }
            if trace.flows.len() >= PIECES {
                break;
            }
        }
        trace
    }

    /// The ingress port of a host's packets, in the tenant's numbering.
    fn entrance(&self, tenant: TenantId, from: Station) -> Option<PortId> {
        let Some(member) = self.member(from.port.dpid, tenant) else { return Some(from.port) };
        let mut ports = member.ports.iter();
        let (&number, _) = ports.find(|(_, port)| port.up && stands_at(&port.kind, from))?;
        Some(PortId::new(from.port.dpid, PortNumber::new(number).ok()?))
    }

    /// The tenant's virtual switch on this physical switch, if the tenant has a network.
    fn member(&self, dpid: Dpid, tenant: TenantId) -> Option<&Member> {
        self.maps.get(&dpid.0)?.members.get(&tenant)
    }

    /// The outputs of packets on one switch, for each entry of its first table.
    fn pass(&self, tenant: TenantId, at: PortId, packets: &Match) -> Vec<Passed<'_>> {
        let (Some(tables), Some(&version)) =
            (self.tables.get(&(at.dpid, tenant)), self.versions.get(&at.dpid))
        else {
            return Vec::new();
        };
        let packets = packets.with(Field::InPort, u128::from(at.port.get()));
        let mut passed = Vec::new();
        for (number, entry, share) in shares(tables, 0, &packets) {
            let mut outputs = Outputs { readdresses: &self.readdresses, all: Vec::new() };
            match version {
                Version::V1_0 => actions_v10(entry, share, &mut outputs),
                _ => instructions(tables, entry, share, &[], &mut outputs),
            }
            passed.push((number, entry, outputs.all));
        }
        passed
    }

    /// Sends packets by ports: to the receiver, over links to further places, or nowhere.
    fn send(&self, walk: &mut Walk, at: PortId, outputs: Vec<(u32, Match)>) {
        /// OFPP_IN_PORT, OFPP_FLOOD and OFPP_ALL of 1.3.
        const IN_PORT: u32 = 0xffff_fff8;
        const FLOOD: [u32; 2] = [0xffff_fffb, 0xffff_fffc];
        let member = self.member(at.dpid, walk.tenant);
        for (number, packets) in outputs {
            let ports: Vec<PortId> = if FLOOD.contains(&number) {
                self.all_ports(walk.tenant, at.dpid, member).filter(|port| *port != at).collect()
            } else if number == IN_PORT {
                vec![at]
            } else {
                // A packet leaves by its ingress port only if the output is IN_PORT.
                let port = PortNumber::new(number).ok().map(|port| PortId::new(at.dpid, port));
                port.filter(|port| *port != at).into_iter().collect()
            };
            for port in ports {
                match member {
                    Some(member) => self.leave_virtually(walk, member, port, packets),
                    None => self.leave(walk, port, packets),
                }
            }
        }
    }

    /// The ports of a tenant's switch, in the tenant's numbering.
    fn all_ports(
        &self,
        tenant: TenantId,
        dpid: Dpid,
        member: Option<&Member>,
    ) -> impl Iterator<Item = PortId> {
        let ports: Vec<PortId> = match member {
            Some(member) => {
                let numbers = member.ports.keys().filter_map(|&port| PortNumber::new(port).ok());
                numbers.map(|port| PortId::new(dpid, port)).collect()
            }
            None => {
                let index = self.network.switch_index(dpid).ok();
                let all = index.into_iter().flat_map(|it| self.network.switch(it).ports());
                all.map(|(port, _)| port).filter(|port| (self.sees)(tenant, *port)).collect()
            }
        };
        ports.into_iter()
    }

    /// Sends packets by a physical port.
    fn leave(&self, walk: &mut Walk, port: PortId, packets: Match) {
        if port == walk.to.port {
            walk.flow.arrives = true;
        } else if let Some(far) = self.cross(walk, port)
            && walk.seen.insert(far)
        {
            walk.places.push(Place { at: far, packets });
        }
    }

    /// Sends packets by a virtual port, on any member.
    fn leave_virtually(&self, walk: &mut Walk, member: &Member, port: PortId, packets: Match) {
        let Some(kind) = member.ports.get(&port.port.get()).filter(|it| it.up).map(|it| &it.kind)
        else {
            return;
        };
        match kind {
            PortKind::Edge { port: at, .. } => {
                let at = PortId::new(port.dpid, *at);
                walk.flow.arrives |= at == walk.to.port && stands_at(kind, walk.to);
            }
            PortKind::Link { sends, far: FarEnd { tagging, .. }, .. }
            | PortKind::Remote { sends, tagging, .. } => {
                let is_single = *tagging == Tagging::Single
                    || self.versions.get(&port.dpid) == Some(&Version::V1_0);
                if let Some(hop) = sends.filter(|_| !is_single || is_untagged(&packets)) {
                    self.travel(walk, port.dpid, hop, packets);
                }
            }
        }
    }

    /// Sends packets over links with a tag, by the transits on each switch, until the packets arrive.
    fn travel(&self, walk: &mut Walk, mut dpid: Dpid, mut hop: Hop, packets: Match) {
        // A path passes no link twice.
        for _ in 0..PLACES {
            let Some(far) = self.cross(walk, PortId::new(dpid, hop.port)) else { return };
            walk.visited.insert(far.dpid);
            let Some(map) = self.maps.get(&far.dpid.0) else { return };
            let arrived = Hop { port: far.port, tag: hop.tag };
            let passes = map.transit.binary_search_by_key(&arrived, |transit| transit.from).ok();
            match passes.and_then(|at| map.transit.get(at)).map(|transit| transit.to) {
                Some(Exit::Next(next)) => (dpid, hop) = (far.dpid, next),
                Some(Exit::Edge(port)) => {
                    walk.flow.arrives |= PortId::new(far.dpid, port) == walk.to.port;
                    return;
                }
                None => {
                    let member = map.members.get(&walk.tenant);
                    let mut ports = member.into_iter().flat_map(|member| &member.ports);
                    let receives = |kind: &PortKind| matches!(kind, PortKind::Link { receives, .. } if receives.contains(&arrived));
                    let port = ports.find(|(_, port)| port.up && receives(&port.kind));
                    if let Some(number) = port.and_then(|(&it, _)| PortNumber::new(it).ok())
                        && walk.seen.insert(PortId::new(far.dpid, number))
                    {
                        let at = PortId::new(far.dpid, number);
                        walk.places.push(Place { at, packets });
                    }
                    return;
                }
            }
        }
    }

    /// Crosses the link of a port, if the link is up, and returns the remote port.
    fn cross(&self, walk: &mut Walk, port: PortId) -> Option<PortId> {
        let id = self.network.link_from(port).ok()?;
        let link = self.network.link(id);
        match link.to {
            End::Switch { port: far, .. } if link.is_up() => {
                walk.flow.links.insert(id);
                Some(far)
            }
            _ => None,
        }
    }
}

/// Whether packets may leave by a link where a frame has room only for the link's tag.
fn is_untagged(packets: &Match) -> bool {
    packets.exact_value(Field::VlanVid).is_none_or(|vid| vid == 0)
}

/// Whether a host is at an edge port.
fn stands_at(kind: &PortKind, host: Station) -> bool {
    let PortKind::Edge { port, hosts } = kind else { return false };
    let number =
        |octets: [u8; 6]| octets.iter().fold(0, |sum, octet| sum << 8 | u128::from(*octet));
    *port == host.port.port
        && (hosts.is_empty() || hosts.iter().any(|mac| number(mac.octets()) == host.mac))
}

/// The entries of a table in order of precedence, with the part of the set that each matches.
fn shares<'a>(tables: &'a Tables, table: u8, packets: &Match) -> Vec<(u32, &'a FlowEntry, Match)> {
    let mut shares: Vec<(u32, &FlowEntry, Match)> = Vec::new();
    for (number, entry) in tables.taking(table, packets).into_iter().take(ENTRIES) {
        let Some(share) = packets.intersect(&entry.match_) else { continue };
        if shares.iter().any(|(.., taken)| taken.contains(&share)) {
            continue;
        }
        shares.push((number, entry, share));
        if share.contains(packets) {
            break;
        }
    }
    shares
}

/// The output ports, each with its packets.
struct Outputs<'a> {
    readdresses: &'a Cell<bool>,
    all: Vec<(u32, Match)>,
}

impl Outputs<'_> {
    fn push(&mut self, port: u32, packets: Match) {
        self.all.push((port, packets));
    }

    /// The packets after an action; notes whether their addresses have changed.
    fn changed(&self, before: &Match, after: Match) -> Match {
        const ADDRESSES: [Field; 6] = [
            Field::DlSrc,
            Field::DlDst,
            Field::NwSrc,
            Field::NwDst,
            Field::Ipv6Src,
            Field::Ipv6Dst,
        ];
        if ADDRESSES.into_iter().any(|field| before.get(field) != after.get(field)) {
            self.readdresses.set(true);
        }
        after
    }
}

fn actions_v10(entry: &FlowEntry, mut packets: Match, outputs: &mut Outputs<'_>) {
    for action in List::<v10::Action<'_>>::parse(&entry.actions).unwrap_or_default() {
        match action {
            v10::Action::Output { port, .. } | v10::Action::Enqueue { port, .. } => {
                outputs.push(port_from_v10(port.0), packets);
            }
            other => packets = outputs.changed(&packets, packets.image_v10(&other)),
        }
    }
}

/// An action and its entry, which knows the groups in the action.
type Brought<'a> = (&'a FlowEntry, v13::Action<'a>);

/// Follows the instructions of an entry and of later tables; `set`: the action set so far.
fn instructions<'a>(
    tables: &'a Tables,
    entry: &'a FlowEntry,
    mut packets: Match,
    set: &[Brought<'a>],
    outputs: &mut Outputs<'_>,
) {
    let mut set = set.to_vec();
    let mut next = None;
    for instruction in List::<v13::Instruction<'_>>::parse(&entry.actions).unwrap_or_default() {
        match instruction {
            v13::Instruction::ApplyActions(actions) => {
                packets = apply(actions.iter().map(|it| (entry, it)), packets, outputs);
            }
            v13::Instruction::WriteActions(actions) => {
                for action in actions {
                    set.retain(|(_, other)| !replaces(&action, other));
                    set.push((entry, action));
                }
            }
            v13::Instruction::ClearActions => set.clear(),
            v13::Instruction::WriteMetadata { metadata, mask } => {
                let (value, known) = packets.get(Field::Metadata);
                let (metadata, mask) = (u128::from(metadata), u128::from(mask));
                let value = value & !mask | metadata & mask;
                packets = packets.with_masked(Field::Metadata, value, known | mask);
            }
            v13::Instruction::GotoTable(table) => next = Some(table),
            _ => {}
        }
    }
    // GOTO_TABLE leads only to higher tables, so the loop ends.
    match next.filter(|table| *table > entry.table) {
        Some(table) => {
            for (_, entry, share) in shares(tables, table, &packets) {
                instructions(tables, entry, share, &set, outputs);
            }
        }
        None => {
            // In an action set, actions that change packets come before actions that send them, and a group has
            // precedence over an output.
            let sends = |action: &v13::Action<'_>| match action {
                v13::Action::Output { .. } => 2,
                v13::Action::Group(_) => 1,
                _ => 0,
            };
            if set.iter().any(|(_, action)| sends(action) == 1) {
                set.retain(|(_, action)| sends(action) < 2);
            }
            set.sort_by_key(|(_, action)| sends(action));
            apply(set.into_iter(), packets, outputs);
        }
    }
}

/// Whether an action replaces another in the action set: a set has one action of each kind, and one SET_FIELD for each
/// field.
fn replaces(new: &v13::Action<'_>, old: &v13::Action<'_>) -> bool {
    match (new, old) {
        (v13::Action::SetField(new), v13::Action::SetField(old)) => new.id() == old.id(),
        _ => new.type_() == old.type_(),
    }
}

fn apply<'a>(
    actions: impl Iterator<Item = Brought<'a>>,
    mut packets: Match,
    outputs: &mut Outputs<'_>,
) -> Match {
    for (entry, action) in actions {
        match action {
            v13::Action::Output { port, .. } => outputs.push(port.0, packets),
            v13::Action::Group(number) => {
                let known = entry.groups.iter().find(|(other, _)| *other == number);
                let Some((_, body)) = known else { continue };
                let Ok(group) = v13::GroupMod::parse(body) else { continue };
                for bucket in group.buckets {
                    let mut share = packets;
                    for action in bucket.actions {
                        match action {
                            v13::Action::Output { port, .. } => outputs.push(port.0, share),
                            other => share = outputs.changed(&share, share.image_v13(&other)),
                        }
                    }
                }
            }
            other => packets = outputs.changed(&packets, packets.image_v13(&other)),
        }
    }
    packets
}
