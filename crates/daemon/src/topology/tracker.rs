//! Tracks which tenants' flows cross which links, and the rate of each flow.
//!
//! A flow is the packets from one virtual interface (VNIC) to another that one entry of the first switch matches. Its
//! path comes from the tenant's virtual flow tables and the network ([`super::trace`]). The rate of the pair comes from
//! the hose model ([`Hose`]), or from the measurements of the sender's agent. [`Spread`] says which part of the rate
//! counts on which link.
//!
//! The tracking is incremental: after a change of an entry only the pairs that the entry can concern are traced again,
//! and after a change of a link only the pairs that passed its ends. The tracker keeps only pairs with flows, and pairs
//! whose packets passed their first switch or changed their addresses. For all other pairs, [`Vnics::ends`] says which
//! entry on their first switch could begin a flow.
//!
//! In a tenant's own network a flow is followed from virtual switch to virtual switch, and loads the physical links. A
//! path that crosses a physical link twice counts there once.
//!
//! The tracker does not follow packets of hosts without a VNIC, and packets that are neither IPv4 nor IPv6.

mod spread;
mod vnics;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use fabric::edge::Sent;
use fabric::hose::{Change, Hose, VnicId};
use fabric::usage::{Flow, FlowId, Usage};
use fabric::{Bandwidth, Dpid, LinkId, MacAddress, Network, PortId, TenantId};
use flowspace::{Field, Match};
use hypervisor::FlowChange;
use openflow::Version;

use super::setup::Maps;
use super::tables::Tables;
use super::trace::Ground;
use crate::config;
use spread::{Share, Spread};
use vnics::{Pair, Vnic, Vnics, number};

/// The known flows.
#[derive(Default)]
pub(super) struct Tracker {
    vnics: Vnics,
    tables: HashMap<(Dpid, TenantId), Tables>,
    versions: HashMap<Dpid, Version>,
    maps: Maps,
    pairs: HashMap<Pair, Followed>,
    /// The pairs whose trace examined a tenant's tables on a switch.
    visitors: HashMap<(Dpid, TenantId), BTreeSet<Pair>>,
    /// The pairs among them whose packets changed their addresses: any entry can concern these pairs.
    readdressed: HashMap<(Dpid, TenantId), BTreeSet<Pair>>,
    dirty: BTreeSet<Pair>,
    /// The measured rates of interfaces to each receiver; missing receivers get nothing.
    measured: HashMap<(TenantId, u128), BTreeMap<u128, Bandwidth>>,
    /// Pairs whose rate may have changed.
    rated: BTreeSet<Pair>,
    /// In the hose, a pair with flows is one stream, independent of the number of its flows.
    hose: Hose,
    usage: Usage,
    next_part: u64,
    flows: usize,
    lost: usize,
}

/// The state of a pair.
#[derive(Default)]
struct Followed {
    flows: usize,
    /// The number of flows that do not reach their receiver.
    lost: usize,
    /// Links with the same part of the pair's rate, and the number of this part.
    parts: Vec<(Share, FlowId, Box<[LinkId]>)>,
    visited: BTreeSet<Dpid>,
    is_readdressed: bool,
}

/// The result of a trace of a pair.
struct Found {
    pair: Pair,
    spread: Spread,
    visited: BTreeSet<Dpid>,
    is_readdressed: bool,
}

impl Tracker {
    /// Sets the tenants' virtual interfaces.
    pub(super) fn configure<'a>(
        &mut self,
        tenants: impl Iterator<Item = (TenantId, &'a [config::Vnic])>,
    ) {
        let vnics = Vnics::new(tenants);
        if vnics.all() == self.vnics.all() {
            return;
        }
        // The tables stay, because switches report them; everything else is computed again from the interfaces.
        let before = std::mem::take(self);
        let mut usage = before.usage;
        for (_, part, _) in before.pairs.values().flat_map(|pair| &pair.parts) {
            // The part exists: it was added with this number.
            let _ = usage.remove(*part);
        }
        let (tables, versions, maps) = (before.tables, before.versions, before.maps);
        let (measured, next_part) = (before.measured, before.next_part);
        *self = Tracker { vnics, versions, maps, measured, usage, next_part, ..Tracker::default() };
        for (at, vnic) in (0..).zip(self.vnics.all()) {
            // The call fails only for a number in use.
            let _ = self.hose.add_vnic(VnicId(at), vnic.bandwidth);
        }
        for ((dpid, tenant), tables) in &tables {
            self.mark_all(*dpid, *tenant, tables);
        }
        self.tables = tables;
    }

    /// Handles changes of tenants' tables on a switch.
    pub(super) fn handle_changes(
        &mut self,
        dpid: Dpid,
        version: Version,
        changes: impl IntoIterator<Item = FlowChange>,
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
            // If both matches are equal, the actions, or a group in them, have changed.
            for match_ in [before, after.filter(|_| before != after)].into_iter().flatten() {
                self.mark(dpid, change.tenant, &match_);
            }
        }
    }

    /// Handles a disconnected switch; its entries are reported again when it connects.
    pub(super) fn handle_switch_gone(&mut self, dpid: Dpid) {
        self.versions.remove(&dpid);
        self.tables.retain(|(at, _), _| *at != dpid);
        self.mark_switch(dpid);
    }

    /// Handles new maps of tenants' own networks.
    pub(super) fn handle_maps(&mut self, maps: Maps) {
        let before = std::mem::replace(&mut self.maps, maps);
        let all: BTreeSet<u64> = before.keys().chain(self.maps.keys()).copied().collect();
        // An unchanged map is the same `Arc`.
        let same = |dpid: &u64| match (before.get(dpid), self.maps.get(dpid)) {
            (Some(before), Some(after)) => Arc::ptr_eq(before, after),
            _ => false,
        };
        let changed: Vec<u64> = all.into_iter().filter(|dpid| !same(dpid)).collect();
        for dpid in changed {
            self.mark_switch(Dpid(dpid));
        }
    }

    /// Handles measured rates of an interface; `None`: not measured any more.
    pub(super) fn handle_sent(&mut self, tenant: TenantId, vnic: MacAddress, sent: Sent) {
        let from = number(vnic.octets());
        let after: Option<BTreeMap<u128, Bandwidth>> = sent
            .map(|sent| sent.into_iter().map(|(to, rate)| (number(to.octets()), rate)).collect());
        let before = match after.clone() {
            Some(after) => self.measured.insert((tenant, from), after),
            None => self.measured.remove(&(tenant, from)),
        };
        let Some(from) = self.vnics.by_mac(tenant, from) else { return };
        let place = |to: &u128| Some((from, self.vnics.by_mac(tenant, *to)?));
        match (before, after) {
            (Some(before), Some(after)) => {
                let all = before.keys().chain(after.keys());
                let differ = all.filter(|to| before.get(to) != after.get(to));
                self.rated.extend(differ.filter_map(place));
            }
            // All other receivers get nothing, or their rates are not measured any more.
            (None, Some(_)) | (Some(_), None) => {
                self.rated.extend(self.vnics.of(tenant).map(|to| (from, to)));
            }
            (None, None) => {}
        }
    }

    /// Handles links that went up or down.
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

    /// Traces again a number of pairs that may have changed. Returns whether more are left; if not, the usage agrees
    /// with tables, links and interfaces.
    pub(super) fn settle(
        &mut self,
        network: &Network,
        sees: &dyn Fn(TenantId, PortId) -> bool,
        most: usize,
    ) -> bool {
        let Tracker { vnics, tables, versions, maps, dirty, .. } = self;
        let readdresses = Cell::new(false);
        let ground = Ground { network, tables, versions, maps, sees, readdresses };
        let mut all = Vec::new();
        while all.len() < most
            && let Some(pair) = dirty.pop_first()
        {
            if let Some((from, to)) = vnics.pair(pair) {
                all.push(find(&ground, pair, from, to));
            }
        }
        let (mut gone, mut new) = (Vec::new(), Vec::new());
        for found in &all {
            let had = self.pairs.get(&found.pair).is_some_and(|known| known.flows > 0);
            let stream = stream(found.pair);
            match (had, found.spread.flows > 0) {
                (true, false) => gone.push(stream),
                (false, true) => {
                    let ends = [found.pair.0, found.pair.1].map(|at| VnicId(at.into()));
                    new.push((stream, ends[0], ends[1]));
                }
                _ => {}
            }
        }
        // The call refuses only missing streams, or streams that exist already.
        let changes = self.hose.change(&gone, &new).unwrap_or_default();
        for found in all {
            self.rated.insert(found.pair);
            self.keep(found, network);
        }
        for Change { flow, rate } in changes {
            let pair = pair_of(flow);
            if self.measured_rate(pair).is_none() {
                self.set_rate(pair, rate, network);
            }
        }
        for pair in std::mem::take(&mut self.rated) {
            self.rate(pair, network);
        }
        !self.dirty.is_empty()
    }

    /// The load of flows on links.
    pub(super) fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Links whose load has changed since the last call.
    pub(super) fn take_touched(&mut self) -> BTreeSet<LinkId> {
        self.usage.take_touched()
    }

    /// The numbers of followed flows, and of flows that do not reach their receiver.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.flows, self.lost)
    }

    /// Sets the rate of a pair: the measured rate, or otherwise the nominal rate.
    fn rate(&mut self, pair: Pair, network: &Network) {
        let measured = self.measured_rate(pair);
        let rate = measured.or_else(|| self.hose.rate(stream(pair))).unwrap_or_default();
        self.set_rate(pair, rate, network);
    }

    fn set_rate(&mut self, pair: Pair, rate: Bandwidth, network: &Network) {
        for (share, part, _) in self.pairs.get(&pair).into_iter().flat_map(|known| &known.parts) {
            // The call refuses flows on a removed link; such a pair is traced again, and then gets its rate.
            let _ = self.usage.set_rate(network, *part, share.of(rate));
        }
    }

    /// The measured rate of a pair, if an agent measures it.
    fn measured_rate(&self, pair: Pair) -> Option<Bandwidth> {
        if self.measured.is_empty() {
            return None;
        }
        let (from, to) = self.vnics.pair(pair)?;
        let sent = self.measured.get(&(from.tenant, from.mac))?;
        Some(sent.get(&to.mac).copied().unwrap_or_default())
    }

    /// Replaces the state of a pair by the result of a trace.
    fn keep(&mut self, found: Found, network: &Network) {
        let Found { pair, spread, visited, is_readdressed } = found;
        let Some((from, _)) = self.vnics.pair(pair) else { return };
        let (tenant, first) = (from.tenant, from.port.dpid);
        let is_blank =
            spread.flows == 0 && !is_readdressed && visited.iter().all(|dpid| *dpid == first);
        let before = self.pairs.remove(&pair).unwrap_or_default();
        let mut known = Followed {
            flows: spread.flows,
            lost: spread.lost,
            parts: Vec::with_capacity(spread.parts.len()),
            visited: if is_blank { BTreeSet::new() } else { visited },
            is_readdressed,
        };
        self.flows = self.flows + known.flows - before.flows;
        self.lost = self.lost + known.lost - before.lost;
        let nowhere = BTreeSet::new();
        let readdressed = [&before, &known];
        let readdressed =
            readdressed.map(|it| if it.is_readdressed { &it.visited } else { &nowhere });
        update(&mut self.visitors, tenant, pair, &before.visited, &known.visited);
        update(&mut self.readdressed, tenant, pair, readdressed[0], readdressed[1]);
        let mut parts = before.parts;
        for (share, links) in spread.parts {
            let part = match parts.iter().position(|(other, ..)| *other == share) {
                Some(at) => {
                    let (_, part, before) = parts.swap_remove(at);
                    if before != links
                        && let Err(error) = self.usage.reroute(network, part, links.clone())
                    {
                        tracing::warn!(%error, "a flow stays where it was reckoned with");
                        known.parts.push((share, part, before));
                        continue;
                    }
                    part
                }
                None => {
                    let part = FlowId(self.next_part);
                    self.next_part += 1;
                    let flow = Flow { tenant, rate: Bandwidth::ZERO, links: links.clone() };
                    if let Err(error) = self.usage.add(network, part, flow) {
                        tracing::warn!(%error, "a flow is not reckoned with");
                        continue;
                    }
                    part
                }
            };
            known.parts.push((share, part, links));
        }
        for (_, part, _) in parts {
            let _ = self.usage.remove(part);
        }
        if !is_blank {
            self.pairs.insert(pair, known);
        }
    }

    /// Marks the pairs that an entry can concern for another trace.
    fn mark(&mut self, dpid: Dpid, tenant: TenantId, match_: &Match) {
        /// The most pairs that are looked up one by one instead of searching all pairs.
        const FEW: usize = 64;
        let Tracker { vnics, visitors, readdressed, maps, dirty, .. } = self;
        let (from, to) = vnics.ends(tenant, match_);
        let visitors = visitors.get(&(dpid, tenant));
        let is_visitor = |pair: &Pair| visitors.is_some_and(|known| known.contains(pair));
        // Packets that are rewritten on the way have other addresses than sender and receiver.
        dirty.extend(readdressed.get(&(dpid, tenant)).into_iter().flatten());
        let all = vnics.of(tenant);
        let product = from.count().zip(to.count()).map(|(from, to)| from * to);
        if product.is_some_and(|product| product <= FEW) {
            let pairs =
                from.iter(all.clone()).flat_map(|a| to.iter(all.clone()).map(move |b| (a, b)));
            let pairs = pairs.filter(|(a, b)| a != b);
            let stands =
                |at: u32| vnics.all().get(at as usize).is_some_and(|it| it.port.dpid == dpid);
            dirty.extend(pairs.filter(|pair| stands(pair.0) || is_visitor(pair)));
            return;
        }
        let visitors = visitors.into_iter().flatten().copied();
        dirty.extend(visitors.filter(|(a, b)| from.has(*a) && to.has(*b)));
        // In a network the tenant has its own port numbers.
        let is_network = maps.get(&dpid.0).is_some_and(|map| map.members.contains_key(&tenant));
        let port = match_.exact_value(Field::InPort).filter(|_| !is_network);
        let stands = |at: &u32| {
            let vnic = vnics.all().get(*at as usize);
            port.is_none() || port == vnic.map(|vnic| u128::from(vnic.port.port.get()))
        };
        for a in vnics.at(tenant, dpid).iter().copied().filter(|at| from.has(*at) && stands(at)) {
            dirty.extend(to.iter(all.clone()).filter(|b| a != *b).map(|b| (a, b)));
        }
    }

    /// Marks the pairs that any entry of a tenant on a switch can concern for another trace.
    fn mark_all(&mut self, dpid: Dpid, tenant: TenantId, tables: &Tables) {
        for entry in tables.entries() {
            self.mark(dpid, tenant, &entry.match_);
        }
    }

    fn mark_switch(&mut self, dpid: Dpid) {
        let visitors = self.visitors.iter().filter(|((at, _), _)| *at == dpid);
        self.dirty.extend(visitors.flat_map(|(_, pairs)| pairs));
        let tables = std::mem::take(&mut self.tables);
        for ((_, tenant), tables) in tables.iter().filter(|((at, _), _)| *at == dpid) {
            self.mark_all(dpid, *tenant, tables);
        }
        self.tables = tables;
    }
}

/// Traces all packets from one interface to another.
fn find(ground: &Ground<'_>, pair: Pair, from: &Vnic, to: &Vnic) -> Found {
    let mut visited = BTreeSet::new();
    let mut traces = Vec::new();
    for packets in from.packets(to) {
        let mut trace = ground.trace(from.tenant, from.station(), to.station(), &packets);
        visited.append(&mut trace.visited);
        traces.push(trace.flows);
    }
    let is_readdressed = ground.readdresses.take();
    Found { pair, spread: Spread::new(&traces), visited, is_readdressed }
}

/// Moves a pair from the sets of some switches to those of others.
fn update(
    sets: &mut HashMap<(Dpid, TenantId), BTreeSet<Pair>>,
    tenant: TenantId,
    pair: Pair,
    before: &BTreeSet<Dpid>,
    after: &BTreeSet<Dpid>,
) {
    for dpid in before.difference(after) {
        if let Some(set) = sets.get_mut(&(*dpid, tenant)) {
            set.remove(&pair);
            if set.is_empty() {
                sets.remove(&(*dpid, tenant));
            }
        }
    }
    for dpid in after.difference(before) {
        sets.entry((*dpid, tenant)).or_default().insert(pair);
    }
}

/// A pair's number in the hose.
fn stream((from, to): Pair) -> FlowId {
    FlowId(u64::from(from) << 32 | u64::from(to))
}

fn pair_of(FlowId(stream): FlowId) -> Pair {
    ((stream >> 32) as u32, stream as u32)
}

#[cfg(test)]
mod tests;
