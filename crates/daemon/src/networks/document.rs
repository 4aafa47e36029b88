//! A network as JSON: the same names as in the file. Part of the interface: add, do not change.

use std::fmt::Display;
use std::net::IpAddr;
use std::str::FromStr;

use fabric::Bandwidth;
use fabric::embedding::{
    Block, HostSpec, LinkSpec, PortSpec, Route, Spec, Step, SwitchSpec, VirtualPortId,
};
use fabric::paths::Disjoint;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::error::DocumentError;
use super::number::NumberDocument;
use super::object::objects;

/// A tenant's own network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Document {
    /// Whether the network is started. A stopped network keeps its paths, tags and bandwidth.
    #[serde(default = "yes")]
    pub started: bool,
    /// The block of the hosts' addresses, such as `10.0.0.0/24`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addresses: Option<String>,
    /// The switches.
    #[serde(default)]
    pub switches: Vec<SwitchDocument>,
    /// The edge ports.
    #[serde(default)]
    pub ports: Vec<PortDocument>,
    /// The links between the switches.
    #[serde(default)]
    pub links: Vec<LinkDocument>,
    /// The hosts.
    #[serde(default)]
    pub hosts: Vec<HostDocument>,
}

/// A virtual switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct SwitchDocument {
    /// The datapath id that the tenant sees, such as `00:00:00:00:00:00:0a:01`.
    pub dpid: String,
    /// The description.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The physical switches of the virtual switch; several make a big switch.
    pub on: Vec<String>,
    /// Given routes between members of a big switch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Vec<String>>,
    /// Whether the part is started.
    #[serde(default = "yes")]
    pub started: bool,
}

/// An edge port of a virtual switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct PortDocument {
    /// The virtual switch.
    pub switch: String,
    /// The port number, 1 to 65280, or `LOCAL`.
    pub number: NumberDocument,
    /// The name, at most 15 bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The physical port, such as `00:00:00:00:00:00:00:01 port 3`.
    pub at: String,
    /// Whether other tenants may have ports at the same physical port.
    #[serde(default)]
    pub shared: bool,
    /// Whether the part is started.
    #[serde(default = "yes")]
    pub started: bool,
}

/// A virtual link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct LinkDocument {
    /// The two ends of the link, such as `00:00:00:00:00:00:0a:01 port 2`.
    #[schema(min_items = 2, max_items = 2)]
    pub between: [String; 2],
    /// The reserved bandwidth in each direction, such as `5Mbit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<String>,
    /// The choice of the path.
    #[serde(default)]
    pub route: RouteDocument,
    /// How disjoint the backup path is; absent without a backup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<Backup>,
    /// Whether the link returns to its first path when that path works again.
    #[serde(default)]
    pub revert: bool,
    /// Whether the part is started.
    #[serde(default = "yes")]
    pub started: bool,
}

/// The choice of a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum RouteDocument {
    /// Weir finds the path.
    Found(Choice),
    /// The given route: physical switches to visit, or physical ports to leave by.
    Given(Vec<String>),
}

impl Default for RouteDocument {
    fn default() -> Self {
        RouteDocument::Found(Choice::Shortest)
    }
}

/// The way to find a path.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Choice {
    /// The path with the fewest physical links among paths with enough bandwidth.
    Shortest,
    /// The path with the most free bandwidth on its narrowest physical link.
    Widest,
}

/// The parts that a path and its backup must not have in common.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Backup {
    /// A physical link.
    Links,
    /// A physical link, or a switch between their ends.
    Switches,
}

/// A host of a tenant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct HostDocument {
    /// The hardware address.
    pub mac: String,
    /// The addresses of the host in the tenant's network; without one, Weir takes an address from
    /// the block.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub address: Vec<String>,
    /// The edge port of the host, such as `00:00:00:00:00:00:0a:01 port 1`.
    pub at: String,
}

objects! {
    Document: "a network",
    SwitchDocument: "a switch",
    PortDocument: "a port",
    LinkDocument: "a link",
    HostDocument: "a host",
}

fn yes() -> bool {
    true
}

pub(super) fn read<T: FromStr<Err: Display>>(key: &str, text: &str) -> Result<T, DocumentError> {
    text.parse().map_err(|error| DocumentError(format!("{key}: \"{text}\": {error}")))
}

pub(super) fn block(key: &str, text: Option<&str>) -> Result<Option<Block>, DocumentError> {
    text.map(|text| read(key, text)).transpose()
}

fn all<T: FromStr<Err: Display>>(key: &str, texts: &[String]) -> Result<Vec<T>, DocumentError> {
    texts.iter().map(|text| read(key, text)).collect()
}

impl Document {
    /// A request as a document.
    pub fn new(spec: &Spec) -> Document {
        Document {
            started: spec.started,
            addresses: spec.block.map(|block| block.to_string()),
            switches: spec.switches.iter().map(SwitchDocument::new).collect(),
            ports: spec.ports.iter().map(PortDocument::new).collect(),
            links: spec.links.iter().map(LinkDocument::new).collect(),
            hosts: spec.hosts.iter().map(HostDocument::new).collect(),
        }
    }

    /// The request in the document.
    pub fn spec(&self) -> Result<Spec, DocumentError> {
        Ok(Spec {
            started: self.started,
            block: block("addresses", self.addresses.as_deref())?,
            switches: self.switches.iter().map(SwitchDocument::spec).collect::<Result<_, _>>()?,
            ports: self.ports.iter().map(PortDocument::spec).collect::<Result<_, _>>()?,
            links: self.links.iter().map(LinkDocument::spec).collect::<Result<_, _>>()?,
            hosts: self.hosts.iter().map(HostDocument::spec).collect::<Result<_, _>>()?,
        })
    }
}

impl SwitchDocument {
    /// A switch as a document.
    pub fn new(switch: &SwitchSpec) -> SwitchDocument {
        SwitchDocument {
            dpid: switch.dpid.to_string(),
            name: switch.name.clone(),
            on: switch.members.iter().map(ToString::to_string).collect(),
            routes: switch.routes.iter().map(|steps| written(steps)).collect(),
            started: switch.started,
        }
    }

    /// The switch in the document.
    pub fn spec(&self) -> Result<SwitchSpec, DocumentError> {
        Ok(SwitchSpec {
            dpid: read("dpid", &self.dpid)?,
            name: self.name.clone(),
            members: all("on", &self.on)?,
            routes: self.routes.iter().map(|texts| steps(texts)).collect::<Result<_, _>>()?,
            started: self.started,
        })
    }
}

impl PortDocument {
    /// A port as a document.
    pub fn new(port: &PortSpec) -> PortDocument {
        PortDocument {
            switch: port.port.switch.to_string(),
            number: NumberDocument::new(port.port.number),
            name: port.name.clone(),
            at: port.at.to_string(),
            shared: port.shared,
            started: port.started,
        }
    }

    /// The port in the document.
    pub fn spec(&self) -> Result<PortSpec, DocumentError> {
        let (switch, number) = (read("switch", &self.switch)?, self.number.number()?);
        let port = VirtualPortId { switch, number };
        let (name, at) = (self.name.clone(), read("at", &self.at)?);
        Ok(PortSpec { port, name, at, shared: self.shared, started: self.started })
    }
}

impl LinkDocument {
    /// A link as a document.
    pub fn new(link: &LinkSpec) -> LinkDocument {
        LinkDocument {
            between: link.ends.map(|end| end.to_string()),
            bandwidth: Some(link.bandwidth)
                .filter(|bandwidth| *bandwidth > Bandwidth::ZERO)
                .map(|bandwidth| bandwidth.to_string()),
            route: match &link.route {
                Route::Shortest => RouteDocument::Found(Choice::Shortest),
                Route::Widest => RouteDocument::Found(Choice::Widest),
                Route::Given(steps) => RouteDocument::Given(written(steps)),
            },
            backup: link.protection.map(|disjoint| match disjoint {
                Disjoint::Links => Backup::Links,
                Disjoint::Switches => Backup::Switches,
            }),
            revert: link.reverts,
            started: link.started,
        }
    }

    /// The link in the document.
    pub fn spec(&self) -> Result<LinkSpec, DocumentError> {
        let [a, b] = &self.between;
        let bandwidth =
            self.bandwidth.as_deref().map(|text| read("bandwidth", text)).transpose()?;
        Ok(LinkSpec {
            ends: [read("between", a)?, read("between", b)?],
            bandwidth: bandwidth.unwrap_or_default(),
            route: match &self.route {
                RouteDocument::Found(Choice::Shortest) => Route::Shortest,
                RouteDocument::Found(Choice::Widest) => Route::Widest,
                RouteDocument::Given(texts) => Route::Given(steps(texts)?),
            },
            protection: self.backup.map(|backup| match backup {
                Backup::Links => Disjoint::Links,
                Backup::Switches => Disjoint::Switches,
            }),
            reverts: self.revert,
            started: self.started,
        })
    }
}

impl HostDocument {
    /// A host as a document.
    pub fn new(host: &HostSpec) -> HostDocument {
        HostDocument {
            mac: host.mac.to_string(),
            address: host.addresses.iter().map(ToString::to_string).collect(),
            at: host.at.to_string(),
        }
    }

    /// The host in the document.
    pub fn spec(&self) -> Result<HostSpec, DocumentError> {
        let addresses = all::<IpAddr>("address", &self.address)?;
        Ok(HostSpec { mac: read("mac", &self.mac)?, addresses, at: read("at", &self.at)? })
    }
}

fn written(steps: &[Step]) -> Vec<String> {
    let step = |step: &Step| match step {
        Step::Switch(dpid) => dpid.to_string(),
        Step::Port(port) => port.to_string(),
    };
    steps.iter().map(step).collect()
}

/// The text of a port contains "port", the text of a switch does not.
fn steps(texts: &[String]) -> Result<Vec<Step>, DocumentError> {
    let step = |text: &String| match text.contains("port") {
        true => read("route", text).map(Step::Port),
        false => read("route", text).map(Step::Switch),
    };
    texts.iter().map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::networks::Operation;

    fn refusal<'a, T: Deserialize<'a>>(json: &'a str) -> String {
        serde_json::from_str::<T>(json).err().expect("is refused").to_string()
    }

    #[test]
    fn a_json_array_is_refused_in_place_of_an_object() {
        for (json, what) in [
            ("[]", "a network"),
            (r#"[false, "10.0.0.0/24"]"#, "a network"),
            (r#"{"switches": [["0xa1", "", ["1"]]]}"#, "a switch"),
            (r#"{"ports": [["0xa1", 1, "", "1 port 1"]]}"#, "a port"),
            (r#"{"links": [[["0xa1 port 2", "0xa2 port 2"]]]}"#, "a link"),
            (r#"{"hosts": [["02:00:00:00:00:01", [], "0xa1 port 1"]]}"#, "a host"),
        ] {
            let error = refusal::<Document>(json);
            let expected =
                format!("invalid type: sequence, expected {what} as an object at line 1");
            assert!(error.starts_with(&expected), "{json}: {error}");
        }
        for (json, what) in [
            (r#"[{"put-switch": ["0xa1", "", ["1"]]}]"#, "a switch"),
            (r#"[{"put-port": ["0xa1", 1, "", "1 port 1"]}]"#, "a port"),
            (r#"[{"put-link": [["0xa1 port 2", "0xa2 port 2"]]}]"#, "a link"),
            (r#"[{"put-host": []}]"#, "a host"),
        ] {
            let error = refusal::<Vec<Operation>>(json);
            assert!(error.contains(&format!("expected {what} as an object")), "{json}: {error}");
        }
        assert!(refusal::<Document>(r#"{"start": true}"#).contains("unknown field `start`"));
        assert!(
            refusal::<Document>(r#"{"switches": [{"dpid": "0xa1"}]}"#)
                .contains("missing field `on`")
        );
    }
}
