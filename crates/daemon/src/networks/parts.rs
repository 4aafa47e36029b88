//! The differences of a requested network, part by part, also if the rules on the switches do not change.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::document::{
    Backup, Choice, Document, HostDocument, LinkDocument, PortDocument, RouteDocument,
    SwitchDocument,
};

/// A part of a tenant's network that is added, removed or changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PartOutcome {
    /// The tenant.
    pub tenant: String,
    /// The part, such as `host 02:00:00:00:00:01`.
    pub part: String,
    /// The old value; absent if the part did not exist.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub was: Option<String>,
    /// The new value; absent if the part does not exist any more.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub is: Option<String>,
}

/// An address that Weir gave to a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Assigned {
    /// The host.
    pub mac: String,
    /// The address.
    pub address: String,
}

/// The parts of a network in order, by name.
pub(super) type Parts = BTreeMap<(u8, String), String>;

/// The parts of a network. `assigned`: the addresses of hosts whose request names none.
pub(super) fn parts(network: &Document, assigned: &[Assigned]) -> Parts {
    let Document { started, addresses, .. } = network;
    let state = if *started { "started" } else { "stopped" };
    let whole = [("network", Some(state.to_owned())), ("addresses", addresses.clone())];
    let whole = whole.into_iter().filter_map(|(part, is)| Some((part.to_owned(), is?)));
    let assigned: BTreeMap<&str, &String> =
        assigned.iter().map(|given| (given.mac.as_str(), &given.address)).collect();
    let address = |host: &HostDocument| {
        let given = assigned.get(host.mac.as_str()).copied();
        joined(&host.address.iter().chain(given).collect::<Vec<_>>())
    };
    let each = [
        whole.collect::<Vec<_>>(),
        network.switches.iter().map(switch).collect(),
        network.ports.iter().map(port).collect(),
        network.links.iter().map(link).collect(),
        network.hosts.iter().map(|it| host(it, &address(it))).collect(),
    ];
    let numbered = (0..).zip(each);
    let all = numbered.flat_map(|(at, parts)| {
        parts.into_iter().map(move |(part, is): (String, String)| ((at, part), is))
    });
    all.collect()
}

/// The differences.
pub(super) fn differences(tenant: &str, before: &Parts, after: &Parts) -> Vec<PartOutcome> {
    let known = before.keys().chain(after.keys().filter(|part| !before.contains_key(*part)));
    let mut known: Vec<_> = known.collect();
    known.sort_unstable();
    let changed = known.into_iter().filter(|part| before.get(*part) != after.get(*part));
    let outcome = |part: &(u8, String)| PartOutcome {
        tenant: tenant.to_owned(),
        part: part.1.clone(),
        was: before.get(part).cloned(),
        is: after.get(part).cloned(),
    };
    changed.map(outcome).collect()
}

fn switch(it: &SwitchDocument) -> (String, String) {
    let given = it.routes.iter().map(|route| format!("route {}", route.join(", ")));
    let about = named(&it.name).into_iter().chain(given).chain(stopped(it.started));
    (format!("switch {}", it.dpid), described(format!("on {}", it.on.join(", ")), about))
}

fn port(it: &PortDocument) -> (String, String) {
    let shared = it.shared.then(|| "shared".to_owned());
    let about = named(&it.name).into_iter().chain(shared).chain(stopped(it.started));
    (format!("port {} port {}", it.switch, it.number), described(format!("at {}", it.at), about))
}

fn link(it: &LinkDocument) -> (String, String) {
    let way = match &it.route {
        RouteDocument::Found(Choice::Shortest) => "shortest".to_owned(),
        RouteDocument::Found(Choice::Widest) => "widest".to_owned(),
        RouteDocument::Given(steps) => format!("by {}", steps.join(", ")),
    };
    let backup = it.backup.map(|backup| match backup {
        Backup::Links => "a backup by other links".to_owned(),
        Backup::Switches => "a backup by other switches".to_owned(),
    });
    let reverts = it.revert.then(|| "reverts".to_owned());
    let about = it.bandwidth.clone().into_iter().chain(backup).chain(reverts);
    let [a, b] = &it.between;
    (format!("link {a} - {b}"), described(way, about.chain(stopped(it.started))))
}

fn host(it: &HostDocument, addresses: &str) -> (String, String) {
    (format!("host {}", it.mac), format!("{addresses} at {}", it.at).trim_start().to_owned())
}

fn named(name: &str) -> Option<String> {
    (!name.is_empty()).then(|| format!("named \"{name}\""))
}

fn stopped(started: bool) -> Option<String> {
    (!started).then(|| "stopped".to_owned())
}

fn described(first: String, about: impl IntoIterator<Item = String>) -> String {
    std::iter::once(first).chain(about).collect::<Vec<_>>().join(", ")
}

fn joined(items: &[impl ToString]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(json: &str) -> Document {
        serde_json::from_str(json).expect("a network")
    }

    fn texts(before: &Parts, after: &Parts) -> Vec<String> {
        let text = |it: PartOutcome| {
            let side = |side: Option<String>| side.unwrap_or_else(|| "-".to_owned());
            format!("{}: {} -> {}", it.part, side(it.was), side(it.is))
        };
        differences("red", before, after).into_iter().map(text).collect()
    }

    #[test]
    fn the_difference_of_two_networks_lists_each_changed_part() {
        let before = network(
            r#"{"addresses": "10.0.0.0/24",
                "switches": [{"dpid": "a1", "on": ["1"]}, {"dpid": "a2", "on": ["2"], "name": "old"}],
                "ports": [{"switch": "a1", "number": 1, "at": "1 port 1"}],
                "links": [{"between": ["a1 port 2", "a2 port 2"]}],
                "hosts": [{"mac": "01", "at": "a1 port 1"}, {"mac": "02", "at": "a1 port 1"}]}"#,
        );
        let after = network(
            r#"{"started": false, "addresses": "10.0.0.0/25",
                "switches": [{"dpid": "a1", "on": ["1"]}, {"dpid": "a2", "on": ["2"], "name": "new"}],
                "ports": [{"switch": "a1", "number": 1, "at": "1 port 1", "shared": true},
                          {"switch": "a1", "number": "LOCAL", "at": "1 port 3", "started": false}],
                "links": [{"between": ["a1 port 2", "a2 port 2"], "bandwidth": "5Mbit", "route": ["3"],
                           "backup": "links", "revert": true}],
                "hosts": [{"mac": "01", "at": "a1 port 1", "address": ["10.0.0.9", "fd00::9"]}]}"#,
        );
        let assigned = [Assigned { mac: "02".to_owned(), address: "10.0.0.1".to_owned() }];
        let (before, after) = (parts(&before, &assigned), parts(&after, &[]));
        let expected = [
            "addresses: 10.0.0.0/24 -> 10.0.0.0/25",
            "network: started -> stopped",
            "switch a2: on 2, named \"old\" -> on 2, named \"new\"",
            "port a1 port 1: at 1 port 1 -> at 1 port 1, shared",
            "port a1 port LOCAL: - -> at 1 port 3, stopped",
            "link a1 port 2 - a2 port 2: shortest -> by 3, 5Mbit, a backup by other links, reverts",
            "host 01: at a1 port 1 -> 10.0.0.9, fd00::9 at a1 port 1",
            "host 02: 10.0.0.1 at a1 port 1 -> -",
        ];
        assert_eq!(texts(&before, &after), expected);
        assert_eq!(texts(&after, &after), [""; 0]);
    }
}
