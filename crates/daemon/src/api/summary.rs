//! How everything fares now, small enough to be told every second: what a page shows first. Names and units are part of the
//! interface: add, do not change.
//!
//! Counters are told as they are; whoever looks twice has rates. What is large and changes seldom (the topology, networks,
//! the configuration) is only named by a number that counts up with its changes, and asked for elsewhere.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use fabric::PortId;
use serde::Serialize;
use utoipa::ToSchema;

use super::sources::Sources;
use super::view::Latency;
use crate::dpid::Dpid;
use crate::metrics::{Direction, Grant, Snapshot, Sums, SwitchMetrics, TenantMetrics};

/// How everything fares.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Summary {
    /// When this was, in milliseconds of Unix time.
    pub time_ms: u64,
    /// When Weir began; another one has other counters.
    pub started_ms: u64,
    /// Why state cannot be stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store_full: Option<String>,
    /// Counts up with each change of the configuration. A tenant is told 0 here and below.
    pub configuration: u64,
    /// Counts up with each change of `/api/v1/topology`.
    pub topology: u64,
    /// Counts up with each change of `/api/v1/networks`.
    pub networks: u64,
    /// Connected switches, by their datapath ids. None where a tenant asks, and no links.
    pub switches: Vec<SwitchNow>,
    /// Tenants, in the order of the file.
    pub tenants: Vec<TenantNow>,
    /// Links, in the order of `/api/v1/topology`.
    pub links: Vec<LinkNow>,
}

/// How a switch fares.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SwitchNow {
    /// As in `/api/v1/switches`.
    dpid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The version that is spoken.
    openflow: String,
    /// Messages since it connected, from it and to it.
    received: u64,
    sent: u64,
    /// Messages that may be unacknowledged, that are, and that wait.
    window: u64,
    outstanding: u64,
    queue: u64,
    /// Tenants' entries, and what stands for them.
    flows: u64,
    entries: u64,
}

/// How a tenant fares, over all switches.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TenantNow {
    name: String,
    /// Whether it has a network of its own.
    has_network: bool,
    /// Whether it is told what is left of links.
    told_labels: bool,
    /// Switches on which it has a part.
    switches: u64,
    /// Connections to its controllers: those that stand, and all.
    connected: u64,
    controllers: u64,
    /// Messages from its controllers and to them, by type.
    #[schema(value_type = BTreeMap<String, u64>)]
    from_controllers: BTreeMap<&'static str, u64>,
    #[schema(value_type = BTreeMap<String, u64>)]
    to_controllers: BTreeMap<&'static str, u64>,
    /// Its requests that Weir answered with an error, by that.
    refused: BTreeMap<String, u64>,
    /// PACKET_INs that did not reach it, by the reason.
    #[schema(value_type = BTreeMap<String, u64>)]
    dropped: BTreeMap<&'static str, u64>,
    /// What Weir added to its messages towards switches and towards controllers within the last seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    added_south: Option<Latency>,
    #[serde(skip_serializing_if = "Option::is_none")]
    added_north: Option<Latency>,
    /// Its entries, and what stands for them on switches.
    flows: u64,
    entries: u64,
    /// Where it has the largest part of what it may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    fullest: Option<Fullest>,
    queue_south: u64,
    queue_north: u64,
}

/// The switch where a tenant has the largest part of the rules that it may have.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Fullest {
    switch: String,
    rules: u64,
    may: u64,
}

/// How a link fares.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct LinkNow {
    up: bool,
    /// Bits per second from its first port, and from its second: by the switches' counters over the last 10 s; where
    /// these are not known yet, the sum of the flows that Weir follows. Absent where neither is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_items = 2, max_items = 2)]
    load: Option<[u64; 2]>,
}

/// Latency histograms of some seconds ago, by tenant: south and north.
pub(super) type Before = BTreeMap<String, [Option<Snapshot>; 2]>;

impl Summary {
    /// As it is now, with what was added to messages since `before`; and the histograms as they are now.
    pub(super) fn new(sources: &Sources, before: &Before) -> (Summary, Before) {
        let Sources { metrics, current, topology, labels, networks, .. } = sources;
        let (switches, mut sums) = metrics.sums();
        let mut parts: BTreeMap<String, Parts> = BTreeMap::new();
        let mut histograms = Before::new();
        let config = current.get();
        let listed: BTreeMap<u64, &String> = config
            .switches
            .iter()
            .filter_map(|listed| Some((listed.dpid, listed.name.as_ref()?)))
            .collect();
        let mut sent = BTreeMap::new();
        for switch in &switches {
            let loads = switch.port_loads.lock().unwrap_or_else(PoisonError::into_inner);
            sent.extend(loads.iter().map(|(&port, &load)| ((switch.dpid, port), load)));
        }
        let switches = switches.iter().map(|switch| {
            let name = listed.get(&switch.dpid).copied().cloned();
            SwitchNow::new(switch, name, &mut parts)
        });
        let switches = switches.collect();
        let (networks, having) = networks.brief();
        let tenants = config.tenants.iter().map(|tenant| {
            let name = tenant.name.as_str();
            let sum = sums.remove(name).unwrap_or_default();
            let (part, before) = (parts.remove(name).unwrap_or_default(), before.get(name));
            histograms.insert(name.to_owned(), sum.added().clone());
            TenantNow {
                has_network: having.contains(name),
                told_labels: labels.tenant(name).is_some(),
                ..TenantNow::new(name, &sum, part, before)
            }
        });
        let tenants = tenants.collect();
        let snapshot = topology.current();
        let followed = (labels.counts().flows > 0).then(|| labels.loads());
        let load = |end: PortId| {
            let followed = || Some(followed.as_ref()?.get(&end).copied().unwrap_or(0));
            sent.get(&(end.dpid.0, end.port.get())).copied().or_else(followed)
        };
        let links = snapshot.wires.iter().map(|wire| LinkNow {
            up: wire.link.is_some_and(|link| snapshot.network.link(link).is_up()),
            load: load(wire.ends[0]).zip(load(wire.ends[1])).map(|(there, back)| [there, back]),
        });
        let summary = Summary {
            time_ms: 0,
            started_ms: 0,
            store_full: metrics.store_full(),
            configuration: metrics.process.reloads_applied.get(),
            topology: snapshot.number,
            networks,
            switches,
            tenants,
            links: links.collect(),
        };
        (summary, histograms)
    }
}

impl Summary {
    /// What of it concerns one tenant. How much others change is none of its business, either.
    pub(super) fn of(&self, tenant: &str) -> Summary {
        let own = self.tenants.iter().filter(|it| it.name == tenant);
        Summary {
            time_ms: self.time_ms,
            started_ms: self.started_ms,
            store_full: None,
            configuration: 0,
            topology: 0,
            networks: 0,
            switches: Vec::new(),
            tenants: own.cloned().collect(),
            links: Vec::new(),
        }
    }
}

/// What a tenant has on switches now.
#[derive(Default)]
struct Parts {
    switches: u64,
    connected: u64,
    controllers: u64,
    flows: u64,
    entries: u64,
    fullest: Option<Fullest>,
    queues: [u64; 2],
}

impl SwitchNow {
    fn new(
        switch: &SwitchMetrics,
        name: Option<String>,
        parts: &mut BTreeMap<String, Parts>,
    ) -> SwitchNow {
        let dpid = Dpid(switch.known_as()).to_string();
        let (mut queue, mut flows, mut entries) = (0, 0, 0);
        for tenant in switch.tenants() {
            queue += tenant.queue_southbound.get() + tenant.queue_northbound.get();
            flows += tenant.flows.get();
            entries += tenant.entries.get();
            match parts.get_mut(&tenant.name) {
                Some(part) => part.add(&tenant, &dpid),
                None => parts.entry(tenant.name.clone()).or_default().add(&tenant, &dpid),
            }
        }
        SwitchNow {
            dpid: Dpid(switch.dpid).to_string(),
            name,
            openflow: openflow::Version(switch.version).to_string(),
            received: switch.received.total(),
            sent: switch.sent.total(),
            window: switch.window.get(),
            outstanding: switch.outstanding.get(),
            queue,
            flows,
            entries,
        }
    }
}

impl Parts {
    fn add(&mut self, tenant: &TenantMetrics, switch: &str) {
        self.switches += 1;
        self.connected += tenant.controllers.get();
        self.controllers += tenant.contacts.all().len() as u64;
        self.flows += tenant.flows.get();
        self.entries += tenant.entries.get();
        let [south, north] = &mut self.queues;
        *south += tenant.queue_southbound.get();
        *north += tenant.queue_northbound.get();
        let grant = tenant.grant.lock().unwrap_or_else(PoisonError::into_inner);
        let rules = tenant.entries.get();
        let Some(may) = may(&grant) else { return };
        let is_fuller = |than: &Fullest| {
            u128::from(rules) * u128::from(than.may) > u128::from(than.rules) * u128::from(may)
        };
        if self.fullest.as_ref().is_none_or(is_fuller) {
            self.fullest = Some(Fullest { switch: switch.to_owned(), rules, may });
        }
    }
}

/// How many rules a tenant may have in the largest part of a switch's tables.
fn may(grant: &Grant) -> Option<u64> {
    let largest = grant.shares.iter().map(|share| share.may).max();
    grant.served.then(|| u64::from(largest.unwrap_or(grant.most_rules)))
}

impl TenantNow {
    fn new(
        name: &str,
        sum: &Sums,
        part: Parts,
        before: Option<&[Option<Snapshot>; 2]>,
    ) -> TenantNow {
        let added = |at: usize| {
            let now = sum.added().get(at)?.as_ref()?;
            match before.and_then(|before| before.get(at)?.as_ref()) {
                Some(before) => Latency::of(&now.since(before)),
                None => Latency::of(now),
            }
        };
        let [queue_south, queue_north] = part.queues;
        TenantNow {
            name: name.to_owned(),
            has_network: false,
            told_labels: false,
            switches: part.switches,
            connected: part.connected,
            controllers: part.controllers,
            from_controllers: sum.messages(Direction::FromController),
            to_controllers: sum.messages(Direction::ToController),
            refused: sum.refused().clone(),
            dropped: sum.dropped(),
            added_south: added(0),
            added_north: added(1),
            flows: part.flows,
            entries: part.entries,
            fullest: part.fullest,
            queue_south,
            queue_north,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_is_told_of_nobody_else() {
        let registry = crate::metrics::Registry::new();
        let tenant = |name| TenantNow::new(name, &Sums::default(), Parts::default(), None);
        let summary = Summary {
            time_ms: 7,
            started_ms: 3,
            store_full: Some("no space left, red writes too much".to_owned()),
            configuration: 4,
            topology: 5,
            networks: 6,
            switches: vec![SwitchNow::new(&registry.switch(1, 4), None, &mut BTreeMap::new())],
            tenants: vec![tenant("red"), tenant("blue")],
            links: vec![LinkNow { up: true, load: Some([1, 2]) }],
        };
        let own = serde_json::to_value(summary.of("blue")).unwrap();
        assert_eq!(own["tenants"].as_array().map(Vec::len), Some(1));
        assert_eq!(own["tenants"][0]["name"], "blue");
        for (key, empty) in [
            ("switches", serde_json::json!([])),
            ("links", serde_json::json!([])),
            ("topology", 0.into()),
            ("networks", 0.into()),
            ("configuration", 0.into()),
            ("store_full", serde_json::Value::Null),
        ] {
            assert_eq!(own[key], empty, "{key}");
        }
        let nobody = serde_json::to_value(summary.of("nobody")).unwrap();
        assert_eq!(nobody["tenants"], serde_json::json!([]));
    }
}
