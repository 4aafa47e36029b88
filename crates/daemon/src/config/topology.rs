//! `[topology]`: the declaration and discovery of the physical network.

use std::collections::BTreeMap;
use std::time::Duration;

use fabric::embedding::Tag;
use fabric::{Bandwidth, PortId};

use super::diagnostic::Position;
use super::reader::{Table, Value};

/// `[topology]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Whether Weir discovers links by probes. Default: no.
    pub discovery: bool,
    /// The time between two probes from the same port. Default 1 s.
    pub interval: Duration,
    /// How long a link stays up without a probe. Default 3.5 s.
    pub lifetime: Duration,
    /// The default bandwidth of a link; `None`: the speed that its ports report.
    pub bandwidth: Option<Bandwidth>,
    /// The default latency of a link. Default 0.
    pub latency: Duration,
    /// Edge ports with hosts: never probed, and never an end of a link.
    pub edges: Vec<PortId>,
    /// `[[topology.links]]`
    pub links: Vec<Link>,
    /// The lowest and the highest VLAN id that mark packets of virtual networks between switches. Read at start only.
    /// Default 2000 and 3999.
    pub tags: [Tag; 2],
}

/// A declared link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The place in the file.
    pub at: Position,
    /// The ports of the link, the lower first.
    pub between: [PortId; 2],
    /// The bandwidth in each direction.
    pub bandwidth: Option<Bandwidth>,
    /// The latency.
    pub latency: Option<Duration>,
}

impl Default for Topology {
    fn default() -> Topology {
        Topology {
            discovery: false,
            interval: Duration::from_secs(1),
            lifetime: Duration::from_millis(3_500),
            bandwidth: None,
            latency: Duration::ZERO,
            edges: Vec::new(),
            links: Vec::new(),
            tags: [2000, 3999].map(|tag| Tag::new(tag).unwrap_or(Tag::MOST)),
        }
    }
}

/// The longest latency: longer than that of any wire on Earth.
const LONGEST: Duration = Duration::from_secs(10);

pub(super) fn read(table: &mut Table<'_, '_>) -> Topology {
    let default = Topology::default();
    // Each port may be used only once.
    let mut used = BTreeMap::new();
    let range = Duration::from_millis(10)..=Duration::from_secs(3600);
    let interval = table.get("interval", |value| value.duration(range)).unwrap_or(default.interval);
    // The lifetime must allow the loss of one probe.
    let shortest = interval.saturating_mul(2);
    let lifetime = table
        .get("lifetime", |value| value.duration(shortest..=Duration::from_secs(36_000)))
        .unwrap_or(interval.saturating_mul(7) / 2);
    Topology {
        discovery: table.get("discovery", Value::boolean).unwrap_or(default.discovery),
        interval,
        lifetime,
        bandwidth: table.get("bandwidth", bandwidth),
        latency: table.get("latency", latency).unwrap_or(default.latency),
        edges: table
            .get("edge_ports", |value| value.list(|value| port(value, &mut used)))
            .unwrap_or_default(),
        links: table
            .get("links", |value| value.tables(|table| link(table, &mut used)))
            .unwrap_or_default(),
        tags: table.get("tags", tags).unwrap_or(default.tags),
    }
}

/// `"2000-3999"`
fn tags(value: &Value<'_, '_>) -> Option<[Tag; 2]> {
    let text = value.string()?;
    let tag = |text: &str| text.trim().parse().ok().and_then(|number| Tag::new(number).ok());
    let ends = text.split_once('-').and_then(|(least, most)| Some([tag(least)?, tag(most)?]));
    match ends.filter(|[least, most]| least <= most) {
        Some(ends) => Some(ends),
        None => value.refuse(
            format!("\"{text}\" is no range of VLAN ids"),
            Some("two numbers of 1 to 4094, such as \"2000-3999\"".to_owned()),
        ),
    }
}

fn link(table: &mut Table<'_, '_>, used: &mut BTreeMap<PortId, Position>) -> Option<Link> {
    let example = "[\"00:00:00:00:00:00:00:01 port 2\", \"00:00:00:00:00:00:00:02 port 1\"]";
    let between = table.require("between", example, |value| {
        let ports = value.list(|value| port(value, used))?;
        match ports.as_slice() {
            [a, b] => Some([*a.min(b), *a.max(b)]),
            // Refused elements are reported already.
            _ if value.length() == Some(2) => None,
            _ => value.refuse("a link has two ends", Some(format!("such as {example}"))),
        }
    });
    let (bandwidth, latency) = (table.get("bandwidth", bandwidth), table.get("latency", latency));
    Some(Link { at: table.position(), between: between?, bandwidth, latency })
}

fn port(value: &Value<'_, '_>, used: &mut BTreeMap<PortId, Position>) -> Option<PortId> {
    let port = value.parsed::<PortId>()?;
    if let Some(first) = used.get(&port) {
        let help = format!("it stands in line {} already", first.line);
        return value.refuse(format!("{port} is used twice"), Some(help));
    }
    used.insert(port, value.position());
    Some(port)
}

/// A bandwidth above 0.
pub(super) fn bandwidth(value: &Value<'_, '_>) -> Option<Bandwidth> {
    let bandwidth = value.parsed::<Bandwidth>()?;
    if bandwidth == Bandwidth::ZERO {
        return value.refuse("a bandwidth of nothing", None);
    }
    Some(bandwidth)
}

fn latency(value: &Value<'_, '_>) -> Option<Duration> {
    value.duration(Duration::ZERO..=LONGEST)
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    #[test]
    fn the_topology_section_is_read() {
        let text = "[topology]\ndiscovery = true\ninterval = \"100ms\"\nbandwidth = \"10Mbit\"\n\
                    edge_ports = [\"1 port 1\"]\n[[topology.links]]\n\
                    between = [\"2 port 1\", \"1 port 2\"]\nlatency = \"1ms\"";
        let topology = Config::parse("weir.toml", text).unwrap().topology;
        assert!(topology.discovery);
        assert_eq!(topology.lifetime, Duration::from_millis(350));
        assert_eq!(topology.bandwidth, Some(Bandwidth::from_megabits_per_second(10)));
        let port = |text: &str| text.parse::<PortId>().unwrap();
        assert_eq!(topology.edges, [port("1 port 1")]);
        assert_eq!(topology.links[0].between, [port("1 port 2"), port("2 port 1")]);
        assert_eq!(topology.links[0].latency, Some(Duration::from_millis(1)));
        let text = "[topology]\ntags = \"5-6\"";
        let tags = Config::parse("weir.toml", text).unwrap().topology.tags;
        assert_eq!(tags.map(Tag::get), [5, 6]);
        assert_eq!(Config::parse("weir.toml", "").unwrap().topology, Topology::default());
    }

    #[test]
    fn errors_in_the_topology_section_are_reported_with_the_line() {
        for (text, line, message) in [
            ("discovery = 1", 2, "expected true or false, found an integer"),
            ("discover = true", 2, "unknown key `discover`"),
            ("bandwidth = \"10\"", 2, "expected a bandwidth with a unit"),
            ("bandwidth = \"0bit\"", 2, "a bandwidth of nothing"),
            ("interval = \"1s\"\nlifetime = \"1s\"", 3, "\"1s\" is out of range"),
            ("edge_ports = [\"1 port 0\"]", 2, "expected a dpid and a port"),
            ("edge_ports = [\"1 port 1\", \"0x1 port 1\"]", 2, "is used twice"),
            ("tags = \"0-9\"", 2, "\"0-9\" is no range of VLAN ids"),
            ("tags = \"9-8\"", 2, "\"9-8\" is no range of VLAN ids"),
            ("tags = \"4000-4095\"", 2, "is no range of VLAN ids"),
            ("[[topology.links]]", 2, "`between` is missing"),
            ("[[topology.links]]\nbetween = [\"1 port 1\"]", 3, "a link has two ends"),
            ("[[topology.links]]\nbetween = [\"1 port 1\", \"1 port 1\"]", 3, "is used twice"),
            (
                "edge_ports = [\"1 port 1\"]\n[[topology.links]]\nbetween = [\"1 port 1\", \"2 port 1\"]",
                4,
                "is used twice",
            ),
        ] {
            let errors = Config::parse("weir.toml", &format!("[topology]\n{text}")).unwrap_err();
            let errors: Vec<_> = errors.iter().collect();
            let [error] = errors.as_slice() else { panic!("{text}: {errors:?}") };
            assert_eq!(error.at.line, line, "{text}");
            assert!(error.message.contains(message), "{text}: {}", error.message);
        }
    }
}
