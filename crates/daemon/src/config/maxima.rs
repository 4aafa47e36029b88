//! `[tenants.maxima]`: the maximum size of a tenant's own network, from the file or by REST.

use std::fmt;

use fabric::embedding::Spec;
use fabric::{Bandwidth, Dpid, PortId};

use super::reader::{Table, Value};
use super::topology::bandwidth;

/// The maxima; an absent key has no bound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maxima {
    /// The most switches.
    pub switches: Option<u64>,
    /// The most edge ports.
    pub ports: Option<u64>,
    /// The most links.
    pub links: Option<u64>,
    /// The most hosts.
    pub hosts: Option<u64>,
    /// The most reserved bandwidth of all links in one direction; a link with a backup counts
    /// twice.
    pub bandwidth: Option<Bandwidth>,
    /// Physical ports where the tenant's account may put ports, in addition to those of its present
    /// network.
    pub edges: Vec<Edge>,
}

/// Physical ports that a tenant may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// All ports of a switch.
    Switch(Dpid),
    /// One port.
    Port(PortId),
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Edge::Switch(dpid) => dpid.fmt(f),
            Edge::Port(port) => port.fmt(f),
        }
    }
}

impl Maxima {
    /// Whether a physical port is one of `edges`.
    pub fn has_edge(&self, port: PortId) -> bool {
        self.edges.iter().any(|edge| match *edge {
            Edge::Switch(dpid) => dpid == port.dpid,
            Edge::Port(own) => own == port,
        })
    }

    /// The maxima that a network exceeds and exceeds more than before, in words.
    pub fn exceeded(&self, before: Option<&Spec>, network: &Spec) -> Vec<String> {
        let counts = |spec: &Spec| {
            [&spec.switches.len(), &spec.ports.len(), &spec.links.len(), &spec.hosts.len()]
                .map(|count| *count as u64)
        };
        let had = before.map(counts).unwrap_or_default();
        let most = [self.switches, self.ports, self.links, self.hosts];
        let names = ["switches", "ports", "links", "hosts"];
        let each = names.into_iter().zip(most).zip(had.into_iter().zip(counts(network)));
        let mut over: Vec<String> = each
            .filter_map(|((name, most), (had, has))| {
                let most = most.filter(|most| has > *most && has > had)?;
                Some(format!("{name}: {has}, and the tenant may have {most}"))
            })
            .collect();
        let (had, has) = (before.map_or(0, reserved), reserved(network));
        if let Some(most) = self.bandwidth
            && has > most.bits_per_second()
            && has > had
        {
            let has = Bandwidth::from_bits_per_second(has);
            over.push(format!("links set {has} aside, and the tenant may have {most}"));
        }
        over
    }
}

/// The reserved bits per second of all links.
fn reserved(network: &Spec) -> u64 {
    let of_link = network.links.iter().map(|link| {
        let ways = 1 + u64::from(link.protection.is_some());
        link.bandwidth.bits_per_second().saturating_mul(ways)
    });
    of_link.fold(0, u64::saturating_add)
}

pub(super) fn read(table: &mut Table<'_, '_>) -> Maxima {
    let mut number = |key| table.get(key, |value| value.integer(0..=1 << 20));
    let (switches, ports) = (number("switches"), number("ports"));
    let (links, hosts) = (number("links"), number("hosts"));
    let edges = table.get("edges", |value| value.list(edge)).unwrap_or_default();
    Maxima { switches, ports, links, hosts, bandwidth: table.get("bandwidth", bandwidth), edges }
}

fn edge(value: &Value<'_, '_>) -> Option<Edge> {
    match value.string()?.contains(" port ") {
        true => value.parsed().map(Edge::Port),
        false => value.parsed().map(Edge::Switch),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::networks::Document;

    fn network(links: &str) -> Spec {
        let text = format!(
            r#"{{"switches": [{{"dpid": "1", "on": ["1"]}}, {{"dpid": "2", "on": ["2"]}}], "links": [{links}]}}"#
        );
        serde_json::from_str::<Document>(&text).unwrap().spec().unwrap()
    }

    #[test]
    fn a_network_above_the_maxima_may_shrink_but_not_grow() {
        let link = |port: u32, rest: &str| {
            format!(r#"{{"between": ["1 port {port}", "2 port {port}"]{rest}}}"#)
        };
        let one = network(&link(1, r#", "bandwidth": "6Mbit""#));
        let backed = network(&link(1, r#", "bandwidth": "6Mbit", "backup": "links""#));
        let two = network(&[link(1, ""), link(2, "")].join(","));
        let bandwidth = Some(Bandwidth::from_bits_per_second(10_000_000));
        let maxima = Maxima { switches: Some(2), links: Some(1), bandwidth, ..Maxima::default() };
        assert!(maxima.exceeded(None, &one).is_empty());
        assert_eq!(maxima.exceeded(None, &two), ["links: 2, and the tenant may have 1"]);
        assert_eq!(
            maxima.exceeded(Some(&one), &backed),
            ["links set 12Mbit aside, and the tenant may have 10Mbit"]
        );
        let none = Maxima { switches: Some(0), ports: Some(0), links: Some(0), ..maxima.clone() };
        assert!(none.exceeded(Some(&two), &one).is_empty(), "it shrinks");
        assert!(none.exceeded(Some(&two), &two).is_empty(), "what is there may stay");
        assert_eq!(none.exceeded(Some(&one), &two), ["links: 2, and the tenant may have 0"]);
        assert!(Maxima::default().exceeded(None, &two).is_empty());
    }

    #[test]
    fn the_number_of_hosts_has_a_maximum() {
        let network = |count: u32| {
            let hosts: Vec<String> = (1..=count)
                .map(|number| {
                    format!(r#"{{"mac": "02:00:00:00:00:{number:02x}", "at": "1 port 1"}}"#)
                })
                .collect();
            let text = format!(
                r#"{{"switches": [{{"dpid": "1", "on": ["1"]}}], "ports": [{{"switch": "1", "number": 1, "at": "1 port 1"}}], "hosts": [{}]}}"#,
                hosts.join(",")
            );
            serde_json::from_str::<Document>(&text).unwrap().spec().unwrap()
        };
        let maxima = Maxima { hosts: Some(2), ..Maxima::default() };
        assert!(maxima.exceeded(None, &network(2)).is_empty());
        assert_eq!(maxima.exceeded(None, &network(3)), ["hosts: 3, and the tenant may have 2"]);
    }
}
