//! A summary of the present state, small enough to be sent every second: the first data of the page. Names and units
//! are part of the interface: add, do not change.
//!
//! The summary has absolute counters; two summaries give rates. Large data that changes rarely (the topology, networks,
//! the configuration) is not included: the summary has a number that grows with each change, and other paths have the
//! data.

use std::collections::BTreeMap;

use fabric::PortId;
use serde::Serialize;
use utoipa::ToSchema;

use super::sources::Sources;
use super::view::Latency;
use crate::dpid::Dpid;
use crate::lock::lock;
use crate::metrics::{Direction, Grant, Snapshot, Sums, SwitchMetrics, TenantMetrics};

/// The summary of the present state.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct Summary {
    /// The time of the summary, in milliseconds of Unix time.
    pub time_ms: u64,
    /// The start of Weir; after another start the counters begin again.
    pub started_ms: u64,
    /// The reason why state cannot be stored, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store_full: Option<String>,
    /// Grows with each change of the configuration; 0 for a tenant's account.
    pub configuration: u64,
    /// Grows with each change of `/api/v1/topology`; 0 for a tenant's account.
    pub topology: u64,
    /// Grows with each change of `/api/v1/networks`; 0 for a tenant's account.
    pub networks: u64,
    /// Connected switches, by datapath id. Empty for a tenant's account, as are the links.
    pub switches: Vec<SwitchNow>,
    /// Tenants, in the order of the file.
    pub tenants: Vec<TenantNow>,
    /// Links, in the order of `/api/v1/topology`.
    pub links: Vec<LinkNow>,
}

/// The state of a switch.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SwitchNow {
    /// As in `/api/v1/switches`.
    dpid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The negotiated OpenFlow version.
    openflow: String,
    /// Messages from the switch and to the switch since it connected.
    received: u64,
    sent: u64,
    /// The window, the unacknowledged messages, and the waiting messages.
    window: u64,
    outstanding: u64,
    queue: u64,
    /// Tenants' entries, and the rules for these entries.
    flows: u64,
    entries: u64,
}

/// The state of a tenant, over all switches.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TenantNow {
    name: String,
    /// Whether the tenant has a network of its own.
    has_network: bool,
    /// Whether Weir sends link labels to the tenant.
    has_labels: bool,
    /// The number of switches on which the tenant has a part.
    switches: u64,
    /// Connections to the tenant's controllers: the established ones, and all.
    connected: u64,
    controllers: u64,
    /// Messages from the tenant's controllers and to them, by type.
    #[schema(value_type = BTreeMap<String, u64>)]
    from_controllers: BTreeMap<&'static str, u64>,
    #[schema(value_type = BTreeMap<String, u64>)]
    to_controllers: BTreeMap<&'static str, u64>,
    /// The tenant's requests that Weir answered with an error, by error.
    refused: BTreeMap<String, u64>,
    /// PACKET_INs that did not reach the tenant, by reason.
    #[schema(value_type = BTreeMap<String, u64>)]
    dropped: BTreeMap<&'static str, u64>,
    /// The latency that Weir added to messages towards switches and towards controllers within the last seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    added_south: Option<Latency>,
    #[serde(skip_serializing_if = "Option::is_none")]
    added_north: Option<Latency>,
    /// The tenant's entries, and the rules for these entries on switches.
    flows: u64,
    entries: u64,
    /// The switch where the tenant uses the largest part of its share.
    #[serde(skip_serializing_if = "Option::is_none")]
    fullest: Option<Fullest>,
    queue_south: u64,
    queue_north: u64,
}

/// The switch where a tenant uses the largest part of the rules that it may have.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Fullest {
    switch: String,
    rules: u64,
    may: u64,
}

/// The state of a link.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct LinkNow {
    up: bool,
    /// Bits per second from the first port of the link, and from the second: by the switches' counters over the last 10
    /// s. If these are not known yet, the sum of the flows that Weir follows. Absent if neither is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_items = 2, max_items = 2)]
    load: Option<[u64; 2]>,
}

/// Latency histograms of some seconds ago, by tenant: south and north.
pub(super) type Before = BTreeMap<String, [Option<Snapshot>; 2]>;

impl Summary {
    /// The present summary, with the latency added since `before`; and the present histograms.
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
            let loads = lock(&switch.port_loads);
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
                has_labels: labels.tenant(name).is_some(),
                ..TenantNow::new(name, &sum, part, before)
            }
        });
        let tenants = tenants.collect();
        let snapshot = topology.current();
        let followed = (metrics.process.labels.flows.get() > 0).then(|| labels.loads());
        let load = |end: PortId| {
            let followed = || Some(followed.as_ref()?.get(&end).copied().unwrap_or(0));
            sent.get(&(end.dpid.0, end.port.get())).copied().or_else(followed)
        };
        let links = snapshot.wires.iter().map(|wire| LinkNow {
            up: wire.link.is_some_and(|link| snapshot.network.link(link).is_up()),
            load: load(wire.ends[0]).zip(load(wire.ends[1])).map(|(there, back)| [there, back]),
        });
        let summary = Summary {
            store_full: metrics.store_full(),
            configuration: metrics.process.reloads_applied.get(),
            topology: snapshot.number,
            networks,
            switches,
            tenants,
            links: links.collect(),
            ..Summary::default()
        };
        (summary, histograms)
    }

    /// The part of the summary that concerns one tenant. The tenant does not learn how often others change something.
    pub(super) fn of(&self, tenant: &str) -> Summary {
        let own = self.tenants.iter().filter(|it| it.name == tenant);
        Summary {
            time_ms: self.time_ms,
            started_ms: self.started_ms,
            tenants: own.cloned().collect(),
            ..Summary::default()
        }
    }
}

/// The sums of a tenant over all switches.
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
        let grant = lock(&tenant.grant);
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

/// The rules that a tenant may have in the largest of the switch's tables.
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
            has_labels: false,
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
    fn the_summary_for_a_tenant_has_no_switches_links_or_another_tenant() {
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
