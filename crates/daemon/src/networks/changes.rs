//! Parts of a network as incomplete JSON: absent properties of an existing part do not change.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::document::{
    Backup, HostDocument, LinkDocument, PortDocument, RouteDocument, SwitchDocument,
};
use super::error::DocumentError;
use super::number::NumberDocument;
use super::object::objects;

/// A virtual switch, or changes of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct SwitchChange {
    /// The datapath id.
    pub dpid: String,
    /// The description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The physical switches of the virtual switch; required for a new switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<Vec<String>>,
    /// Given routes between members of a big switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routes: Option<Vec<Vec<String>>>,
    /// Whether the part is started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<bool>,
}

/// An edge port of a virtual switch, or changes of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct PortChange {
    /// The virtual switch.
    pub switch: String,
    /// The port number.
    pub number: NumberDocument,
    /// The name, at most 15 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The physical port; required for a new port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Whether other tenants may have ports at the same physical port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<bool>,
    /// Whether the part is started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<bool>,
}

/// A virtual link, or changes of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct LinkChange {
    /// The two ends of the link.
    #[schema(min_items = 2, max_items = 2)]
    pub between: [String; 2],
    /// The reserved bandwidth in each direction; `0bit`: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<String>,
    /// The choice of the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<RouteDocument>,
    /// How disjoint the backup path is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<BackupChange>,
    /// Whether the link returns to its first path when that path works again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revert: Option<bool>,
    /// Whether the part is started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<bool>,
}

/// The parts that a path and its backup must not have in common after the change.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum BackupChange {
    /// Nothing: there is no backup.
    None,
    /// A physical link.
    Links,
    /// A physical link, or a switch between their ends.
    Switches,
}

/// A host of a tenant, or changes of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct HostChange {
    /// The hardware address.
    pub mac: String,
    /// The addresses of the host in the tenant's network; without one, Weir takes an address from
    /// the block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Vec<String>>,
    /// The edge port of the host; required for a new host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

objects! {
    SwitchChange: "a switch",
    PortChange: "a port",
    LinkChange: "a link",
    HostChange: "a host",
}

fn needed<T>(said: Option<T>, key: &str, part: &str) -> Result<T, DocumentError> {
    said.ok_or_else(|| DocumentError(format!("a new {part} needs `{key}`")))
}

impl SwitchChange {
    /// The changed switch, or a new one.
    pub(super) fn of(
        &self,
        before: Option<SwitchDocument>,
    ) -> Result<SwitchDocument, DocumentError> {
        let SwitchChange { dpid, name, on, routes, started } = self.clone();
        Ok(match before {
            Some(before) => SwitchDocument {
                dpid,
                name: name.unwrap_or(before.name),
                on: on.unwrap_or(before.on),
                routes: routes.unwrap_or(before.routes),
                started: started.unwrap_or(before.started),
            },
            None => SwitchDocument {
                dpid,
                name: name.unwrap_or_default(),
                on: needed(on, "on", "switch")?,
                routes: routes.unwrap_or_default(),
                started: started.unwrap_or(true),
            },
        })
    }
}

impl PortChange {
    /// The changed port, or a new one.
    pub(super) fn of(&self, before: Option<PortDocument>) -> Result<PortDocument, DocumentError> {
        let PortChange { switch, number, name, at, shared, started } = self.clone();
        Ok(match before {
            Some(before) => PortDocument {
                switch,
                number,
                name: name.unwrap_or(before.name),
                at: at.unwrap_or(before.at),
                shared: shared.unwrap_or(before.shared),
                started: started.unwrap_or(before.started),
            },
            None => PortDocument {
                switch,
                number,
                name: name.unwrap_or_default(),
                at: needed(at, "at", "port")?,
                shared: shared.unwrap_or_default(),
                started: started.unwrap_or(true),
            },
        })
    }
}

impl LinkChange {
    /// The changed link, or a new one.
    pub(super) fn of(&self, before: Option<LinkDocument>) -> LinkDocument {
        let LinkChange { between, bandwidth, route, backup, revert, started } = self.clone();
        let before = before.unwrap_or_else(|| LinkDocument {
            between: between.clone(),
            bandwidth: None,
            route: RouteDocument::default(),
            backup: None,
            revert: false,
            started: true,
        });
        LinkDocument {
            between,
            bandwidth: bandwidth.or(before.bandwidth),
            route: route.unwrap_or(before.route),
            backup: backup.map_or(before.backup, |backup| match backup {
                BackupChange::None => None,
                BackupChange::Links => Some(Backup::Links),
                BackupChange::Switches => Some(Backup::Switches),
            }),
            revert: revert.unwrap_or(before.revert),
            started: started.unwrap_or(before.started),
        }
    }
}

impl HostChange {
    /// The changed host, or a new one.
    pub(super) fn of(&self, before: Option<HostDocument>) -> Result<HostDocument, DocumentError> {
        let HostChange { mac, address, at } = self.clone();
        Ok(match before {
            Some(before) => HostDocument {
                mac,
                address: address.unwrap_or(before.address),
                at: at.unwrap_or(before.at),
            },
            None => {
                let at = needed(at, "at", "host")?;
                HostDocument { mac, address: address.unwrap_or_default(), at }
            }
        })
    }
}
