//! Changes of a network, each of one part. Several changes together are one transaction.

use fabric::embedding::{Spec, VirtualPortId};
use fabric::{Dpid, MacAddress};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::changes::{HostChange, LinkChange, PortChange, SwitchChange};
use super::document::{self, HostDocument, LinkDocument, PortDocument, SwitchDocument, read};
use super::error::{ChangeError, DocumentError};

/// A change of one part of a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Adds a switch, or replaces the switch with the same dpid.
    PutSwitch(SwitchDocument),
    /// Adds an edge port, or replaces the port with the same switch and number.
    PutPort(PortDocument),
    /// Adds a link, or replaces the link between the same ports.
    PutLink(LinkDocument),
    /// Adds a host, or replaces the host with the same hardware address.
    PutHost(HostDocument),
    /// Adds a switch, or changes the switch with the same dpid: absent properties do not change.
    ChangeSwitch(SwitchChange),
    /// Adds an edge port, or changes the port with the same switch and number: absent properties do not change.
    ChangePort(PortChange),
    /// Adds a link, or changes the link between the same ports: absent properties do not change.
    ChangeLink(LinkChange),
    /// Adds a host, or changes the host with the same hardware address: absent properties do not change.
    ChangeHost(HostChange),
    /// Changes the block of the hosts' addresses; `null`: no block.
    SetAddresses(Option<String>),
    /// Starts a part.
    Start(Target),
    /// Stops a part, which keeps its place.
    Stop(Target),
    /// Removes a part.
    Remove(Target),
}

/// A part of a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// The whole network.
    Network,
    /// The switch with this dpid.
    Switch(String),
    /// An edge port, such as `00:00:00:00:00:00:0a:01 port 1`.
    Port(String),
    /// The link between two ports, in either order.
    Link(Ends),
    /// The host with this hardware address.
    Host(String),
}

/// The two ends of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(min_items = 2, max_items = 2)]
pub struct Ends(pub [String; 2]);

impl From<DocumentError> for ChangeError {
    fn from(error: DocumentError) -> ChangeError {
        ChangeError::Refused(vec![error.to_string()])
    }
}

impl Operation {
    /// Makes the change. `Remove` of the whole network leaves no network; every other change of a missing network
    /// begins with an empty one.
    pub(super) fn make(&self, on: &mut Option<Spec>) -> Result<(), ChangeError> {
        match self {
            Operation::Start(target) => start(target, on, true)?,
            Operation::Stop(target) => start(target, on, false)?,
            Operation::Remove(target) => remove(target, on)?,
            Operation::PutSwitch(switch) => {
                put(&mut on.get_or_insert_default().switches, switch.spec()?, |it| it.dpid);
            }
            Operation::PutPort(port) => {
                put(&mut on.get_or_insert_default().ports, port.spec()?, |it| it.port);
            }
            Operation::PutLink(link) => {
                put(&mut on.get_or_insert_default().links, link.spec()?, |it| sorted(it.ends));
            }
            Operation::PutHost(host) => {
                put(&mut on.get_or_insert_default().hosts, host.spec()?, |it| it.mac);
            }
            Operation::ChangeSwitch(change) => {
                let all = &mut on.get_or_insert_default().switches;
                let dpid: Dpid = read("dpid", &change.dpid)?;
                let before = all.iter().find(|it| it.dpid == dpid).map(SwitchDocument::new);
                put(all, change.of(before)?.spec()?, |it| it.dpid);
            }
            Operation::ChangePort(change) => {
                let all = &mut on.get_or_insert_default().ports;
                let (switch, number) = (read("switch", &change.switch)?, change.number.number()?);
                let port = VirtualPortId { switch, number };
                let before = all.iter().find(|it| it.port == port).map(PortDocument::new);
                put(all, change.of(before)?.spec()?, |it| it.port);
            }
            Operation::ChangeLink(change) => {
                let all = &mut on.get_or_insert_default().links;
                let [a, b] = &change.between;
                let ends = sorted([read("between", a)?, read("between", b)?]);
                let before = all.iter().find(|it| sorted(it.ends) == ends).map(LinkDocument::new);
                put(all, change.of(before).spec()?, |it| sorted(it.ends));
            }
            Operation::ChangeHost(change) => {
                let all = &mut on.get_or_insert_default().hosts;
                let mac: MacAddress = read("mac", &change.mac)?;
                let before = all.iter().find(|it| it.mac == mac).map(HostDocument::new);
                put(all, change.of(before)?.spec()?, |it| it.mac);
            }
            Operation::SetAddresses(block) => {
                let block = document::block("addresses", block.as_deref())?;
                on.get_or_insert_default().block = block;
            }
        }
        Ok(())
    }
}

fn missing(what: impl Into<String>) -> ChangeError {
    ChangeError::Missing(what.into())
}

fn sorted([a, b]: [VirtualPortId; 2]) -> [VirtualPortId; 2] {
    [a.min(b), a.max(b)]
}

/// Replaces the element with the same key, or adds the new one at the end.
fn put<T, K: PartialEq>(all: &mut Vec<T>, new: T, key: impl Fn(&T) -> K) {
    match all.iter_mut().find(|old| key(old) == key(&new)) {
        Some(old) => *old = new,
        None => all.push(new),
    }
}

fn find<T>(all: &mut [T], is: impl Fn(&T) -> bool, name: &str) -> Result<usize, ChangeError> {
    all.iter().position(is).ok_or_else(|| missing(format!("the network has no {name}")))
}

/// The place of a part in the lists.
enum At {
    Switch(usize),
    Port(usize),
    Link(usize),
    Host(usize),
}

fn locate(target: &Target, spec: &mut Spec) -> Result<Option<At>, ChangeError> {
    Ok(Some(match target {
        Target::Network => return Ok(None),
        Target::Switch(text) => {
            let dpid: Dpid = read("switch", text)?;
            At::Switch(find(&mut spec.switches, |it| it.dpid == dpid, &format!("switch {dpid}"))?)
        }
        Target::Port(text) => {
            let port: VirtualPortId = read("port", text)?;
            At::Port(find(&mut spec.ports, |it| it.port == port, &format!("edge port {port}"))?)
        }
        Target::Link(Ends([a, b])) => {
            let ends = sorted([read("link", a)?, read("link", b)?]);
            let name = format!("link {} - {}", ends[0], ends[1]);
            At::Link(find(&mut spec.links, |it| sorted(it.ends) == ends, &name)?)
        }
        Target::Host(text) => {
            let mac: MacAddress = read("host", text)?;
            At::Host(find(&mut spec.hosts, |it| it.mac == mac, &format!("host {mac}"))?)
        }
    }))
}

fn start(target: &Target, on: &mut Option<Spec>, started: bool) -> Result<(), ChangeError> {
    let spec = on.as_mut().ok_or_else(|| missing("the tenant has no network"))?;
    match locate(target, spec)? {
        None => spec.started = started,
        Some(At::Switch(at)) => spec.switches[at].started = started,
        Some(At::Port(at)) => spec.ports[at].started = started,
        Some(At::Link(at)) => spec.links[at].started = started,
        Some(At::Host(_)) => {
            let reason = "a host is neither started nor stopped; its port is".to_owned();
            return Err(ChangeError::Refused(vec![reason]));
        }
    }
    Ok(())
}

fn remove(target: &Target, on: &mut Option<Spec>) -> Result<(), ChangeError> {
    let spec = on.as_mut().ok_or_else(|| missing("the tenant has no network"))?;
    match locate(target, spec)? {
        None => *on = None,
        Some(At::Switch(at)) => drop(spec.switches.remove(at)),
        Some(At::Port(at)) => drop(spec.ports.remove(at)),
        Some(At::Link(at)) => drop(spec.links.remove(at)),
        Some(At::Host(at)) => drop(spec.hosts.remove(at)),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::networks::Document;

    fn make(operations: &str, on: &mut Option<Spec>) -> Result<(), ChangeError> {
        let operations: Vec<Operation> = serde_json::from_str(operations).unwrap();
        operations.iter().try_for_each(|operation| operation.make(on))
    }

    #[test]
    fn network_parts_are_added_changed_and_removed_by_operations() {
        let mut network = None;
        make(
            r#"[{"put-switch": {"dpid": "0xa1", "on": ["1"]}}, {"put-switch": {"dpid": "0xa2", "on": ["2"]}},
                {"put-port": {"switch": "0xa1", "number": 1, "at": "1 port 1"}},
                {"put-link": {"between": ["0xa2 port 2", "0xa1 port 2"], "bandwidth": "5Mbit", "route": ["1", "2"]}},
                {"put-host": {"mac": "02:00:00:00:00:01", "at": "0xa1 port 1"}},
                {"set-addresses": "10.0.0.0/24"}]"#,
            &mut network,
        )
        .unwrap();
        let spec = network.clone().unwrap();
        assert_eq!(Document::new(&spec).spec().unwrap(), spec);
        assert_eq!(
            [spec.switches.len(), spec.ports.len(), spec.links.len(), spec.hosts.len()],
            [2, 1, 1, 1]
        );
        // The ends of a link may be given in either order: the operations change the existing link.
        make(
            r#"[{"put-link": {"between": ["0xa1 port 2", "0xa2 port 2"]}}, {"stop": {"link": ["0xa2 port 2", "0xa1 port 2"]}},
                {"stop": "network"}, {"set-addresses": null}]"#,
            &mut network,
        )
        .unwrap();
        let spec = network.clone().unwrap();
        assert_eq!(
            (spec.links.len(), spec.links[0].started, spec.started, spec.block),
            (1, false, false, None)
        );
        make(r#"[{"remove": {"host": "02:00:00:00:00:01"}}, {"remove": {"port": "0xa1 port 1"}}, {"start": "network"}]"#, &mut network).unwrap();
        assert!(network.as_ref().unwrap().hosts.is_empty() && network.as_ref().unwrap().started);
        make(r#"[{"remove": "network"}]"#, &mut network).unwrap();
        assert_eq!(network, None);
        // The port LOCAL is given by name, in small or capital letters.
        make(
            r#"[{"put-switch": {"dpid": "0xa1", "on": ["1"]}},
                {"put-port": {"switch": "0xa1", "number": "local", "at": "1 port 1"}},
                {"put-port": {"switch": "0xa1", "number": "LOCAL", "at": "1 port Local"}}]"#,
            &mut network,
        )
        .unwrap();
        let spec = network.clone().unwrap();
        assert_eq!(spec.ports.len(), 1);
        let document = Document::new(&spec);
        let written = serde_json::to_value(&document).unwrap();
        assert_eq!(written["ports"][0]["number"], "LOCAL");
        assert_eq!(written["ports"][0]["at"], "00:00:00:00:00:00:00:01 port LOCAL");
        let read: Document = serde_json::from_value(written).unwrap();
        assert_eq!(read.spec().unwrap(), spec);
        make(r#"[{"remove": {"port": "0xa1 port LOCAL"}}]"#, &mut network).unwrap();
        assert!(network.as_ref().unwrap().ports.is_empty());
        let ports = r#"[{"put-port": {"switch": "0xa1", "number": "NORMAL", "at": "1 port 1"}}]"#;
        let error = make(ports, &mut network).unwrap_err().to_string();
        assert!(error.contains("expected a number, or LOCAL"), "{error}");
        network = None;
        for (operation, message) in [
            (r#"[{"remove": "network"}]"#, "the tenant has no network"),
            (r#"[{"stop": {"switch": "1"}}]"#, "the tenant has no network"),
            (r#"[{"put-switch": {"dpid": "x", "on": []}}]"#, "dpid: \"x\": expected a dpid"),
        ] {
            let error = make(operation, &mut network).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn properties_absent_from_a_change_keep_the_old_value() {
        let mut network = None;
        make(
            r#"[{"put-switch": {"dpid": "0xa1", "on": ["1", "2"], "name": "near", "routes": [["1", "2"]], "started": false}},
                {"put-port": {"switch": "0xa1", "number": 1, "at": "1 port 1", "name": "web", "shared": true, "started": false}},
                {"put-link": {"between": ["0xa1 port 2", "0xa2 port 2"], "bandwidth": "5Mbit", "route": ["1", "3"],
                              "backup": "links", "revert": true, "started": false}},
                {"put-host": {"mac": "02:00:00:00:00:01", "at": "0xa1 port 1", "address": ["10.0.0.9"]}}]"#,
            &mut network,
        )
        .unwrap();
        let before = Document::new(network.as_ref().unwrap());
        make(
            r#"[{"change-switch": {"dpid": "a1"}}, {"change-port": {"switch": "a1", "number": 1}},
                {"change-link": {"between": ["0xa1 port 2", "0xa2 port 2"]}}, {"change-host": {"mac": "02:00:00:00:00:01"}}]"#,
            &mut network,
        )
        .unwrap();
        assert_eq!(Document::new(network.as_ref().unwrap()), before);
        make(
            r#"[{"change-switch": {"dpid": "a1", "name": "far"}},
                {"change-port": {"switch": "a1", "number": 1, "at": "1 port 2", "started": true}},
                {"change-link": {"between": ["0xa2 port 2", "0xa1 port 2"], "bandwidth": "7Mbit", "backup": "none"}},
                {"change-host": {"mac": "02:00:00:00:00:01", "address": []}}]"#,
            &mut network,
        )
        .unwrap();
        let mut after = before;
        after.switches[0].name = "far".to_owned();
        after.ports[0].at = "00:00:00:00:00:00:00:01 port 2".to_owned();
        after.ports[0].started = true;
        after.links[0].between.reverse();
        after.links[0].bandwidth = Some("7Mbit".to_owned());
        after.links[0].backup = None;
        after.hosts[0].address.clear();
        assert_eq!(Document::new(network.as_ref().unwrap()), after);
        // A change of a missing part adds the part. Absent properties get their default values, and `on` or `at` must
        // be given.
        make(
            r#"[{"change-switch": {"dpid": "a2", "on": ["3"]}}, {"change-port": {"switch": "a2", "number": 1, "at": "3 port 1"}},
                {"change-link": {"between": ["0xa1 port 3", "0xa2 port 3"]}}, {"change-host": {"mac": "02:00:00:00:00:02", "at": "0xa2 port 1"}}]"#,
            &mut network,
        )
        .unwrap();
        let spec = network.clone().unwrap();
        assert!(spec.switches[1].started && spec.ports[1].started && spec.links[1].started);
        for (operation, message) in [
            (r#"[{"change-switch": {"dpid": "a3"}}]"#, "a new switch needs `on`"),
            (r#"[{"change-port": {"switch": "a1", "number": 9}}]"#, "a new port needs `at`"),
            (r#"[{"change-host": {"mac": "02:00:00:00:00:03"}}]"#, "a new host needs `at`"),
        ] {
            let error = make(operation, &mut network).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
