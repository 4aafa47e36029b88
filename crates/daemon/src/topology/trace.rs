//! Where packets go: from a port through a tenant's entries on one switch after the other.
//!
//! What is followed is a set of packets, all of one sender to one receiver. On its first switch each entry that takes a
//! part of the set makes a flow of its own; further on, a set that several entries share goes wherever any of them
//! sends it. Groups are taken to send to all their buckets, and FLOOD and ALL to all ports that the tenant sees.

use std::collections::{BTreeSet, HashMap};

use fabric::{Dpid, End, LinkId, Network, PortId, PortNumber, TenantId};
use flowspace::{Field, Match, port_from_v10};
use hypervisor::FlowEntry;
use openflow::{List, Version, v10, v13};

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
    /// Whether a tenant sees a port, for FLOOD.
    pub(super) sees: &'a dyn Fn(TenantId, PortId) -> bool,
}

/// Where one entry's share of a pair's packets goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Traced {
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

/// Packets somewhere on their way.
struct Place {
    at: PortId,
    packets: Match,
}

impl Ground<'_> {
    /// Follows packets that come in at `from` and are meant for `to`.
    pub(super) fn trace(
        &self,
        tenant: TenantId,
        from: PortId,
        to: PortId,
        packets: &Match,
    ) -> Trace {
        let mut trace = Trace::default();
        trace.visited.insert(from.dpid);
        for (entry, outputs) in self.pass(tenant, from, packets) {
            let exact = |field| entry.match_.is_exact(field);
            let is_meant = exact(Field::DlDst) || exact(Field::NwDst);
            let mut flow = Traced { is_meant, ..Traced::default() };
            let mut places: Vec<Place> = Vec::new();
            self.send(tenant, from, to, outputs, &mut flow, &mut places);
            let mut looked = 0;
            while let Some(place) = places.pop() {
                looked += 1;
                if looked > PLACES {
                    break;
                }
                trace.visited.insert(place.at.dpid);
                for (_, outputs) in self.pass(tenant, place.at, &place.packets) {
                    self.send(tenant, place.at, to, outputs, &mut flow, &mut places);
                }
            }
            if flow.arrives || !flow.links.is_empty() {
                trace.flows.push(flow);
            }
            if trace.flows.len() >= PIECES {
                break;
            }
        }
        trace
    }

    /// What becomes of packets on one switch: by entry of its first table, the ports that they leave by.
    fn pass(
        &self,
        tenant: TenantId,
        at: PortId,
        packets: &Match,
    ) -> Vec<(&FlowEntry, Vec<(u32, Match)>)> {
        let (Some(tables), Some(&version)) =
            (self.tables.get(&(at.dpid, tenant)), self.versions.get(&at.dpid))
        else {
            return Vec::new();
        };
        let packets = packets.with(Field::InPort, u128::from(at.port.get()));
        let mut passed = Vec::new();
        for (entry, share) in shares(tables, 0, &packets) {
            let mut outputs = Vec::new();
            match version {
                Version::V1_0 => actions_v10(entry, share, &mut outputs),
                _ => instructions(tables, entry, share, &[], &mut outputs),
            }
            passed.push((entry, outputs));
        }
        passed
    }

    /// Sends packets out of ports: to the receiver, over links to further places, or nowhere.
    fn send(
        &self,
        tenant: TenantId,
        at: PortId,
        to: PortId,
        outputs: Vec<(u32, Match)>,
        flow: &mut Traced,
        places: &mut Vec<Place>,
    ) {
        /// OFPP_IN_PORT, OFPP_FLOOD and OFPP_ALL of 1.3.
        const IN_PORT: u32 = 0xffff_fff8;
        const FLOOD: [u32; 2] = [0xffff_fffb, 0xffff_fffc];
        for (number, packets) in outputs {
            let ports: Vec<PortId> = if FLOOD.contains(&number) {
                let Ok(index) = self.network.switch_index(at.dpid) else { continue };
                let all = self.network.switch(index).ports().map(|(port, _)| port);
                all.filter(|port| *port != at && (self.sees)(tenant, *port)).collect()
            } else if number == IN_PORT {
                vec![at]
            } else {
                // Back by the port that it came in by, a packet does not go unless told so by that name.
                let port = PortNumber::new(number).ok().map(|port| PortId::new(at.dpid, port));
                port.filter(|port| *port != at).into_iter().collect()
            };
            for port in ports {
                if port == to {
                    flow.arrives = true;
                    continue;
                }
                let Ok(id) = self.network.link_from(port) else { continue };
                let link = self.network.link(id);
                if let (true, End::Switch { port: far, .. }) = (link.is_up(), link.to)
                    // Once over each link: a loop is one lap.
                    && flow.links.insert(id)
                {
                    places.push(Place { at: far, packets });
                }
            }
        }
    }
}

/// Entries of a table in the order in which they are looked at, with the packets that each takes from the set.
fn shares<'a>(tables: &'a Tables, table: u8, packets: &Match) -> Vec<(&'a FlowEntry, Match)> {
    let mut shares: Vec<(&FlowEntry, Match)> = Vec::new();
    for entry in tables.taking(table, packets).into_iter().take(ENTRIES) {
        let Some(share) = packets.intersect(&entry.match_) else { continue };
        if shares.iter().any(|(_, taken)| taken.contains(&share)) {
            continue;
        }
        shares.push((entry, share));
        if share.contains(packets) {
            break;
        }
    }
    shares
}

fn actions_v10(entry: &FlowEntry, mut packets: Match, outputs: &mut Vec<(u32, Match)>) {
    for action in List::<v10::Action<'_>>::parse(&entry.actions).unwrap_or_default() {
        match action {
            v10::Action::Output { port, .. } | v10::Action::Enqueue { port, .. } => {
                outputs.push((port_from_v10(port.0), packets));
            }
            other => packets = packets.image_v10(&other),
        }
    }
}

/// Instructions of an entry and of what follows in later tables; `set` is the action set so far.
fn instructions<'a>(
    tables: &'a Tables,
    entry: &'a FlowEntry,
    mut packets: Match,
    set: &[v13::Action<'a>],
    outputs: &mut Vec<(u32, Match)>,
) {
    let mut set = set.to_vec();
    let mut next = None;
    for instruction in List::<v13::Instruction<'_>>::parse(&entry.actions).unwrap_or_default() {
        match instruction {
            v13::Instruction::ApplyActions(actions) => {
                packets = apply(entry, actions.iter(), packets, outputs);
            }
            v13::Instruction::WriteActions(actions) => {
                for action in actions {
                    set.retain(|other| !replaces(&action, other));
                    set.push(action);
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
            for (entry, share) in shares(tables, table, &packets) {
                instructions(tables, entry, share, &set, outputs);
            }
        }
        None => {
            // Whatever their order in the set, what changes packets comes before what sends them.
            set.sort_by_key(|action| match action {
                v13::Action::Output { .. } => 2,
                v13::Action::Group(_) => 1,
                _ => 0,
            });
            apply(entry, set.into_iter(), packets, outputs);
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
    entry: &FlowEntry,
    actions: impl Iterator<Item = v13::Action<'a>>,
    mut packets: Match,
    outputs: &mut Vec<(u32, Match)>,
) -> Match {
    for action in actions {
        match action {
            v13::Action::Output { port, .. } => outputs.push((port.0, packets)),
            v13::Action::Group(number) => {
                let known = entry.groups.iter().find(|(other, _)| *other == number);
                let Some((_, body)) = known else { continue };
                let Ok(group) = v13::GroupMod::parse(body) else { continue };
                for bucket in group.buckets {
                    let mut share = packets;
                    for action in bucket.actions {
                        match action {
                            v13::Action::Output { port, .. } => outputs.push((port.0, share)),
                            other => share = share.image_v13(&other),
                        }
                    }
                }
            }
            other => packets = packets.image_v13(&other),
        }
    }
    packets
}
