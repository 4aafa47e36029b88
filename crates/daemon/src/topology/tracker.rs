//! Which tenants' flows cross which links, and how much of them each is entitled to.
//!
//! A flow is what one virtual interface (VNIC) sends another as one entry of its first switch takes it; where it goes is
//! read off the tenant's virtual flow tables and the network ([`super::trace`]), what it may send off the hose model
//! ([`Hose`]), or off what the sender's agent measures. All that is incremental: a changed entry has those pairs looked at again that it can concern, a link
//! those that came past its ends.
//!
//! In a tenant's own network a flow is followed from virtual switch to virtual switch, and what it crosses are the links
//! that lie beneath. A path that crosses one of them twice counts there once.
//!
//! What is not followed: packets of hosts that are nobody's VNIC, and IP apart from IPv4.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use fabric::edge::Sent;
use fabric::hose::{Change, Hose, VnicId};
use fabric::usage::{Flow, FlowId, Usage};
use fabric::{Bandwidth, Dpid, LinkId, MacAddress, Network, PortId, TenantId};
use flowspace::field::VLAN_PRESENT;
use flowspace::{Field, Match};
use hypervisor::FlowChange;
use openflow::Version;

use super::Maps;
use super::tables::Tables;
use super::trace::{Ground, Station};
use crate::config;

/// A sender and a receiver, by their places among the VNICs.
type Pair = (u32, u32);

const IPV4: u128 = 0x0800;

/// All that is known of flows.
#[derive(Default)]
pub(super) struct Tracker {
    vnics: Vec<Vnic>,
    by_mac: HashMap<(TenantId, u128), u32>,
    by_address: HashMap<(TenantId, u128), u32>,
    tables: HashMap<(Dpid, TenantId), Tables>,
    versions: HashMap<Dpid, Version>,
    maps: Maps,
    pairs: HashMap<Pair, Followed>,
    /// Pairs whose trace looked at a tenant's tables on a switch.
    visitors: HashMap<(Dpid, TenantId), BTreeSet<Pair>>,
    dirty: BTreeSet<Pair>,
    /// What interfaces send to whom, of those that agents measure; nothing to those who are not there.
    measured: HashMap<(TenantId, u128), BTreeMap<u128, Bandwidth>>,
    /// Pairs of which something else is measured now.
    rated: BTreeSet<Pair>,
    hose: Hose,
    usage: Usage,
    /// Whose each flow is.
    owners: HashMap<FlowId, Pair>,
    next_flow: u64,
    lost: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Vnic {
    tenant: TenantId,
    port: PortId,
    mac: u128,
    address: Option<u128>,
    vlan: Option<u16>,
    bandwidth: Bandwidth,
}

/// What is known of a pair.
#[derive(Default)]
struct Followed {
    flows: Vec<(FlowId, Box<[LinkId]>)>,
    /// Flows that their tenant's entries do not bring to their receiver.
    lost: usize,
    visited: BTreeSet<Dpid>,
}

impl Tracker {
    /// The tenants' virtual interfaces.
    pub(super) fn configure<'a>(
        &mut self,
        tenants: impl Iterator<Item = (TenantId, &'a [config::Vnic])>,
    ) {
        let mut vnics = Vec::new();
        for (tenant, own) in tenants {
            vnics.extend(own.iter().map(|vnic| Vnic {
                tenant,
                port: vnic.port,
                mac: number(vnic.mac.octets()),
                address: vnic.ip.map(u128::from),
                vlan: vnic.vlan,
                bandwidth: vnic.bandwidth,
            }));
        }
        if vnics == self.vnics {
            return;
        }
        // Tables are what switches told; the rest follows from the interfaces.
        let (tables, versions, maps) = (
            std::mem::take(&mut self.tables),
            std::mem::take(&mut self.versions),
            std::mem::take(&mut self.maps),
        );
        let links: Vec<FlowId> =
            self.pairs.values().flat_map(|pair| pair.flows.iter().map(|(id, _)| *id)).collect();
        let mut usage = std::mem::take(&mut self.usage);
        for flow in links {
            // It is there: it was put there under this number.
            let _ = usage.remove(flow);
        }
        let next_flow = self.next_flow;
        let measured = std::mem::take(&mut self.measured);
        *self =
            Tracker { tables, versions, maps, usage, measured, next_flow, ..Tracker::default() };
        for (at, vnic) in vnics.iter().enumerate() {
            let at = at as u32;
            // Fails only for a number that is taken.
            let _ = self.hose.add_vnic(VnicId(u64::from(at)), vnic.bandwidth);
            self.by_mac.insert((vnic.tenant, vnic.mac), at);
            if let Some(address) = vnic.address {
                self.by_address.insert((vnic.tenant, address), at);
            }
        }
        let of_one = |(a, b): &(u32, u32)| {
            a != b
                && vnics.get(*a as usize).map(|v| v.tenant)
                    == vnics.get(*b as usize).map(|v| v.tenant)
        };
        let mut first = 0;
        while let Some(vnic) = vnics.get(first) {
            let count = vnics.iter().skip(first).take_while(|v| v.tenant == vnic.tenant).count();
            let all = first as u32..(first + count) as u32;
            let pairs = all.clone().flat_map(|from| all.clone().map(move |to| (from, to)));
            self.dirty.extend(pairs.filter(of_one));
            first += count;
        }
        self.vnics = vnics;
    }

    /// A switch told of changes in its tenants' tables.
    pub(super) fn handle_changes(
        &mut self,
        dpid: Dpid,
        version: Version,
        changes: Vec<FlowChange>,
    ) {
        self.versions.insert(dpid, version);
        for change in changes {
            let key = (dpid, change.tenant);
            let after = change.entry.as_ref().map(|entry| entry.match_);
            let tables = self.tables.entry(key).or_default();
            let before = tables.set(change.number, change.entry).map(|entry| entry.match_);
            if tables.is_empty() {
                self.tables.remove(&key);
            }
            // Another entry's actions may be its own, or a group's.
            for match_ in [before, after.filter(|_| before != after)].into_iter().flatten() {
                self.mark(dpid, change.tenant, &match_);
            }
        }
    }

    /// A switch has gone; what it holds is told again when it comes back.
    pub(super) fn handle_switch_gone(&mut self, dpid: Dpid) {
        self.versions.remove(&dpid);
        self.tables.retain(|(at, _), _| *at != dpid);
        self.mark_switch(dpid);
    }

    /// Tenants' own networks are elsewhere, or others.
    pub(super) fn handle_maps(&mut self, maps: Maps) {
        let before = std::mem::replace(&mut self.maps, maps);
        let all: BTreeSet<u64> = before.keys().chain(self.maps.keys()).copied().collect();
        // What did not change is the same map.
        let same = |dpid: &u64| match (before.get(dpid), self.maps.get(dpid)) {
            (Some(before), Some(after)) => Arc::ptr_eq(before, after),
            _ => false,
        };
        let changed: Vec<u64> = all.into_iter().filter(|dpid| !same(dpid)).collect();
        for dpid in changed {
            self.mark_switch(Dpid(dpid));
        }
    }

    /// An agent has measured what an interface sends to whom; `None` when nobody measures it any more.
    pub(super) fn handle_sent(&mut self, tenant: TenantId, vnic: MacAddress, sent: Sent) {
        let from = number(vnic.octets());
        let after: Option<BTreeMap<u128, Bandwidth>> = sent
            .map(|sent| sent.into_iter().map(|(to, rate)| (number(to.octets()), rate)).collect());
        let before = match after.clone() {
            Some(after) => self.measured.insert((tenant, from), after),
            None => self.measured.remove(&(tenant, from)),
        };
        let Some(&from) = self.by_mac.get(&(tenant, from)) else { return };
        let place = |to: &u128| Some((from, *self.by_mac.get(&(tenant, *to))?));
        match (before, after) {
            (Some(before), Some(after)) => {
                let all = before.keys().chain(after.keys());
                let differ = all.filter(|to| before.get(to) != after.get(to));
                self.rated.extend(differ.filter_map(place));
            }
            // To all others nothing is sent, or nothing is known of it any more.
            (None, Some(_)) | (Some(_), None) => {
                let others = 0..self.vnics.len() as u32;
                self.rated.extend(others.map(|to| (from, to)));
            }
            (None, None) => {}
        }
    }

    /// Links came or went.
    pub(super) fn handle_links(&mut self, network: &Network, links: &[LinkId]) {
        let mut switches = BTreeSet::new();
        for link in links {
            if let Some((a, b)) = network.link(*link).switches() {
                switches.extend([network.switch(a).dpid(), network.switch(b).dpid()]);
            }
        }
        for dpid in switches {
            self.mark_switch(dpid);
        }
    }

    /// Looks again at what may have changed; afterwards usage is what tables, links and interfaces say.
    pub(super) fn settle(&mut self, network: &Network, sees: &dyn Fn(TenantId, PortId) -> bool) {
        let dirty = std::mem::take(&mut self.dirty);
        let mut traced = Vec::with_capacity(dirty.len());
        let Tracker { tables, versions, maps, .. } = &*self;
        let ground = Ground { network, tables, versions, maps, sees };
        for pair in dirty {
            let (Some(from), Some(to)) =
                (self.vnics.get(pair.0 as usize), self.vnics.get(pair.1 as usize))
            else {
                continue;
            };
            let trace = ground.trace(from.tenant, from.station(), to.station(), &packets(from, to));
            let mut flows: Vec<Box<[LinkId]>> = Vec::new();
            let mut lost = 0;
            for flow in trace.flows {
                lost += usize::from(!flow.arrives && flow.is_meant);
                // Of packets that get lost on their way what they cross is known only if they are sent at all, which
                // an entry that names their receiver says.
                if flow.arrives || flow.is_meant {
                    flows.push(flow.links.into_iter().collect());
                }
            }
            flows.sort();
            traced.push((pair, flows, lost, trace.visited));
        }
        // What leaves goes first, so that no rate is worked out for links that are not there any more.
        let mut changes = Vec::new();
        for (pair, flows, ..) in &traced {
            self.take_flows(*pair, flows, &mut changes);
        }
        for (pair, flows, lost, visited) in traced {
            self.put_flows(pair, flows, lost, visited, network, &mut changes);
        }
        for change in changes {
            match self.owners.get(&change.flow) {
                Some(pair) if self.measured_rate(*pair).is_some() => _ = self.rated.insert(*pair),
                // A flow that has gone since has no rate.
                _ => _ = self.usage.set_rate(network, change.flow, change.rate),
            }
        }
        for pair in std::mem::take(&mut self.rated) {
            self.rate(pair, network);
        }
    }

    /// What flows put on links.
    pub(super) fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Links whose load has changed since this was last called.
    pub(super) fn take_touched(&mut self) -> BTreeSet<LinkId> {
        self.usage.take_touched()
    }

    /// How many flows are followed, and how many of them do not come to their receiver.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.usage.len(), self.lost)
    }

    /// Gives a pair's flows what is measured of them, or what they are entitled to if nothing is.
    fn rate(&mut self, pair: Pair, network: &Network) {
        let measured = self.measured_rate(pair);
        let Some(known) = self.pairs.get(&pair) else { return };
        for (flow, _) in &known.flows {
            let rate = match measured {
                // Which of them it is in is not known.
                Some(rate) => rate.share(1, known.flows.len() as u128),
                None => self.hose.rate(*flow).unwrap_or_default(),
            };
            // It is there: it was put there under this number.
            let _ = self.usage.set_rate(network, *flow, rate);
        }
    }

    /// What an agent measures of a pair, if any does.
    fn measured_rate(&self, pair: Pair) -> Option<Bandwidth> {
        if self.measured.is_empty() {
            return None;
        }
        let (from, to) = (self.vnics.get(pair.0 as usize)?, self.vnics.get(pair.1 as usize)?);
        let sent = self.measured.get(&(from.tenant, from.mac))?;
        Some(sent.get(&to.mac).copied().unwrap_or_default())
    }

    fn take_flows(&mut self, pair: Pair, keep: &[Box<[LinkId]>], changes: &mut Vec<Change>) {
        let Some(known) = self.pairs.get_mut(&pair) else { return };
        if known.flows.len() == keep.len() {
            // As many as before share what the pair may send: they are put on other links at most.
            return;
        }
        for (flow, _) in std::mem::take(&mut known.flows) {
            let _ = self.usage.remove(flow);
            self.owners.remove(&flow);
            if let Ok(others) = self.hose.disconnect(flow) {
                changes.extend(others);
            }
        }
    }

    fn put_flows(
        &mut self,
        pair: Pair,
        flows: Vec<Box<[LinkId]>>,
        lost: usize,
        visited: BTreeSet<Dpid>,
        network: &Network,
        changes: &mut Vec<Change>,
    ) {
        let Some(tenant) = self.vnics.get(pair.0 as usize).map(|vnic| vnic.tenant) else { return };
        let known = self.pairs.entry(pair).or_default();
        self.lost = self.lost + lost - known.lost;
        known.lost = lost;
        for dpid in known.visited.difference(&visited) {
            if let Some(visitors) = self.visitors.get_mut(&(*dpid, tenant)) {
                visitors.remove(&pair);
            }
        }
        for dpid in visited.difference(&known.visited) {
            self.visitors.entry((*dpid, tenant)).or_default().insert(pair);
        }
        known.visited = visited;
        if known.flows.len() == flows.len() {
            for ((id, before), links) in known.flows.iter_mut().zip(flows) {
                if *before != links && self.usage.reroute(network, *id, links.clone()).is_ok() {
                    *before = links;
                }
            }
            return;
        }
        for links in flows {
            let id = FlowId(self.next_flow);
            self.next_flow += 1;
            let rate = Bandwidth::ZERO;
            let flow = Flow { tenant, rate, links: links.clone() };
            if let Err(error) = self.usage.add(network, id, flow) {
                tracing::warn!(%error, "a flow is not reckoned with");
                continue;
            }
            let ends = (VnicId(u64::from(pair.0)), VnicId(u64::from(pair.1)));
            if let Ok(others) = self.hose.connect(id, ends.0, ends.1) {
                changes.extend(others);
            }
            self.owners.insert(id, pair);
            known.flows.push((id, links));
        }
    }

    /// Has the pairs looked at again that an entry can concern.
    fn mark(&mut self, dpid: Dpid, tenant: TenantId, match_: &Match) {
        let exact = |field| match_.exact_value(field);
        let by = |known: &HashMap<(TenantId, u128), u32>, from, to| {
            let place = |value| known.get(&(tenant, value)).copied();
            Some((place(exact(from)?), place(exact(to)?)))
        };
        // What is rewritten on the way has other addresses than its sender and receiver: then those who came past.
        if let Some(ends) = by(&self.by_address, Field::NwSrc, Field::NwDst)
            .or_else(|| by(&self.by_mac, Field::DlSrc, Field::DlDst))
            && let (Some(from), Some(to)) = ends
        {
            if from != to {
                self.dirty.insert((from, to));
            }
            return;
        }
        if let Some(visitors) = self.visitors.get(&(dpid, tenant)) {
            self.dirty.extend(visitors);
        }
    }

    fn mark_switch(&mut self, dpid: Dpid) {
        let visitors = self.visitors.iter().filter(|((at, _), _)| *at == dpid);
        self.dirty.extend(visitors.flat_map(|(_, pairs)| pairs));
    }
}

impl Vnic {
    fn station(&self) -> Station {
        Station { port: self.port, mac: self.mac }
    }
}

/// What one interface sends another.
fn packets(from: &Vnic, to: &Vnic) -> Match {
    let mut packets = Match::exact(Field::InPort, u128::from(from.port.port.get()))
        .with(Field::DlSrc, from.mac)
        .with(Field::DlDst, to.mac)
        .with(Field::DlType, IPV4);
    match from.vlan {
        Some(0) => packets = packets.with(Field::VlanVid, 0),
        Some(vlan) => {
            packets = packets.with(Field::VlanVid, u128::from(vlan) | VLAN_PRESENT);
        }
        None => {}
    }
    if let Some(address) = from.address {
        packets = packets.with(Field::NwSrc, address);
    }
    if let Some(address) = to.address {
        packets = packets.with(Field::NwDst, address);
    }
    packets
}

fn number(octets: [u8; 6]) -> u128 {
    octets.iter().fold(0, |number, octet| number << 8 | u128::from(*octet))
}

#[cfg(test)]
mod tests;
