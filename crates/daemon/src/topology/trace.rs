//! Where packets go: from a port through a tenant's entries on one switch after the other.
//!
//! ```text
//!   slice     port ──▶ entries ──▶ port ──▶ link ──▶ port ──▶ entries ──▶ ... ──▶ the receiver's port
//!   network   port ──▶ entries ──▶ virtual port ──▶ tag ──▶ link ──▶ transit ──▶ link ──▶ virtual port ──▶ entries ──▶ ...
//! ```
//!
//! What is followed is a set of packets, all of one sender to one receiver. On its first switch each entry that takes a
//! part of the set makes a flow of its own; further on, a set that several entries share goes wherever any of them
//! sends it. Groups are taken to send to all their buckets, and FLOOD and ALL to all ports that the tenant sees.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};

use fabric::embedding::{Exit, FarEnd, Hop, Member, PortKind};
use fabric::{Dpid, End, LinkId, Network, PortId, PortNumber, Tagging, TenantId};
use flowspace::{Field, Match, port_from_v10};
use hypervisor::FlowEntry;
use openflow::{List, Version, v10, v13};

use super::Maps;
use super::tables::Tables;

/// Flows that one pair may have; further entries count with the last.
const PIECES: usize = 64;
/// Places that one flow is followed to. A loop in a tenant's rules ends before it.
const PLACES: usize = 256;
/// Entries in each other's way on one switch that are looked at.
const ENTRIES: usize = 256;

/// What is known of the network, for one trace.
pub(super) struct Ground<'a> {
    /// The links.
    pub(super) network: &'a Network,
    /// Tables by switch and tenant, and the version that the switch speaks.
    pub(super) tables: &'a HashMap<(Dpid, TenantId), Tables>,
    /// Versions that the switches speak.
    pub(super) versions: &'a HashMap<Dpid, Version>,
    /// Where tenants' own networks are.
    pub(super) maps: &'a Maps,
    /// Whether a tenant sees a port, for FLOOD.
    pub(super) sees: &'a dyn Fn(TenantId, PortId) -> bool,
    /// Whether, since this was last taken, any packets came to have other addresses.
    pub(super) readdresses: Cell<bool>,
}

/// Where one entry's share of a pair's packets goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Traced {
    /// The entry's number.
    pub(super) entry: u32,
    /// Links between switches that they cross.
    pub(super) links: BTreeSet<LinkId>,
    /// Whether they come to the receiver's port.
    pub(super) arrives: bool,
    /// Whether the entry that they begin with names the receiver.
    pub(super) is_meant: bool,
}

/// What a trace found, and the switches whose tables it looked at.
#[derive(Debug, Default)]
pub(super) struct Trace {
    /// One for each entry of the first switch that sends packets anywhere.
    pub(super) flows: Vec<Traced>,
    /// Where a change would matter.
    pub(super) visited: BTreeSet<Dpid>,
}

/// One end of what is followed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Station {
    /// The switch's port.
    pub(super) port: PortId,
    /// Its Ethernet address.
    pub(super) mac: u128,
}

/// Packets somewhere on their way.
struct Place {
    /// The switch, and the port by the number that the tenant knows it by.
    at: PortId,
    packets: Match,
}

/// An entry that takes packets, by its number, and the ports that those leave by.
type Passed<'a> = (u32, &'a FlowEntry, Vec<(u32, Match)>);

/// A flow that is being followed.
struct Walk {
    tenant: TenantId,
    to: Station,
    flow: Traced,
    places: Vec<Place>,
    /// Where it has come in already: a loop is one lap.
    seen: BTreeSet<PortId>,
    visited: BTreeSet<Dpid>,
}

impl Ground<'_> {
    /// Follows packets that come in at `from` and are meant for `to`.
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

    /// The port by which a host's packets come in, as the tenant knows it.
    fn entrance(&self, tenant: TenantId, from: Station) -> Option<PortId> {
        let Some(member) = self.member(from.port.dpid, tenant) else { return Some(from.port) };
        let mut ports = member.ports.iter();
        let (&number, _) = ports.find(|(_, port)| port.up && stands_at(&port.kind, from))?;
        Some(PortId::new(from.port.dpid, PortNumber::new(number).ok()?))
    }

    /// The tenant's switch on this one, if it has a network of its own.
    fn member(&self, dpid: Dpid, tenant: TenantId) -> Option<&Member> {
        self.maps.get(&dpid.0)?.members.get(&tenant)
    }

    /// What becomes of packets on one switch: by entry of its first table, the ports that they leave by.
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

    /// Sends packets out of ports: to the receiver, over links to further places, or nowhere.
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
                // Back by the port that it came in by, a packet does not go unless told so by that name.
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

    /// The ports of a tenant's switch, as it knows them.
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

    /// Out of a switch's port, as it is.
    fn leave(&self, walk: &mut Walk, port: PortId, packets: Match) {
        if port == walk.to.port {
            walk.flow.arrives = true;
        } else if let Some(far) = self.cross(walk, port)
            && walk.seen.insert(far)
        {
            walk.places.push(Place { at: far, packets });
        }
    }

    /// Out of a port of the tenant's own, wherever that is.
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

    /// Over links, with a tag that says on each switch what becomes of them, until it says that they have arrived.
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

    /// Over the link that a port leads to, if it is up: where that ends.
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

/// Whether packets may leave by a link where a frame bears one tag, which is the link's.
fn is_untagged(packets: &Match) -> bool {
    packets.exact_value(Field::VlanVid).is_none_or(|vid| vid == 0)
}

/// Whether a host's packets come in and go out by an edge port.
fn stands_at(kind: &PortKind, host: Station) -> bool {
    let PortKind::Edge { port, hosts } = kind else { return false };
    let number =
        |octets: [u8; 6]| octets.iter().fold(0, |sum, octet| sum << 8 | u128::from(*octet));
    *port == host.port.port
        && (hosts.is_empty() || hosts.iter().any(|mac| number(mac.octets()) == host.mac))
}

/// Entries of a table in the order in which they are looked at, with the packets that each takes from the set.
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

/// Ports that packets leave by, and the packets.
struct Outputs<'a> {
    readdresses: &'a Cell<bool>,
    all: Vec<(u32, Match)>,
}

impl Outputs<'_> {
    fn push(&mut self, port: u32, packets: Match) {
        self.all.push((port, packets));
    }

    /// Packets that an action has changed: it is noticed if they have other addresses now.
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

/// An action, and the entry that has brought it: that knows the groups it names.
type Brought<'a> = (&'a FlowEntry, v13::Action<'a>);

/// Instructions of an entry and of what follows in later tables; `set` is the action set so far.
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
    // Tables only go up, so this ends.
    match next.filter(|table| *table > entry.table) {
        Some(table) => {
            for (_, entry, share) in shares(tables, table, &packets) {
                instructions(tables, entry, share, &set, outputs);
            }
        }
        None => {
            // Whatever their order in the set, what changes packets comes before what sends them, and a group counts before
            // an output.
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

/// Whether an action takes another's place in the action set: there is one of each kind, and of SET_FIELD one a field.
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
