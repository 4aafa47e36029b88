//! `GET /api/v1/topology` as JSON. Names and units are part of the interface: add, do not change.

use fabric::{End, PortId, PortNumber};
use serde::Serialize;
use utoipa::ToSchema;

use crate::topology::{Origin, Snapshot, Watch};

/// The known physical network.
#[derive(Debug, Serialize, ToSchema)]
pub struct Topology {
    /// Grows with each change; 0 for a tenant.
    number: u64,
    switches: Vec<Switch>,
    /// Links between switches, including declared and discovered links that are down.
    links: Vec<Link>,
    /// Declared edge ports; empty for a tenant.
    edges: Vec<Edge>,
    /// Received probes that Weir ignored; 0 for a tenant.
    refused_probes: u64,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PhysicalSwitch)]
struct Switch {
    dpid: String,
    ports: Vec<Port>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PhysicalPort)]
struct Port {
    port: u32,
    up: bool,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PhysicalLink)]
struct Link {
    #[schema(min_items = 2, max_items = 2)]
    between: [Place; 2],
    up: bool,
    /// `declared` or `discovered`.
    known: &'static str,
    /// The bandwidth in each direction; absent for a link that was never up.
    bandwidth_bits_per_second: Option<u64>,
    latency_us: Option<u64>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EdgePort)]
struct Edge {
    #[serde(flatten)]
    at: Place,
    bandwidth_bits_per_second: u64,
}

/// A port of a switch.
#[derive(Debug, Serialize, ToSchema)]
pub struct Place {
    dpid: String,
    port: u32,
}

impl From<PortId> for Place {
    fn from(port: PortId) -> Place {
        Place { dpid: port.dpid.to_string(), port: port.port.get() }
    }
}

impl Topology {
    /// The topology for a tenant, without the edge ports of others and without the number of changes.
    pub(super) fn without_others(self) -> Topology {
        Topology { number: 0, edges: Vec::new(), refused_probes: 0, ..self }
    }

    /// The topology as known now.
    pub fn new(watch: &Watch) -> Topology {
        let snapshot: &Snapshot = &watch.current();
        let network = &snapshot.network;
        let switches = network.switches().map(|(_, switch)| {
            // The port LOCAL leads to the switch itself.
            let wired = switch.ports().filter(|(id, _)| id.port != PortNumber::LOCAL);
            let ports = wired.map(|(id, up)| Port { port: id.port.get(), up }).collect();
            Switch { dpid: switch.dpid().to_string(), ports }
        });
        let mut switches: Vec<Switch> = switches.collect();
        switches.sort_by(|a, b| a.dpid.cmp(&b.dpid));
        let links = snapshot.wires.iter().map(|wire| {
            let link = wire.link.map(|link| network.link(link));
            Link {
                between: wire.ends.map(Place::from),
                up: link.is_some_and(|link| link.is_up()),
                known: match wire.origin {
                    Origin::Declared => "declared",
                    Origin::Discovered => "discovered",
                },
                bandwidth_bits_per_second: link.map(|link| link.capacity.bits_per_second()),
                latency_us: link.map(|link| fabric::time::nanos(link.latency) / 1_000),
            }
        });
        let edges = network.links().filter_map(|(_, link)| match link.to {
            End::Hosts(port) => Some(Edge {
                at: port.into(),
                bandwidth_bits_per_second: link.capacity.bits_per_second(),
            }),
            End::Switch { .. } => None,
        });
        Topology {
            number: snapshot.number,
            switches,
            links: links.collect(),
            edges: edges.collect(),
            refused_probes: watch.refused_probes(),
        }
    }
}
