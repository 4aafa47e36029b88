//! Parts of a network as JSON of which only some is said: of a part that is there, what is not said stays as it is.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::error::DocumentError;
use super::object::objects;
use super::{
    Backup, HostDocument, LinkDocument, NumberDocument, PortDocument, RouteDocument, SwitchDocument,
};

/// A virtual switch, or what is to be different about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct SwitchChange {
    /// Which.
    pub dpid: String,
    /// Its description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The physical switches that it lies on; a new one needs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<Vec<String>>,
    /// Ways inside a big switch that are not to be the shortest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routes: Option<Vec<Vec<String>>>,
    /// Whether it works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<bool>,
}

/// A port of a virtual switch at the edge, or what is to be different about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct PortChange {
    /// The virtual switch.
    pub switch: String,
    /// The port's number there.
    pub number: NumberDocument,
    /// Its name, at most 15 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The physical port; a new one needs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Whether other tenants have ports there too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<bool>,
    /// Whether it works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<bool>,
}

/// A virtual link, or what is to be different about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct LinkChange {
    /// The two ports that it joins.
    #[schema(min_items = 2, max_items = 2)]
    pub between: [String; 2],
    /// Set aside for it in each direction; `0bit` is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<String>,
    /// How its path is chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<RouteDocument>,
    /// How far apart from its path a second one stands by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<BackupChange>,
    /// Whether it goes back to its first path when that is whole again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revert: Option<bool>,
    /// Whether it works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<bool>,
}

/// What a path and its backup may not have in common from now on.
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

/// A host of a tenant, or what is to be different about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct HostChange {
    /// Its hardware address.
    pub mac: String,
    /// Its addresses in the tenant's network; with none, one is taken from the block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Vec<String>>,
    /// The port where it is attached; a new one needs it.
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
    /// What comes of the switch that is there, or of none.
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
    /// What comes of the port that is there, or of none.
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
    /// What comes of the link that is there, or of none.
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
    /// What comes of the host that is there, or of none.
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
