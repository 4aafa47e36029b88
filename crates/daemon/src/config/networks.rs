//! `[tenants.network]`: a tenant's own network.

use std::net::IpAddr;
use std::ops::Range;

use fabric::embedding::{
    HostSpec, LinkSpec, Part, PortSpec, Route, Spec, Step, SwitchSpec, VirtualPortId,
};
use fabric::paths::Disjoint;
use fabric::{Bandwidth, Dpid, MacAddress, PortId, PortNumber};

use super::diagnostic::Position;
use super::reader::{Table, Value};
use super::topology::bandwidth;

/// `[tenants.network]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// The place in the file.
    pub at: Position,
    /// The requested network.
    pub spec: Spec,
    span: Range<usize>,
    /// The places of its parts in the file.
    parts: Vec<(Part, Range<usize>, Position)>,
}

impl Network {
    /// The place of a part in the file.
    pub fn position_of(&self, part: Part) -> Position {
        let found = self.parts.iter().find(|(other, ..)| *other == part);
        found.map_or(self.at, |(_, _, at)| *at)
    }

    pub(super) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    pub(super) fn span_of(&self, part: Part) -> Range<usize> {
        // The last part with this name: the first one is not the duplicate.
        let found = self.parts.iter().rev().find(|(other, ..)| *other == part);
        found.map_or_else(|| self.span(), |(_, span, _)| span.clone())
    }
}

pub(super) fn read(value: &Value<'_, '_>) -> Option<Network> {
    let mut parts = Parts::default();
    let spec = value.table(|table| {
        let default = Spec::default();
        Spec {
            started: table.get("started", Value::boolean).unwrap_or(default.started),
            block: table.get("addresses", Value::parsed),
            switches: list(table, "switches", |table| switch(table, &mut parts)),
            ports: list(table, "ports", |table| port(table, &mut parts)),
            links: list(table, "links", |table| link(table, &mut parts)),
            hosts: list(table, "hosts", |table| host(table, &mut parts)),
        }
    })?;
    let Parts(parts) = parts;
    Some(Network { at: value.position(), spec, span: value.span(), parts })
}

#[derive(Default)]
struct Parts(Vec<(Part, Range<usize>, Position)>);

impl Parts {
    fn note(&mut self, part: Part, table: &Table<'_, '_>) {
        self.0.push((part, table.span(), table.position()));
    }
}

/// An array of tables; empty if the key is absent.
fn list<T>(
    table: &mut Table<'_, '_>,
    key: &'static str,
    read: impl FnMut(&mut Table<'_, '_>) -> Option<T>,
) -> Vec<T> {
    table.get(key, |value| value.tables(read)).unwrap_or_default()
}

fn started(table: &mut Table<'_, '_>) -> bool {
    table.get("started", Value::boolean).unwrap_or(true)
}

fn text(table: &mut Table<'_, '_>) -> String {
    table.get("name", Value::string).unwrap_or_default().to_owned()
}

fn switch(table: &mut Table<'_, '_>, parts: &mut Parts) -> Option<SwitchSpec> {
    let dpid = table.require("dpid", "\"00:00:00:00:00:00:0a:01\"", Value::parsed::<Dpid>);
    let members = table.require("on", "[\"00:00:00:00:00:00:00:01\"]", |value| {
        value.one_or_list(Value::parsed::<Dpid>)
    });
    let routes = table.get("routes", |value| value.list(steps));
    let (name, started) = (text(table), started(table));
    let dpid = dpid?;
    parts.note(Part::Switch(dpid), table);
    let (members, routes) = (members?, routes.unwrap_or_default());
    Some(SwitchSpec { dpid, name, members, routes, started })
}

fn port(table: &mut Table<'_, '_>, parts: &mut Parts) -> Option<PortSpec> {
    let switch = table.require("switch", "\"00:00:00:00:00:00:0a:01\"", Value::parsed::<Dpid>);
    let number = table.require("number", "1", port_number);
    let at = table.require("at", "\"00:00:00:00:00:00:00:01 port 3\"", Value::parsed::<PortId>);
    let shared = table.get("shared", Value::boolean).unwrap_or(false);
    let (name, started) = (text(table), started(table));
    let port = VirtualPortId { switch: switch?, number: number? };
    parts.note(Part::Port(port), table);
    Some(PortSpec { port, name, at: at?, shared, started })
}

/// 1.0 reserves the numbers above 0xff00. Only LOCAL of these can be a port, and it has a name because its number
/// differs on 1.3.
fn port_number(value: &Value<'_, '_>) -> Option<u32> {
    match value.maybe_string().map(str::parse) {
        Some(Ok(PortNumber::LOCAL)) => Some(PortNumber::LOCAL.get()),
        _ => value.integer(1..=0xff00),
    }
}

fn link(table: &mut Table<'_, '_>, parts: &mut Parts) -> Option<LinkSpec> {
    let example = "[\"00:00:00:00:00:00:0a:01 port 2\", \"00:00:00:00:00:00:0a:02 port 1\"]";
    let ends = table.require("between", example, |value| {
        let ends = value.list(Value::parsed::<VirtualPortId>)?;
        match <[VirtualPortId; 2]>::try_from(ends) {
            Ok(ends) => Some(ends),
            // Refused elements are reported already.
            Err(_) if value.length() == Some(2) => None,
            Err(_) => value.refuse("a link has two ends", Some(format!("such as {example}"))),
        }
    });
    let bandwidth = table.get("bandwidth", bandwidth).unwrap_or(Bandwidth::ZERO);
    let route = table.get("route", route).unwrap_or(Route::Shortest);
    let backups = [("links", Disjoint::Links), ("switches", Disjoint::Switches)];
    let protection = table.get("backup", |value| value.choice(&backups));
    let reverts = table.get("revert", Value::boolean).unwrap_or(false);
    let started = started(table);
    let ends = ends?;
    parts.note(Part::Link(ends), table);
    Some(LinkSpec { ends, bandwidth, route, protection, reverts, started })
}

fn host(table: &mut Table<'_, '_>, parts: &mut Parts) -> Option<HostSpec> {
    let mac = table.require("mac", "\"02:00:00:00:00:01\"", Value::parsed::<MacAddress>);
    let addresses = table.get("address", |value| value.one_or_list(address));
    let at = "\"00:00:00:00:00:00:0a:01 port 1\"";
    let at = table.require("at", at, Value::parsed::<VirtualPortId>);
    let mac = mac?;
    parts.note(Part::Host(mac), table);
    Some(HostSpec { mac, addresses: addresses.unwrap_or_default(), at: at? })
}

fn address(value: &Value<'_, '_>) -> Option<IpAddr> {
    let text = value.string()?;
    text.parse().ok().or_else(|| {
        let help = "an IPv4 or IPv6 address, such as \"10.0.0.1\"".to_owned();
        value.refuse(format!("bad address \"{text}\""), Some(help))
    })
}

fn route(value: &Value<'_, '_>) -> Option<Route> {
    if value.maybe_string().is_some() {
        return value.choice(&[("shortest", 0), ("widest", 1)]).map(|choice| match choice {
            0 => Route::Shortest,
            _ => Route::Widest,
        });
    }
    let steps = steps(value)?;
    if value.is_empty_list() {
        return value.refuse("a way without steps", None);
    }
    Some(Route::Given(steps))
}

/// The steps of a route: physical switches to visit, or physical ports to leave by.
fn steps(value: &Value<'_, '_>) -> Option<Vec<Step>> {
    value.list(|value| match value.string()?.contains("port") {
        true => value.parsed().map(Step::Port),
        false => value.parsed().map(Step::Switch),
    })
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    const TWO: &str = "[[tenants]]\nname = \"red\"\n[tenants.network]\naddresses = \"10.0.0.0/24\"\n\
        [[tenants.network.switches]]\ndpid = \"0xa1\"\non = [\"1\"]\n\
        [[tenants.network.switches]]\ndpid = \"0xa2\"\non = \"2\"\nname = \"far\"\n\
        [[tenants.network.ports]]\nswitch = \"0xa1\"\nnumber = 1\nat = \"1 port 1\"\n";

    fn spec(more: &str) -> Spec {
        let config = Config::parse("weir.toml", &format!("{TWO}{more}")).unwrap();
        config.tenants[0].network.as_ref().unwrap().spec.clone()
    }

    #[test]
    fn links_ports_and_hosts_of_a_configured_network_are_read() {
        let spec = spec(
            "[[tenants.network.links]]\nbetween = [\"0xa1 port 2\", \"0xa2 port 2\"]\nbandwidth = \"5Mbit\"\n\
             route = [\"1\", \"1 port 2\", \"2\"]\nbackup = \"switches\"\nrevert = true\nstarted = false\n\
             [[tenants.network.hosts]]\nmac = \"02:00:00:00:00:01\"\naddress = [\"10.0.0.9\"]\nat = \"0xa1 port 1\"\n",
        );
        assert_eq!(spec.block.unwrap().to_string(), "10.0.0.0/24");
        assert_eq!((spec.switches[1].members[0], spec.switches[1].name.as_str()), (Dpid(2), "far"));
        assert_eq!(spec.ports[0].at, "1 port 1".parse().unwrap());
        let link = &spec.links[0];
        let steps =
            [Step::Switch(Dpid(1)), Step::Port("1 port 2".parse().unwrap()), Step::Switch(Dpid(2))];
        assert_eq!(link.route, Route::Given(steps.to_vec()));
        assert_eq!(
            (link.protection, link.reverts, link.started),
            (Some(Disjoint::Switches), true, false)
        );
        assert_eq!(spec.hosts[0].addresses, ["10.0.0.9".parse::<IpAddr>().unwrap()]);
        assert!(spec.started && spec.ports[0].started && !spec.ports[0].shared);
    }

    #[test]
    fn the_local_port_is_given_by_name_and_not_by_number() {
        for number in ["\"LOCAL\"", "\"local\""] {
            let spec = spec(&format!(
                "[[tenants.network.ports]]\nswitch = \"0xa1\"\nnumber = {number}\nat = \"1 port LOCAL\"\n\
                 [[tenants.network.links]]\nbetween = [\"0xa1 port 2\", \"0xa2 port Local\"]\n\
                 [[tenants.network.hosts]]\nmac = \"02:00:00:00:00:01\"\nat = \"0xa1 port LOCAL\"\n",
            ));
            let local = PortNumber::LOCAL;
            assert_eq!((spec.ports[1].port.number, spec.ports[1].at.port), (local.get(), local));
            assert_eq!(spec.links[0].ends[1].number, local.get());
            assert_eq!(spec.hosts[0].at, spec.ports[1].port);
        }
        for (number, message) in [
            ("\"NORMAL\"", "expected an integer"),
            ("\"1\"", "expected an integer"),
            ("65534", "65534 is out of range"),
            ("4294967294", "4294967294 is out of range"),
        ] {
            let port = format!(
                "[[tenants.network.ports]]\nswitch = \"0xa1\"\nnumber = {number}\nat = \"1 port 2\"\n"
            );
            let errors = Config::parse("weir.toml", &format!("{TWO}{port}")).unwrap_err();
            let errors: Vec<_> = errors.iter().collect();
            let [error] = errors.as_slice() else { panic!("{number}: {errors:?}") };
            assert!(error.message.contains(message), "{number}: {}", error.message);
            assert_eq!(error.at.line, 18, "{number}");
        }
        // A switch has at most one LOCAL port.
        let port =
            "[[tenants.network.ports]]\nswitch = \"0xa1\"\nnumber = \"LOCAL\"\nat = \"1 port 2\"\n";
        let link = "[[tenants.network.links]]\nbetween = [\"0xa1 port local\", \"0xa2 port 2\"]\n";
        let errors = Config::parse("weir.toml", &format!("{TWO}{port}{link}")).unwrap_err();
        let messages: Vec<_> = errors.iter().map(|error| error.message.as_str()).collect();
        assert!(
            matches!(&messages[..], [it] if it.contains("another port of that number")),
            "{messages:?}"
        );
    }

    #[test]
    fn the_unsupported_key_physical_addresses_is_refused_with_the_reason() {
        let text =
            TWO.replace("addresses =", "physical_addresses = \"172.16.5.0/24\"\naddresses =");
        let errors = Config::parse("weir.toml", &text).unwrap_err();
        let errors: Vec<_> = errors.iter().collect();
        let [error] = errors.as_slice() else { panic!("{errors:?}") };
        assert_eq!(
            error.message,
            "`physical_addresses` is not supported: hosts keep their addresses on all links, and VLAN tags keep tenants apart"
        );
        assert_eq!(error.at.line, 4);
    }

    #[test]
    fn errors_in_a_configured_network_are_reported_with_the_line() {
        for (more, line, message) in [
            ("[[tenants.network.link]]\n", 16, "unknown key `link`"),
            (
                "[[tenants.network.ports]]\nswitch = \"0xa1\"\nnumber = 0\nat = \"1 port 2\"\n",
                18,
                "0 is out of range",
            ),
            ("[[tenants.network.links]]\nbetween = [\"0xa1 port 2\"]\n", 17, "a link has two ends"),
            (
                "[[tenants.network.links]]\nbetween = [\"0xa1 port 2\", \"0xa2 port 2\"]\nroute = \"shortst\"\n",
                18,
                "unknown value \"shortst\"",
            ),
            (
                "[[tenants.network.links]]\nbetween = [\"0xa1 port 2\", \"0xa2 port 2\"]\nroute = []\n",
                18,
                "a way without steps",
            ),
            (
                "[[tenants.network.hosts]]\nmac = \"01:00:00:00:00:01\"\nat = \"0xa1 port 1\"\n",
                17,
                "expected a host's MAC",
            ),
            (
                "[[tenants.network.hosts]]\nmac = \"02:00:00:00:00:01\"\naddress = \"10.0.0\"\nat = \"0xa1 port 1\"\n",
                18,
                "bad address \"10.0.0\"",
            ),
            // Contradictions are reported with the line of one of the contradicting parts.
            (
                "[[tenants.network.ports]]\nswitch = \"0xa1\"\nnumber = 1\nat = \"1 port 2\"\n",
                16,
                "another port of that number",
            ),
            (
                "[[tenants.network.hosts]]\nmac = \"02:00:00:00:00:01\"\naddress = \"10.0.1.1\"\nat = \"0xa1 port 1\"\n",
                16,
                "10.0.1.1 is not in 10.0.0.0/24",
            ),
            (
                "[[tenants.network.links]]\nbetween = [\"0xa1 port 2\", \"0xa9 port 2\"]\n",
                16,
                "the tenant has no switch",
            ),
            (
                "[[tenants.flowspace]]\nmatch = \"\"\n",
                3,
                "a flowspace or a network of its own, not both",
            ),
            (
                "[[tenants]]\nname = \"blue\"\n[[tenants.network.switches]]\ndpid = \"5\"\non = \"1\"\n\
                 [[tenants.network.ports]]\nswitch = \"5\"\nnumber = 9\nat = \"1 port 1\"\n",
                21,
                "1 port 1 is taken by \"red\"",
            ),
        ] {
            let errors = Config::parse("weir.toml", &format!("{TWO}{more}")).unwrap_err();
            let errors: Vec<_> = errors.iter().collect();
            let [error] = errors.as_slice() else { panic!("{more}: {errors:?}") };
            assert!(error.message.contains(message), "{more}: {}", error.message);
            assert_eq!(error.at.line, line, "{more}");
        }
    }
}
