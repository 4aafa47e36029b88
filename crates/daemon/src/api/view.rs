//! The JSON of the REST interface. Names and units are part of the interface: add, do not change.

use std::sync::Arc;

use hypervisor::policy::{Permission, Rate, Statistics, Switches};
use openflow::Version;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::config;
use crate::dpid::Dpid;
use crate::metrics::{
    Direction, DropReason, Histogram, Snapshot, SwitchMetrics, TenantMetrics, contacts,
};

/// A tenant as configured, with its present state.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Tenant {
    /// The name.
    pub name: String,
    /// The weight.
    pub weight: u32,
    controllers: Vec<String>,
    flowspace: Vec<Entry>,
    limits: Limits,
    maxima: Maxima,
    queues: Vec<u32>,
    /// Experimenters as `0x` and eight hexadecimal digits.
    experimenters: Vec<String>,
    /// The maximum age of a statistics answer in milliseconds; 0: passthrough.
    statistics_max_age_ms: u64,
    /// One element per connected switch.
    pub switches: Vec<OnSwitch>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = FlowspaceEntry)]
struct Entry {
    r#match: String,
    priority: u16,
    /// dpids, or `any`.
    switches: Vec<String>,
    permission: String,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
struct Limits {
    flows: u32,
    entries: u32,
    packet_out: Option<Bucket>,
    flow_mod: Option<Bucket>,
    statistics: Option<Bucket>,
    packet_in: Option<Bucket>,
    state_bytes: u64,
    state_changes: Option<Bucket>,
}

/// The maximum size of a tenant's own network; null: no bound.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = NetworkMaxima)]
struct Maxima {
    switches: Option<u64>,
    ports: Option<u64>,
    links: Option<u64>,
    hosts: Option<u64>,
    /// The reserved bandwidth of all links in one direction; a link with a backup counts twice.
    bandwidth_bits_per_second: Option<u64>,
    /// Physical switches and ports where the tenant's account may put ports, in addition to the
    /// physical ports of the present network.
    edges: Vec<String>,
}

/// Messages or changes per second, and the burst.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
struct Bucket {
    rate: u32,
    burst: u32,
}

/// A connected switch.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Switch {
    /// The datapath id; for a big switch a number of Weir's own.
    pub dpid: String,
    /// The name in `[[switches]]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// For a big switch: the datapath id that its tenant sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_as: Option<String>,
    /// The negotiated OpenFlow version.
    pub openflow: String,
    /// Messages from the switch.
    pub messages_received: u64,
    /// Messages to the switch.
    pub messages_sent: u64,
    packet_in_unclaimed: u64,
    unexpected: u64,
    unanswered: u64,
    own_refused: u64,
    /// Rules of other installations of Weir on the switch when it connected.
    others_rules: u64,
    window: u64,
    outstanding: u64,
    /// The tenants with a part of the switch.
    pub tenants: Vec<OfTenant>,
}

/// A switch of a tenant.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = TenantOnSwitch)]
pub struct OnSwitch {
    dpid: String,
    /// The tenant's counters on the switch.
    #[serde(flatten)]
    pub counts: Counts,
}

/// A tenant of a switch.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = SwitchOfTenant)]
pub struct OfTenant {
    name: String,
    /// The tenant's counters on the switch.
    #[serde(flatten)]
    pub counts: Counts,
}

/// The counters of one tenant on one switch, since the switch connected.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = TenantCounts)]
pub struct Counts {
    controllers_connected: u64,
    /// The connections to the tenant's controllers.
    pub controllers: Vec<Contact>,
    /// The tenant's entries.
    pub flows: u64,
    /// The rules on the switch for these entries.
    pub entries: u64,
    messages_from_controllers: u64,
    messages_to_controllers: u64,
    messages_to_switch: u64,
    /// The tenant's requests that Weir answered with an error.
    pub refused: u64,
    packet_in_dropped: u64,
    queue_south: u64,
    queue_north: u64,
    added_latency_south: Option<Latency>,
    added_latency_north: Option<Latency>,
}

/// A connection to a controller.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = ControllerContact)]
pub struct Contact {
    /// The address of the controller.
    pub address: String,
    /// Whether the connection is established.
    pub connected: bool,
    /// The number of attempts to connect.
    pub dials: u64,
    /// The reason of the last failure or end; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// The reason in one word, as in the metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error_reason: Option<String>,
    /// The time of the last failure or end, in milliseconds of Unix time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error_ms: Option<u64>,
    /// The time from the last failure until the next attempt; absent while the controller is
    /// connected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

/// Upper bounds of quantiles, in microseconds.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Latency {
    p50_us: f64,
    p99_us: f64,
}

impl Tenant {
    /// A tenant's configuration, and its counters on the tenant's switches.
    pub fn new(tenant: &config::Tenant, switches: &[Arc<SwitchMetrics>]) -> Tenant {
        let on_switches = switches.iter().filter_map(|switch| {
            let metrics =
                switch.tenants().into_iter().find(|metrics| metrics.name == tenant.name)?;
            Some(OnSwitch { dpid: Dpid(switch.dpid).to_string(), counts: Counts::new(&metrics) })
        });
        let limits = &tenant.limits;
        let bucket = |rate: Option<Rate>| {
            rate.map(|rate| Bucket { rate: rate.per_second, burst: rate.burst })
        };
        Tenant {
            name: tenant.name.clone(),
            weight: tenant.weight,
            controllers: tenant.controllers.iter().map(ToString::to_string).collect(),
            flowspace: tenant.flowspace.iter().map(Entry::new).collect(),
            limits: Limits {
                flows: limits.flows,
                entries: limits.entries,
                packet_out: bucket(limits.packet_out),
                flow_mod: bucket(limits.flow_mod),
                statistics: bucket(limits.statistics),
                packet_in: bucket(limits.packet_in),
                state_bytes: tenant.state_bytes,
                state_changes: bucket(Some(limits.state_changes)),
            },
            maxima: Maxima {
                switches: tenant.maxima.switches,
                ports: tenant.maxima.ports,
                links: tenant.maxima.links,
                hosts: tenant.maxima.hosts,
                bandwidth_bits_per_second: tenant.maxima.bandwidth.map(|it| it.bits_per_second()),
                edges: tenant.maxima.edges.iter().map(ToString::to_string).collect(),
            },
            queues: tenant.queues.clone(),
            experimenters: tenant.experimenters.iter().map(|id| format!("{id:#010x}")).collect(),
            statistics_max_age_ms: match tenant.statistics {
                Statistics::Passthrough => 0,
                Statistics::Cached { max_age } => max_age / 1_000_000,
            },
            switches: on_switches.collect(),
        }
    }
}

impl Entry {
    fn new(entry: &config::Entry) -> Entry {
        Entry {
            r#match: entry.text.clone(),
            priority: entry.priority,
            switches: match &entry.switches {
                Switches::Any => vec!["any".to_owned()],
                Switches::Only(dpids) => dpids.iter().map(|&dpid| Dpid(dpid).to_string()).collect(),
            },
            permission: match entry.permission {
                Permission::Read => "read".to_owned(),
                Permission::Write => "write".to_owned(),
            },
        }
    }
}

impl Switch {
    /// The counters of a switch, and of all tenants on the switch.
    pub fn new(metrics: &SwitchMetrics, config: &config::Config) -> Switch {
        let tenants = metrics.tenants();
        let known_as = metrics.known_as();
        let listed = config.switches.iter().find(|listed| listed.dpid == metrics.dpid);
        Switch {
            dpid: Dpid(metrics.dpid).to_string(),
            name: listed.and_then(|listed| listed.name.clone()),
            seen_as: (known_as != metrics.dpid).then(|| Dpid(known_as).to_string()),
            openflow: Version(metrics.version).to_string(),
            messages_received: metrics.received.total(),
            messages_sent: metrics.sent.total(),
            packet_in_unclaimed: metrics.packet_in_unclaimed.get(),
            unexpected: metrics.unexpected.get(),
            unanswered: metrics.unanswered.get(),
            own_refused: metrics.own_refused.get(),
            others_rules: metrics.others_rules.get(),
            window: metrics.window.get(),
            outstanding: metrics.outstanding.get(),
            tenants: tenants
                .iter()
                .map(|tenant| OfTenant { name: tenant.name.clone(), counts: Counts::new(tenant) })
                .collect(),
        }
    }
}

impl Counts {
    fn new(metrics: &TenantMetrics) -> Counts {
        let messages = |direction| metrics.messages(direction).total();
        Counts {
            controllers_connected: metrics.controllers.get(),
            controllers: metrics.contacts.all().into_iter().map(Contact::new).collect(),
            flows: metrics.flows.get(),
            entries: metrics.entries.get(),
            messages_from_controllers: messages(Direction::FromController),
            messages_to_controllers: messages(Direction::ToController),
            messages_to_switch: messages(Direction::ToSwitch),
            refused: metrics.refused(),
            packet_in_dropped: DropReason::ALL
                .iter()
                .map(|(why, _)| metrics.dropped(*why).get())
                .sum(),
            queue_south: metrics.queue_southbound.get(),
            queue_north: metrics.queue_northbound.get(),
            added_latency_south: Latency::new(&metrics.added_southbound),
            added_latency_north: Latency::new(&metrics.added_northbound),
        }
    }
}

impl Contact {
    /// The state of a connection, with its address.
    pub fn new((address, contact): (String, contacts::Contact)) -> Contact {
        let (reason, words, at) = match contact.last_error {
            Some((reason, words, at)) => (Some(reason.to_owned()), Some(words), Some(at)),
            None => (None, None, None),
        };
        Contact {
            address,
            connected: contact.connected,
            dials: contact.dials,
            last_error: words,
            last_error_reason: reason,
            last_error_ms: at,
            retry_after_ms: contact.retry,
        }
    }
}

impl Latency {
    fn new(histogram: &Histogram) -> Option<Latency> {
        Latency::of(&histogram.snapshot())
    }

    /// The quantiles of a histogram; `None` for an empty histogram.
    pub fn of(snapshot: &Snapshot) -> Option<Latency> {
        let micros = |q| snapshot.quantile(q).map(|nanos| nanos as f64 / 1_000.0);
        Some(Latency { p50_us: micros(0.5)?, p99_us: micros(0.99)? })
    }
}
